//! Embedding: the memories of an owner that the model has not embedded, in batches; and, when none is left, the vectors of earlier models go (B21).
//!
//! Nothing of ours is held while the embedder works. Each batch is stored by itself, so that a process that dies loses one batch, and the next
//! goes on behind it.

use std::time::Duration;

use metrics::counter;
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::embedding::Embedding;
use tidemark_domain::memory::speakers::embedding_text;

use crate::ports::clock::Clock;
use crate::ports::embedder::{EmbedError, Embedder};
use crate::ports::embeddings::{MemoryVector, VectorCommit};
use crate::ports::ids::Ids;
use crate::ports::jobs::{ClaimedJob, JobKind, JobWriteError, NewJob};
use crate::ports::store::Store;

/// How many batches one claim stores before other owners get their turn. Ours: some seconds of a quick embedder.
const BATCHES: usize = 32;

/// How many vectors of earlier models are dropped in one transaction.
const DROP_AT_ONCE: u32 = 1_000;

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Embedded {
    /// Nothing is left to do, and the job is gone.
    All,
    /// There is more; the job waits for its next turn.
    More,
    /// The embedder does not work now; the job waits for it.
    Waits(EmbedError),
}

/// Embeds what an owner's memories lack.
///
/// # Errors
/// When the claim is lost or the store failed.
pub async fn embed(
    store: &dyn Store,
    clock: &dyn Clock,
    embedder: &dyn Embedder,
    claim: &ClaimedJob,
) -> Result<Embedded, JobWriteError> {
    let owner = claim.job.owner;
    let model = embedder.model();
    // Before what lacks is read: what is changed meanwhile is looked at by the next job.
    let newest = store.memory_change(owner).await?;
    // Looking for what is not embedded costs more than reading it, so more is read than one batch.
    let page = embedder.batch().saturating_mul(BATCHES);
    let memories = store.unembedded(owner, model, page as u32).await?;
    if memories.is_empty() {
        return dropped(store, claim, model, newest).await;
    }
    let speakers = store.speakers(owner).await?;
    for batch in memories.chunks(embedder.batch()) {
        let texts: Vec<String> = batch
            .iter()
            .map(|memory| embedding_text(&memory.content, &speakers))
            .collect();
        let vectors = match vectors(embedder, &texts).await {
            Ok(vectors) => vectors,
            Err(error) => return waits(store, claim, error).await,
        };
        // Only now is the dimension known for certain, if the embedder was away when the process began.
        if let Some(dimension) = embedder.dimension() {
            let known = store
                .adopt_embedding_model(model, dimension, clock.now())
                .await?;
            if known != dimension {
                let error = EmbedError::Dimension {
                    expected: known,
                    given: dimension,
                };
                return waits(store, claim, error).await;
            }
        }
        let stored = store
            .commit_vectors(claim, commit(model, batch, vectors))
            .await?;
        counter!("tidemark_embedded_memories_total").increment(stored);
    }
    // There may be more, or there is what has come meanwhile.
    store.postpone_job(claim, None, Duration::ZERO).await?;
    Ok(Embedded::More)
}

/// The job that embeds what is stored, where there is an embedder.
pub fn embed_job(ids: &dyn Ids, embeds: bool) -> Vec<NewJob> {
    let job = embeds.then(|| NewJob {
        id: ids.job(),
        kind: JobKind::Embed,
    });
    job.into_iter().collect()
}

fn commit(model: &str, batch: &[Memory], vectors: Vec<Option<Embedding>>) -> VectorCommit {
    VectorCommit {
        model: model.to_owned(),
        vectors: batch
            .iter()
            .zip(vectors)
            .map(|(memory, vector)| MemoryVector {
                memory: memory.id,
                version: memory.version,
                vector,
            })
            .collect(),
    }
}

/// The texts' vectors. Where the embedder does not accept the texts, it is asked for halves of them, down to the one that it does not accept.
async fn vectors(
    embedder: &dyn Embedder,
    texts: &[String],
) -> Result<Vec<Option<Embedding>>, EmbedError> {
    let mut vectors = Vec::with_capacity(texts.len());
    let mut parts = vec![texts];
    while let Some(part) = parts.pop() {
        match embedder.embed_passages(part).await {
            Ok(given) => vectors.extend(given.into_iter().map(Some)),
            Err(EmbedError::Unacceptable { .. }) if part.len() > 1 => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.push(second);
                parts.push(first);
            }
            Err(EmbedError::Unacceptable { status }) => {
                tracing::warn!(
                    status,
                    "a memory cannot be embedded; it is found by words and times alone"
                );
                vectors.push(None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(vectors)
}

async fn waits(
    store: &dyn Store,
    claim: &ClaimedJob,
    error: EmbedError,
) -> Result<Embedded, JobWriteError> {
    let asked = match &error {
        EmbedError::Busy { retry_after } => *retry_after,
        _ => None,
    };
    let wait = asked.unwrap_or(RETRY).clamp(RETRY, LONGEST_WAIT);
    let text = error.to_string();
    store.postpone_job(claim, Some(&text), wait).await?;
    Ok(Embedded::Waits(error))
}

/// How long a job waits for an embedder that does not work, at least and at most.
const RETRY: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_mins(5);

async fn dropped(
    store: &dyn Store,
    claim: &ClaimedJob,
    model: &str,
    newest: i64,
) -> Result<Embedded, JobWriteError> {
    for _ in 0..BATCHES {
        let dropped = store
            .drop_earlier_vectors(claim, model, DROP_AT_ONCE)
            .await?;
        if dropped < u64::from(DROP_AT_ONCE) {
            store.finish_embedding(claim, model, newest).await?;
            return Ok(Embedded::All);
        }
    }
    store.postpone_job(claim, None, Duration::ZERO).await?;
    Ok(Embedded::More)
}
