//! What supersedes what (B13): of all that is said of one thing, what holds at which time.
//!
//! What has the same key speaks of the same thing, in whatever layer and language. All that was said of a key, in the order of the times
//! from which it holds, is a line of *claims*; [`settle`] says of each how long it held. It looks at nothing else, so the outcome does not
//! depend on the order in which claims arrive: an old statement that comes late is closed where the one that followed it begins, a third
//! change works like the second, and taking a claim away reopens what only it had ended.

use std::collections::{BTreeMap, BTreeSet};

use super::analysis::normalise;
use super::consolidation::strengthen;
use super::rules;
use super::{Layer, Memory, State, Trust, forgetting};
use crate::ids::{MemoryId, Timestamp};

/// What is said of a key, normalised.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// It is this.
    Is(String),
    /// It is not, or no longer, this. What else it may be is left open.
    Not(String),
    /// There is none, or none any more.
    Nothing,
}

impl Value {
    /// Whether both cannot hold at once.
    pub fn contradicts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Is(one), Self::Is(two)) => one != two,
            (Self::Is(one), Self::Not(two)) | (Self::Not(one), Self::Is(two)) => one == two,
            (Self::Nothing, Self::Is(_)) | (Self::Is(_), Self::Nothing) => true,
            (Self::Not(_) | Self::Nothing, Self::Not(_) | Self::Nothing) => false,
        }
    }

    /// Whether it only ends what was said before, and puts nothing in its place.
    pub fn only_ends(&self) -> bool {
        !matches!(self, Self::Is(_))
    }
}

/// One statement of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The memory that states it.
    pub id: MemoryId,
    /// What it says.
    pub value: Value,
    /// Who said it.
    pub trust: Trust,
    /// Since when it holds.
    pub since: Timestamp,
    /// Its place among what was said at the same moment: the sequence number of its first message; none for what no message said, which comes last.
    pub seq: Option<i64>,
    /// When it was stored: the place among the rest.
    pub stored: Timestamp,
    /// It ended then without a successor, whatever else is said.
    pub ended: Option<Timestamp>,
}

impl Claim {
    /// What a memory claims; none when it has no key, or waits for confirmation.
    pub fn of(memory: &Memory) -> Option<Self> {
        let key = memory.key.as_deref()?;
        (memory.state != State::Quarantined).then(|| Self {
            id: memory.id,
            value: value(key, &memory.content),
            trust: memory.trust,
            since: memory.valid_from,
            seq: memory.sources.iter().map(|s| s.seq).min(),
            stored: memory.created_at,
            ended: memory.ended_at,
        })
    }

    fn place(&self) -> (Timestamp, bool, Option<i64>, Timestamp, MemoryId) {
        (
            self.since,
            self.seq.is_none(),
            self.seq,
            self.stored,
            self.id,
        )
    }
}

/// What a text says of a key: as the rules read it (the last time, if it says it twice), or, where they find nothing of it, the text itself.
pub fn value(key: &str, content: &str) -> Value {
    stated(key, content).unwrap_or_else(|| Value::Is(normalise(content)))
}

/// Whether the rules find in a text that it says something of a key.
pub fn states(key: &str, content: &str) -> bool {
    stated(key, content).is_some()
}

fn stated(key: &str, content: &str) -> Option<Value> {
    let (_, attribute) = rules::parts(key);
    rules::statements(content)
        .into_iter()
        .rfind(|s| s.key.as_deref() == Some(attribute))
        .map(|s| s.value)
}

/// The key that the rules read from what a memory says, when it says one thing and nothing else.
pub fn key_of(memory: &Memory) -> Option<String> {
    let content = memory.content.trim();
    let stated = rules::statements(content);
    match stated.as_slice() {
        [only] if only.sentences == (0..content.len()) => only.key_of(memory.speaker.as_deref()),
        _ => None,
    }
}

/// How long a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Until when; open when it still holds. Never before it began: the same moment means that it never held.
    pub until: Option<Timestamp>,
    /// What ended it, or kept it from holding.
    pub by: Option<MemoryId>,
    /// Number of the run: claims of the same value that hold without a break are one run.
    pub run: usize,
}

impl Standing {
    /// Whether it holds at a time, given since when it is claimed.
    pub fn holds_at(&self, since: Timestamp, at: Timestamp) -> bool {
        since <= at && self.until.is_none_or(|until| at < until)
    }
}

/// Claims of one value, said again and again, that hold now.
struct Run {
    number: usize,
    members: Vec<usize>,
    trust: Trust,
}

impl Run {
    /// The first of those who are best trusted.
    fn strongest(&self, claims: &[Claim]) -> Option<usize> {
        let trusted = |&&at: &&usize| claims[at].trust == self.trust;
        self.members.iter().find(trusted).copied()
    }
}

