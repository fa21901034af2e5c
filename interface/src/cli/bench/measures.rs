//! Measures of a ranking against the evidence, means over questions.

use std::collections::{BTreeMap, BTreeSet};

/// The depths at which recall, all and hit are measured.
const DEPTHS: [usize; 3] = [5, 10, 20];

/// The depth of nDCG.
const GAIN_DEPTH: usize = 10;

/// The names of the measures, in the order of a table.
pub(super) const NAMES: [&str; 11] = [
    "recall@5",
    "recall@10",
    "recall@20",
    "all@5",
    "all@10",
    "all@20",
    "hit@5",
    "hit@10",
    "hit@20",
    "mrr",
    "ndcg@10",
];

/// The measures of one question, or their means, in the order of [`NAMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measures([f64; NAMES.len()]);

impl Measures {
    /// Of a ranking, best first and without repetition, against evidence that is not empty.
    ///
    /// recall@k is the share of the evidence among the first k, all@k is 1 when all of it is there, hit@k when any is; MRR is 1 divided by the
    /// rank of the first evidence, 0 without; nDCG has binary gains and a discount of log2(rank + 1).
    pub(super) fn of(ranked: &[&str], evidence: &BTreeSet<&str>) -> Self {
        let found: Vec<bool> = ranked.iter().map(|id| evidence.contains(id)).collect();
        let mut values = [0.0; NAMES.len()];
        for (at, depth) in DEPTHS.into_iter().enumerate() {
            let there = found.iter().take(depth).filter(|f| **f).count();
            values[at] = there as f64 / evidence.len() as f64;
            values[3 + at] = f64::from(u8::from(there == evidence.len()));
            values[6 + at] = f64::from(u8::from(there > 0));
        }
        values[9] = found
            .iter()
            .position(|f| *f)
            .map_or(0.0, |at| 1.0 / (at + 1) as f64);
        let discount = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
        let gained: f64 = (0..GAIN_DEPTH.min(found.len()))
            .filter(|rank| found[*rank])
            .map(discount)
            .sum();
        let best: f64 = (0..GAIN_DEPTH.min(evidence.len())).map(discount).sum();
        values[10] = gained / best;
        Self(values)
    }

    /// The means; none of nothing.
    pub(super) fn means(all: &[Self]) -> Option<Self> {
        if all.is_empty() {
            return None;
        }
        let mut sums = [0.0; NAMES.len()];
        for one in all {
            for (sum, value) in sums.iter_mut().zip(one.0) {
                *sum += value;
            }
        }
        Some(Self(sums.map(|sum| sum / all.len() as f64)))
    }

    /// With their names.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, f64)> {
        NAMES.into_iter().zip(self.0)
    }

    /// As a map, for JSON.
    pub(super) fn map(&self) -> BTreeMap<&'static str, f64> {
        self.named().collect()
    }
}

/// How well a number tells `positive` from `negative`: the chance that one of the first has a higher one than one of the second, equal ones
/// counted half. 0.5 is chance, none when either is empty.
pub(super) fn auroc(positive: &[f64], negative: &[f64]) -> Option<f64> {
    if positive.is_empty() || negative.is_empty() {
        return None;
    }
    let mut all: Vec<(f64, bool)> = positive
        .iter()
        .map(|v| (*v, true))
        .chain(negative.iter().map(|v| (*v, false)))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut won) = (0.0, 0.0);
    for same in all.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let of_positive = same.iter().filter(|(_, positive)| *positive).count() as f64;
        let of_negative = same.len() as f64 - of_positive;
        won += of_positive * (below + of_negative / 2.0);
        below += of_negative;
    }
    Some(won / (positive.len() as f64 * negative.len() as f64))
}

/// The smallest value that at least this share of them does not exceed (nearest rank); none of nothing.
pub(super) fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn measured(ranked: &[&str], evidence: &[&str]) -> BTreeMap<&'static str, f64> {
        Measures::of(ranked, &evidence.iter().copied().collect()).map()
    }

    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }

    #[test]
    fn two_of_three_evidences_at_ranks_two_and_seven_are_measured_as_by_hand() {
        let ranked = ["a", "E1", "b", "c", "d", "e", "E2", "f"];
        let m = measured(&ranked, &["E1", "E2", "E3"]);
        assert_close(m["recall@5"], 1.0 / 3.0);
        assert_close(m["recall@10"], 2.0 / 3.0);
        assert_close(m["recall@20"], 2.0 / 3.0);
        assert_eq!((m["all@5"], m["all@10"], m["all@20"]), (0.0, 0.0, 0.0));
        assert_eq!((m["hit@5"], m["hit@10"], m["hit@20"]), (1.0, 1.0, 1.0));
        assert_close(m["mrr"], 0.5);
        // (1/log2(3) + 1/log2(8)) / (1/log2(2) + 1/log2(3) + 1/log2(4))
        assert_close(
            m["ndcg@10"],
            0.964_263_086_904_790_7 / 2.130_929_753_571_457_4,
        );
    }

    #[test]
    fn evidence_beyond_a_depth_counts_from_the_next_depth_on() {
        let ranked: Vec<String> = (0..25).map(|n| n.to_string()).collect();
        let ranked: Vec<&str> = ranked.iter().map(String::as_str).collect();
        let m = measured(&ranked, &["10", "19"]);
        assert_eq!((m["recall@10"], m["recall@20"]), (0.0, 1.0));
        assert_eq!((m["all@20"], m["hit@10"], m["ndcg@10"]), (1.0, 0.0, 0.0));
        assert_close(m["mrr"], 1.0 / 11.0);
        assert_close(measured(&ranked, &["24"])["recall@20"], 0.0);
    }

    #[test]
    fn more_evidence_than_the_depth_of_the_gain_can_still_be_ranked_perfectly() {
        let ranked: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        let ranked: Vec<&str> = ranked.iter().map(String::as_str).collect();
        let m = measured(&ranked, &ranked);
        assert_close(m["ndcg@10"], 1.0);
        assert_close(m["recall@10"], 10.0 / 12.0);
    }

    #[test]
    fn nothing_recalled_is_nothing_found() {
        assert!(measured(&[], &["E"]).values().all(|v| *v == 0.0));
        assert_eq!(Measures::means(&[]), None);
    }

    #[test]
    fn means_are_over_questions() {
        let one = Measures::of(&["E"], &BTreeSet::from(["E"]));
        let none = Measures::of(&[], &BTreeSet::from(["E"]));
        let means = Measures::means(&[one, none, none, none]).unwrap();
        assert!(means.named().all(|(_, v)| (v - 0.25).abs() < 1e-12));
    }

    #[test]
    fn auroc_is_the_share_of_pairs_in_order_with_ties_by_half() {
        assert_eq!(auroc(&[3.0, 2.0], &[1.0, 0.0]), Some(1.0));
        assert_eq!(auroc(&[0.0], &[1.0]), Some(0.0));
        assert_eq!(auroc(&[1.0, 1.0], &[1.0]), Some(0.5));
        // Pairs: 3>2, 3>1, 1<2, 1=1.
        assert_eq!(auroc(&[3.0, 1.0], &[2.0, 1.0]), Some(2.5 / 4.0));
        assert_eq!(auroc(&[], &[1.0]), None);
    }

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 0.5), Some(50.0));
        assert_eq!(percentile(&values, 0.95), Some(95.0));
        assert_eq!(percentile(&[7.0], 0.95), Some(7.0));
        assert_eq!(percentile(&[], 0.5), None);
    }
}
