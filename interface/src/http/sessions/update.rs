//! `PATCH /v1/sessions/{id}`.

use axum::extract::State;
use serde::{Deserialize, Deserializer};
use tidemark_application::ports::sessions::{SessionChange, Updated};
use tidemark_domain::ids::SessionId;
use utoipa::ToSchema;
use uuid::Uuid;
use validator::Validate;

use super::view::{Label, MemoryModeView, SessionView, Tagged, few_labels};
use crate::app::App;
use crate::extract::{Caller, IdPath, IfMatch, JsonBody, no_nul};
use crate::problem::{Code, Problem, ProblemDocument};

/// What to change; what is absent stays.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionPatch {
    /// A new title, at most 200 characters; `null` removes it.
    #[serde(default, deserialize_with = "given")]
    #[validate(
        length(max = 200, message = "must be at most 200 characters"),
        custom(function = "no_nul")
    )]
    #[schema(value_type = Option<String>, max_length = 200)]
    pub title: Option<Option<String>>,
    /// New labels: at most 16 of 1–64 characters.
    #[validate(custom(function = "few_labels"))]
    #[schema(value_type = Option<Vec<Label>>, max_items = 16)]
    pub labels: Option<Vec<String>>,
    /// A new mode for turns that name none.
    pub memory: Option<MemoryModeView>,
}

/// Tells `null` from absence.
#[expect(
    clippy::option_option,
    reason = "absent, null and a text are three things here"
)]
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(deserializer).map(Some)
}

/// Change a session
///
/// What is absent stays. With `If-Match` only if nobody has changed it since.
#[utoipa::path(
    patch,
    path = "/v1/sessions/{id}",
    operation_id = "update_session",
    tag = "sessions",
    params(
        ("id" = Uuid, Path, description = "The session"),
        ("If-Match" = Option<String>, Header, description = "Only if the entity tag is still this"),
    ),
    request_body = SessionPatch,
    responses(
        (status = 200, description = "The session, changed", body = SessionView, headers(("ETag" = String, description = "For `If-Match`"))),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn update_session(
    State(app): State<App>,
    caller: Caller,
    IdPath(id): IdPath<Uuid>,
    IfMatch(expected): IfMatch,
    body: JsonBody<SessionPatch>,
) -> Result<Tagged, Problem> {
    let change = SessionChange {
        title: body.value.title,
        labels: body.value.labels,
        memory: body.value.memory.map(Into::into),
    };
    let updated = app
        .store
        .update_session(
            caller.owner,
            SessionId(id),
            expected,
            change,
            app.clock.now(),
        )
        .await?;
    match updated {
        Updated::Done(session) => Ok(Tagged(session)),
        Updated::NotFound => Err(Problem::not_found("session")),
        Updated::Stale => Err(Problem::new(
            Code::StaleVersion,
            "the session has changed since",
        )),
    }
}
