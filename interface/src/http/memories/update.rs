//! `PATCH /v1/memories/{id}`.

use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer};
use tidemark_application::memory::edit::Edited;
use tidemark_domain::ids::MemoryId;
use tidemark_domain::memory::change::{Revision, Setting, Standing};
use utoipa::ToSchema;
use uuid::Uuid;
use validator::Validate;

use super::view::{KindView, MemoryView, ScopeView, Tagged};
use crate::app::App;
use crate::extract::{Caller, IdPath, IfMatch, JsonBody, no_nul};
use crate::http::turns::create::not_blank;
use crate::lenient::whole;
use crate::problem::{Code, Problem, ProblemDocument};
use crate::times::{calendar_time, microseconds};

/// What a person can make of a memory's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = MemoryStanding)]
pub enum StandingView {
    /// Told: one that waited is confirmed, one that faded is brought back.
    Current,
    /// Kept, and told on request alone. Not of one that waits for confirmation.
    Archived,
}

impl From<StandingView> for Standing {
    fn from(view: StandingView) -> Self {
        match view {
            StandingView::Current => Self::Current,
            StandingView::Archived => Self::Archived,
        }
    }
}

/// What to change; what is absent stays.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryPatch {
    /// What it says, 1–4,000 characters.
    #[validate(
        length(min = 1, max = 4000, message = "must be 1 to 4000 characters"),
        custom(function = "not_blank"),
        custom(function = "no_nul")
    )]
    #[schema(
        min_length = 1,
        max_length = 4000,
        examples("The project's budget is 500k")
    )]
    pub content: Option<String>,
    /// Where it applies.
    pub scope: Option<ScopeView>,
    /// What it is.
    pub kind: Option<KindView>,
    /// 1–5.
    #[validate(range(min = 1, max = 5, message = "must be 1 to 5"))]
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 5)]
    pub importance: Option<u8>,
    /// Whether it never fades.
    pub pinned: Option<bool>,
    /// What it speaks of, 1–200 characters; `null` when it is to speak of nothing in particular. A key that was read from the content follows the
    /// content unless it is given here.
    #[serde(default, deserialize_with = "given")]
    #[validate(
        length(min = 1, max = 200, message = "must be 1 to 200 characters"),
        custom(function = "no_nul")
    )]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 200)]
    pub key: Option<Option<String>>,
    /// When it is to be deleted; `null` when never.
    #[serde(default, deserialize_with = "given")]
    #[validate(custom(function = "calendar_time"))]
    #[schema(value_type = Option<DateTime<Utc>>)]
    pub expires_at: Option<Option<DateTime<Utc>>>,
    /// Whether it is told.
    pub state: Option<StandingView>,
}

/// Tells `null` from absence.
#[expect(
    clippy::option_option,
    reason = "absent, null and a value are three things here"
)]
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

fn setting<T>(value: Option<T>) -> Setting<T> {
    value.map_or(Setting::Nothing, Setting::To)
}

impl From<MemoryPatch> for Revision {
    fn from(patch: MemoryPatch) -> Self {
        Self {
            content: patch.content,
            scope: patch.scope.map(Into::into),
            kind: patch.kind.map(Into::into),
            importance: patch.importance,
            pinned: patch.pinned,
            key: patch.key.map(setting),
            expires_at: patch.expires_at.map(|at| setting(at.map(microseconds))),
            state: patch.state.map(Into::into),
        }
    }
}

/// Change a memory
///
/// Makes a new version; the earlier ones are in its history, and the change can be reverted. With another content, what says the old one from the
/// same messages in another layer is told no longer, and these messages never teach it again. Taken off its key (`"key": null`), what it had ended stays ended; with another
/// key, what it had ended holds again. A content that looks like an instruction to the model is kept `quarantined` until `"state": "current"` confirms it, which may come with
/// it; what is confirmed holds from then on, as if it had been said then.
#[utoipa::path(
    patch,
    path = "/v1/memories/{id}",
    operation_id = "update_memory",
    tag = "memories",
    params(
        ("id" = Uuid, Path, description = "The memory"),
        ("If-Match" = Option<String>, Header, description = "Only if the entity tag is still this"),
    ),
    request_body = MemoryPatch,
    responses(
        (status = 200, description = "The memory, changed", body = MemoryView, headers(("ETag" = String, description = "For `If-Match`"))),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn update_memory(
    State(app): State<App>,
    caller: Caller,
    IdPath(id): IdPath<Uuid>,
    IfMatch(expected): IfMatch,
    body: JsonBody<MemoryPatch>,
) -> Result<Tagged, Problem> {
    let revision = Revision::from(body.value);
    if let Some(Setting::To(at)) = &revision.expires_at
        && *at <= app.clock.now()
    {
        return Err(Problem::unacceptable(
            "expires_at",
            "must lie in the future",
        ));
    }
    let edited = app.edit.run(caller.owner, MemoryId(id), expected, revision);
    match edited.await? {
        Edited::Done(memory) => {
            app.work.notify_one();
            Ok(Tagged(*memory, app.clock.now()))
        }
        Edited::NotFound => Err(Problem::not_found("memory")),
        Edited::Stale => Err(Problem::new(
            Code::StaleVersion,
            "the memory has changed since",
        )),
        Edited::Quarantined => Err(Problem::unacceptable(
            "state",
            "it waits for confirmation; confirm it first, or forget it",
        )),
        Edited::Superseded => Err(Problem::unacceptable(
            "state",
            "another memory of its key took its place; revert that change, or say it anew",
        )),
    }
}
