//! Turns from acceptance to start: the queue, its bounds, the fence, and cancellation.

use std::sync::Arc;

use chrono::TimeDelta;
use futures::future::join_all;
use tidemark_application::ports::sessions::NewSession;
use tidemark_application::ports::store::Store;
use tidemark_application::ports::turns::{
    AcceptError, AcceptTurn, Accepted, CancelOutcome, SharedLimits, TurnSession, TurnWriteError,
};
use tidemark_domain::ids::{KeyId, SessionId, TenantId, TurnId};
use tidemark_domain::memory::Scope;
use tidemark_domain::memory::scoring::Profile;
use tidemark_domain::session::{MemoryMode, Role};
use tidemark_domain::turn::{RecallOptions, Turn, TurnOptions, TurnStatus};

use super::world::{EVENT_BLOCK, HARD_TEXTS, LONG, SHORT, World, lapse, sorted, unknown};

fn is_busy(refused: &Result<Accepted, AcceptError>) -> bool {
    matches!(refused, Err(AcceptError::SessionBusy))
}

pub async fn an_accepted_turn_is_queued_and_has_no_message_yet(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let accept = AcceptTurn {
        options: TurnOptions {
            tools: Some(vec!["search_memory".to_owned()]),
            recall: RecallOptions {
                scopes: vec![Scope::TaskState],
                top_k: Some(7),
                profile: Some(Profile::Decay),
                min_score: Some(0.3),
                archived: true,
            },
        },
        ..w.turn(session)
    };
    let accepted = w.store.accept_turn(accept.clone()).await.unwrap();
    assert!(!accepted.waits);
    assert!(!accepted.replayed);
    let expected = Turn {
        id: accept.id,
        session_id: session,
        status: TurnStatus::Queued,
        input: accept.input,
        memory: MemoryMode::On,
        options: accept.options,
        fence: 0,
        events_reserved: 0,
        terminal_seq: None,
        text: None,
        message_id: None,
        finish_reason: None,
        usage: None,
        recalled: Vec::new(),
        problem: None,
        cancel_requested: false,
        created_at: accept.now,
        started_at: None,
        ended_at: None,
    };
    assert_eq!(accepted.turn, expected);
    assert_eq!(w.turn_row(&expected).await, expected);
    assert!(w.history(session).await.is_empty());
    assert_eq!(w.session_row(session).await.active_turn, Some(accept.id));
}

pub async fn a_turn_of_a_new_session_makes_the_session(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let new = NewSession {
        title: Some("Ask".to_owned()),
        memory: MemoryMode::ReadOnly,
        ..w.new_session()
    };
    let accept = AcceptTurn {
        session: TurnSession::New(new.clone()),
        ..w.turn(new.id)
    };
    let accepted = w.store.accept_turn(accept).await.unwrap();
    assert_eq!(accepted.turn.session_id, new.id);
    assert_eq!(accepted.turn.memory, MemoryMode::ReadOnly);
    let session = w.session_row(new.id).await;
    assert_eq!(session.title, new.title);
    assert_eq!(session.active_turn, Some(accepted.turn.id));
}

pub async fn a_refused_turn_of_a_new_session_leaves_no_session(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let new = w.new_session();
    let accept = AcceptTurn {
        session: TurnSession::New(new.clone()),
        max_open_per_owner: 0,
        ..w.turn(new.id)
    };
    let refused = w.store.accept_turn(accept).await;
    assert!(
        matches!(refused, Err(AcceptError::TooManyTurns)),
        "{refused:?}"
    );
    assert_eq!(w.store.session(w.owner, new.id).await.unwrap(), None);
}

pub async fn the_mode_that_a_turn_names_wins_over_its_sessions(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let turn = AcceptTurn {
        memory: Some(MemoryMode::Off),
        ..w.turn(session)
    };
    let accepted = w.store.accept_turn(turn).await.unwrap();
    assert_eq!(accepted.turn.memory, MemoryMode::Off);
    let started = w.start(session).await.unwrap();
    assert_eq!(started.turn.memory, MemoryMode::Off);
    assert!(!started.message.learnable);
}

pub async fn a_turn_for_nothing_or_for_a_strangers_session_is_refused(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let mut tries = vec![(w.owner, SessionId(unknown()))];
    tries.extend(w.strangers().await.into_iter().map(|s| (s, session)));
    for (owner, session) in tries {
        let turn = AcceptTurn {
            owner,
            ..w.turn(session)
        };
        let refused = w.store.accept_turn(turn.clone()).await;
        assert!(
            matches!(refused, Err(AcceptError::SessionNotFound)),
            "{refused:?}"
        );
        assert_eq!(w.store.turn(owner, turn.id).await.unwrap(), None);
    }
    assert_eq!(w.session_row(session).await.active_turn, None);
}

