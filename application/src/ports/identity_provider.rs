//! An identity provider, whose tokens say who somebody is.

use async_trait::async_trait;
use serde_json::{Map, Value};
use tidemark_domain::ids::Timestamp;

/// No token is longer, in bytes. Those of providers that list a user's groups have some thousands.
pub const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// What a token says that its provider has signed.
#[derive(Clone, PartialEq)]
pub struct Token {
    /// From then on it is not good any more.
    pub expires_at: Timestamp,
    /// Before that it is not good yet.
    pub not_before: Option<Timestamp>,
    /// Everything that it says, by the names of its claims.
    pub claims: Map<String, Value>,
}

/// Claims are about a person.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// A token is not accepted. Messages repeat nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unverified {
    /// It is none, is longer than [`MAX_TOKEN_BYTES`], or is not signed.
    #[error("the token cannot be read")]
    Malformed,
    /// It is signed in a way that is not accepted at all, or not of the key that it names.
    #[error("the token is not signed in an accepted way")]
    Algorithm,
    /// It names no key, or none of the provider's.
    #[error("the token is signed by a key that is not known")]
    UnknownKey,
    /// The key that it names has not signed it.
    #[error("the signature of the token is not valid")]
    Signature,
    /// It is from somebody else.
    #[error("the token is of another issuer")]
    Issuer,
    /// It is for somebody else.
    #[error("the token is for another audience")]
    Audience,
    /// It does not say until when it is good, or says it badly.
    #[error("the token does not say when it expires")]
    Expiry,
    /// Whether it is good cannot be known now: the provider's keys cannot be read, and it is signed by none that was read before.
    #[error("the identity provider's keys cannot be read")]
    Unavailable,
}

/// What is known of the provider's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// There are none to judge by: they were never read, or too long ago. No token can be accepted.
    Missing,
    /// They were read when they were to be.
    Well,
    /// They could not be read lately. Tokens are judged by those that were read before, for a bounded time.
    Stale,
}

/// Knows the tokens of one provider.
#[async_trait]
pub trait IdentityProvider: Send + Sync + 'static {
    /// What a token says, once it is found to be signed by the provider, and of the issuer and for the audience that are set. Whether its time
    /// has come or is over is the caller's to judge.
    ///
    /// May wait for the provider, for some seconds at most, when the token names a key that is not known; that is rare, however many such
    /// tokens come.
    ///
    /// # Errors
    /// [`Unverified`].
    async fn verify(&self, token: &str) -> Result<Token, Unverified>;

    /// What is known of the provider's keys.
    fn reading(&self) -> Reading;
}
