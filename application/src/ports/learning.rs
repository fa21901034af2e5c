//! What derived work reads and applies. Each commit applies a job's effect and removes the job in one transaction.

use async_trait::async_trait;
use tidemark_domain::ids::{ChangeId, MemoryId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::Source;
use tidemark_domain::session::{Message, Session};

use super::jobs::{ClaimedJob, JobWriteError, NewJob};
use super::memories::IndexedMemory;
use super::store::StoreResult;

/// What a learning job decides on.
#[derive(Clone, Debug)]
pub struct LearningSnapshot {
    /// The session, reloaded.
    pub session: Session,
    /// Rises with every erasure of the owner; a commit decided before one is refused (A13).
    pub erase_epoch: i64,
    /// Sequence number of the last message that belongs to a closed turn or an import; later ones belong to an open turn.
    pub last_closed: i64,
}

/// A message with what the index needs to know of its turn.
#[derive(Clone, Debug)]
pub struct TaughtMessage {
    /// The message.
    pub message: Message,
    /// Its turn was cancelled: nothing is learned from it.
    pub cancelled: bool,
}

/// New episodic memory of a session.
#[derive(Clone, Debug)]
pub struct IndexCommit {
    /// The owner's epoch it was decided in.
    pub erase_epoch: i64,
    /// The `indexed_seq` it was decided on.
    pub from_seq: i64,
    /// The new `indexed_seq`.
    pub to_seq: i64,
    /// What is stored; ids that exist or have a tombstone are passed over, and so is a (source message, identity) pair that has one.
    pub memories: Vec<IndexedMemory>,
    /// The id of this change; it is kept only when something that was remembered stands otherwise because of it.
    pub change: ChangeId,
    /// Enqueued in the same transaction.
    pub jobs: Vec<NewJob>,
    /// When.
    pub now: Timestamp,
}

/// A present memory that was said again.
#[derive(Clone, Debug)]
pub struct Strengthened {
    /// The memory.
    pub id: MemoryId,
    /// The version it was decided on.
    pub version: i64,
    /// Its new confidence.
    pub confidence: f64,
    /// Where it was said again.
    pub sources: Vec<Source>,
}

/// A consolidation.
#[derive(Clone, Debug)]
pub struct ConsolidationCommit {
    /// The owner's epoch it was decided in.
    pub erase_epoch: i64,
    /// The boundary it was decided on.
    pub from_seq: i64,
    /// The new boundary.
    pub to_seq: i64,
    /// New semantic memory; a (source message, identity) pair that has a tombstone is passed over.
    pub new: Vec<IndexedMemory>,
    /// What was said again.
    pub strengthened: Vec<Strengthened>,
    /// The id of this change.
    pub change: ChangeId,
    /// Enqueued in the same transaction.
    pub jobs: Vec<NewJob>,
    /// When.
    pub now: Timestamp,
}

/// Reads and commits of derived work.
#[async_trait]
pub trait LearningRepository: Send + Sync + 'static {
    /// What to decide on, as it is now; `None` if the session is gone.
    async fn learning_snapshot(
        &self,
        owner: Owner,
        session: SessionId,
    ) -> StoreResult<Option<LearningSnapshot>>;

    /// Messages with `after < seq ≤ up_to`, ascending, at most `limit`.
    async fn taught_messages(
        &self,
        owner: Owner,
        session: SessionId,
        after: i64,
        up_to: i64,
        limit: u32,
    ) -> StoreResult<Vec<TaughtMessage>>;

    /// Applies an index job. Conflict when epoch or `indexed_seq` have moved.
    async fn commit_index(
        &self,
        claim: &ClaimedJob,
        commit: IndexCommit,
    ) -> Result<(), JobWriteError>;

    /// Applies a consolidation. Conflict when epoch, `last_consolidated` or the version of a strengthened memory have moved, or a
    /// new memory would only repeat one that came meanwhile: of its identity and current, or, with a key, as
    /// [`repeated`](tidemark_domain::memory::conflict::repeated) says. The number of messages is not compared: what arrived meanwhile stays.
    async fn commit_consolidation(
        &self,
        claim: &ClaimedJob,
        commit: ConsolidationCommit,
    ) -> Result<(), JobWriteError>;

    /// Adds one use to each memory shown in the session's completed turns that were not counted yet, and marks these.
    async fn commit_use(&self, claim: &ClaimedJob, now: Timestamp) -> Result<u64, JobWriteError>;
}
