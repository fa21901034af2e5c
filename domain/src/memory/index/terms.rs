//! What the words of a question have in common with each entry.

use super::postings::Holders;
use super::rows::{NONE, Row};
use super::search::Eligible;
use super::{Posting, View};
use crate::memory::lexical::{self, CorpusStats};

/// How far the neighbourhood of an entry reaches: so many chunks before it and after it.
const REACH: u32 = 2;

/// Steps through the order of a session, [`REACH`] at most.
fn walk(rows: &[Row], from: u32, to: fn(&Row) -> u32) -> impl Iterator<Item = u32> {
    let next = move |slot: &u32| Some(to(&rows[*slot as usize])).filter(|n| *n != NONE);
    std::iter::successors(next(&from), next).take(REACH as usize)
}

/// The terms of a question in the order given, with their holders, and how rare each is among the eligible entries. Sums go in that order, which has
/// to be the same for the same question, so that both stores give the same last digit.
#[derive(Debug)]
pub(super) struct Terms<'v> {
    terms: Vec<(Holders<'v>, f64)>,
    /// What BM25 never reaches: `Σ idf·(k1 + 1)`, terms without a holder among them (B8).
    maximum: f64,
}

impl<'v> Terms<'v> {
    pub(super) fn of(view: &'v View<'_>, terms: &[String], eligible: &Eligible) -> Self {
        let rarity = |term: &String| {
            let holders = view.holders(term);
            let admitted = holders.iter().filter(|p| eligible.admits(p.slot)).count();
            let idf = lexical::idf(eligible.stats.documents, admitted as u64);
            (holders, idf)
        };
        let terms: Vec<_> = terms.iter().map(rarity).collect();
        Self {
            maximum: terms
                .iter()
                .map(|(_, idf)| lexical::greatest_weight(*idf))
                .sum(),
            terms,
        }
    }

    /// BM25 as a share of its maximum.
    pub(super) fn share(&self, bm25: f64) -> f64 {
        bm25 / self.maximum.max(1e-9)
    }

    /// What share of the terms an entry holds, each counted as rare as it is.
    pub(super) fn coverage(&self, slot: u32) -> f64 {
        let held = self.terms.iter().filter(|(term, _)| term.contains(slot));
        let all: f64 = self.terms.iter().map(|(_, idf)| idf).sum();
        held.map(|(_, idf)| idf).sum::<f64>() / all.max(1e-9)
    }

    /// BM25 of each entry by itself.
    pub(super) fn alone(&self, view: &View<'_>, eligible: &Eligible) -> Sums {
        let rows = view.rows();
        let average = eligible.stats.average_len();
        let mut sums = Sums::new(rows.len());
        for (holders, idf) in &self.terms {
            for posting in holders.iter().filter(|p| eligible.admits(p.slot)) {
                let len = rows[posting.slot as usize].len;
                let weight = lexical::weight(*idf, posting.count, len, average);
                sums.add(posting.slot, weight);
            }
        }
        sums
    }

    /// BM25 of each entry taken together with the chunks around it. Frequencies are those of such texts.
    fn around(&self, view: &View<'_>, eligible: &Eligible) -> Sums {
        let rows = view.rows();
        let lens = lens_around(rows, eligible);
        let stats = CorpusStats {
            documents: eligible.stats.documents,
            total_len: lens.iter().map(|len| u64::from(*len)).sum(),
        };
        let average = stats.average_len();
        let mut sums = Sums::new(rows.len());
        let mut counts = vec![0_u32; rows.len()];
        let mut touched: Vec<u32> = Vec::new();
        for (holders, _) in &self.terms {
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
            for Posting { slot, count } in holders.iter().filter(|p| eligible.admits(p.slot)) {
                add(slot, count);
                // It is behind those that reach forward to it, and before those that reach back.
                walk(rows, slot, |r| r.next).for_each(|other| add(other, count));
                walk(rows, slot, |r| r.previous).for_each(|other| add(other, count));
            }
            let idf = lexical::idf(stats.documents, touched.len() as u64);
            for &slot in &touched {
                let (count, len) = (&mut counts[slot as usize], lens[slot as usize]);
                sums.add(slot, lexical::weight(idf, *count, len, average));
                *count = 0;
            }
        }
        sums
    }
}

/// The length of each eligible entry with its neighbourhood; 0 of the others.
fn lens_around(rows: &[Row], eligible: &Eligible) -> Vec<u32> {
    let own: Vec<u32> = (0..)
        .zip(rows)
        .map(|(slot, row)| if eligible.admits(slot) { row.len } else { 0 })
        .collect();
    let lens = (0..).zip(rows).map(|(slot, row)| {
        if !eligible.admits(slot) {
            return 0;
        }
        let mut len = own[slot as usize];
        if row.previous != NONE {
            let around = walk(rows, slot, |r| r.previous);
            len += around.map(|other| own[other as usize]).sum::<u32>();
        }
        if row.next != NONE {
            let around = walk(rows, slot, |r| r.next);
            len += around.map(|other| own[other as usize]).sum::<u32>();
        }
        len
    });
    lens.collect()
}

