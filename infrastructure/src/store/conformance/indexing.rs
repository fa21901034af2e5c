//! Index jobs of one owner, claimed and applied together: each as if it had been alone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use tidemark_application::ports::jobs::{ClaimedJob, JobKind, JobState, JobWriteError};
use tidemark_application::ports::learning::IndexCommit;
use tidemark_application::ports::store::Store;
use tidemark_application::ports::turns::CommitTurn;
use tidemark_domain::ids::SessionId;
use tidemark_domain::memory::change::ChangeKind;
use tidemark_domain::memory::{Memory, State, chunk_id};
use tidemark_domain::session::Role;
use tidemark_domain::turn::TurnStatus;

use super::world::{ALL, LONG, World, later, shown, sorted, unknown};

/// Sessions in which something was said, each with an index job that is claimed.
async fn claimed(w: &World, number: usize) -> Vec<(SessionId, ClaimedJob)> {
    for _ in 0..number {
        let session = w.session().await;
        w.enqueued(session, JobKind::Index).await;
    }
    let first = w.store.claim_job_of(&[JobKind::Index], LONG).await;
    let first = first.unwrap().unwrap();
    let alike = w.store.claim_alike(&first, ALL, LONG).await.unwrap();
    let mut claims = vec![first];
    claims.extend(alike);
    let of_session = |claim: ClaimedJob| (claim.job.session_id.unwrap(), claim);
    claims.into_iter().map(of_session).collect()
}

/// What a claim would store: this, learned from what was said there.
async fn saying(w: &World, session: SessionId, content: &str) -> (Memory, IndexCommit) {
    let said = w.history(session).await;
    let memory = w.chunk(content, &said[0]);
    let commit = w.index(session, vec![memory.clone()]).await;
    (memory, commit)
}

pub async fn jobs_of_a_kind_and_owner_are_claimed_together(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let mut expected = BTreeSet::new();
    for _ in 0..4 {
        let session = w.session().await;
        expected.insert(w.enqueued(session, JobKind::Index).await.id);
    }
    let session = w.session().await;
    w.enqueued(session, JobKind::CountUse).await;
    let first = w.store.claim_job_of(&[JobKind::Index], LONG).await;
    let first = first.unwrap().unwrap();
    let of_kind = w.jobs().await.into_iter().rev();
    let waiting = of_kind.filter(|job| job.kind == JobKind::Index && job.id != first.job.id);
    let oldest = waiting.min_by_key(|job| (job.run_at, job.id)).unwrap();
    let some = w.store.claim_alike(&first, 1, LONG).await.unwrap();
    let ids: Vec<_> = some.iter().map(|claim| claim.job.id).collect();
    assert_eq!(ids, [oldest.id]);
    let rest = w.store.claim_alike(&first, ALL, LONG).await.unwrap();
    let claims: Vec<ClaimedJob> = [first].into_iter().chain(some).chain(rest).collect();
    assert_eq!(claims.len(), 4);
    let ids: BTreeSet<_> = claims.iter().map(|claim| claim.job.id).collect();
    assert_eq!(ids, expected);
    for claim in &claims {
        assert_eq!(
            (claim.job.state, claim.job.attempts, claim.job.kind),
            (JobState::Running, 1, JobKind::Index)
        );
        w.store.renew_job(claim, LONG).await.unwrap();
    }
    let others = w.store.claim_alike(&claims[0], ALL, LONG).await.unwrap();
    assert_eq!(others, []);
    for claim in claims {
        w.store.finish_job(&claim).await.unwrap();
    }
}

pub async fn what_was_begun_or_waits_or_belongs_to_another_is_not_claimed_with_others(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let sessions = [w.session().await, w.session().await, w.session().await];
    let failed = w.claimed(sessions[0], JobKind::Index).await;
    let resting = w.claimed(sessions[1], JobKind::Index).await;
    let again = Some(Duration::ZERO);
    w.store.fail_job(&failed, "x", again).await.unwrap();
    w.store.postpone_job(&resting, None, LONG).await.unwrap();
    w.enqueued(sessions[2], JobKind::Index).await;
    let held = w.store.claim_job_of(&[JobKind::Index], LONG).await;
    let held = held.unwrap().unwrap();
    assert_eq!(held.job.session_id, Some(sessions[0]));
    for stranger in w.strangers().await {
        let mut claim = held.clone();
        claim.job.owner = stranger;
        let taken = w.store.claim_alike(&claim, ALL, LONG).await.unwrap();
        assert_eq!(taken, []);
    }
    // Whoever has lost a claim claims nothing with it.
    let taken = w.store.claim_alike(&failed, ALL, LONG).await.unwrap();
    assert_eq!(taken, []);
    // A second job of the same session waits for the first.
    w.enqueued(sessions[0], JobKind::Index).await;
    let taken = w.store.claim_alike(&held, ALL, LONG).await.unwrap();
    let taken: Vec<_> = taken.iter().map(|claim| claim.job.session_id).collect();
    assert_eq!(taken, [Some(sessions[2])]);
}

