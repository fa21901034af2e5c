//! The chat page and the reference page: embedded, without a build step and without outside scripts.

mod assets;
mod docs;

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::set_header::SetResponseHeaderLayer;

use self::assets::Asset;
use crate::app::App;
use crate::problem::Problem;

/// What the pages may load: what this server serves. Nobody may frame them.
const POLICY: &str =
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// `/`, `/assets/*` and `/docs`.
pub fn router() -> Router<App> {
    let set = |name: HeaderName, value: &'static str| {
        SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value))
    };
    Router::new()
        .route(
            "/",
            get(|headers: HeaderMap| async move { serve(Some(&assets::INDEX), &headers) }),
        )
        .route("/assets/{name}", get(asset))
        .route("/docs", get(reference))
        .layer(set(header::CONTENT_SECURITY_POLICY, POLICY))
        .layer(set(header::REFERRER_POLICY, "no-referrer"))
        .layer(set(header::CACHE_CONTROL, "no-cache"))
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    serve(assets::find(&name), &headers)
}

async fn reference(headers: HeaderMap) -> Response {
    static PAGE: LazyLock<Asset> =
        LazyLock::new(|| Asset::new("docs.html", docs::page().into_bytes()));
    serve(Some(&PAGE), &headers)
}

/// The asset, or 304 to who has it already.
fn serve(asset: Option<&Asset>, headers: &HeaderMap) -> Response {
    let Some(asset) = asset else {
        return Problem::not_found("file").into_response();
    };
    let tags = [(header::ETAG, asset.tag.clone())];
    if has(headers, &asset.tag) {
        return (StatusCode::NOT_MODIFIED, tags).into_response();
    }
    let kind = [(header::CONTENT_TYPE, asset.content_type)];
    (tags, kind, asset.bytes.clone()).into_response()
}

/// Whether `If-None-Match` names the tag. A proxy may have made it a weak one.
fn has(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|given| {
            given == "*" || given.strip_prefix("W/").unwrap_or(given).as_bytes() == tag.as_bytes()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(name: &str, if_none_match: Option<&str>) -> StatusCode {
        let mut headers = HeaderMap::new();
        if let Some(tags) = if_none_match {
            headers.insert(header::IF_NONE_MATCH, tags.parse().unwrap());
        }
        serve(assets::find(name), &headers).status()
    }

    #[test]
    fn who_has_a_file_already_is_not_sent_it_again() {
        let tag = assets::find("app.js")
            .unwrap()
            .tag
            .to_str()
            .unwrap()
            .to_owned();
        assert_eq!(status("app.js", None), StatusCode::OK);
        assert_eq!(status("app.js", Some("\"other\"")), StatusCode::OK);
        for tags in [
            tag.clone(),
            format!("W/{tag}"),
            format!("\"other\", {tag}"),
            "*".to_owned(),
        ] {
            assert_eq!(
                status("app.js", Some(&tags)),
                StatusCode::NOT_MODIFIED,
                "{tags}"
            );
        }
        assert_eq!(status("nothing.js", Some("*")), StatusCode::NOT_FOUND);
    }
}
