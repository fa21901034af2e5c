//! `GET /v1/sessions/{id}/messages`.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tidemark_domain::ids::SessionId;
use utoipa::ToSchema;
use uuid::Uuid;

use super::view::MessageView;
use crate::app::App;
use crate::extract::{IdPath, Params, Reader};
use crate::pagination::{DEFAULT_LIMIT, List, PageParams};
use crate::problem::{Problem, ProblemDocument};

/// A part of a session's history.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessagePage {
    /// The messages, in their order.
    pub items: Vec<MessageView>,
    /// For the next part; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Messages up to this number have been taken into semantic memory.
    pub last_consolidated: i64,
}

/// A session's history
///
/// In the order of its messages, tool calls and their results among them.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/messages",
    operation_id = "list_messages",
    tag = "messages",
    params(("id" = Uuid, Path, description = "The session"), PageParams),
    responses(
        (status = 200, description = "A part of the history", body = MessagePage),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn list_messages(
    State(app): State<App>,
    reader: Reader,
    list: List,
    IdPath(id): IdPath<Uuid>,
    Params(params): Params<PageParams>,
) -> Result<Json<MessagePage>, Problem> {
    let id = SessionId(id);
    let after = params
        .cursor
        .as_deref()
        .map(|cursor| list.decode_seq(cursor))
        .transpose()?;
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    let session = app.store.session(reader.owner, id).await?;
    let session = session.ok_or_else(|| Problem::not_found("session"))?;
    let page = app
        .store
        .messages(reader.owner, id, after.unwrap_or(0), limit)
        .await?
        .ok_or_else(|| Problem::not_found("session"))?;
    let next_cursor = page
        .items
        .last()
        .filter(|_| page.more)
        .map(|last| list.encode_seq(last.seq));
    Ok(Json(MessagePage {
        items: page.items.into_iter().map(Into::into).collect(),
        next_cursor,
        last_consolidated: session.last_consolidated,
    }))
}