pub async fn a_strangers_turn_can_neither_be_read_nor_started_nor_cancelled(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let turn = w.accepted(session).await;
    for stranger in w.strangers().await {
        assert_eq!(w.store.turn(stranger, turn.id).await.unwrap(), None);
        let message = w.ids.message();
        let started = w
            .store
            .start_turn(stranger, session, message, LONG, EVENT_BLOCK, w.now())
            .await;
        assert!(started.unwrap().is_none());
        let cancelled = w.store.request_cancel(stranger, turn.id, w.now()).await;
        assert!(matches!(cancelled.unwrap(), CancelOutcome::NotFound));
    }
    assert_eq!(w.turn_row(&turn).await, turn);
}

pub async fn a_full_queue_refuses_and_stores_nothing(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let bounded = || AcceptTurn {
        max_queued: 2,
        ..w.turn(session)
    };
    w.store.accept_turn(bounded()).await.unwrap();
    w.start(session).await.unwrap();
    for _ in 0..2 {
        assert!(w.store.accept_turn(bounded()).await.unwrap().waits);
    }
    let over = bounded();
    let refused = w.store.accept_turn(over.clone()).await;
    assert!(
        matches!(refused, Err(AcceptError::QueueFull)),
        "{refused:?}"
    );
    assert_eq!(w.store.turn(w.owner, over.id).await.unwrap(), None);
    let elsewhere = w.session().await;
    let turn = AcceptTurn {
        max_queued: 2,
        ..w.turn(elsewhere)
    };
    assert!(w.store.accept_turn(turn).await.is_ok());
}

pub async fn a_queue_for_nobody_still_lets_an_idle_session_begin(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let unqueued = || AcceptTurn {
        max_queued: 0,
        ..w.turn(session)
    };
    assert!(!w.store.accept_turn(unqueued()).await.unwrap().waits);
    let refused = w.store.accept_turn(unqueued()).await;
    assert!(
        matches!(refused, Err(AcceptError::QueueFull)),
        "{refused:?}"
    );
}

pub async fn the_queues_bound_holds_against_many_at_once(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    w.started(session).await;
    let accepted = join_all((0..16).map(|_| {
        w.store.accept_turn(AcceptTurn {
            max_queued: 3,
            ..w.turn(session)
        })
    }))
    .await;
    assert_eq!(accepted.iter().filter(|a| a.is_ok()).count(), 3);
}

pub async fn an_owner_has_no_more_open_turns_than_allowed(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let bounded = |session| AcceptTurn {
        max_open_per_owner: 2,
        ..w.turn(session)
    };
    let (a, b, c) = (w.session().await, w.session().await, w.session().await);
    w.store.accept_turn(bounded(a)).await.unwrap();
    let running = w.start(a).await.unwrap();
    w.store.accept_turn(bounded(b)).await.unwrap();
    let refused = w.store.accept_turn(bounded(c)).await;
    assert!(
        matches!(refused, Err(AcceptError::TooManyTurns)),
        "{refused:?}"
    );
    w.store.commit_turn(running.key, w.commit()).await.unwrap();
    w.store.accept_turn(bounded(c)).await.unwrap();

    let other = w.owner_named(w.owner.tenant, "other").await;
    let new = w.new_session();
    let turn = AcceptTurn {
        owner: other,
        session: TurnSession::New(new.clone()),
        ..bounded(new.id)
    };
    assert!(w.store.accept_turn(turn).await.is_ok());
}

pub async fn a_tenant_and_a_key_have_no_more_open_turns_than_allowed(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let other = w.another("other").await;
    let [key, another] = [KeyId(w.ids.uuid()), KeyId(w.ids.uuid())];
    let bounded = |w: &World, session, key| AcceptTurn {
        key: Some(key),
        max_open_shared: SharedLimits {
            tenant: Some(3),
            key: Some(2),
        },
        ..w.turn(session)
    };
    let (a, b) = (w.session().await, other.session().await);
    w.store.accept_turn(bounded(&w, a, key)).await.unwrap();
    let running = w.start(a).await.unwrap();
    // One that waits is as open as one that runs, and so is another user's.
    w.store.accept_turn(bounded(&other, b, key)).await.unwrap();
    let refused = w.store.accept_turn(bounded(&w, a, key)).await;
    assert!(
        matches!(refused, Err(AcceptError::TooManyOfKey)),
        "{refused:?}"
    );
    w.store.accept_turn(bounded(&w, a, another)).await.unwrap();
    for unbound in [None, Some(another)] {
        let turn = AcceptTurn {
            key: unbound,
            ..bounded(&other, b, key)
        };
        let refused = w.store.accept_turn(turn).await;
        assert!(
            matches!(refused, Err(AcceptError::TooManyOfTenant)),
            "{refused:?}"
        );
    }
    let elsewhere = w.owner_named(TenantId(w.ids.uuid()), "default").await;
    let new = w.new_session();
    let turn = AcceptTurn {
        owner: elsewhere,
        session: TurnSession::New(new.clone()),
        ..bounded(&w, new.id, key)
    };
    assert!(w.store.accept_turn(turn).await.is_ok(), "another tenant");
    w.store.commit_turn(running.key, w.commit()).await.unwrap();
    w.store.accept_turn(bounded(&w, a, key)).await.unwrap();
}

