//! Asking for a cancellation.

use std::sync::Arc;

use tidemark_application::ports::store::Store;
use tidemark_application::ports::turns::CancelOutcome;
use tidemark_domain::ids::TurnId;
use tidemark_domain::turn::{Turn, TurnStatus};

use super::world::{LONG, World, unknown};

pub async fn cancelling_a_waiting_turn_closes_it_and_the_next_one_starts(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let first = w.accepted(session).await;
    let second = w.accepted(session).await;
    let now = w.now();
    let cancelled = w.store.request_cancel(w.owner, first.id, now).await;
    let CancelOutcome::Closed(closed) = cancelled.unwrap() else {
        panic!("not closed")
    };
    let expected = Turn {
        status: TurnStatus::Cancelled,
        terminal_seq: Some(2),
        cancel_requested: closed.cancel_requested,
        ended_at: Some(now),
        ..first.clone()
    };
    assert_eq!(closed, expected);
    assert_eq!(w.turn_row(&first).await, expected);
    assert!(w.history(session).await.is_empty());
    assert_eq!(w.start(session).await.unwrap().turn.id, second.id);
}

pub async fn cancelling_a_running_turn_marks_it_for_its_runner(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.started(session).await;
    let renewed = w.store.renew_turn(started.key, LONG).await.unwrap();
    assert!(!renewed.cancel_requested);
    for _ in 0..2 {
        let asked = w
            .store
            .request_cancel(w.owner, started.turn.id, w.now())
            .await;
        let CancelOutcome::Requested(turn) = asked.unwrap() else {
            panic!("not requested")
        };
        assert!(turn.cancel_requested);
        assert_eq!(turn.status, TurnStatus::Running);
    }
    assert!(w.turn_row(&started.turn).await.cancel_requested);
    let renewed = w.store.renew_turn(started.key, LONG).await.unwrap();
    assert!(renewed.cancel_requested);
}

pub async fn open_turns_are_those_that_have_not_ended_the_newest_first(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (session, other) = (w.session().await, w.session().await);
    w.completed(session).await;
    let running = w.started(session).await.turn.id;
    let waiting = w.accepted(session).await.id;
    let elsewhere = w.accepted(other).await.id;
    let open = |session| w.store.open_turns(w.owner, session);
    assert_eq!(open(Some(session)).await.unwrap(), [waiting, running]);
    assert_eq!(open(None).await.unwrap(), [elsewhere, waiting, running]);
    for stranger in w.strangers().await {
        assert_eq!(w.store.open_turns(stranger, None).await.unwrap(), []);
    }
}

pub async fn cancelling_what_has_ended_or_never_was_changes_nothing(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let done = w.completed(session).await;
    let asked = w.store.request_cancel(w.owner, done.id, w.now()).await;
    let CancelOutcome::AlreadyEnded(turn) = asked.unwrap() else {
        panic!("it had ended")
    };
    assert_eq!(turn, done);
    assert_eq!(w.turn_row(&done).await, done);
    let asked = w
        .store
        .request_cancel(w.owner, TurnId(unknown()), w.now())
        .await;
    assert!(matches!(asked.unwrap(), CancelOutcome::NotFound));
}

pub async fn of_a_cancellation_and_a_start_at_once_each_is_told_what_happened(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    for _ in 0..12 {
        let session = w.session().await;
        let turn = w.accepted(session).await;
        let (started, asked) = tokio::join!(
            w.start(session),
            w.store.request_cancel(w.owner, turn.id, w.now())
        );
        match asked.unwrap() {
            CancelOutcome::Closed(_) => assert!(started.is_none()),
            CancelOutcome::Requested(_) => {
                let key = started.unwrap().key;
                let renewed = w.store.renew_turn(key, LONG).await.unwrap();
                assert!(renewed.cancel_requested);
            }
            outcome => panic!("{outcome:?}"),
        }
    }
}
