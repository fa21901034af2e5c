//! The outbox of derived work: enqueued with what it derives from, claimed with a lease, applied exactly once.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tidemark_domain::ids::{JobId, Owner, SessionId, TenantId, Timestamp};

use super::store::{Cursor, Page, StoreError, StoreResult};

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// Store what of a session's new messages is worth keeping as episodic memory (B4–B6).
    Index,
    /// Take what lies behind the boundary into semantic memory (A12–A14).
    Consolidate,
    /// Like `Consolidate`, before it is due: inference asked for a review of the memory (A17).
    ReviewMemory,
    /// Ask a model again about consolidated messages that it has not yet answered for (B4).
    Extract,
    /// Count the use of the memories that committed turns have shown (B8, B12).
    CountUse,
    /// Embed those of the owner's memories that the model has not embedded (B21). The owner's, not a session's.
    Embed,
}

impl JobKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Index,
        Self::Consolidate,
        Self::ReviewMemory,
        Self::Extract,
        Self::CountUse,
        Self::Embed,
    ];

    /// The name used on the wire and in the stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Consolidate => "consolidate",
            Self::ReviewMemory => "review_memory",
            Self::Extract => "extract",
            Self::CountUse => "count_use",
            Self::Embed => "embed",
        }
    }

    /// Whether it works on all that the owner has rather than on a session.
    pub fn is_of_owner(self) -> bool {
        self == Self::Embed
    }

    /// Whose workers do it.
    pub fn lane(self) -> Lane {
        match self {
            Self::Index | Self::CountUse => Lane::Quick,
            Self::Consolidate | Self::ReviewMemory | Self::Extract => Lane::Model,
            Self::Embed => Lane::Embedder,
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.as_str() == name)
    }
}

/// Work that shares its workers, so that the one kind never waits for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Needs nothing but the store, and little time.
    Quick,
    /// May wait for a model.
    Model,
    /// Waits for an embedder.
    Embedder,
}

impl Lane {
    /// Every lane.
    pub const ALL: [Self; 3] = [Self::Quick, Self::Model, Self::Embedder];

    /// The kinds of work in it.
    pub fn kinds(self) -> Vec<JobKind> {
        let all = JobKind::ALL.into_iter();
        all.filter(|kind| kind.lane() == self).collect()
    }
}

/// Where a job stands. What is done is deleted with the transaction that applied it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Waits for its time or a worker.
    Pending,
    /// A worker holds its lease.
    Running,
    /// Given up after its attempts; waits for a person.
    Failed,
}

impl JobState {
    /// The name used on the wire and in the stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Failed => "failed",
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Pending, Self::Running, Self::Failed]
            .into_iter()
            .find(|s| s.as_str() == name)
    }
}

/// A job to be enqueued, for the session that is written, or for its owner if it is [of the owner](JobKind::is_of_owner). If one of its kind is
/// pending there, that one serves and nothing is added (A13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// Its id.
    pub id: JobId,
    /// What is to be done.
    pub kind: JobKind,
}

/// A job as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Whose data it works on.
    pub owner: Owner,
    /// The session it works on; none for a job of the owner.
    pub session_id: Option<SessionId>,
    /// What is to be done.
    pub kind: JobKind,
    /// Where it stands.
    pub state: JobState,
    /// How often it was begun.
    pub attempts: i32,
    /// When it may be begun, by the database's clock.
    pub run_at: Timestamp,
    /// What the last attempt failed with; no user's data.
    pub last_error: Option<String>,
    /// When it was enqueued.
    pub created_at: Timestamp,
}

/// The right to apply a job: valid until the lease lapses and somebody else claims it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedJob {
    /// The job, running.
    pub job: Job,
    /// The number of this claim; checked by whatever applies the job.
    pub token: i64,
}

impl ClaimedJob {
    /// The session that the job works on.
    ///
    /// # Errors
    /// `Lost` for a job of the owner: there is no session it could be applied to.
    pub fn session(&self) -> Result<SessionId, JobWriteError> {
        self.job.session_id.ok_or(JobWriteError::Lost)
    }
}

/// The job's effect was not applied.
#[derive(Debug, thiserror::Error)]
pub enum JobWriteError {
    /// The claim is no longer valid: somebody else has it, or it is gone. Nothing was written; drop the work.
    #[error("the job belongs to another worker, or is gone")]
    Lost,
    /// Something that the work was decided on has moved. Nothing was written; decide again.
    #[error("the work was decided on a state that has moved")]
    Conflict,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The outbox.
#[async_trait]
pub trait JobRepository: Send + Sync + 'static {
    /// Claims the oldest job of these kinds whose time has come (pending, or running with a lapsed lease), of any owner, for `lease`. A
    /// consolidation (or review) waits while one of its session is at work, and so does an extraction: a model is not asked the same twice.
    async fn claim_job_of(
        &self,
        kinds: &[JobKind],
        lease: Duration,
    ) -> StoreResult<Option<ClaimedJob>>;

    /// Claims the oldest job of any kind.
    async fn claim_job(&self, lease: Duration) -> StoreResult<Option<ClaimedJob>> {
        self.claim_job_of(&JobKind::ALL, lease).await
    }

    /// Claims with a claimed job others of its kind and owner, each of another session, whose time has come and that nobody has begun yet, the oldest
    /// first, at most `most`: what is alike is applied together at less cost. None for a claim that is no longer valid.
    async fn claim_alike(
        &self,
        claim: &ClaimedJob,
        most: u32,
        lease: Duration,
    ) -> StoreResult<Vec<ClaimedJob>>;

    /// Lets a claim last `lease` from now, while its worker is at it. `Lost` when somebody else has the job meanwhile, or it is gone.
    async fn renew_job(&self, claim: &ClaimedJob, lease: Duration) -> Result<(), JobWriteError>;

    /// Removes a claimed job that turned out to need nothing.
    async fn finish_job(&self, claim: &ClaimedJob) -> Result<(), JobWriteError>;

    /// Records a failure. With `retry_in` the job is pending again after that time (or merges into one that is pending already),
    /// without it is failed.
    async fn fail_job(
        &self,
        claim: &ClaimedJob,
        error: &str,
        retry_in: Option<Duration>,
    ) -> Result<(), JobWriteError>;

    /// Puts a job back that has not failed: what it needs is not there, or others have to have their turn. It is pending again after `delay` with
    /// fresh attempts, or merges into one that is pending already.
    async fn postpone_job(
        &self,
        claim: &ClaimedJob,
        error: Option<&str>,
        delay: Duration,
    ) -> Result<(), JobWriteError>;

    /// Jobs of a tenant, newest first.
    async fn list_jobs(
        &self,
        tenant: TenantId,
        state: Option<JobState>,
        after: Option<Cursor>,
        limit: u32,
    ) -> StoreResult<Page<Job>>;

    /// Makes a failed job pending now, with fresh attempts. If one of its kind is pending for the session already, the failed one is
    /// removed and that one is returned. `None` if there is no such failed job.
    async fn retry_job(&self, tenant: TenantId, id: JobId) -> StoreResult<Option<Job>>;

    /// Drops a failed or pending job. False if there is none.
    async fn drop_job(&self, tenant: TenantId, id: JobId) -> StoreResult<bool>;

    /// How many jobs there are in each state, over all tenants; for metrics.
    async fn count_jobs(&self) -> StoreResult<Vec<(JobKind, JobState, u64)>>;
}
