//! The chat page and the reference page: embedded, without a build step and without outside scripts.

mod assets;
mod docs;

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::set_header::SetResponseHeaderLayer;

use self::assets::Asset;
use crate::app::App;
use crate::hardening::PAGE_POLICY;
use crate::problem::Problem;

/// `/`, `/assets/*` and `/docs`.
pub fn router() -> Router<App> {
    let pages = Router::new()
        .route(
            "/",
            get(|headers: HeaderMap| async move { serve(Some(&assets::INDEX), &headers) }),
        )
        .route("/docs", get(reference))
        .layer(SetResponseHeaderLayer::overriding(
            header::CONTENT_SECURITY_POLICY,
            PAGE_POLICY,
        ));
    Router::new()
        .route("/assets/{name}", get(asset))
        .merge(pages)
        .layer(SetResponseHeaderLayer::overriding(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache"),
        ))
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
    let compressed = takes_gzip(headers).then(|| asset.compressed()).flatten();
    let chosen = compressed.unwrap_or(&asset.plain);
    let tags = [
        (header::ETAG, chosen.tag.clone()),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
    ];
    if has(headers, &chosen.tag) {
        return (StatusCode::NOT_MODIFIED, tags).into_response();
    }
    let kind = [(header::CONTENT_TYPE, asset.content_type)];
    let mut response = (tags, kind, chosen.bytes.clone()).into_response();
    if compressed.is_some() {
        let coding = HeaderValue::from_static("gzip");
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, coding);
    }
    response
}

/// Whether `Accept-Encoding` names gzip and does not refuse it (RFC 9110, 12.5.3). Whoever names nothing gets the file as it is.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(header::ACCEPT_ENCODING).iter();
    codings
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
            let weight = weight.trim().strip_prefix("q=").map(str::trim);
            let weight = weight.and_then(|q| q.parse::<f32>().ok());
            let refused = weight.is_some_and(|q| q <= 0.0);
            name.trim().eq_ignore_ascii_case("gzip") && !refused
        })
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
    use std::io::Read;

    use bytes::Bytes;
    use flate2::read::GzDecoder;
    use futures::FutureExt;

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
            .plain
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

    fn served(accepted: Option<&'static str>) -> (Option<String>, Bytes) {
        let mut headers = HeaderMap::new();
        if let Some(accepted) = accepted {
            let accepted = HeaderValue::from_static(accepted);
            headers.insert(header::ACCEPT_ENCODING, accepted);
        }
        let response = serve(assets::find("app.js"), &headers);
        assert_eq!(response.headers()[header::VARY], "accept-encoding");
        let coding = response.headers().get(header::CONTENT_ENCODING);
        let coding = coding.map(|value| value.to_str().unwrap().to_owned());
        let body = axum::body::to_bytes(response.into_body(), usize::MAX);
        let body = body.now_or_never().expect("the body is there").unwrap();
        (coding, body)
    }

    #[test]
    fn a_file_is_compressed_for_who_takes_that_and_plain_for_who_does_not() {
        let (_, plain) = served(None);
        for accepted in ["gzip", "br, GZIP;q=0.5", "deflate,gzip"] {
            let (coding, body) = served(Some(accepted));
            assert_eq!(coding.as_deref(), Some("gzip"), "{accepted}");
            let mut unpacked = Vec::new();
            GzDecoder::new(&*body).read_to_end(&mut unpacked).unwrap();
            assert!(body.len() < plain.len() && unpacked == plain);
        }
        for accepted in ["", "br", "gzip;q=0", "gzip; q=0.0"] {
            assert_eq!(served(Some(accepted)), (None, plain.clone()), "{accepted}");
        }
    }

    #[test]
    fn each_coding_of_a_file_has_a_tag_of_its_own() {
        let asset = assets::find("app.js").unwrap();
        let compressed = asset.compressed().unwrap();
        assert_ne!(compressed.tag, asset.plain.tag);
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(header::IF_NONE_MATCH, compressed.tag.clone());
        let again = serve(Some(asset), &headers);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        headers.insert(header::IF_NONE_MATCH, asset.plain.tag.clone());
        assert_eq!(serve(Some(asset), &headers).status(), StatusCode::OK);
    }
}
