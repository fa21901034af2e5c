//! What derived work reads, and the commits that apply it exactly once (A12, A13, B8, B12).

use std::sync::Arc;

use tidemark_application::ports::jobs::{ClaimedJob, JobKind, JobWriteError};
use tidemark_application::ports::learning::{ConsolidationCommit, IndexCommit, Strengthened};
use tidemark_application::ports::store::Store;
use tidemark_application::ports::turns::CommitTurn;
use tidemark_domain::ids::SessionId;
use tidemark_domain::memory::Memory;
use tidemark_domain::session::Message;
use tidemark_domain::turn::TurnStatus;

use super::world::{ALL, World, shown, sorted, source, unknown};

fn assert_conflict(outcome: &Result<(), JobWriteError>) {
    assert!(
        matches!(outcome, Err(JobWriteError::Conflict)),
        "{outcome:?}"
    );
}

/// Nothing was learned and the job is still the claimant's.
async fn nothing_happened(w: &World, claim: &ClaimedJob, memories: &[Memory]) {
    assert_eq!(w.memories().await, memories);
    let jobs = w.jobs().await;
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].id, claim.job.id);
}

pub async fn a_snapshot_is_of_the_session_as_it_is_now(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let empty = w.snapshot(session).await;
    assert_eq!(empty.session, w.session_row(session).await);
    assert_eq!(empty.last_closed, 0);
    w.completed(session).await;
    assert_eq!(w.snapshot(session).await.last_closed, 2);
    let running = w.started(session).await;
    w.store
        .append_step(running.key, vec![w.calling(&["a"])], w.now())
        .await
        .unwrap();
    let open = w.snapshot(session).await;
    assert_eq!(open.session, w.session_row(session).await);
    assert_eq!(open.session.message_count, 4);
    assert_eq!(open.last_closed, 2);
    w.store
        .append_step(running.key, vec![w.result("a")], w.now())
        .await
        .unwrap();
    w.store.commit_turn(running.key, w.commit()).await.unwrap();
    w.said(session, "Imported.").await;
    w.accepted(session).await;
    assert_eq!(w.snapshot(session).await.last_closed, 7);
}

pub async fn a_snapshot_of_nothing_or_of_a_strangers_session_is_a_miss(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    w.said(session, "Mine.").await;
    let missing = SessionId(unknown());
    let found = w.store.learning_snapshot(w.owner, missing).await.unwrap();
    assert!(found.is_none());
    for stranger in w.strangers().await {
        let found = w.store.learning_snapshot(stranger, session).await.unwrap();
        assert!(found.is_none());
        let taught = w.store.taught_messages(stranger, session, 0, 9, 9).await;
        assert!(taught.unwrap().is_empty());
    }
}

pub async fn taught_messages_tell_whether_their_turn_was_cancelled(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    w.said(session, "Imported.").await;
    w.completed(session).await;
    w.ended(session, TurnStatus::Cancelled).await;
    w.ended(session, TurnStatus::Interrupted).await;
    let taught = w.store.taught_messages(w.owner, session, 0, 7, ALL).await;
    let taught = taught.unwrap();
    let cancelled: Vec<bool> = taught.iter().map(|t| t.cancelled).collect();
    assert_eq!(cancelled, [false, false, false, true, true, false, false]);
    let messages: Vec<Message> = taught.into_iter().map(|t| t.message).collect();
    assert_eq!(messages, w.history(session).await);
    for (after, up_to, limit, expected) in [
        (2, 5, ALL, vec![3, 4, 5]),
        (2, 5, 2, vec![3, 4]),
        (5, 5, ALL, vec![]),
        (6, 99, ALL, vec![7]),
    ] {
        let taught = w
            .store
            .taught_messages(w.owner, session, after, up_to, limit)
            .await;
        let numbers: Vec<i64> = taught.unwrap().iter().map(|t| t.message.seq).collect();
        assert_eq!(numbers, expected);
    }
}

pub async fn an_index_commit_stores_moves_and_removes_its_job_together(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "The budget is 400k.").await;
    let claim = w.claimed(session, JobKind::Index).await;
    let memory = w.chunk("The budget is 400k.", &said);
    let next = w.new_job(JobKind::Consolidate);
    let commit = IndexCommit {
        jobs: vec![next],
        ..w.index(session, vec![memory.clone()]).await
    };
    w.store.commit_index(&claim, commit.clone()).await.unwrap();
    assert_eq!(w.memories().await, [memory]);
    let row = w.session_row(session).await;
    assert_eq!((row.indexed_seq, row.last_consolidated), (2, 0));
    let jobs: Vec<_> = w.jobs().await.iter().map(|j| (j.id, j.kind)).collect();
    assert_eq!(jobs, [(next.id, next.kind)]);

    let again = w.store.commit_index(&claim, commit).await;
    assert!(matches!(again, Err(JobWriteError::Lost)), "{again:?}");
}