pub async fn the_work_of_many_sessions_is_what_each_of_them_has(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let session = w.session().await;
        w.said(session, "Imported.").await;
        w.completed(session).await;
        w.ended(session, TurnStatus::Cancelled).await;
        sessions.push(session);
    }
    let imported = w.past(Role::User, "Said before.");
    w.import_with(sessions[1], vec![imported], &[]).await;
    w.started(sessions[2]).await;
    let empty = w.session().await;
    let all = [sessions.clone(), vec![empty, SessionId(unknown())]].concat();
    for limit in [1, 3, ALL] {
        let work = w.store.index_work(w.owner, &all, limit).await.unwrap();
        assert_eq!(work.len(), 4);
        for session in sessions.iter().chain([&empty]) {
            let found = |w: &&_| {
                let w: &tidemark_application::ports::learning::IndexWork = w;
                w.snapshot.session.id == *session
            };
            let found = work.iter().find(found).unwrap();
            let alone = w.snapshot(*session).await;
            assert_eq!(
                (&found.snapshot.session, found.snapshot.last_closed),
                (&alone.session, alone.last_closed)
            );
            assert_eq!(found.snapshot.erase_epoch, alone.erase_epoch);
            let (from, to) = (alone.session.indexed_seq, alone.last_closed);
            let taught = w
                .store
                .taught_messages(w.owner, *session, from, to, limit)
                .await;
            let taught = taught.unwrap();
            let taught: Vec<_> = taught.iter().map(|t| (&t.message, t.cancelled)).collect();
            let messages = found.messages.iter();
            let messages: Vec<_> = messages.map(|t| (&t.message, t.cancelled)).collect();
            assert_eq!(messages, taught);
        }
    }
    for stranger in w.strangers().await {
        let work = w.store.index_work(stranger, &all, ALL).await.unwrap();
        assert!(work.is_empty());
    }
    assert!(
        w.store
            .index_work(w.owner, &[], ALL)
            .await
            .unwrap()
            .is_empty()
    );
}

pub async fn indexes_are_applied_together_as_each_alone(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let claims = claimed(&w, 6).await;
    let known = Memory {
        key: Some("budget".to_owned()),
        ..w.memory("The budget is 300k.")
    };
    w.remembered(known.clone()).await;
    let (mut commits, mut others) = (Vec::new(), Vec::new());
    let mut expected = vec!["The budget is 300k.".to_owned()];
    for (place, (session, claim)) in claims.iter().enumerate() {
        let content = format!("What was said as number {place}.");
        let (memory, commit) = saying(&w, *session, &content).await;
        let mut commit = IndexCommit {
            jobs: vec![w.new_job(JobKind::Embed), w.new_job(JobKind::Consolidate)],
            ..commit
        };
        match place {
            // It is somebody else's meanwhile.
            1 => {
                w.store.renew_job(claim, Duration::ZERO).await.unwrap();
                let other = w.store.claim_job_of(&[JobKind::Index], LONG).await;
                let other = other.unwrap().unwrap();
                assert_eq!(other.job.id, claim.job.id);
                others.push(other);
            }
            // It was decided on what has moved.
            2 => commit.from_seq += 1,
            // It ends what was known.
            3 => {
                let fact = Memory {
                    key: Some("budget".to_owned()),
                    valid_from: later(known.valid_from, 60),
                    ..memory
                };
                let from = w.index(*session, vec![fact]).await;
                commit.memories = from.memories;
                expected.push(content);
            }
            _ => expected.push(content),
        }
        commits.push((claim.clone(), commit));
    }
    let change = w.store.memory_change(w.owner).await.unwrap();
    let outcomes = w.store.commit_indexes(w.owner, commits).await;
    assert_eq!(outcomes.len(), 6);
    for (place, outcome) in outcomes.iter().enumerate() {
        let fits = match place {
            1 => matches!(outcome, Err(JobWriteError::Lost)),
            2 => matches!(outcome, Err(JobWriteError::Conflict)),
            _ => outcome.is_ok(),
        };
        assert!(fits, "{place}: {outcome:?}");
    }
    let stored = w.memories().await;
    let contents = sorted(stored.iter().map(|m| m.content.clone()));
    assert_eq!(contents, sorted(expected.into_iter()));
    let before = stored.iter().find(|m| m.id == known.id).unwrap();
    assert_eq!(before.state, State::Superseded);
    assert!(w.store.memory_change(w.owner).await.unwrap() > change);
    for (place, (session, claim)) in claims.iter().enumerate() {
        let row = w.session_row(*session).await;
        let done = !matches!(place, 1 | 2);
        assert_eq!(row.indexed_seq, i64::from(done), "{place}");
        // The job of what has moved is still its claimant's, and that of the other worker the other's.
        let held = w.store.renew_job(claim, LONG).await;
        assert_eq!(held.is_ok(), place == 2, "{place}: {held:?}");
    }
    for other in others {
        w.store.renew_job(&other, LONG).await.unwrap();
    }
    let jobs = w.jobs().await;
    let of = |kind| jobs.iter().filter(|job| job.kind == kind).count();
    assert_eq!((of(JobKind::Embed), of(JobKind::Consolidate)), (1, 4));
}

