//! Recall: what is remembered that fits a query, with the reasons; and the standing preferences that fit every query (B2a).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tidemark_domain::ids::{MemoryId, MessageId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::lexical::{self, LexicalHit};
use tidemark_domain::memory::recall::{
    self as rules, Candidate, DropReason, Ranking, RecallRules, TopK,
};
use tidemark_domain::memory::scoring::Profile;
use tidemark_domain::memory::{Kind, Memory, Scope, State, analysis, episodic};
use tidemark_domain::session::Message;
use tidemark_domain::window::TokenCounter;

use crate::ports::clock::Clock;
use crate::ports::store::{Store, StoreError};
use crate::settings::RecallSettings;

/// How much text of messages that are not yet indexed is looked through, in bytes. Ours: some milliseconds of work.
const UNINDEXED_BYTES: usize = 256 * 1024;

/// What to recall.
#[derive(Clone, Debug)]
pub struct RecallRequest {
    /// In the asker's words.
    pub query: String,
    /// Only in these scopes; none means all.
    pub scopes: Vec<Scope>,
    /// Only what was learned in, or given for, this session.
    pub session_id: Option<SessionId>,
    /// How many.
    pub top_k: TopK,
    /// How to score; the server's own when none is named.
    pub profile: Option<Profile>,
    /// Below this nothing is recalled; the profile's own when none is named; 0 switches abstention off.
    pub min_score: Option<f64>,
    /// The time to judge by; now when none is named.
    pub now: Option<Timestamp>,
    /// The most tokens the recalled lines may take.
    pub token_budget: usize,
    /// Length of the dialogue, in messages; for the dynamic number of memories (B10).
    pub session_messages: i64,
    /// For these memories say why they were not recalled (B16).
    pub why_not: Vec<MemoryId>,
    /// Messages that the asker has before it: what was learned from them alone is left out.
    pub in_window: BTreeSet<MessageId>,
}

impl Default for RecallRequest {
    fn default() -> Self {
        Self {
            query: String::new(),
            scopes: Vec::new(),
            session_id: None,
            top_k: TopK::Auto,
            profile: None,
            min_score: None,
            now: None,
            token_budget: 2_000,
            session_messages: 0,
            why_not: Vec::new(),
            in_window: BTreeSet::new(),
        }
    }
}

/// What was recalled.
#[derive(Clone, Debug)]
pub struct RecallOutcome {
    /// By relevance, with scores and reasons.
    pub ranking: Ranking,
    /// Arms that failed: the outcome is without them. There is one arm in this version, and its failure is an error.
    pub degraded: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

/// What a turn is shown of memory.
#[derive(Debug)]
pub struct TurnRecall {
    /// The standing preferences.
    pub preferences: Result<Vec<Memory>, StoreError>,
    /// What fits the question.
    pub relevant: Result<RecallOutcome, StoreError>,
}

/// Recalls.
pub struct Recall {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    counter: Arc<dyn TokenCounter>,
    settings: RecallSettings,
}

impl std::fmt::Debug for Recall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recall").finish_non_exhaustive()
    }
}

