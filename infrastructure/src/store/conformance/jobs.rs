//! The outbox: claims, leases, failures, and their governance (A10, A11, A13, A18).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tidemark_application::ports::jobs::{ClaimedJob, Job, JobKind, JobState, JobWriteError, Lane};
use tidemark_application::ports::store::{Cursor, Store};
use tidemark_domain::ids::{JobId, TenantId};

use super::world::{ALL, HARD_TEXTS, LONG, SHORT, World, lapse, sorted, unknown};

/// Longer than the steps of the clock of any database.
async fn tick() {
    tokio::time::sleep(Duration::from_millis(3)).await;
}

fn assert_lost(outcome: &Result<(), JobWriteError>) {
    assert!(matches!(outcome, Err(JobWriteError::Lost)), "{outcome:?}");
}

/// A job that was given up.
async fn failed(w: &World, kind: JobKind) -> Job {
    let claim = w.claimed(w.session().await, kind).await;
    w.store.fail_job(&claim, "broken", None).await.unwrap();
    let jobs = w.jobs().await;
    jobs.into_iter().find(|j| j.id == claim.job.id).unwrap()
}

pub async fn one_job_of_a_kind_is_pending_for_a_session(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (a, b) = (w.session().await, w.session().await);
    let first = w.enqueued(a, JobKind::Index).await;
    w.enqueued(a, JobKind::Index).await;
    w.enqueued(a, JobKind::Consolidate).await;
    w.enqueued(b, JobKind::Index).await;
    let jobs = w.jobs().await;
    assert_eq!(jobs.len(), 3);
    assert!(jobs.contains(&first));
}

pub async fn many_enqueuers_at_once_leave_one_pending_job(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    join_all((0..16).map(|_| w.enqueued(session, JobKind::Index))).await;
    assert_eq!(w.jobs().await.len(), 1);
    w.check_transcript(session).await;
}

pub async fn a_new_job_may_wait_while_one_of_its_kind_runs(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let running = w.claimed(session, JobKind::Index).await;
    w.enqueued(session, JobKind::Index).await;
    let jobs = w.jobs().await;
    let states = |state| jobs.iter().filter(move |j| j.state == state);
    assert_eq!(states(JobState::Pending).count(), 1);
    let run: Vec<_> = states(JobState::Running).map(|j| j.id).collect();
    assert_eq!(run, [running.job.id]);
}

pub async fn a_claim_takes_the_job_and_counts_the_attempt(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    assert_eq!(w.claim().await, None);
    let job = w.enqueued(w.session().await, JobKind::ReviewMemory).await;
    let claim = w.claim().await.unwrap();
    let expected = Job {
        state: JobState::Running,
        attempts: 1,
        run_at: claim.job.run_at,
        ..job
    };
    assert_eq!(claim.job, expected);
    assert_eq!(w.jobs().await, [expected]);
    assert_eq!(w.claim().await, None);
}

pub async fn jobs_are_claimed_oldest_first_whoever_owns_them(store: Arc<dyn Store>) {
    let w = World::new(store.clone()).await;
    let mut other = World::new(store).await;
    other.owner = w
        .owner_named(TenantId(w.ids.uuid()), "somebody-elsewhere")
        .await;
    let mut expected = Vec::new();
    for world in [&w, &other, &w, &other] {
        let job = world.enqueued(world.session().await, JobKind::Index).await;
        expected.push((job.id, world.owner));
        tick().await;
    }
    for expected in expected {
        let claim = w.claim().await.unwrap();
        assert_eq!((claim.job.id, claim.job.owner), expected);
    }
}

pub async fn many_workers_at_once_never_claim_the_same_job(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    for _ in 0..24 {
        w.enqueued(w.session().await, JobKind::Index).await;
    }
    let mut claimed = Vec::new();
    for _ in 0..3 {
        let claims = join_all((0..16).map(|_| w.claim())).await;
        claimed.extend(claims.into_iter().flatten().map(|claim| claim.job.id));
    }
    let distinct: HashSet<_> = claimed.iter().copied().collect();
    assert_eq!(claimed.len(), 24);
    assert_eq!(distinct.len(), 24);
}

/// The same job, claimed by two one after the other since the first was too slow.
async fn claimed_twice(w: &World, kind: JobKind) -> (ClaimedJob, ClaimedJob) {
    w.enqueued(w.session().await, kind).await;
    let slow = w.claim_for(SHORT).await.unwrap();
    lapse().await;
    let second = w.claim().await.unwrap();
    assert_eq!(second.job.id, slow.job.id);
    (slow, second)
}

