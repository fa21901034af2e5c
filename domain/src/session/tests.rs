#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::testing::{calling, message, result, transcript, turns};

fn user(seq: i64) -> Message {
    message(seq, Role::User, "q")
}

fn answer(seq: i64) -> Message {
    message(seq, Role::Assistant, "r")
}

fn ids(calls: &[ToolCall]) -> Vec<&str> {
    calls.iter().map(|call| call.id.as_str()).collect()
}

#[test]
fn memory_is_recalled_unless_off_and_learned_only_when_on() {
    assert_eq!(
        [MemoryMode::On, MemoryMode::ReadOnly, MemoryMode::Off].map(|m| (m.recalls(), m.learns())),
        [(true, true), (true, false), (false, false)]
    );
}

#[test]
fn names_are_those_of_the_wire_and_survive_the_round_trip() {
    for mode in MemoryMode::ALL {
        assert_eq!(MemoryMode::parse(mode.as_str()), Some(mode));
        assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
    }
    for role in Role::ALL {
        assert_eq!(Role::parse(role.as_str()), Some(role));
        assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
    }
}

#[test]
fn an_empty_transcript_is_valid() {
    assert_eq!(validate_transcript(&[]), Ok(()));
}

#[test]
fn parallel_calls_may_be_answered_in_any_order() {
    let messages = [
        user(1),
        calling(2, &["a", "b"]),
        result(3, "b"),
        result(4, "a"),
        answer(5),
    ];
    assert_eq!(validate_transcript(&messages), Ok(()));
}

#[test]
fn an_id_may_be_used_again_in_a_later_round() {
    let messages = [
        user(1),
        calling(2, &["call_0"]),
        result(3, "call_0"),
        calling(4, &["call_0"]),
        result(5, "call_0"),
    ];
    assert_eq!(validate_transcript(&messages), Ok(()));
}

#[test]
fn a_result_that_nobody_asked_for_is_refused() {
    assert_eq!(
        validate_transcript(&[user(1), result(2, "a")]),
        Err(TranscriptError::UnexpectedResult {
            seq: 2,
            call_id: "a".to_owned()
        })
    );
}

#[test]
fn a_second_result_of_one_call_is_refused() {
    let messages = [calling(1, &["a"]), result(2, "a"), result(3, "a")];
    assert_eq!(
        validate_transcript(&messages),
        Err(TranscriptError::UnexpectedResult {
            seq: 3,
            call_id: "a".to_owned()
        })
    );
}

#[test]
fn a_result_that_names_no_call_is_refused() {
    let nameless = Message {
        tool_call_id: None,
        ..result(2, "a")
    };
    assert_eq!(
        validate_transcript(&[calling(1, &["a"]), nameless]),
        Err(TranscriptError::UnexpectedResult {
            seq: 2,
            call_id: String::new()
        })
    );
}

#[test]
fn nothing_may_come_between_a_call_and_its_result() {
    for between in [
        user(3),
        answer(3),
        message(3, Role::System, "s"),
        calling(3, &["c"]),
    ] {
        let messages = [user(1), calling(2, &["b", "a"]), between, result(4, "a")];
        assert_eq!(
            validate_transcript(&messages),
            Err(TranscriptError::Unanswered {
                seq: 3,
                call_id: "a".to_owned()
            })
        );
    }
}

#[test]
fn a_call_without_a_result_at_the_end_is_refused() {
    assert_eq!(
        validate_transcript(&[user(1), calling(2, &["a", "b"]), result(3, "a")]),
        Err(TranscriptError::Unanswered {
            seq: 4,
            call_id: "b".to_owned()
        })
    );
}

#[test]
fn one_message_may_not_make_a_call_twice() {
    assert_eq!(
        validate_transcript(&[calling(1, &["a", "a"])]),
        Err(TranscriptError::DuplicateCall {
            seq: 1,
            call_id: "a".to_owned()
        })
    );
}

#[test]
fn the_open_calls_are_those_of_the_newest_round_without_a_result_in_their_order() {
    let messages = [
        user(1),
        calling(2, &["x"]),
        result(3, "x"),
        calling(4, &["c", "a", "b"]),
        result(5, "a"),
    ];
    assert_eq!(ids(&open_calls(&messages)), ["c", "b"]);
    assert_eq!(ids(&open_calls(&messages[..4])), ["c", "a", "b"]);
    assert!(open_calls(&messages[..3]).is_empty());
}

#[test]
fn no_call_is_open_behind_an_answer_a_question_or_nothing() {
    for messages in [
        vec![],
        vec![user(1)],
        vec![user(1), answer(2)],
        vec![result(1, "a")],
        vec![calling(1, &["a"]), user(2)],
    ] {
        assert!(open_calls(&messages).is_empty(), "{messages:?}");
    }
}

proptest! {
    #[test]
    fn a_transcript_cut_anywhere_is_valid_once_its_open_calls_are_answered(turns in turns(6, 10), cut in any::<prop::sample::Index>()) {
        let (mut messages, _) = transcript(&turns, 1);
        prop_assert_eq!(validate_transcript(&messages), Ok(()));
        messages.truncate(cut.index(messages.len() + 1));
        let open = open_calls(&messages);
        prop_assert_eq!(validate_transcript(&messages).is_ok(), open.is_empty());
        for call in open {
            messages.push(result(messages.len() as i64 + 1, &call.id));
        }
        prop_assert_eq!(validate_transcript(&messages), Ok(()));
    }

    #[test]
    fn a_transcript_that_lost_a_call_or_a_result_is_invalid(turns in turns(6, 10), lost in any::<prop::sample::Index>()) {
        let (mut messages, _) = transcript(&turns, 1);
        let exchange: Vec<usize> = (0..messages.len())
            .filter(|i| messages[*i].role == Role::Tool || !messages[*i].tool_calls.is_empty())
            .collect();
        prop_assume!(!exchange.is_empty());
        messages.remove(*lost.get(&exchange));
        prop_assert!(validate_transcript(&messages).is_err());
    }
}
