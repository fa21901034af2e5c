//! The cookie of a page that has signed in, and whether it is the own page that sends it.
//!
//! The cookie is `SameSite=Strict`, so another site's page does not send it along. Pages of the same site (another port, a neighbouring
//! subdomain) do: whatever writes has to come from this server's own page.

use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};

use crate::guard;
use crate::problem::{Code, Problem};

/// The cookie's name where it goes over TLS alone: by the prefix, browsers take it from this host alone, for all of it, and only over TLS.
const SECURE: &str = "__Host-tidemark";

/// Its name elsewhere.
const PLAIN: &str = "tidemark";

/// The pass that the request's cookies hold.
pub(super) fn read(headers: &HeaderMap) -> Option<&str> {
    let find = |wanted: &str| {
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .find_map(|pair| {
                let (name, value) = pair.trim().split_once('=')?;
                (name == wanted).then_some(value)
            })
    };
    find(SECURE).or_else(|| find(PLAIN))
}

/// `Set-Cookie` for a pass. It can hold nothing that would have to be quoted.
pub fn set(pass: &str, secure: bool, lasts: Duration) -> Option<HeaderValue> {
    let (name, flag) = if secure {
        (SECURE, "; Secure")
    } else {
        (PLAIN, "")
    };
    let seconds = lasts.as_secs();
    let cookie =
        format!("{name}={pass}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{flag}");
    let mut value = HeaderValue::try_from(cookie).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// `Set-Cookie`, twice, for a browser to forget it under either name.
pub fn clear() -> [HeaderValue; 2] {
    [
        HeaderValue::from_static(
            "__Host-tidemark=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure",
        ),
        HeaderValue::from_static("tidemark=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"),
    ]
}

/// Refuses what another page has a browser send. What only reads may lack an Origin, as browsers leave it out there.
pub(super) fn from_own_page(parts: &Parts) -> Result<(), Problem> {
    let reads = matches!(parts.method, Method::GET | Method::HEAD)
        // It starts a turn.
        && parts.uri.path() != "/v1/chat/stream";
    let site = check(parts)?;
    if reads || site == Site::Own {
        return Ok(());
    }
    Err(refused(
        "whatever writes has to say that it comes from the own page",
    ))
}

/// Refuses what another page has a browser send; what comes from no page may pass.
pub fn from_no_other_page(parts: &Parts) -> Result<(), Problem> {
    check(parts).map(|_| ())
}

/// Where a request comes from, as far as the browser says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Site {
    Own,
    NotSaid,
}

fn check(parts: &Parts) -> Result<Site, Problem> {
    let text = |name: &str| {
        let value = parts.headers.get(name);
        value.map(|value| value.to_str().unwrap_or("?"))
    };
    let site = text("sec-fetch-site");
    if matches!(site, Some("cross-site" | "same-site")) {
        return Err(refused("the request comes from another page"));
    }
    match text(header::ORIGIN.as_str()) {
        Some(origin) if guard::is_own(origin, &guard::host(&parts.uri, &parts.headers)) => {
            Ok(Site::Own)
        }
        Some(_) => Err(refused("the request comes from another page")
            .field("Origin", "must be this server's own")),
        None if site == Some("same-origin") => Ok(Site::Own),
        None => Ok(Site::NotSaid),
    }
}

fn refused(detail: &str) -> Problem {
    Problem::new(Code::ForbiddenOrigin, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn parts(method: &str, path: &str, headers: &[(&str, &str)]) -> Parts {
        let mut builder = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_cookie_is_found_among_others_and_over_several_headers() {
        let found = |headers: &[(&str, &str)]| {
            let parts = parts("GET", "/", headers);
            read(&parts.headers).map(ToOwned::to_owned)
        };
        assert_eq!(
            found(&[("cookie", "a=b; tidemark=x; c=d")]).as_deref(),
            Some("x")
        );
        let two = [("cookie", "tidemark=x"), ("cookie", "__Host-tidemark=y")];
        assert_eq!(found(&two).as_deref(), Some("y"));
        for none in ["tidemark2=x", "a=tidemark=x", ""] {
            assert_eq!(found(&[("cookie", none)]), None, "{none}");
        }
    }

    #[test]
    fn a_cookie_is_kept_from_scripts_other_sites_and_where_it_can_from_the_clear() {
        let value = set("tms_x", true, Duration::from_mins(1)).unwrap();
        assert_eq!(
            value.to_str().unwrap(),
            "__Host-tidemark=tms_x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure"
        );
        let plain = set("tms_x", false, Duration::from_mins(1)).unwrap();
        assert!(plain.to_str().unwrap().starts_with("tidemark=tms_x; "));
        assert!(!plain.to_str().unwrap().contains("Secure"));
    }

    #[test]
    fn only_the_own_page_writes_by_cookie() {
        let host = ("host", "chat.example.org");
        let own = ("origin", "https://chat.example.org");
        let fetched = ("sec-fetch-site", "same-origin");
        for (method, path, headers) in [
            ("POST", "/v1/sessions", vec![host, own]),
            ("DELETE", "/v1/sessions/x", vec![host, own, fetched]),
            ("GET", "/v1/chat/stream?query=x", vec![host, fetched]),
            ("GET", "/v1/sessions", vec![host]),
            ("GET", "/v1/turns/x/events", vec![host, fetched]),
        ] {
            let parts = parts(method, path, &headers);
            assert!(from_own_page(&parts).is_ok(), "{method} {path}");
        }
        let other = ("origin", "https://evil.example");
        let port = ("origin", "https://chat.example.org:3000");
        for (method, path, headers) in [
            ("POST", "/v1/sessions", vec![host]),
            ("POST", "/v1/sessions", vec![host, other]),
            ("POST", "/v1/sessions", vec![host, ("origin", "null")]),
            ("PATCH", "/v1/sessions/x", vec![host, port]),
            (
                "DELETE",
                "/v1/sessions/x",
                vec![host, ("sec-fetch-site", "none")],
            ),
            ("GET", "/v1/chat/stream?query=x", vec![host]),
            (
                "GET",
                "/v1/chat/stream?query=x",
                vec![host, ("sec-fetch-site", "same-site")],
            ),
            (
                "GET",
                "/v1/sessions",
                vec![host, ("sec-fetch-site", "cross-site")],
            ),
            ("GET", "/v1/sessions", vec![host, other]),
        ] {
            let parts = parts(method, path, &headers);
            assert!(
                from_own_page(&parts).is_err(),
                "{method} {path} {headers:?}"
            );
        }
    }
}
