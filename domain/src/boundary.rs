//! The consolidation boundary: the line up to which a session has been taken into long-term memory (A12–A14).
//!
//! Both sides of it are transcripts that a model API accepts: a tool call is never parted from its result.

use crate::session::{Message, Role};

/// So many messages behind the boundary make a consolidation due (A12). Ours; a setting.
pub const DEFAULT_THRESHOLD: i64 = 20;

/// Whether a session is to be consolidated: `message_count − last_consolidated ≥ threshold` (A12). A threshold below 1 counts as 1, so
/// that a session without new messages is never due.
pub fn is_due(message_count: i64, last_consolidated: i64, threshold: i64) -> bool {
    message_count.saturating_sub(last_consolidated) >= threshold.max(1)
}

/// Where the boundary may move to: the sequence number of the last message to consolidate, or `last_consolidated` when it must stay.
///
/// `messages` are those after `last_consolidated`, in order; more on either side do no harm. `last_closed` is the number of the last
/// message of the last closed turn: what follows belongs to an open turn and is left alone. From there the boundary walks back over
/// tool messages and over assistant messages with tool calls (A14). So it stands before an exchange that an interruption left without
/// an answer; the next turn brings the message behind which it can stand.
pub fn boundary(messages: &[Message], last_consolidated: i64, last_closed: i64) -> i64 {
    messages
        .iter()
        .rev()
        .skip_while(|message| message.seq > last_closed)
        .take_while(|message| message.seq > last_consolidated)
        .find(|message| message.role != Role::Tool && message.tool_calls.is_empty())
        .map_or(last_consolidated, |message| message.seq)
}

#[cfg(test)]
mod tests;
