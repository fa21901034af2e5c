//! What supersedes what (B13): of all that is said of one thing, what holds at which time.
//!
//! What has the same key speaks of the same thing, in whatever layer and language. All that was said of a key, in the order of the times
//! from which it holds, is a line of *claims*; [`settle`] says of each how long it held. It looks at nothing else, so the outcome does not
//! depend on the order in which claims arrive: an old statement that comes late is closed where the one that followed it begins, a third
//! change works like the second, and taking a claim away reopens what only it had ended.

use super::analysis::normalise;
use super::rules;
use super::{Memory, State, Trust};
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
    /// It ended then without a successor, whatever else was said: what had followed it was forgotten.
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
            ended: memory
                .valid_to
                .filter(|_| memory.state != State::Superseded),
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
    let (_, attribute) = rules::parts(key);
    rules::statements(content)
        .into_iter()
        .rfind(|s| s.key.as_deref() == Some(attribute))
        .map_or_else(|| Value::Is(normalise(content)), |s| s.value)
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

/// What a new claim does to those that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing holds of the key at that time: it is new.
    New,
    /// The same holds already; one more voice for these.
    Strengthen(Vec<MemoryId>),
    /// It takes the place of these.
    Supersede(Vec<MemoryId>),
    /// It ends these and puts nothing in their place.
    Close(Vec<MemoryId>),
    /// It comes late: it held until this one began.
    Past(MemoryId),
    /// This one contradicts it and is better trusted: it never holds.
    Refuse(MemoryId),
}

/// What `new` does to `present`, claims of the same key.
pub fn decide(present: &[Claim], new: &Claim) -> Decision {
    let before = settle(present);
    let mut all = present.to_vec();
    all.push(new.clone());
    let after = settle(&all);
    let own = after[present.len()];
    if let (Some(until), Some(by)) = (own.until, own.by) {
        return if until == new.since && is_stronger(present, by, new) {
            Decision::Refuse(by)
        } else {
            Decision::Past(by)
        };
    }
    let ended: Vec<MemoryId> = (0..present.len())
        .filter(|&at| after[at].by == Some(new.id) && before[at] != after[at])
        .map(|at| present[at].id)
        .collect();
    let same: Vec<MemoryId> = (0..present.len())
        .filter(|&at| after[at].run == own.run)
        .map(|at| present[at].id)
        .collect();
    match (ended.is_empty(), new.value.only_ends(), same.is_empty()) {
        (false, true, _) => Decision::Close(ended),
        (false, false, _) => Decision::Supersede(ended),
        (true, _, false) => Decision::Strengthen(same),
        (true, _, true) => Decision::New,
    }
}

fn is_stronger(present: &[Claim], by: MemoryId, new: &Claim) -> bool {
    present
        .iter()
        .any(|claim| claim.id == by && claim.place() < new.place())
}

#[cfg(test)]
mod tests;
