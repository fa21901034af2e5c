//! Values for the tests of this module.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use uuid::Uuid;

use super::{Kind, Layer, Memory, Scope, Source, State, Trust};
use crate::ids::{MemoryId, MessageId, SessionId, Timestamp};
use crate::session::{Message, Role};

/// A day of May 2024, at noon.
pub(crate) fn day(day: u32) -> Timestamp {
    format!("2024-05-{day:02}T12:00:00Z").parse().unwrap()
}

/// A fact of the project, stored on May 1st.
pub(crate) fn memory(id: u128, content: &str) -> Memory {
    Memory {
        id: MemoryId(Uuid::from_u128(id)),
        content: content.to_owned(),
        speaker: None,
        scope: Scope::ProjectContext,
        kind: Kind::Fact,
        layer: Layer::Semantic,
        state: State::Current,
        importance: 3,
        confidence: 0.8,
        trust: Trust::User,
        pinned: false,
        key: None,
        session_id: None,
        sources: Vec::new(),
        valid_from: day(1),
        valid_to: None,
        superseded_by: None,
        ended_at: None,
        expires_at: None,
        created_at: day(1),
        access_count: 0,
        last_access: day(1),
        version: 1,
    }
}

/// A message that may be learned from, said on May 2nd in a turn.
pub(crate) fn message(seq: i64, role: Role, content: &str) -> Message {
    Message {
        id: MessageId(Uuid::from_u128(1_000 + seq as u128)),
        session_id: SessionId(Uuid::from_u128(7)),
        turn_id: Some(crate::ids::TurnId(Uuid::from_u128(8))),
        seq,
        role,
        content: content.to_owned(),
        name: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        partial: false,
        learnable: true,
        created_at: day(2),
    }
}

/// The source that a memory of `message` names.
pub(crate) fn source(message: &Message) -> Source {
    Source {
        message_id: message.id,
        session_id: message.session_id,
        seq: message.seq,
    }
}
