//! Jobs, and what they read and apply.

use std::time::Duration;

use tidemark_application::ports::jobs::{ClaimedJob, JobKind};
use tidemark_application::ports::learning::{
    ConsolidationCommit, ExtractionCommit, ExtractionOutcome, Unanswered,
};
use tidemark_domain::ids::SessionId;

use super::super::world::{ALL, LONG, World, later};
use super::{Operation, operation};

/// A claimed job of this kind of a new session, whatever others there are.
async fn claimed(w: &World, kind: JobKind) -> (SessionId, ClaimedJob) {
    let session = w.session().await;
    w.enqueued(session, kind).await;
    loop {
        let claim = w.store.claim_job_of(&[kind], LONG).await.unwrap().unwrap();
        if claim.job.session_id == Some(session) {
            return (session, claim);
        }
    }
}

/// A session of which something waits for a model, with the job that reads it.
async fn unread(w: &World) -> (SessionId, ClaimedJob) {
    let (session, claim) = claimed(w, JobKind::Consolidate).await;
    let job = w.ids.job();
    let commit = ConsolidationCommit {
        pending: Some(Unanswered {
            job,
            error: "no answer".to_owned(),
            retry_in: Duration::ZERO,
        }),
        ..w.consolidation(session, Vec::new()).await
    };
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    loop {
        let claim = w.store.claim_job_of(&[JobKind::Extract], LONG).await;
        let claim = claim.unwrap().unwrap();
        if claim.job.id == job {
            return (session, claim);
        }
    }
}

pub(super) fn operations() -> Vec<Operation> {
    let mut all = jobs();
    all.extend(learning());
    all
}

fn jobs() -> Vec<Operation> {
    vec![
        operation!(w.claim_job_of(&[JobKind::Index], LONG) after {
            let session = w.session().await;
            w.enqueued(session, JobKind::Index).await;
        }),
        operation!(w.claim_job(LONG) after {
            let session = w.session().await;
            w.enqueued(session, JobKind::Index).await;
        }),
        operation!(w.claim_alike(&claim, ALL, LONG) after {
            let (_, claim) = claimed(&w, JobKind::Index).await;
            let session = w.session().await;
            w.enqueued(session, JobKind::Index).await;
        }),
        operation!(w.renew_job(&claim, LONG) after { let (_, claim) = claimed(&w, JobKind::Index).await; }),
        operation!(w.finish_job(&claim) after { let (_, claim) = claimed(&w, JobKind::Index).await; }),
        operation!(w.fail_job(&claim, "x", Some(LONG)) after {
            let (_, claim) = claimed(&w, JobKind::Index).await;
        }),
        operation!(w.postpone_job(&claim, None, LONG) after {
            let (_, claim) = claimed(&w, JobKind::Index).await;
        }),
        operation!(w.list_jobs(w.owner.tenant, None, None, ALL) after {}),
        operation!(w.retry_job(w.owner.tenant, claim.job.id) after {
            let (_, claim) = claimed(&w, JobKind::Index).await;
            w.store.fail_job(&claim, "x", None).await.unwrap();
        }),
        operation!(w.drop_job(w.owner.tenant, job.id) after {
            let session = w.session().await;
            let job = w.enqueued(session, JobKind::ReviewMemory).await;
        }),
        operation!(w.count_jobs() after {}),
    ]
}

fn learning() -> Vec<Operation> {
    vec![
        operation!(w.learning_snapshot(w.owner, session) after { let session = w.session().await; }),
        operation!(w.taught_messages(w.owner, session, 0, 10, ALL) after {
            let session = w.session().await;
            w.said(session, "The budget is 400k.").await;
        }),
        operation!(w.commit_index(&claim, commit) after {
            let (session, claim) = claimed(&w, JobKind::Index).await;
            let said = w.said(session, "The budget is 400k.").await;
            let commit = w.index(session, vec![w.chunk("The budget is 400k.", &said)]).await;
        }),
        operation!(w.index_work(w.owner, &sessions, ALL) after {
            let sessions = [w.session().await, w.session().await];
            w.said(sessions[0], "The budget is 400k.").await;
        }),
        operation!(w.commit_indexes(w.owner, commits) after {
            let mut commits = Vec::new();
            for _ in 0..2 {
                let (session, claim) = claimed(&w, JobKind::Index).await;
                let said = w.said(session, "The budget is 400k.").await;
                let commit = w.index(session, vec![w.chunk("The budget is 400k.", &said)]).await;
                commits.push((claim, commit));
            }
        }),
        operation!(w.commit_consolidation(&claim, commit) after {
            let (session, claim) = claimed(&w, JobKind::Consolidate).await;
            let commit = w.consolidation(session, vec![w.memory(&format!("The code is {}.", w.ids.uuid()))]).await;
        }),
        operation!(w.pending_extractions(w.owner, session) after { let session = w.session().await; }),
        operation!(w.commit_extraction(&claim, commit) after {
            let (session, claim) = unread(&w).await;
            let commit = ExtractionCommit {
                erase_epoch: w.snapshot(session).await.erase_epoch,
                from_seq: 0,
                to_seq: 1,
                worded: Vec::new(),
                strengthened: Vec::new(),
                outcome: ExtractionOutcome::Settled,
                change: w.ids.change(),
                jobs: Vec::new(),
                now: w.now(),
            };
        }),
        operation!(w.sessions_to_consolidate(before, ALL) after { let before = later(w.now(), 1); }),
        operation!(w.enqueue_job(w.owner, session, job, now) after {
            let (session, job, now) = (w.session().await, w.new_job(JobKind::ReviewMemory), w.now());
        }),
        operation!(w.commit_use(&claim, change, now) after {
            let (_, claim) = claimed(&w, JobKind::CountUse).await;
            let (change, now) = (w.ids.change(), w.now());
        }),
        operation!(w.commit_uses(w.owner, claims, now) after {
            let now = w.now();
            let mut claims = Vec::new();
            for _ in 0..2 {
                let (_, claim) = claimed(&w, JobKind::CountUse).await;
                claims.push((claim, w.ids.change()));
            }
        }),
    ]
}
