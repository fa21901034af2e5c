//! What a model has yet to read, what it has read, and which sessions have waited long enough (B4, B6, A13).

use std::sync::Arc;
use std::time::Duration;

use tidemark_application::ports::jobs::{ClaimedJob, Job, JobKind, JobState, JobWriteError};
use tidemark_application::ports::learning::{
    ConsolidationCommit, ExtractionCommit, ExtractionOutcome, PendingExtraction, Strengthened,
    Unanswered,
};
use tidemark_application::ports::store::Store;
use tidemark_domain::ids::SessionId;
use tidemark_domain::memory::Memory;
use tidemark_domain::session::Message;
use tidemark_domain::turn::TurnStatus;

use super::world::{ALL, LONG, World, indexed, lapse, later, sorted, source, unknown};

impl World {
    fn unanswered(&self, retry_in: Duration) -> Unanswered {
        Unanswered {
            job: self.ids.job(),
            error: "the model was silent".to_owned(),
            retry_in,
        }
    }

    async fn pending(&self, session: SessionId) -> Vec<(i64, i64, i32)> {
        let found = self.store.pending_extractions(self.owner, session).await;
        let all = found.unwrap().into_iter();
        all.map(|p: PendingExtraction| (p.from_seq, p.to_seq, p.attempts))
            .collect()
    }

    /// A session whose messages are consolidated and yet to be read by a model, and the claim of the job that asks again.
    async fn unread(&self, content: &str) -> (Message, ClaimedJob) {
        let session = self.session().await;
        let said = self.said(session, content).await;
        let claim = self.claimed(session, JobKind::Consolidate).await;
        let commit = ConsolidationCommit {
            pending: Some(self.unanswered(Duration::ZERO)),
            ..self.consolidation(session, Vec::new()).await
        };
        self.store
            .commit_consolidation(&claim, commit)
            .await
            .unwrap();
        let claim = self.claim().await.unwrap();
        assert_eq!(claim.job.kind, JobKind::Extract);
        (said, claim)
    }

    async fn extraction(&self, session: SessionId, worded: Vec<Memory>) -> ExtractionCommit {
        ExtractionCommit {
            erase_epoch: self.snapshot(session).await.erase_epoch,
            from_seq: 0,
            to_seq: 2,
            worded: worded.into_iter().map(indexed).collect(),
            strengthened: Vec::new(),
            outcome: ExtractionOutcome::Settled,
            change: self.ids.change(),
            jobs: Vec::new(),
            now: self.now(),
        }
    }

    async fn due(&self) -> Vec<SessionId> {
        let before = later(self.now(), 1);
        let found = self.store.sessions_to_consolidate(before, ALL).await;
        let mine = found.unwrap().into_iter().filter(|(o, _)| *o == self.owner);
        sorted(mine.map(|(_, session)| session))
    }

    async fn only_job(&self) -> Job {
        let mut jobs = self.jobs().await;
        assert_eq!(jobs.len(), 1, "{jobs:?}");
        jobs.remove(0)
    }
}

fn assert_conflict(outcome: &Result<(), JobWriteError>) {
    assert!(
        matches!(outcome, Err(JobWriteError::Conflict)),
        "{outcome:?}"
    );
}

pub async fn a_consolidation_notes_what_a_model_has_yet_to_read(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    w.said(session, "I like tea.").await;
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let unanswered = w.unanswered(LONG);
    let commit = ConsolidationCommit {
        pending: Some(unanswered.clone()),
        ..w.consolidation(session, Vec::new()).await
    };
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    assert_eq!(w.pending(session).await, [(0, 2, 0)]);
    assert_eq!(w.session_row(session).await.last_consolidated, 2);
    let job = w.only_job().await;
    assert_eq!(
        (job.id, job.kind, job.state),
        (unanswered.job, JobKind::Extract, JobState::Pending)
    );
    assert_eq!(job.last_error, Some(unanswered.error));
    assert_eq!(w.claim().await, None, "its time has not come");
}

