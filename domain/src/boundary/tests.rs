#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::session::validate_transcript;
use crate::testing::{calling, message, result, transcript, turns};

fn after(messages: &[Message], seq: i64) -> &[Message] {
    &messages[messages.partition_point(|m| m.seq <= seq)..]
}

fn up_to(messages: &[Message], seq: i64) -> &[Message] {
    &messages[..messages.partition_point(|m| m.seq <= seq)]
}

#[test]
fn a_session_is_due_when_the_threshold_is_reached_and_not_before() {
    assert!(!is_due(19, 0, DEFAULT_THRESHOLD));
    assert!(is_due(20, 0, DEFAULT_THRESHOLD));
    assert!(!is_due(39, 20, DEFAULT_THRESHOLD));
    assert!(is_due(40, 20, DEFAULT_THRESHOLD));
}

#[test]
fn a_session_without_new_messages_is_never_due() {
    for threshold in [i64::MIN, -1, 0, 1, 20] {
        assert!(!is_due(7, 7, threshold), "threshold {threshold}");
    }
    assert!(!is_due(0, i64::MAX, 1));
}

#[test]
fn behind_an_answer_the_boundary_stands_at_the_answer() {
    let messages = [
        message(1, Role::User, "q"),
        calling(2, &["a"]),
        result(3, "a"),
        message(4, Role::Assistant, "r"),
    ];
    assert_eq!(boundary(&messages, 0, 4), 4);
}

#[test]
fn an_exchange_without_an_answer_stays_whole_beyond_the_boundary() {
    let messages = [
        message(1, Role::User, "q"),
        calling(2, &["a", "b"]),
        result(3, "b"),
        result(4, "a"),
        calling(5, &["c"]),
        result(6, "c"),
    ];
    assert_eq!(boundary(&messages, 0, 6), 1);
}

#[test]
fn the_open_turn_is_left_alone() {
    let messages = [
        message(1, Role::User, "q"),
        message(2, Role::Assistant, "r"),
        message(3, Role::User, "q"),
    ];
    assert_eq!(boundary(&messages, 0, 2), 2);
    assert_eq!(boundary(&messages, 0, 0), 0);
}

#[test]
fn the_boundary_stays_where_nothing_can_be_taken() {
    assert_eq!(boundary(&[], 7, 7), 7);
    let exchange = [calling(8, &["a"]), result(9, "a")];
    assert_eq!(boundary(&exchange, 7, 9), 7);
}

proptest! {
    #[test]
    fn both_sides_of_the_boundary_are_valid_transcripts(turns in turns(8, 10), closed in any::<prop::sample::Index>()) {
        let (messages, ends) = transcript(&turns, 1);
        let mut stops = vec![0];
        stops.extend(ends);
        let last_closed = *closed.get(&stops);
        let line = boundary(&messages, 0, last_closed);
        prop_assert!((0..=last_closed).contains(&line));
        prop_assert_eq!(validate_transcript(up_to(&messages, line)), Ok(()));
        prop_assert_eq!(validate_transcript(after(&messages, line)), Ok(()));
    }

    #[test]
    fn what_lies_between_two_boundaries_is_a_valid_transcript(turns in turns(8, 10), closed in prop::collection::vec(any::<prop::sample::Index>(), 1..5)) {
        let (messages, ends) = transcript(&turns, 1);
        prop_assume!(!ends.is_empty());
        let mut closed: Vec<i64> = closed.iter().map(|index| *index.get(&ends)).collect();
        closed.sort_unstable();
        let mut line = 0;
        for last_closed in closed {
            let next = boundary(after(&messages, line), line, last_closed);
            prop_assert!(next >= line, "the boundary never moves back");
            prop_assert_eq!(validate_transcript(up_to(after(&messages, line), next)), Ok(()));
            line = next;
        }
    }

    #[test]
    fn the_boundary_takes_as_much_as_it_may(turns in turns(8, 10)) {
        let (messages, ends) = transcript(&turns, 1);
        let last_closed = ends.last().copied().unwrap_or(0);
        let line = boundary(&messages, 0, last_closed);
        for later in after(&messages, line) {
            prop_assert!(later.role == Role::Tool || !later.tool_calls.is_empty());
        }
    }

    #[test]
    fn no_history_however_broken_moves_the_boundary_out_of_its_range(
        turns in turns(6, 10),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        last_consolidated in 0..40_i64,
        last_closed in 0..40_i64,
    ) {
        let (mut messages, _) = transcript(&turns, 1);
        for index in lost {
            if !messages.is_empty() {
                messages.remove(index.index(messages.len()));
            }
        }
        let line = boundary(&messages, last_consolidated, last_closed);
        prop_assert!(line == last_consolidated || (last_consolidated < line && line <= last_closed));
        let last = up_to(&messages, line).last();
        prop_assert!(
            line == last_consolidated || last.is_some_and(|m| m.role != Role::Tool && m.tool_calls.is_empty())
        );
    }
}
