//! The protection of a server without authentication from other web pages.
//!
//! A browser on the same machine is not trusted: any page it shows can send requests to loopback addresses. So the Host must be a
//! loopback name (which defeats DNS rebinding), the Origin must be this server's own or one that the operator has listed, and whatever writes
//! must be declared as JSON (which a form of another page cannot do).

use std::net::IpAddr;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::auth::operations;
use crate::cors::Origins;
use crate::extract::{is_json, unsupported_media_type};
use crate::problem::{Code, Problem};

/// Lets through what this server's own pages, listed ones, or programs that are no browsers, send.
pub async fn known_pages_only(State(app): State<App>, request: Request, next: Next) -> Response {
    match check(&request, &app.origins) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(request: &Request, listed: &Origins) -> Result<(), Problem> {
    let headers = request.headers();
    let host = host(request.uri(), headers);
    if !is_loopback(&host) {
        return Err(
            forbidden("the Host is not a loopback name").field("Host", "must be a loopback name")
        );
    }
    let origin = text(headers, header::ORIGIN.as_str());
    let is_listed = origin.is_some_and(|origin| listed.contains(origin));
    if origin.is_some_and(|origin| !is_listed && !is_own(origin, &host)) {
        return Err(forbidden("the request comes from another page")
            .field("Origin", "must be this server's own, or listed"));
    }
    let api = request.uri().path().starts_with("/v1/");
    match text(headers, "sec-fetch-site") {
        _ if is_listed => {}
        Some("cross-site") if !is_visit(request, api) => {
            return Err(forbidden("the request comes from another site"));
        }
        Some("same-site") if api => {
            return Err(forbidden(
                "the request comes from another page of this machine",
            ));
        }
        _ => {}
    }
    // No browser sends another page's DELETE without asking first, and no operation knows further methods.
    let writes = matches!(*request.method(), Method::POST | Method::PATCH);
    if api && writes && !is_json(headers) && !is_without_operation(request) {
        return Err(unsupported_media_type());
    }
    Ok(())
}

/// The host that a request is for.
pub(crate) fn host(uri: &Uri, headers: &HeaderMap) -> String {
    uri.authority()
        .map(|a| a.as_str().to_owned())
        .or_else(|| text(headers, header::HOST.as_str()).map(ToOwned::to_owned))
        .unwrap_or_default()
}

/// Whether an Origin is that of a page of the host.
pub(crate) fn is_own(origin: &str, host: &str) -> bool {
    origin.split_once("://").is_some_and(|(scheme, rest)| {
        matches!(scheme, "http" | "https") && rest.eq_ignore_ascii_case(host)
    })
}

/// Whether the address knows no such method: nothing is written, and what is wrong is the method.
fn is_without_operation(request: &Request) -> bool {
    let path = request.extensions().get::<MatchedPath>();
    path.map(MatchedPath::as_str).is_some_and(|path| {
        operations::is_known(path) && operations::need(request.method(), path).is_none()
    })
}

/// Somebody follows a link to the page. It shows nothing of anybody to the page the link was on.
fn is_visit(request: &Request, api: bool) -> bool {
    !api && request.method() == Method::GET
        && text(request.headers(), "sec-fetch-mode") == Some("navigate")
}

fn forbidden(detail: &str) -> Problem {
    Problem::new(Code::ForbiddenOrigin, detail)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|v| v.to_str().unwrap_or("?"))
}

/// Whether a Host (`name[:port]`) means this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Request {
        let mut builder = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(Body::empty()).unwrap()
    }

    #[test]
    fn names_of_this_machine_are_told_from_others() {
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]:80",
            "[::1]",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "[::2]",
            "0.0.0.0",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn another_page_can_neither_read_nor_write() {
        let host = ("host", "127.0.0.1:8080");
        let refused = [
            request("GET", "/v1/sessions", &[("host", "evil.example")]),
            request(
                "GET",
                "/v1/sessions",
                &[host, ("origin", "http://evil.example")],
            ),
            request("GET", "/v1/sessions", &[host, ("origin", "null")]),
            request(
                "GET",
                "/v1/sessions",
                &[host, ("origin", "http://127.0.0.1:3000")],
            ),
            request(
                "GET",
                "/v1/chat/stream?query=x",
                &[
                    host,
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                ],
            ),
            request(
                "GET",
                "/v1/chat/stream?query=x",
                &[host, ("sec-fetch-site", "same-site")],
            ),
            request(
                "GET",
                "/assets/app.js",
                &[
                    host,
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "no-cors"),
                ],
            ),
            request(
                "POST",
                "/v1/sessions",
                &[host, ("content-type", "text/plain")],
            ),
            request("POST", "/v1/turns/x/cancel", &[host]),
        ];
        for request in refused {
            assert!(check(&request, &Origins::default()).is_err(), "{request:?}");
        }
    }

    #[test]
    fn its_own_page_and_programs_can() {
        let host = ("host", "127.0.0.1:8080");
        let accepted = [
            request("GET", "/v1/sessions", &[host]),
            request(
                "GET",
                "/",
                &[
                    host,
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                ],
            ),
            request(
                "GET",
                "/v1/sessions",
                &[
                    host,
                    ("origin", "http://127.0.0.1:8080"),
                    ("sec-fetch-site", "same-origin"),
                ],
            ),
            request(
                "POST",
                "/v1/sessions",
                &[host, ("content-type", "application/json; charset=utf-8")],
            ),
            request("DELETE", "/v1/sessions/x", &[host]),
            request("TRACE", "/v1/sessions/x", &[host]),
            request("PUT", "/v1/sessions/x", &[host]),
        ];
        for request in accepted {
            assert!(check(&request, &Origins::default()).is_ok(), "{request:?}");
        }
    }

    #[test]
    fn a_listed_page_is_let_through_as_far_as_its_own_are() {
        let listed: Origins = ["http://localhost:3000".to_owned()].into_iter().collect();
        let (host, page) = (
            ("host", "127.0.0.1:8080"),
            ("origin", "http://localhost:3000"),
        );
        let json = ("content-type", "application/json");
        let site = |site| ("sec-fetch-site", site);
        for headers in [
            vec![host, page, json],
            vec![host, page, json, site("cross-site")],
            vec![host, page, json, site("same-site")],
        ] {
            let request = request("POST", "/v1/sessions", &headers);
            assert!(check(&request, &listed).is_ok(), "{request:?}");
            assert!(check(&request, &Origins::default()).is_err());
        }
        for headers in [
            vec![("host", "evil.example"), page, json],
            vec![host, page],
            vec![host, ("origin", "http://localhost:3001"), json],
            vec![host, ("origin", "https://localhost:3000"), json],
            vec![host, ("origin", "http://localhost:3000.evil.example"), json],
            vec![host, json, site("cross-site")],
        ] {
            let request = request("POST", "/v1/sessions", &headers);
            assert!(check(&request, &listed).is_err(), "{request:?}");
        }
    }

    #[test]
    fn every_method_that_takes_a_body_is_looked_at() {
        let document = crate::openapi::document().unwrap();
        for methods in document["paths"].as_object().unwrap().values() {
            for (method, operation) in methods.as_object().unwrap() {
                let takes_body = operation["requestBody"].is_object();
                assert_eq!(takes_body, ["post", "patch"].contains(&method.as_str()));
            }
        }
    }
}
