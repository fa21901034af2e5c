//! A store of memories for the tests of this module: what was written, change by change.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tidemark_domain::ids::{ChangeId, MemoryId, MessageId, Owner, OwnerId, TenantId, Timestamp};
use tidemark_domain::memory::conflict::Touched;
use tidemark_domain::memory::index::search::{Filter, Query};
use tidemark_domain::memory::index::{Delta, Upsert};
use tidemark_domain::memory::recall::Moment;
use tidemark_domain::memory::scoring::Profile;
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, State, Trust};
use tidemark_domain::session::Message;
use uuid::Uuid;

use crate::ports::jobs::NewJob;
use crate::ports::memories::{
    ChangePosition, Forgetting, IndexDelta, IndexedMemory, MemoryFilter, MemoryRepository,
};
use crate::ports::sessions::{CreateError, Updated};
use crate::ports::store::{Created, Cursor, Idempotency, Page, StoreError, StoreResult};

/// Memories of any owner by change, and how often they were asked for.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) written: Mutex<BTreeMap<i64, Vec<Memory>>>,
    pub(super) asked: AtomicUsize,
    /// How often memories were asked for by their messages.
    pub(super) asked_by_message: AtomicUsize,
    pub(super) slow: Option<Duration>,
    /// Behind a first page the store is down.
    pub(super) down: AtomicBool,
}

pub(super) fn owner(number: i64) -> Owner {
    Owner {
        tenant: TenantId::DEFAULT,
        id: OwnerId(number),
    }
}

pub(super) fn now() -> Timestamp {
    "2024-05-01T12:00:00Z".parse().unwrap()
}

pub(super) fn memory(number: u128, content: &str) -> Memory {
    Memory {
        id: MemoryId(Uuid::from_u128(number)),
        content: content.to_owned(),
        speaker: None,
        scope: Scope::ProjectContext,
        kind: Kind::Fact,
        layer: Layer::Semantic,
        state: State::Current,
        importance: 3,
        confidence: 0.8,
        trust: Trust::User,
        pinned: false,
        key: None,
        session_id: None,
        sources: Vec::new(),
        valid_from: now(),
        valid_to: None,
        superseded_by: None,
        ended_at: None,
        expires_at: None,
        created_at: now(),
        access_count: 0,
        last_access: now(),
        version: 1,
    }
}

impl Changes {
    pub(super) fn write(&self, owner: i64, memories: impl IntoIterator<Item = Memory>) -> i64 {
        let mut written = self.written.lock().unwrap();
        let changes = written.entry(owner).or_default();
        changes.extend(memories);
        changes.len() as i64
    }
}

#[async_trait]
impl MemoryRepository for Changes {
    async fn index_delta(
        &self,
        owner: Owner,
        after: ChangePosition,
        limit: u32,
        _: &[String],
    ) -> StoreResult<IndexDelta> {
        if let Some(slow) = self.slow {
            tokio::time::sleep(slow).await;
        }
        self.asked.fetch_add(1, Ordering::Relaxed);
        if after.change > 0 && self.down.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("down".into()));
        }
        let written = self.written.lock().unwrap();
        let changes = written.get(&owner.id.0).cloned().unwrap_or_default();
        let newest = changes.len() as i64;
        let part = changes.iter().skip(after.change as usize);
        let upserts: Vec<Upsert> = part.take(limit as usize).map(Upsert::of).collect();
        let known = after.change + upserts.len() as i64;
        Ok(IndexDelta {
            change: newest,
            reset: false,
            next: (known < newest).then(|| ChangePosition::behind(known)),
            delta: Delta {
                upserts,
                ..Delta::default()
            },
        })
    }

    async fn memory_change(&self, owner: Owner) -> StoreResult<i64> {
        let written = self.written.lock().unwrap();
        Ok(written.get(&owner.id.0).map_or(0, Vec::len) as i64)
    }

    async fn remember(
        &self,
        _: Owner,
        _: Vec<IndexedMemory>,
        _: Vec<NewJob>,
        _: ChangeId,
        _: Option<Idempotency>,
        _: Timestamp,
    ) -> Result<Created<Vec<Memory>>, CreateError> {
        panic!("not of these tests")
    }

    async fn memories_by_key(&self, _: Owner, _: &Touched) -> StoreResult<Vec<Memory>> {
        panic!("not of these tests")
    }

    async fn memories(&self, _: Owner, _: &[MemoryId]) -> StoreResult<Vec<Memory>> {
        panic!("not of these tests")
    }

    async fn list_memories(
        &self,
        _: Owner,
        _: &MemoryFilter,
        _: Option<Cursor>,
        _: u32,
    ) -> StoreResult<Page<Memory>> {
        panic!("not of these tests")
    }

    async fn keys_in_use(&self, _: Owner, _: u32) -> StoreResult<Vec<String>> {
        panic!("not of these tests")
    }

    async fn forget(&self, _: Owner, _: Forgetting) -> StoreResult<Updated<u64>> {
        panic!("not of these tests")
    }

    async fn buried(
        &self,
        _: Owner,
        _: &[(MessageId, String)],
    ) -> StoreResult<Vec<(MessageId, String)>> {
        panic!("not of these tests")
    }

    async fn preferences(&self, _: Owner, _: Timestamp, _: u32) -> StoreResult<Vec<Memory>> {
        panic!("not of these tests")
    }

    async fn memories_from(
        &self,
        owner: Owner,
        messages: &[MessageId],
    ) -> StoreResult<Vec<Memory>> {
        self.asked_by_message.fetch_add(1, Ordering::Relaxed);
        let written = self.written.lock().unwrap();
        let changes = written.get(&owner.id.0).into_iter().flatten();
        let rows: BTreeMap<MemoryId, &Memory> = changes.map(|memory| (memory.id, memory)).collect();
        let taught = |memory: &&Memory| {
            let mut sources = memory.sources.iter();
            sources.any(|source| messages.contains(&source.message_id))
        };
        Ok(rows.into_values().filter(taught).cloned().collect())
    }

    async fn memories_by_identity(
        &self,
        _: Owner,
        _: &[String],
    ) -> StoreResult<Vec<(String, Memory)>> {
        panic!("not of these tests")
    }

    async fn unindexed(&self, _: Owner, _: u32) -> StoreResult<Vec<Message>> {
        panic!("not of these tests")
    }
}

/// Whatever these words find.
pub(super) fn query(text: &str) -> Query {
    Query {
        text: text.to_owned(),
        vectors: Vec::new(),
        filter: Filter::default(),
        moment: Moment::at(now()),
        profile: Profile::Hybrid,
        top_k: 10,
        limit: 100,
        why_not: Vec::new(),
    }
}
