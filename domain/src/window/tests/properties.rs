use proptest::prelude::*;

use super::*;
use crate::session::validate_transcript;
use crate::testing::{transcript, turns};

/// A question and an answer cut to one token each.
const LEAST: usize = 2 * (OVERHEAD + 1);

fn budgets() -> impl Strategy<Value = Budget> {
    prop_oneof![
        (0..60_usize).prop_map(|context| Budget::of(context, 0)),
        (60..4_000_usize).prop_map(|context| Budget::of(context, 20)),
        (0..500_usize, 0..500_usize).prop_map(|(history, exchange)| budget(history, exchange)),
    ]
}

fn cost(messages: &[Message], counter: &dyn TokenCounter) -> usize {
    let count = |text: &str| counter.count(text);
    messages
        .iter()
        .map(|m| {
            let calls: usize = m
                .tool_calls
                .iter()
                .map(|c| 4 + count(&c.id) + count(&c.name) + count(&c.arguments))
                .sum();
            4 + calls
                + count(&m.content)
                + m.name.as_deref().map_or(0, count)
                + m.tool_call_id.as_deref().map_or(0, count)
        })
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_window_is_valid_and_within_its_budget(
        turns in turns(8, 600),
        first in prop_oneof![Just(1), 2..50_i64],
        skipped in any::<prop::sample::Index>(),
        budget in budgets(),
    ) {
        let (history, _) = transcript(&turns, first);
        let suffix = &history[skipped.index(history.len() + 1)..];
        for counter in [&EstimateCounter as &dyn TokenCounter, &Characters] {
            let window = select(suffix, &budget, counter);
            prop_assert_eq!(validate_transcript(&window.messages), Ok(()));
            prop_assert_eq!(window.tokens, cost(&window.messages, counter));
            prop_assert!(window.tokens <= budget.history.max(LEAST));
            prop_assert!(window.messages.first().is_none_or(|m| begins(m) || m.seq == 1));
            prop_assert!(window.messages.is_sorted_by_key(|m| m.seq));
        }
    }

    #[test]
    fn the_newest_exchange_is_always_there_and_each_is_whole_but_for_what_is_told(turns in turns(8, 600), budget in budgets()) {
        let (history, _) = transcript(&turns, 1);
        let window = select(&history, &budget, &EstimateCounter);
        if let Some(newest) = history.iter().rfind(|m| begins(m)) {
            prop_assert!(window.messages.iter().any(|m| m.seq == newest.seq));
        }
        let mut told: Vec<i64> = window.dropped.iter().flat_map(|d| d.from_seq..=d.to_seq).collect();
        told.extend(seqs(&window));
        told.sort_unstable();
        prop_assert_eq!(told, (1..=history.len() as i64).collect::<Vec<_>>(), "each message is shown or told of, once");
        let left_out = window.dropped.iter().filter(|d| d.reason != DropReason::LongExchange);
        for dropped in left_out {
            prop_assert_eq!(dropped.from_seq, 1, "what is left out is the oldest");
            let next = history.iter().find(|m| m.seq > dropped.to_seq);
            prop_assert!(next.is_some_and(begins), "and ends where an exchange begins");
        }
        for message in &window.messages {
            let stored = &history[message.seq as usize - 1];
            let same = Message { content: stored.content.clone(), ..message.clone() };
            prop_assert_eq!(&same, stored, "nothing but the content is ever changed");
            prop_assert_eq!(message.content != stored.content, window.cut.contains(&message.seq));
        }
    }

    #[test]
    fn reading_further_back_changes_nothing_once_the_window_is_full(
        turns in turns(8, 300),
        read in any::<prop::sample::Index>(),
        budget in budgets(),
    ) {
        let (history, _) = transcript(&turns, 1);
        let part = select(&history[read.index(history.len() + 1)..], &budget, &EstimateCounter);
        let all = select(&history, &budget, &EstimateCounter);
        if part.full && !part.messages.is_empty() {
            prop_assert_eq!(part.messages, all.messages);
        } else {
            prop_assert!(all.messages.ends_with(&part.messages));
        }
    }

    #[test]
    fn a_greater_budget_never_shows_fewer_messages(turns in turns(8, 300), history in 20..400_usize, more in 0..200_usize) {
        let (messages, _) = transcript(&turns, 1);
        let small = select(&messages, &budget(history, 100), &EstimateCounter);
        let large = select(&messages, &budget(history + more, 100), &EstimateCounter);
        prop_assert!(large.messages.len() >= small.messages.len());
    }

    #[test]
    fn no_history_however_broken_makes_an_invalid_window(
        turns in turns(6, 100),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        budget in budgets(),
    ) {
        let (mut messages, _) = transcript(&turns, 1);
        for index in lost {
            if !messages.is_empty() {
                messages.remove(index.index(messages.len()));
            }
        }
        let window = select(&messages, &budget, &EstimateCounter);
        prop_assert_eq!(validate_transcript(&window.messages), Ok(()));
    }
}
