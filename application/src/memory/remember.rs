//! Remembering what a caller gives.

use std::sync::Arc;

use tidemark_domain::ids::{Owner, SessionId, Timestamp};
use tidemark_domain::memory::index::Document;
use tidemark_domain::memory::{
    Kind, Layer, Memory, Scope, State, Trust, conflict, consolidation, gate, injection,
};

use crate::learning::embed::embed_job;
use crate::ports::clock::Clock;
use crate::ports::ids::Ids;
use crate::ports::memories::IndexedMemory;
use crate::ports::sessions::CreateError;
use crate::ports::store::{Created, Idempotency, Store};

/// A memory as a caller gives it.
#[derive(Clone, Debug)]
pub struct GivenMemory {
    /// What it says, 1–4,000 characters.
    pub content: String,
    /// Where it applies; the project when not said.
    pub scope: Option<Scope>,
    /// What it is; a fact when not said.
    pub kind: Option<Kind>,
    /// 1–5; 3 when not said.
    pub importance: Option<u8>,
    /// What it speaks of; as the rules read it from the content when not said.
    pub key: Option<String>,
    /// The session it is given for.
    pub session_id: Option<SessionId>,
    /// Since when it holds; now when not said.
    pub valid_from: Option<Timestamp>,
    /// When it is to be deleted.
    pub expires_at: Option<Timestamp>,
}

/// Remembers.
pub struct Remember {
    store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    embeds: bool,
}

impl std::fmt::Debug for Remember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remember").finish_non_exhaustive()
    }
}

impl Remember {
    /// Into this store.
    pub fn new(store: Arc<dyn Store>, ids: Arc<dyn Ids>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            ids,
            clock,
            embeds: false,
        }
    }

    /// Has what is stored embedded, where there is an embedder.
    #[must_use]
    pub fn with_embedding(mut self, embeds: bool) -> Self {
        self.embeds = embeds;
        self
    }

    /// Stores memories; findable by the next request. Credentials in them are redacted first. What looks like an instruction to the model waits for
    /// confirmation.
    ///
    /// # Errors
    /// When the idempotency key was used otherwise, or the store fails.
    pub async fn run(
        &self,
        owner: Owner,
        given: Vec<GivenMemory>,
        idempotency: Option<Idempotency>,
    ) -> Result<Created<Vec<Memory>>, CreateError> {
        let now = self.clock.now();
        let items = given.into_iter().map(|g| self.indexed(g, now)).collect();
        let jobs = embed_job(self.ids.as_ref(), self.embeds);
        let change = self.ids.change();
        self.store
            .remember(owner, items, jobs, change, idempotency, now)
            .await
    }

    fn indexed(&self, given: GivenMemory, now: Timestamp) -> IndexedMemory {
        let mut memory = Memory {
            id: self.ids.memory(),
            content: gate::redact(given.content.trim()).text,
            speaker: None,
            scope: given.scope.unwrap_or(Scope::ProjectContext),
            kind: given.kind.unwrap_or(Kind::Fact),
            layer: Layer::Semantic,
            state: State::Current,
            importance: given.importance.unwrap_or(gate::KEEP_FROM),
            confidence: 1.0,
            trust: Trust::User,
            pinned: false,
            key: given.key,
            session_id: given.session_id,
            sources: Vec::new(),
            valid_from: given.valid_from.unwrap_or(now),
            valid_to: None,
            superseded_by: None,
            ended_at: None,
            expires_at: given.expires_at,
            created_at: now,
            access_count: 0,
            last_access: now,
            version: 1,
        };
        let of_key = || memory.key.as_deref().and_then(injection::sign);
        if injection::sign(&memory.content).or_else(of_key).is_some() {
            memory.state = State::Quarantined;
        }
        if memory.key.is_none() {
            memory.key = conflict::key_of(&memory);
        }
        index(memory)
    }
}

/// A memory with what it is found by.
pub fn index(memory: Memory) -> IndexedMemory {
    IndexedMemory {
        identity: consolidation::identity(&memory),
        document: Document::of(&memory),
        memory,
    }
}
