//! What derived work reads and applies. Each commit applies a job's effect and removes the job in one transaction.

use std::time::Duration;

use async_trait::async_trait;
use tidemark_domain::ids::{ChangeId, JobId, MemoryId, Owner, SessionId, Timestamp};
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

/// What an index job decides on.
#[derive(Clone, Debug)]
pub struct IndexWork {
    /// The session, as it was when the messages were read.
    pub snapshot: LearningSnapshot,
    /// The first messages that belong to no open turn and are not indexed yet, ascending.
    pub messages: Vec<TaughtMessage>,
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

/// A memory that was said again; it is stored as [`said_again`](tidemark_domain::memory::conflict::said_again) says.
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
    /// New semantic memory; a (source message, identity) pair that has a tombstone is passed over. So is, here and among what a model has
    /// worded, what waits for confirmation and has an identity that is current, archived or waits already, in any layer.
    pub new: Vec<IndexedMemory>,
    /// New semantic memory that a model has worded. What was forgotten is known by its words, which a model does not repeat: one of
    /// whose messages anything at all was forgotten is passed over.
    pub worded: Vec<IndexedMemory>,
    /// What was said again.
    pub strengthened: Vec<Strengthened>,
    /// The id of this change.
    pub change: ChangeId,
    /// A model has not answered for these messages: they are noted as pending ([`PendingExtraction`]), with a job to ask again.
    pub pending: Option<Unanswered>,
    /// Enqueued in the same transaction.
    pub jobs: Vec<NewJob>,
    /// When.
    pub now: Timestamp,
}

/// Why and until when a model is not asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// The job that asks again. One that is pending already serves in its place.
    pub job: JobId,
    /// What went wrong, for a person; holds nothing that anybody said.
    pub error: String,
    /// When to ask again.
    pub retry_in: Duration,
}

/// Consolidated messages of a session that a model has yet to read. The row goes with its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingExtraction {
    /// They begin behind this number; no other pending extraction of the session does.
    pub from_seq: i64,
    /// The number of the last one.
    pub to_seq: i64,
    /// How often it was tried again in vain.
    pub attempts: i32,
}

/// What a model has read out of a pending extraction.
#[derive(Clone, Debug)]
pub struct ExtractionCommit {
    /// The owner's epoch it was decided in.
    pub erase_epoch: i64,
    /// Which pending extraction of the session it is.
    pub from_seq: i64,
    /// Its last message.
    pub to_seq: i64,
    /// New semantic memory that a model has worded, as in a consolidation.
    pub worded: Vec<IndexedMemory>,
    /// What was said again.
    pub strengthened: Vec<Strengthened>,
    /// What becomes of the pending extraction and the job.
    pub outcome: ExtractionOutcome,
    /// The id of this change.
    pub change: ChangeId,
    /// Enqueued in the same transaction.
    pub jobs: Vec<NewJob>,
    /// When.
    pub now: Timestamp,
}

/// What becomes of a pending extraction.
#[derive(Clone, Debug)]
pub enum ExtractionOutcome {
    /// It is done: both the pending extraction and the job go.
    Settled,
    /// It is not: the pending extraction counts an attempt more, and the job ends as [`fail_job`](super::jobs::JobRepository::fail_job) says.
    Unsettled {
        /// Why, for a person; holds nothing that anybody said.
        error: String,
        /// When to try again; never, when absent.
        retry_in: Option<Duration>,
    },
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

    /// What is to be indexed of sessions of one owner, at most `limit` messages of each. Sessions that are gone are left out.
    async fn index_work(
        &self,
        owner: Owner,
        sessions: &[SessionId],
        limit: u32,
    ) -> StoreResult<Vec<IndexWork>>;

    /// Applies an index job. Conflict when epoch or `indexed_seq` have moved.
    async fn commit_index(
        &self,
        claim: &ClaimedJob,
        commit: IndexCommit,
    ) -> Result<(), JobWriteError>;

    /// Applies index jobs of one owner, each of another session, as [`commit_index`](Self::commit_index) does: those that hold, together or one by
    /// one. What became of each, in their order.
    async fn commit_indexes(
        &self,
        owner: Owner,
        commits: Vec<(ClaimedJob, IndexCommit)>,
    ) -> Vec<Result<(), JobWriteError>>;

    /// Applies a consolidation. Conflict when epoch, `last_consolidated` or the version of a strengthened memory have moved, or a
    /// new memory would only repeat one that came meanwhile: of its identity and current, or, with a key, as
    /// [`repeated`](tidemark_domain::memory::conflict::repeated) says. The number of messages is not compared: what arrived meanwhile stays.
    async fn commit_consolidation(
        &self,
        claim: &ClaimedJob,
        commit: ConsolidationCommit,
    ) -> Result<(), JobWriteError>;

    /// The pending extractions of a session: those with the fewest attempts first, among these the oldest.
    async fn pending_extractions(
        &self,
        owner: Owner,
        session: SessionId,
    ) -> StoreResult<Vec<PendingExtraction>>;

    /// Applies what a model has read out of a pending extraction. Conflict when epoch or the version of a strengthened memory have moved, a new
    /// memory's identity has become current meanwhile, or there is no such pending extraction any more.
    async fn commit_extraction(
        &self,
        claim: &ClaimedJob,
        commit: ExtractionCommit,
    ) -> Result<(), JobWriteError>;

    /// Sessions of any owner with a message behind the boundary that was said before `before` and behind which a boundary may stand, where no
    /// turn runs and no consolidation waits, runs or has failed. At most `limit`, in no order.
    async fn sessions_to_consolidate(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<(Owner, SessionId)>>;

    /// Enqueues a job for a session, if there is one; one that is pending already serves in its place (A13).
    async fn enqueue_job(
        &self,
        owner: Owner,
        session: SessionId,
        job: NewJob,
        now: Timestamp,
    ) -> StoreResult<()>;

    /// Adds one use to each memory shown in the session's completed turns that were not counted yet, and marks these. What had faded is told
    /// again ([`revive`](tidemark_domain::memory::forgetting::revive)), as a change with this id.
    async fn commit_use(
        &self,
        claim: &ClaimedJob,
        change: ChangeId,
        now: Timestamp,
    ) -> Result<u64, JobWriteError>;

    /// Applies jobs of one owner that count uses, each of another session, as [`commit_use`](Self::commit_use) does: together or one by one. What
    /// became of each, in their order.
    async fn commit_uses(
        &self,
        owner: Owner,
        claims: Vec<(ClaimedJob, ChangeId)>,
        now: Timestamp,
    ) -> Vec<Result<(), JobWriteError>>;
}
