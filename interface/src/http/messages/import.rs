//! `POST /v1/sessions/{id}/messages`: the past, told by a caller.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidemark_application::sessions::import::PastMessage as Past;
use tidemark_domain::ids::SessionId;
use tidemark_domain::session::Role;
use utoipa::ToSchema;
use uuid::Uuid;
use validator::Validate;

use super::view::MessageView;
use crate::app::App;
use crate::extract::{Caller, IdPath, IdempotencyKey, JsonBody, no_nul};
use crate::http::turns::create::{MAX_MESSAGE, not_blank};
use crate::problem::{Problem, ProblemDocument};
use crate::times::{calendar_time, microseconds};

/// The longest list.
const MAX_MESSAGES: usize = 1_000;

/// Who spoke.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PastRole {
    /// Instructions of the caller.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// A message of the past.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PastMessage {
    /// Who spoke.
    pub role: PastRole,
    /// What was said, 1–100,000 characters.
    #[validate(
        length(
            min = 1,
            max = "MAX_MESSAGE",
            message = "must be 1 to 100000 characters"
        ),
        custom(function = "not_blank"),
        custom(function = "no_nul")
    )]
    #[schema(
        min_length = 1,
        max_length = 100_000,
        examples("We moved the launch to May.")
    )]
    pub content: String,
    /// The speaker's name, 1–128 characters.
    #[validate(
        length(min = 1, max = 128, message = "must be 1 to 128 characters"),
        custom(function = "no_nul")
    )]
    #[schema(min_length = 1, max_length = 128)]
    pub name: Option<String>,
    /// When it was said; years 1–9999.
    #[validate(custom(function = "calendar_time"))]
    pub created_at: DateTime<Utc>,
}

/// Messages of the past, in their order.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportMessages {
    /// 1–1,000 messages.
    #[validate(nested)]
    #[schema(min_items = 1, max_items = 1000)]
    pub messages: Vec<PastMessage>,
}

/// The messages as they were stored.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportedMessages {
    /// In the order of the request.
    pub items: Vec<MessageView>,
}

/// Import past messages
///
/// They are appended in their order and indexed without the importance gate.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/messages",
    operation_id = "import_messages",
    tag = "messages",
    params(
        ("id" = Uuid, Path, description = "The session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request repeatable for 24 hours", pattern = "^[!-~]{1,255}$"),
    ),
    request_body = ImportMessages,
    responses(
        (status = 201, description = "The messages", body = ImportedMessages),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn import_messages(
    State(app): State<App>,
    caller: Caller,
    IdPath(id): IdPath<Uuid>,
    key: IdempotencyKey,
    body: JsonBody<ImportMessages>,
) -> Result<(StatusCode, Json<ImportedMessages>), Problem> {
    let id = SessionId(id);
    let JsonBody {
        value: import,
        hash,
    } = body;
    if !(1..=MAX_MESSAGES).contains(&import.messages.len()) {
        return Err(Problem::unacceptable(
            "messages",
            "must be 1 to 1000 messages",
        ));
    }
    let messages = import
        .messages
        .into_iter()
        .map(|m| Past {
            role: match m.role {
                PastRole::System => Role::System,
                PastRole::User => Role::User,
                PastRole::Assistant => Role::Assistant,
            },
            content: m.content,
            name: m.name,
            created_at: microseconds(m.created_at),
        })
        .collect();
    let created = app
        .import
        .run(caller.owner, id, messages, key.with_body(hash))
        .await?;
    let items = created.value.into_iter().map(Into::into).collect();
    Ok((StatusCode::CREATED, Json(ImportedMessages { items })))
}
