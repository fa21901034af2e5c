//! Which memories fit a question, and how well.
//!
//! First it is decided which entries may be told at all ([`Eligible`]); only these count in the statistics, so that a filter never starves
//! what is left. Then the arms find entries and say how well each fits, then a profile makes the score. What is told of it, and what
//! not, is decided in [`super::super::recall`].

use std::collections::{BTreeSet, HashMap};

use super::best::BestFirst;
use super::cosines::Cosines;
use super::diversity::diverse;
use super::fusion::{Fusion, REFINED};
use super::terms::Terms;
use super::{Entry, View, abstention};
use crate::ids::{MemoryId, MessageId, SessionId, Timestamp};
use crate::memory::lexical::{self, CorpusStats};
use crate::memory::recall::{DECAY_FETCH, DropReason, Moment, Standing, days_between};
use crate::memory::scoring::{
    Parts, Profile, RECENCY_DAYS, decay_factor, recency, recency_factor, use_boost,
};
use crate::memory::{Layer, Scope};

/// Which memories may be told.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only in these scopes; none means all.
    pub scopes: Vec<Scope>,
    /// Only what was learned in, or given for, this session.
    pub session_id: Option<SessionId>,
    /// Messages that the asker has before it: what was learned from them alone is left out.
    pub in_window: BTreeSet<MessageId>,
    /// How entries stand that do not stand as the index knows: what is not indexed yet has changed it.
    pub standings: HashMap<MemoryId, Standing>,
}

impl Filter {
    /// How an entry stands.
    pub fn standing(&self, entry: &Entry) -> Standing {
        self.standings
            .get(&entry.id)
            .copied()
            .unwrap_or_else(|| entry.standing())
    }

    /// Why an entry that may be told is not what was asked for.
    ///
    /// A profile belongs to the person, not to a session: it is not searched at session level (B3).
    pub fn rejects(&self, entry: &Entry) -> Option<DropReason> {
        let of_session = |id| {
            entry.scope != Scope::UserProfile
                && (entry.session_id == Some(id)
                    || entry.sources.iter().any(|s| s.session_id == id))
        };
        if !self.in_scope(entry.scope) || !self.session_id.is_none_or(of_session) {
            Some(DropReason::OtherScope)
        } else if said_in(entry, &self.in_window) {
            Some(DropReason::InWindow)
        } else {
            None
        }
    }

    fn in_scope(&self, scope: Scope) -> bool {
        self.scopes.is_empty() || self.scopes.contains(&scope)
    }
}

/// Whether all that a memory says is in these messages already.
fn said_in(entry: &Entry, messages: &BTreeSet<MessageId>) -> bool {
    !entry.sources.is_empty()
        && entry
            .sources
            .iter()
            .all(|s| messages.contains(&s.message_id))
}

/// A question to an index.
#[derive(Clone, Debug)]
pub struct Query {
    /// In the asker's words.
    pub text: String,
    /// The embedding of the text by each model that has made one.
    pub vectors: Vec<(String, Vec<f32>)>,
    /// What may be told.
    pub filter: Filter,
    /// The time to judge by.
    pub moment: Moment,
    /// The way of scoring.
    pub profile: Profile,
    /// The most memories that will be told.
    pub top_k: usize,
    /// The most memories that are answered.
    pub limit: usize,
    /// For these it is said why they are not among the answers.
    pub why_not: Vec<MemoryId>,
}

/// A memory that fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// The memory.
    pub id: MemoryId,
    /// Its score under the profile.
    pub score: f64,
    /// What the score is made of.
    pub parts: Parts,
    /// The terms of the query that it holds, sorted.
    pub matched: Vec<String>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Search {
    /// Best first, equal scores by id; at most as many as were asked for.
    pub found: Vec<Scored>,
    /// What fitted the question and is not among the found, and what was asked for and is not, with the reason.
    pub dropped: Vec<(MemoryId, DropReason)>,
    /// The messages behind chunks among the found, from which a fact was learned that has ended, each once. Whether a chunk says more than that is to be
    /// read from its words, see [`super::super::outdated`].
    pub doubtful: BTreeSet<MessageId>,
}

