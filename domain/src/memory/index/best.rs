//! The best of many, in order.

use super::View;

/// Entries with a key each, the greatest first, equal ones by id; put in order only as far as they are asked for.
#[derive(Debug)]
pub(super) struct BestFirst {
    /// No one of the rest is better than one of these.
    best: Vec<(u32, f64)>,
    rest: Vec<(u32, f64)>,
    /// Up to here the best are in order.
    sorted: usize,
    at: usize,
}

/// Whether one comes before another.
fn order(view: &View<'_>) -> impl Fn(&(u32, f64), &(u32, f64)) -> std::cmp::Ordering {
    |a, b| {
        let better = b.1.total_cmp(&a.1);
        better.then_with(|| view.entry(a.0).id.cmp(&view.entry(b.0).id))
    }
}

impl BestFirst {
    /// Of all these, of whom so many will be asked for, or a few more.
    pub(super) fn of(
        view: &View<'_>,
        all: impl Iterator<Item = (u32, f64)>,
        wanted: usize,
    ) -> Self {
        let wanted = wanted.max(1);
        let mut best: Vec<(u32, f64)> = Vec::with_capacity(2 * wanted);
        let mut rest = Vec::new();
        let mut least = f64::NEG_INFINITY;
        for (slot, key) in all {
            if key < least {
                rest.push((slot, key));
                continue;
            }
            best.push((slot, key));
            if best.len() == 2 * wanted {
                best.select_nth_unstable_by(wanted - 1, order(view));
                rest.extend(best.drain(wanted..));
                least = best[wanted - 1].1;
            }
        }
        Self {
            best,
            rest,
            sorted: 0,
            at: 0,
        }
        .settled(view, wanted)
    }

    /// Leaves so many among the best.
    fn settled(mut self, view: &View<'_>, wanted: usize) -> Self {
        if self.best.len() > wanted {
            self.best.select_nth_unstable_by(wanted - 1, order(view));
            self.rest.extend(self.best.drain(wanted..));
        }
        self
    }

    /// Those that were wanted, in no order.
    pub(super) fn wanted(&self) -> impl Iterator<Item = u32> {
        self.best.iter().map(|(slot, _)| *slot)
    }

    /// Gives those that were wanted other keys, before any was asked for.
    pub(super) fn rekey(&mut self, key: impl Fn(u32) -> f64) {
        for (slot, held) in &mut self.best {
            *held = key(*slot);
        }
    }

    pub(super) fn next(&mut self, view: &View<'_>) -> Option<(u32, f64)> {
        if self.at == self.sorted {
            if self.at == self.best.len() {
                let left = self.rest.len().saturating_sub(self.best.len().max(64));
                if left > 0 {
                    let order = order(view);
                    self.rest.select_nth_unstable_by(left, |a, b| order(b, a));
                }
                self.best.extend(self.rest.drain(left..));
            }
            self.best[self.sorted..].sort_unstable_by(order(view));
            self.sorted = self.best.len();
        }
        let next = self.best.get(self.at).copied();
        self.at += usize::from(next.is_some());
        next
    }

    pub(super) fn holds(&self, slot: u32) -> bool {
        let all = self.best.iter().chain(&self.rest);
        all.into_iter().any(|(held, _)| *held == slot)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::super::OwnerIndex;
    use super::*;
    use crate::memory::testing::memory;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_greatest_comes_first_and_of_equal_ones_that_with_the_lower_id(
            keys in prop::collection::vec(0_u8..20, 0..400),
            wanted in 0_usize..50,
        ) {
            let many = keys.len() as u128;
            let memories: Vec<_> = (0..many).map(|n| memory(many - n, "tea")).collect();
            let index = OwnerIndex::of(&memories);
            let view = View::of(&index);
            let mut all: Vec<(u32, f64)> = (0..).zip(keys.iter().map(|k| f64::from(*k))).collect();
            let mut best = BestFirst::of(&view, all.iter().copied(), wanted);
            prop_assert!((0..keys.len() as u32).all(|slot| best.holds(slot)));
            all.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
            let told: Vec<_> = std::iter::from_fn(|| best.next(&view)).collect();
            prop_assert_eq!(told, all);
        }
    }
}
