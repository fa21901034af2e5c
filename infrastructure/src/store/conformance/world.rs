//! What the tests are written with: a store, an owner, rising time, and small builders with one meaning each.

mod index;
mod keys;
mod learning;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use tidemark_application::ports::ids::Ids;
use tidemark_application::ports::jobs::{JobKind, NewJob};
use tidemark_application::ports::memories::IndexedMemory;
use tidemark_application::ports::sessions::{ImportedMessage, NewImport, NewSession};
use tidemark_application::ports::store::{Idempotency, Store};
use tidemark_domain::event::{RecalledMemory, Via};
use tidemark_domain::ids::{MessageId, Owner, SessionId, TenantId, Timestamp, UserName};
use tidemark_domain::memory::consolidation::identity;
use tidemark_domain::memory::index::Document;
use tidemark_domain::memory::{Memory, Source};
use tidemark_domain::session::{MemoryMode, Message, Role, Session, validate_transcript};
use uuid::Uuid;

pub(super) use self::index::{Follower, asked, found};
use crate::system::UuidV7;

/// No test runs as long.
pub(super) const LONG: Duration = Duration::from_hours(1);
/// A lease that has lapsed once [`lapse`] returns.
pub(super) const SHORT: Duration = Duration::from_millis(1);
/// Event numbers reserved by a start.
pub(super) const EVENT_BLOCK: i64 = 64;
/// More than any test stores.
pub(super) const ALL: u32 = 1_000;

/// Hours until what expires then is still there whenever a test runs.
pub(super) const CENTURY: i64 = 100 * 365 * 24;

/// Texts that are often broken on their way into a database and back.
pub(super) const HARD_TEXTS: [&str; 9] = [
    "it's \"quoted\" with `ticks`, \\backslashes\\ and 100% of $1, ?1, :name",
    "'; DROP TABLE messages; --",
    "[\"json\", {\"in\": null}] \\u0041 \\n",
    "预算是三十万，不是四十万。",
    "😀👩‍👩‍👧‍👦🏳️‍🌈 and 𠀀𪚥 and 𝔘𝔫𝔦",
    "e\u{301} is not é; שלום, مرحبا\u{200f}",
    " leading, trailing \t\r\n and\n\n\nlines ",
    "\u{1}\u{1b}[31m\u{7f}\u{feff}\u{fffd}\u{10ffff}",
    "%_\\*[a-z]?",
];

/// A store with an owner in it.
pub(super) struct World {
    pub(super) store: Arc<dyn Store>,
    pub(super) ids: Box<dyn Ids>,
    pub(super) owner: Owner,
    ticks: AtomicI64,
}

/// Waits until a lease of [`SHORT`] has lapsed by any clock.
pub(super) async fn lapse() {
    tokio::time::sleep(Duration::from_millis(40)).await;
}

impl World {
    pub(super) async fn new(store: Arc<dyn Store>) -> Self {
        let owner = store
            .resolve_owner(TenantId::DEFAULT, &UserName::default_user())
            .await
            .unwrap();
        Self {
            store,
            ids: Box::new(UuidV7::default()),
            owner,
            ticks: AtomicI64::new(0),
        }
    }

    /// Later than all before, with microseconds in use.
    pub(super) fn now(&self) -> Timestamp {
        let tick = self.ticks.fetch_add(1, Ordering::Relaxed);
        DateTime::from_timestamp_micros(1_767_225_600_000_123 + tick * 1_000_001).unwrap()
    }

    pub(super) async fn owner_named(&self, tenant: TenantId, name: &str) -> Owner {
        self.store
            .resolve_owner(tenant, &name.parse().unwrap())
            .await
            .unwrap()
    }

    /// The same store in the hands of another user.
    pub(super) async fn another(&self, name: &str) -> Self {
        Self {
            store: Arc::clone(&self.store),
            ids: Box::new(UuidV7::default()),
            owner: self.owner_named(TenantId::DEFAULT, name).await,
            ticks: AtomicI64::new(self.ticks.load(Ordering::Relaxed)),
        }
    }

    /// Owners to whom nothing of [`World::owner`] belongs: another user of the tenant, and the same name elsewhere.
    pub(super) async fn strangers(&self) -> [Owner; 2] {
        let elsewhere = TenantId(self.ids.uuid());
        [
            self.owner_named(TenantId::DEFAULT, "stranger").await,
            self.owner_named(elsewhere, "default").await,
        ]
    }
}

