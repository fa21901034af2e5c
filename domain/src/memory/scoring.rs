//! How relevance and time become a score.

use serde::{Deserialize, Serialize};

/// A named way of scoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Relevance alone, fused from the arms of recall.
    #[default]
    Hybrid,
    /// Relevance that fades with disuse and grows with use (B8).
    Decay,
    /// Similarity with a slight preference for what is new (B9).
    Recency,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 3] = [Self::Hybrid, Self::Decay, Self::Recency];

    /// The name used on the wire and in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Decay => "decay",
            Self::Recency => "recency",
        }
    }

    /// The profile of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.as_str() == name)
    }
}

/// What remains of relevance after each day without access (B8).
pub const DECAY_PER_DAY: f64 = 0.9;
/// The most that use adds to a score (B8).
pub const USE_WEIGHT: f64 = 0.2;
/// The number of accesses that earns it (B8).
pub const USES_FOR_FULL_WEIGHT: f64 = 10.0;
/// The share of the score that age can take (B9).
pub const RECENCY_WEIGHT: f64 = 0.1;
/// The days in which recency falls to 1/e. B9 says exponential by day and names no constant; a month is ours.
pub const RECENCY_DAYS: f64 = 30.0;

/// What remains after so many days without access: `0.9^days` (B8). Days before now count as none.
pub fn decay_factor(days_since_access: f64) -> f64 {
    DECAY_PER_DAY.powf(days_since_access.max(0.0))
}

/// What use adds: `min(1, access_count/10) · 0.2` (B8).
pub fn use_boost(access_count: i64) -> f64 {
    (access_count.max(0) as f64 / USES_FOR_FULL_WEIGHT).min(1.0) * USE_WEIGHT
}

/// `relevance · 0.9^(days since last access) + min(1, access_count/10) · 0.2` (B8): 0–1.2.
pub fn decay(relevance: f64, days_since_access: f64, access_count: i64) -> f64 {
    relevance * decay_factor(days_since_access) + use_boost(access_count)
}

/// `exp(−age/constant)`, 1 for what is new (B9).
pub fn recency_factor(age_days: f64, constant_days: f64) -> f64 {
    (-age_days.max(0.0) / constant_days).exp()
}

/// `similarity · (0.9 + 0.1 · recency)` with `recency = exp(−age/constant)` (B9): never above the similarity.
pub fn recency(similarity: f64, age_days: f64, constant_days: f64) -> f64 {
    similarity * (1.0 - RECENCY_WEIGHT + RECENCY_WEIGHT * recency_factor(age_days, constant_days))
}

/// `1/(1 + exp(−x))`: log-odds as a share of 1.
pub fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The parts of a score: enough to compute it again.
///
/// Profile "hybrid" adds its parts (all but `relevance`, `similarity` and `rerank_score`) up to log-odds, see [`Self::score`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// How well it fits the query, 0–1: the cosine of the embeddings, or without one BM25 divided by its maximum. Of "hybrid" the latter, which
    /// does not count by itself.
    pub relevance: f64,
    /// The cosine of the embeddings, which does not count by itself (hybrid).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    /// What BM25 adds (hybrid, as all up to `base`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<f64>,
    /// What BM25 of the entry with its neighbours adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words_around: Option<f64>,
    /// What the two best by BM25 in its session add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words_session: Option<f64>,
    /// What BM25 of the message before adds where that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<f64>,
    /// What the cosine adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<f64>,
    /// What the cosines of the entry and its neighbours add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning_around: Option<f64>,
    /// What the two best cosines in its session add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning_session: Option<f64>,
    /// What being by the one person whom the question names adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<f64>,
    /// What closeness to a time that the question names adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// What holding a time or a name adds where the question wants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<f64>,
    /// What the length of that adds which does not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated: Option<f64>,
    /// What it takes away that it does nothing but ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<f64>,
    /// What it loses for better ones of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diversity: Option<f64>,
    /// What the place adds or takes away to which a cross-encoder has moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerank: Option<f64>,
    /// The cross-encoder's own score, on a scale of its own, which does not count by itself (hybrid).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerank_score: Option<f64>,
    /// The same for all entries: what makes the score of the best one the evidence that the memory answers the question at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<f64>,
    /// `0.9^days` since the last access (profile decay).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decay: Option<f64>,
    /// What use adds (profile decay).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_boost: Option<f64>,
    /// `exp(−age/30 days)` (profile recency).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recency: Option<f64>,
}