pub async fn an_owners_bound_holds_against_many_sessions_at_once(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let accepted = join_all((0..16).map(|_| {
        let new = w.new_session();
        w.store.accept_turn(AcceptTurn {
            session: TurnSession::New(new.clone()),
            max_open_per_owner: 4,
            ..w.turn(new.id)
        })
    }))
    .await;
    assert_eq!(accepted.iter().filter(|a| a.is_ok()).count(), 4);
}

pub async fn who_does_not_want_to_wait_is_refused_while_a_turn_is_open(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let impatient = || AcceptTurn {
        reject_if_busy: true,
        ..w.turn(session)
    };
    w.store.accept_turn(impatient()).await.unwrap();
    assert!(is_busy(&w.store.accept_turn(impatient()).await));
    let running = w.start(session).await.unwrap();
    assert!(is_busy(&w.store.accept_turn(impatient()).await));
    w.store.commit_turn(running.key, w.commit()).await.unwrap();
    assert!(w.store.accept_turn(impatient()).await.is_ok());
}

pub async fn turns_of_a_session_start_one_after_another_in_their_order(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let mut accepted = Vec::new();
    for number in 0..4 {
        let turn = AcceptTurn {
            input: format!("Question {number}"),
            ..w.turn(session)
        };
        let stored = w.store.accept_turn(turn).await.unwrap();
        assert_eq!(stored.waits, number > 0);
        accepted.push(stored.turn);
    }
    for turn in &accepted {
        assert_eq!(w.session_row(session).await.active_turn, Some(turn.id));
        let started = w.start(session).await.unwrap();
        assert_eq!(started.turn.id, turn.id);
        assert_eq!(w.session_row(session).await.active_turn, Some(turn.id));
        assert!(w.start(session).await.is_none());
        w.store.commit_turn(started.key, w.commit()).await.unwrap();
    }
    assert!(w.start(session).await.is_none());
    assert_eq!(w.session_row(session).await.active_turn, None);
    let contents = w.contents(session).await;
    let asked: Vec<_> = contents.iter().step_by(2).collect();
    assert_eq!(
        asked,
        ["Question 0", "Question 1", "Question 2", "Question 3"]
    );
    w.check_transcript(session).await;
}

pub async fn turns_start_in_the_order_of_their_acceptance_whatever_the_clocks_say(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let session = w.session().await;
    let now = w.now();
    // Accepted by processes whose clocks differ, two of them at one time and with the later id first.
    let mut turns = [-3_600, 0, 0, 3_600].map(|ahead| AcceptTurn {
        now: now + TimeDelta::seconds(ahead),
        ..w.turn(session)
    });
    turns.reverse();
    let mut accepted = Vec::new();
    for turn in turns {
        accepted.push(w.store.accept_turn(turn).await.unwrap().turn.id);
    }
    for id in accepted {
        let started = w.start(session).await.unwrap();
        assert_eq!(started.turn.id, id);
        w.store.commit_turn(started.key, w.commit()).await.unwrap();
    }
}

pub async fn a_start_takes_fence_and_numbers_and_stores_the_question(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    w.said(session, "Before.").await;
    let accepted = w.accepted(session).await;
    let (message, now) = (w.ids.message(), w.now());
    let started = w
        .store
        .start_turn(w.owner, session, message, LONG, EVENT_BLOCK, now)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(started.key.owner, w.owner);
    assert_eq!(started.key.session_id, session);
    assert_eq!(started.key.turn_id, accepted.id);
    assert_eq!(started.key.fence, started.turn.fence);
    let expected = Turn {
        status: TurnStatus::Running,
        fence: started.turn.fence,
        events_reserved: EVENT_BLOCK,
        started_at: Some(now),
        ..accepted.clone()
    };
    assert!(started.turn.fence > accepted.fence);
    assert_eq!(started.turn, expected);
    assert_eq!(w.turn_row(&accepted).await, expected);
    assert_eq!(started.message.id, message);
    assert_eq!(started.message.turn_id, Some(accepted.id));
    assert_eq!(started.message.seq, 2);
    assert_eq!(started.message.role, Role::User);
    assert_eq!(started.message.content, accepted.input);
    assert!(started.message.learnable);
    assert_eq!(started.message.created_at, now);
    assert_eq!(started.session, w.session_row(session).await);
    assert_eq!(started.session.message_count, 2);
    assert_eq!(w.history(session).await[1], started.message);
}