pub async fn indexing_the_same_messages_twice_stores_each_chunk_once(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "The budget is 400k.").await;
    let known = w.chunk("The budget is 400k.", &said);
    for round in 0..2 {
        let claim = w.claimed(session, JobKind::Index).await;
        let new = w.chunk(&format!("Round {round}"), &said);
        let commit = w.index(session, vec![known.clone(), new]).await;
        w.store.commit_index(&claim, commit).await.unwrap();
    }
    let mut expected = vec!["Round 0", "Round 1", "The budget is 400k."];
    let found = w.memories().await;
    expected.sort_unstable();
    assert_eq!(sorted(found.iter().map(|m| &*m.content)), expected);
    assert!(found.contains(&known));
}

pub async fn a_forgotten_chunk_is_not_indexed_again(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "The budget is 400k.").await;
    let forgotten = w.remembered(w.chunk("The budget is 400k.", &said)).await;
    assert_eq!(w.forget(w.forgetting(forgotten.id)).await, 1);
    let claim = w.claimed(session, JobKind::Index).await;
    let other = w.chunk("It is for tea.", &said);
    let commit = w.index(session, vec![forgotten, other.clone()]).await;
    w.store.commit_index(&claim, commit).await.unwrap();
    assert_eq!(w.memories().await, [other]);
}

pub async fn a_message_does_not_teach_as_a_chunk_what_was_forgotten_as_a_fact(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "The budget is 400k.").await;
    let fact = w
        .remembered(w.learned("The budget is 400k.", &[&said]))
        .await;
    assert_eq!(w.forget(w.forgetting(fact.id)).await, 1);
    let claim = w.claimed(session, JobKind::Index).await;
    let same = w.chunk("The budget is 400k.", &said);
    let commit = w.index(session, vec![same]).await;
    w.store.commit_index(&claim, commit).await.unwrap();
    assert!(w.memories().await.is_empty());
    assert_eq!(w.session_row(session).await.indexed_seq, 2);
}

pub async fn an_index_decided_on_what_has_moved_is_a_conflict(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "The budget is 400k.").await;
    let claim = w.claimed(session, JobKind::Index).await;
    let valid = IndexCommit {
        jobs: vec![w.new_job(JobKind::Consolidate)],
        ..w.index(session, vec![w.chunk("A", &said)]).await
    };
    for (epoch, from) in [(1, 0), (-1, 0), (0, 1)] {
        let moved = IndexCommit {
            erase_epoch: valid.erase_epoch + epoch,
            from_seq: valid.from_seq + from,
            ..valid.clone()
        };
        assert_conflict(&w.store.commit_index(&claim, moved).await);
        nothing_happened(&w, &claim, &[]).await;
        assert_eq!(w.session_row(session).await.indexed_seq, 0);
    }
    w.store.commit_index(&claim, valid).await.unwrap();
    assert_eq!(w.memories().await.len(), 1);
}

pub async fn messages_that_arrive_meanwhile_are_no_conflict(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "The budget is 400k.").await;
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let commit = w
        .consolidation(session, vec![w.learned("A", &[&said])])
        .await;
    w.completed(session).await;
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    let row = w.session_row(session).await;
    assert_eq!((row.last_consolidated, row.message_count), (2, 4));
    assert_eq!(row.indexed_seq, 0);

    let claim = w.claimed(session, JobKind::Index).await;
    let commit = w.index(session, vec![w.chunk("B", &said)]).await;
    w.completed(session).await;
    w.store.commit_index(&claim, commit).await.unwrap();
    let row = w.session_row(session).await;
    assert_eq!((row.indexed_seq, row.message_count), (5, 7));
}

pub async fn a_consolidation_stores_strengthens_and_moves_together(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (session, other) = (w.session().await, w.session().await);
    let earlier = w.said(other, "I like tea.").await;
    let said = w.said(session, "I like tea. The budget is 400k.").await;
    let known = w.remembered(w.learned("I like tea", &[&earlier])).await;
    let new = w.learned("The budget is 400k", &[&said]);
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let next = w.new_job(JobKind::Index);
    let commit = ConsolidationCommit {
        strengthened: vec![Strengthened {
            id: known.id,
            version: known.version,
            confidence: 0.925,
            sources: vec![source(&said)],
        }],
        jobs: vec![next],
        ..w.consolidation(session, vec![new.clone()]).await
    };
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    assert_eq!(w.memory_row(new.id).await, Some(new));
    let strengthened = w.memory_row(known.id).await.unwrap();
    assert!(strengthened.version > known.version);
    assert!((strengthened.confidence - 0.925).abs() < f64::EPSILON);
    assert_eq!(
        sorted(strengthened.sources.iter().map(|s| s.message_id)),
        sorted([earlier.id, said.id])
    );
    assert_eq!(strengthened.content, known.content);
    assert_eq!(w.session_row(session).await.last_consolidated, 2);
    let jobs: Vec<_> = w.jobs().await.iter().map(|j| j.id).collect();
    assert_eq!(jobs, [next.id]);
}

