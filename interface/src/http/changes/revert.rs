//! `POST /v1/changes/{id}/revert`.

use axum::Json;
use axum::extract::State;
use tidemark_application::memory::revert::Reverted;
use tidemark_domain::ids::ChangeId;
use uuid::Uuid;

use super::view::ChangeView;
use crate::app::App;
use crate::extract::{Caller, IdPath, NoBody, NoFields};
use crate::problem::{Code, Problem, ProblemDocument};

/// How many memories a refusal names.
const NAMED: usize = 10;

/// Revert a change
///
/// As a whole or not at all: what it made is removed and never learned again from the same messages, what it changed gets its values back, and what it
/// had ended holds again unless something newer does. To revert twice is to revert once.
#[utoipa::path(
    post,
    path = "/v1/changes/{id}/revert",
    operation_id = "revert_change",
    tag = "changes",
    params(("id" = Uuid, Path, description = "The change")),
    request_body = NoFields,
    responses(
        (status = 200, description = "The change that undid it, now or before", body = ChangeView),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn revert_change(
    State(app): State<App>,
    caller: Caller,
    IdPath(id): IdPath<Uuid>,
    _: NoBody,
) -> Result<Json<ChangeView>, Problem> {
    match app.revert.run(caller.owner, ChangeId(id)).await? {
        Reverted::Done(change) => {
            app.work.notify_one();
            Ok(Json((*change).into()))
        }
        Reverted::NotFound => Err(Problem::not_found("change")),
        Reverted::Impossible(kind) => Err(Problem::new(
            Code::NotRevertible,
            format!("a change of the kind `{}` cannot be undone", kind.as_str()),
        )),
        Reverted::Edited(memories) => {
            let named: Vec<String> = memories
                .iter()
                .take(NAMED)
                .map(ToString::to_string)
                .collect();
            Err(Problem::new(
                Code::ChangedSince,
                format!(
                    "what it touched has been changed since; revert that first: {}",
                    named.join(", ")
                ),
            ))
        }
        Reverted::Busy => Err(Problem::new(
            Code::ChangedSince,
            "others keep changing the same memories; try again",
        )),
    }
}
