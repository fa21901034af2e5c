#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cutting;
mod properties;

use super::*;
use crate::testing::{calling, message, result};

/// One token a character, so that the numbers in the tests are plain.
struct Characters;

impl TokenCounter for Characters {
    fn count(&self, text: &str) -> usize {
        text.chars().count()
    }

    fn is_estimate(&self) -> bool {
        false
    }
}

/// A budget in which one exchange may take `exchange` tokens.
fn budget(history: usize, exchange: usize) -> Budget {
    Budget {
        window: exchange * 10 / 3 + 1,
        history,
        system: 0,
        recall: 0,
    }
}

fn seqs(window: &Window) -> Vec<i64> {
    window.messages.iter().map(|m| m.seq).collect()
}

/// Exchanges of a question and an answer, each costing 20.
fn exchanges(count: i64, first: i64) -> Vec<Message> {
    (0..count)
        .flat_map(|n| {
            let seq = first + 2 * n;
            [
                message(seq, Role::User, "a question?.."),
                message(seq + 1, Role::Assistant, "yes"),
            ]
        })
        .map(|m| Message {
            content: format!("{:6.6}", m.content),
            ..m
        })
        .collect()
}

fn dropped(from_seq: i64, to_seq: i64, reason: DropReason) -> Dropped {
    Dropped {
        from_seq,
        to_seq,
        reason,
    }
}

#[test]
fn the_shares_are_of_the_window_less_the_room_for_the_answer() {
    let budget = Budget::of(8_000, 1_024);
    assert_eq!(
        budget,
        Budget {
            window: 6_976,
            history: 4_883,
            system: 1_395,
            recall: 697
        }
    );
    assert_eq!(budget.exchange(), 2_092);
}

#[test]
fn an_answer_that_takes_everything_leaves_nothing() {
    assert_eq!(Budget::of(1_000, 2_000), Budget::of(0, 0));
    assert!(Budget::of(usize::MAX, 0).history > usize::MAX / 2);
}

#[test]
fn every_reason_has_its_own_name() {
    let names: std::collections::BTreeSet<_> = DropReason::ALL.map(DropReason::as_str).into();
    assert_eq!(names.len(), DropReason::ALL.len());
}

#[test]
fn the_newest_exchanges_that_fit_are_shown_whole() {
    let window = select(&exchanges(4, 1), &budget(59, 30), &Characters);
    assert_eq!(seqs(&window), [5, 6, 7, 8]);
    assert_eq!(window.tokens, 40);
    assert_eq!(window.dropped, [dropped(1, 4, DropReason::OverBudget)]);
    assert!(window.full && window.cut.is_empty());
}

#[test]
fn a_budget_that_is_met_exactly_is_enough() {
    let window = select(&exchanges(3, 1), &budget(60, 30), &Characters);
    assert_eq!(seqs(&window), [1, 2, 3, 4, 5, 6]);
    assert_eq!(window.tokens, 60);
}

#[test]
fn while_there_is_room_the_caller_is_asked_for_older_messages() {
    let history = exchanges(3, 11);
    assert!(!select(&history, &budget(100, 30), &Characters).full);
    assert!(!select(&history[1..], &budget(100, 30), &Characters).full);
    assert!(
        select(&history, &budget(62, 30), &Characters).full,
        "no room for any message"
    );
    assert!(
        select(&exchanges(3, 1), &budget(100, 30), &Characters).full,
        "nothing is older"
    );
    assert!(select(&[], &budget(100, 30), &Characters).full);
}

#[test]
fn an_exchange_whose_beginning_is_missing_is_left_out() {
    let mut history = vec![result(4, "a"), message(5, Role::Assistant, "so")];
    history.extend(exchanges(1, 6));
    let window = select(&history, &budget(100, 30), &Characters);
    assert_eq!(seqs(&window), [6, 7]);
    assert_eq!(
        window.dropped,
        [dropped(4, 5, DropReason::IncompleteExchange)]
    );
    assert!(!window.full);
}

#[test]
fn a_history_may_begin_with_the_assistant() {
    let mut history = vec![message(1, Role::Assistant, "Welcome")];
    history.extend(exchanges(1, 2));
    let window = select(&history, &budget(100, 30), &Characters);
    assert_eq!(seqs(&window), [1, 2, 3]);
}

#[test]
fn a_tool_exchange_is_shown_with_its_calls_and_results() {
    let history = [
        message(1, Role::User, "q"),
        calling(2, &["a", "b"]),
        result(3, "a"),
        result(4, "b"),
        message(5, Role::Assistant, "r"),
    ];
    let window = select(&history, &budget(100, 100), &Characters);
    assert_eq!(window.messages, history);
    // Two texts of 1 and two of 5; two calls of id 1, name 7, arguments 2; two ids 1; five messages and two calls of overhead.
    assert_eq!(window.tokens, 2 + 10 + 2 * 10 + 2 + 7 * OVERHEAD);
}

#[test]
fn a_broken_exchange_is_left_out_and_the_older_ones_are_not() {
    let mut history = exchanges(1, 1);
    history.extend([message(3, Role::User, "q"), calling(4, &["a"])]);
    history.extend(exchanges(1, 5));
    let window = select(&history, &budget(100, 30), &Characters);
    assert_eq!(seqs(&window), [1, 2, 5, 6]);
    assert_eq!(window.dropped, [dropped(3, 4, DropReason::BrokenExchange)]);
}

#[test]
fn of_the_newest_exchange_the_valid_beginning_is_shown_even_if_it_is_broken() {
    let history = [
        message(1, Role::User, "q"),
        calling(2, &["a"]),
        result(3, "a"),
        calling(4, &["b", "c"]),
        result(5, "c"),
    ];
    let window = select(&history, &budget(200, 100), &Characters);
    assert_eq!(seqs(&window), [1, 2, 3]);
    assert_eq!(window.dropped, [dropped(4, 5, DropReason::BrokenExchange)]);
}
