//! `POST /v1/memories`: one, or a list.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidemark_application::memory::remember::GivenMemory;
use tidemark_domain::ids::SessionId;
use utoipa::ToSchema;
use uuid::Uuid;
use validator::Validate;

use super::view::{KindView, MemoryView, ScopeView, Tagged};
use crate::app::App;
use crate::extract::{Caller, IdempotencyKey, JsonBody, no_nul};
use crate::http::turns::create::not_blank;
use crate::lenient::whole;
use crate::problem::{Problem, ProblemDocument};
use crate::times::{calendar_time, microseconds};

/// The longest list.
const MAX_ITEMS: usize = 100;

/// A memory to be kept; or, with `items`, a list of such and nothing else.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMemories {
    /// What it says, 1–4,000 characters.
    #[validate(
        length(min = 1, max = 4000, message = "must be 1 to 4000 characters"),
        custom(function = "not_blank"),
        custom(function = "no_nul")
    )]
    #[schema(
        min_length = 1,
        max_length = 4000,
        examples("The project's budget is 400k")
    )]
    pub content: Option<String>,
    /// Where it applies; `project_context` when not said.
    pub scope: Option<ScopeView>,
    /// What it is; `fact` when not said.
    pub kind: Option<KindView>,
    /// 1–5; 3 when not said.
    #[validate(range(min = 1, max = 5, message = "must be 1 to 5"))]
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 5)]
    pub importance: Option<u8>,
    /// What it speaks of, 1–200 characters.
    #[validate(
        length(min = 1, max = 200, message = "must be 1 to 200 characters"),
        custom(function = "no_nul")
    )]
    #[schema(min_length = 1, max_length = 200)]
    pub key: Option<String>,
    /// The session it is given for.
    pub session_id: Option<Uuid>,
    /// Since when it holds; now when not said.
    #[validate(custom(function = "calendar_time"))]
    pub valid_from: Option<DateTime<Utc>>,
    /// When it is to be deleted.
    #[validate(custom(function = "calendar_time"))]
    pub expires_at: Option<DateTime<Utc>>,
    /// A list of 1–100 memories.
    #[validate(nested)]
    #[schema(min_items = 1, max_items = 100)]
    pub items: Option<Vec<NewMemory>>,
}

/// A memory to be kept.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMemory {
    /// What it says, 1–4,000 characters.
    #[validate(
        length(min = 1, max = 4000, message = "must be 1 to 4000 characters"),
        custom(function = "not_blank"),
        custom(function = "no_nul")
    )]
    #[schema(
        min_length = 1,
        max_length = 4000,
        examples("The project's budget is 400k")
    )]
    pub content: String,
    /// Where it applies; `project_context` when not said.
    pub scope: Option<ScopeView>,
    /// What it is; `fact` when not said.
    pub kind: Option<KindView>,
    /// 1–5; 3 when not said.
    #[validate(range(min = 1, max = 5, message = "must be 1 to 5"))]
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 5)]
    pub importance: Option<u8>,
    /// What it speaks of, 1–200 characters.
    #[validate(
        length(min = 1, max = 200, message = "must be 1 to 200 characters"),
        custom(function = "no_nul")
    )]
    #[schema(min_length = 1, max_length = 200)]
    pub key: Option<String>,
    /// The session it is given for.
    pub session_id: Option<Uuid>,
    /// Since when it holds; now when not said.
    #[validate(custom(function = "calendar_time"))]
    pub valid_from: Option<DateTime<Utc>>,
    /// When it is to be deleted.
    #[validate(custom(function = "calendar_time"))]
    pub expires_at: Option<DateTime<Utc>>,
}

impl From<NewMemory> for GivenMemory {
    fn from(new: NewMemory) -> Self {
        Self {
            content: new.content,
            scope: new.scope.map(Into::into),
            kind: new.kind.map(Into::into),
            importance: new.importance,
            key: new.key,
            session_id: new.session_id.map(SessionId),
            valid_from: new.valid_from.map(microseconds),
            expires_at: new.expires_at.map(microseconds),
        }
    }
}

