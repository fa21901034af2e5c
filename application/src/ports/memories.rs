//! Memories. The store keeps and finds rows; it never decides an order: ranking is the domain's.

use async_trait::async_trait;
use tidemark_domain::ids::{ChangeId, MemoryId, MessageId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::conflict::Touched;
use tidemark_domain::memory::index::{Delta, Document};
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, State};
use tidemark_domain::session::Message;

use super::jobs::NewJob;
use super::sessions::{CreateError, Updated};
use super::store::{Created, Cursor, Idempotency, Page, StoreResult};

/// A memory with what it is found by.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexedMemory {
    /// The memory.
    pub memory: Memory,
    /// What it says, normalised (`consolidation::identity`): a second of the same identity is the same memory.
    pub identity: String,
    /// Its terms.
    pub document: Document,
}

/// A place among the changes of an owner's memories: everything up to it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangePosition {
    /// The number of a change.
    pub change: i64,
    /// Of that change, memories up to this id; the largest id when all of it is known.
    pub id: MemoryId,
}

impl ChangePosition {
    /// Before everything.
    pub const START: Self = Self::behind(0);

    /// Behind the whole of a change.
    pub const fn behind(change: i64) -> Self {
        Self {
            change,
            id: MemoryId(uuid::Uuid::max()),
        }
    }
}

/// A part of what changed of an owner's memories.
#[derive(Clone, Debug)]
pub struct IndexDelta {
    /// The number of the owner's newest change.
    pub change: i64,
    /// What was known before is void: the position is from before an erasure, or from a time that the store does not know. The delta starts
    /// from nothing.
    pub reset: bool,
    /// The changes, oldest first. A removal that was followed by a new memory of the same id comes in the same delta or in an earlier one.
    pub delta: Delta,
    /// Where the rest begins; none when everything up to `change` is known now.
    pub next: Option<ChangePosition>,
}

/// What is to be forgotten together.
#[derive(Clone, Debug)]
pub struct Forgetting {
    /// The memory that was asked for.
    pub id: MemoryId,
    /// The version it was seen in; any, when none is named.
    pub expected: Option<i64>,
    /// It is not stored yet and is made when its message is indexed: that it is not there is no reason to refuse.
    pub fresh: bool,
    /// Others that say the same, from the same messages.
    pub echoes: Vec<MemoryId>,
    /// (Message, identity) pairs that must never be learned again, beyond those of the memories themselves.
    pub buried: Vec<(MessageId, String)>,
    /// The id of this change.
    pub change: ChangeId,
    /// When.
    pub now: Timestamp,
}

/// Which memories to list.
#[derive(Clone, Debug, Default)]
pub struct MemoryFilter {
    /// Only of this scope.
    pub scope: Option<Scope>,
    /// Only of this kind.
    pub kind: Option<Kind>,
    /// Only of this layer.
    pub layer: Option<Layer>,
    /// Only in this state.
    pub state: Option<State>,
    /// Only learned in (one of its sources lies there), or given for, this session.
    pub session_id: Option<SessionId>,
    /// Only those whose content holds this text, ignoring the case of ASCII letters.
    pub text: Option<String>,
    /// Only stored at or after.
    pub created_from: Option<Timestamp>,
    /// Only stored before.
    pub created_to: Option<Timestamp>,
    /// Only of this key.
    pub key: Option<String>,
    /// Only those that held at that time, in whatever state they are now, quarantined excepted.
    pub as_of: Option<Timestamp>,
}

