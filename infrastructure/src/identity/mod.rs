//! An identity provider whose tokens are JWTs (RFC 7519), signed with keys that it publishes as a JWKS (RFC 7517).
//!
//! - [`source`]: reading the keys over HTTP
//! - [`key_set`]: which of them tokens may be signed with, and how
//! - [`held`]: the keys as they were read last, and when they are read again
//! - [`said`]: the claims of a token
//! - [`signature`]: ring, behind `jsonwebtoken`

mod held;
mod key_set;
mod said;
mod signature;
mod source;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::time::Duration;

use async_trait::async_trait;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde_json::Value;
use tidemark_application::ports::identity_provider::{
    IdentityProvider, MAX_TOKEN_BYTES, Reading, Token, Unverified,
};
use tidemark_domain::ids::Timestamp;

use self::held::Held;
use self::said::Said;
use self::source::Source;
pub use self::source::SourceError;

/// Whose tokens are accepted.
#[derive(Clone, Debug)]
pub struct ProviderOptions {
    /// Where its keys are: `https://`, or `http://` on a loopback address.
    pub jwks_url: String,
    /// What `iss` must be.
    pub issuer: String,
    /// What `aud` must be, or hold.
    pub audience: String,
    /// How often the keys are read.
    pub interval: Duration,
    /// How long what was read holds after it was to be read again and could not be.
    pub patience: Duration,
}

/// The provider.
#[derive(Debug)]
pub struct JwksProvider {
    held: Held,
    issuer: String,
    audience: String,
}

impl JwksProvider {
    /// Begins to read its keys, in a task of the runtime that this is called in. That the provider does not answer is no error.
    ///
    /// # Errors
    /// When its address cannot be used.
    pub fn start(options: ProviderOptions) -> Result<Self, SourceError> {
        signature::install();
        let source = Source::new(&options.jwks_url)?;
        Ok(Self {
            held: Held::start(source, options.interval, options.patience),
            issuer: options.issuer,
            audience: options.audience,
        })
    }

    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&[&self.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        // By the clock of the process that everybody else goes by; see `Token`.
        validation.validate_exp = false;
        validation
    }
}

#[async_trait]
impl IdentityProvider for JwksProvider {
    async fn verify(&self, token: &str) -> Result<Token, Unverified> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Unverified::Malformed);
        }
        // `none` is no way of signing that could be read.
        let header = decode_header(token).map_err(|_| Unverified::Malformed)?;
        let id = header.kid.ok_or(Unverified::UnknownKey)?;
        let key = self.held.find(&id).await?;
        if !key.algorithms.contains(&header.alg) {
            return Err(Unverified::Algorithm);
        }
        let validation = self.validation(header.alg);
        let decoded = decode::<Said>(token, &key.decoding, &validation);
        let Said(claims) = decoded.map_err(|error| why(error.kind()))?.claims;
        // The crate takes one of several for it.
        if claims.get("iss").and_then(Value::as_str) != Some(&self.issuer) {
            return Err(Unverified::Issuer);
        }
        Ok(Token {
            expires_at: time(claims.get("exp"))?.ok_or(Unverified::Expiry)?,
            not_before: time(claims.get("nbf")).map_err(|_| Unverified::Malformed)?,
            claims,
        })
    }

    fn reading(&self) -> Reading {
        self.held.reading()
    }
}

fn why(kind: &ErrorKind) -> Unverified {
    match kind {
        ErrorKind::InvalidSignature => Unverified::Signature,
        ErrorKind::InvalidIssuer => Unverified::Issuer,
        ErrorKind::InvalidAudience => Unverified::Audience,
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => {
            match claim.as_str() {
                "iss" => Unverified::Issuer,
                "aud" => Unverified::Audience,
                _ => Unverified::Expiry,
            }
        }
        ErrorKind::InvalidAlgorithm
        | ErrorKind::UnsupportedAlgorithm
        | ErrorKind::InvalidKeyFormat => Unverified::Algorithm,
        _ => Unverified::Malformed,
    }
}

/// A `NumericDate` (RFC 7519, 2): seconds, which may have a fraction.
fn time(said: Option<&Value>) -> Result<Option<Timestamp>, Unverified> {
    let seconds = match said {
        None => return Ok(None),
        Some(said) => said.as_i64().or_else(|| said.as_f64().map(|s| s as i64)),
    };
    let time = seconds.and_then(|seconds| Timestamp::from_timestamp(seconds, 0));
    time.map(Some).ok_or(Unverified::Expiry)
}
