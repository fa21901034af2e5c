//! Turns that end without an answer, and turns that take the place of others.

use std::sync::Arc;

use tidemark_application::ports::jobs::{JobKind, JobWriteError};
use tidemark_application::ports::learning::IndexCommit;
use tidemark_application::ports::store::Store;
use tidemark_application::ports::turns::{
    AcceptError, AcceptTurn, CloseTurn, Started, TurnWriteError,
};
use tidemark_domain::ids::{SessionId, TurnId};
use tidemark_domain::session::open_calls;
use tidemark_domain::turn::{
    Turn, TurnProblem, TurnStatus, Usage, terminal_seq_after, terminal_seq_after_loss,
};

use super::world::{EVENT_BLOCK, HARD_TEXTS, LONG, World, later, shown, sorted, source, unknown};

pub async fn a_close_stores_what_was_shown_with_state_problem_and_jobs(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let memory = w.remembered(w.memory("The budget is 400k")).await;
    for status in [
        TurnStatus::Failed,
        TurnStatus::Cancelled,
        TurnStatus::Interrupted,
    ] {
        let started = w.started(session).await;
        let partial = w.partial("It is");
        let close = CloseTurn {
            problem: Some(TurnProblem {
                code: "model_unavailable".to_owned(),
                detail: HARD_TEXTS[0].to_owned(),
            }),
            text: Some("It is".to_owned()),
            usage: Some(Usage {
                prompt_tokens: 9,
                completion_tokens: 2,
                estimated: false,
            }),
            recalled: vec![shown(&memory)],
            jobs: vec![w.new_job(JobKind::Index)],
            ..w.close_with(status, vec![partial.clone()])
        };
        let turn = w.store.close_turn(started.key, close.clone()).await;
        let turn = turn.unwrap();
        let expected = Turn {
            status,
            terminal_seq: Some(terminal_seq_after(3)),
            text: close.text,
            message_id: Some(partial.id),
            usage: close.usage,
            recalled: close.recalled,
            problem: close.problem,
            ended_at: Some(close.now),
            ..started.turn
        };
        assert_eq!(turn, expected);
        assert_eq!(w.turn_row(&turn).await, expected);
        let stored = w.history(session).await.pop().unwrap();
        assert_eq!(stored.id, partial.id);
        assert!(stored.partial);
        assert_eq!(w.jobs().await.len(), 1);
    }
    w.check_transcript(session).await;
}

pub async fn a_turn_that_showed_nothing_closes_without_a_message(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.started(session).await;
    let close = w.close_with(TurnStatus::Failed, Vec::new());
    let turn = w.store.close_turn(started.key, close).await.unwrap();
    assert_eq!((turn.text, turn.message_id), (None, None));
    assert_eq!(w.history(session).await, [started.message]);
    assert!(w.start(session).await.is_none());
    w.completed(session).await;
    w.check_transcript(session).await;
}

pub async fn after_a_close_nothing_else_may_write_to_the_turn(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.started(session).await;
    let key = started.key;
    let close = || w.close_with(TurnStatus::Cancelled, vec![w.partial("It")]);
    let closed = w.store.close_turn(key, close()).await.unwrap();
    let outcomes = [
        w.store.commit_turn(key, w.commit()).await.map(drop),
        w.store.close_turn(key, close()).await.map(drop),
        w.store
            .append_step(key, vec![w.calling(&["a"])], w.now())
            .await
            .map(drop),
        w.store.reserve_events(key, 1_000).await,
        w.store.renew_turn(key, LONG).await.map(drop),
    ];
    for outcome in outcomes {
        assert!(matches!(outcome, Err(TurnWriteError::Fenced)));
    }
    assert_eq!(w.turn_row(&closed).await, closed);
    assert_eq!(w.history(session).await.len(), 2);
}

pub async fn a_living_lease_protects_its_turn(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.started(session).await;
    assert!(w.store.lapsed_turns(10).await.unwrap().is_empty());
    let mut close = w.interrupt(1, vec![w.partial("It")]);
    close.jobs = vec![w.new_job(JobKind::Index)];
    let refused = w.store.close_turn(started.key, close).await;
    assert!(matches!(refused, Err(TurnWriteError::Fenced)));
    assert_eq!(w.turn_row(&started.turn).await, started.turn);
    assert_eq!(w.history(session).await, [started.message]);
    assert!(w.jobs().await.is_empty());
}

pub async fn a_lapsed_lease_is_found_until_it_is_prolonged_or_the_turn_ends(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (a, b) = (w.session().await, w.session().await);
    let (first, second) = (w.lapsed(a).await, w.lapsed(b).await);
    let found = w.store.lapsed_turns(10).await.unwrap();
    assert_eq!(
        sorted(found.iter().map(|key| key.turn_id)),
        sorted([first.key.turn_id, second.key.turn_id])
    );
    assert_eq!(w.store.lapsed_turns(1).await.unwrap().len(), 1);

    w.store.renew_turn(first.key, LONG).await.unwrap();
    assert_eq!(w.store.lapsed_turns(10).await.unwrap(), [second.key]);
    let refused = w
        .store
        .close_turn(first.key, w.interrupt(1, Vec::new()))
        .await;
    assert!(matches!(refused, Err(TurnWriteError::Fenced)));

    w.store
        .close_turn(second.key, w.interrupt(1, Vec::new()))
        .await
        .unwrap();
    assert!(w.store.lapsed_turns(10).await.unwrap().is_empty());
}

