//! Who asks, as operations take it: what the gate has found.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tidemark_domain::ids::{Owner, TenantId};

use crate::app::App;
use crate::auth::Identity;
use crate::problem::Problem;

/// Who asks for something to be written. A user who is not known yet is made.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Whose data the request is about.
    pub owner: Owner,
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let Identity {
            principal, user, ..
        } = Identity::of(parts)?;
        let owner = app.owners.resolve(principal.tenant, user.clone()).await?;
        Ok(Self { owner })
    }
}

/// Who asks for what is there already. Nobody is made for it: who is not known yet has nothing.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Whose data the request is about.
    pub owner: Owner,
}

impl FromRequestParts<App> for Reader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let Identity {
            principal, user, ..
        } = Identity::of(parts)?;
        let owner = app.owners.find(principal.tenant, user.clone()).await?;
        Ok(Self { owner })
    }
}

/// The tenant of whoever asks for what concerns it as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Tenant(pub TenantId);

impl FromRequestParts<App> for Tenant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        Ok(Self(Identity::of(parts)?.principal.tenant))
    }
}
