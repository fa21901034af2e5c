//! Turns: one request and its answer.

pub mod cancel;
pub mod create;
pub mod event;
pub mod events;
pub mod get;
pub mod ticket;
pub mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The operations.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create::create_turn))
        .routes(routes!(get::get_turn))
        .routes(routes!(events::stream_turn_events))
        .routes(routes!(cancel::cancel_turn))
        .routes(routes!(ticket::create_ticket))
}

/// What a turn's own `problem` may say; the second half of `docs/errors.md`.
pub const PROBLEM_CODES: &str = "\n## Problems of a turn\n\n\
A turn that did not complete says why in `problem` of its `done` event and of `GET /v1/turns/{id}`.\n\n\
| code | when |\n|---|---|\n\
| `model_unavailable` | the model's server cannot be reached or says that it cannot serve |\n\
| `model_rate_limited` | the model's server refuses for load |\n\
| `model_refused` | the model's server refuses the request itself |\n\
| `model_timeout` | nothing came from the model for too long |\n\
| `model_truncated` | the model's answer ended without saying that it is whole |\n\
| `model_protocol` | the model's server does not keep to its protocol |\n\
| `model_error` | the model's server reported an error in the middle of its answer |\n\
| `empty_answer` | nothing is left of the answer after reasoning was removed |\n\
| `answer_too_long` | the answer is longer than an answer may be |\n\
| `too_many_tool_calls` | the model called more than 64 tools at once |\n\
| `too_many_tool_rounds` | the model called tools in every round |\n\
| `turn_timeout` | the turn took longer than a turn may take |\n\
| `store_unavailable` | the answer could not be stored |\n\
| `interrupted` | the server stopped before the answer was complete |\n";
