//! Sessions, messages, and what makes a transcript one that a model API accepts.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::{MessageId, SessionId, Timestamp, TurnId};
use crate::tool::ToolCall;

/// Whether turns are learned from and whether memory is shown to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMode {
    /// Recall before the answer, learn from it afterwards.
    #[default]
    On,
    /// Recall, but learn nothing.
    ReadOnly,
    /// Neither: a temporary chat.
    Off,
}

impl MemoryMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::On, Self::ReadOnly, Self::Off];

    /// Whether memories may be shown to the model.
    pub fn recalls(self) -> bool {
        self != Self::Off
    }

    /// Whether the turn may become memory.
    pub fn learns(self) -> bool {
        self == Self::On
    }

    /// The name used on the wire and in the stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::ReadOnly => "read_only",
            Self::Off => "off",
        }
    }

    /// The mode of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.as_str() == name)
    }
}

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// What its owner calls it.
    pub title: Option<String>,
    /// Free labels, at most 16 of 64 characters.
    pub labels: Vec<String>,
    /// The entry it came through: `api`, `web`, `cli`, or a name of the caller's (A19).
    pub channel: String,
    /// The mode of turns that name none.
    pub memory: MemoryMode,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its last message was stored or its fields were changed.
    pub updated_at: Timestamp,
    /// Sequence number of its newest message; 0 when it has none. Numbers start at 1 and have no gaps.
    pub message_count: i64,
    /// The consolidation boundary: messages up to this number have been taken into semantic memory (A12).
    pub last_consolidated: i64,
    /// Messages up to this number have been indexed as episodic memory.
    pub indexed_seq: i64,
    /// Rises with every change of title, labels or memory mode; the entity tag.
    pub version: i64,
    /// The turn that runs, or the oldest that waits.
    pub active_turn: Option<TurnId>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions of the caller; only imported transcripts hold them.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::System, Self::User, Self::Assistant, Self::Tool];

    /// The name used on the wire and in the stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// The role of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.as_str() == name)
    }
}

/// One stored message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// The turn that brought it; none for imported messages.
    pub turn_id: Option<TurnId>,
    /// Position in the session, from 1, without gaps.
    pub seq: i64,
    /// Who speaks.
    pub role: Role,
    /// What is said; may be empty only for an assistant message with tool calls or a tool result.
    pub content: String,
    /// The speaker's name, where an import gave one.
    pub name: Option<String>,
    /// Calls that an assistant message makes, in order.
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool message answers.
    pub tool_call_id: Option<String>,
    /// The answer was cut by a cancellation, a failure or an interruption.
    pub partial: bool,
    /// May become memory: the turn's mode allowed it and the text is not the offline model's echo.
    pub learnable: bool,
    /// When it was said (imports) or stored.
    pub created_at: Timestamp,
}

/// Why a transcript would be refused by a model API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// A tool message answers no open call.
    #[error("message {seq} answers a tool call that is not open: {call_id}")]
    UnexpectedResult {
        /// The message.
        seq: i64,
        /// The call it names, or empty.
        call_id: String,
    },
    /// Another message comes before every call has its result.
    #[error("message {seq} comes before tool call {call_id} has its result")]
    Unanswered {
        /// The message that came too early; one past the last when the transcript ends.
        seq: i64,
        /// The first open call.
        call_id: String,
    },
    /// One assistant message makes two calls of the same id.
    #[error("message {seq} makes tool call {call_id} twice")]
    DuplicateCall {
        /// The message.
        seq: i64,
        /// The call.
        call_id: String,
    },
}

/// Whether a model API accepts these messages: each tool call is answered exactly once, before the next message of another
/// kind, and nothing is answered that was not called (A14).
///
/// # Errors
/// The first place that breaks the rule.
pub fn validate_transcript<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
) -> Result<(), TranscriptError> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut last = 0;
    for message in messages {
        last = message.seq;
        if message.role == Role::Tool {
            let call_id = message.tool_call_id.as_deref().unwrap_or_default();
            if !open.remove(call_id) {
                return Err(TranscriptError::UnexpectedResult {
                    seq: message.seq,
                    call_id: call_id.to_owned(),
                });
            }
            continue;
        }
        if let Some(call_id) = open.first() {
            return Err(TranscriptError::Unanswered {
                seq: message.seq,
                call_id: (*call_id).to_owned(),
            });
        }
        for call in &message.tool_calls {
            if !open.insert(&call.id) {
                return Err(TranscriptError::DuplicateCall {
                    seq: message.seq,
                    call_id: call.id.clone(),
                });
            }
        }
    }
    match open.first() {
        Some(call_id) => Err(TranscriptError::Unanswered {
            seq: last + 1,
            call_id: (*call_id).to_owned(),
        }),
        None => Ok(()),
    }
}

/// The calls of the newest assistant message that have no result yet. A turn that ends here must answer them first.
pub fn open_calls(messages: &[Message]) -> Vec<ToolCall> {
    let Some(start) = messages
        .iter()
        .rposition(|m| m.role != Role::Tool)
        .filter(|&i| messages[i].role == Role::Assistant)
    else {
        return Vec::new();
    };
    let answered: BTreeSet<&str> = messages[start + 1..]
        .iter()
        .filter_map(|m| m.tool_call_id.as_deref())
        .collect();
    messages[start]
        .tool_calls
        .iter()
        .filter(|call| !answered.contains(call.id.as_str()))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests;