impl Recall {
    /// Over this store.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        counter: Arc<dyn TokenCounter>,
        settings: RecallSettings,
    ) -> Self {
        Self {
            store,
            clock,
            counter,
            settings,
        }
    }

    /// Its settings.
    pub fn settings(&self) -> &RecallSettings {
        &self.settings
    }

    /// What fits the query. Reading never counts as use.
    ///
    /// # Errors
    /// When the store fails.
    #[tracing::instrument(name = "recall", skip_all)]
    pub async fn run(
        &self,
        owner: Owner,
        request: RecallRequest,
    ) -> Result<RecallOutcome, StoreError> {
        let now = request.now.unwrap_or_else(|| self.clock.now());
        let fresh = self.fresh(owner, now).await?;
        self.relevant(owner, request, fresh, now).await
    }

    /// What a turn is shown: what fits its question, and the standing preferences (B2a), newest first within `profile_budget` tokens.
    /// Either may fail alone.
    #[tracing::instrument(name = "recall", skip_all)]
    pub async fn for_turn(
        &self,
        owner: Owner,
        request: RecallRequest,
        profile_budget: usize,
    ) -> Result<TurnRecall, StoreError> {
        let now = request.now.unwrap_or_else(|| self.clock.now());
        let fresh = self.fresh(owner, now).await?;
        let (preferences, relevant) = tokio::join!(
            self.preferences(owner, profile_budget, fresh.clone(), now),
            self.relevant(owner, request, fresh, now)
        );
        Ok(TurnRecall {
            preferences,
            relevant,
        })
    }

    async fn relevant(
        &self,
        owner: Owner,
        request: RecallRequest,
        fresh: Vec<Memory>,
        now: Timestamp,
    ) -> Result<RecallOutcome, StoreError> {
        let began = tokio::time::Instant::now();
        let terms = lexical::query_terms(&request.query);
        let hits = self
            .hits(owner, &terms, &request.scopes, &fresh, now)
            .await?;
        let candidates = self.candidates(owner, &hits, fresh).await?;
        let profile = request.profile.unwrap_or(self.settings.profile);
        let top_k = request
            .top_k
            .resolve(profile, &request.query, request.session_messages);
        let seen: BTreeSet<MemoryId> = candidates.iter().map(|c| c.memory.id).collect();
        let mut dropped = Vec::new();
        let mut fitting = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            if !in_scope(&candidate.memory, &request) {
                dropped.push((candidate.memory.id, DropReason::OtherScope));
            } else if said_in(&candidate.memory, &request.in_window) {
                dropped.push((candidate.memory.id, DropReason::InWindow));
            } else {
                fitting.push(candidate);
            }
        }
        let mut ranking = rules::rank(
            fitting,
            &RecallRules {
                profile,
                top_k,
                min_score: request.min_score,
                now,
                token_budget: request.token_budget,
            },
            self.counter.as_ref(),
        );
        ranking.dropped.extend(dropped);
        self.explain_absent(owner, &request, &seen, &mut ranking, now)
            .await?;
        Ok(RecallOutcome {
            ranking,
            degraded: Vec::new(),
            took: began.elapsed(),
        })
    }

    async fn preferences(
        &self,
        owner: Owner,
        token_budget: usize,
        fresh: Vec<Memory>,
        now: Timestamp,
    ) -> Result<Vec<Memory>, StoreError> {
        let limit = (self.settings.max_preferences * 4) as u32;
        let mut found = self.store.preferences(owner, now, limit).await?;
        let known: BTreeSet<MemoryId> = found.iter().map(|m| m.id).collect();
        found.extend(fresh.into_iter().filter(|m| {
            m.kind == Kind::Preference && m.scope == Scope::UserProfile && !known.contains(&m.id)
        }));
        Ok(rules::profile(
            found,
            self.settings.max_preferences,
            token_budget,
            self.counter.as_ref(),
        ))
    }

    /// What the index will make of the messages it has not come to yet, so that a person's next request finds what the last one said.
    async fn fresh(&self, owner: Owner, now: Timestamp) -> Result<Vec<Memory>, StoreError> {
        let messages = self.store.unindexed(owner, self.settings.unindexed).await?;
        // The newest first, and no more text than can be looked through without being felt.
        let mut left = UNINDEXED_BYTES;
        let mut newest: Vec<&Message> = messages.iter().collect();
        newest.sort_by_key(|m| std::cmp::Reverse(m.created_at));
        Ok(newest
            .into_iter()
            .take_while(|m| {
                let fits = left > 0;
                left = left.saturating_sub(m.content.len());
                fits
            })
            .flat_map(|m| episodic::memories(m, now))
            .collect())
    }

    async fn hits(
        &self,
        owner: Owner,
        terms: &[String],
        scopes: &[Scope],
        fresh: &[Memory],
        now: Timestamp,
    ) -> Result<Vec<LexicalHit>, StoreError> {
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.store.lexical(owner, terms, scopes, now).await?;
        let (mut stats, mut postings) = (rows.stats, rows.postings);
        let indexed: BTreeSet<MemoryId> = postings
            .iter()
            .flat_map(|t| t.postings.iter().map(|p| p.memory))
            .collect();
        for memory in fresh.iter().filter(|m| !indexed.contains(&m.id)) {
            if scopes.is_empty() || scopes.contains(&memory.scope) {
                let document = analysis::document_of(memory);
                lexical::add_document(&mut stats, &mut postings, terms, memory.id, &document);
            }
        }
        Ok(lexical::score(terms, stats, &postings))
    }

    async fn candidates(
        &self,
        owner: Owner,
        hits: &[LexicalHit],
        fresh: Vec<Memory>,
    ) -> Result<Vec<Candidate>, StoreError> {
        let mut rows: HashMap<MemoryId, Memory> = fresh.into_iter().map(|m| (m.id, m)).collect();
        let best = &hits[..hits.len().min(self.settings.candidates)];
        let ids: Vec<MemoryId> = best.iter().map(|h| h.id).collect();
        if !ids.is_empty() {
            let stored = self.store.memories(owner, &ids).await?;
            rows.extend(stored.into_iter().map(|m| (m.id, m)));
        }
        Ok(best
            .iter()
            .filter_map(|hit| {
                Some(Candidate {
                    memory: rows.remove(&hit.id)?,
                    relevance: hit.relevance,
                    matched: hit.matched.clone(),
                })
            })
            .collect())
    }

    /// Why memories that never came into the ranking did not.
    async fn explain_absent(
        &self,
        owner: Owner,
        request: &RecallRequest,
        seen: &BTreeSet<MemoryId>,
        ranking: &mut Ranking,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let asked: Vec<MemoryId> = request
            .why_not
            .iter()
            .copied()
            .filter(|id| !seen.contains(id))
            .collect();
        if asked.is_empty() {
            return Ok(());
        }
        let known: BTreeMap<MemoryId, Memory> = self
            .store
            .memories(owner, &asked)
            .await?
            .into_iter()
            .map(|m| (m.id, m))
            .collect();
        for id in asked {
            let Some(memory) = known.get(&id) else {
                continue;
            };
            let reason = if memory.state != State::Current {
                DropReason::NotCurrent
            } else if memory.expires_at.is_some_and(|at| at <= now) {
                DropReason::Expired
            } else if !in_scope(memory, request) {
                DropReason::OtherScope
            } else {
                DropReason::BelowThreshold
            };
            ranking.dropped.push((id, reason));
        }
        Ok(())
    }
}

fn in_scope(memory: &Memory, request: &RecallRequest) -> bool {
    // A profile belongs to the person, not to a session: it is not searched at session level (B3).
    let session = request
        .session_id
        .is_none_or(|id| memory.scope != Scope::UserProfile && of_session(memory, id));
    session && (request.scopes.is_empty() || request.scopes.contains(&memory.scope))
}

fn of_session(memory: &Memory, session: SessionId) -> bool {
    memory.session_id == Some(session) || memory.sources.iter().any(|s| s.session_id == session)
}

/// Whether all that a memory says is in these messages already.
pub fn said_in(memory: &Memory, messages: &BTreeSet<MessageId>) -> bool {
    !memory.sources.is_empty()
        && memory
            .sources
            .iter()
            .all(|s| messages.contains(&s.message_id))
}
