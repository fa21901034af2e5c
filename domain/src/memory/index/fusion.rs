//! Profile "hybrid": the features of an entry, weighed and summed.
//!
//! The sum is linear, and the weights are those of a conditional logit fitted on questions with known answers, so that differences of sums are
//! log-odds between entries. There are two sets of weights, for entries with and without an embedding.

use std::collections::HashMap;

use super::View;
use super::features::{Asked, Dense, Lexical, by_the_named, other_names};
use super::rows::NONE;
use super::search::{Eligible, Query};
use crate::memory::scoring::Parts;
use crate::memory::when;

/// What each feature weighs.
#[derive(Clone, Copy, Debug)]
struct Weights {
    /// BM25.
    words: f64,
    /// BM25 of the neighbourhood.
    words_around: f64,
    /// The best of BM25 in the session.
    words_session: f64,
    /// BM25 of the question before.
    answers: f64,
    /// Cosine.
    meaning: f64,
    /// Cosine of the neighbourhood.
    meaning_around: f64,
    /// The best cosines in the session.
    meaning_session: f64,
    /// By the one person whom the question names.
    speaker: f64,
    /// Near a time that the question names.
    time: f64,
    /// Holds a time, a name where the question wants one.
    wanted_time: f64,
    wanted_name: f64,
    /// `ln(1 + terms in sentences that do not ask)`.
    stated: f64,
}

/// Fitted on the questions of `LoCoMo`'s first five conversations (Maharana et al., ACL 2024) that have an answer, with `all-MiniLM-L6-v2`, and rounded.
const WITH_EMBEDDING: Weights = Weights {
    words: 1.1,
    words_around: 3.2,
    words_session: 1.9,
    answers: 1.5,
    meaning: 0.3,
    meaning_around: 0.4,
    meaning_session: 0.26,
    speaker: 2.4,
    time: 3.5,
    wanted_time: 1.9,
    wanted_name: 1.95,
    stated: 0.57,
};

/// The same without embeddings.
const WITHOUT_EMBEDDING: Weights = Weights {
    words: 2.2,
    words_around: 3.4,
    words_session: 2.3,
    answers: 1.9,
    meaning: 0.0,
    meaning_around: 0.0,
    meaning_session: 0.0,
    speaker: 1.4,
    time: 1.8,
    wanted_time: 1.15,
    wanted_name: 1.2,
    stated: 0.34,
};

/// What remains of the features of a session where the question wants several things: they rarely stand in one.
const SEVERAL: f64 = 0.5;

/// What an entry loses for each better one of its session, as a share of the distance between the best sum and the [`SPREAD`]th: what is told should
/// come from several places.
const DIVERSITY: f64 = 0.04;
const SPREAD: usize = 20;

/// What of its likeness an entry loses that does nothing but ask: a question resembles the question best and answers nothing. Ours; the
/// conversations that the weights are from hardly ask the same twice, people who use a chat do.
const QUESTION_LOSS: f64 = 0.5;

/// How near an entry has to be to a named time to be told for that alone: within it, or a day off.
const NEAR: f64 = 0.9;

/// The features of all entries for one question.
#[derive(Debug)]
pub(super) struct Fusion<'v> {
    view: &'v View<'v>,
    asked: Asked,
    lexical: Lexical,
    dense: Option<Dense>,
    named: Vec<bool>,
    names: Vec<u32>,
}

impl<'v> Fusion<'v> {
    pub(super) fn of(view: &'v View<'v>, query: &Query, eligible: &Eligible) -> Self {
        let asked = Asked::of(view, query, eligible);
        Self {
            view,
            lexical: Lexical::of(view, &asked.terms, eligible),
            dense: Dense::of(view, query, eligible),
            named: by_the_named(view, &asked),
            names: other_names(view, &asked),
            asked,
        }
    }

    /// Whether anything of the question meets an entry at all.
    pub(super) fn meets(&self, slot: u32) -> bool {
        self.lexical.around[slot as usize] > 0.0
            || self.cosine(slot).is_some()
            || (!self.asked.spans.is_empty() && self.closeness(slot) >= NEAR)
    }

    /// The cosine with the question, where the entry has an embedding.
    pub(super) fn cosine(&self, slot: u32) -> Option<f64> {
        self.dense.as_ref().and_then(|d| d.cosine[slot as usize])
    }

    /// BM25 as a share of its maximum.
    pub(super) fn share(&self, slot: u32) -> f64 {
        self.lexical.share[slot as usize]
    }

    /// How much of the way from the mean cosine to 1 the cosine is, where the entry has an embedding.
    pub(super) fn lift(&self, slot: u32) -> Option<f64> {
        let dense = self.dense.as_ref()?;
        dense.cosine[slot as usize].map(|_| dense.lift[slot as usize])
    }

