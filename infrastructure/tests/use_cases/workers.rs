//! Derived work that fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidemark_application::ports::clock::Clock as _;
use tidemark_application::ports::ids::Ids;
use tidemark_application::ports::jobs::{Job, JobKind, JobState};
use tidemark_application::ports::learning::{ConsolidationCommit, Unanswered};
use tidemark_domain::ids::{ChangeId, JobId, TenantId};
use tidemark_domain::turn::TurnStatus;
use tidemark_infrastructure::model::offline::OfflineModel;
use tidemark_infrastructure::system::{SystemClock, UuidV7};
use uuid::Uuid;

use super::world::World;

/// A defect in whatever needs many new ids: a consolidation that makes a memory. Indexing and the count of uses, which are due before it, need one
/// each.
#[derive(Default)]
struct FewIds(AtomicUsize);

impl Ids for FewIds {
    fn uuid(&self) -> Uuid {
        assert!(self.0.fetch_add(1, Ordering::Relaxed) < 2, "a defect");
        UuidV7::default().uuid()
    }
}

/// A session that is due for consolidation and has something to consolidate.
async fn due() -> World {
    let world = World::with(Arc::new(OfflineModel::default())).await;
    let first = world.say(None, "I prefer answers as tables.").await;
    let second = world
        .say(Some(first.session_id), "My budget is 300k.")
        .await;
    assert_eq!(second.status, TurnStatus::Completed);
    world
}

async fn jobs(world: &World, state: JobState) -> Vec<Job> {
    world
        .store
        .list_jobs(TenantId::DEFAULT, Some(state), None, 100)
        .await
        .unwrap()
        .items
}

async fn drain(world: &World, ids: Arc<dyn Ids>, max_attempts: i32) {
    let workers = world.workers(ids, max_attempts);
    while workers.step().await.unwrap() {}
}

/// Does all that is due but the consolidation.
async fn drain_index(world: &World) {
    while let Some(claim) = world.store.claim_job(Duration::ZERO).await.unwrap() {
        if claim.job.kind == JobKind::Consolidate {
            world
                .store
                .fail_job(&claim, "later", Some(Duration::ZERO))
                .await
                .unwrap();
            break;
        }
        world.store.finish_job(&claim).await.unwrap();
    }
    for job in jobs(world, JobState::Pending).await {
        if job.kind != JobKind::Consolidate {
            world
                .store
                .drop_job(TenantId::DEFAULT, job.id)
                .await
                .unwrap();
        }
    }
}

async fn consolidated(world: &World) -> bool {
    let page = world
        .store
        .list_sessions(world.owner, None, None, 1)
        .await
        .unwrap();
    page.items[0].last_consolidated > 0
}

#[tokio::test]
async fn derived_work_that_dies_is_given_up_and_kept_for_a_person_and_the_answer_stands() {
    let world = due().await;
    drain(&world, Arc::new(FewIds::default()), 1).await;
    let failed = jobs(&world, JobState::Failed).await;
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0].kind, JobKind::Consolidate);
    assert!(failed[0].last_error.is_some());
    assert!(jobs(&world, JobState::Pending).await.is_empty());
    assert!(!consolidated(&world).await);

    let session = failed[0].session_id.expect("a session's job");
    let history = world
        .store
        .history(world.owner, session, None, 10)
        .await
        .unwrap();
    assert_eq!(history.len(), 4, "both answers are there");

    world
        .store
        .retry_job(TenantId::DEFAULT, failed[0].id)
        .await
        .unwrap()
        .unwrap();
    drain(&world, Arc::new(UuidV7::default()), 1).await;
    assert!(
        consolidated(&world).await,
        "a retry does what was left undone"
    );
    assert!(jobs(&world, JobState::Failed).await.is_empty());
}

#[tokio::test]
async fn work_that_failed_once_waits_before_it_is_tried_again() {
    let world = due().await;
    drain(&world, Arc::new(FewIds::default()), 3).await;
    let pending = jobs(&world, JobState::Pending).await;
    assert_eq!(pending.len(), 1, "{pending:?}");
    assert_eq!(pending[0].attempts, 1);
    let wait = pending[0].run_at - pending[0].created_at;
    assert!(wait >= chrono::Duration::seconds(1), "{wait}");
}

/// A defect in one of several jobs that are done together, each of which needs one id: the second of the first three, and again when it is the
/// second that is decided alone.
#[derive(Default)]
struct OneIsBroken(AtomicUsize);

impl Ids for OneIsBroken {
    fn uuid(&self) -> Uuid {
        // Together: the first, the second. Alone: the first, the second, the third.
        let asked = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(![1, 3].contains(&asked), "a defect");
        UuidV7::default().uuid()
    }
}

/// Three sessions of one owner, each with an answer to be indexed.
async fn three_sessions() -> World {
    let world = World::with(Arc::new(OfflineModel::default())).await;
    for fact in [
        "The tower is blue.",
        "The vault is green.",
        "The gate is red.",
    ] {
        world.say(None, fact).await;
    }
    for job in jobs(&world, JobState::Pending).await {
        if job.kind != JobKind::Index {
            let dropped = world.store.drop_job(TenantId::DEFAULT, job.id).await;
            dropped.unwrap();
        }
    }
    assert_eq!(jobs(&world, JobState::Pending).await.len(), 3);
    world
}

async fn indexed(world: &World) -> usize {
    let sessions = world.store.list_sessions(world.owner, None, None, 10).await;
    let sessions = sessions.unwrap().items;
    sessions.iter().filter(|s| s.indexed_seq == 2).count()
}

