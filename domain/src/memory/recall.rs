//! What is told of what was found: order, thresholds, room, and a reason for each that is left out (B10, B14, B17).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::analysis::{is_ideographic, normalise};
use super::conflict::{Value, value};
use super::index::search::Scored;
use super::lexical::query_terms;
use super::prompt::{Language, line};
use super::scoring::{Parts, Profile};
use super::{Kind, Layer, Memory, Scope, State, rules};
use crate::event::{RecalledMemory, Via};
use crate::ids::{MemoryId, Timestamp};
use crate::window::TokenCounter;

/// Profile "hybrid" tells nothing unless the best candidate has this score (B14): the evidence that the memory answers the question at all.
///
/// Even odds. Measured on conversations with hundreds of turns (`LoCoMo`) with `all-MiniLM-L6-v2`: of questions that the conversation answers 9 in
/// 100 stay below, of questions about another conversation 8 in 10. Without embeddings 9 in 100 and 7 in 10.
pub const HYBRID_MIN: f64 = 0.5;
/// Nor does it tell an item with less than this: one that is so much less likely to be the answer than the best one.
pub const HYBRID_ITEM_MIN: f64 = 0.01;
/// The similarity below which profile "recency" drops an item (B9). BM25 alone rarely reaches it.
pub const RECENCY_MIN: f64 = 0.75;
/// The most items of profile "recency" unless the request says otherwise (B9).
pub const RECENCY_TOP_K: usize = 3;
/// Profile "decay" scores this many times as many candidates as it tells (B8).
pub const DECAY_FETCH: usize = 2;
/// The least and most items that [`dynamic_k`] answers (B10).
pub const K_RANGE: (usize, usize) = (3, 10);

/// How many items are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopK {
    /// By the query and the length of the dialogue.
    #[default]
    Auto,
    /// As the request says.
    Fixed(usize),
}

impl TopK {
    /// The number for a query in a session of so many messages under a profile.
    pub fn resolve(self, profile: Profile, query: &str, session_messages: i64) -> usize {
        match (self, profile) {
            (Self::Fixed(k), _) => k,
            (Self::Auto, Profile::Recency) => dynamic_k(query, session_messages).min(RECENCY_TOP_K),
            (Self::Auto, _) => dynamic_k(query, session_messages),
        }
    }
}

/// Words that ask for several things at once.
const MANY: &[&str] = &[
    " and ",
    " or ",
    "compare",
    "difference",
    "list ",
    " all ",
    "every",
    "each",
    "overview",
    "summar",
    "和",
    "与",
    "以及",
    "或",
    "比较",
    "对比",
    "区别",
    "所有",
    "全部",
    "哪些",
    "每",
    "总结",
    "列出",
    "分别",
];

/// How many items a query is worth (B10): 3 for a simple one, up to 10 for a complex one.
///
/// 3, plus one for each two words of content beyond four (at most 3; two overlapping pairs of ideographs count as one word), plus one for
/// a second question or a word that asks for several things, each (at most 2), plus one from 20 and another from 100 messages of dialogue on.
/// The document gives the range and what it depends on; the steps are ours.
pub fn dynamic_k(query: &str, session_messages: i64) -> usize {
    let (pairs, words): (Vec<String>, Vec<String>) = query_terms(query)
        .into_iter()
        .partition(|term| term.starts_with(is_ideographic));
    let words = words.len() + pairs.len() / 2;
    let long = (words.saturating_sub(4) / 2).min(3);
    let lower = format!(" {} ", query.to_lowercase());
    let questions = lower.chars().filter(|c| matches!(c, '?' | '？')).count();
    let several =
        usize::from(questions > 1) + usize::from(MANY.iter().any(|word| lower.contains(word)));
    let dialogue = usize::from(session_messages >= 20) + usize::from(session_messages >= 100);
    (K_RANGE.0 + long + several + dialogue).min(K_RANGE.1)
}

