//! A turn: one request and its answer, and the states it may pass through.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::event::RecalledMemory;
use crate::ids::{MessageId, SessionId, Timestamp, TurnId};
use crate::memory::Scope;
use crate::memory::scoring::Profile;
use crate::session::MemoryMode;

/// Where a turn stands: queued → running ⇄ `awaiting_approval` → one of the four terminal states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// Stored, waiting for its place in the session.
    Queued,
    /// A replica holds its lease.
    Running,
    /// A replica holds its lease and waits for a person.
    AwaitingApproval,
    /// The answer is committed.
    Completed,
    /// It ended with a problem.
    Failed,
    /// Its owner stopped it.
    Cancelled,
    /// The server stopped under it.
    Interrupted,
}

impl TurnStatus {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Running,
        Self::AwaitingApproval,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Interrupted,
    ];

    /// Nothing follows.
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Cancelled | Self::Interrupted
        )
    }

    /// Whether a turn may pass from `self` to `next`.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Queued => matches!(next, Self::Running | Self::Cancelled | Self::Failed),
            Self::Running => next.is_terminal() || next == Self::AwaitingApproval,
            Self::AwaitingApproval => {
                matches!(
                    next,
                    Self::Running | Self::Failed | Self::Cancelled | Self::Interrupted
                )
            }
            _ => false,
        }
    }

    /// The name used on the wire and in the stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == name)
    }
}

impl fmt::Display for TurnStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a model stopped writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It had said what it had to say.
    Stop,
    /// It reached the limit of output tokens.
    Length,
    /// It wants tools to be called; never the reason of a closed turn.
    ToolCalls,
    /// A filter of the provider cut it.
    ContentFilter,
}

impl FinishReason {
    /// Every reason.
    pub const ALL: [Self; 4] = [
        Self::Stop,
        Self::Length,
        Self::ToolCalls,
        Self::ContentFilter,
    ];

    /// The name used on the wire and in the stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
        }
    }

    /// The reason of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.as_str() == name)
    }
}

/// Tokens that a turn used, over all its model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompts.
    pub prompt_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// Counted here with an estimate, because the model's server did not say.
    pub estimated: bool,
}

/// More tokens than any turn uses: what a model's server reports beyond is no count.
const MOST_TOKENS: u64 = 1_000_000_000_000;

impl Usage {
    /// All its tokens; 10¹² at the most.
    pub fn tokens(self) -> i64 {
        let all = self.prompt_tokens.saturating_add(self.completion_tokens);
        all.min(MOST_TOKENS) as i64
    }

    /// The sum of two; estimated when either is.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self
                .completion_tokens
                .saturating_add(other.completion_tokens),
            estimated: self.estimated || other.estimated,
        }
    }
}

/// Why a turn did not complete, as its owner may read it. Holds nobody's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnProblem {
    /// Stable, `snake_case`; listed in `docs/errors.md`.
    pub code: String,
    /// One sentence.
    pub detail: String,
}

/// What a request may set for its turn alone. What is not said follows the server's settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnOptions {
    /// Only these tools may be called; none of them when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// How memory is recalled.
    pub recall: RecallOptions,
}

/// How memory is recalled for one turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecallOptions {
    /// Only in these scopes; all when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Scope>,
    /// How many memories, 1–100; by the query when not said (B10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// How to score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Below this nothing is recalled; 0 switches abstention off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f64>,
    /// Also tell what has faded and is archived.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
}

/// A turn as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Its session.
    pub session_id: SessionId,
    /// Where it stands.
    pub status: TurnStatus,
    /// What the user said. Becomes a message when the turn starts.
    pub input: String,
    /// Whether memory is shown and learned.
    pub memory: MemoryMode,
    /// What its request set for it alone.
    pub options: TurnOptions,
    /// Rises with every start; every write of a runner names it (0 before the first start).
    pub fence: i64,
    /// Numbers that its events may use before the row must be asked again; 0 before the start.
    pub events_reserved: i64,
    /// Number of its terminal event, once it is closed.
    pub terminal_seq: Option<i64>,
    /// The final text: the answer, or what was shown of it.
    pub text: Option<String>,
    /// The stored answer.
    pub message_id: Option<MessageId>,
    /// Why the model stopped.
    pub finish_reason: Option<FinishReason>,
    /// What it cost.
    pub usage: Option<Usage>,
    /// What memory was shown to the model.
    pub recalled: Vec<RecalledMemory>,
    /// Why it did not complete.
    pub problem: Option<TurnProblem>,
    /// A cancellation was asked for while it ran.
    pub cancel_requested: bool,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it was started.
    pub started_at: Option<Timestamp>,
    /// When it was closed.
    pub ended_at: Option<Timestamp>,
}

/// The number of the terminal event of a turn that ended normally: the next after the last one used.
pub fn terminal_seq_after(last_used: i64) -> i64 {
    last_used + 1
}

/// The number of the terminal event of a turn whose log was lost: above every number that may have been used, with one place
/// left below it for the snapshot that stands in for the lost events.
pub fn terminal_seq_after_loss(events_reserved: i64) -> i64 {
    events_reserved + 2
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn nothing_follows_a_terminal_state() {
        for state in TurnStatus::ALL.into_iter().filter(|s| s.is_terminal()) {
            for next in TurnStatus::ALL {
                assert!(!state.may_become(next), "{state} → {next}");
            }
        }
    }

    #[test]
    fn every_open_state_can_be_cancelled_and_none_returns_to_the_queue() {
        for state in TurnStatus::ALL.into_iter().filter(|s| !s.is_terminal()) {
            assert!(state.may_become(TurnStatus::Cancelled));
            assert!(!state.may_become(TurnStatus::Queued));
        }
    }

    #[test]
    fn only_a_running_turn_completes() {
        for state in TurnStatus::ALL {
            assert_eq!(
                state.may_become(TurnStatus::Completed),
                state == TurnStatus::Running
            );
        }
    }

    #[test]
    fn names_survive_the_round_trip() {
        for state in TurnStatus::ALL {
            assert_eq!(TurnStatus::parse(state.as_str()), Some(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        for reason in FinishReason::ALL {
            assert_eq!(FinishReason::parse(reason.as_str()), Some(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }

    #[test]
    fn after_a_loss_there_is_room_for_a_snapshot_above_every_reserved_number() {
        for reserved in [0, 1, 64, 1_000] {
            assert!(terminal_seq_after_loss(reserved) - 1 > reserved);
        }
    }
}
