//! What can be said of each entry with respect to a question: the features that profile "hybrid" weighs.
//!
//! All are arrays by slot. What depends on the whole memory (means, deviations, frequencies) counts the eligible entries alone, and is summed in
//! whole numbers, so that it does not depend on the order in which entries came.

use super::rows::{NONE, Row};
use super::search::{Eligible, Query};
use super::vectors::product;
use super::{Posting, View};
use crate::memory::analysis::is_ideographic;
use crate::memory::cues::{self, Cues};
use crate::memory::lexical::{self, LEAST_DOCUMENTS};
use crate::memory::speakers::Names;
use crate::memory::when::{self, Span};

/// How far the neighbourhood of an entry reaches: so many chunks before and after it.
const NEIGHBOURHOOD: Reach = Reach {
    before: 2,
    after: 2,
};
/// The entry alone.
const ALONE: Reach = Reach {
    before: 0,
    after: 0,
};

/// A question as ranking takes it apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// Its terms, without the names of speakers where other terms are left.
    pub(super) terms: Vec<String>,
    /// The one speaker it names, if it names just one.
    pub(super) speaker: Option<u32>,
    /// Terms of that name.
    pub(super) name: Vec<String>,
    /// The terms of all speakers' names, when the question wants a name.
    pub(super) names: Vec<String>,
    /// The times it names.
    pub(super) spans: Vec<Span>,
    /// What it wants.
    pub(super) wanted: Cues,
    /// It wants several things.
    pub(super) several: bool,
    /// It is written with Han, kana or hangul.
    pub(super) ideographic: bool,
}

impl Asked {
    /// A question to these memories.
    pub(super) fn of(view: &View<'_>, query: &Query, eligible: &Eligible) -> Self {
        let speakers = view.speakers();
        let names = Names::new(speakers.iter().map(|(_, name)| name));
        let who = names.named(&query.text);
        let bare = names.without(&query.text);
        let mut terms = lexical::query_terms(&bare);
        if terms.is_empty() {
            terms = lexical::query_terms(&query.text);
        }
        let speaker = match who.iter().copied().collect::<Vec<_>>()[..] {
            [only] => speakers.get(only).copied(),
            _ => None,
        };
        let wanted = cues::wanted(&bare);
        let all = speakers.iter().filter(|_| wanted.name);
        let latest = eligible.newest.unwrap_or(query.moment.now);
        Self {
            terms,
            speaker: speaker.map(|(number, _)| number),
            name: speaker.map_or_else(Vec::new, |(_, name)| lexical::query_terms(name)),
            names: lexical::query_terms(&all.map(|(_, name)| *name).collect::<Vec<_>>().join(" ")),
            spans: when::spans(&query.text, query.moment.now, latest),
            wanted,
            several: cues::wants_several(&bare),
            ideographic: query.text.contains(is_ideographic),
        }
    }
}

/// Which chunks around an entry count as its text.
#[derive(Clone, Copy, Debug)]
struct Reach {
    before: u32,
    after: u32,
}

/// Steps through the order of a session, `steps` at most.
fn walk(rows: &[Row], from: u32, steps: u32, to: fn(&Row) -> u32) -> impl Iterator<Item = u32> {
    let next = move |slot: &u32| Some(to(&rows[*slot as usize])).filter(|n| *n != NONE);
    std::iter::successors(next(&from), next).take(steps as usize)
}

