//! The vectors of memories, kept for each model that made them (B21).

use async_trait::async_trait;
use tidemark_domain::ids::{MemoryId, Owner, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::embedding::Embedding;

use super::jobs::{ClaimedJob, JobWriteError, NewJob};
use super::store::StoreResult;

/// How far the memories of an owner are embedded by a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmbeddingProgress {
    /// Memories that the model has been asked about.
    pub done: u64,
    /// All of the owner's.
    pub total: u64,
}

/// The vector of a memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryVector {
    /// The memory.
    pub memory: MemoryId,
    /// The version whose text was embedded.
    pub version: i64,
    /// None where the embedder does not accept the text: then it is not asked again.
    pub vector: Option<Embedding>,
}

/// Vectors to be stored.
#[derive(Clone, Debug)]
pub struct VectorCommit {
    /// The model that made them, which must have been adopted.
    pub model: String,
    /// The vectors.
    pub vectors: Vec<MemoryVector>,
}

/// Models and their vectors. A vector goes with its memory, and when the memory's text changes.
///
/// Models belong to the installation, not to a tenant: the newest adopted one is the one that memories are to be embedded by.
#[async_trait]
pub trait EmbeddingRepository: Send + Sync + 'static {
    /// The dimension under which a model is known; none before it was adopted.
    async fn embedding_dimension(&self, model: &str) -> StoreResult<Option<usize>>;

    /// Makes a model the one that memories are to be embedded by, and gives the dimension under which it is known: the given one if it was not
    /// known before. Adopting the present one again changes nothing.
    async fn adopt_embedding_model(
        &self,
        model: &str,
        dimension: usize,
        now: Timestamp,
    ) -> StoreResult<usize>;

    /// Owners for whom something is to be done before all their memories are embedded by `model` and by no earlier one, and who have no job
    /// `embed`; by number, from behind `after`, at most `limit`.
    async fn owners_to_embed(
        &self,
        model: &str,
        after: Option<Owner>,
        limit: u32,
    ) -> StoreResult<Vec<Owner>>;

    /// Enqueues a job of the owner's, not of a session. One that is pending already serves.
    async fn enqueue_embedding(&self, owner: Owner, job: NewJob, now: Timestamp)
    -> StoreResult<()>;

    /// Memories that the model has not been asked about, the last changed first, at most `limit`; in every state, since a question may ask
    /// for the past. What was changed before a [mark](Self::finish_embedding) is not looked at again.
    async fn unembedded(&self, owner: Owner, model: &str, limit: u32) -> StoreResult<Vec<Memory>>;

    /// Those by whom the owner has a memory, sorted.
    async fn speakers(&self, owner: Owner) -> StoreResult<Vec<String>>;

    /// How far it is.
    async fn embedding_progress(&self, owner: Owner, model: &str)
    -> StoreResult<EmbeddingProgress>;

    /// Stores vectors in one change of the owner's memories, if the claim still holds, which it goes on doing. A memory that is gone or has another
    /// version is passed over. How many were stored.
    async fn commit_vectors(
        &self,
        claim: &ClaimedJob,
        commit: VectorCommit,
    ) -> Result<u64, JobWriteError>;

    /// Ends the job, if the claim still holds, and marks that the model has been asked about everything up to the owner's change of that number.
    async fn finish_embedding(
        &self,
        claim: &ClaimedJob,
        model: &str,
        change: i64,
    ) -> Result<(), JobWriteError>;

    /// Drops at most `limit` of the owner's vectors by models that were adopted before `model`, and their marks. How many vectors.
    async fn drop_earlier_vectors(
        &self,
        claim: &ClaimedJob,
        model: &str,
        limit: u32,
    ) -> Result<u64, JobWriteError>;
}