pub async fn of_many_starters_at_once_one_starts_one_turn(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    for _ in 0..3 {
        w.accepted(session).await;
    }
    for round in 1..=3 {
        let started = join_all((0..32).map(|_| w.start(session))).await;
        let started: Vec<_> = started.into_iter().flatten().collect();
        assert_eq!(started.len(), 1);
        w.store
            .commit_turn(started[0].key, w.commit())
            .await
            .unwrap();
        assert_eq!(w.history(session).await.len(), 2 * round);
    }
    w.check_transcript(session).await;
}

pub async fn sessions_with_a_waiting_turn_and_none_running_are_found(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (waiting, busy, idle) = (w.session().await, w.session().await, w.session().await);
    w.accepted(waiting).await;
    w.accepted(waiting).await;
    let running = w.started(busy).await;
    w.accepted(busy).await;
    w.completed(idle).await;
    let found = w.store.waiting_sessions(10).await.unwrap();
    assert_eq!(found, [(w.owner, waiting)]);
    w.store.commit_turn(running.key, w.commit()).await.unwrap();
    let found = w.store.waiting_sessions(10).await.unwrap();
    assert_eq!(
        sorted(found.into_iter().map(|(_, session)| session)),
        sorted([waiting, busy])
    );
    assert_eq!(w.store.waiting_sessions(1).await.unwrap().len(), 1);
}

pub async fn waiting_and_lapsed_turns_of_every_tenant_are_found(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    for stranger in w.strangers().await {
        let accept = async || {
            let new = w.new_session();
            let turn = AcceptTurn {
                owner: stranger,
                session: TurnSession::New(new.clone()),
                ..w.turn(new.id)
            };
            w.store.accept_turn(turn).await.unwrap();
            new.id
        };
        let (waits, runs) = (accept().await, accept().await);
        let message = w.ids.message();
        let started = w
            .store
            .start_turn(stranger, runs, message, SHORT, EVENT_BLOCK, w.now())
            .await;
        let started = started.unwrap().unwrap();
        lapse().await;
        let lapsed = w.store.lapsed_turns(10).await.unwrap();
        assert!(lapsed.contains(&started.key), "{lapsed:?}");
        let waiting = w.store.waiting_sessions(10).await.unwrap();
        assert!(waiting.contains(&(stranger, waits)), "{waiting:?}");
    }
}

pub async fn reserved_event_numbers_only_rise(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.started(session).await;
    for (up_to, reserved) in [(200, 200), (100, 200), (201, 201)] {
        w.store.reserve_events(started.key, up_to).await.unwrap();
        let turn = w.turn_row(&started.turn).await;
        assert_eq!(turn.events_reserved, reserved);
    }
}

pub async fn a_key_of_another_start_writes_nothing(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.started(session).await;
    let mut keys: Vec<_> = [-1, 1]
        .into_iter()
        .map(|off| {
            let mut key = started.key;
            key.fence += off;
            key
        })
        .collect();
    for owner in w.strangers().await {
        let mut key = started.key;
        key.owner = owner;
        keys.push(key);
    }
    let mut key = started.key;
    key.turn_id = TurnId(unknown());
    keys.push(key);
    let before = (w.turn_row(&started.turn).await, w.history(session).await);
    for key in keys {
        let outcomes = [
            w.store.renew_turn(key, LONG).await.map(drop),
            w.store.reserve_events(key, 1_000).await,
            w.store
                .append_step(key, vec![w.calling(&["a"])], w.now())
                .await
                .map(drop),
            w.store.commit_turn(key, w.commit()).await.map(drop),
            w.store
                .close_turn(key, w.close_with(TurnStatus::Failed, vec![w.partial("It")]))
                .await
                .map(drop),
        ];
        for outcome in outcomes {
            assert!(matches!(outcome, Err(TurnWriteError::Fenced)), "{key:?}");
        }
    }
    let after = (w.turn_row(&started.turn).await, w.history(session).await);
    assert_eq!(after, before);
}

pub async fn inputs_survive_whatever_they_hold(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    for text in HARD_TEXTS {
        let accept = AcceptTurn {
            input: text.to_owned(),
            ..w.turn(session)
        };
        w.store.accept_turn(accept).await.unwrap();
        let started = w.start(session).await.unwrap();
        assert_eq!(started.turn.input, text);
        assert_eq!(started.message.content, text);
        w.store.commit_turn(started.key, w.commit()).await.unwrap();
    }
}