/// The entries that may be told in the asked scopes, with what BM25 knows of them.
#[derive(Debug)]
pub struct Eligible {
    admitted: Vec<bool>,
    /// Of the admitted ones.
    pub stats: CorpusStats,
    /// When the newest of them began to hold.
    pub newest: Option<Timestamp>,
}

impl Eligible {
    /// Of a view.
    pub fn of(view: &View<'_>, filter: &Filter, moment: &Moment) -> Self {
        let mut admitted = vec![false; view.slots() as usize];
        let mut stats = CorpusStats::default();
        let mut newest = None;
        let changed: HashMap<u32, Standing> = (filter.standings.iter())
            .filter_map(|(id, standing)| Some((view.slot(*id)?, *standing)))
            .collect();
        let entries = view.cases().zip(view.rows()).zip(&mut admitted);
        for (slot, ((case, row), admitted)) in (0..).zip(entries) {
            let standing = changed.get(&slot).unwrap_or(&case.standing);
            if !case.removed && filter.in_scope(case.scope) && moment.unfit(standing).is_none() {
                *admitted = true;
                stats.documents += 1;
                stats.total_len += u64::from(row.len);
                newest = newest.max(Some(standing.valid_from));
            }
        }
        Self {
            admitted,
            stats,
            newest,
        }
    }

    /// The slots of the admitted ones.
    pub fn slots(&self) -> impl Iterator<Item = u32> {
        let admitted = (0..).zip(&self.admitted);
        admitted.filter_map(|(slot, admitted)| admitted.then_some(slot))
    }

    /// Whether an entry is admitted.
    pub fn admits(&self, slot: u32) -> bool {
        self.admitted[slot as usize]
    }
}

/// Looks through an index.
pub fn search(view: &View<'_>, query: &Query) -> Search {
    let terms = lexical::query_terms(&query.text);
    let eligible = Eligible::of(view, &query.filter, &query.moment);
    let mut out = Search::default();
    let (judged, met) = match query.profile {
        Profile::Hybrid => fused(view, query, &eligible, &mut out),
        Profile::Decay | Profile::Recency => similar(view, query, &terms, &eligible, &mut out),
    };
    let holders: Vec<_> = terms.iter().map(|term| view.holders(term)).collect();
    let matched = |slot| {
        let held = terms.iter().zip(&holders).filter(|(_, h)| h.contains(slot));
        held.map(|(term, _)| term.clone()).collect()
    };
    out.found = judged
        .into_iter()
        .map(|judged| Scored {
            id: judged.found.entry.id,
            score: judged.score,
            parts: judged.parts,
            matched: matched(judged.found.slot),
        })
        .collect();
    out.doubtful = doubtful(view, query, &out.found);
    explain_absent(view, query, &met, &mut out);
    out
}

/// The messages behind chunks among the found from which a fact was learned that has ended.
fn doubtful(view: &View<'_>, query: &Query, found: &[Scored]) -> BTreeSet<MessageId> {
    // What is not indexed yet has ended these.
    let ended = (query.filter.standings.iter())
        .filter(|(_, standing)| standing.layer != Layer::Episodic && standing.has_ended())
        .filter_map(|(id, _)| Some(view.entry(view.slot(*id)?)));
    let fresh: BTreeSet<MessageId> = ended
        .flat_map(|entry| entry.sources.iter().map(|source| source.message_id))
        .collect();
    if fresh.is_empty() && view.ended().is_empty() {
        return fresh;
    }
    let messages = found.iter().filter_map(|scored| {
        let place = view.entry(view.slot(scored.id)?).place()?;
        Some(place.message_id)
    });
    messages
        .filter(|message| view.ended().has(*message) || fresh.contains(message))
        .collect()
}