/// Sessions and messages.
impl World {
    pub(super) fn new_session(&self) -> NewSession {
        NewSession {
            id: self.ids.session(),
            title: None,
            labels: Vec::new(),
            channel: "api".to_owned(),
            memory: MemoryMode::On,
            now: self.now(),
        }
    }

    pub(super) async fn titled(&self, title: &str) -> SessionId {
        let session = NewSession {
            title: Some(title.to_owned()),
            ..self.new_session()
        };
        let created = self.store.create_session(self.owner, session, None).await;
        created.unwrap().value.id
    }

    pub(super) async fn session(&self) -> SessionId {
        let session = self.new_session();
        let created = self.store.create_session(self.owner, session, None).await;
        created.unwrap().value.id
    }

    pub(super) async fn session_row(&self, id: SessionId) -> Session {
        self.store.session(self.owner, id).await.unwrap().unwrap()
    }

    pub(super) fn past(&self, role: Role, content: &str) -> ImportedMessage {
        ImportedMessage {
            id: self.ids.message(),
            role,
            content: content.to_owned(),
            name: None,
            learnable: true,
            created_at: self.now(),
        }
    }

    pub(super) async fn import(
        &self,
        session: SessionId,
        messages: Vec<ImportedMessage>,
    ) -> Vec<Message> {
        self.import_with(session, messages, &[]).await
    }

    pub(super) fn importing(&self, messages: Vec<ImportedMessage>, jobs: Vec<NewJob>) -> NewImport {
        NewImport {
            messages,
            jobs,
            change: self.ids.change(),
            now: self.now(),
        }
    }

    pub(super) async fn import_with(
        &self,
        session: SessionId,
        messages: Vec<ImportedMessage>,
        kinds: &[JobKind],
    ) -> Vec<Message> {
        let jobs = kinds.iter().map(|kind| self.new_job(*kind)).collect();
        self.store
            .import_messages(self.owner, session, self.importing(messages, jobs), None)
            .await
            .unwrap()
            .value
    }

    /// A message of the user's, imported.
    pub(super) async fn said(&self, session: SessionId, content: &str) -> Message {
        let past = self.past(Role::User, content);
        self.import(session, vec![past]).await.pop().unwrap()
    }

    pub(super) async fn history(&self, session: SessionId) -> Vec<Message> {
        self.store
            .history(self.owner, session, None, ALL)
            .await
            .unwrap()
    }

    pub(super) async fn contents(&self, session: SessionId) -> Vec<String> {
        let history = self.history(session).await;
        history.into_iter().map(|m| m.content).collect()
    }

    /// The session's messages are numbered without a gap, counted right, and a model API would accept them.
    pub(super) async fn check_transcript(&self, session: SessionId) {
        let history = self.history(session).await;
        let numbers: Vec<i64> = history.iter().map(|m| m.seq).collect();
        let expected: Vec<i64> = (1..).take(history.len()).collect();
        assert_eq!(numbers, expected);
        let row = self.session_row(session).await;
        assert_eq!(row.message_count, history.len() as i64);
        assert!(row.indexed_seq <= row.message_count);
        assert!(row.last_consolidated <= row.message_count);
        validate_transcript(&history).unwrap();
    }
}

/// A caller's key with the hash of a body.
pub(super) fn key(key: &str, body: u8) -> Idempotency {
    Idempotency {
        key: key.to_owned(),
        operation: "POST /v1/things".to_owned(),
        body_hash: [body; 32],
    }
}

/// A memory as it is given to the store.
pub(super) fn indexed(memory: Memory) -> IndexedMemory {
    IndexedMemory {
        identity: identity(&memory),
        document: Document::of(&memory),
        memory,
    }
}

pub(super) fn source(message: &Message) -> Source {
    Source {
        message_id: message.id,
        session_id: message.session_id,
        seq: message.seq,
    }
}

pub(super) fn shown(memory: &Memory) -> RecalledMemory {
    RecalledMemory::of(memory, 0.75, Via::Relevance)
}

/// Ids in an order that does not depend on the store.
pub(super) fn sorted<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort();
    items
}

pub(super) fn message_ids(messages: &[Message]) -> Vec<MessageId> {
    messages.iter().map(|m| m.id).collect()
}

/// An id that nothing has.
pub(super) fn unknown() -> Uuid {
    Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001)
}

pub(super) fn later(at: Timestamp, hours: i64) -> Timestamp {
    at + TimeDelta::hours(hours)
}

/// `SplitMix64` (Steele, Lea and Flood 2014): the same numbers on every run.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    pub(super) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}
