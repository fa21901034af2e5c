//! `DELETE /v1/sessions/{id}`.

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use tidemark_domain::ids::SessionId;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;
use validator::Validate;

use crate::app::App;
use crate::extract::{Caller, IdPath, NoBody, Params};
use crate::problem::{Problem, ProblemDocument};
use crate::to_the_end::to_the_end;

/// What becomes of what was learned from the session alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LearnedMemories {
    /// It goes too.
    #[default]
    Forget,
    /// It stays.
    Keep,
}

/// How to delete.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DeleteSessionParams {
    /// What becomes of what was learned from the session alone; `forget` when not said.
    #[param(inline)]
    pub memories: Option<LearnedMemories>,
}

/// Delete a session
///
/// A running turn is cancelled. The messages go, and what was learned from them alone; a memory with other sources loses only these.
#[utoipa::path(
    delete,
    path = "/v1/sessions/{id}",
    operation_id = "delete_session",
    tag = "sessions",
    params(("id" = Uuid, Path, description = "The session"), DeleteSessionParams),
    responses(
        (status = 204, description = "It is gone"),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn delete_session(
    State(app): State<App>,
    caller: Caller,
    IdPath(id): IdPath<Uuid>,
    Params(params): Params<DeleteSessionParams>,
    _: NoBody,
) -> Result<StatusCode, Problem> {
    let forget = params.memories.unwrap_or_default() == LearnedMemories::Forget;
    let (chat, owner) = (app.chat.clone(), caller.owner);
    let deleting = async move { chat.delete_session(owner, SessionId(id), forget).await };
    if to_the_end(deleting).await?? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::not_found("session"))
    }
}
