//! Extraction by a model: what it is shown, what it may answer, and what of its answer is believed (B4, B6).
//!
//! A model is shown a batch of messages with numbers and answers with facts in a fixed form. Nothing of the answer is taken on trust: a
//! fact names the messages it was read from, its numbers and names stand in them, and it is no more trusted than the least of them. What
//! does not hold is a [`Fault`](answer::Fault) that the model can be shown; what still does not hold is left out. The messages themselves stay in memory
//! verbatim, whatever a model makes of them.

pub mod answer;
pub mod batch;
mod grounding;
pub mod learning;
mod schema;

pub use schema::{SCHEMA_NAME, schema};

use super::{Kind, Scope, Source, Trust, rules};
use crate::ids::{SessionId, Timestamp};

/// The most characters (Unicode scalar values) of a fact (B4).
pub const LONGEST: usize = rules::LONGEST;

/// The most facts that one answer may hold; ours. A batch of twenty messages has a handful.
pub const MOST_FACTS: usize = 64;

/// Of a statement's words of content, so many in a hundred stand in a text that tells it in other words. Ours: who forgets a statement does not want it told
/// from the chunk that it was read from, and a chunk that only resembles it is to stay.
const TOLD: usize = 65;

/// Whether a text tells what a statement says in other words, as the chunk does that a model's fact was read from.
pub fn tells(text: &str, statement: &str) -> bool {
    grounding::tells(text, statement, TOLD)
}

/// Whether two statements say the same in other words: no number, name or word of content in one is missing in the other.
pub fn say_the_same(one: &str, other: &str) -> bool {
    grounding::tells(one, other, 100) && grounding::tells(other, one, 100)
}

/// Whether a clause says what a statement does that was read from it, in whatever words, and nothing else. `opens`: it opens a sentence. `speaker`: whose words
/// they are.
pub(super) fn says_only(clause: &str, opens: bool, speaker: Option<&str>, statement: &str) -> bool {
    grounding::says_only(clause, opens, speaker, statement)
}

/// Whether a statement may have been read from a text, which may say more.
pub(super) fn grounded_in(text: &str, statement: &str) -> bool {
    grounding::grounded_in(text, statement)
}

/// Whether a clause has no word of content that is not in one of these statements.
pub(super) fn adds_nothing(clause: &str, statements: &[&str]) -> bool {
    grounding::adds_nothing(clause, statements)
}

/// How many of a statement's words of content a text shares.
pub(super) fn shared(text: &str, statement: &str) -> usize {
    grounding::shared(text, statement)
}

/// One thing that a model read out of a batch, checked against it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What it says, 1–[`LONGEST`] characters, without credentials.
    pub content: String,
    /// Where it applies.
    pub scope: Scope,
    /// What it is.
    pub kind: Kind,
    /// What it is about, `snake_case`, in the form that rules use too.
    pub key: Option<String>,
    /// 3–5 (B6); what matters less is not kept.
    pub importance: u8,
    /// The messages it was read from, by their position; never empty.
    pub evidence: Vec<Source>,
    /// The session that they belong to.
    pub session_id: SessionId,
    /// That of the least trusted of them.
    pub trust: Trust,
    /// Since when it holds: at the latest since the newest of its messages was said.
    pub valid_from: Timestamp,
    /// When it is over; only of a temporary state.
    pub expires_at: Option<Timestamp>,
    /// It says that something has ceased to be so.
    pub negated: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_tells_a_statement_with_all_its_numbers_and_names_and_most_of_its_words() {
        let chunk = "The crew heard that crate 77 goes to Bergen by ship. We also need new ropes.";
        for told in [
            "Crate 77 goes to Bergen by ship",
            "Crate 77 travels to Bergen by ship",
        ] {
            assert!(tells(chunk, told), "{told}");
        }
        for other in [
            "Crate 78 goes to Bergen by ship",
            "Crate 77 goes to Oslo by ship",
            "User wants a discount on ropes and paint",
            "",
        ] {
            assert!(!tells(chunk, other), "{other}");
        }
        assert!(tells("我的项目预算改成40万了", "用户的项目预算40万"));
        assert!(!tells("我的项目预算改成40万了", "用户的项目预算50万"));
    }

    #[test]
    fn statements_say_the_same_when_neither_has_a_word_more() {
        assert!(say_the_same("I like tea", "User likes tea"));
        assert!(say_the_same("I live in Oslo", "User lives in Oslo"));
        for (one, other) in [
            ("I like tea", "User likes coffee"),
            ("My cat likes fish", "User's cat likes fish and milk"),
            ("I like tea", "User likes green tea"),
        ] {
            assert!(
                !say_the_same(one, other) && !say_the_same(other, one),
                "{one}"
            );
        }
    }
}
