//! Messages and histories for the tests of this crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use uuid::Uuid;

use crate::ids::{MessageId, SessionId};
use crate::session::{Message, Role};
use crate::tool::ToolCall;

/// A message that says something.
pub(crate) fn message(seq: i64, role: Role, content: &str) -> Message {
    Message {
        id: MessageId(Uuid::from_u128(seq as u128)),
        session_id: SessionId(Uuid::nil()),
        turn_id: None,
        seq,
        role,
        content: content.to_owned(),
        name: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        partial: false,
        learnable: true,
        created_at: chrono::DateTime::UNIX_EPOCH,
    }
}

/// An assistant message that makes calls of these ids.
pub(crate) fn calling(seq: i64, ids: &[&str]) -> Message {
    Message {
        tool_calls: ids
            .iter()
            .map(|id| ToolCall {
                id: (*id).to_owned(),
                name: "look_up".to_owned(),
                arguments: "{}".to_owned(),
            })
            .collect(),
        ..message(seq, Role::Assistant, "")
    }
}

/// The result of a call.
pub(crate) fn result(seq: i64, call_id: &str) -> Message {
    Message {
        tool_call_id: Some(call_id.to_owned()),
        ..message(seq, Role::Tool, "found")
    }
}

/// One turn of a generated history.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// Who begins it.
    pub(crate) opener: Role,
    /// For each tool round, its number of calls.
    pub(crate) rounds: Vec<usize>,
    /// Whether a final answer was stored; not after an interruption.
    pub(crate) answered: bool,
    /// Length of the texts, in characters.
    pub(crate) length: usize,
    /// Whether results come in the order of the calls.
    pub(crate) reversed: bool,
}

fn turn(longest: usize) -> impl Strategy<Value = Turn> {
    let opener = prop_oneof![9 => Just(Role::User), 1 => Just(Role::System)];
    let rounds = prop::collection::vec(1..4_usize, 0..4);
    (
        opener,
        rounds,
        prop::bool::weighted(0.8),
        0..longest,
        any::<bool>(),
    )
        .prop_map(|(opener, rounds, answered, length, reversed)| Turn {
            opener,
            rounds,
            answered,
            length,
            reversed,
        })
}

/// The messages of these turns, numbered from `first`, and the number of each turn's last message.
pub(crate) fn transcript(turns: &[Turn], first: i64) -> (Vec<Message>, Vec<i64>) {
    let mut messages = Vec::new();
    let mut ends = Vec::new();
    for turn in turns {
        let text = "word ".repeat(turn.length / 5) + "汉字";
        let next = |messages: &Vec<Message>| first + messages.len() as i64;
        messages.push(message(next(&messages), turn.opener, &text));
        for calls in &turn.rounds {
            let seq = next(&messages);
            let mut ids: Vec<String> = (0..*calls).map(|n| format!("{seq}-{n}")).collect();
            let call = calling(seq, &ids.iter().map(String::as_str).collect::<Vec<_>>());
            messages.push(call);
            if turn.reversed {
                ids.reverse();
            }
            for id in ids {
                let content = text.clone();
                messages.push(Message {
                    content,
                    ..result(next(&messages), &id)
                });
            }
        }
        if turn.answered {
            messages.push(message(next(&messages), Role::Assistant, &text));
        }
        ends.push(next(&messages) - 1);
    }
    (messages, ends)
}

/// Turns that make a valid history, with texts up to `longest` characters.
pub(crate) fn turns(most: usize, longest: usize) -> impl Strategy<Value = Vec<Turn>> {
    prop::collection::vec(turn(longest), 0..most)
}