pub async fn of_many_unread_ranges_that_with_the_fewest_attempts_comes_first(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let (said, claim) = w.unread("I like tea.").await;
    let session = said.session_id;
    let commit = ExtractionCommit {
        outcome: ExtractionOutcome::Unsettled {
            error: "silent".to_owned(),
            retry_in: None,
        },
        ..w.extraction(session, Vec::new()).await
    };
    w.store.commit_extraction(&claim, commit).await.unwrap();
    for _ in 0..2 {
        let claim = w.claimed(session, JobKind::Consolidate).await;
        let commit = ConsolidationCommit {
            pending: Some(w.unanswered(LONG)),
            ..w.consolidation(session, Vec::new()).await
        };
        w.store.commit_consolidation(&claim, commit).await.unwrap();
    }
    assert_eq!(w.pending(session).await, [(2, 3, 0), (3, 4, 0), (0, 2, 1)]);
    let kinds: Vec<_> = w.jobs().await.iter().map(|j| (j.kind, j.state)).collect();
    assert_eq!(
        kinds,
        [
            (JobKind::Extract, JobState::Pending),
            (JobKind::Extract, JobState::Failed)
        ],
        "one job waits for both"
    );
}

pub async fn what_a_model_has_read_is_stored_and_no_longer_pending(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (said, claim) = w.unread("I like tea.").await;
    let known = w.remembered(w.learned("Tea is liked", &[&said])).await;
    let fact = w.learned("User likes tea", &[&said]);
    let next = w.new_job(JobKind::Extract);
    let commit = ExtractionCommit {
        strengthened: vec![Strengthened {
            id: known.id,
            version: known.version,
            confidence: 0.925,
            sources: vec![source(&said)],
        }],
        jobs: vec![next],
        ..w.extraction(said.session_id, vec![fact.clone()]).await
    };
    w.store.commit_extraction(&claim, commit).await.unwrap();
    assert_eq!(w.memory_row(fact.id).await, Some(fact));
    assert!((w.memory_row(known.id).await.unwrap().confidence - 0.925).abs() < f64::EPSILON);
    assert_eq!(w.pending(said.session_id).await, []);
    assert_eq!(w.only_job().await.id, next.id);
}

pub async fn an_answer_that_is_still_bad_is_counted_and_its_job_waits_or_fails(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let (said, claim) = w.unread("I like tea.").await;
    let fact = w.learned("User likes tea", &[&said]);
    let bad = |retry_in| ExtractionOutcome::Unsettled {
        error: "no JSON".to_owned(),
        retry_in,
    };
    let commit = ExtractionCommit {
        outcome: bad(Some(Duration::from_millis(1))),
        ..w.extraction(said.session_id, vec![fact.clone()]).await
    };
    w.store.commit_extraction(&claim, commit).await.unwrap();
    assert_eq!(w.memory_row(fact.id).await, Some(fact), "what held is kept");
    assert_eq!(w.pending(said.session_id).await, [(0, 2, 1)]);
    let job = w.only_job().await;
    assert_eq!((job.id, job.state), (claim.job.id, JobState::Pending));
    assert_eq!(job.last_error.as_deref(), Some("no JSON"));

    lapse().await;
    let claim = w.claim().await.unwrap();
    let commit = ExtractionCommit {
        outcome: bad(None),
        ..w.extraction(said.session_id, Vec::new()).await
    };
    w.store.commit_extraction(&claim, commit).await.unwrap();
    assert_eq!(w.pending(said.session_id).await, [(0, 2, 2)]);
    assert_eq!(w.only_job().await.state, JobState::Failed);
}