pub async fn a_lapsed_claim_is_given_to_another_and_the_first_has_lost(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (slow, second) = claimed_twice(&w, JobKind::CountUse).await;
    assert_ne!(second.token, slow.token);
    assert_eq!(second.job.attempts, 2);
    assert_lost(&w.store.finish_job(&slow).await);
    assert_lost(&w.store.fail_job(&slow, "slow", None).await);
    assert_lost(&w.store.fail_job(&slow, "slow", Some(SHORT)).await);
    let counted = w.store.commit_use(&slow, w.ids.change(), w.now()).await;
    assert!(matches!(counted, Err(JobWriteError::Lost)), "{counted:?}");
    assert_eq!(w.jobs().await, std::slice::from_ref(&second.job));
    w.store.finish_job(&second).await.unwrap();
    assert!(w.jobs().await.is_empty());
}

pub async fn a_lapsed_claim_that_nobody_took_is_still_valid(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    w.enqueued(w.session().await, JobKind::Index).await;
    let slow = w.claim_for(SHORT).await.unwrap();
    lapse().await;
    w.store.finish_job(&slow).await.unwrap();
    assert!(w.jobs().await.is_empty());
}

pub async fn a_claim_of_some_kinds_passes_over_the_others(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    for kind in JobKind::ALL {
        w.enqueued(w.session().await, kind).await;
    }
    let mut claimed = Vec::new();
    for lane in Lane::ALL {
        let kinds = lane.kinds();
        assert_eq!(w.store.claim_job_of(&[], LONG).await.unwrap(), None);
        while let Some(claim) = w.store.claim_job_of(&kinds, SHORT).await.unwrap() {
            assert!(kinds.contains(&claim.job.kind), "{:?}", claim.job.kind);
            claimed.push(claim.job.kind);
            w.store.finish_job(&claim).await.unwrap();
        }
    }
    claimed.sort_by_key(|kind| kind.as_str());
    let mut all = JobKind::ALL.to_vec();
    all.sort_by_key(|kind| kind.as_str());
    assert_eq!(claimed, all);

    w.enqueued(w.session().await, JobKind::Index).await;
    let lapsed = w.claim_for(SHORT).await.unwrap();
    lapse().await;
    let found = w.store.claim_job_of(&Lane::Model.kinds(), LONG).await;
    assert_eq!(found.unwrap(), None);
    let found = w.store.claim_job_of(&Lane::Quick.kinds(), LONG).await;
    assert_eq!(found.unwrap().unwrap().job.id, lapsed.job.id);
}

pub async fn a_session_is_consolidated_and_extracted_by_one_worker_at_a_time(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let session = w.session().await;
    let first = w.claimed(session, JobKind::Consolidate).await;
    for kind in [
        JobKind::Consolidate,
        JobKind::ReviewMemory,
        JobKind::Extract,
    ] {
        w.enqueued(session, kind).await;
    }
    let extraction = w.claim().await.unwrap();
    assert_eq!(extraction.job.kind, JobKind::Extract);
    w.enqueued(session, JobKind::Extract).await;
    assert_eq!(w.claim().await, None);
    w.enqueued(w.session().await, JobKind::Consolidate).await;
    assert_ne!(w.claim().await.unwrap().job.session_id, Some(session));

    w.store.finish_job(&extraction).await.unwrap();
    assert_eq!(w.claim().await.unwrap().job.kind, JobKind::Extract);
    w.store.finish_job(&first).await.unwrap();
    let second = w.claim_for(SHORT).await.unwrap();
    lapse().await;
    let third = w.claim().await.unwrap();
    assert_eq!(third.job.id, second.job.id, "who is gone holds nobody up");
    assert_eq!(w.claim().await, None);
    w.store.finish_job(&third).await.unwrap();
    assert!(w.claim().await.is_some());
}

pub async fn a_renewed_claim_does_not_lapse(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    w.enqueued(w.session().await, JobKind::Index).await;
    let claim = w.claim_for(SHORT).await.unwrap();
    let long = Duration::from_mins(1);
    w.store.renew_job(&claim, long).await.unwrap();
    lapse().await;
    assert_eq!(w.claim().await, None);
    w.store.finish_job(&claim).await.unwrap();
    assert_lost(&w.store.renew_job(&claim, long).await);
}

pub async fn a_claim_that_was_taken_over_cannot_be_renewed(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (slow, second) = claimed_twice(&w, JobKind::Consolidate).await;
    assert_lost(&w.store.renew_job(&slow, SHORT).await);
    lapse().await;
    assert_eq!(
        w.claim().await,
        None,
        "the lease of the second was shortened"
    );
    w.store.finish_job(&second).await.unwrap();
}

