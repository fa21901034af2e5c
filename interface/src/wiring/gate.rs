//! Who may ask: nobody is asked for, or keys and, where a provider is set, its tokens.

use std::sync::Arc;
use std::time::Duration;

use tidemark_application::access::authenticate::Authenticator;
use tidemark_application::access::claims::ClaimNames;
use tidemark_application::access::token::{TokenParts, Tokens};
use tidemark_application::ports::clock::Clock;
use tidemark_application::ports::store::Store;
use tidemark_infrastructure::identity::{JwksProvider, ProviderOptions};
use tidemark_infrastructure::system::SystemEntropy;

use super::WiringError;
use crate::auth::Gate;
use crate::auth::proof::Keys;
use crate::config::setting::AuthMode;
use crate::config::{Settings, sections};

/// The gate of these settings.
///
/// # Errors
/// When the provider cannot be used as it is set.
pub(super) fn gate(
    settings: &Settings,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
) -> Result<Gate, WiringError> {
    let tokens = match settings.auth.mode {
        AuthMode::None => return Ok(Gate::open()),
        AuthMode::Keys => None,
        AuthMode::Jwt => Some(tokens(&settings.jwt, store, clock)?),
    };
    Ok(Gate::Keys(Keys {
        authenticator: Authenticator::new(Arc::clone(store) as _, Arc::clone(clock)),
        tokens,
        session: Duration::from_hours(settings.auth.session_hours),
    }))
}

fn tokens(
    settings: &sections::Jwt,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
) -> Result<Tokens, WiringError> {
    let url = settings.jwks_url.as_ref().map(|url| url.0.clone());
    // What is unset was refused when the settings were read.
    let provider = JwksProvider::start(ProviderOptions {
        jwks_url: url.unwrap_or_default(),
        issuer: settings.issuer.clone().unwrap_or_default(),
        audience: settings.audience.clone().unwrap_or_default(),
        interval: Duration::from_secs(settings.refresh_seconds),
        patience: Duration::from_hours(settings.stale_hours),
    });
    let provider = provider.map_err(|error| WiringError::IdentityProvider(error.into()))?;
    Ok(Tokens::new(TokenParts {
        provider: Arc::new(provider),
        store: Arc::clone(store) as _,
        clock: Arc::clone(clock),
        entropy: Arc::new(SystemEntropy),
        names: ClaimNames {
            tenant: settings.tenant_claim.clone(),
            tenant_otherwise: settings.tenant.clone(),
            user: settings.user_claim.clone(),
            scopes: settings.scope_claim.clone(),
        },
    }))
}
