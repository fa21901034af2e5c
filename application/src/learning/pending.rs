//! Pending extractions: consolidated messages that a model has yet to answer for are asked about again, one batch a job (B4).

use std::time::Duration;

use tidemark_domain::memory::consolidation::Consolidated;
use tidemark_domain::memory::extraction::learning::learn;
use tidemark_domain::session::Message;

use super::consolidate::{DECISIONS, between, existing, strengthened};
use super::embed::embed_job;
use super::extract::{Extraction, known_keys};
use super::worker::Workers;
use crate::memory::remember;
use crate::ports::jobs::{ClaimedJob, JobKind, JobWriteError, NewJob};
use crate::ports::learning::{
    ExtractionCommit, ExtractionOutcome, LearningSnapshot, PendingExtraction,
};

/// The longest wait before a model is asked again; ours.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// How long a job rests that nobody here can do.
const WITHOUT_MODEL: Duration = Duration::from_mins(5);

/// Asks again about the pending extraction of a session that was tried least. The job goes on until none is left, or it has no attempt left and waits for a person.
///
/// # Errors
/// When the claim is lost, something moved, or the store failed.
pub async fn extract_pending(
    workers: &Workers,
    claim: &ClaimedJob,
    snapshot: LearningSnapshot,
) -> Result<(), JobWriteError> {
    let store = workers.store.as_ref();
    let (owner, session) = (claim.job.owner, claim.session()?);
    let all = store.pending_extractions(owner, session).await?;
    let Some(pending) = all.first() else {
        return store.finish_job(claim).await;
    };
    let Some(extractor) = &workers.extractor else {
        return store
            .postpone_job(claim, Some("no model extracts here"), WITHOUT_MODEL)
            .await;
    };
    let range = (pending.from_seq, pending.to_seq);
    let batch = workers.settings.batch;
    let messages = between(store, claim, range, batch).await?;
    let keys = known_keys(store, owner).await?;
    let extraction = extractor
        .extract(&messages, &keys, workers.clock.now())
        .await;
    let more = all[1..]
        .iter()
        .any(|other| other.attempts < workers.settings.max_attempts);
    let mut snapshot = snapshot;
    for _ in 0..DECISIONS {
        let commit = decide(
            workers,
            claim,
            (&snapshot, pending, more),
            &messages,
            &extraction,
        )
        .await?;
        match store.commit_extraction(claim, commit).await {
            Err(JobWriteError::Conflict) => {}
            outcome => return outcome,
        }
        // Is what the model has read still what there is? Then its answer holds, whatever else has moved.
        snapshot = match store.learning_snapshot(owner, session).await? {
            Some(snapshot) => snapshot,
            None => return store.finish_job(claim).await,
        };
        if between(store, claim, range, batch).await? != messages {
            break;
        }
    }
    Err(JobWriteError::Conflict)
}

async fn decide(
    workers: &Workers,
    claim: &ClaimedJob,
    (snapshot, pending, more): (&LearningSnapshot, &PendingExtraction, bool),
    messages: &[Message],
    extraction: &Extraction,
) -> Result<ExtractionCommit, JobWriteError> {
    let now = workers.clock.now();
    let existing = existing(workers.store.as_ref(), claim, messages, &extraction.facts).await?;
    // What rules find in these messages was learned when they were consolidated.
    let mut known = Consolidated::default();
    let worded = learn(&extraction.facts, &existing, &mut known, now, &mut || {
        workers.ids.memory()
    });
    let embeds = workers.embedder.is_some() && !worded.is_empty();
    let mut jobs = embed_job(workers.ids.as_ref(), embeds);
    let outcome = match &extraction.failure {
        None => {
            jobs.extend(more.then(|| NewJob {
                id: workers.ids.job(),
                kind: JobKind::Extract,
            }));
            ExtractionOutcome::Settled
        }
        Some(error) => ExtractionOutcome::Unsettled {
            error: error.to_string(),
            retry_in: (claim.job.attempts < workers.settings.max_attempts)
                .then(|| wait(workers.settings.extraction_retry, claim.job.attempts)),
        },
    };
    Ok(ExtractionCommit {
        erase_epoch: snapshot.erase_epoch,
        from_seq: pending.from_seq,
        to_seq: pending.to_seq,
        worded: worded.into_iter().map(remember::index).collect(),
        strengthened: strengthened(known.strengthened),
        outcome,
        change: workers.ids.change(),
        jobs,
        now,
    })
}

/// Once has been waited when the job is first begun.
fn wait(first: Duration, attempts: i32) -> Duration {
    first
        .saturating_mul(1 << attempts.clamp(0, 16))
        .min(LONGEST_WAIT)
}