pub async fn an_extraction_decided_on_what_has_moved_is_a_conflict(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (said, claim) = w.unread("I like tea.").await;
    let session = said.session_id;
    let known = w.remembered(w.learned("Tea is liked", &[&said])).await;
    let valid = ExtractionCommit {
        strengthened: vec![Strengthened {
            id: known.id,
            version: known.version,
            confidence: 0.9,
            sources: Vec::new(),
        }],
        ..w.extraction(session, vec![w.learned("User likes tea", &[&said])])
            .await
    };
    let unsettled = ExtractionOutcome::Unsettled {
        error: "no JSON".to_owned(),
        retry_in: Some(Duration::ZERO),
    };
    for outcome in [valid.outcome.clone(), unsettled] {
        for (epoch, from, version) in [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, 0, 1)] {
            let mut moved = ExtractionCommit {
                outcome: outcome.clone(),
                ..valid.clone()
            };
            moved.erase_epoch += epoch;
            moved.from_seq += from;
            moved.strengthened[0].version += version;
            assert_conflict(&w.store.commit_extraction(&claim, moved).await);
        }
        let mut taken = valid.clone();
        taken.outcome = outcome;
        taken.worded.push(indexed(w.memory("Tea is liked!")));
        assert_conflict(&w.store.commit_extraction(&claim, taken).await);
        assert_eq!(w.memories().await, std::slice::from_ref(&known));
        assert_eq!(w.pending(session).await, [(0, 2, 0)]);
        assert_eq!(w.only_job().await.state, JobState::Running);
    }
    let stale = ClaimedJob {
        token: claim.token + 1,
        ..claim.clone()
    };
    let lost = w.store.commit_extraction(&stale, valid.clone()).await;
    assert!(matches!(lost, Err(JobWriteError::Lost)), "{lost:?}");
    w.store.commit_extraction(&claim, valid).await.unwrap();
    assert_eq!(w.memories().await.len(), 2);
}

pub async fn a_message_of_which_something_was_forgotten_teaches_a_model_nothing(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let (said, claim) = w.unread("I like tea and coffee.").await;
    let session = said.session_id;
    let other = w.history(session).await.pop().unwrap();
    let forgotten = w.remembered(w.learned("I like tea", &[&said])).await;
    assert_eq!(w.forget(w.forgetting(forgotten.id)).await, 1);
    let untouched = w.learned("Something was said", &[&other]);
    let commit = w
        .extraction(
            session,
            vec![
                w.learned("User is fond of tea", &[&said]),
                w.learned("User drinks tea when something is said", &[&other, &said]),
                untouched.clone(),
            ],
        )
        .await;
    w.store.commit_extraction(&claim, commit).await.unwrap();
    assert_eq!(w.memories().await, [untouched]);

    let claim = w.claimed(session, JobKind::Consolidate).await;
    let by_rule = w.learned("I like coffee", &[&said]);
    let commit = ConsolidationCommit {
        worded: vec![indexed(w.learned("User likes coffee", &[&said]))],
        ..w.consolidation(session, vec![by_rule.clone()]).await
    };
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    let learned = w.memories().await;
    assert!(
        learned.contains(&by_rule) && learned.len() == 2,
        "{learned:?}"
    );
}

pub async fn what_a_model_worded_is_stored_once_beside_what_rules_found(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea.").await;
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let (by_rule, by_model) = (
        w.learned("I like tea", &[&said]),
        w.learned("User drinks tea", &[&said]),
    );
    let commit = ConsolidationCommit {
        worded: vec![
            indexed(w.learned("I like tea!", &[&said])),
            indexed(by_model.clone()),
        ],
        ..w.consolidation(session, vec![by_rule.clone()]).await
    };
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    let learned = w.memories().await;
    assert_eq!(
        sorted(learned.iter().map(|m| m.id)),
        sorted([by_rule.id, by_model.id])
    );
    assert!(w.jobs().await.is_empty());
    assert_eq!(w.pending(session).await, []);
}

pub async fn unread_messages_that_go_are_no_longer_to_be_read(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    w.completed(session).await;
    let second = w.completed(session).await;
    let third = w.completed(session).await;
    for to_seq in [4, 6] {
        let claim = w
            .store
            .enqueue_job(w.owner, session, w.new_job(JobKind::Consolidate), w.now());
        claim.await.unwrap();
        let claim = w.claim().await.unwrap();
        let commit = ConsolidationCommit {
            to_seq,
            pending: Some(w.unanswered(LONG)),
            ..w.consolidation(session, Vec::new()).await
        };
        w.store.commit_consolidation(&claim, commit).await.unwrap();
    }
    assert_eq!(w.pending(session).await, [(0, 4, 0), (4, 6, 0)]);
    for (replaced, left) in [(&third, vec![(0, 4, 0)]), (&second, vec![(0, 2, 0)])] {
        let mut again = w.turn(session);
        again.replaces = Some(replaced.id);
        let accepted = w.store.accept_turn(again).await.unwrap().turn;
        assert_eq!(w.pending(session).await, left);
        let started = w.start(session).await.unwrap();
        assert_eq!(started.turn.id, accepted.id);
        w.store.commit_turn(started.key, w.commit()).await.unwrap();
    }
    w.store
        .delete_session(w.owner, session, true)
        .await
        .unwrap();
    assert_eq!(w.pending(session).await, []);
}

