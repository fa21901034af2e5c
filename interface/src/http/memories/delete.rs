//! `DELETE /v1/memories/{id}`.

use axum::extract::State;
use axum::http::StatusCode;
use tidemark_application::memory::forget::Forgotten;
use tidemark_domain::ids::MemoryId;
use uuid::Uuid;

use crate::app::App;
use crate::extract::{Caller, IdPath, IfMatch, NoBody};
use crate::problem::{Code, Problem, ProblemDocument};

/// Forget a memory
///
/// With it goes what says the same from the same messages in another layer. It is never learned again from the same messages.
#[utoipa::path(
    delete,
    path = "/v1/memories/{id}",
    operation_id = "delete_memory",
    tag = "memories",
    params(
        ("id" = Uuid, Path, description = "The memory"),
        ("If-Match" = Option<String>, Header, description = "Only if the entity tag is still this"),
    ),
    responses(
        (status = 204, description = "It is forgotten"),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn delete_memory(
    State(app): State<App>,
    caller: Caller,
    IdPath(id): IdPath<Uuid>,
    IfMatch(expected): IfMatch,
    _: NoBody,
) -> Result<StatusCode, Problem> {
    match app.forget.run(caller.owner, MemoryId(id), expected).await? {
        Forgotten::Done => Ok(StatusCode::NO_CONTENT),
        Forgotten::NotFound => Err(Problem::not_found("memory")),
        Forgotten::Stale => Err(Problem::new(
            Code::StaleVersion,
            "the memory has changed since",
        )),
    }
}