impl Parts {
    /// The score that these parts make under a profile.
    ///
    /// Of "hybrid" it is `1/(1 + exp(−sum))`, within 0–1: the best entry scores the evidence that the memory answers the question, and the others
    /// as much less as they are less likely to be the answer.
    pub fn score(&self, profile: Profile) -> f64 {
        match profile {
            Profile::Hybrid => logistic(self.sum()),
            Profile::Decay => {
                self.relevance * self.decay.unwrap_or(1.0) + self.use_boost.unwrap_or(0.0)
            }
            Profile::Recency => {
                self.relevance
                    * (1.0 - RECENCY_WEIGHT + RECENCY_WEIGHT * self.recency.unwrap_or(1.0))
            }
        }
    }

    /// The log-odds of profile "hybrid".
    pub fn sum(&self) -> f64 {
        [
            self.words,
            self.words_around,
            self.words_session,
            self.answers,
            self.meaning,
            self.meaning_around,
            self.meaning_session,
            self.speaker,
            self.time,
            self.wanted,
            self.stated,
            self.question,
            self.diversity,
            self.rerank,
            self.base,
        ]
        .into_iter()
        .flatten()
        .sum()
    }

    /// Each part that made the score, with its name on the wire.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [
            ("relevance", Some(self.relevance)),
            ("similarity", self.similarity),
            ("words", self.words),
            ("words_around", self.words_around),
            ("words_session", self.words_session),
            ("answers", self.answers),
            ("meaning", self.meaning),
            ("meaning_around", self.meaning_around),
            ("meaning_session", self.meaning_session),
            ("speaker", self.speaker),
            ("time", self.time),
            ("wanted", self.wanted),
            ("stated", self.stated),
            ("question", self.question),
            ("diversity", self.diversity),
            ("rerank", self.rerank),
            ("rerank_score", self.rerank_score),
            ("base", self.base),
            ("decay", self.decay),
            ("use_boost", self.use_boost),
            ("recency", self.recency),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn decay_is_the_formula_of_b8() {
        assert!(close(decay(0.8, 0.0, 0), 0.8));
        assert!(close(decay(0.8, 1.0, 0), 0.72));
        assert!(close(decay(0.8, 2.0, 5), 0.8 * 0.81 + 0.1));
        assert!(close(decay(0.8, 10.0, 10), 0.8 * 0.348_678_440_1 + 0.2));
        assert!(close(decay(0.0, 0.0, 1_000), 0.2));
        assert!(close(decay(0.5, 0.5, 3), 0.5 * 0.9_f64.sqrt() + 0.06));
    }

    #[test]
    fn recency_is_the_formula_of_b9() {
        assert!(close(recency(0.8, 0.0, RECENCY_DAYS), 0.8));
        assert!(close(
            recency(0.8, 30.0, RECENCY_DAYS),
            0.8 * (0.9 + 0.1 * 0.367_879_441_171_442_33)
        ));
        assert!(close(recency(1.0, 1e9, RECENCY_DAYS), 0.9));
    }

    #[test]
    fn names_survive_the_round_trip() {
        for profile in Profile::ALL {
            assert_eq!(Profile::parse(profile.as_str()), Some(profile));
            assert_eq!(serde_json::to_value(profile).unwrap(), profile.as_str());
        }
        assert_eq!(Profile::parse("other"), None);
    }

    #[test]
    fn only_the_parts_that_made_a_score_are_told() {
        let parts = Parts {
            relevance: 0.5,
            recency: Some(0.25),
            ..Parts::default()
        };
        assert_eq!(
            serde_json::to_string(&parts).unwrap(),
            r#"{"relevance":0.5,"recency":0.25}"#
        );
    }

    proptest! {
        #[test]
        fn disuse_lowers_and_use_raises_a_score(relevance in 0.01..1.0_f64, days in 0.0..400.0_f64, more in 0.1..50.0_f64, uses in 0_i64..30) {
            prop_assert!(decay(relevance, days + more, uses) <= decay(relevance, days, uses));
            prop_assert!(decay(relevance, days, uses + 1) >= decay(relevance, days, uses));
            prop_assert!((0.0..=1.2).contains(&decay(relevance, days, uses)));
        }

        #[test]
        fn age_takes_at_most_a_tenth(similarity in 0.01..1.0_f64, age in 0.0..4_000.0_f64) {
            let score = recency(similarity, age, RECENCY_DAYS);
            prop_assert!(score <= similarity && score >= similarity * 0.9 - 1e-12);
        }

        #[test]
        fn the_parts_make_the_score_again(relevance in 0.0..1.0_f64, days in 0.0..100.0_f64, uses in 0_i64..30) {
            let parts = Parts { relevance, decay: Some(decay_factor(days)), use_boost: Some(use_boost(uses)), ..Parts::default() };
            prop_assert!(close(parts.score(Profile::Decay), decay(relevance, days, uses)));
            let parts = Parts { relevance, recency: Some(recency_factor(days, RECENCY_DAYS)), ..Parts::default() };
            prop_assert!(close(parts.score(Profile::Recency), recency(relevance, days, RECENCY_DAYS)));
        }
    }
}