/// The time to judge by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time: what has expired by then is gone.
    pub now: Timestamp,
    /// Tell what held then instead of what holds now.
    pub as_of: Option<Timestamp>,
    /// Also tell what faded.
    pub archived: bool,
}

impl Moment {
    /// Now, of what holds.
    pub fn at(now: Timestamp) -> Self {
        Self {
            now,
            as_of: None,
            archived: false,
        }
    }

    /// Whether what stands so has ended by the time that is judged by.
    pub fn ended(&self, standing: &Standing) -> bool {
        let ended_by = |at| standing.valid_to.is_some_and(|end| end <= at);
        match self.as_of {
            None => standing.state == State::Superseded || ended_by(self.now),
            Some(then) => ended_by(then),
        }
    }

    /// Why a memory is not told whatever was asked.
    pub fn unfit(&self, standing: &Standing) -> Option<DropReason> {
        let faded = standing.state == State::Archived || standing.layer == Layer::Archival;
        let holds = match self.as_of {
            None => !self.ended(standing),
            Some(then) => standing.valid_from <= then && !self.ended(standing),
        };
        if standing.expires_at.is_some_and(|at| at <= self.now) {
            Some(DropReason::Expired)
        } else if standing.state == State::Quarantined {
            Some(DropReason::Quarantined)
        } else if !holds {
            Some(DropReason::NotCurrent)
        } else if faded && !self.archived {
            Some(DropReason::Archived)
        } else {
            None
        }
    }
}

/// What of a memory decides whether it may be told at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether it is told.
    pub state: State,
    /// How far it is from what was said.
    pub layer: Layer,
    /// Since when it holds.
    pub valid_from: Timestamp,
    /// Until when it held.
    pub valid_to: Option<Timestamp>,
    /// When it is to be deleted.
    pub expires_at: Option<Timestamp>,
}

impl Standing {
    /// Whether it has an end, at whatever time.
    pub fn has_ended(&self) -> bool {
        self.state == State::Superseded || self.valid_to.is_some()
    }
}

impl From<&Memory> for Standing {
    fn from(memory: &Memory) -> Self {
        Self {
            state: memory.state,
            layer: memory.layer,
            valid_from: memory.valid_from,
            valid_to: memory.valid_to,
            expires_at: memory.expires_at,
        }
    }
}

/// How it is chosen what is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecallRules {
    /// The way of scoring.
    pub profile: Profile,
    /// The most items told.
    pub top_k: usize,
    /// The least score; none is the profile's own threshold, 0 switches abstention off.
    pub min_score: Option<f64>,
    /// The time to judge by.
    pub moment: Moment,
    /// The room for all items together, in tokens of the rendered lines.
    pub token_budget: usize,
}

/// Why a memory that was found is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// Its score is too low.
    BelowThreshold,
    /// Better ones filled the places.
    BeyondTopK,
    /// It did not fit the room that was left.
    OverBudget,
    /// It is superseded, or does not hold yet.
    NotCurrent,
    /// It waits for a person's confirmation.
    Quarantined,
    /// It is archived, and what is archived was not asked for.
    Archived,
    /// Its time is over.
    Expired,
    /// The request is limited to other scopes.
    OtherScope,
    /// The profile already tells it.
    InProfile,
    /// Its message is in the window.
    InWindow,
    /// A better one says the same.
    Duplicate,
}

impl DropReason {
    /// The name used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BelowThreshold => "below_threshold",
            Self::BeyondTopK => "beyond_top_k",
            Self::OverBudget => "over_budget",
            Self::NotCurrent => "not_current",
            Self::Quarantined => "quarantined",
            Self::Archived => "archived",
            Self::Expired => "expired",
            Self::OtherScope => "other_scope",
            Self::InProfile => "in_profile",
            Self::InWindow => "in_window",
            Self::Duplicate => "duplicate",
        }
    }
}

/// A memory that is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The memory.
    pub memory: Memory,
    /// Its score under the profile.
    pub score: f64,
    /// What the score is made of.
    pub parts: Parts,
    /// The terms of the query that it holds.
    pub matched: Vec<String>,
}

