//! `GET /v1/sessions/{id}`.

use axum::extract::State;
use tidemark_domain::ids::SessionId;
use uuid::Uuid;

use super::view::{SessionView, Tagged};
use crate::app::App;
use crate::extract::{IdPath, Reader};
use crate::problem::{Problem, ProblemDocument};

/// A session
///
/// With how many messages it has, how far it was taken into memory, and the turn that is open in it.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}",
    operation_id = "get_session",
    tag = "sessions",
    params(("id" = Uuid, Path, description = "The session")),
    responses(
        (status = 200, description = "The session", body = SessionView, headers(("ETag" = String, description = "For `If-Match`"))),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn get_session(
    State(app): State<App>,
    reader: Reader,
    IdPath(id): IdPath<Uuid>,
) -> Result<Tagged, Problem> {
    let session = app.store.session(reader.owner, SessionId(id)).await?;
    session
        .map(Tagged)
        .ok_or_else(|| Problem::not_found("session"))
}