/// Memories. Recallable means: current and not expired at `now`. What has expired is gone: no method but [`index_delta`](Self::index_delta) returns
/// it, and a write of the owner's memories deletes it.
///
/// What is said of a key is settled in the transaction that changes any of it: how long each memory of the key holds, and what ended it, is as
/// [`verdicts`](tidemark_domain::memory::conflict::verdicts) says of all that is stored of the key, so whoever writes need not know what is there. What a memory had ended
/// stays ended when that one is forgotten or expires, and holds again when it is taken back (with its message, or by a revert).
///
/// Every transaction that changes memories of an owner, in whatever way, raises the number of the owner's changes by one and leaves it with what
/// it changed. Numbers become visible in their order.
#[async_trait]
pub trait MemoryRepository: Send + Sync + 'static {
    /// Stores memories given by a caller, as one change, which has this id. One that only repeats a present one (the same identity, current or archived; with a key, as
    /// [`repeated`](tidemark_domain::memory::conflict::repeated) says) is not stored again: the present one is returned in its place, with one more voice. The order is kept.
    /// One that waits for confirmation repeats a present one of the same identity and layer that is current, archived or waits itself; that
    /// is returned as it is. The jobs, which are of the owner, are enqueued with what is stored.
    async fn remember(
        &self,
        owner: Owner,
        items: Vec<IndexedMemory>,
        jobs: Vec<NewJob>,
        change: ChangeId,
        idempotency: Option<Idempotency>,
        now: Timestamp,
    ) -> Result<Created<Vec<Memory>>, CreateError>;

    /// All that is said of these keys, in any state but quarantined, and did not end before `since`.
    async fn memories_by_key(&self, owner: Owner, touched: &Touched) -> StoreResult<Vec<Memory>>;

    /// The memories of these ids that are this owner's, in no order.
    async fn memories(&self, owner: Owner, ids: &[MemoryId]) -> StoreResult<Vec<Memory>>;

    /// Memories by `created_at`, newest first.
    async fn list_memories(
        &self,
        owner: Owner,
        filter: &MemoryFilter,
        after: Option<Cursor>,
        limit: u32,
    ) -> StoreResult<Page<Memory>>;

    /// Removes memories and leaves a tombstone for each of their (source message, identity) pairs, for the pairs in `buried`, and for
    /// their ids, so that the same messages never teach them again. What has become memory from buried pairs alone since the caller
    /// looked goes too. How many were removed; `Stale` and nothing removed when the memory is not in the expected version; `NotFound`
    /// when it is not there and not `fresh` either.
    async fn forget(&self, owner: Owner, what: Forgetting) -> StoreResult<Updated<u64>>;

    /// The number of the owner's newest change; 0 before the first.
    async fn memory_change(&self, owner: Owner) -> StoreResult<i64>;

    /// What changed of the owner's memories behind a position: some `limit` memories at most. Memories in every state, and expired ones; vectors by
    /// these models alone.
    async fn index_delta(
        &self,
        owner: Owner,
        after: ChangePosition,
        limit: u32,
        models: &[String],
    ) -> StoreResult<IndexDelta>;

    /// Those of the (source message, identity) pairs that were forgotten: they are not to be learned, nor to be told.
    async fn buried(
        &self,
        owner: Owner,
        pairs: &[(MessageId, String)],
    ) -> StoreResult<Vec<(MessageId, String)>>;

    /// Recallable preferences of the user's profile, newest `valid_from` first.
    async fn preferences(
        &self,
        owner: Owner,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Memory>>;

    /// The keys of the newest `limit` current semantic memories that have one, newest first.
    async fn keys_in_use(&self, owner: Owner, limit: u32) -> StoreResult<Vec<String>>;

    /// Memories in any state that have one of these messages among their sources.
    async fn memories_from(&self, owner: Owner, messages: &[MessageId])
    -> StoreResult<Vec<Memory>>;

    /// Statements of these identities that hold, or did until they were archived, with them.
    async fn memories_by_identity(
        &self,
        owner: Owner,
        identities: &[String],
    ) -> StoreResult<Vec<(String, Memory)>>;

    /// The newest `limit` learnable messages of all sessions that are committed but not yet indexed: beyond their session's
    /// `indexed_seq`, and imported or of a turn that ended completed, failed or interrupted.
    async fn unindexed(&self, owner: Owner, limit: u32) -> StoreResult<Vec<Message>>;
}