/// BM25 of each eligible entry taken together with the chunks around it. Frequencies are those of such texts.
fn bm25(view: &View<'_>, terms: &[String], eligible: &Eligible, reach: Reach) -> Vec<f64> {
    let rows = view.rows();
    let slots = rows.len();
    let alone = reach.before == 0 && reach.after == 0;
    let mut lens = vec![0_u32; slots];
    let mut total = 0_u64;
    for (slot, row) in (0..).zip(rows).filter(|(slot, _)| eligible.admits(*slot)) {
        let mut len = row.len;
        if !alone {
            let around = walk(rows, slot, reach.before, |r| r.previous).chain(walk(
                rows,
                slot,
                reach.after,
                |r| r.next,
            ));
            len += around
                .filter(|other| eligible.admits(*other))
                .map(|other| rows[other as usize].len)
                .sum::<u32>();
        }
        lens[slot as usize] = len;
        total += u64::from(len);
    }
    let stats = lexical::CorpusStats {
        documents: eligible.stats.documents,
        total_len: total,
    };
    let average = stats.average_len();
    let mut sums = vec![0.0_f64; slots];
    let mut counts = vec![0_u32; slots];
    let mut touched: Vec<u32> = Vec::new();
    for term in terms {
        touched.clear();
        let mut add = |slot: u32, count: u32| {
            if eligible.admits(slot) {
                let held = &mut counts[slot as usize];
                if *held == 0 {
                    touched.push(slot);
                }
                *held += count;
            }
        };
        for Posting { slot, count } in view.postings(term).filter(|p| eligible.admits(p.slot)) {
            add(slot, count);
            if !alone {
                // It is behind those that reach forward to it, and before those that reach back.
                walk(rows, slot, reach.before, |r| r.next).for_each(|other| add(other, count));
                walk(rows, slot, reach.after, |r| r.previous).for_each(|other| add(other, count));
            }
        }
        let idf = lexical::idf(stats.documents, touched.len() as u64);
        for &slot in &touched {
            let slot = slot as usize;
            sums[slot] += lexical::weight(idf, counts[slot], lens[slot], average);
            counts[slot] = 0;
        }
    }
    sums
}

/// Mean and deviation of a feature over the eligible entries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Scale {
    pub(super) mean: f64,
    pub(super) deviation: f64,
}

/// Parts of one in which sums are counted: whole numbers add up to the same whatever their order.
const GRAIN: f64 = (1_u32 << 24) as f64;

impl Scale {
    /// Of some cosines, and of as many more as are missing to [`LEAST_DOCUMENTS`] that deviate by [`DEVIATION`] from the same mean: one or two
    /// entries have no deviation of their own.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let (mut sum, mut squares, mut count) = (0_i128, 0_i128, 0_u64);
        for value in values {
            sum += i128::from((value * GRAIN).round() as i64);
            squares += i128::from((value * value * GRAIN).round() as i64);
            count += 1;
        }
        let (mut sum, mut squares) = (sum as f64 / GRAIN, squares as f64 / GRAIN);
        let mut all = count as f64;
        let missing = LEAST_DOCUMENTS.saturating_sub(count) as f64;
        let mean = sum / all.max(1.0);
        sum += missing * mean;
        squares += missing * (mean * mean + DEVIATION * DEVIATION);
        all += missing;
        let mean = sum / all;
        Self {
            mean,
            deviation: (squares / all - mean * mean).max(0.0).sqrt(),
        }
    }

    /// By how many deviations a value lies above the mean; 0 where nothing deviates.
    pub(super) fn standard(&self, value: f64) -> f64 {
        if self.deviation > LEAST_DEVIATION {
            (value - self.mean) / self.deviation
        } else {
            0.0
        }
    }
}

/// What is less is the grain of the sums.
const LEAST_DEVIATION: f64 = 1e-3;
/// How much cosines of one question deviate; of a few entries it cannot be seen. Seen with small sentence models.
const DEVIATION: f64 = 0.1;

/// Mean of the two best values in the session of each entry; of one that belongs to none its own.
fn best_in_session(view: &View<'_>, values: &[f64], eligible: &Eligible) -> Vec<f64> {
    let rows = view.rows();
    let mut best = vec![(f64::NEG_INFINITY, f64::NEG_INFINITY); view.sessions()];
    let of = |slot: usize| rows[slot].session;
    let counted = || (0..values.len()).filter(|slot| eligible.admits(*slot as u32));
    for slot in counted().filter(|slot| of(*slot) != NONE) {
        let (first, second) = &mut best[of(slot) as usize];
        if values[slot] > *first {
            *second = *first;
            *first = values[slot];
        } else if values[slot] > *second {
            *second = values[slot];
        }
    }
    let mut out = vec![0.0; values.len()];
    for slot in counted() {
        out[slot] = match best.get(of(slot) as usize) {
            Some(&(first, second)) if second > f64::NEG_INFINITY => f64::midpoint(first, second),
            Some(&(first, _)) => first,
            None => values[slot],
        };
    }
    out
}