pub async fn strangers_see_nothing_unread(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (said, _claim) = w.unread("I like tea.").await;
    for stranger in w.strangers().await {
        let found = w.store.pending_extractions(stranger, said.session_id).await;
        assert_eq!(found.unwrap(), []);
        let job = w.new_job(JobKind::Consolidate);
        w.store
            .enqueue_job(stranger, said.session_id, job, w.now())
            .await
            .unwrap();
    }
    assert_eq!(w.only_job().await.kind, JobKind::Extract);
}

pub async fn sessions_with_old_messages_are_to_be_consolidated(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let [quiet, running, waiting, stuck, done, empty] = [
        w.session().await,
        w.session().await,
        w.session().await,
        w.session().await,
        w.session().await,
        w.session().await,
    ];
    let before = w.now();
    for session in [quiet, waiting] {
        w.said(session, "I like tea.").await;
    }
    w.completed(running).await;
    w.started(running).await;
    // No boundary can stand behind a call without an answer.
    let started = w.started(stuck).await;
    w.store
        .append_step(started.key, vec![w.calling(&["a"])], w.now())
        .await
        .unwrap();
    let result = vec![w.result("a")];
    let close = w.close_with(TurnStatus::Interrupted, result);
    w.store.close_turn(started.key, close).await.unwrap();
    for (session, to_seq) in [(stuck, 1), (done, 1)] {
        if session == done {
            w.said(done, "I like tea.").await;
        }
        let job = w.new_job(JobKind::Consolidate);
        w.store
            .enqueue_job(w.owner, session, job, w.now())
            .await
            .unwrap();
        let claim = w.claim().await.unwrap();
        let commit = ConsolidationCommit {
            to_seq,
            ..w.consolidation(session, Vec::new()).await
        };
        w.store.commit_consolidation(&claim, commit).await.unwrap();
    }
    let job = w.new_job(JobKind::Consolidate);
    w.store
        .enqueue_job(w.owner, waiting, job, w.now())
        .await
        .unwrap();
    assert_eq!(w.due().await, [quiet]);
    assert!(w.session_row(empty).await.message_count == 0);

    let too_new = w.store.sessions_to_consolidate(before, ALL).await.unwrap();
    assert_eq!(too_new, []);
    let none = w
        .store
        .sessions_to_consolidate(later(w.now(), 1), 0)
        .await
        .unwrap();
    assert_eq!(none, []);
}

pub async fn a_consolidation_that_waits_runs_or_has_failed_is_not_looked_for_again(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let session = w.session().await;
    w.said(session, "I like tea.").await;
    assert_eq!(w.due().await, [session]);
    for _ in 0..2 {
        let job = w.new_job(JobKind::Consolidate);
        w.store
            .enqueue_job(w.owner, session, job, w.now())
            .await
            .unwrap();
        w.only_job().await;
        assert_eq!(w.due().await, []);
    }
    let claim = w.claim().await.unwrap();
    assert_eq!(w.due().await, []);
    w.store.fail_job(&claim, "broken", None).await.unwrap();
    assert_eq!(w.due().await, []);
    assert!(
        w.store
            .drop_job(w.owner.tenant, claim.job.id)
            .await
            .unwrap()
    );
    assert_eq!(w.due().await, [session]);
    let missing = SessionId(unknown());
    let job = w.new_job(JobKind::Consolidate);
    w.store
        .enqueue_job(w.owner, missing, job, w.now())
        .await
        .unwrap();
    assert!(w.jobs().await.is_empty());
}