pub async fn a_consolidation_decided_on_what_has_moved_is_a_conflict(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea.").await;
    let known = w.remembered(w.learned("I like tea", &[&said])).await;
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let valid = ConsolidationCommit {
        strengthened: vec![Strengthened {
            id: known.id,
            version: known.version,
            confidence: 0.9,
            sources: vec![source(&said)],
        }],
        jobs: vec![w.new_job(JobKind::Index)],
        ..w.consolidation(session, vec![w.learned("New", &[&said])])
            .await
    };
    for (epoch, from, version) in [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, -1)] {
        let mut moved = valid.clone();
        moved.erase_epoch += epoch;
        moved.from_seq += from;
        moved.strengthened[0].version += version;
        assert_conflict(&w.store.commit_consolidation(&claim, moved).await);
        nothing_happened(&w, &claim, std::slice::from_ref(&known)).await;
        assert_eq!(w.session_row(session).await.last_consolidated, 0);
    }
    w.store.commit_consolidation(&claim, valid).await.unwrap();
    assert_eq!(w.memories().await.len(), 2);
}

pub async fn a_consolidation_whose_known_memory_was_forgotten_is_a_conflict(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea.").await;
    let known = w.remembered(w.learned("I like tea", &[&said])).await;
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let commit = ConsolidationCommit {
        strengthened: vec![Strengthened {
            id: known.id,
            version: known.version,
            confidence: 0.9,
            sources: Vec::new(),
        }],
        ..w.consolidation(session, vec![w.learned("New", &[&said])])
            .await
    };
    assert_eq!(w.forget(w.forgetting(known.id)).await, 1);
    assert_conflict(&w.store.commit_consolidation(&claim, commit).await);
    nothing_happened(&w, &claim, &[]).await;
}

pub async fn a_consolidation_whose_identity_was_taken_meanwhile_is_a_conflict(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea.").await;
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let new = vec![
        w.learned("New", &[&said]),
        w.learned("I like tea", &[&said]),
    ];
    let commit = w.consolidation(session, new).await;
    let given = w.remembered(w.memory("I like tea!")).await;
    assert_conflict(&w.store.commit_consolidation(&claim, commit).await);
    nothing_happened(&w, &claim, &[given]).await;
    assert_eq!(w.session_row(session).await.last_consolidated, 0);
}

pub async fn a_chunk_of_the_same_words_does_not_stand_in_the_way_of_a_fact(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea.").await;
    let claim = w.claimed(session, JobKind::Index).await;
    let commit = w.index(session, vec![w.chunk("I like tea", &said)]).await;
    w.store.commit_index(&claim, commit).await.unwrap();
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let fact = w.learned("I like tea", &[&said]);
    let commit = w.consolidation(session, vec![fact.clone()]).await;
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    assert_eq!(w.memory_row(fact.id).await, Some(fact));
}

pub async fn a_message_does_not_teach_again_what_was_forgotten(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let first = w.said(session, "I like tea.").await;
    let second = w.said(session, "Yes, I like tea.").await;
    let forgotten = w.remembered(w.learned("I like tea", &[&first])).await;
    assert_eq!(w.forget(w.forgetting(forgotten.id)).await, 1);

    let claim = w.claimed(session, JobKind::Consolidate).await;
    let again = w.learned("I like tea", &[&first]);
    let else_said = w.learned("I like coffee", &[&first]);
    let commit = w
        .consolidation(session, vec![again, else_said.clone()])
        .await;
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    assert_eq!(w.memories().await, [else_said]);

    let claim = w.claimed(session, JobKind::Consolidate).await;
    let both = w.learned("I like tea", &[&first, &second]);
    let commit = w.consolidation(session, vec![both.clone()]).await;
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    let learned = w.memory_row(both.id).await.unwrap();
    assert_eq!(learned.sources, [source(&second)]);
}