/// Features from the embeddings.
#[derive(Debug)]
pub(super) struct Dense {
    /// Cosine with the question; none where there is no vector.
    pub(super) cosine: Vec<Option<f64>>,
    /// How much of the way from the mean cosine to 1 it is.
    pub(super) lift: Vec<f64>,
    /// The cosine, standardised over the entries in the same script with a vector of the same model.
    pub(super) own: Vec<f64>,
    /// That with the neighbours', which count half each, standardised.
    pub(super) around: Vec<f64>,
    /// Mean of the two greatest in the session.
    pub(super) session: Vec<f64>,
}

impl Dense {
    /// None without a vector to compare with. Of several models an entry is compared by the first that has embedded it. Each model and each script has
    /// cosines on a scale of its own.
    pub(super) fn of(view: &View<'_>, query: &Query, eligible: &Eligible) -> Option<Self> {
        let rows = view.rows();
        let (mut own, mut lift) = (vec![0.0; rows.len()], vec![0.0; rows.len()]);
        let cosine = compare(view, query, eligible, |compared| {
            let all = Scale::of(compared.iter().map(|(_, value)| *value));
            for ideographic in [false, true] {
                let script = |slot: u32| rows[slot as usize].ideographic == ideographic;
                let alike = compared.iter().filter(|(slot, _)| script(*slot));
                let scale = Scale::of(alike.clone().map(|(_, value)| *value));
                for &(slot, value) in alike {
                    own[slot as usize] = scale.standard(value);
                    lift[slot as usize] =
                        (value - all.mean) / (1.0 - all.mean).max(LEAST_DEVIATION);
                }
            }
        })?;
        let mut around = vec![0.0; rows.len()];
        for (slot, row) in rows.iter().enumerate() {
            let of = |other: u32| own.get(other as usize).copied();
            let (mut sum, mut weight) = (own[slot], 1.0);
            for value in [of(row.previous), of(row.next)].into_iter().flatten() {
                sum += 0.5 * value;
                weight += 0.5;
            }
            around[slot] = sum / weight;
        }
        let there = || (0..rows.len()).filter(|slot| cosine[*slot].is_some());
        let scale = Scale::of(there().map(|slot| around[slot]));
        for slot in there() {
            around[slot] = scale.standard(around[slot]);
        }
        let session = best_in_session(view, &own, eligible);
        Some(Self {
            cosine,
            lift,
            own,
            around,
            session,
        })
    }
}

/// The cosine of each eligible entry with the question; none without a vector to compare with.
pub(super) fn cosines(
    view: &View<'_>,
    query: &Query,
    eligible: &Eligible,
) -> Option<Vec<Option<f64>>> {
    compare(view, query, eligible, |_| {})
}

/// Compares by each model in turn what no one before has embedded, and gives each model's cosines to `each`.
fn compare(
    view: &View<'_>,
    query: &Query,
    eligible: &Eligible,
    mut each: impl FnMut(&[(u32, f64)]),
) -> Option<Vec<Option<f64>>> {
    let mut out: Vec<Option<f64>> = vec![None; view.rows().len()];
    let mut any = false;
    for (model, asked) in &query.vectors {
        let Some(vectors) = view.vectors(model) else {
            continue;
        };
        if vectors.dimensions() != asked.len() {
            continue;
        }
        let length = product(asked, asked).sqrt();
        let mut compared = Vec::with_capacity(vectors.len());
        for (slot, vector, own) in vectors.measured() {
            if eligible.admits(slot) && out[slot as usize].is_none() {
                let both = length * own;
                let value = if both > 0.0 {
                    f64::from(product(asked, vector) / both).clamp(-1.0, 1.0)
                } else {
                    0.0
                };
                out[slot as usize] = Some(value);
                compared.push((slot, value));
            }
        }
        any |= !compared.is_empty();
        each(&compared);
    }
    any.then_some(out)
}

