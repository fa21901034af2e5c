//! `GET /v1/memories`.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidemark_application::ports::memories::MemoryFilter;
use tidemark_application::ports::store::Cursor;
use tidemark_domain::ids::SessionId;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;
use validator::Validate;

use super::view::{KindView, LayerView, MemoryView, ScopeView, StateView};
use crate::app::App;
use crate::extract::{Params, Reader, no_nul};
use crate::pagination::{DEFAULT_LIMIT, List};
use crate::problem::{Problem, ProblemDocument};
use crate::times::calendar_time;

/// Which memories.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListMemoriesParams {
    /// Only of this scope.
    #[param(inline)]
    pub scope: Option<ScopeView>,
    /// Only of this kind.
    #[param(inline)]
    pub kind: Option<KindView>,
    /// Only learned in, or given for, this session.
    pub session: Option<Uuid>,
    /// Only in this state.
    #[param(inline)]
    pub state: Option<StateView>,
    /// Only of this layer.
    #[param(inline)]
    pub layer: Option<LayerView>,
    /// Only those that hold this text.
    #[validate(
        length(max = 200, message = "must be at most 200 characters"),
        custom(function = "no_nul")
    )]
    #[param(min_length = 1, max_length = 200)]
    pub text: Option<String>,
    /// Only stored at or after.
    #[validate(custom(function = "calendar_time"))]
    pub created_from: Option<DateTime<Utc>>,
    /// Only stored before.
    #[validate(custom(function = "calendar_time"))]
    pub created_to: Option<DateTime<Utc>>,
    /// Only of this key.
    #[validate(
        length(max = 200, message = "must be at most 200 characters"),
        custom(function = "no_nul")
    )]
    #[param(min_length = 1, max_length = 200)]
    pub key: Option<String>,
    /// Only those that held at that time, in whatever state they are now; what waits for confirmation never held.
    #[validate(custom(function = "calendar_time"))]
    pub as_of: Option<DateTime<Utc>>,
    /// The most items, 1–100; 20 when not said.
    #[validate(range(min = 1, max = 100, message = "must be 1 to 100"))]
    #[param(minimum = 1, maximum = 100, default = 20)]
    pub limit: Option<u32>,
    /// Goes on behind the page that gave it.
    #[param(min_length = 1)]
    pub cursor: Option<String>,
}

/// A part of the list of memories.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemoryPage {
    /// The memories, the newest first.
    pub items: Vec<MemoryView>,
    /// For the next part; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// List memories
///
/// The newest first.
#[utoipa::path(
    get,
    path = "/v1/memories",
    operation_id = "list_memories",
    tag = "memories",
    params(ListMemoriesParams),
    responses(
        (status = 200, description = "A part of the list", body = MemoryPage),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn list_memories(
    State(app): State<App>,
    reader: Reader,
    list: List,
    Params(params): Params<ListMemoriesParams>,
) -> Result<Json<MemoryPage>, Problem> {
    let after = params
        .cursor
        .as_deref()
        .map(|cursor| list.decode(cursor))
        .transpose()?;
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    let filter = MemoryFilter {
        scope: params.scope.map(Into::into),
        kind: params.kind.map(Into::into),
        layer: params.layer.map(Into::into),
        state: params.state.map(Into::into),
        session_id: params.session.map(SessionId),
        text: params.text.filter(|t| !t.is_empty()),
        created_from: params.created_from,
        created_to: params.created_to,
        key: params.key.filter(|key| !key.is_empty()),
        as_of: params.as_of,
    };
    let page = app
        .store
        .list_memories(reader.owner, &filter, after, limit)
        .await?;
    let next_cursor = page.items.last().filter(|_| page.more).map(|last| {
        let place = Cursor {
            at: last.created_at,
            id: last.id.0,
        };
        list.encode(&place)
    });
    let now = app.clock.now();
    let items = page.items.into_iter();
    Ok(Json(MemoryPage {
        items: items.map(|memory| MemoryView::at(memory, now)).collect(),
        next_cursor,
    }))
}