pub async fn a_claim_that_was_lost_applies_nothing(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea.").await;
    let index_claim = w.claimed(session, JobKind::Index).await;
    let claim = w.claimed(session, JobKind::Consolidate).await;
    for stale in [index_claim, claim].map(|claim| ClaimedJob {
        token: claim.token + 1,
        ..claim
    }) {
        let commit = w.index(session, vec![w.chunk("A", &said)]).await;
        let lost = w.store.commit_index(&stale, commit).await;
        assert!(matches!(lost, Err(JobWriteError::Lost)), "{lost:?}");
        let commit = w
            .consolidation(session, vec![w.learned("B", &[&said])])
            .await;
        let lost = w.store.commit_consolidation(&stale, commit).await;
        assert!(matches!(lost, Err(JobWriteError::Lost)), "{lost:?}");
        let lost = w.store.commit_use(&stale, w.ids.change(), w.now()).await;
        assert!(matches!(lost, Err(JobWriteError::Lost)), "{lost:?}");
    }
    assert!(w.memories().await.is_empty());
    assert_eq!(w.jobs().await.len(), 2);
    let row = w.session_row(session).await;
    assert_eq!((row.indexed_seq, row.last_consolidated), (0, 0));
}

pub async fn learning_for_a_deleted_session_is_lost(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea.").await;
    let claim = w.claimed(session, JobKind::Index).await;
    let commit = w.index(session, vec![w.chunk("A", &said)]).await;
    w.store
        .delete_session(w.owner, session, true)
        .await
        .unwrap();
    let lost = w.store.commit_index(&claim, commit).await;
    assert!(matches!(lost, Err(JobWriteError::Lost)), "{lost:?}");
    assert!(w.memories().await.is_empty());
}

async fn showing(w: &World, session: SessionId, memories: &[&Memory]) {
    let started = w.started(session).await;
    let commit = CommitTurn {
        recalled: memories.iter().copied().map(shown).collect(),
        ..w.commit()
    };
    w.store.commit_turn(started.key, commit).await.unwrap();
}

pub async fn each_completed_turn_counts_once_for_each_memory_it_showed(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (session, other) = (w.session().await, w.session().await);
    let a = w.remembered(w.memory("A")).await;
    let b = w.remembered(w.memory("B")).await;
    let c = w.remembered(w.memory("C")).await;
    let gone = w.memory("Gone");
    showing(&w, session, &[&a, &b]).await;
    showing(&w, session, &[&a, &gone]).await;
    showing(&w, session, &[]).await;
    showing(&w, other, &[&c]).await;
    let uses = async || {
        let mut uses = Vec::new();
        for memory in [&a, &b, &c] {
            uses.push(w.memory_row(memory.id).await.unwrap().access_count);
        }
        uses
    };
    assert_eq!(uses().await, [0, 0, 0]);

    let claim = w.claimed(session, JobKind::CountUse).await;
    let now = w.now();
    assert_eq!(
        w.store
            .commit_use(&claim, w.ids.change(), now)
            .await
            .unwrap(),
        2
    );
    assert_eq!(uses().await, [2, 1, 0]);
    assert_eq!(w.memory_row(a.id).await.unwrap().last_access, now);
    assert!(w.jobs().await.is_empty());
    let again = w.store.commit_use(&claim, w.ids.change(), w.now()).await;
    assert!(matches!(again, Err(JobWriteError::Lost)), "{again:?}");

    let claim = w.claimed(session, JobKind::CountUse).await;
    assert_eq!(
        w.store
            .commit_use(&claim, w.ids.change(), w.now())
            .await
            .unwrap(),
        0
    );
    assert_eq!(uses().await, [2, 1, 0]);
    assert_eq!(w.memory_row(a.id).await.unwrap().last_access, now);

    showing(&w, session, &[&b]).await;
    let claim = w.claimed(session, JobKind::CountUse).await;
    w.store
        .commit_use(&claim, w.ids.change(), w.now())
        .await
        .unwrap();
    assert_eq!(uses().await, [2, 2, 0]);
}

pub async fn turns_that_did_not_complete_count_no_use(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let a = w.remembered(w.memory("A")).await;
    for status in [
        TurnStatus::Failed,
        TurnStatus::Cancelled,
        TurnStatus::Interrupted,
    ] {
        let started = w.started(session).await;
        let mut close = w.close_with(status, Vec::new());
        close.recalled = vec![shown(&a)];
        close.jobs = vec![w.new_job(JobKind::CountUse)];
        w.store.close_turn(started.key, close).await.unwrap();
    }
    let claim = w.claim().await.unwrap();
    assert_eq!(
        w.store
            .commit_use(&claim, w.ids.change(), w.now())
            .await
            .unwrap(),
        0
    );
    assert_eq!(w.memory_row(a.id).await, Some(a));
}