    /// What share of the question's terms an entry holds, each counted as rare as it is.
    pub(super) fn coverage(&self, slot: u32) -> f64 {
        let held = self.asked.terms.iter().zip(&self.lexical.idf);
        let held = held.filter(|(term, _)| self.view.count(term, slot) > 0);
        let all: f64 = self.lexical.idf.iter().sum();
        held.map(|(_, idf)| idf).sum::<f64>() / all.max(1e-9)
    }

    /// Whether an entry is in the script of the question: with or without Han, kana or hangul.
    pub(super) fn same_script(&self, slot: u32) -> bool {
        self.view.rows()[slot as usize].ideographic == self.asked.ideographic
    }

    /// Whether the question is written with Han, kana or hangul.
    pub(super) fn ideographic(&self) -> bool {
        self.asked.ideographic
    }

    /// Puts the best ones, with their sums and in their order, into that in which they are told, each with what it loses for better ones of its session.
    pub(super) fn diverse(&self, best: Vec<(u32, f64)>) -> Vec<(u32, f64)> {
        let [(_, first), .., (_, last)] = best[..best.len().min(SPREAD)] else {
            return best.into_iter().map(|(slot, _)| (slot, 0.0)).collect();
        };
        let each = DIVERSITY * (first - last);
        let rows = self.view.rows();
        let mut told: HashMap<u32, u32> = HashMap::new();
        let mut left = best;
        let mut out = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let loss = |slot: u32| {
                let before = told.get(&rows[slot as usize].session);
                -each * f64::from(before.copied().unwrap_or(0))
            };
            let mut next = 0;
            for (at, (slot, sum)) in left.iter().enumerate() {
                // The first of equal ones is the one with the lower id.
                if sum + loss(*slot) > left[next].1 + loss(left[next].0) {
                    next = at;
                }
            }
            let (slot, _) = left.remove(next);
            out.push((slot, loss(slot)));
            let session = rows[slot as usize].session;
            if session != NONE {
                *told.entry(session).or_default() += 1;
            }
        }
        out
    }

    fn closeness(&self, slot: u32) -> f64 {
        if self.asked.spans.is_empty() {
            return 0.0;
        }
        when::closeness(&self.asked.spans, self.view.entry(slot).valid_from)
    }

    /// What each feature adds, in the order of [`Parts::sum`].
    fn features(&self, slot: u32) -> [f64; 12] {
        let at = slot as usize;
        let row = &self.view.rows()[at];
        let dense = self.dense.as_ref().filter(|d| d.cosine[at].is_some());
        let weights = match dense {
            Some(_) => &WITH_EMBEDDING,
            None => &WITHOUT_EMBEDDING,
        };
        let flag = |set: bool, weight: f64| if set { weight } else { 0.0 };
        let wanted = self.asked.wanted;
        let name = self.names.get(at).is_some_and(|names| *names > 0);
        let named = self.named.get(at).is_some_and(|by| *by);
        let several = if self.asked.several { SEVERAL } else { 1.0 };
        let words = weights.words * self.lexical.own[at];
        let words_around = weights.words_around * self.lexical.around[at];
        let [meaning, meaning_around, meaning_session] = dense.map_or([0.0; 3], |d| {
            [
                weights.meaning * d.own[at],
                weights.meaning_around * d.around[at],
                several * weights.meaning_session * d.session[at],
            ]
        });
        let likeness = (words + words_around + meaning).max(0.0);
        [
            words,
            words_around,
            several * weights.words_session * self.lexical.session[at],
            weights.answers * self.lexical.answers[at],
            meaning,
            meaning_around,
            meaning_session,
            flag(named, weights.speaker),
            weights.time * self.closeness(slot),
            flag(wanted.time && row.time, weights.wanted_time) + flag(name, weights.wanted_name),
            weights.stated * row.stated,
            flag(row.asks, -QUESTION_LOSS * likeness),
        ]
    }

    /// What the features add up to.
    pub(super) fn sum(&self, slot: u32) -> f64 {
        self.features(slot).iter().sum()
    }

    /// What each feature adds.
    pub(super) fn parts(&self, slot: u32) -> Parts {
        let dense = self.cosine(slot).is_some();
        let features = self.features(slot);
        let [words, words_around, words_session, answers, ..] = features;
        let [_, _, _, _, meaning, meaning_around, meaning_session, ..] = features;
        let [.., speaker, time, wanted, stated, question] = features;
        let told = |value: f64| (value != 0.0).then_some(value);
        Parts {
            relevance: self.share(slot),
            similarity: self.cosine(slot),
            words: Some(words),
            words_around: Some(words_around),
            words_session: Some(words_session),
            answers: told(answers),
            meaning: dense.then_some(meaning),
            meaning_around: dense.then_some(meaning_around),
            meaning_session: dense.then_some(meaning_session),
            speaker: told(speaker),
            time: told(time),
            wanted: told(wanted),
            stated: Some(stated),
            question: told(question),
            ..Parts::default()
        }
    }
}
