//! What a turn tells while it runs.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ids::{MemoryId, MessageId, SessionId, Timestamp};
use crate::memory::prompt::spoken;
use crate::memory::{Kind, Memory, Scope, Trust};
use crate::turn::{FinishReason, TurnProblem, TurnStatus, Usage};

/// How a memory came to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// A standing preference, in every prompt (B2a).
    Profile,
    /// It fits the question.
    Relevance,
}

/// A memory as it was shown to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecalledMemory {
    /// Its id.
    pub id: MemoryId,
    /// Where it applies.
    pub scope: Scope,
    /// What it is.
    pub kind: Kind,
    /// What it says.
    pub content: String,
    /// Who said it, where that was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// How far it can be believed, by who said it; none in what was kept before this was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// Since when it holds; none as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Its score, 0–1; 1 for the profile.
    pub score: f64,
    /// How it came to be shown.
    pub via: Via,
}

impl RecalledMemory {
    /// A memory as it is shown.
    pub fn of(memory: &Memory, score: f64, via: Via) -> Self {
        Self {
            id: memory.id,
            scope: memory.scope,
            kind: memory.kind,
            content: memory.content.clone(),
            speaker: memory.speaker.clone(),
            trust: Some(memory.trust),
            since: Some(memory.valid_from),
            score,
            via,
        }
    }

    /// What it says, with the speaker's name before it where there is one.
    pub fn said(&self) -> Cow<'_, str> {
        spoken(self.speaker.as_deref(), &self.content)
    }
}

/// A step of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    /// The call begins.
    Started,
    /// It goes on.
    Progress,
    /// It has its result.
    Finished,
    /// It failed; the model is told why.
    Failed,
}

/// One event of a turn's log. The log gives each its number.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEvent {
    /// The turn is known; first, before recall or model.
    Start {
        /// Its session.
        session_id: SessionId,
        /// Whether it has to wait.
        queued: bool,
    },
    /// What was recalled.
    Recall {
        /// The memories shown to the model, in their order.
        memories: Vec<RecalledMemory>,
        /// Nothing fitted the question.
        abstained: bool,
        /// Arms of recall that failed.
        degraded: Vec<String>,
        /// Milliseconds it took.
        took_ms: u64,
    },
    /// Cleaned text of the answer.
    Message {
        /// The text.
        token: String,
    },
    /// A tool call's progress.
    Tool {
        /// The model's id for the call.
        call_id: String,
        /// The tool.
        name: String,
        /// How far it is.
        state: ToolState,
        /// One line, without the user's data.
        summary: String,
        /// Milliseconds since it began.
        took_ms: u64,
    },
    /// The text shown so far is void.
    Reset {
        /// Why.
        reason: String,
    },
    /// The end. Built from the committed row alone.
    Done(Terminal),
}

/// The terminal event's content.
#[derive(Clone, Debug, PartialEq)]
pub struct Terminal {
    /// How it ended.
    pub status: TurnStatus,
    /// The stored answer, where there is one.
    pub message_id: Option<MessageId>,
    /// The final text; wins over the deltas (A5).
    pub text: String,
    /// Why the model stopped.
    pub finish_reason: Option<FinishReason>,
    /// What it cost.
    pub usage: Option<Usage>,
    /// Why it did not complete.
    pub problem: Option<TurnProblem>,
}

impl Terminal {
    /// The terminal event of a closed turn, or none while it is open. Only a stored turn tells its end (A8).
    pub fn of(turn: &crate::turn::Turn) -> Option<Self> {
        turn.status.is_terminal().then(|| Self {
            status: turn.status,
            message_id: turn.message_id,
            text: turn.text.clone().unwrap_or_default(),
            finish_reason: turn.finish_reason,
            usage: turn.usage,
            problem: turn.problem.clone(),
        })
    }
}
