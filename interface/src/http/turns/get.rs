//! `GET /v1/turns/{id}`.

use axum::Json;
use axum::extract::State;
use tidemark_domain::ids::TurnId;
use uuid::Uuid;

use super::view::TurnView;
use crate::app::App;
use crate::extract::{IdPath, Reader};
use crate::problem::{Problem, ProblemDocument};

/// A turn
///
/// As it stands: what was asked, the stored answer, what it cost and which memories were shown to the model.
#[utoipa::path(
    get,
    path = "/v1/turns/{id}",
    operation_id = "get_turn",
    tag = "turns",
    params(("id" = Uuid, Path, description = "The turn")),
    responses(
        (status = 200, description = "The turn", body = TurnView),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn get_turn(
    State(app): State<App>,
    reader: Reader,
    IdPath(id): IdPath<Uuid>,
) -> Result<Json<TurnView>, Problem> {
    let turn = app.chat.turn(reader.owner, TurnId(id)).await?;
    let turn = turn.ok_or_else(|| Problem::not_found("turn"))?;
    Ok(Json(turn.into()))
}