/// A sum for each entry, and which are above 0.
#[derive(Debug)]
pub(super) struct Sums {
    pub(super) by_slot: Vec<f64>,
    /// In no order.
    pub(super) met: Vec<u32>,
}

impl Sums {
    fn new(slots: usize) -> Self {
        Self {
            by_slot: vec![0.0; slots],
            met: Vec::new(),
        }
    }

    /// Adds something above 0.
    fn add(&mut self, slot: u32, weight: f64) {
        let sum = &mut self.by_slot[slot as usize];
        if *sum == 0.0 {
            self.met.push(slot);
        }
        *sum += weight;
    }
}

/// Features from the words. BM25 is counted in units of what a term weighs that one entry holds once: unlike a deviation that is sensible where
/// one entry matches, or where there is one entry.
#[derive(Debug)]
pub(super) struct Lexical<'v> {
    terms: Terms<'v>,
    unit: f64,
    own: Sums,
    around: Sums,
    /// By session.
    best: Vec<f64>,
}

impl<'v> Lexical<'v> {
    pub(super) fn of(view: &'v View<'_>, terms: &[String], eligible: &Eligible) -> Self {
        let terms = Terms::of(view, terms, eligible);
        let unit = lexical::greatest_weight(lexical::idf(eligible.stats.documents, 1));
        let own = terms.alone(view, eligible);
        Self {
            best: best_in_sessions(view, &own, unit, eligible),
            around: terms.around(view, eligible),
            own,
            unit,
            terms,
        }
    }

    /// The entries that hold a term of the question or have a neighbour that does, in no order.
    pub(super) fn met(&self) -> &[u32] {
        &self.around.met
    }

    /// Whether an entry or a neighbour holds a term of the question.
    pub(super) fn meets(&self, slot: u32) -> bool {
        self.around.by_slot[slot as usize] > 0.0
    }

    /// BM25 divided by its maximum for the question.
    pub(super) fn share(&self, slot: u32) -> f64 {
        self.terms.share(self.own.by_slot[slot as usize])
    }

    /// What share of the terms an entry holds, each counted as rare as it is.
    pub(super) fn coverage(&self, slot: u32) -> f64 {
        self.terms.coverage(slot)
    }

    /// BM25.
    pub(super) fn own(&self, slot: u32) -> f64 {
        self.own.by_slot[slot as usize] / self.unit
    }

    /// BM25 of the entry with its neighbours.
    pub(super) fn around(&self, slot: u32) -> f64 {
        self.around.by_slot[slot as usize] / self.unit
    }

    /// Mean of the two greatest BM25 in the session; of one that belongs to none its own.
    pub(super) fn session(&self, slot: u32, row: &Row) -> f64 {
        match self.best.get(row.session as usize) {
            Some(best) => *best,
            None => self.own(slot),
        }
    }

    /// BM25 of the one before where that asks.
    pub(super) fn answers(&self, rows: &[Row], row: &Row) -> f64 {
        match rows.get(row.previous as usize) {
            Some(before) if before.question() => self.own(row.previous),
            _ => 0.0,
        }
    }
}

/// Mean of the two greatest in each session; where only one is eligible, that one's.
fn best_in_sessions(view: &View<'_>, sums: &Sums, unit: f64, eligible: &Eligible) -> Vec<f64> {
    let rows = view.rows();
    let mut best = vec![(0.0_f64, 0.0_f64); view.sessions()];
    for &slot in &sums.met {
        if let Some((first, second)) = best.get_mut(rows[slot as usize].session as usize) {
            let value = sums.by_slot[slot as usize] / unit;
            if value > *first {
                *second = *first;
                *first = value;
            } else if value > *second {
                *second = value;
            }
        }
    }
    let mut out: Vec<f64> = (best.iter())
        .map(|(first, second)| f64::midpoint(*first, *second))
        .collect();
    for &slot in &sums.met {
        let session = rows[slot as usize].session as usize;
        if let Some(&(first, 0.0)) = best.get(session)
            && only_eligible(rows, slot, eligible)
        {
            out[session] = first;
        }
    }
    out
}

/// Whether no other of its session is eligible.
fn only_eligible(rows: &[Row], slot: u32, eligible: &Eligible) -> bool {
    let all = |to: fn(&Row) -> u32| {
        std::iter::successors(Some(slot), move |slot| {
            Some(to(&rows[*slot as usize])).filter(|n| *n != NONE)
        })
        .skip(1)
    };
    let mut others = all(|r| r.next).chain(all(|r| r.previous));
    others.all(|other| !eligible.admits(other))
}
