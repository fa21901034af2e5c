//! Consolidation: what lies behind the boundary is taken into semantic memory, and the boundary moves with it (A12–A14).

use tidemark_domain::boundary;
use tidemark_domain::ids::Timestamp;
use tidemark_domain::memory::consolidation;
use tidemark_domain::session::Message;

use super::embed::embed_job;
use crate::memory::remember;
use crate::ports::ids::Ids;
use crate::ports::jobs::{ClaimedJob, JobKind, JobWriteError, NewJob};
use crate::ports::learning::{ConsolidationCommit, LearningSnapshot, Strengthened, TaughtMessage};
use crate::ports::store::Store;
use crate::settings::LearningSettings;

/// Consolidates a session, reloaded: nothing is decided on what the session was when the job was enqueued (A13).
///
/// # Errors
/// When the claim is lost, something moved, or the store failed.
pub async fn consolidate(
    store: &dyn Store,
    ids: &dyn Ids,
    claim: &ClaimedJob,
    snapshot: &LearningSnapshot,
    (settings, embeds): (&LearningSettings, bool),
    now: Timestamp,
) -> Result<(), JobWriteError> {
    let owner = claim.job.owner;
    let session = &snapshot.session;
    let from_seq = session.last_consolidated;
    let due = claim.job.kind == JobKind::ReviewMemory
        || boundary::is_due(session.message_count, from_seq, settings.threshold);
    if !due {
        return store.finish_job(claim).await;
    }
    let (taught, to_seq) = behind_the_boundary(store, claim, snapshot, settings.batch).await?;
    if to_seq <= from_seq {
        return store.finish_job(claim).await;
    }
    let behind: Vec<Message> = taught
        .into_iter()
        .filter(|t| t.message.seq <= to_seq && !t.cancelled)
        .map(|t| t.message)
        .collect();
    let identities = consolidation::keys(&behind);
    let existing = store.memories_by_identity(owner, &identities).await?;
    let told = match consolidation::touched(&behind) {
        Some(touched) => store.memories_by_key(owner, &touched).await?,
        None => Vec::new(),
    };
    let decided = consolidation::consolidate(&behind, &existing, &told, now, &mut || ids.memory());
    let more = boundary::is_due(session.message_count, to_seq, settings.threshold)
        && to_seq < snapshot.last_closed;
    let mut jobs = embed_job(ids, embeds && !decided.new.is_empty());
    jobs.extend(more.then(|| NewJob {
        id: ids.job(),
        kind: JobKind::Consolidate,
    }));
    store
        .commit_consolidation(
            claim,
            ConsolidationCommit {
                erase_epoch: snapshot.erase_epoch,
                from_seq,
                to_seq,
                new: decided.new.into_iter().map(remember::index).collect(),
                strengthened: decided
                    .strengthened
                    .into_iter()
                    .map(|(id, version, sources, confidence)| Strengthened {
                        id,
                        version,
                        confidence,
                        sources,
                    })
                    .collect(),
                change: ids.change(),
                jobs,
                now,
            },
        )
        .await
}

/// The messages from the old boundary on, and where the new one stands. A page may end in the middle of a long run of tool calls,
/// where no boundary can stand: then more is read.
async fn behind_the_boundary(
    store: &dyn Store,
    claim: &ClaimedJob,
    snapshot: &LearningSnapshot,
    page: u32,
) -> Result<(Vec<TaughtMessage>, i64), JobWriteError> {
    let from_seq = snapshot.session.last_consolidated;
    let mut taught: Vec<TaughtMessage> = Vec::new();
    loop {
        let after = taught.last().map_or(from_seq, |t| t.message.seq);
        let more = store
            .taught_messages(
                claim.job.owner,
                snapshot.session.id,
                after,
                snapshot.last_closed,
                page,
            )
            .await?;
        let complete = more.len() < page as usize;
        taught.extend(more);
        let all: Vec<Message> = taught.iter().map(|t| t.message.clone()).collect();
        let to_seq = boundary::boundary(&all, from_seq, snapshot.last_closed);
        if complete || to_seq > from_seq {
            return Ok((taught, to_seq));
        }
    }
}
