//! Whether a memory answers a question at all: how strong the evidence is, and what the scores of its entries are then.
//!
//! The sum of features says which entry fits best, not whether it fits. That is told by two things that mean the same for every question and every
//! model: the share of the question's terms that an entry holds, and how far its cosine stands out from the mean.

use super::fusion::Fusion;
use crate::memory::lexical::LEAST_DOCUMENTS;
use crate::memory::scoring::logistic;

/// The evidence is held within this of 0 and of 1, so that its log-odds are finite.
const MARGIN: f64 = 1e-3;
/// How many of the best entries are looked at.
const BEST: usize = 5;

/// Log-odds that the memory answers: `5·coverage + 9·lift − 4.9`, and without embeddings `7.4·coverage − 2.5`. Fitted on questions to the first halves of
/// `LoCoMo` and `MemoryBank`, with `all-MiniLM-L6-v2` and `multilingual-e5-small`, against questions about the next conversation.
const COVERAGE: f64 = 5.0;
const LIFT: f64 = 9.0;
const EVEN: f64 = 4.9;
const COVERAGE_ALONE: f64 = 7.4;
const EVEN_ALONE: f64 = 2.5;
/// Of a question in Han, kana or hangul the share counts so many times: pairs of characters across words never match.
const PAIRS: f64 = 2.0;
/// The share where most of the best are in another script than the question: words cannot meet then.
const FOREIGN: f64 = 0.7;

/// How likely a memory of so many entries answers the question, within 0–1, by the entries that would be told first.
pub(super) fn evidence(fusion: &Fusion<'_>, best: &[u32], entries: u64) -> f64 {
    let best = &best[..best.len().min(BEST)];
    let greatest = best.iter().map(|slot| fusion.coverage(*slot));
    let mut coverage = greatest.fold(0.0, f64::max);
    if fusion.ideographic() {
        coverage = (PAIRS * coverage).min(1.0);
    }
    let alone = COVERAGE_ALONE * coverage - EVEN_ALONE;
    let lift = best.iter().filter_map(|slot| fusion.lift(*slot));
    let odds = match lift.reduce(f64::max) {
        None => alone,
        Some(lift) => {
            let foreign = best.iter().filter(|slot| !fusion.same_script(**slot));
            if foreign.count() * 2 > best.len() {
                coverage = coverage.max(FOREIGN);
            }
            let both = COVERAGE * coverage + LIFT * lift - EVEN;
            // In a small memory nothing stands out from the mean.
            if entries < LEAST_DOCUMENTS {
                both.max(alone)
            } else {
                both
            }
        }
    };
    logistic(odds)
}

/// What is added to every sum of features so that the best entry, whose sum is `best`, scores the evidence.
pub(super) fn base(evidence: f64, best: f64) -> f64 {
    let share = evidence.clamp(MARGIN, 1.0 - MARGIN);
    (share / (1.0 - share)).ln() - best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_entry_scores_the_evidence() {
        for (evidence, best) in [(0.3, 12.0), (0.999, -4.0), (0.001, 0.0)] {
            assert!((logistic(base(evidence, best) + best) - evidence).abs() < 1e-12);
        }
        for evidence in [0.0, 1.0] {
            assert!(base(evidence, 0.0).is_finite());
        }
    }
}