/// Profile "hybrid": each entry that the question meets, by the weighed sum of its features.
fn fused<'v>(
    view: &'v View<'_>,
    query: &Query,
    eligible: &Eligible,
    out: &mut Search,
) -> (Vec<Judged<'v>>, BestFirst) {
    let mut fusion = Fusion::of(view, query, eligible);
    let mut met = fusion.best(eligible, query.limit);
    let found = out.fitting(view, query, &mut met, query.limit);
    let best: Vec<u32> = found.iter().map(|(slot, _)| *slot).collect();
    let evidence = abstention::evidence(&fusion, &best, eligible.stats.documents);
    let base = abstention::base(evidence, found.first().map_or(0.0, |(_, sum)| *sum));
    let session = |slot: u32| view.rows()[slot as usize].session;
    let judged = diverse(&found, session).into_iter().map(|(slot, loss)| {
        let parts = Parts {
            base: Some(base + fusion.allowed(slot)),
            diversity: (loss < 0.0).then_some(loss),
            ..fusion.parts(slot)
        };
        let relevance = parts.relevance;
        Judged {
            found: Found {
                slot,
                entry: view.entry(slot),
                relevance,
            },
            score: parts.score(Profile::Hybrid),
            parts,
        }
    });
    (judged.collect(), met)
}

/// Profiles "decay" and "recency": each entry that the question meets, by how like it is.
fn similar<'v>(
    view: &'v View<'_>,
    query: &Query,
    terms: &[String],
    eligible: &Eligible,
    out: &mut Search,
) -> (Vec<Judged<'v>>, BestFirst) {
    let mut cosines = Cosines::of(view, query, eligible);
    let terms = Terms::of(view, terms, eligible);
    let words = terms.alone(view, eligible);
    // A cosine goes before the words; what has no vector yet is found by the words alone.
    let relevance = |cosines: Option<&Cosines<'_>>, slot: u32| {
        let cosine = cosines.and_then(|cosines| cosines.get(slot));
        let share = || terms.share(words.by_slot[slot as usize]);
        cosine.map_or_else(share, |cosine| cosine.max(0.0))
    };
    let now = query.moment.now;
    let found = |slot, relevance| Found {
        slot,
        entry: view.entry(slot),
        relevance,
    };
    let key = |slot, relevance| match query.profile {
        Profile::Recency => {
            let age = days_between(view.case(slot).standing.valid_from, now);
            recency(relevance, age, RECENCY_DAYS)
        }
        Profile::Decay | Profile::Hybrid => relevance,
    };
    let fits = |slot: u32| {
        let relevance = relevance(cosines.as_ref(), slot);
        (relevance > 0.0).then(|| (slot, key(slot, relevance)))
    };
    let near = cosines.as_ref().is_some_and(Cosines::near);
    let wanted = query.limit.max(if near { REFINED } else { 0 });
    let mut met = if cosines.is_some() {
        BestFirst::of(view, eligible.slots().filter_map(fits), wanted)
    } else {
        BestFirst::of(view, words.met.iter().copied().filter_map(fits), wanted)
    };
    if near && let Some(cosines) = &mut cosines {
        met.wanted().for_each(|slot| cosines.refine(slot));
        met.rekey(|slot| key(slot, relevance(Some(cosines), slot)));
    }
    let relevance = |slot| relevance(cosines.as_ref(), slot);
    let all = out.fitting(view, query, &mut met, query.limit);
    let all = all.iter().map(|(slot, _)| found(*slot, relevance(*slot)));
    let (judged, beyond) = judge(all.collect(), query.profile, now, query.top_k);
    for found in &beyond {
        out.drop(found.entry.id, DropReason::BeyondTopK, query.limit);
    }
    (judged, met)
}

