//! Profile "hybrid": the features of an entry, weighed and summed.
//!
//! The sum is linear, and the weights are those of a conditional logit fitted on questions with known answers, so that differences of sums are
//! log-odds between entries. There are two sets of weights, for entries with and without an embedding; what makes their sums comparable is said at
//! [`Fusion::allowance`].

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

/// By how much of log-odds the best entry that waits for its embedding may come before the best that has one.
const LEAD: f64 = 0.5;

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
    /// What an entry without an embedding is given.
    allowance: f64,
}

impl<'v> Fusion<'v> {
    pub(super) fn of(view: &'v View<'v>, query: &'v Query, eligible: &Eligible) -> Self {
        let asked = Asked::of(view, query, eligible);
        let mut this = Self {
            view,
            lexical: Lexical::of(view, &asked.terms, eligible),
            dense: Dense::of(view, query, eligible),
            named: asked.by_the_named(view),
            names: asked.other_names(view),
            asked,
            allowance: 0.0,
        };
        this.allowance = this.allowance(eligible);
        this
    }

    /// What is added to the sum of an entry that has no embedding yet, where others have one: both sets of weights are models of the same choice, and
    /// only sums of one model are log-odds. So the odds between such an entry and the embedded ones are those of the model that knows both, without
    /// embeddings, which tells what the words meet; and the odds among the embedded those of the better model: `ln Σ exp(with)` over all of them, less
    /// `ln Σ exp(without)` over those that the words meet. The best that waits comes first by [`LEAD`] at most, so that it never hides the others.
    fn allowance(&self, eligible: &Eligible) -> f64 {
        if self.dense.is_none() {
            return 0.0;
        }
        let waiting = |slot: &u32| self.cosine(*slot).is_none() && self.meets(*slot);
        let sum =
            |slot: u32, weights: &Weights| -> f64 { self.features(slot, weights).iter().sum() };
        let waiting = (eligible.slots().filter(waiting))
            .map(|slot| sum(slot, &WITHOUT_EMBEDDING))
            .reduce(f64::max);
        let Some(waiting) = waiting else { return 0.0 };
        let (mut with, mut without) = (LogSum::default(), LogSum::default());
        for slot in eligible.slots().filter(|slot| self.cosine(*slot).is_some()) {
            with.add(sum(slot, &WITH_EMBEDDING));
            if self.lexical.meets(slot) {
                without.add(sum(slot, &WITHOUT_EMBEDDING));
            }
        }
        if with.greatest.is_finite() {
            (with.ln() - without.ln()).min(with.greatest + LEAD - waiting)
        } else {
            0.0
        }
    }

    /// What is added to the sum of the features.
    pub(super) fn allowed(&self, slot: u32) -> f64 {
        if self.cosine(slot).is_some() {
            0.0
        } else {
            self.allowance
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

    /// What is known of an entry decides what it is judged by.
    fn weights(&self, slot: u32) -> &'static Weights {
        match self.cosine(slot) {
            Some(_) => &WITH_EMBEDDING,
            None => &WITHOUT_EMBEDDING,
        }
    }

    /// What each feature adds, in the order of [`Parts::sum`].
    fn features(&self, slot: u32, weights: &Weights) -> [f64; 12] {
        let (rows, at) = (self.view.rows(), slot as usize);
        let row = &rows[at];
        let dense = self.dense.as_ref().filter(|d| d.cosine(slot).is_some());
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

    /// What the features add up to, with what is allowed for.
    fn sum(&self, slot: u32) -> f64 {
        let features: f64 = self.features(slot, self.weights(slot)).iter().sum();
        features + self.allowed(slot)
    }

    /// What each feature adds.
    pub(super) fn parts(&self, slot: u32) -> Parts {
        let dense = self.cosine(slot).is_some();
        let features = self.features(slot, self.weights(slot));
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

/// `Σ exp(x)`, without leaving the range of numbers.
struct LogSum {
    greatest: f64,
    /// In units of the greatest.
    sum: f64,
}

impl Default for LogSum {
    fn default() -> Self {
        Self {
            greatest: f64::NEG_INFINITY,
            sum: 0.0,
        }
    }
}

impl LogSum {
    fn add(&mut self, value: f64) {
        if value > self.greatest {
            self.sum = self.sum * (self.greatest - value).exp() + 1.0;
            self.greatest = value;
        } else {
            self.sum += (value - self.greatest).exp();
        }
    }

    /// Its logarithm; of none, negative infinity.
    fn ln(&self) -> f64 {
        self.greatest + self.sum.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_exponentials_is_that_of_the_definition_and_overflows_nowhere() {
        let of = |values: &[f64]| {
            let mut sum = LogSum::default();
            for value in values {
                sum.add(*value);
            }
            sum.ln()
        };
        let expected = (1_f64.exp() + 3_f64.exp() + 2_f64.exp()).ln();
        assert!((of(&[1.0, 3.0, 2.0]) - expected).abs() < 1e-12);
        assert!((of(&[1_000.0, 1_000.0]) - (1_000.0 + 2_f64.ln())).abs() < 1e-9);
        assert!(of(&[]).is_infinite() && of(&[]) < 0.0);
    }
}