pub async fn a_turn_closed_for_its_lapsed_lease_ends_above_every_reserved_number(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.lapsed(session).await;
    let reserved = EVENT_BLOCK + 136;
    w.store.reserve_events(started.key, reserved).await.unwrap();
    let close = w.interrupt(1, Vec::new());
    let closed = w.store.close_turn(started.key, close).await.unwrap();
    assert_eq!(closed.status, TurnStatus::Interrupted);
    assert_eq!(closed.terminal_seq, Some(terminal_seq_after_loss(reserved)));
    let late = w.store.commit_turn(started.key, w.commit()).await;
    assert!(matches!(late, Err(TurnWriteError::Fenced)));
    assert_eq!(w.history(session).await, [started.message]);
}

/// Results for the calls that are still open, as whoever closes a turn must give them.
async fn results_of_open_calls(
    w: &World,
    session: SessionId,
) -> Vec<tidemark_application::ports::turns::NewMessage> {
    let open = open_calls(&w.history(session).await);
    open.iter().map(|call| w.result(&call.id)).collect()
}

pub async fn a_close_that_answers_open_calls_leaves_a_valid_transcript(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.lapsed(session).await;
    let calls = vec![w.calling(&["a", "b", "c"])];
    w.store
        .append_step(started.key, calls, w.now())
        .await
        .unwrap();
    w.store
        .append_step(started.key, vec![w.result("b")], w.now())
        .await
        .unwrap();
    let mut messages = results_of_open_calls(&w, session).await;
    assert_eq!(messages.len(), 2);
    messages.push(w.partial("So far"));
    let close = w.interrupt(3, messages.clone());
    w.store.close_turn(started.key, close).await.unwrap();
    w.check_transcript(session).await;
    let ids: Vec<_> = w.history(session).await[3..].iter().map(|m| m.id).collect();
    assert_eq!(ids, messages.iter().map(|m| m.id).collect::<Vec<_>>());
    w.completed(session).await;
    w.check_transcript(session).await;
}

pub async fn a_close_that_was_decided_before_the_late_runner_wrote_is_refused(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.lapsed(session).await;
    let calls = vec![w.calling(&["a", "b"])];
    let write = |messages| w.store.append_step(started.key, messages, w.now());
    write(calls).await.unwrap();
    let stale = w.interrupt(2, results_of_open_calls(&w, session).await);
    write(vec![w.result("a")]).await.unwrap();
    let refused = w.store.close_turn(started.key, stale).await;
    assert!(matches!(refused, Err(TurnWriteError::Fenced)));
    let anew = w.interrupt(3, results_of_open_calls(&w, session).await);
    w.store.close_turn(started.key, anew).await.unwrap();
    assert_eq!(w.history(session).await.len(), 4);
    w.check_transcript(session).await;
}

pub async fn of_many_who_find_a_lapsed_lease_one_closes_the_turn(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.lapsed(session).await;
    let closed = futures::future::join_all((0..8).map(|_| {
        let close = w.interrupt(1, vec![w.partial("It")]);
        w.store.close_turn(started.key, close)
    }))
    .await;
    assert_eq!(closed.iter().filter(|c| c.is_ok()).count(), 1);
    assert_eq!(w.history(session).await.len(), 2);
    w.check_transcript(session).await;
}

fn replacing(w: &World, session: SessionId, turn: TurnId) -> AcceptTurn {
    AcceptTurn {
        replaces: Some(turn),
        ..w.turn(session)
    }
}

pub async fn a_replacement_removes_the_turn_and_what_came_after_it(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let first = w.completed(session).await;
    let replaced = w.completed(session).await;
    let after = w.ended(session, TurnStatus::Failed).await;
    w.said(session, "By the way.").await;
    let never = w.accepted(session).await;
    w.store
        .request_cancel(w.owner, never.id, w.now())
        .await
        .unwrap();
    let kept = w.history(session).await[..2].to_vec();

    let accept = replacing(&w, session, replaced.id);
    let accepted = w.store.accept_turn(accept).await.unwrap();

    assert!(!accepted.waits);
    assert_eq!(w.history(session).await, kept);
    assert_eq!(w.turn_row(&first).await, first);
    for gone in [replaced.id, after.id, never.id] {
        assert_eq!(w.store.turn(w.owner, gone).await.unwrap(), None);
    }
    w.check_transcript(session).await;
    let started = w.start(session).await.unwrap();
    assert_eq!(started.turn.id, accepted.turn.id);
    assert_eq!(started.message.seq, 3);
    w.store.commit_turn(started.key, w.commit()).await.unwrap();
    w.check_transcript(session).await;
}