#[tokio::test]
async fn jobs_that_are_alike_are_done_in_one_step() {
    let world = three_sessions().await;
    let workers = world.workers(Arc::new(UuidV7::default()), 3);
    assert!(workers.step().await.unwrap());
    assert_eq!(indexed(&world).await, 3);
    assert_eq!(jobs(&world, JobState::Pending).await, []);
    assert_eq!(jobs(&world, JobState::Running).await, []);
}

#[tokio::test]
async fn of_several_jobs_done_together_the_one_that_breaks_takes_none_with_it() {
    let world = three_sessions().await;
    let workers = world.workers(Arc::new(OneIsBroken::default()), 1);
    assert!(workers.step().await.unwrap());
    assert_eq!(indexed(&world).await, 2);
    assert_eq!(jobs(&world, JobState::Running).await, []);
    let failed = jobs(&world, JobState::Failed).await;
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0].attempts, 1);
    let error = failed[0].last_error.as_deref();
    assert_eq!(error, Some("the job's task died"));

    let again = world.store.retry_job(TenantId::DEFAULT, failed[0].id);
    again.await.unwrap().unwrap();
    drain(&world, Arc::new(UuidV7::default()), 1).await;
    assert_eq!(indexed(&world).await, 3);
    assert_eq!(jobs(&world, JobState::Failed).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_together_outlast_their_leases_all_keep_them() {
    let world = three_sessions().await;
    let mut workers = world.workers(Arc::new(SlowIds::default()), 3);
    workers.settings.lease = Duration::from_millis(900);
    let working = tokio::spawn(async move { workers.step().await.unwrap() });
    while jobs(&world, JobState::Running).await.len() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    while !working.is_finished() {
        let taken = world.store.claim_job(Duration::ZERO).await.unwrap();
        assert_eq!(taken, None, "a job was taken from its worker");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(working.await.unwrap());
    assert_eq!(indexed(&world).await, 3);
}

/// Work that takes its time.
#[derive(Default)]
struct SlowIds(UuidV7);

impl Ids for SlowIds {
    fn uuid(&self) -> Uuid {
        std::thread::sleep(Duration::from_secs(1));
        self.0.uuid()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_outlasts_its_lease_keeps_its_job() {
    let world = due().await;
    drain_index(&world).await;
    let mut workers = world.workers(Arc::new(SlowIds::default()), 3);
    workers.settings.lease = Duration::from_millis(300);
    let working = tokio::spawn(async move { workers.step().await.unwrap() });
    while jobs(&world, JobState::Running).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    while !working.is_finished() {
        let taken = world.store.claim_job(Duration::ZERO).await.unwrap();
        assert_eq!(taken, None, "the job was taken from its worker");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(working.await.unwrap());
    assert!(consolidated(&world).await);
}

#[tokio::test]
async fn work_that_ends_its_process_again_and_again_is_given_up() {
    let world = due().await;
    for _ in 0..2 {
        // A worker that claims and is never heard of again.
        while world
            .store
            .claim_job(Duration::ZERO)
            .await
            .unwrap()
            .is_some_and(|c| c.job.attempts < 2)
        {}
    }
    drain(&world, Arc::new(UuidV7::default()), 1).await;
    assert!(!jobs(&world, JobState::Failed).await.is_empty());
    assert!(jobs(&world, JobState::Running).await.is_empty());
}

#[tokio::test]
async fn what_is_derived_is_derived_in_the_end() {
    let world = due().await;
    drain(&world, Arc::new(UuidV7::default()), 1).await;
    for state in [JobState::Pending, JobState::Running, JobState::Failed] {
        assert!(jobs(&world, state).await.is_empty());
    }
    assert!(consolidated(&world).await);
}

#[tokio::test]
async fn what_a_model_has_yet_to_read_waits_where_no_model_extracts() {
    let world = due().await;
    drain_index(&world).await;
    let claimed = world
        .store
        .claim_job_of(&[JobKind::Consolidate], Duration::from_mins(1));
    let claim = claimed.await.unwrap().unwrap();
    let session = claim.session().unwrap();
    let snapshot = world.store.learning_snapshot(world.owner, session).await;
    let commit = ConsolidationCommit {
        erase_epoch: snapshot.unwrap().unwrap().erase_epoch,
        from_seq: 0,
        to_seq: 2,
        new: Vec::new(),
        worded: Vec::new(),
        strengthened: Vec::new(),
        pending: Some(Unanswered {
            job: JobId(UuidV7::default().uuid()),
            error: "silent".to_owned(),
            retry_in: Duration::ZERO,
        }),
        change: ChangeId(UuidV7::default().uuid()),
        jobs: Vec::new(),
        now: SystemClock.now(),
    };
    world
        .store
        .commit_consolidation(&claim, commit)
        .await
        .unwrap();

    drain(&world, Arc::new(UuidV7::default()), 1).await;
    let waiting = jobs(&world, JobState::Pending).await;
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert_eq!(
        (waiting[0].kind, waiting[0].attempts),
        (JobKind::Extract, 0)
    );
    assert!(waiting[0].run_at > SystemClock.now());
    assert_eq!(jobs(&world, JobState::Failed).await, []);
    let unread = world.store.pending_extractions(world.owner, session).await;
    let unread = unread.unwrap();
    assert_eq!((unread[0].from_seq, unread[0].to_seq), (0, 2));
}
