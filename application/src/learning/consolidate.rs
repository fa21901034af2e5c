//! Consolidation: what lies behind the boundary is taken into semantic memory, and the boundary moves with it (A12–A14).
//!
//! Rules find what they can; a model, where there is one, is asked for the rest. It may take its time: it is asked before anything is
//! decided, and what is decided is decided on the session as it is afterwards. A model that does not answer holds nothing up: the boundary moves with what the
//! rules found, and the messages are noted as pending.

use tidemark_domain::boundary;
use tidemark_domain::ids::Timestamp;
use tidemark_domain::memory::{Memory, consolidation, extraction};
use tidemark_domain::session::{Message, Role};

use super::embed::embed_job;
use super::extract::{Extraction, known_keys};
use super::worker::Workers;
use crate::memory::remember;
use crate::ports::jobs::{ClaimedJob, JobKind, JobWriteError, NewJob};
use crate::ports::learning::{
    ConsolidationCommit, LearningSnapshot, Strengthened, TaughtMessage, Unanswered,
};
use crate::ports::store::{Store, StoreResult};

/// How often is decided anew on one answer of a model when something moved meanwhile.
pub(super) const DECISIONS: u32 = 5;

/// Consolidates a session, reloaded: nothing is decided on what the session was when the job was enqueued (A13).
///
/// # Errors
/// When the claim is lost, something moved, or the store failed.
pub async fn consolidate(
    workers: &Workers,
    claim: &ClaimedJob,
    snapshot: LearningSnapshot,
) -> Result<(), JobWriteError> {
    let store = workers.store.as_ref();
    let (taught, to_seq) =
        behind_the_boundary(store, claim, &snapshot, workers.settings.batch).await?;
    let from_seq = snapshot.session.last_consolidated;
    if to_seq <= from_seq || !is_due(workers, claim, &snapshot, &taught) {
        return store.finish_job(claim).await;
    }
    let messages = learnable(taught);
    let to_seq = match &workers.extractor {
        Some(extractor) => extractor.reach(&messages, to_seq),
        None => to_seq,
    };
    let behind: Vec<Message> = messages.into_iter().filter(|m| m.seq <= to_seq).collect();
    let extraction = match &workers.extractor {
        Some(extractor) => {
            let keys = known_keys(store, claim.job.owner).await?;
            extractor.extract(&behind, &keys, workers.clock.now()).await
        }
        None => Extraction::default(),
    };
    let mut snapshot = snapshot;
    for _ in 0..DECISIONS {
        match commit(workers, claim, &snapshot, (&behind, to_seq), &extraction).await {
            Err(JobWriteError::Conflict) => {}
            outcome => return outcome,
        }
        // Is what the model has read still what there is? Then its answer holds, whatever else has moved.
        snapshot = match store
            .learning_snapshot(claim.job.owner, claim.session()?)
            .await?
        {
            Some(snapshot) => snapshot,
            None => return store.finish_job(claim).await,
        };
        if snapshot.session.last_consolidated != from_seq
            || between(store, claim, (from_seq, to_seq), workers.settings.batch).await? != behind
        {
            break;
        }
    }
    Err(JobWriteError::Conflict)
}

/// By their number, by their age, or because somebody asked.
fn is_due(
    workers: &Workers,
    claim: &ClaimedJob,
    snapshot: &LearningSnapshot,
    taught: &[TaughtMessage],
) -> bool {
    let session = &snapshot.session;
    let settings = &workers.settings;
    let now = workers.clock.now();
    let may_end_here = |m: &Message| m.role != Role::Tool && m.tool_calls.is_empty();
    claim.job.kind == JobKind::ReviewMemory
        || boundary::is_due(
            session.message_count,
            session.last_consolidated,
            settings.threshold,
        )
        || taught
            .iter()
            .map(|t| &t.message)
            .any(|m| may_end_here(m) && is_old(m.created_at, now, settings.interval))
}

fn is_old(said: Timestamp, now: Timestamp, interval: std::time::Duration) -> bool {
    (now - said).to_std().is_ok_and(|age| age >= interval)
}

