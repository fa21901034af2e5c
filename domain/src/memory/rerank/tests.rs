#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::memory::scoring::{Parts, Profile, logistic};

fn id(number: usize) -> MemoryId {
    MemoryId(Uuid::from_u128(number as u128))
}

/// Memories 0, 1, 2, … with these sums, best first.
fn found(sums: &[f64]) -> Vec<Scored> {
    let one = |(number, sum): (usize, &f64)| Scored {
        id: id(number),
        score: logistic(*sum),
        parts: Parts {
            words: Some(*sum),
            ..Parts::default()
        },
        matched: Vec::new(),
    };
    sums.iter().enumerate().map(one).collect()
}

fn order(found: &[Scored]) -> Vec<usize> {
    found.iter().map(|s| s.id.0.as_u128() as usize).collect()
}

fn opinions(values: &[f64]) -> BTreeMap<MemoryId, f64> {
    values
        .iter()
        .enumerate()
        .map(|(n, v)| (id(n), *v))
        .collect()
}

fn reranked(sums: &[f64], values: &[f64]) -> Vec<Scored> {
    let mut found = found(sums);
    rerank(&mut found, &opinions(values));
    found
}

#[test]
fn an_opinion_that_agrees_or_says_nothing_changes_no_place() {
    let sums = [2.0, 1.0, 0.5, -1.0];
    for values in [[0.9, 0.8, 0.5, 0.1], [0.3; 4], [7.0, 5.0, -2.0, -2.5]] {
        let same = reranked(&sums, &values);
        assert_eq!(order(&same), [0, 1, 2, 3], "{values:?}");
        assert!(same.iter().all(|s| s.parts.rerank == Some(0.0)));
    }
}

#[test]
fn of_memories_that_answer_alike_ours_come_in_our_order() {
    let values = [0.01, 0.95, 0.01, 0.95, 0.02];
    assert_eq!(
        order(&reranked(&[3.0, 2.5, 2.0, 1.0, 0.0], &values)),
        [1, 3, 0, 2, 4]
    );
    // What we are much surer of stands before what the model likes a little better.
    let close = [0.60, 0.61, 0.10];
    assert_eq!(order(&reranked(&[6.0, 1.0, 0.5], &close)), [0, 1, 2]);
}

#[test]
fn what_was_not_judged_keeps_its_place() {
    let mut found = found(&[4.0, 3.0, 2.0, 1.0, 0.0]);
    let untouched = found[1].clone();
    let some = BTreeMap::from([(id(0), -3.0), (id(2), 1.0), (id(3), 5.0), (id(77), 9.0)]);
    rerank(&mut found, &some);
    assert_eq!(order(&found), [3, 1, 2, 0, 4]);
    assert_eq!(found[1], untouched);
    assert_eq!(found[4].parts.rerank_score, None);
    assert_eq!(found[0].parts.rerank_score, Some(5.0));
}

#[test]
fn nothing_found_or_one_alone_stays_as_it_is() {
    rerank(&mut [], &opinions(&[1.0]));
    let one = reranked(&[0.3], &[0.5]);
    assert_eq!(one[0].score.to_bits(), logistic(0.3).to_bits());
}

/// Sums, best first, and as many opinions.
fn judged(values: impl Strategy<Value = f64>) -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    let both = proptest::collection::vec((-8.0..8.0_f64, values), 0..40);
    both.prop_map(|both| {
        let (mut sums, values): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
        sums.sort_by(|a, b| b.total_cmp(a));
        (sums, values)
    })
}

proptest! {
    #[test]
    fn the_scores_stay_on_their_places_and_the_parts_make_them_again((sums, values) in judged(any::<f64>().prop_filter("finite", |v| v.is_finite()))) {
        let before = found(&sums);
        let after = reranked(&sums, &values);
        for (place, (was, is)) in before.iter().zip(&after).enumerate() {
            prop_assert_eq!(was.score.to_bits(), is.score.to_bits());
            prop_assert!((is.parts.score(Profile::Hybrid) - is.score).abs() < 1e-9, "{}", place);
        }
        let mut all = order(&after);
        all.sort_unstable();
        prop_assert_eq!(all, (0..sums.len()).collect::<Vec<_>>());
    }

    #[test]
    fn a_memory_of_which_the_model_alone_is_sure_comes_first((sums, _) in judged(Just(0.0)), which in any::<prop::sample::Index>()) {
        prop_assume!(sums.len() > 1);
        let sure = which.index(sums.len());
        let mut values = vec![0.02; sums.len()];
        values[sure] = 0.97;
        prop_assert_eq!(order(&reranked(&sums, &values))[0], sure);
    }

    #[test]
    fn the_scale_of_a_model_does_not_matter((sums, values) in judged(-8.0..8.0_f64), factor in 0.1..50.0_f64, shift in -40.0..40.0_f64) {
        // Outside 0–1, so that they are taken as log-odds.
        let scaled = |values: &[f64], factor: f64, shift: f64| -> Vec<f64> { values.iter().map(|v| 100.0 + shift + factor * v).collect() };
        let plain = order(&reranked(&sums, &scaled(&values, 1.0, 0.0)));
        let other = order(&reranked(&sums, &scaled(&values, factor, shift)));
        prop_assert_eq!(&plain, &other);
        let squashed: Vec<f64> = values.iter().map(|v| logistic(*v)).collect();
        let squashed = order(&reranked(&sums, &squashed));
        prop_assert_eq!(plain, squashed);
    }
}
