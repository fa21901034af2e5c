//! Pages of other origins that may use the API (CORS), where the operator lists them.
//!
//! They act by a key or a token that they hold themselves: no credentials are allowed, so browsers send no cookie along and show nothing that came
//! by one, and whatever needs the cookie is refused to foreign pages besides ([`cookie`](crate::auth::cookie)).

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::auth::operations;

/// How long a browser remembers what it was told; they have bounds of their own.
const REMEMBERED: Duration = Duration::from_hours(1);

/// What scripts of such pages may read of an answer, beside what all may: what clients and SDKs go by.
const EXPOSED: [&str; 10] = [
    "etag",
    "location",
    "mcp-session-id",
    "preference-applied",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "retry-after-ms",
    "www-authenticate",
    "x-request-id",
];

/// The origins that are listed. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Origins(Arc<[String]>);

impl FromIterator<String> for Origins {
    fn from_iter<I: IntoIterator<Item = String>>(origins: I) -> Self {
        Self(origins.into_iter().collect())
    }
}

impl Origins {
    /// Whether an Origin is one of them, to the letter: browsers write each in one way.
    pub fn contains(&self, origin: &str) -> bool {
        self.0.iter().any(|listed| listed == origin)
    }

    /// The layer that tells browsers; none where none is listed.
    pub fn layer(&self) -> Option<CorsLayer> {
        if self.0.is_empty() {
            return None;
        }
        let origins = self.0.iter().filter_map(|o| HeaderValue::try_from(o).ok());
        Some(
            CorsLayer::new()
                .allow_origin(AllowOrigin::list(origins))
                .allow_methods(operations::methods())
                // Whom the operator trusts to use the API may set its headers, and those that its SDKs add.
                .allow_headers(AllowHeaders::mirror_request())
                .expose_headers(EXPOSED.map(HeaderName::from_static))
                .max_age(REMEMBERED),
        )
    }
}
