//! A memory as it is shown.

use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidemark_domain::ids::Timestamp;
use tidemark_domain::memory::injection::{self, Sign};
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, Source, State, forgetting};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::extract::entity_tag;

macro_rules! mirror {
    ($(#[$doc:meta])* $view:ident of $name:ident as $schema:ident { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        #[schema(as = $schema)]
        pub enum $view { $($(#[$vdoc])* $variant),+ }

        impl From<$name> for $view {
            fn from(value: $name) -> Self {
                match value { $($name::$variant => Self::$variant),+ }
            }
        }

        impl From<$view> for $name {
            fn from(value: $view) -> Self {
                match value { $($view::$variant => Self::$variant),+ }
            }
        }
    };
}

mirror!(
    /// Where a memory applies.
    ScopeView of Scope as MemoryScope {
        /// The person, in every session.
        UserProfile,
        /// What the conversations are about.
        ProjectContext,
        /// The state of a task in progress.
        TaskState,
    }
);
mirror!(
    /// What a memory is.
    KindView of Kind as MemoryKind {
        /// How the person wants things.
        Preference,
        /// What is the case.
        Fact,
        /// What was decided.
        Decision,
        /// What holds for a while.
        TemporaryState,
    }
);
mirror!(
    /// How far a memory is from what was said.
    LayerView of Layer as MemoryLayer {
        /// Said a moment ago and not indexed yet: such are recalled, but not listed.
        Working,
        /// A verbatim chunk of one message.
        Episodic,
        /// An extracted or merged statement.
        Semantic,
        /// Kept, but only told on request.
        Archival,
    }
);
mirror!(
    /// Whether a memory is told.
    StateView of State as MemoryState {
        /// It holds.
        Current,
        /// A newer one took its place.
        Superseded,
        /// It faded.
        Archived,
        /// It waits for a person's confirmation.
        Quarantined,
    }
);

mirror!(
    /// What makes a text look like an instruction to the model.
    SignView of Sign as MemorySuspicion {
        /// It wants what the model was told to be disregarded.
        Override,
        /// It wants the model to be something that has no rules.
        Role,
        /// It wants the hidden prompt, or secrets.
        Secrets,
        /// It wants something kept from the user.
        Hiding,
        /// It wants data carried out.
        Exfiltration,
        /// It holds marks by which prompts part the roles.
        Markup,
        /// It holds characters that only a program sees.
        Unseen,
    }
);

/// A message that a memory was learned from.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = MemorySource)]
pub struct SourceView {
    /// The message.
    pub message_id: Uuid,
    /// Its session.
    pub session_id: Uuid,
    /// Its place there.
    #[schema(examples(1))]
    pub seq: i64,
}

impl From<Source> for SourceView {
    fn from(source: Source) -> Self {
        Self {
            message_id: source.message_id.0,
            session_id: source.session_id.0,
            seq: source.seq,
        }
    }
}

/// A memory.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Memory)]
pub struct MemoryView {
    /// Its id.
    pub id: Uuid,
    /// What it says.
    #[schema(examples("I prefer answers as tables"))]
    pub content: String,
    /// Who said it, where an import named the speaker: "I" in the content is this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Where it applies.
    pub scope: ScopeView,
    /// What it is.
    pub kind: KindView,
    /// How far it is from what was said.
    pub layer: LayerView,
    /// Whether it is told.
    pub state: StateView,
    /// Why it waits for confirmation, while it does: what makes it look like an instruction to the model. Absent where its words alone do not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspicion: Option<SignView>,
    /// 1–5.
    #[schema(examples(3), minimum = 1, maximum = 5)]
    pub importance: u8,
    /// 0–1: how sure it is that it still holds. It falls while the memory is not used.
    #[schema(examples(0.9), minimum = 0, maximum = 1)]
    pub confidence: f64,
    /// 0–1, by who said it.
    #[schema(examples(1.0), minimum = 0, maximum = 1)]
    pub trust: f64,
    /// Never fades.
    pub pinned: bool,
    /// What it speaks of: what has the same key speaks of the same thing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The session it was learned in, or was given for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Uuid>,
    /// The messages behind it.
    pub sources: Vec<SourceView>,
    /// Since when it holds.
    pub valid_from: DateTime<Utc>,
    /// Until when it held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<DateTime<Utc>>,
    /// The memory that took its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<Uuid>,
    /// When it is to be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was stored.
    pub created_at: DateTime<Utc>,
    /// How often it was shown in a committed turn.
    #[schema(examples(2))]
    pub access_count: i64,
    /// Rises with every change; the entity tag.
    #[schema(examples(1))]
    pub version: i64,
}

/// A number in four decimals: nobody is surer than that, and it does not change from one second to the next.
fn in_four_decimals(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}

impl MemoryView {
    /// As it is at a time.
    pub fn at(memory: Memory, now: Timestamp) -> Self {
        let confidence = forgetting::confidence_at(&memory, now);
        Self::with(memory, in_four_decimals(confidence))
    }

    /// As it was stored.
    pub fn stored(memory: Memory) -> Self {
        let confidence = memory.confidence;
        Self::with(memory, confidence)
    }

    fn with(memory: Memory, confidence: f64) -> Self {
        let waits = memory.state == State::Quarantined;
        let sign = waits.then(|| injection::sign(&memory.content)).flatten();
        Self {
            id: memory.id.0,
            suspicion: sign.map(Into::into),
            content: memory.content,
            speaker: memory.speaker,
            scope: memory.scope.into(),
            kind: memory.kind.into(),
            layer: memory.layer.into(),
            state: memory.state.into(),
            importance: memory.importance,
            confidence,
            trust: memory.trust.weight(),
            pinned: memory.pinned,
            key: memory.key,
            session_id: memory.session_id.map(|id| id.0),
            sources: memory.sources.into_iter().map(Into::into).collect(),
            valid_from: memory.valid_from,
            valid_to: memory.valid_to,
            superseded_by: memory.superseded_by.map(|id| id.0),
            expires_at: memory.expires_at,
            created_at: memory.created_at,
            access_count: memory.access_count,
            version: memory.version,
        }
    }
}

/// A memory at a time, with its entity tag.
#[derive(Debug)]
pub struct Tagged(pub Memory, pub Timestamp);

impl IntoResponse for Tagged {
    fn into_response(self) -> Response {
        let tag = entity_tag(self.0.version);
        let mut response = Json(MemoryView::at(self.0, self.1)).into_response();
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}
