//! Recall: what is remembered that fits a query, with the reasons; and the standing preferences that fit every query (B2a).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tidemark_domain::ids::{MemoryId, MessageId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::index::search::{Filter, Query, Scored, Search};
use tidemark_domain::memory::prompt::spoken;
use tidemark_domain::memory::recall::{
    self as rules, Moment, Ranking, RecallRules, Selection, TopK,
};
use tidemark_domain::memory::rerank::rerank;
use tidemark_domain::memory::scoring::Profile;
use tidemark_domain::memory::speakers::query_text;
use tidemark_domain::memory::{Kind, Layer, Memory, Scope};
use tidemark_domain::window::TokenCounter;

use super::fresh::{Fresh, Unindexed};
use super::indexes::Indexes;
use super::outdated;
use super::query_vectors::{Asked, QueryVectors};
use super::reranking::Reranking;
use crate::ports::clock::Clock;
use crate::ports::context::{RecallBase, RecallWanted};
use crate::ports::memories::MemoryRepository;
use crate::ports::store::{Store, StoreError};
use crate::settings::RecallSettings;

/// How many more than are told are looked at, at first, and how many times as many in all: some say the same or do not fit. Ours.
const SPARE: usize = 4;

/// The name of the arm that finds by meaning.
const DENSE: &str = "dense";