async fn commit(
    workers: &Workers,
    claim: &ClaimedJob,
    snapshot: &LearningSnapshot,
    (behind, to_seq): (&[Message], i64),
    extraction: &Extraction,
) -> Result<(), JobWriteError> {
    let (store, ids, now) = (
        workers.store.as_ref(),
        workers.ids.as_ref(),
        workers.clock.now(),
    );
    let session = &snapshot.session;
    let existing = existing(store, claim, behind, &extraction.facts).await?;
    let told = match consolidation::touched(behind) {
        Some(touched) => store.memories_by_key(claim.job.owner, &touched).await?,
        None => Vec::new(),
    };
    let mut decided =
        consolidation::consolidate(behind, &existing, &told, now, &mut || ids.memory());
    let worded =
        extraction::learning::learn(&extraction.facts, &existing, &mut decided, now, &mut || {
            ids.memory()
        });
    let more = boundary::is_due(session.message_count, to_seq, workers.settings.threshold)
        && to_seq < snapshot.last_closed;
    let mut jobs = embed_job(
        ids,
        workers.embedder.is_some() && !(decided.new.is_empty() && worded.is_empty()),
    );
    jobs.extend(more.then(|| NewJob {
        id: ids.job(),
        kind: JobKind::Consolidate,
    }));
    let pending = extraction.failure.as_ref().map(|error| Unanswered {
        job: ids.job(),
        error: error.to_string(),
        retry_in: workers.settings.extraction_retry,
    });
    let commit = ConsolidationCommit {
        erase_epoch: snapshot.erase_epoch,
        from_seq: session.last_consolidated,
        to_seq,
        new: decided.new.into_iter().map(remember::index).collect(),
        worded: worded.into_iter().map(remember::index).collect(),
        strengthened: strengthened(decided.strengthened),
        pending,
        change: ids.change(),
        jobs,
        now,
    };
    store.commit_consolidation(claim, commit).await
}

/// What the owner's semantic memory already holds of what the messages state and a model has read out of them.
pub(super) async fn existing(
    store: &dyn Store,
    claim: &ClaimedJob,
    messages: &[Message],
    facts: &[extraction::Fact],
) -> StoreResult<Vec<(String, Memory)>> {
    let mut identities = consolidation::keys(messages);
    identities.extend(extraction::learning::identities(facts));
    identities.sort();
    identities.dedup();
    store
        .memories_by_identity(claim.job.owner, &identities)
        .await
}

pub(super) fn strengthened(
    decided: Vec<(
        tidemark_domain::ids::MemoryId,
        i64,
        Vec<tidemark_domain::memory::Source>,
        f64,
    )>,
) -> Vec<Strengthened> {
    decided
        .into_iter()
        .map(|(id, version, sources, confidence)| Strengthened {
            id,
            version,
            confidence,
            sources,
        })
        .collect()
}

/// The messages from the old boundary on, and where the new one stands. A page may end in the middle of a
/// long run of tool calls, where no boundary can stand: then more is read.
async fn behind_the_boundary(
    store: &dyn Store,
    claim: &ClaimedJob,
    snapshot: &LearningSnapshot,
    page: u32,
) -> StoreResult<(Vec<TaughtMessage>, i64)> {
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

/// The messages of a session from one number, exclusive, to another, those of cancelled turns left out.
pub(super) async fn between(
    store: &dyn Store,
    claim: &ClaimedJob,
    (from_seq, to_seq): (i64, i64),
    page: u32,
) -> Result<Vec<Message>, JobWriteError> {
    let (owner, session) = (claim.job.owner, claim.session()?);
    let mut taught: Vec<TaughtMessage> = Vec::new();
    loop {
        let after = taught.last().map_or(from_seq, |t| t.message.seq);
        let more = store
            .taught_messages(owner, session, after, to_seq, page)
            .await?;
        let complete = more.len() < page as usize;
        taught.extend(more);
        if complete {
            return Ok(learnable(taught));
        }
    }
}

fn learnable(taught: Vec<TaughtMessage>) -> Vec<Message> {
    taught
        .into_iter()
        .filter(|t| !t.cancelled)
        .map(|t| t.message)
        .collect()
}
