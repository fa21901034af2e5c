//! Headers that mean nothing when they come twice.

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::problem::{Code, Problem};

/// Headers of which one value decides: who asks, for what, from where, on behalf of which page. Of two, each part of a way through
/// proxies might take another.
const SINGLE: [&str; 7] = [
    "Host",
    "Origin",
    "Content-Type",
    "Authorization",
    "X-Tidemark-User",
    "Idempotency-Key",
    "Last-Event-ID",
];

/// Refuses requests that give such a header twice.
pub async fn refuse_repeated(request: Request, next: Next) -> Response {
    match repeated(request.headers()) {
        None => next.run(request).await,
        Some(name) => Problem::new(Code::InvalidHeader, "a header is given twice")
            .field(name, "must be given once")
            .into_response(),
    }
}

fn repeated(headers: &HeaderMap) -> Option<&'static str> {
    SINGLE
        .into_iter()
        .find(|name| headers.get_all(*name).iter().nth(1).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    #[test]
    fn a_header_that_decides_is_taken_once_alone() {
        for name in SINGLE {
            let mut headers = HeaderMap::new();
            for value in ["a", "a"] {
                assert_eq!(repeated(&headers), None, "{name}");
                headers.append(
                    HeaderName::from_bytes(name.as_bytes()).unwrap(),
                    HeaderValue::from_static(value),
                );
            }
            assert_eq!(repeated(&headers), Some(name));
        }
        let mut headers = HeaderMap::new();
        for value in ["text/html", "application/json"] {
            headers.append("accept", HeaderValue::from_static(value));
        }
        assert_eq!(repeated(&headers), None);
    }
}
