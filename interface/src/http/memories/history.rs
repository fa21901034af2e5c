//! `GET /v1/memories/{id}/history`.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::Serialize;
use tidemark_application::memory::history::{History, Version, history};
use tidemark_domain::ids::{MemoryId, Timestamp};
use utoipa::ToSchema;
use uuid::Uuid;

use super::view::MemoryView;
use crate::app::App;
use crate::extract::{IdPath, Reader};
use crate::http::changes::view::{ChangeKindView, OpView};
use crate::http::messages::view::MessageView;
use crate::problem::{Problem, ProblemDocument};

/// What made a version.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MemoryVersionChange)]
pub struct MadeView {
    /// The change.
    pub id: Uuid,
    /// Its kind.
    pub kind: ChangeKindView,
    /// What it did to the memory.
    pub op: OpView,
    /// When.
    pub at: DateTime<Utc>,
}

/// One version of a memory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MemoryVersion)]
pub struct VersionView {
    /// The memory as it was, with the confidence it got then; its uses and sources as they are, where no change is known to have touched them.
    pub memory: MemoryView,
    /// What made it so; absent for what indexing alone has made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<MadeView>,
}

impl VersionView {
    /// An earlier version as it was, or the present one as it is at a time.
    fn of(version: Version, now: Option<Timestamp>) -> Self {
        Self {
            memory: match now {
                Some(now) => MemoryView::at(version.memory, now),
                None => MemoryView::stored(version.memory),
            },
            change: version.made.map(|made| MadeView {
                id: made.change.0,
                kind: made.kind.into(),
                op: made.op.into(),
                at: made.at,
            }),
        }
    }
}

/// The history of a memory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MemoryHistory)]
pub struct HistoryView {
    /// The versions, the newest first: the memory as it is.
    pub versions: Vec<VersionView>,
    /// What took its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<MemoryView>,
    /// What it took the place of, the newest first.
    pub supersedes: Vec<MemoryView>,
    /// The messages behind it that are still there, the oldest first; of very many some of the newest.
    pub messages: Vec<MessageView>,
}

impl HistoryView {
    /// With what took its place, and what it took the place of, as they are at a time.
    fn at(history: History, now: Timestamp) -> Self {
        let view = |memory| MemoryView::at(memory, now);
        Self {
            versions: (history.versions.into_iter().enumerate())
                .map(|(age, version)| VersionView::of(version, (age == 0).then_some(now)))
                .collect(),
            superseded_by: history.superseded_by.map(view),
            supersedes: history.supersedes.into_iter().map(view).collect(),
            messages: history.messages.into_iter().map(Into::into).collect(),
        }
    }
}

/// The history of a memory
///
/// Its versions, what superseded what, and the messages behind it.
#[utoipa::path(
    get,
    path = "/v1/memories/{id}/history",
    operation_id = "get_memory_history",
    tag = "memories",
    params(("id" = Uuid, Path, description = "The memory")),
    responses(
        (status = 200, description = "Its history", body = HistoryView),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn get_memory_history(
    State(app): State<App>,
    reader: Reader,
    IdPath(id): IdPath<Uuid>,
) -> Result<Json<HistoryView>, Problem> {
    let found = history(app.store.as_ref(), reader.owner, MemoryId(id)).await?;
    found
        .map(|history| Json(HistoryView::at(history, app.clock.now())))
        .ok_or_else(|| Problem::not_found("memory"))
}
