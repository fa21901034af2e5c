//! `POST /v1/turns/{id}/cancel`.

use axum::Json;
use axum::extract::State;
use tidemark_domain::ids::TurnId;
use uuid::Uuid;

use super::view::TurnView;
use crate::app::App;
use crate::extract::{Caller, IdPath, NoBody, NoFields};
use crate::problem::{Problem, ProblemDocument};
use crate::to_the_end::to_the_end;

/// Cancel a turn
///
/// Idempotent. What was shown of the answer is stored and marked; nothing is learned from the turn. A running turn ends a moment
/// later: its events tell.
#[utoipa::path(
    post,
    path = "/v1/turns/{id}/cancel",
    operation_id = "cancel_turn",
    tag = "turns",
    params(("id" = Uuid, Path, description = "The turn")),
    request_body = NoFields,
    responses(
        (status = 200, description = "The turn, as it is now", body = TurnView),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn cancel_turn(
    State(app): State<App>,
    caller: Caller,
    IdPath(id): IdPath<Uuid>,
    _: NoBody,
) -> Result<Json<TurnView>, Problem> {
    let chat = app.chat.clone();
    let turn = to_the_end(async move { chat.cancel(caller.owner, TurnId(id)).await }).await??;
    let turn = turn.ok_or_else(|| Problem::not_found("turn"))?;
    Ok(Json(turn.into()))
}