pub async fn a_finished_job_is_gone_and_cannot_be_finished_again(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let claim = w.claimed(w.session().await, JobKind::Index).await;
    w.store.finish_job(&claim).await.unwrap();
    assert!(w.jobs().await.is_empty());
    assert_lost(&w.store.finish_job(&claim).await);
    assert_lost(&w.store.fail_job(&claim, "late", Some(SHORT)).await);
    assert!(w.jobs().await.is_empty());
}

pub async fn a_failure_that_is_retried_waits_its_time(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let claim = w.claimed(w.session().await, JobKind::Index).await;
    let hour = Duration::from_hours(1);
    w.store.fail_job(&claim, "busy", Some(hour)).await.unwrap();
    let jobs = w.jobs().await;
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].state, JobState::Pending);
    assert_eq!(jobs[0].last_error.as_deref(), Some("busy"));
    assert_eq!(jobs[0].attempts, 1);
    let moved = jobs[0].run_at - claim.job.run_at;
    assert!(moved >= chrono::TimeDelta::minutes(59), "{moved}");
    assert_eq!(w.claim().await, None);
    assert_lost(&w.store.finish_job(&claim).await);
}

pub async fn a_failure_that_is_retried_at_once_is_claimed_again(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let first = w.claimed(w.session().await, JobKind::Index).await;
    w.store
        .fail_job(&first, "busy", Some(Duration::ZERO))
        .await
        .unwrap();
    tick().await;
    let second = w.claim().await.unwrap();
    assert_eq!(second.job.id, first.job.id);
    assert_eq!(second.job.attempts, 2);
    assert_eq!(second.job.last_error.as_deref(), Some("busy"));
    assert_ne!(second.token, first.token);
    assert_lost(&w.store.finish_job(&first).await);
}

pub async fn a_failure_that_is_retried_merges_into_the_job_that_waits(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let claim = w.claimed(session, JobKind::Index).await;
    w.enqueued(session, JobKind::Index).await;
    let pending = w.jobs().await;
    let pending = pending.iter().find(|j| j.state == JobState::Pending);
    let pending = pending.unwrap().clone();
    w.store.fail_job(&claim, "busy", Some(SHORT)).await.unwrap();
    let jobs = w.jobs().await;
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].id, pending.id);
    assert_eq!(jobs[0].state, JobState::Pending);
    assert_lost(&w.store.finish_job(&claim).await);
}

pub async fn a_job_that_is_given_up_waits_for_a_person(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    for text in HARD_TEXTS {
        let claim = w.claimed(w.session().await, JobKind::Index).await;
        w.store.fail_job(&claim, text, None).await.unwrap();
        assert_eq!(w.claim().await, None);
        assert_lost(&w.store.finish_job(&claim).await);
        let jobs = w.jobs().await;
        let job = jobs.iter().find(|j| j.id == claim.job.id).unwrap();
        assert_eq!(job.state, JobState::Failed);
        assert_eq!(job.last_error.as_deref(), Some(text));
        assert_eq!(job.attempts, 1);
    }
}

pub async fn a_failed_job_does_not_keep_a_new_one_from_waiting(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let job = failed(&w, JobKind::Index).await;
    w.enqueued(job.session_id.unwrap(), JobKind::Index).await;
    let claim = w.claim().await.unwrap();
    assert_ne!(claim.job.id, job.id);
    assert_eq!(claim.job.session_id, job.session_id);
}

pub async fn a_retried_job_is_pending_with_fresh_attempts(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let job = failed(&w, JobKind::Index).await;
    let tenant = w.owner.tenant;
    let retried = w.store.retry_job(tenant, job.id).await.unwrap().unwrap();
    assert_eq!(retried.id, job.id);
    assert_eq!(retried.state, JobState::Pending);
    assert_eq!(retried.attempts, 0);
    assert_eq!(w.jobs().await, [retried]);
    tick().await;
    let claim = w.claim().await.unwrap();
    assert_eq!((claim.job.id, claim.job.attempts), (job.id, 1));
}

pub async fn a_retried_job_gives_way_to_one_that_waits_already(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let job = failed(&w, JobKind::Index).await;
    w.enqueued(job.session_id.unwrap(), JobKind::Index).await;
    let pending = w.jobs().await.into_iter().find(|j| j.id != job.id);
    let retried = w.store.retry_job(w.owner.tenant, job.id).await.unwrap();
    assert_eq!(retried, pending);
    assert_eq!(w.jobs().await.len(), 1);
}

