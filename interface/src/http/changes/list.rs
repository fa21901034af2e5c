//! `GET /v1/changes`.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tidemark_application::ports::store::Cursor;
use tidemark_domain::ids::SessionId;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;
use validator::Validate;

use super::view::ChangeView;
use crate::app::App;
use crate::extract::{Params, Reader};
use crate::pagination::{DEFAULT_LIMIT, List};
use crate::problem::{Problem, ProblemDocument};

/// Which changes.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListChangesParams {
    /// Only those that came from, or were made for, this session.
    pub session_id: Option<Uuid>,
    /// The most items, 1–100; 20 when not said.
    #[validate(range(min = 1, max = 100, message = "must be 1 to 100"))]
    #[param(minimum = 1, maximum = 100, default = 20)]
    pub limit: Option<u32>,
    /// Goes on behind the page that gave it.
    #[param(min_length = 1)]
    pub cursor: Option<String>,
}

/// A part of the list of changes.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangePage {
    /// The changes, the newest first.
    pub items: Vec<ChangeView>,
    /// For the next part; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// List changes
///
/// Every consolidation, import, edit and reversal, what was given and forgotten, and what was said that took the place of something: the newest
/// first. What was learned verbatim and changed nothing else is no change of its own.
#[utoipa::path(
    get,
    path = "/v1/changes",
    operation_id = "list_changes",
    tag = "changes",
    params(ListChangesParams),
    responses(
        (status = 200, description = "A part of the list", body = ChangePage),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn list_changes(
    State(app): State<App>,
    reader: Reader,
    list: List,
    Params(params): Params<ListChangesParams>,
) -> Result<Json<ChangePage>, Problem> {
    let after = params
        .cursor
        .as_deref()
        .map(|cursor| list.decode(cursor))
        .transpose()?;
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    let session = params.session_id.map(SessionId);
    let page = app
        .store
        .list_changes(reader.owner, session, after, limit)
        .await?;
    let next_cursor = page.items.last().filter(|_| page.more).map(|last| {
        let place = Cursor {
            at: last.created_at,
            id: last.id.0,
        };
        list.encode(&place)
    });
    Ok(Json(ChangePage {
        items: page.items.into_iter().map(Into::into).collect(),
        next_cursor,
    }))
}
