//! The lines of an export.

use chrono::{DateTime, Utc};
use serde::Serialize;
use tidemark_application::ports::users::Record;
use tidemark_domain::ids::Timestamp;
use uuid::Uuid;

use crate::http::changes::view::ChangeView;
use crate::http::jobs::view::JobView;
use crate::http::memories::view::MemoryView;
use crate::http::messages::view::MessageView;
use crate::http::sessions::view::{MemoryModeView, SessionView};
use crate::http::turns::view::TurnView;

/// One line of an export; the document tells of it in words, since no client generator reads JSON Lines. The first is the user, the last is the end: without it the export was cut.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// Whose export it is.
    User(UserLine),
    /// A session.
    Session(SessionView),
    /// A message.
    Message(MessageLine),
    /// A turn, with the memories that it has shown.
    Turn(TurnLine),
    /// A memory in any state, with its sources.
    Memory(MemoryView),
    /// What was done to memories.
    Change(ChangeView),
    /// Something that was forgotten.
    Tombstone(TombstoneLine),
    /// Derived work that is not done.
    Job(JobView),
    /// What was made under an idempotency key.
    IdempotencyKey(IdempotencyKeyLine),
    /// Everything has been told.
    End(EndLine),
}

/// Whose export it is.
#[derive(Clone, Debug, Serialize)]
pub struct UserLine {
    /// The tenant's own name for the user.
    pub id: String,
    /// When the user was seen first.
    pub created_at: DateTime<Utc>,
    /// When the export began.
    pub exported_at: DateTime<Utc>,
}

/// A message with its session.
#[derive(Clone, Debug, Serialize)]
pub struct MessageLine {
    /// Its session.
    pub session_id: Uuid,
    /// May become memory.
    pub learnable: bool,
    /// The message.
    #[serde(flatten)]
    pub message: MessageView,
}

/// A turn with its mode.
#[derive(Clone, Debug, Serialize)]
pub struct TurnLine {
    /// Whether memory was recalled and learned.
    pub memory: MemoryModeView,
    /// The turn.
    #[serde(flatten)]
    pub turn: TurnView,
}

/// Something that was forgotten; of what it said nothing is kept.
#[derive(Clone, Debug, Serialize)]
pub struct TombstoneLine {
    /// The memory that was forgotten, or the message that must not teach it again.
    pub id: Uuid,
    /// When.
    pub forgotten_at: DateTime<Utc>,
}

/// What was made under an idempotency key.
#[derive(Clone, Debug, Serialize)]
pub struct IdempotencyKeyLine {
    /// Method and path.
    pub operation: String,
    /// The key.
    pub key: String,
    /// What was made.
    pub resources: Vec<Uuid>,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// The end of an export.
#[derive(Clone, Debug, Serialize)]
pub struct EndLine {
    /// How many lines came between the first and this one.
    pub records: u64,
}

impl Line {
    /// A record as it is at a time.
    pub fn of(record: Record, now: Timestamp) -> Self {
        match record {
            Record::Session(session) => Self::Session(session.into()),
            Record::Message(message) => Self::Message(MessageLine {
                session_id: message.session_id.0,
                learnable: message.learnable,
                message: message.into(),
            }),
            Record::Turn(turn) => Self::Turn(TurnLine {
                memory: turn.memory.into(),
                turn: (*turn).into(),
            }),
            Record::Memory(memory) => Self::Memory(MemoryView::at(*memory, now)),
            Record::Change(change) => Self::Change((*change).into()),
            Record::Tombstone(tombstone) => Self::Tombstone(TombstoneLine {
                id: tombstone.subject,
                forgotten_at: tombstone.forgotten_at,
            }),
            Record::Job(job) => Self::Job(job.into()),
            Record::UsedKey(used) => Self::IdempotencyKey(IdempotencyKeyLine {
                operation: used.operation,
                key: used.key,
                resources: used.resources,
                created_at: used.created_at,
            }),
        }
    }

    /// As it is written, with its line break.
    ///
    /// # Errors
    /// Never, for what lines hold.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}
