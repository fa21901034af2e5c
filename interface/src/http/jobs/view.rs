//! A job as it is shown.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidemark_application::ports::embeddings::EmbeddingProgress;
use tidemark_application::ports::jobs::{Job, JobKind, JobState};
use utoipa::ToSchema;
use uuid::Uuid;

/// What is to be done.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = JobKind)]
pub enum JobKindView {
    /// Store what of a session's new messages is worth keeping.
    Index,
    /// Take what lies behind the boundary into semantic memory.
    Consolidate,
    /// The same, before it is due.
    ReviewMemory,
    /// Ask a model again about consolidated messages that it has not yet answered for.
    Extract,
    /// Count the use of memories that were shown.
    CountUse,
    /// Embed the user's memories that the present model has not embedded.
    Embed,
}

impl From<JobKind> for JobKindView {
    fn from(kind: JobKind) -> Self {
        match kind {
            JobKind::Index => Self::Index,
            JobKind::Consolidate => Self::Consolidate,
            JobKind::ReviewMemory => Self::ReviewMemory,
            JobKind::Extract => Self::Extract,
            JobKind::CountUse => Self::CountUse,
            JobKind::Embed => Self::Embed,
        }
    }
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = JobState)]
pub enum JobStateView {
    /// It waits for its time or a worker.
    Pending,
    /// A worker has it.
    Running,
    /// Given up; it waits for a person.
    Failed,
}

impl From<JobState> for JobStateView {
    fn from(state: JobState) -> Self {
        match state {
            JobState::Pending => Self::Pending,
            JobState::Running => Self::Running,
            JobState::Failed => Self::Failed,
        }
    }
}

impl From<JobStateView> for JobState {
    fn from(state: JobStateView) -> Self {
        match state {
            JobStateView::Pending => Self::Pending,
            JobStateView::Running => Self::Running,
            JobStateView::Failed => Self::Failed,
        }
    }
}

/// How far a job is.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct JobProgress {
    /// How many of the user's memories the present model has embedded.
    #[schema(examples(120))]
    pub done: u64,
    /// How many memories the user has.
    #[schema(examples(4000))]
    pub total: u64,
}

impl From<EmbeddingProgress> for JobProgress {
    fn from(progress: EmbeddingProgress) -> Self {
        Self {
            done: progress.done,
            total: progress.total,
        }
    }
}

/// A job.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Job)]
pub struct JobView {
    /// Its id.
    pub id: Uuid,
    /// What is to be done.
    pub kind: JobKindView,
    /// The session it works on; absent where it works on all that the user has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Uuid>,
    /// Where it stands.
    pub state: JobStateView,
    /// How often it was begun.
    #[schema(examples(1))]
    pub attempts: i32,
    /// When it may be begun.
    pub run_at: DateTime<Utc>,
    /// For `embed`: how far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<JobProgress>,
    /// What the last attempt failed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When it was enqueued.
    pub created_at: DateTime<Utc>,
}

impl From<Job> for JobView {
    fn from(job: Job) -> Self {
        Self {
            id: job.id.0,
            kind: job.kind.into(),
            session_id: job.session_id.map(|id| id.0),
            state: job.state.into(),
            attempts: job.attempts,
            run_at: job.run_at,
            progress: None,
            last_error: job.last_error,
            created_at: job.created_at,
        }
    }
}
