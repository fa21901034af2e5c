//! By what somebody shows who they are: an API key, a token of an identity provider, or a pass that stands for one of them.

use std::sync::Arc;
use std::time::Duration;

use tidemark_application::access::authenticate::{AuthenticationError, Authenticator, KnownKey};
use tidemark_application::access::claims::Nobody;
use tidemark_application::access::key::is_key;
use tidemark_application::access::pass::{NO_SECRET, Of, Pass, Purpose, Secret, Unverified};
use tidemark_application::access::token::{TokenError, Tokens};
use tidemark_application::ports::identity_provider::Unverified as UnverifiedToken;
use tidemark_domain::identity::Principal;
use tidemark_domain::ids::{TenantId, Timestamp};

use super::Gate;
use crate::problem::{Code, Problem};

/// How long to wait while the identity provider's keys cannot be read, in milliseconds: the next attempt is not sooner.
const PROVIDER_RETRY_MS: u64 = 10_000;

/// Asks for keys, or tokens.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Knows keys.
    pub authenticator: Authenticator,
    /// Knows tokens of the identity provider; none where none are accepted.
    pub tokens: Option<Tokens>,
    /// How long a page stays signed in.
    pub session: Duration,
}

/// What was shown.
#[derive(Clone, Debug)]
pub enum Proof {
    /// Nothing: nothing is asked for.
    Nothing,
    /// A key.
    Key(Arc<KnownKey>),
    /// A token of the identity provider.
    Token {
        /// From then on it is refused.
        expires_at: Timestamp,
    },
}

/// A pass that is genuine. Whether its time is over is another matter.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) pass: Pass,
    /// Whom whoever has it is.
    pub(super) principal: Arc<Principal>,
    pub(super) proof: Proof,
}

impl Keys {
    /// Whose this bearer token is.
    ///
    /// # Errors
    /// When it is not good.
    pub async fn by_bearer(&self, text: &str) -> Result<(Arc<Principal>, Proof), Problem> {
        if let Some(tokens) = self.tokens.as_ref().filter(|_| !is_key(text)) {
            let known = tokens.by_token(text).await?;
            let expires_at = known.expires_at;
            return Ok((known.principal, Proof::Token { expires_at }));
        }
        let known = self.authenticator.by_key(text).await?;
        Ok((Arc::clone(&known.principal), Proof::Key(known)))
    }

    /// For people.
    pub(super) fn what_is_needed(&self) -> &'static str {
        match self.tokens {
            None => "an API key",
            Some(_) => "an API key or a token of the identity provider",
        }
    }

    async fn token_secret(&self, tenant: TenantId) -> Result<Option<Secret>, Problem> {
        match &self.tokens {
            None => Ok(None),
            Some(tokens) => Ok(tokens.secret(tenant).await?.map(|secret| secret.0)),
        }
    }
}

impl Proof {
    /// What a pass for it stands for, whose principal is `whose`.
    pub fn of(&self, whose: &Principal) -> Of {
        match self {
            Self::Nothing => Of::Nothing,
            Self::Key(known) => Of::Key(known.stored.key.id),
            Self::Token { .. } => Of::Token {
                tenant: whose.tenant,
                scopes: whose.scopes,
                bound: whose.bound,
            },
        }
    }

    /// When it ends by itself.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::Nothing => None,
            Self::Key(known) => known.stored.key.expires_at,
            Self::Token { expires_at } => Some(*expires_at),
        }
    }
}

impl Gate {
    /// Knows tokens of an identity provider, where they are accepted.
    pub fn tokens(&self) -> Option<&Tokens> {
        match self {
            Self::Open(_) => None,
            Self::Keys(keys) => keys.tokens.as_ref(),
        }
    }

    /// The pass as text, for whoever showed `proof`.
    ///
    /// # Errors
    /// When there is nothing to sign it with.
    pub async fn seal(
        &self,
        pass: &Pass,
        proof: &Proof,
        purpose: Purpose,
    ) -> Result<String, Problem> {
        let secret = match (proof, pass.of, self.tokens()) {
            (Proof::Key(known), ..) => known.stored.hash.0,
            (Proof::Token { .. }, Of::Token { tenant, .. }, Some(tokens)) => {
                tokens.secret_to_sign(tenant).await?.0
            }
            _ => NO_SECRET,
        };
        Ok(pass.seal(purpose, &secret))
    }

