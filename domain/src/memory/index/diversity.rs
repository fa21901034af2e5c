//! The order in which the best are told: of one session not everything first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::rows::NONE;

/// What an entry loses for each better one of its session, as a share of the distance between the best sum and the [`SPREAD`]th: what is told should
/// come from several places.
const DIVERSITY: f64 = 0.04;
const SPREAD: usize = 20;

/// Puts the best ones, with their sums and in their order, into that in which they are told, each with what it loses for better ones of its session.
pub(super) fn diverse(best: &[(u32, f64)], session: impl Fn(u32) -> u32) -> Vec<(u32, f64)> {
    let [(_, first), .., (_, last)] = best[..best.len().min(SPREAD)] else {
        return best.iter().map(|(slot, _)| (*slot, 0.0)).collect();
    };
    let each = DIVERSITY * (first - last);
    let mut told: HashMap<u32, u32> = HashMap::new();
    // The first of equal ones is the one with the lower id.
    let mut left: BinaryHeap<(i64, Reverse<usize>)> = (0..best.len())
        .map(|at| (ordered(best[at].1), Reverse(at)))
        .collect();
    let mut out = Vec::with_capacity(best.len());
    while let Some((key, Reverse(at))) = left.pop() {
        let (slot, sum) = best[at];
        let session = session(slot);
        let loss = -each * f64::from(told.get(&session).copied().unwrap_or(0));
        let now = ordered(sum + loss);
        if now < key {
            // Others of its session were told since it was put there; it may not be the next any more.
            left.push((now, Reverse(at)));
            continue;
        }
        out.push((slot, loss));
        if session != NONE {
            *told.entry(session).or_default() += 1;
        }
    }
    out
}

/// A whole number in the order of [`f64::total_cmp`].
fn ordered(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_one_session_not_everything_is_told_first() {
        let best = [(0, 10.0), (1, 9.9), (2, 9.8), (3, 9.75), (4, 0.0)];
        let told = diverse(&best, |slot| if slot == 3 { 7 } else { 5 });
        let slots: Vec<u32> = told.iter().map(|(slot, _)| *slot).collect();
        assert_eq!(slots, [0, 3, 1, 2, 4]);
        assert!((told[2].1 + 0.4).abs() < 1e-9 && (told[4].1 + 1.2).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn each_is_the_best_of_what_is_left(sums in prop::collection::vec((-4.0..4.0_f64, 0_u32..4), 0..30)) {
            let mut best: Vec<(u32, f64)> = (0..).zip(sums.iter().map(|s| s.0)).collect();
            best.sort_by(|a, b| b.1.total_cmp(&a.1));
            let session = |slot: u32| match sums[slot as usize].1 { 0 => NONE, n => n };
            let told = diverse(&best, session);
            prop_assert_eq!(told.len(), best.len());
            let value = |(slot, loss): (u32, f64)| sums[slot as usize].0 + loss;
            let spread = best.first().map_or(0.0, |b| b.1) - best[..best.len().min(SPREAD)].last().map_or(0.0, |b| b.1);
            for (at, &(slot, loss)) in told.iter().enumerate() {
                let before = told[..at].iter().filter(|t| session(t.0) == session(slot) && session(slot) != NONE);
                prop_assert!((loss + DIVERSITY * spread * before.count() as f64).abs() < 1e-12);
            }
            prop_assert!(told.windows(2).all(|w| value(w[0]) >= value(w[1])));
        }

        #[test]
        fn whole_numbers_are_ordered_as_their_values(one in any::<f64>(), other in any::<f64>()) {
            prop_assert_eq!(ordered(one).cmp(&ordered(other)), one.total_cmp(&other));
        }
    }
}
