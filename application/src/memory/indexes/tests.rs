#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use tidemark_domain::ids::{ChangeId, MemoryId, MessageId, OwnerId, TenantId, Timestamp};
use tidemark_domain::memory::conflict::Touched;
use tidemark_domain::memory::index::search::Filter;
use tidemark_domain::memory::index::{Delta, Upsert};
use tidemark_domain::memory::recall::Moment;
use tidemark_domain::memory::scoring::Profile;
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, State, Trust};
use tidemark_domain::session::Message;
use uuid::Uuid;

use super::*;
use crate::ports::jobs::NewJob;
use crate::ports::memories::{Forgetting, IndexDelta, IndexedMemory, MemoryFilter};
use crate::ports::sessions::{CreateError, Updated};
use crate::ports::store::{Created, Cursor, Idempotency, Page, StoreError};

/// Memories of any owner by change, and how often they were asked for.
#[derive(Default)]
struct Changes {
    written: Mutex<BTreeMap<i64, Vec<Memory>>>,
    asked: AtomicUsize,
    slow: Option<Duration>,
    /// Behind a first page the store is down.
    down: std::sync::atomic::AtomicBool,
}

fn owner(number: i64) -> Owner {
    Owner {
        tenant: TenantId::DEFAULT,
        id: OwnerId(number),
    }
}

fn now() -> Timestamp {
    "2024-05-01T12:00:00Z".parse().unwrap()
}

fn memory(number: u128, content: &str) -> Memory {
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
    fn write(&self, owner: i64, memories: impl IntoIterator<Item = Memory>) -> i64 {
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

    async fn memory_change(&self, _: Owner) -> StoreResult<i64> {
        panic!("not of these tests")
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

    async fn memories_from(&self, _: Owner, _: &[MessageId]) -> StoreResult<Vec<Memory>> {
        panic!("not of these tests")
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

fn query(text: &str) -> Query {
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

async fn found(indexes: &Indexes, number: i64, newest: i64, text: &str) -> Vec<u128> {
    let search = indexes.search(owner(number), newest, Vec::new(), query(text));
    let found = search.await.unwrap().found;
    found.iter().map(|s| s.id.0.as_u128()).collect()
}

#[tokio::test]
async fn what_is_known_is_not_asked_for_again_and_what_is_new_is() {
    let store = Arc::new(Changes::default());
    let indexes = Indexes::new(Arc::clone(&store) as _, usize::MAX, Vec::new());
    assert!(found(&indexes, 1, 0, "tea").await.is_empty());
    assert_eq!(store.asked.load(Ordering::Relaxed), 0);
    let newest = store.write(1, [memory(1, "I like tea")]);
    for _ in 0..3 {
        assert_eq!(found(&indexes, 1, newest, "tea").await, [1]);
    }
    assert_eq!(store.asked.load(Ordering::Relaxed), 1);
    let newest = store.write(1, [memory(1, "I like milk"), memory(2, "Tea for two")]);
    assert_eq!(found(&indexes, 1, newest, "tea").await, [2]);
    assert_eq!(store.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn many_who_want_the_same_index_at_once_load_it_once() {
    let store = Arc::new(Changes {
        slow: Some(Duration::from_secs(1)),
        ..Changes::default()
    });
    let newest = store.write(1, [memory(1, "I like tea")]);
    let indexes = Indexes::new(Arc::clone(&store) as _, usize::MAX, Vec::new());
    let all = (0..20).map(|_| found(&indexes, 1, newest, "tea"));
    for found in futures::future::join_all(all).await {
        assert_eq!(found, [1]);
    }
    assert_eq!(store.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_load_goes_on_when_whoever_began_it_goes_away() {
    let store = Arc::new(Changes {
        slow: Some(Duration::from_secs(10)),
        ..Changes::default()
    });
    let newest = store.write(1, [memory(1, "I like tea")]);
    let indexes = Indexes::new(Arc::clone(&store) as _, usize::MAX, Vec::new());
    let impatient = found(&indexes, 1, newest, "tea");
    let given_up = tokio::time::timeout(Duration::from_secs(2), impatient).await;
    assert!(given_up.is_err());
    tokio::time::sleep(Duration::from_secs(9)).await;
    let next = found(&indexes, 1, newest, "tea");
    let next = tokio::time::timeout(Duration::from_secs(1), next).await;
    assert_eq!(next.unwrap(), [1]);
    assert_eq!(store.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_load_that_failed_halfway_leaves_nothing_that_is_gone_since() {
    let store = Arc::new(Changes::default());
    let many = (1..=6_000).map(|n| memory(n, &format!("word{n} and tea")));
    let newest = store.write(1, many);
    let indexes = Indexes::new(Arc::clone(&store) as _, usize::MAX, Vec::new());
    store.down.store(true, Ordering::Relaxed);
    let search = indexes.search(owner(1), newest, Vec::new(), query("word7"));
    assert!(search.await.is_err());
    store.down.store(false, Ordering::Relaxed);
    store.written.lock().unwrap().clear();
    let newest = store.write(1, [memory(9_000, "word7 and milk")]);
    assert_eq!(found(&indexes, 1, newest, "word7").await, [9_000]);
}

#[tokio::test]
async fn who_was_not_asked_for_longest_goes_first_and_comes_back_when_asked_for() {
    let store = Arc::new(Changes::default());
    for number in 1..=3 {
        store.write(number, [memory(number as u128, "I like tea")]);
    }
    let one = OwnerIndex::of([&memory(1, "I like tea")]).bytes();
    let indexes = Indexes::new(Arc::clone(&store) as _, 2 * one, Vec::new());
    for (number, asked) in [(1, 1), (2, 2), (1, 2), (3, 3), (1, 3), (2, 4), (3, 5)] {
        assert_eq!(found(&indexes, number, 1, "tea").await, [number as u128]);
        assert_eq!(store.asked.load(Ordering::Relaxed), asked, "{number}");
    }
    let held = lock(&indexes.cache).owners.len();
    assert_eq!((held, lock(&indexes.cache).bytes), (2, 2 * one));
}

#[tokio::test]
async fn one_index_larger_than_the_bound_is_served_and_kept() {
    let store = Arc::new(Changes::default());
    let many = (1..=12_000).map(|n| memory(n, &format!("word{n} and tea")));
    let newest = store.write(1, many);
    let indexes = Indexes::new(Arc::clone(&store) as _, 1, Vec::new());
    for _ in 0..2 {
        assert_eq!(found(&indexes, 1, newest, "word11999").await, [11_999]);
    }
    assert_eq!(store.asked.load(Ordering::Relaxed), 3, "pages");
    store.write(2, [memory(1, "I like tea")]);
    assert_eq!(found(&indexes, 2, 1, "tea").await, [1]);
    assert_eq!(lock(&indexes.cache).owners.len(), 1);
}
