//! Indexing: what of a session's new messages is worth keeping becomes episodic memory, verbatim (B4–B6).

use std::collections::HashMap;
use std::sync::Arc;

use tidemark_domain::ids::{Owner, SessionId, Timestamp};

use super::embed::embed_job;
use crate::memory::fresh::Unindexed;
use crate::ports::ids::Ids;
use crate::ports::jobs::{ClaimedJob, JobKind, JobWriteError, NewJob};
use crate::ports::learning::{IndexCommit, IndexWork};
use crate::ports::memories::IndexedMemory;
use crate::ports::store::Store;

/// Indexes what came since the last time, of one session or of several of one owner: at most `batch` messages in all, but one of each session;
/// the rest is a job of its own. What is stored is embedded then, where there is an embedder. What became of each claim, in their order: it was
/// lost, something moved, or the store failed.
pub async fn index(
    store: &dyn Store,
    (ids, made): (&dyn Ids, &Unindexed),
    claims: &[ClaimedJob],
    (batch, embeds): (u32, bool),
    now: Timestamp,
) -> Vec<Result<(), JobWriteError>> {
    let Some(first) = claims.first() else {
        return Vec::new();
    };
    let owner = first.job.owner;
    let limit = (batch / claims.len() as u32).max(1);
    let sessions: Vec<SessionId> = claims.iter().filter_map(|c| c.job.session_id).collect();
    let work = match store.index_work(owner, &sessions, limit).await {
        Ok(work) => work,
        Err(error) => {
            let error = Arc::new(error);
            return claims.iter().map(|_| Err(error.shared().into())).collect();
        }
    };
    let mut work: HashMap<SessionId, Option<IndexWork>> = work
        .into_iter()
        .map(|work| (work.snapshot.session.id, Some(work)))
        .collect();
    let mut outcomes = Vec::with_capacity(claims.len());
    let (mut places, mut commits) = (Vec::new(), Vec::new());
    for (place, claim) in claims.iter().enumerate() {
        let found = claim.job.session_id.and_then(|id| work.get_mut(&id));
        let work = match found.map(Option::take) {
            // Another claim is of the same session: what is left for this one is seen when that is done.
            Some(None) => {
                outcomes.push(Err(JobWriteError::Conflict));
                continue;
            }
            // The session is gone.
            None => None,
            Some(work) => work,
        };
        match work.and_then(|work| decide((ids, made), work, (owner, embeds), now)) {
            Some(commit) => {
                places.push(place);
                commits.push((claim.clone(), commit));
                outcomes.push(Ok(()));
            }
            None => outcomes.push(store.finish_job(claim).await),
        }
    }
    for (place, outcome) in places
        .into_iter()
        .zip(store.commit_indexes(owner, commits).await)
    {
        outcomes[place] = outcome;
    }
    outcomes
}

/// What is indexed of a session, if anything is to be.
fn decide(
    (ids, made): (&dyn Ids, &Unindexed),
    work: IndexWork,
    (owner, embeds): (Owner, bool),
    now: Timestamp,
) -> Option<IndexCommit> {
    let IndexWork { snapshot, messages } = work;
    let to_seq = messages.last()?.message.seq;
    let memories: Vec<IndexedMemory> = messages
        .iter()
        .filter(|m| !m.cancelled)
        .flat_map(|m| made.of(owner, &m.message, now))
        .collect();
    let more = to_seq < snapshot.last_closed;
    let mut jobs = embed_job(ids, embeds && !memories.is_empty());
    jobs.extend(more.then(|| NewJob {
        id: ids.job(),
        kind: JobKind::Index,
    }));
    Some(IndexCommit {
        erase_epoch: snapshot.erase_epoch,
        from_seq: snapshot.session.indexed_seq,
        to_seq,
        memories,
        change: ids.change(),
        jobs,
        now,
    })
}