pub async fn only_failed_jobs_are_retried(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let running = w.claimed(w.session().await, JobKind::Index).await;
    let pending = w.enqueued(w.session().await, JobKind::Index).await;
    for id in [running.job.id, pending.id, JobId(unknown())] {
        let retried = w.store.retry_job(w.owner.tenant, id).await.unwrap();
        assert_eq!(retried, None);
    }
    assert_eq!(w.jobs().await, [pending, running.job]);
}

pub async fn failed_and_pending_jobs_can_be_dropped_but_not_running_ones(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let failed = failed(&w, JobKind::Index).await;
    let running = w.claimed(w.session().await, JobKind::Index).await;
    let pending = w.enqueued(w.session().await, JobKind::Index).await;
    let tenant = w.owner.tenant;
    for (id, dropped) in [
        (failed.id, true),
        (failed.id, false),
        (pending.id, true),
        (running.job.id, false),
        (JobId(unknown()), false),
    ] {
        assert_eq!(w.store.drop_job(tenant, id).await.unwrap(), dropped);
    }
    assert_eq!(w.jobs().await, [running.job]);
}

pub async fn jobs_are_listed_newest_first_by_state_and_page(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let given_up = failed(&w, JobKind::Index).await;
    let running = w.claimed(w.session().await, JobKind::Index).await;
    let mut pending = Vec::new();
    for _ in 0..5 {
        pending.push(w.enqueued(w.session().await, JobKind::Index).await);
    }
    pending.reverse();
    let tenant = w.owner.tenant;
    for (state, expected) in [
        (JobState::Failed, vec![given_up]),
        (JobState::Running, vec![running.job]),
        (JobState::Pending, pending.clone()),
    ] {
        let page = w.store.list_jobs(tenant, Some(state), None, ALL).await;
        assert_eq!(page.unwrap().items, expected);
    }
    let mut walked = Vec::new();
    let mut after = None;
    loop {
        let state = Some(JobState::Pending);
        let page = w.store.list_jobs(tenant, state, after, 2).await.unwrap();
        walked.extend(page.items);
        if !page.more {
            break;
        }
        after = walked.last().map(|job: &Job| Cursor {
            at: job.created_at,
            id: job.id.0,
        });
        w.enqueued(w.session().await, JobKind::Index).await;
    }
    assert_eq!(walked, pending);
}

pub async fn another_tenant_neither_sees_nor_touches_jobs(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let job = failed(&w, JobKind::Index).await;
    let elsewhere = w.owner_named(TenantId(w.ids.uuid()), "default").await;
    for tenant in [elsewhere.tenant, TenantId(unknown())] {
        let listed = w.store.list_jobs(tenant, None, None, ALL).await.unwrap();
        assert!(listed.items.is_empty() && !listed.more);
        assert_eq!(w.store.retry_job(tenant, job.id).await.unwrap(), None);
        assert!(!w.store.drop_job(tenant, job.id).await.unwrap());
    }
    assert_eq!(w.jobs().await, [job]);
}

pub async fn a_tenant_sees_the_jobs_of_all_its_users(store: Arc<dyn Store>) {
    let w = World::new(store.clone()).await;
    let mut other = World::new(store).await;
    other.owner = w.owner_named(w.owner.tenant, "colleague").await;
    let mine = w.enqueued(w.session().await, JobKind::Index).await;
    let theirs = other.enqueued(other.session().await, JobKind::Index).await;
    let listed = w.jobs().await;
    assert_eq!(
        sorted(listed.iter().map(|j| j.id)),
        sorted([mine.id, theirs.id])
    );
}

pub async fn jobs_are_counted_over_all_tenants_by_kind_and_state(store: Arc<dyn Store>) {
    let w = World::new(store.clone()).await;
    let mut other = World::new(store).await;
    other.owner = w.owner_named(TenantId(w.ids.uuid()), "default").await;
    assert_eq!(w.store.count_jobs().await.unwrap(), []);
    failed(&w, JobKind::Index).await;
    w.claimed(w.session().await, JobKind::Consolidate).await;
    w.enqueued(w.session().await, JobKind::Index).await;
    other.enqueued(other.session().await, JobKind::Index).await;
    let counts: HashSet<_> = w.store.count_jobs().await.unwrap().into_iter().collect();
    let expected = HashSet::from([
        (JobKind::Index, JobState::Failed, 1),
        (JobKind::Consolidate, JobState::Running, 1),
        (JobKind::Index, JobState::Pending, 2),
    ]);
    assert_eq!(counts, expected);
}