pub async fn of_what_was_forgotten_nothing_is_indexed_with_others(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let claims = claimed(&w, 2).await;
    let (forgotten, _) = saying(&w, claims[0].0, "The budget is 400k.").await;
    w.remembered(forgotten.clone()).await;
    assert_eq!(w.forget(w.forgetting(forgotten.id)).await, 1);
    let (_, tea) = saying(&w, claims[1].0, "It is for tea.").await;
    let again = w.index(claims[0].0, vec![forgotten]).await;
    let claims = claims.into_iter().map(|(_, claim)| claim);
    let commits = claims.zip([again, tea]).collect();
    for outcome in w.store.commit_indexes(w.owner, commits).await {
        outcome.unwrap();
    }
    let stored = w.memories().await;
    let contents: Vec<&str> = stored.iter().map(|m| m.content.as_str()).collect();
    assert_eq!(contents, ["It is for tea."]);
}

pub async fn an_index_decided_on_before_an_erasure_is_a_conflict_and_others_are_not(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let claims = claimed(&w, 3).await;
    let mut commits = Vec::new();
    for (place, (session, claim)) in claims.iter().enumerate() {
        let (_, mut commit) = saying(&w, *session, &format!("It is tea {place}.")).await;
        commit.erase_epoch -= i64::from(place == 1);
        commits.push((claim.clone(), commit));
    }
    let outcomes = w.store.commit_indexes(w.owner, commits).await;
    for (place, outcome) in outcomes.iter().enumerate() {
        let fits = match outcome {
            Err(JobWriteError::Conflict) => place == 1,
            outcome => outcome.is_ok() && place != 1,
        };
        assert!(fits, "{place}: {outcome:?}");
    }
    let stored = w.memories().await;
    let contents = sorted(stored.iter().map(|m| &*m.content));
    assert_eq!(contents, ["It is tea 0.", "It is tea 2."]);
    w.store.finish_job(&claims[1].1).await.unwrap();
}

/// A turn of the session was shown these.
async fn shows(w: &World, session: SessionId, memories: &[&Memory]) {
    let started = w.started(session).await;
    let commit = CommitTurn {
        recalled: memories.iter().copied().map(shown).collect(),
        ..w.commit()
    };
    w.store.commit_turn(started.key, commit).await.unwrap();
}

