//! `GET /v1/sessions`.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tidemark_application::ports::store::Cursor;
use utoipa::{IntoParams, ToSchema};
use validator::Validate;

use super::view::SessionView;
use crate::app::App;
use crate::extract::{Params, Reader, no_nul};
use crate::pagination::{DEFAULT_LIMIT, List};
use crate::problem::{Problem, ProblemDocument};

/// Which sessions.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListSessionsParams {
    /// Only those whose title holds this text.
    #[validate(
        length(max = 200, message = "must be at most 200 characters"),
        custom(function = "no_nul")
    )]
    #[param(min_length = 1, max_length = 200)]
    pub text: Option<String>,
    /// The most items, 1–100; 20 when not said.
    #[validate(range(min = 1, max = 100, message = "must be 1 to 100"))]
    #[param(minimum = 1, maximum = 100, default = 20)]
    pub limit: Option<u32>,
    /// Goes on behind the page that gave it.
    #[param(min_length = 1)]
    pub cursor: Option<String>,
}

/// A part of the list of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionPage {
    /// The sessions, the last used first.
    pub items: Vec<SessionView>,
    /// For the next part; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// List sessions
///
/// The last used first.
#[utoipa::path(
    get,
    path = "/v1/sessions",
    operation_id = "list_sessions",
    tag = "sessions",
    params(ListSessionsParams),
    responses(
        (status = 200, description = "A part of the list", body = SessionPage),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn list_sessions(
    State(app): State<App>,
    reader: Reader,
    list: List,
    Params(params): Params<ListSessionsParams>,
) -> Result<Json<SessionPage>, Problem> {
    let after = params
        .cursor
        .as_deref()
        .map(|cursor| list.decode(cursor))
        .transpose()?;
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    let text = params.text.as_deref().filter(|t| !t.is_empty());
    let page = app
        .store
        .list_sessions(reader.owner, text, after, limit)
        .await?;
    let next_cursor = page.items.last().filter(|_| page.more).map(|last| {
        let place = Cursor {
            at: last.updated_at,
            id: last.id.0,
        };
        list.encode(&place)
    });
    Ok(Json(SessionPage {
        items: page.items.into_iter().map(Into::into).collect(),
        next_cursor,
    }))
}