/// How long each of the claims of one key holds; answered in the order of the claims given.
///
/// The newest wins at once: it ends whatever contradicts it, from the moment it holds. It does not when what contradicts it is better
/// trusted: then it never holds, and the better trusted goes on. Who says the same again ends nothing, and lends their trust.
pub fn settle(claims: &[Claim]) -> Vec<Standing> {
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by_key(|&at| claims[at].place());
    let mut standings: Vec<Standing> = claims
        .iter()
        .map(|claim| Standing {
            until: claim.ended,
            by: None,
            run: 0,
        })
        .collect();
    let mut open: Vec<Run> = Vec::new();
    let mut runs = 0;
    for at in order {
        let claim = &claims[at];
        leave(&mut open, claims, claim.since);
        let value_of = |run: &Run| &claims[run.members[0]].value;
        let stronger = open
            .iter()
            .find(|run| value_of(run).contradicts(&claim.value) && run.trust > claim.trust);
        if let Some(stronger) = stronger {
            runs += 1;
            standings[at] = Standing {
                until: Some(claim.since),
                by: stronger.strongest(claims).map(|at| claims[at].id),
                run: runs,
            };
            continue;
        }
        open.retain(|run| {
            let ends = value_of(run).contradicts(&claim.value);
            if ends {
                for &member in &run.members {
                    standings[member].until = Some(claim.since);
                    standings[member].by = Some(claim.id);
                }
            }
            !ends
        });
        let same = open
            .iter()
            .position(|run| claims[run.members[0]].value == claim.value);
        let run = if let Some(position) = same {
            &mut open[position]
        } else {
            runs += 1;
            open.push(Run {
                number: runs,
                members: Vec::new(),
                trust: claim.trust,
            });
            let last = open.len() - 1;
            &mut open[last]
        };
        run.members.push(at);
        run.trust = run.trust.max(claim.trust);
        standings[at].run = run.number;
    }
    standings
}

/// Takes out of the runs what ended by itself.
fn leave(open: &mut Vec<Run>, claims: &[Claim], now: Timestamp) {
    for run in open.iter_mut() {
        run.members
            .retain(|&member| claims[member].ended.is_none_or(|ended| ended > now));
        let trust = run.members.iter().map(|&member| claims[member].trust).max();
        run.trust = trust.unwrap_or(run.trust);
    }
    open.retain(|run| !run.members.is_empty());
}

/// What has to change of a memory, since what it claims stands otherwise than is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The memory.
    pub id: MemoryId,
    /// How it turned out.
    pub outcome: Outcome,
    /// Its new state.
    pub state: State,
    /// Until when it holds.
    pub valid_to: Option<Timestamp>,
    /// What ended it.
    pub superseded_by: Option<MemoryId>,
}

impl Verdict {
    /// Makes a memory stand as it says.
    pub fn apply(&self, memory: &mut Memory) {
        memory.state = self.state;
        memory.valid_to = self.valid_to;
        memory.superseded_by = self.superseded_by;
    }
}

/// How what a memory claims turned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Another value took its place.
    Superseded,
    /// It ended, and nothing took its place.
    Closed,
    /// It contradicts what is better trusted.
    Refused,
    /// It holds again, or longer: what had ended it is gone.
    Reopened,
}

/// How memories that are all that is said of some keys have to stand, where that differs from how they do. Memories without a key are passed over.
pub fn verdicts<'m>(memories: impl IntoIterator<Item = &'m Memory>) -> Vec<Verdict> {
    let mut lines: BTreeMap<&str, Vec<(Claim, &Memory)>> = BTreeMap::new();
    for memory in memories {
        if let (Some(claim), Some(key)) = (Claim::of(memory), memory.key.as_deref()) {
            lines.entry(key).or_default().push((claim, memory));
        }
    }
    lines.into_values().flat_map(|line| judged(&line)).collect()
}

fn judged(line: &[(Claim, &Memory)]) -> Vec<Verdict> {
    let claims: Vec<Claim> = line.iter().map(|(claim, _)| claim.clone()).collect();
    let claim_of = |id: MemoryId| claims.iter().find(|claim| claim.id == id);
    line.iter()
        .zip(settle(&claims))
        .filter_map(|((claim, memory), standing)| {
            let state = match memory.state {
                State::Superseded if standing.until.is_none() => match memory.layer {
                    Layer::Archival => State::Archived,
                    _ => State::Current,
                },
                _ if standing.by.is_some() => State::Superseded,
                state => state,
            };
            let as_stored = (memory.state, memory.valid_to, memory.superseded_by)
                == (state, standing.until, standing.by);
            let outcome = match standing.by.and_then(claim_of) {
                Some(by) if by.trust > claim.trust && by.place() < claim.place() => {
                    Outcome::Refused
                }
                Some(by) if by.value.only_ends() => Outcome::Closed,
                Some(_) => Outcome::Superseded,
                None => Outcome::Reopened,
            };
            (!as_stored).then_some(Verdict {
                id: memory.id,
                outcome,
                state,
                valid_to: standing.until,
                superseded_by: standing.by,
            })
        })
        .collect()
}