impl Search {
    /// The best ones that the filter lets through, at most so many; what it holds back is named.
    fn fitting(
        &mut self,
        view: &View<'_>,
        query: &Query,
        met: &mut BestFirst,
        most: usize,
    ) -> Vec<(u32, f64)> {
        let mut out = Vec::new();
        while out.len() < most
            && let Some((slot, key)) = met.next(view)
        {
            let entry = view.entry(slot);
            match query.filter.rejects(entry) {
                Some(reason) => self.drop(entry.id, reason, query.limit),
                None => out.push((slot, key)),
            }
        }
        out
    }

    /// Names what was left out, as long as the list is no longer than the answer may be.
    fn drop(&mut self, id: MemoryId, reason: DropReason, limit: usize) {
        if self.dropped.len() < limit {
            self.dropped.push((id, reason));
        }
    }
}

/// Why memories that were asked for are not among the found.
fn explain_absent(view: &View<'_>, query: &Query, met: &BestFirst, out: &mut Search) {
    if query.why_not.is_empty() {
        return;
    }
    let known: BTreeSet<MemoryId> = (out.found.iter().map(|scored| scored.id))
        .chain(out.dropped.iter().map(|(id, _)| *id))
        .collect();
    for &id in query.why_not.iter().filter(|id| !known.contains(id)) {
        let Some(slot) = view.slot(id) else { continue };
        let entry = view.entry(slot);
        let reason = query
            .moment
            .unfit(&query.filter.standing(entry))
            .or_else(|| query.filter.rejects(entry))
            .unwrap_or(if met.holds(slot) {
                DropReason::BeyondTopK
            } else {
                DropReason::BelowThreshold
            });
        out.dropped.push((id, reason));
    }
}

/// An entry that an arm found, as the profiles judge it.
#[derive(Clone, Copy, Debug)]
pub(in crate::memory) struct Found<'e> {
    pub(in crate::memory) slot: u32,
    pub(in crate::memory) entry: &'e Entry,
    pub(in crate::memory) relevance: f64,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::memory) struct Judged<'e> {
    pub(in crate::memory) found: Found<'e>,
    pub(in crate::memory) score: f64,
    pub(in crate::memory) parts: Parts,
}

/// Scores what was found, best first, equal scores by id. Profile "decay" scores [`DECAY_FETCH`] times as many of the best fitting ones as it
/// tells (B8): the others are answered apart.
pub(in crate::memory) fn judge(
    mut all: Vec<Found<'_>>,
    profile: Profile,
    now: Timestamp,
    top_k: usize,
) -> (Vec<Judged<'_>>, Vec<Found<'_>>) {
    let mut beyond = Vec::new();
    if profile == Profile::Decay {
        all.sort_unstable_by(|a, b| {
            let better = b.relevance.total_cmp(&a.relevance);
            better.then_with(|| a.entry.id.cmp(&b.entry.id))
        });
        beyond = all.split_off((DECAY_FETCH * top_k).min(all.len()));
    }
    let mut judged: Vec<Judged<'_>> = all
        .into_iter()
        .map(|found| {
            let parts = parts(&found, profile, now);
            Judged {
                score: parts.score(profile),
                parts,
                found,
            }
        })
        .collect();
    judged.sort_unstable_by(|a, b| {
        let better = b.score.total_cmp(&a.score);
        better.then_with(|| a.found.entry.id.cmp(&b.found.entry.id))
    });
    (judged, beyond)
}

fn parts(found: &Found<'_>, profile: Profile, now: Timestamp) -> Parts {
    let entry = found.entry;
    let mut parts = Parts {
        relevance: found.relevance,
        ..Parts::default()
    };
    match profile {
        Profile::Hybrid => {}
        Profile::Decay => {
            parts.decay = Some(decay_factor(days_between(entry.last_access, now)));
            parts.use_boost = Some(use_boost(entry.access_count));
        }
        Profile::Recency => {
            let age = days_between(entry.valid_from, now);
            parts.recency = Some(recency_factor(age, RECENCY_DAYS));
        }
    }
    parts
}
