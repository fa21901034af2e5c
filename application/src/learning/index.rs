//! Indexing: what of a session's new messages is worth keeping becomes episodic memory, verbatim (B4–B6).

use tidemark_domain::ids::Timestamp;
use tidemark_domain::memory::episodic;

use super::embed::embed_job;
use crate::memory::remember;
use crate::ports::ids::Ids;
use crate::ports::jobs::{ClaimedJob, JobKind, JobWriteError, NewJob};
use crate::ports::learning::{IndexCommit, LearningSnapshot};
use crate::ports::memories::IndexedMemory;
use crate::ports::store::Store;

/// Indexes what came since the last time, at most `batch` messages; the rest is a job of its own. What is stored is embedded then, where there
/// is an embedder.
///
/// # Errors
/// When the claim is lost, something moved, or the store failed.
pub async fn index(
    store: &dyn Store,
    ids: &dyn Ids,
    claim: &ClaimedJob,
    snapshot: &LearningSnapshot,
    (batch, embeds): (u32, bool),
    now: Timestamp,
) -> Result<(), JobWriteError> {
    let owner = claim.job.owner;
    let from_seq = snapshot.session.indexed_seq;
    if from_seq >= snapshot.last_closed {
        return store.finish_job(claim).await;
    }
    let messages = store
        .taught_messages(
            owner,
            snapshot.session.id,
            from_seq,
            snapshot.last_closed,
            batch,
        )
        .await?;
    let Some(last) = messages.last() else {
        return store.finish_job(claim).await;
    };
    let to_seq = last.message.seq;
    let memories: Vec<IndexedMemory> = messages
        .iter()
        .filter(|m| !m.cancelled)
        .flat_map(|m| episodic::memories(&m.message, now))
        .map(remember::index)
        .collect();
    let more = to_seq < snapshot.last_closed;
    let mut jobs = embed_job(ids, embeds && !memories.is_empty());
    jobs.extend(more.then(|| NewJob {
        id: ids.job(),
        kind: JobKind::Index,
    }));
    store
        .commit_index(
            claim,
            IndexCommit {
                erase_epoch: snapshot.erase_epoch,
                from_seq,
                to_seq,
                memories,
                change: ids.change(),
                jobs,
                now,
            },
        )
        .await
}
