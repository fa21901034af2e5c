//! `GET /v1/turns/{id}/events`.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use tidemark_domain::ids::TurnId;
use utoipa::IntoParams;
use uuid::Uuid;
use validator::Validate;

use super::event::Event;
use crate::app::App;
use crate::extract::{IdPath, Params, Reader};
use crate::problem::{Code, Problem, ProblemDocument};
use crate::sse::{self, Place};

/// Where to begin.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsParams {
    /// The number of the last event seen; `Last-Event-ID` wins over it.
    pub after: Option<u64>,
    /// Also tell the model's reasoning, as it comes.
    pub reasoning: Option<bool>,
    /// A ticket for this turn, in place of a key and a user's name.
    pub ticket: Option<String>,
}

/// Follow a turn
///
/// Server-sent events, from `Last-Event-ID`, else from behind `after`, else from the start. After the terminal event the answer is
/// 204 for as long as the turn exists.
#[utoipa::path(
    get,
    path = "/v1/turns/{id}/events",
    operation_id = "stream_turn_events",
    tag = "turns",
    params(
        ("id" = Uuid, Path, description = "The turn"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event seen, `<turn_id>:<seq>`; an empty one is none", pattern = "^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]{1,18})?$"),
        EventsParams,
    ),
    responses(
        (status = 200, description = "The events, each as the data of a server-sent event", body = Event, content_type = "text/event-stream"),
        (status = 204, description = "There is nothing more to come"),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn stream_turn_events(
    State(app): State<App>,
    reader: Reader,
    IdPath(id): IdPath<Uuid>,
    headers: HeaderMap,
    Params(params): Params<EventsParams>,
) -> Result<Response, Problem> {
    let turn = TurnId(id);
    let place = match sse::last_event_id(&headers)? {
        Some(last) if last.turn != turn => {
            return Err(
                Problem::new(Code::InvalidPosition, "the position is one of another turn")
                    .field("Last-Event-ID", "is one of another turn"),
            );
        }
        Some(last) => Place::behind(last),
        None => Place {
            turn,
            after: i64::try_from(params.after.unwrap_or(0)).unwrap_or(i64::MAX),
            said_in: "after",
        },
    };
    sse::stream(&app, reader.owner, place, params.reasoning.unwrap_or(false)).await
}