/// The name of the second opinion on the order.
const RERANK: &str = "rerank";

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
    /// Tell what held then instead of what holds now.
    pub as_of: Option<Timestamp>,
    /// Also tell what faded.
    pub archived: bool,
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
            as_of: None,
            archived: false,
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
    /// Arms that failed: the outcome is without them. `dense` is what finds by meaning, `rerank` the second opinion on the order; that the others
    /// fail is an error.
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
    indexes: Indexes,
    unindexed: Arc<Unindexed>,
    questions: QueryVectors,
    reranking: Option<Reranking>,
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
            indexes: Indexes::new(
                Arc::clone(&store) as Arc<dyn MemoryRepository>,
                settings.index_bytes,
                Vec::new(),
            ),
            unindexed: Arc::default(),
            questions: QueryVectors::new(Vec::new(), Duration::ZERO),
            reranking: None,
            store,
            clock,
            counter,
            settings,
        }
    }

    /// Finds by meaning too.
    #[must_use]
    pub fn with_questions(mut self, questions: QueryVectors) -> Self {
        self.indexes = Indexes::new(
            Arc::clone(&self.store) as Arc<dyn MemoryRepository>,
            self.settings.index_bytes,
            questions.models(),
        );
        self.questions = questions;
        self
    }

    /// Asks for a second opinion on the order.
    #[must_use]
    pub fn with_reranking(mut self, reranking: Option<Reranking>) -> Self {
        self.reranking = reranking;
        self
    }

    /// What it has made of messages that are not indexed yet.
    pub fn unindexed(&self) -> Arc<Unindexed> {
        Arc::clone(&self.unindexed)
    }

    /// Its settings.
    pub fn settings(&self) -> &RecallSettings {
        &self.settings
    }

    /// Lets go what is held of an owner who is gone.
    pub fn forget_owner(&self, owner: Owner) {
        self.indexes.forget(owner);
        self.unindexed.forget(owner);
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
        // Read behind the fresh ones: what is indexed meanwhile is found in one of both.
        let newest = self.store.memory_change(owner).await?;
        self.relevant(owner, request, &fresh, newest, now).await
    }

    async fn fresh(&self, owner: Owner, now: Timestamp) -> Result<Fresh, StoreError> {
        let (store, limit) = (self.store.as_ref(), self.settings.unindexed);
        self.unindexed.settled(store, owner, limit, now).await
    }

    /// What is to be read for [`Self::for_turn`] beforehand, with what else the turn reads.
    pub fn wanted(&self) -> RecallWanted {
        RecallWanted {
            unindexed: self.settings.unindexed,
            preferences: self.most_preferences(),
            now: self.clock.now(),
        }
    }

    /// What a turn is shown: what fits its question, and the standing preferences (B2a), newest first within `profile_budget` tokens.
    /// Either may fail alone. `base` is what was read beforehand; without it, it is read here.
    #[tracing::instrument(name = "recall", skip_all)]
    pub async fn for_turn(
        &self,
        owner: Owner,
        request: RecallRequest,
        profile_budget: usize,
        base: Option<RecallBase>,
    ) -> Result<TurnRecall, StoreError> {
        let now = request.now.unwrap_or_else(|| self.clock.now());
        let store = self.store.as_ref();
        let fresh = match &base {
            Some(base) => {
                let (messages, has_forgotten) = (&base.unindexed, base.has_forgotten);
                self.unindexed
                    .settled_of(store, owner, messages, has_forgotten, now)
                    .await?
            }
            None => self.fresh(owner, now).await?,
        };
        // Behind the fresh ones, as far as these were settled with what is stored: what is indexed meanwhile is found in one of both.
        let (preferences, newest) = if let Some(base) = base.filter(|_| !fresh.looked) {
            (Ok(base.preferences), base.change)
        } else {
            let limit = self.most_preferences();
            let preferences = store.preferences(owner, now, limit).await;
            (preferences, store.memory_change(owner).await?)
        };
        let preferences = async {
            self.preferences(owner, profile_budget, preferences?, &fresh, newest, now)
                .await
        };
        let (preferences, relevant) = tokio::join!(
            preferences,
            self.relevant(owner, request, &fresh, newest, now)
        );
        Ok(TurnRecall {
            preferences,
            relevant,
        })
    }

    fn most_preferences(&self) -> u32 {
        (self.settings.max_preferences * 4) as u32
    }

    async fn relevant(
        &self,
        owner: Owner,
        request: RecallRequest,
        fresh: &Fresh,
        newest: i64,
        now: Timestamp,
    ) -> Result<RecallOutcome, StoreError> {
        let began = tokio::time::Instant::now();
        let profile = request.profile.unwrap_or(self.settings.profile);
        let top_k = request
            .top_k
            .resolve(profile, &request.query, request.session_messages);
        let moment = Moment {
            now,
            as_of: request.as_of,
            archived: request.archived,
        };
        let asked = self
            .asked(owner, newest, &request.query, &fresh.made)
            .await?;
        let query = Query {
            text: request.query.clone(),
            vectors: asked.vectors,
            filter: Filter {
                scopes: request.scopes,
                session_id: request.session_id,
                in_window: request.in_window,
                standings: fresh.standings(),
            },
            moment,
            profile,
            top_k,
            limit: self.settings.candidates.max(SPARE * top_k),
            why_not: request.why_not,
        };
        let store = self.store.as_ref();
        let search = outdated::search(store, &self.indexes, (owner, newest), fresh, query).await?;
        let rules = RecallRules {
            profile,
            top_k,
            min_score: request.min_score,
            moment,
            token_budget: request.token_budget,
        };
        let Search {
            mut found, dropped, ..
        } = search;
        let best = found.first().map_or(0.0, |scored| scored.score);
        let selection = Selection::new(rules, self.counter.as_ref(), best);
        let working: BTreeSet<MemoryId> = fresh.made.iter().map(|m| m.id).collect();
        let rows = Rows::of(store, owner, fresh);
        let mut degraded = Vec::new();
        if asked.failed {
            degraded.push(DENSE.to_owned());
        }
        if let Some(reranking) = self
            .reranking
            .as_ref()
            .filter(|_| profile == Profile::Hybrid)
        {
            let fit = found.iter().filter(|scored| selection.wants(scored));
            let fit: Vec<MemoryId> = fit.map(|scored| scored.id).collect();
            let judged = &fit[..fit.len().min(reranking.candidates())];
            let texts = rows.texts(judged).await?;
            match reranking.opinions(&request.query, texts).await {
                Ok(opinions) => rerank(&mut found, &opinions),
                Err(_) => degraded.push(RERANK.to_owned()),
            }
        }
        let mut ranking = choose(found, selection, top_k, rows).await?;
        ranking.dropped.extend(dropped);
        for item in &mut ranking.items {
            if working.contains(&item.memory.id) {
                item.memory.layer = Layer::Working;
            }
        }
        Ok(RecallOutcome {
            ranking,
            degraded,
            took: began.elapsed(),
        })
    }

    /// The question's vectors. Who speaks is a feature of ranking, so no name of a speaker is embedded.
    async fn asked(
        &self,
        owner: Owner,
        newest: i64,
        question: &str,
        fresh: &[Memory],
    ) -> Result<Asked, StoreError> {
        if self.questions.models().is_empty() || newest == 0 {
            return Ok(Asked::default());
        }
        let mut names = self.indexes.speakers(owner, newest).await?;
        names.extend(fresh.iter().filter_map(|m| m.speaker.clone()));
        names.sort_unstable();
        names.dedup();
        Ok(self.questions.of(&query_text(question, names)).await)
    }

    async fn preferences(
        &self,
        owner: Owner,
        token_budget: usize,
        mut found: Vec<Memory>,
        fresh: &Fresh,
        newest: i64,
        now: Timestamp,
    ) -> Result<Vec<Memory>, StoreError> {
        for turned in &fresh.turned {
            if let Some(memory) = found.iter_mut().find(|memory| memory.id == turned.id) {
                memory.clone_from(turned);
            }
        }
        let known: BTreeSet<MemoryId> = found.iter().map(|m| m.id).collect();
        let made = fresh.made.iter().filter(|m| {
            m.kind == Kind::Preference && m.scope == Scope::UserProfile && !known.contains(&m.id)
        });
        found.extend(made.cloned());
        let (store, moment) = (self.store.as_ref(), Moment::at(now));
        let place = (&self.indexes, owner, newest);
        outdated::leave_out(store, place, fresh, &mut found, &moment).await?;
        Ok(rules::profile(
            found,
            self.settings.max_preferences,
            token_budget,
            self.counter.as_ref(),
        ))
    }
}