/// The memories that were kept.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeptMemories {
    /// In the order of the request.
    pub items: Vec<MemoryView>,
}

/// What the answer looks like: as was asked.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Kept {
    /// For a list.
    List(KeptMemories),
    /// For one.
    One(Box<MemoryView>),
}

/// Remember something
///
/// Findable by the next request. What is remembered already is not kept twice: its present memory is returned.
#[utoipa::path(
    post,
    path = "/v1/memories",
    operation_id = "create_memories",
    tag = "memories",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes the request repeatable for 24 hours", pattern = "^[!-~]{1,255}$")),
    request_body = NewMemories,
    responses(
        (
            status = 201, description = "The memory, or the list", body = Kept,
            headers(
                ("ETag" = Option<String>, description = "Of one memory; for `If-Match`"),
                ("Location" = Option<String>, description = "Where the one memory is"),
            )
        ),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn create_memories(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    body: JsonBody<NewMemories>,
) -> Result<Response, Problem> {
    let JsonBody { value: new, hash } = body;
    let (given, listed) = given(new)?;
    check(&app, &caller, &given, listed).await?;
    let mut kept = app
        .remember
        .run(caller.owner, given, key.with_body(hash))
        .await?
        .value;
    let now = app.clock.now();
    if listed {
        let items = kept.into_iter().map(|memory| MemoryView::at(memory, now));
        let items = items.collect();
        return Ok((StatusCode::CREATED, Json(KeptMemories { items })).into_response());
    }
    let memory = kept.pop().ok_or_else(|| Problem::not_found("memory"))?;
    let location = format!("/v1/memories/{}", memory.id);
    let mut response = (StatusCode::CREATED, Tagged(memory, now)).into_response();
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// What is to be kept, and whether it came as a list.
fn given(new: NewMemories) -> Result<(Vec<GivenMemory>, bool), Problem> {
    let alone = new.scope.is_some()
        || new.kind.is_some()
        || new.importance.is_some()
        || new.key.is_some()
        || new.session_id.is_some()
        || new.valid_from.is_some()
        || new.expires_at.is_some();
    match (new.content, new.items) {
        (_, Some(items)) if !(1..=MAX_ITEMS).contains(&items.len()) => {
            Err(Problem::unacceptable("items", "must be 1 to 100 memories"))
        }
        (None, Some(items)) if !alone => Ok((items.into_iter().map(Into::into).collect(), true)),
        (_, Some(_)) => Err(Problem::unacceptable(
            "items",
            "goes alone, without the fields of a single memory",
        )),
        (None, None) => Err(Problem::unacceptable("content", "is required")),
        (Some(content), None) => {
            let one = NewMemory {
                content,
                scope: new.scope,
                kind: new.kind,
                importance: new.importance,
                key: new.key,
                session_id: new.session_id,
                valid_from: new.valid_from,
                expires_at: new.expires_at,
            };
            Ok((vec![one.into()], false))
        }
    }
}

/// A memory can only be given for a session of its own user, and not when it is over already.
async fn check(
    app: &App,
    caller: &Caller,
    given: &[GivenMemory],
    listed: bool,
) -> Result<(), Problem> {
    for (i, memory) in given.iter().enumerate() {
        let field = |name: &str| {
            if listed {
                format!("items[{i}].{name}")
            } else {
                name.to_owned()
            }
        };
        if memory.expires_at.is_some_and(|at| at <= app.clock.now()) {
            return Err(Problem::unacceptable(
                &field("expires_at"),
                "must lie in the future",
            ));
        }
        let Some(id) = memory.session_id else {
            continue;
        };
        if app.store.session(caller.owner, id).await?.is_none() {
            return Err(Problem::unacceptable(
                &field("session_id"),
                "there is no such session",
            ));
        }
    }
    Ok(())
}
