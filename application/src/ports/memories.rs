//! Memories. The store keeps and finds rows; it never decides an order: ranking is the domain's.

use async_trait::async_trait;
use tidemark_domain::ids::{MemoryId, MessageId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::analysis::Document;
use tidemark_domain::memory::lexical::{CorpusStats, TermPostings};
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, State};
use tidemark_domain::session::Message;

use super::sessions::{CreateError, Updated};
use super::store::{Created, Cursor, Idempotency, Page, StoreResult};

/// A memory with what it is found by.
#[derive(Clone, Debug)]
pub struct IndexedMemory {
    /// The memory.
    pub memory: Memory,
    /// What it says, normalised (`consolidation::identity`): a second of the same identity is the same memory.
    pub identity: String,
    /// Its terms.
    pub document: Document,
}

/// What is to be forgotten together.
#[derive(Clone, Debug)]
pub struct Forgetting {
    /// The memory that was asked for.
    pub id: MemoryId,
    /// The version it was seen in; any, when none is named.
    pub expected: Option<i64>,
    /// Others that say the same, from the same messages.
    pub echoes: Vec<MemoryId>,
    /// (Message, identity) pairs that must never be learned again, beyond those of the memories themselves.
    pub buried: Vec<(MessageId, String)>,
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
}

/// What lexical ranking needs: the postings of the asked terms over one owner's recallable memories.
#[derive(Clone, Debug, Default)]
pub struct LexicalRows {
    /// Of all recallable memories in the asked scopes.
    pub stats: CorpusStats,
    /// For each asked term that occurs, in the order of terms.
    pub postings: Vec<TermPostings>,
}

/// Memories. Recallable means: current, not expired at `now`, and in one of the asked scopes (none asked: in any). What has expired is
/// gone: no method returns it, and a write of the owner's memories deletes it.
#[async_trait]
pub trait MemoryRepository: Send + Sync + 'static {
    /// Stores memories given by a caller. One whose identity a current memory of the owner already has is not stored again: the
    /// present one is returned in its place. The order is kept.
    async fn remember(
        &self,
        owner: Owner,
        items: Vec<IndexedMemory>,
        idempotency: Option<Idempotency>,
        now: Timestamp,
    ) -> Result<Created<Vec<Memory>>, CreateError>;

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
    /// looked goes too. How many were removed; `Stale` and nothing removed when the memory is not in the expected version.
    async fn forget(&self, owner: Owner, what: Forgetting) -> StoreResult<Updated<u64>>;

    /// Postings of `terms` (distinct) over the recallable memories.
    async fn lexical(
        &self,
        owner: Owner,
        terms: &[String],
        scopes: &[Scope],
        now: Timestamp,
    ) -> StoreResult<LexicalRows>;

    /// Recallable preferences of the user's profile, newest `valid_from` first.
    async fn preferences(
        &self,
        owner: Owner,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Memory>>;

    /// Memories in any state that have one of these messages among their sources.
    async fn memories_from(&self, owner: Owner, messages: &[MessageId])
    -> StoreResult<Vec<Memory>>;

    /// Current semantic memories of these identities, with them.
    async fn memories_by_identity(
        &self,
        owner: Owner,
        identities: &[String],
    ) -> StoreResult<Vec<(String, Memory)>>;

    /// The newest `limit` learnable messages of all sessions that are committed but not yet indexed: beyond their session's
    /// `indexed_seq`, and imported or of a turn that ended completed, failed or interrupted.
    async fn unindexed(&self, owner: Owner, limit: u32) -> StoreResult<Vec<Message>>;
}