pub async fn uses_are_counted_together_as_each_alone(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let a = w.remembered(w.memory("A")).await;
    let b = w.remembered(w.memory("B")).await;
    let mut sessions = Vec::new();
    for memories in [vec![&a, &b], vec![&a], vec![&b], vec![]] {
        let session = w.session().await;
        shows(&w, session, &memories).await;
        w.enqueued(session, JobKind::CountUse).await;
        sessions.push(session);
    }
    let first = w.store.claim_job_of(&[JobKind::CountUse], LONG).await;
    let first = first.unwrap().unwrap();
    let alike = w.store.claim_alike(&first, ALL, LONG).await.unwrap();
    let mut claims: Vec<ClaimedJob> = [first].into_iter().chain(alike).collect();
    claims.sort_by_key(|claim| {
        sessions
            .iter()
            .position(|s| claim.job.session_id == Some(*s))
    });
    assert_eq!(claims.len(), 4);
    // Somebody else has the third meanwhile.
    w.store.renew_job(&claims[2], Duration::ZERO).await.unwrap();
    let other = w.store.claim_job_of(&[JobKind::CountUse], LONG).await;
    let other = other.unwrap().unwrap();
    assert_eq!(other.job.id, claims[2].job.id);
    let changes = |claims: &[ClaimedJob]| {
        let claims = claims.iter().map(|claim| (claim.clone(), w.ids.change()));
        claims.collect::<Vec<_>>()
    };
    let counted = w
        .store
        .commit_uses(w.owner, changes(&claims), w.now())
        .await;
    for (place, outcome) in counted.iter().enumerate() {
        let fits = match outcome {
            Err(JobWriteError::Lost) => place == 2,
            outcome => outcome.is_ok(),
        };
        assert!(fits, "{place}: {outcome:?}");
    }
    let uses = async |memory: &Memory| w.memory_row(memory.id).await.unwrap().access_count;
    assert_eq!((uses(&a).await, uses(&b).await), (2, 1));
    let change = w.ids.change();
    w.store.commit_use(&other, change, w.now()).await.unwrap();
    assert!(w.jobs().await.is_empty());
    let again = w
        .store
        .commit_uses(w.owner, changes(&claims), w.now())
        .await;
    assert!(
        again
            .iter()
            .all(|outcome| matches!(outcome, Err(JobWriteError::Lost)))
    );
    assert_eq!((uses(&a).await, uses(&b).await), (2, 2));
}

pub async fn what_had_faded_is_told_again_by_uses_counted_together(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let mut faded = Vec::new();
    for content in ["The fair was in Bath.", "The tea was green."] {
        let session = w.session().await;
        let said = w.said(session, content).await;
        let chunk = Memory {
            id: chunk_id(said.id, 0),
            ..w.chunk(content, &said)
        };
        faded.push(w.remembered(chunk).await);
    }
    let now = faded[1].last_access + TimeDelta::days(200);
    let ids: Vec<_> = faded.iter().map(|memory| memory.id).collect();
    let archived = w.store.fade(w.owner, ids, w.ids.change(), now).await;
    assert_eq!(archived.unwrap(), 2);
    let mut sessions = BTreeSet::new();
    for memory in &faded {
        let session = w.session().await;
        shows(&w, session, &[memory]).await;
        w.enqueued(session, JobKind::CountUse).await;
        sessions.insert(session);
    }
    let first = w.store.claim_job_of(&[JobKind::CountUse], LONG).await;
    let first = first.unwrap().unwrap();
    let alike = w.store.claim_alike(&first, ALL, LONG).await.unwrap();
    let claims = [first].into_iter().chain(alike);
    let claims: Vec<_> = claims.map(|claim| (claim, w.ids.change())).collect();
    assert_eq!(claims.len(), 2);
    let mut expected = BTreeSet::new();
    for (claim, change) in &claims {
        expected.insert((*change, claim.job.session_id));
    }
    for outcome in w.store.commit_uses(w.owner, claims, now).await {
        outcome.unwrap();
    }
    for memory in &faded {
        let row = w.memory_row(memory.id).await.unwrap();
        assert_eq!((row.state, row.access_count), (State::Current, 1));
    }
    let changes = w.store.list_changes(w.owner, None, None, ALL).await;
    let changes = changes.unwrap().items;
    let uses = changes
        .iter()
        .filter(|change| change.kind == ChangeKind::Use);
    let uses: BTreeSet<_> = uses.map(|change| (change.id, change.session_id)).collect();
    assert_eq!(uses, expected);
}

pub async fn nothing_to_index_is_nothing_to_apply(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    assert!(w.store.commit_indexes(w.owner, Vec::new()).await.is_empty());
    let now = w.now();
    assert!(
        w.store
            .commit_uses(w.owner, Vec::new(), now)
            .await
            .is_empty()
    );
    assert_eq!(w.store.memory_change(w.owner).await.unwrap(), 0);
}
