//! `POST /v1/sessions`.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tidemark_application::ports::sessions::NewSession as Session;
use utoipa::ToSchema;
use validator::Validate;

use super::view::{Label, MemoryModeView, SessionView, Tagged, few_labels};
use crate::app::App;
use crate::extract::{Caller, IdempotencyKey, JsonBody, no_nul};
use crate::lenient::or_default;
use crate::problem::{Problem, ProblemDocument};

/// A session to be made.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// What its user calls it; at most 200 characters.
    #[validate(
        length(max = 200, message = "must be at most 200 characters"),
        custom(function = "no_nul")
    )]
    #[schema(max_length = 200, examples("Quarterly budget"))]
    pub title: Option<String>,
    /// Free labels: at most 16 of 1–64 characters.
    #[serde(default, deserialize_with = "or_default")]
    #[validate(custom(function = "few_labels"))]
    #[schema(value_type = Vec<Label>, max_items = 16)]
    pub labels: Vec<String>,
    /// The entry it comes through, 1–64 characters; `api` when not said.
    #[validate(
        length(min = 1, max = 64, message = "must be 1 to 64 characters"),
        custom(function = "no_nul")
    )]
    #[schema(min_length = 1, max_length = 64)]
    pub channel: Option<String>,
    /// The mode of turns that name none; `on` when not said.
    pub memory: Option<MemoryModeView>,
}

/// Make a session
///
/// It is empty until something is said in it or imported.
#[utoipa::path(
    post,
    path = "/v1/sessions",
    operation_id = "create_session",
    tag = "sessions",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes the request repeatable for 24 hours", pattern = "^[!-~]{1,255}$")),
    request_body = NewSession,
    responses(
        (
            status = 201, description = "The session", body = SessionView,
            headers(("ETag" = String, description = "For `If-Match`"), ("Location" = String, description = "Where the session is"))
        ),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn create_session(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    body: JsonBody<NewSession>,
) -> Result<Response, Problem> {
    let JsonBody { value: new, hash } = body;
    let created = app
        .store
        .create_session(
            caller.owner,
            Session {
                id: app.ids.session(),
                title: new.title,
                labels: new.labels,
                channel: new.channel.unwrap_or_else(|| "api".to_owned()),
                memory: new.memory.map(Into::into).unwrap_or_default(),
                now: app.clock.now(),
            },
            key.with_body(hash),
        )
        .await?;
    let location = format!("/v1/sessions/{}", created.value.id);
    let mut response = (StatusCode::CREATED, Tagged(created.value)).into_response();
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}
