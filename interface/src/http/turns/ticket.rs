//! `POST /v1/turns/{id}/ticket`.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tidemark_domain::ids::TurnId;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::auth::{Identity, ticket};
use crate::extract::{IdPath, NoBody, NoFields, Reader};
use crate::problem::{Problem, ProblemDocument};

/// A ticket for the events of a turn.
#[derive(Debug, Serialize, ToSchema)]
pub struct Ticket {
    /// The ticket, for the parameter `ticket` of the turn's events.
    #[schema(examples("tmt_AZLwwStefDqdHk9aa3yNng"))]
    pub ticket: String,
    /// Where the events are, with the ticket.
    #[schema(examples(
        "/v1/turns/0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d9e/events?ticket=tmt_AZLwwStefDqdHk9aa3yNng"
    ))]
    pub events_url: String,
}

/// Get a ticket for a turn's events
///
/// For an `EventSource`, which can send neither a key nor the name of a user. The ticket is good for the events of this turn alone, again and again for
/// reconnects: two minutes, and as long as the turn is open, and until two minutes after its end; never longer than the key it was got with. A token of an
/// identity provider that it was got with may expire meanwhile.
#[utoipa::path(
    post,
    path = "/v1/turns/{id}/ticket",
    operation_id = "create_ticket",
    tag = "turns",
    params(("id" = Uuid, Path, description = "The turn")),
    request_body = NoFields,
    responses(
        (status = 200, description = "The ticket", body = Ticket),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn create_ticket(
    State(app): State<App>,
    identity: Identity,
    reader: Reader,
    IdPath(id): IdPath<Uuid>,
    _: NoBody,
) -> Result<Json<Ticket>, Problem> {
    let turn = TurnId(id);
    let found = app.store.turn(reader.owner, turn).await?;
    found.ok_or_else(|| Problem::not_found("turn"))?;
    let ticket = ticket::issue(&app, &identity, turn).await?;
    Ok(Json(Ticket {
        events_url: ticket::events_url(turn, &ticket),
        ticket,
    }))
}