/// What is told, and why the rest is not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking {
    /// Best first.
    pub items: Vec<Ranked>,
    /// Every other candidate, in the order it was judged.
    pub dropped: Vec<(MemoryId, DropReason)>,
    /// Nothing fitted the question: no candidate reached the threshold.
    pub abstained: bool,
}

/// Chooses what is told from what was found, best first, one after the other: so that only those rows have to be read that may be told.
///
/// What does not fit the token budget is skipped and the next one tried. Of two that say the same, or of a statement and the chunk of the same
/// message that contains it, the better one is told.
pub struct Selection<'c> {
    rules: RecallRules,
    counter: &'c dyn TokenCounter,
    best: f64,
    fits: usize,
    left: usize,
    out: Ranking,
}

impl std::fmt::Debug for Selection<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection")
            .field("rules", &self.rules)
            .field("out", &self.out)
            .finish_non_exhaustive()
    }
}

impl<'c> Selection<'c> {
    /// From what was found, of which `best` is the highest score.
    pub fn new(rules: RecallRules, counter: &'c dyn TokenCounter, best: f64) -> Self {
        Self {
            rules,
            counter,
            best,
            fits: 0,
            left: rules.token_budget,
            out: Ranking::default(),
        }
    }

    /// Whether the row of this one has to be read to decide.
    pub fn wants(&self, scored: &Scored) -> bool {
        self.out.items.len() < self.rules.top_k && self.reaches(scored)
    }

    /// Decides on the next one; without its row, which is gone, only when it is not [wanted](Self::wants).
    pub fn offer(&mut self, scored: Scored, memory: Option<Memory>) {
        let reason = if self.reaches(&scored) {
            self.fits += 1;
            if self.out.items.len() >= self.rules.top_k {
                Some(DropReason::BeyondTopK)
            } else if let Some(memory) = memory {
                return self.consider(scored, memory);
            } else {
                // Removed since it was found: there is nothing to tell of it.
                self.fits -= 1;
                None
            }
        } else {
            Some(DropReason::BelowThreshold)
        };
        self.out
            .dropped
            .extend(reason.map(|reason| (scored.id, reason)));
    }

    fn consider(&mut self, scored: Scored, memory: Memory) {
        let told = &self.out.items;
        // It may have changed since it was found.
        let reason = if let Some(reason) = self.rules.moment.unfit(&Standing::from(&memory)) {
            self.fits -= 1;
            reason
        } else if told.iter().any(|one| say_the_same(&one.memory, &memory)) {
            DropReason::Duplicate
        } else if let Some(rest) = self.left.checked_sub(cost(&memory, self.counter)) {
            self.left = rest;
            self.out.items.push(Ranked {
                memory,
                score: scored.score,
                parts: scored.parts,
                matched: scored.matched,
            });
            return;
        } else {
            DropReason::OverBudget
        };
        self.out.dropped.push((scored.id, reason));
    }

    /// Whether an item may be told: the request's threshold is held against the score it sees, the profiles' own as their documents say.
    fn reaches(&self, scored: &Scored) -> bool {
        match (self.rules.min_score, self.rules.profile) {
            (Some(least), _) => scored.score >= least,
            (None, Profile::Hybrid) => self.best >= HYBRID_MIN && scored.score >= HYBRID_ITEM_MIN,
            (None, Profile::Recency) => scored.parts.relevance >= RECENCY_MIN,
            (None, Profile::Decay) => true,
        }
    }

    /// What was chosen.
    pub fn finish(mut self) -> Ranking {
        self.out.abstained = self.fits == 0;
        self.out
    }
}

/// Days, with fractions; 0 when `then` lies ahead.
pub fn days_between(then: Timestamp, now: Timestamp) -> f64 {
    (now - then).num_seconds().max(0) as f64 / 86_400.0
}

fn say_the_same(one: &Memory, other: &Memory) -> bool {
    let (a, b) = (normalise(&one.content), normalise(&other.content));
    (a == b && one.speaker == other.speaker)
        || (one.layer != other.layer
            && share_a_source(one, other)
            && (a.contains(&b) || b.contains(&a)))
}

