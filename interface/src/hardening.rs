//! What every answer tells a browser, so that nothing of it is taken for something else, framed, kept or passed on. What an operation or a page says
//! itself holds.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::app::App;
use crate::guard;

/// What the pages may load: what this server serves, as files of their own. Nobody may frame them, and no text becomes markup or a script.
pub const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);

/// Whatever is no page loads nothing, should a browser show it as one.
const DATA_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// What holds where nothing else was said. Answers of the API are about somebody, so nobody keeps them.
const DEFAULTS: [(HeaderName, HeaderValue); 6] = [
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    ),
    (header::CONTENT_SECURITY_POLICY, DATA_POLICY),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    // Pages of listed origins read by CORS, which this is not about.
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// A year, as browsers' own lists ask for.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Says it.
pub async fn harden(State(app): State<App>, request: Request, next: Next) -> Response {
    // Whoever tries TLS on this machine does not mean all that is ever served on it.
    let elsewhere = app.tls && !guard::is_loopback(&guard::host(request.uri(), request.headers()));
    let mut response = next.run(request).await;
    complete(response.headers_mut(), elsewhere);
    response
}

fn complete(headers: &mut HeaderMap, over_tls: bool) {
    for (name, value) in DEFAULTS {
        headers.entry(name).or_insert(value);
    }
    if over_tls {
        headers
            .entry(header::STRICT_TRANSPORT_SECURITY)
            .or_insert(HSTS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_holds_and_the_rest_is_added() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        complete(&mut headers, false);
        assert_eq!(headers[header::CACHE_CONTROL], "no-cache");
        assert_eq!(headers.len(), DEFAULTS.len());
        assert!(!headers.contains_key(header::STRICT_TRANSPORT_SECURITY));
    }

    #[test]
    fn only_what_comes_over_tls_is_asked_for_so_again() {
        let mut headers = HeaderMap::new();
        complete(&mut headers, true);
        assert_eq!(
            headers[header::STRICT_TRANSPORT_SECURITY],
            "max-age=31536000"
        );
    }

    #[test]
    fn no_policy_lets_anything_inline_run_or_anybody_frame() {
        for policy in [PAGE_POLICY, DATA_POLICY] {
            let text = policy.to_str().unwrap();
            assert!(text.starts_with("default-src 'none'; ") && !text.contains("unsafe"));
            for said in ["base-uri 'none'", "frame-ancestors 'none'"] {
                assert!(text.contains(said), "{text}");
            }
        }
    }
}