pub async fn a_replacement_withdraws_what_was_learned_from_the_branch_alone(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (session, other) = (w.session().await, w.session().await);
    w.completed(session).await;
    let replaced = w.completed(session).await;
    let history = w.history(session).await;
    let elsewhere = w.said(other, "The colour is blue.").await;
    let branch = w
        .remembered(w.learned("The shape is round", &[&history[2]]))
        .await;
    let before = w
        .remembered(w.learned("The taste is sweet", &[&history[0], &history[3]]))
        .await;
    let shared = w
        .remembered(w.learned("The colour is blue", &[&history[2], &elsewhere]))
        .await;
    let given = w.remembered(w.memory("The size is small")).await;

    let accept = replacing(&w, session, replaced.id);
    w.store.accept_turn(accept).await.unwrap();

    assert_eq!(w.memory_row(branch.id).await, None);
    let before = w.memory_row(before.id).await.unwrap();
    assert_eq!(before.sources, [source(&history[0])]);
    let shared = w.memory_row(shared.id).await.unwrap();
    assert_eq!(shared.sources, [source(&elsewhere)]);
    assert_eq!(w.memory_row(given.id).await, Some(given));
    let now = later(w.now(), 1);
    assert!(w.finds(w.owner, "round", now).await.is_empty());
    assert_eq!(w.finds(w.owner, "colour", now).await, [shared.id]);
}

pub async fn a_replacement_sets_the_cursors_back_to_what_is_left(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    w.completed(session).await;
    let replaced = w.completed(session).await;
    w.index_all(session).await;
    assert_eq!(w.session_row(session).await.indexed_seq, 5);
    let accept = replacing(&w, session, replaced.id);
    w.store.accept_turn(accept).await.unwrap();
    let row = w.session_row(session).await;
    assert_eq!((row.message_count, row.indexed_seq), (2, 2));
    w.completed(w.session().await).await;
}

pub async fn a_replacement_voids_learning_that_has_read_what_it_removes(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let replaced = w.completed(session).await;
    let claim = w.claimed(session, JobKind::Index).await;
    let snapshot = w.store.learning_snapshot(w.owner, session).await;
    let snapshot = snapshot.unwrap().unwrap();
    let accept = replacing(&w, session, replaced.id);
    w.store.accept_turn(accept).await.unwrap();
    let again: Started = w.start(session).await.unwrap();
    w.store.commit_turn(again.key, w.commit()).await.unwrap();
    w.said(session, "As many messages as before.").await;
    let stale = IndexCommit {
        erase_epoch: snapshot.erase_epoch,
        from_seq: snapshot.session.indexed_seq,
        to_seq: snapshot.last_closed,
        memories: Vec::new(),
        change: w.ids.change(),
        jobs: Vec::new(),
        now: w.now(),
    };
    let refused = w.store.commit_index(&claim, stale).await;
    assert!(matches!(refused, Err(JobWriteError::Conflict)));
    assert_eq!(w.session_row(session).await.indexed_seq, 0);
}

pub async fn only_a_started_turn_of_an_idle_session_can_be_replaced(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (session, other) = (w.session().await, w.session().await);
    let done = w.completed(session).await;
    let foreign = w.completed(other).await;
    let never = w.accepted(session).await;
    w.store
        .request_cancel(w.owner, never.id, w.now())
        .await
        .unwrap();
    let history = w.history(session).await;
    for id in [foreign.id, never.id, TurnId(unknown())] {
        let refused = w.store.accept_turn(replacing(&w, session, id)).await;
        assert!(
            matches!(refused, Err(AcceptError::ReplacedNotFound)),
            "{refused:?}"
        );
    }
    w.accepted(session).await;
    let refused = w.store.accept_turn(replacing(&w, session, done.id)).await;
    assert!(
        matches!(refused, Err(AcceptError::SessionBusy)),
        "{refused:?}"
    );
    w.start(session).await.unwrap();
    let refused = w.store.accept_turn(replacing(&w, session, done.id)).await;
    assert!(
        matches!(refused, Err(AcceptError::SessionBusy)),
        "{refused:?}"
    );
    assert_eq!(w.history(session).await[..2], history);
    assert_eq!(w.turn_row(&foreign).await, foreign);
}

pub async fn a_replacement_that_is_refused_removes_nothing(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let done = w.completed(session).await;
    let refused = AcceptTurn {
        max_open_per_owner: 0,
        ..replacing(&w, session, done.id)
    };
    let refused = w.store.accept_turn(refused).await;
    assert!(
        matches!(refused, Err(AcceptError::TooManyTurns)),
        "{refused:?}"
    );
    assert_eq!(w.history(session).await.len(), 2);
    assert_eq!(w.turn_row(&done).await, done);
}
