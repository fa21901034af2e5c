//! The id of a request: echoed when the caller gives one, made otherwise; on the response, in problems and in the log.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

use crate::app::App;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

tokio::task_local! {
    static CURRENT: String;
}

/// The id of the request that this task serves; empty outside of one.
pub fn current() -> String {
    CURRENT.try_with(Clone::clone).unwrap_or_default()
}

/// Gives each request its id and its span.
pub async fn assign(
    axum::extract::State(app): axum::extract::State<App>,
    request: Request,
    next: Next,
) -> Response {
    let given = request
        .headers()
        .get(HEADER)
        .and_then(|v| v.to_str().ok())
        .filter(|v| (1..=128).contains(&v.len()) && v.bytes().all(|b| b.is_ascii_graphic()))
        .map(ToOwned::to_owned);
    let id = given.unwrap_or_else(|| app.ids.uuid().to_string());
    let span = tracing::info_span!(
        "request",
        method = %request.method(),
        // The path alone: a query may hold what a person said.
        path = request.uri().path(),
        request_id = id,
        status = tracing::field::Empty,
    );
    let parent = request.headers().get("traceparent");
    if let Some(parent) = parent.and_then(|value| value.to_str().ok()) {
        app.traces.adopt(&span, parent);
    }
    let value = HeaderValue::from_str(&id);
    let mut response = CURRENT
        .scope(id, next.run(request))
        .instrument(span.clone())
        .await;
    span.record("status", response.status().as_u16());
    if let Ok(value) = value {
        response.headers_mut().insert(HEADER, value);
    }
    response
}