/// What may stand otherwise because of some memories: all that is said of their keys and did not end before the first of them begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The keys, each once.
    pub keys: Vec<String>,
    /// Since when.
    pub since: Timestamp,
}

impl Touched {
    /// By these memories; none if none of them has a key. What waits for confirmation says nothing of its key yet.
    pub fn by<'m>(memories: impl IntoIterator<Item = &'m Memory>) -> Option<Self> {
        let keyed: Vec<(&String, Timestamp)> = memories
            .into_iter()
            .filter(|memory| memory.state != State::Quarantined)
            .filter_map(|memory| Some((memory.key.as_ref()?, memory.valid_from)))
            .collect();
        let since = keyed.iter().map(|(_, since)| *since).min()?;
        let keys: BTreeSet<&String> = keyed.iter().map(|(key, _)| *key).collect();
        Some(Self {
            keys: keys.into_iter().cloned().collect(),
            since,
        })
    }

    /// All that either names.
    pub fn joined(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (Some(mut one), Some(other)) = (one.clone(), other.clone()) else {
            return one.or(other);
        };
        one.keys.extend(other.keys);
        one.keys.sort();
        one.keys.dedup();
        one.since = one.since.min(other.since);
        Some(one)
    }
}

/// A memory that a caller gives once more; none when that changes nothing, as when what is given waits for confirmation: that lends nothing
/// weight. What was learned from messages has one more voice now; to give twice what was given is no more than to give it once, unless it was
/// archived meanwhile: then it is back. What is said to have held earlier holds since then.
pub fn voiced(known: &Memory, again: &Memory) -> Option<Memory> {
    if again.state == State::Quarantined {
        return None;
    }
    let mut voiced = known.clone();
    if !known.sources.is_empty() {
        voiced = said_again(known, strengthen(known.confidence), again.created_at);
        voiced.version = known.version;
    } else if known.state == State::Archived {
        forgetting::restore(&mut voiced, again.created_at);
    }
    if known.key.is_some() {
        voiced.valid_from = known.valid_from.min(again.valid_from);
    }
    if voiced == *known {
        return None;
    }
    voiced.version += 1;
    Some(voiced)
}

/// A memory that was said once more, at this time, and is as sure as that now: to say it is to use it, and brings back what was archived.
pub fn said_again(known: &Memory, confidence: f64, now: Timestamp) -> Memory {
    let mut said = known.clone();
    said.confidence = confidence;
    if known.state == State::Archived {
        forgetting::restore(&mut said, now);
    }
    said.last_access = known.last_access.max(now);
    said.version += 1;
    said
}

/// The memory that a new one would only repeat: made in the same layer, of the same words and speaker, and holding without a break until the new one would.
/// `line` is all that is said of its key, or at least all of it that did not end before the new one begins.
pub fn repeated<'m>(line: &'m [Memory], new: &Memory) -> Option<&'m Memory> {
    let identity = super::consolidation::identity(new);
    let line: Vec<(Claim, &Memory)> = line
        .iter()
        .filter(|memory| memory.key == new.key)
        .filter_map(|memory| Some((Claim::of(memory)?, memory)))
        .collect();
    let mut claims: Vec<Claim> = line.iter().map(|(claim, _)| claim.clone()).collect();
    claims.push(Claim::of(new)?);
    let standings = settle(&claims);
    let run = standings.last()?.run;
    line.iter()
        .zip(&standings)
        .filter(|(_, standing)| standing.run == run)
        .map(|((_, memory), _)| *memory)
        .filter(|memory| {
            memory.made_in() == new.layer
                && memory.trust == new.trust
                && super::consolidation::identity(memory) == identity
        })
        .min_by_key(|memory| memory.state == State::Archived)
}

/// Whether one of several new memories with keys would only repeat one that is stored. `stored` is all that is said of their keys.
pub fn repeat_any(stored: &[Memory], new: &[&Memory]) -> bool {
    let mut all = stored.to_vec();
    all.extend(new.iter().map(|memory| (*memory).clone()));
    new.iter().any(|memory| {
        let others: Vec<Memory> = all.iter().filter(|m| m.id != memory.id).cloned().collect();
        repeated(&others, memory).is_some_and(|known| stored.iter().any(|m| m.id == known.id))
    })
}

#[cfg(test)]
mod tests;
