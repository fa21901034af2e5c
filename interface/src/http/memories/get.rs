//! `GET /v1/memories/{id}`.

use axum::extract::State;
use tidemark_domain::ids::MemoryId;
use uuid::Uuid;

use super::view::{MemoryView, Tagged};
use crate::app::App;
use crate::extract::{IdPath, Reader};
use crate::problem::{Problem, ProblemDocument};

/// A memory
///
/// As it is now, in whatever state.
#[utoipa::path(
    get,
    path = "/v1/memories/{id}",
    operation_id = "get_memory",
    tag = "memories",
    params(("id" = Uuid, Path, description = "The memory")),
    responses(
        (status = 200, description = "The memory", body = MemoryView, headers(("ETag" = String, description = "For `If-Match`"))),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn get_memory(
    State(app): State<App>,
    reader: Reader,
    IdPath(id): IdPath<Uuid>,
) -> Result<Tagged, Problem> {
    let found = app
        .store
        .memories(reader.owner, &[MemoryId(id)])
        .await?
        .pop();
    found
        .map(|memory| Tagged(memory, app.clock.now()))
        .ok_or_else(|| Problem::not_found("memory"))
}
