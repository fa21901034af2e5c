//! Profile "hybrid": the features of an entry, weighed and summed.
//!
//! The sum is linear, and the weights are those of a conditional logit fitted on questions with known answers, so that differences of sums are
//! log-odds between entries. There are two sets of weights, for entries with and without an embedding.

use super::View;
use super::asked::Asked;
use super::best::BestFirst;
use super::dense::Dense;
use super::search::{Eligible, Query};
use super::terms::Lexical;
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

/// What of its likeness an entry loses that does nothing but ask: a question resembles the question best and answers nothing. Ours; the
/// conversations that the weights are from hardly ask the same twice, people who use a chat do.
const QUESTION_LOSS: f64 = 0.5;

/// How near an entry has to be to a named time to be told for that alone: within it, or a day off.
const NEAR: f64 = 0.9;

/// So many of the best by near cosines are ordered by true ones, at least: many times as many as are told.
pub(super) const REFINED: usize = 512;

/// The features of all entries for one question.
#[derive(Debug)]
pub(super) struct Fusion<'v> {
    view: &'v View<'v>,
    asked: Asked,
    lexical: Lexical<'v>,
    dense: Option<Dense<'v>>,
    named: Vec<bool>,
    names: Vec<u16>,
}

impl<'v> Fusion<'v> {
    pub(super) fn of(view: &'v View<'v>, query: &'v Query, eligible: &Eligible) -> Self {
        let asked = Asked::of(view, query, eligible);
        Self {
            view,
            lexical: Lexical::of(view, &asked.terms, eligible),
            dense: Dense::of(view, query, eligible),
            named: asked.by_the_named(view),
            names: asked.other_names(view),
            asked,
        }
    }

    /// The best of those that something of the question meets, by their sums; so many will be asked for.
    pub(super) fn best(&mut self, eligible: &Eligible, wanted: usize) -> BestFirst {
        let view = self.view;
        let sum = |slot: u32| (slot, self.sum(slot));
        if self.dense.is_none() && self.asked.spans.is_empty() {
            let met = self.lexical.met().iter().copied();
            return BestFirst::of(view, met.map(sum), wanted);
        }
        let near = self.dense.as_ref().is_some_and(Dense::near);
        let wanted = if near { wanted.max(REFINED) } else { wanted };
        let met = eligible.slots().filter(|slot| self.meets(*slot));
        let mut best = BestFirst::of(view, met.map(sum), wanted);
        if let Some(dense) = self.dense.as_mut().filter(|_| near) {
            dense.refine(&best.wanted().collect::<Vec<_>>(), eligible);
            best.rekey(|slot| self.sum(slot));
        }
        best
    }

    /// Whether anything of the question meets an entry at all.
    fn meets(&self, slot: u32) -> bool {
        self.cosine(slot).is_some()
            || self.lexical.meets(slot)
            || (!self.asked.spans.is_empty() && self.closeness(slot) >= NEAR)
    }

    /// The cosine with the question, where the entry has an embedding.
    fn cosine(&self, slot: u32) -> Option<f64> {
        self.dense.as_ref().and_then(|d| d.cosine(slot))
    }

    /// How much of the way from the mean cosine to 1 the cosine is, where the entry has an embedding.
    pub(super) fn lift(&self, slot: u32) -> Option<f64> {
        self.dense.as_ref()?.lift(slot)
    }

    /// What share of the question's terms an entry holds, each counted as rare as it is.
    pub(super) fn coverage(&self, slot: u32) -> f64 {
        self.lexical.coverage(slot)
    }

    /// Whether an entry is in the script of the question: with or without Han, kana or hangul.
    pub(super) fn same_script(&self, slot: u32) -> bool {
        self.view.rows()[slot as usize].ideographic() == self.asked.ideographic
    }

    /// Whether the question is written with Han, kana or hangul.
    pub(super) fn ideographic(&self) -> bool {
        self.asked.ideographic
    }

    fn closeness(&self, slot: u32) -> f64 {
        if self.asked.spans.is_empty() {
            return 0.0;
        }
        when::closeness(&self.asked.spans, self.view.case(slot).standing.valid_from)
    }

    /// What each feature adds, in the order of [`Parts::sum`].
    fn features(&self, slot: u32) -> [f64; 12] {
        let (rows, at) = (self.view.rows(), slot as usize);
        let row = &rows[at];
        let dense = self.dense.as_ref().filter(|d| d.cosine(slot).is_some());
        let weights = match dense {
            Some(_) => &WITH_EMBEDDING,
            None => &WITHOUT_EMBEDDING,
        };
        let flag = |set: bool, weight: f64| if set { weight } else { 0.0 };
        let wanted = self.asked.wanted;
        let name = self.names.get(at).is_some_and(|names| *names > 0);
        let named = self.named.get(at).is_some_and(|by| *by);
        let several = if self.asked.several { SEVERAL } else { 1.0 };
        // The words of the entry and of the one before are among those around it.
        let [words, words_around, answers] = if self.lexical.meets(slot) {
            [
                weights.words * self.lexical.own(slot),
                weights.words_around * self.lexical.around(slot),
                weights.answers * self.lexical.answers(rows, row),
            ]
        } else {
            [0.0; 3]
        };
        let [meaning, meaning_around, meaning_session] = dense.map_or([0.0; 3], |d| {
            [
                weights.meaning * d.own(slot),
                weights.meaning_around * d.around(slot),
                several * weights.meaning_session * d.session(slot),
            ]
        });
        let likeness = (words + words_around + meaning).max(0.0);
        [
            words,
            words_around,
            several * weights.words_session * self.lexical.session(slot, row),
            answers,
            meaning,
            meaning_around,
            meaning_session,
            flag(named, weights.speaker),
            weights.time * self.closeness(slot),
            flag(wanted.time && row.time(), weights.wanted_time) + flag(name, weights.wanted_name),
            weights.stated * f64::from(row.stated),
            flag(row.asks(), -QUESTION_LOSS * likeness),
        ]
    }

    /// What the features add up to.
    fn sum(&self, slot: u32) -> f64 {
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
            relevance: self.lexical.share(slot),
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