    /// A pass that somebody shows.
    pub(super) async fn open_pass(&self, text: &str, purpose: Purpose) -> Result<Opened, Problem> {
        let invalid = || match purpose {
            Purpose::Ticket(_) => refused_pass("the ticket is not valid for this turn"),
            Purpose::SignIn => refused_pass("the cookie is not valid"),
        };
        let read = Unverified::read(text, purpose).ok_or_else(invalid)?;
        match (self, read.of()) {
            (Self::Open(anybody), _) => {
                let pass = read.verified(purpose, &NO_SECRET).ok_or_else(invalid)?;
                Ok(opened(pass, anybody, Proof::Nothing))
            }
            (Self::Keys(keys), Of::Key(id)) => {
                let known = keys.authenticator.by_id(id).await?;
                let hash = &known.stored.hash.0;
                let pass = read.verified(purpose, hash).ok_or_else(invalid)?;
                Ok(opened(
                    pass,
                    &known.principal,
                    Proof::Key(Arc::clone(&known)),
                ))
            }
            (
                Self::Keys(keys),
                Of::Token {
                    tenant,
                    scopes,
                    bound,
                },
            ) => {
                let secret = keys.token_secret(tenant).await?.ok_or_else(invalid)?;
                let pass = read.verified(purpose, &secret).ok_or_else(invalid)?;
                let (Some(user), Some(expires_at)) = (pass.user.clone(), pass.expires_at) else {
                    return Err(invalid());
                };
                Ok(Opened {
                    principal: Arc::new(Principal {
                        tenant,
                        scopes,
                        user,
                        bound: bound || purpose != Purpose::SignIn,
                    }),
                    proof: Proof::Token { expires_at },
                    pass,
                })
            }
            (Self::Keys(_), Of::Nothing) => Err(invalid()),
        }
    }
}

/// A pass that names a user is for that one alone.
fn opened(pass: Pass, principal: &Arc<Principal>, proof: Proof) -> Opened {
    let principal = match &pass.user {
        None => Arc::clone(principal),
        Some(user) => Arc::new(principal.bound_to(user.clone())),
    };
    Opened {
        pass,
        principal,
        proof,
    }
}

pub(super) fn refused_pass(detail: &str) -> Problem {
    unauthenticated(detail.to_owned())
}

fn unauthenticated(detail: String) -> Problem {
    let said = format!("error=\"invalid_token\", error_description=\"{detail}\"");
    Problem::new(Code::Unauthenticated, detail).challenge(challenge(&said))
}

/// What `WWW-Authenticate` says (RFC 6750, 3).
pub(super) fn challenge(parameters: &str) -> String {
    let comma = if parameters.is_empty() { "" } else { ", " };
    format!("Bearer realm=\"tidemark\"{comma}{parameters}")
}

impl From<AuthenticationError> for Problem {
    fn from(error: AuthenticationError) -> Self {
        let detail = error.to_string();
        match error {
            AuthenticationError::Store(error) => error.into(),
            AuthenticationError::Unknown
            | AuthenticationError::Expired
            | AuthenticationError::Revoked => unauthenticated(detail),
        }
    }
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Self {
        let detail = error.to_string();
        match error {
            TokenError::Store(error) => error.into(),
            TokenError::Unverified(UnverifiedToken::Unavailable) => {
                Self::new(Code::IdentityProviderUnavailable, detail)
                    .retry_after_ms(PROVIDER_RETRY_MS)
            }
            TokenError::Unverified(_) | TokenError::Expired | TokenError::NotYet => {
                unauthenticated(detail)
            }
            TokenError::Nobody(nobody) => {
                let message = match &nobody {
                    Nobody::NoTenant { .. } => "must name a tenant",
                    Nobody::UnknownTenant { .. } => "must name a tenant that is here",
                    Nobody::NoUser { .. } => {
                        "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : @ -"
                    }
                };
                let (Nobody::NoTenant { claim }
                | Nobody::UnknownTenant { claim }
                | Nobody::NoUser { claim }) = nobody;
                Self::new(Code::UnknownIdentity, detail).field(claim, message)
            }
            TokenError::NoEntropy(error) => {
                tracing::error!(%error, "a pass cannot be signed");
                Self::new(Code::Internal, "a defect of this server")
            }
        }
    }
}
