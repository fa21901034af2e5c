//! A second opinion on the order: of a model that reads the question and a memory together, a cross-encoder.
//!
//! It sees the words of both at once, which no feature of ours does, and nothing else: not what was said around a memory, not when, not by whom
//! the question means. So neither order replaces the other. Both judgements are standardised over the memories that were judged, for each model
//! has a scale of its own, and added; reciprocal ranks would throw away how sure either is.
//!
//! Only the order changes. The scores belong to the places: whoever comes to stand on a place has its score. So whether anything is told at all,
//! how many items are, and what a threshold means stay as they were, whatever the scale of the model.

use std::collections::BTreeMap;

use super::index::search::Scored;
use crate::ids::MemoryId;

/// How much the opinion counts against ours. Not fitted, for want of a model to fit it on, but bounded: of n standardised values the greatest and the
/// least are at most √(2n) apart, and one against equals is n/√(n−1) above them, so that from √2 on a memory of which the model alone is sure comes
/// first, from whatever place. Little more than that leaves ours the most to say where the model is not sure.
const WEIGHT: f64 = 1.5;
/// A judgement within 0–1 is held within this of both ends, so that its log-odds are finite.
const MARGIN: f64 = 1e-6;

/// Puts the memories of which there is an opinion in the order of both judgements, on the places that they have among the found; the others stay.
///
/// The found are those of profile "hybrid", best first. An opinion is any finite number, higher for what answers the question better: the model's
/// log-odds, or those squashed to 0–1, which makes no difference.
pub fn rerank(found: &mut [Scored], opinions: &BTreeMap<MemoryId, f64>) {
    let (places, judged): (Vec<usize>, Vec<Scored>) = found
        .iter()
        .enumerate()
        .filter(|(_, scored)| opinions.contains_key(&scored.id))
        .map(|(place, scored)| (place, scored.clone()))
        .unzip();
    let raw: Vec<f64> = judged.iter().map(|scored| opinions[&scored.id]).collect();
    let sums: Vec<f64> = judged.iter().map(|scored| scored.parts.sum()).collect();
    let ours = standardised(&sums);
    let theirs = standardised(&log_odds(&raw));
    let both = |at: usize| ours[at] + WEIGHT * theirs[at];
    let mut order: Vec<usize> = (0..judged.len()).collect();
    order.sort_by(|&one, &other| both(other).total_cmp(&both(one)));
    for (rank, (place, at)) in places.into_iter().zip(order).enumerate() {
        let mut scored = judged[at].clone();
        scored.score = judged[rank].score;
        scored.parts.rerank = Some(sums[rank] - sums[at]);
        scored.parts.rerank_score = Some(raw[at]);
        found[place] = scored;
    }
}

/// Judgements as log-odds: as they are, unless all lie within 0–1.
fn log_odds(raw: &[f64]) -> Vec<f64> {
    if !raw.iter().all(|value| (0.0..=1.0).contains(value)) {
        return raw.to_vec();
    }
    let held = raw.iter().map(|value| value.clamp(MARGIN, 1.0 - MARGIN));
    held.map(|share| (share / (1.0 - share)).ln()).collect()
}

/// With a mean of 0 and a standard deviation of 1; all 0 when they do not differ.
fn standardised(values: &[f64]) -> Vec<f64> {
    let largest = values
        .iter()
        .fold(1.0_f64, |most, value| most.max(value.abs()));
    let count = values.len() as f64;
    // Scaled first: squares of the largest numbers there are would not be numbers any more.
    let mean = values.iter().map(|value| value / largest).sum::<f64>() / count;
    let apart: Vec<f64> = values.iter().map(|value| value / largest - mean).collect();
    let deviation = (apart.iter().map(|value| value * value).sum::<f64>() / count).sqrt();
    if deviation < f64::EPSILON {
        return vec![0.0; values.len()];
    }
    apart.iter().map(|value| value / deviation).collect()
}

#[cfg(test)]
mod tests;