/// Whether the standing preferences already settle what a preference says: one of them says the same, or speaks newer of the same. Such a
/// preference is not to be told beside them, however well it fits a question.
pub fn settled_by(memory: &Memory, standing: &[Memory]) -> bool {
    if memory.scope != Scope::UserProfile || memory.kind != Kind::Preference {
        return false;
    }
    let subjects: Vec<(String, Value)> = standing.iter().flat_map(subjects_of).collect();
    let about = subjects_of(memory);
    (!about.is_empty() && about.iter().all(|said| is_settled(said, &subjects)))
        || standing.iter().any(|other| {
            other.id == memory.id || say_the_same(memory, other) || share_a_source(memory, other)
        })
}

fn share_a_source(one: &Memory, other: &Memory) -> bool {
    one.sources
        .iter()
        .any(|s| other.sources.iter().any(|o| o.message_id == s.message_id))
}

/// The tokens of a memory's line, with its line end.
pub fn cost(memory: &Memory, counter: &dyn TokenCounter) -> usize {
    let language = Language::detect(&memory.content);
    let told = RecalledMemory::of(memory, 0.0, Via::Relevance);
    counter.count(&format!("{}\n", line(&told, language)))
}

/// The standing preferences that go into every prompt (B2a): current, of the person, newest first, as many as the bounds allow.
///
/// Of several about the same thing only the newest is told, unless it leaves the other standing ("bullet points", and then "no tables"). An
/// episodic one is left out when a semantic one has the same message as source;
/// what it is about is read from its words, so that a change of mind counts before anything was consolidated.
pub fn profile(
    preferences: Vec<Memory>,
    max_items: usize,
    token_budget: usize,
    counter: &dyn TokenCounter,
) -> Vec<Memory> {
    let mut standing: Vec<Memory> = preferences
        .into_iter()
        .filter(|m| {
            m.state == State::Current && m.scope == Scope::UserProfile && m.kind == Kind::Preference
        })
        .collect();
    standing.sort_by(|a, b| b.valid_from.cmp(&a.valid_from).then(b.id.cmp(&a.id)));
    let (semantic, episodic): (Vec<&Memory>, Vec<&Memory>) =
        standing.iter().partition(|m| m.layer != Layer::Episodic);
    let covered: BTreeSet<MemoryId> = episodic
        .into_iter()
        .filter(|e| semantic.iter().any(|s| share_a_source(s, e)))
        .map(|e| e.id)
        .collect();
    let mut said = BTreeSet::new();
    let mut subjects: Vec<(String, Value)> = Vec::new();
    let mut left = token_budget;
    let mut out = Vec::new();
    for memory in standing {
        let about = subjects_of(&memory);
        let settled = !about.is_empty() && about.iter().all(|said| is_settled(said, &subjects));
        if covered.contains(&memory.id)
            || settled
            || !said.insert((memory.speaker.clone(), normalise(&memory.content)))
        {
            continue;
        }
        subjects.extend(about);
        if out.len() < max_items
            && let Some(rest) = left.checked_sub(cost(&memory, counter))
        {
            left = rest;
            out.push(memory);
        }
    }
    out
}

/// Whether what is said of a subject is said, or contradicted, by those.
fn is_settled(said: &(String, Value), by: &[(String, Value)]) -> bool {
    by.iter()
        .any(|(key, value)| *key == said.0 && (*value == said.1 || value.contradicts(&said.1)))
}

/// What a preference is about, and what it says of it. One that also states something without a subject is never settled by others.
fn subjects_of(memory: &Memory) -> Vec<(String, Value)> {
    match &memory.key {
        Some(key) => vec![(key.clone(), value(key, &memory.content))],
        None => rules::statements(&memory.content)
            .into_iter()
            .filter(|s| s.kind == Kind::Preference)
            .map(|s| Some((s.key?, s.value)))
            .collect::<Option<Vec<_>>>()
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
