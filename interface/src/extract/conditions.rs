//! On what a request depends: that it was not made before, that a resource is as it was seen.

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use tidemark_application::ports::store::Idempotency;

use crate::problem::{Code, Problem};

/// The idempotency key of a creating request.
#[derive(Debug)]
pub struct IdempotencyKey {
    key: Option<String>,
    operation: String,
}

impl IdempotencyKey {
    /// With the hash of the body that came with it.
    pub fn with_body(self, hash: [u8; 32]) -> Option<Idempotency> {
        self.key.map(|key| Idempotency {
            key,
            operation: self.operation,
            body_hash: hash,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let key = match parts.headers.get("idempotency-key") {
            None => None,
            Some(value) => Some(
                value
                    .to_str()
                    .ok()
                    .filter(|v| {
                        (1..=255).contains(&v.len()) && v.bytes().all(|b| b.is_ascii_graphic())
                    })
                    .map(ToOwned::to_owned)
                    .ok_or_else(|| {
                        Problem::new(Code::InvalidHeader, "the idempotency key is not one").field(
                            "Idempotency-Key",
                            "must be 1 to 255 visible ASCII characters",
                        )
                    })?,
            ),
        };
        Ok(Self {
            key,
            operation: format!("{} {}", parts.method, parts.uri.path()),
        })
    }
}

/// The version named by `If-Match`; none when there is no such header or it is `*`.
#[derive(Clone, Copy, Debug)]
pub struct IfMatch(pub Option<i64>);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(header::IF_MATCH) else {
            return Ok(Self(None));
        };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(Self(None));
        }
        let version = text
            .strip_prefix('"')
            .and_then(|t| t.strip_suffix('"'))
            .and_then(|t| t.parse().ok());
        // A tag that this server never gave matches nothing: stale, not malformed.
        Ok(Self(Some(version.unwrap_or(-1))))
    }
}

/// The entity tag of a version.
pub fn entity_tag(version: i64) -> String {
    format!("\"{version}\"")
}