/// Chooses what is told. Rows are read as they are wanted: first as many as may be told, then more in the place of those that were not.
async fn choose(
    found: Vec<Scored>,
    mut selection: Selection<'_>,
    top_k: usize,
    mut rows: Rows<'_>,
) -> Result<Ranking, StoreError> {
    let mut found = found.into_iter();
    loop {
        let batch: Vec<Scored> = found.by_ref().take(top_k + SPARE).collect();
        if batch.is_empty() {
            break;
        }
        let wanted = batch.iter().filter(|scored| selection.wants(scored));
        let wanted: Vec<MemoryId> = wanted.map(|scored| scored.id).collect();
        rows.read(&wanted).await?;
        for scored in batch {
            let row = rows.take(scored.id);
            selection.offer(scored, row);
        }
    }
    Ok(selection.finish())
}

/// The rows of what was found, read when they are wanted.
struct Rows<'s> {
    store: &'s dyn Store,
    owner: Owner,
    /// What is not stored, or not as it is to be told.
    fresh: HashMap<MemoryId, &'s Memory>,
    read: HashMap<MemoryId, Memory>,
}

impl<'s> Rows<'s> {
    fn of(store: &'s dyn Store, owner: Owner, fresh: &'s Fresh) -> Self {
        let unstored = fresh.made.iter().chain(&fresh.turned);
        Self {
            store,
            owner,
            fresh: unstored.map(|memory| (memory.id, memory)).collect(),
            read: HashMap::new(),
        }
    }

    fn take(&mut self, id: MemoryId) -> Option<Memory> {
        let read = self.read.remove(&id);
        read.or_else(|| self.fresh.get(&id).map(|memory| (*memory).clone()))
    }

    /// Those of these that are stored and not known.
    async fn stored(&self, ids: &[MemoryId]) -> Result<Vec<Memory>, StoreError> {
        let unknown = ids.iter().filter(|id| !self.fresh.contains_key(id));
        let missing: Vec<MemoryId> = unknown.copied().collect();
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        self.store.memories(self.owner, &missing).await
    }

    async fn read(&mut self, ids: &[MemoryId]) -> Result<(), StoreError> {
        let stored = self.stored(ids).await?;
        self.read.extend(stored.into_iter().map(|m| (m.id, m)));
        Ok(())
    }

    /// What these say, and who says it; of those that are still there. Nothing of it is kept: it may be forgotten before it is told.
    async fn texts(&self, ids: &[MemoryId]) -> Result<Vec<(MemoryId, String)>, StoreError> {
        let stored = self.stored(ids).await?;
        let stored: HashMap<MemoryId, Memory> = stored.into_iter().map(|m| (m.id, m)).collect();
        let rows = ids
            .iter()
            .filter_map(|id| self.fresh.get(id).copied().or_else(|| stored.get(id)));
        let spoken = rows.map(|m| (m.id, spoken(m.speaker.as_deref(), &m.content).into_owned()));
        Ok(spoken.collect())
    }
}