/// Features from the words. BM25 is counted in units of what a term weighs that one entry holds once: unlike a deviation that is sensible where
/// one entry matches, or where there is one entry.
#[derive(Debug)]
pub(super) struct Lexical {
    /// BM25 divided by its maximum for the question.
    pub(super) share: Vec<f64>,
    /// BM25.
    pub(super) own: Vec<f64>,
    /// BM25 of the entry with its neighbours.
    pub(super) around: Vec<f64>,
    /// Mean of the two greatest BM25 in the session.
    pub(super) session: Vec<f64>,
    /// BM25 of the one before where that asks.
    pub(super) answers: Vec<f64>,
    /// How rare each term of the question is.
    pub(super) idf: Vec<f64>,
}

impl Lexical {
    pub(super) fn of(view: &View<'_>, terms: &[String], eligible: &Eligible) -> Self {
        let rows = view.rows();
        let documents = eligible.stats.documents;
        let rarity = |term: &String| {
            let holders = view.postings(term).filter(|p| eligible.admits(p.slot));
            lexical::idf(documents, holders.count() as u64)
        };
        let idf: Vec<f64> = terms.iter().map(rarity).collect();
        let maximum: f64 = idf.iter().map(|idf| lexical::greatest_weight(*idf)).sum();
        let unit = lexical::greatest_weight(lexical::idf(documents, 1));
        let mut own = bm25(view, terms, eligible, ALONE);
        let mut around = bm25(view, terms, eligible, NEIGHBOURHOOD);
        let share = own.iter().map(|sum| sum / maximum.max(1e-9)).collect();
        for value in own.iter_mut().chain(&mut around) {
            *value /= unit;
        }
        let answers = rows
            .iter()
            .map(|row| match rows.get(row.previous as usize) {
                Some(before) if before.question => own[row.previous as usize],
                _ => 0.0,
            })
            .collect();
        Self {
            share,
            session: best_in_session(view, &own, eligible),
            own,
            around,
            answers,
            idf,
        }
    }
}

/// How many names each entry holds besides those of speakers; empty when the question wants none.
pub(super) fn other_names(view: &View<'_>, asked: &Asked) -> Vec<u32> {
    if !asked.wanted.name {
        return Vec::new();
    }
    let mut names: Vec<u32> = view.rows().iter().map(|row| row.names).collect();
    for term in &asked.names {
        for posting in view.postings(term) {
            let held = &mut names[posting.slot as usize];
            *held = held.saturating_sub(posting.count);
        }
    }
    names
}

/// Which entries are by the one person that the question names, or, where nobody is known to have said them, name that person.
pub(super) fn by_the_named(view: &View<'_>, asked: &Asked) -> Vec<bool> {
    let Some(speaker) = asked.speaker else {
        return Vec::new();
    };
    let rows = view.rows();
    let mut out: Vec<bool> = rows.iter().map(|row| row.speaker == speaker).collect();
    for term in &asked.name {
        for posting in view.postings(term) {
            out[posting.slot as usize] |= rows[posting.slot as usize].speaker == NONE;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mean_and_deviation_are_those_of_the_values_once_there_are_enough() {
        let scale = Scale::of((0..100).map(f64::from));
        assert!((scale.mean - 49.5).abs() < 1e-6);
        assert!((scale.deviation - 28.866_07).abs() < 1e-4);
        let two = Scale::of([0.7, 0.1].into_iter());
        assert!((two.mean - 0.4).abs() < 1e-6);
        assert!(two.standard(0.7) > 2.0 && two.standard(0.7) < 3.0);
        assert!(Scale::of([0.7].into_iter()).standard(0.7).abs() < 1e-3);
    }

    proptest! {
        #[test]
        fn a_scale_does_not_depend_on_the_order(values in prop::collection::vec(-50.0..50.0_f64, 0..60)) {
            let mut other = values.clone();
            other.reverse();
            let scale = Scale::of(values.into_iter());
            prop_assert_eq!(scale, Scale::of(other.into_iter()));
            prop_assert!(scale.standard(1.0).is_finite());
        }
    }
}
