//! What comes at the same time: a store may do it together, and each is served as if it had come alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use tidemark_application::ports::context::{ContextWanted, RecallWanted};
use tidemark_application::ports::jobs::JobKind;
use tidemark_application::ports::sessions::NewSession;
use tidemark_application::ports::store::{Idempotency, Store};
use tidemark_application::ports::turns::{
    AcceptError, AcceptTurn, Accepted, CommitTurn, SharedLimits, StartTurn, Started, TurnKey,
    TurnSession, TurnWriteError,
};
use tidemark_domain::ids::KeyId;
use tidemark_domain::session::{MemoryMode, Role};
use tidemark_domain::turn::TurnStatus;

use super::world::{ALL, EVENT_BLOCK, HARD_TEXTS, LONG, World};

/// More than are done in one transaction.
const MANY: usize = 150;

fn starting(w: &World, turn: AcceptTurn) -> AcceptTurn {
    AcceptTurn {
        start: Some(StartTurn {
            message: w.ids.message(),
            lease: LONG,
            event_block: EVENT_BLOCK,
        }),
        ..turn
    }
}

/// A turn of a session that is made with it.
fn new(w: &World) -> AcceptTurn {
    let session = w.new_session();
    let id = session.id;
    AcceptTurn {
        session: TurnSession::New(session),
        ..starting(w, w.turn(id))
    }
}

async fn accept_all(w: &World, turns: Vec<AcceptTurn>) -> Vec<Result<Accepted, AcceptError>> {
    join_all(turns.into_iter().map(|turn| w.store.accept_turn(turn))).await
}

fn keyed(turn: AcceptTurn, key: &str, hash: u8) -> AcceptTurn {
    AcceptTurn {
        idempotency: Some(Idempotency {
            key: key.to_owned(),
            operation: "POST /v1/turns".to_owned(),
            body_hash: [hash; 32],
        }),
        ..turn
    }
}

/// A turn that was started with its acceptance is as one that was started after it.
async fn check_started(w: &World, wanted: &AcceptTurn, accepted: &Accepted, seq: i64) {
    let started = accepted.started.as_deref().unwrap();
    let Started {
        key,
        turn,
        session,
        message,
    } = started;
    assert!(!accepted.waits && !accepted.replayed);
    assert_eq!(&accepted.turn, turn);
    assert_eq!(turn.status, TurnStatus::Running);
    assert_eq!(
        (turn.input.as_str(), turn.events_reserved),
        (wanted.input.as_str(), EVENT_BLOCK)
    );
    assert_eq!((key.turn_id, key.fence, turn.fence), (wanted.id, 1, 1));
    assert_eq!(
        (session.message_count, session.active_turn),
        (seq, Some(wanted.id))
    );
    assert_eq!(
        w.store
            .turn(wanted.owner, wanted.id)
            .await
            .unwrap()
            .as_ref(),
        Some(turn)
    );
    let stored = w.store.session(wanted.owner, session.id).await.unwrap();
    assert_eq!(stored.as_ref(), Some(session));
    let newest = w
        .store
        .history(wanted.owner, session.id, None, 1)
        .await
        .unwrap();
    assert_eq!(newest.last(), Some(message));
    assert_eq!((message.seq, message.role), (seq, Role::User));
    assert_eq!(message.content, wanted.input);
}

pub async fn many_turns_at_once_start_each_in_its_session(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let other = w.another("other").await;
    let mut wanted = Vec::new();
    for n in 0..MANY {
        let w = if n % 3 == 0 { &other } else { &w };
        let mut turn = new(w);
        if let TurnSession::New(session) = &mut turn.session {
            *session = NewSession {
                title: Some(HARD_TEXTS[n % HARD_TEXTS.len()].to_owned()),
                labels: HARD_TEXTS[..n % 4]
                    .iter()
                    .map(|text| (*text).to_owned())
                    .collect(),
                memory: [MemoryMode::On, MemoryMode::Off, MemoryMode::ReadOnly][n % 3],
                ..session.clone()
            };
        }
        turn.input = format!("{n}: {}", HARD_TEXTS[n % HARD_TEXTS.len()]);
        wanted.push(keyed(turn, &format!("key {n}"), 1));
    }
    let accepted = accept_all(&w, wanted.clone()).await;
    for (wanted, accepted) in wanted.iter().zip(accepted) {
        let accepted = accepted.unwrap();
        check_started(&w, wanted, &accepted, 1).await;
        let TurnSession::New(new) = &wanted.session else {
            panic!("a new session");
        };
        let session = &accepted.started.unwrap().session;
        assert_eq!((&session.title, &session.labels), (&new.title, &new.labels));
        assert_eq!(
            (accepted.turn.memory, session.memory),
            (new.memory, new.memory)
        );
    }
}

pub async fn turns_at_once_in_sessions_that_are_there_follow_what_was_said(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let mut wanted = Vec::new();
    for n in 0..40 {
        let session = w.session().await;
        for _ in 0..n % 3 {
            w.said(session, "Before.").await;
        }
        wanted.push(starting(&w, w.turn(session)));
    }
    let accepted = accept_all(&w, wanted.clone()).await;
    for (n, (wanted, accepted)) in wanted.iter().zip(accepted).enumerate() {
        check_started(&w, wanted, &accepted.unwrap(), 1 + n as i64 % 3).await;
    }
}

pub async fn of_turns_at_once_in_one_session_one_starts_and_the_others_wait(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (session, other) = (w.session().await, w.session().await);
    let turns = (0..30).map(|n| starting(&w, w.turn(if n % 5 == 0 { other } else { session })));
    let accepted = accept_all(&w, turns.collect()).await;
    let accepted: Vec<Accepted> = accepted.into_iter().map(Result::unwrap).collect();
    for of in [session, other] {
        let of_session = accepted.iter().filter(|a| a.turn.session_id == of);
        let started: Vec<_> = of_session.clone().filter(|a| a.started.is_some()).collect();
        assert_eq!(started.len(), 1);
        let first = of_session.map(|a| a.turn.created_at).min().unwrap();
        assert_eq!(started[0].turn.created_at, first, "nobody was overtaken");
        let key = started[0].started.as_ref().unwrap().key;
        assert!(w.start(of).await.is_none(), "one runs");
        w.store.commit_turn(key, w.commit()).await.unwrap();
        assert!(w.start(of).await.is_some(), "the next one waits");
    }
    let waiting = accepted
        .iter()
        .filter(|a| a.turn.status == TurnStatus::Queued);
    assert_eq!(waiting.filter(|a| a.waits).count(), 28);
}

pub async fn of_repetitions_at_once_one_is_made(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let turns = (0..60).map(|n| keyed(new(&w), &format!("key {}", n % 6), u8::from(n >= 54)));
    let accepted = accept_all(&w, turns.collect()).await;
    let mut made = BTreeSet::new();
    for (n, accepted) in accepted.iter().enumerate() {
        match accepted {
            Ok(accepted) => {
                made.insert((n % 6, accepted.turn.id));
                assert_eq!(accepted.started.is_some(), !accepted.replayed);
            }
            Err(error) => assert!(matches!(error, AcceptError::IdempotencyMismatch), "{error}"),
        }
    }
    assert_eq!(made.len(), 6, "one of each key");
    let once = accepted
        .iter()
        .flatten()
        .filter(|accepted| !accepted.replayed);
    assert_eq!(once.count(), 6);
    let sessions = w
        .store
        .list_sessions(w.owner, None, None, ALL)
        .await
        .unwrap();
    assert_eq!(sessions.items.len(), 6, "no session of a repetition");
}

pub async fn an_owners_bound_holds_against_many_that_start_at_once(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let other = w.another("other").await;
    let turns = (0..40).map(|n| AcceptTurn {
        max_open_per_owner: 7,
        ..new(if n % 2 == 0 { &w } else { &other })
    });
    let accepted = accept_all(&w, turns.collect()).await;
    for parity in 0..2 {
        let of_owner = accepted.iter().skip(parity).step_by(2);
        assert_eq!(of_owner.clone().filter(|a| a.is_ok()).count(), 7);
        let refused = of_owner.filter_map(|a| a.as_ref().err());
        assert!(
            refused
                .into_iter()
                .all(|e| matches!(e, AcceptError::TooManyTurns))
        );
    }
    for owner in [w.owner, other.owner] {
        let sessions = w.store.list_sessions(owner, None, None, ALL).await.unwrap();
        assert_eq!(sessions.items.len(), 7, "no session of a refused turn");
    }
}

pub async fn bounds_of_a_tenant_and_a_key_hold_against_many_that_start_at_once(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let (other, key) = (w.another("other").await, KeyId(w.ids.uuid()));
    let bounded = |w, key| AcceptTurn {
        key,
        max_open_shared: SharedLimits {
            tenant: Some(12),
            key: Some(5),
        },
        ..new(w)
    };
    let mut turns: Vec<AcceptTurn> = (0..20).map(|_| bounded(&w, Some(key))).collect();
    let accepted = accept_all(&w, turns.clone()).await;
    assert_eq!(accepted.iter().filter(|a| a.is_ok()).count(), 5);
    let refused = accepted.iter().filter_map(|a| a.as_ref().err());
    assert!(
        refused
            .into_iter()
            .all(|e| matches!(e, AcceptError::TooManyOfKey))
    );
    turns = (0..40)
        .map(|n| bounded(if n % 2 == 0 { &w } else { &other }, None))
        .collect();
    let accepted = accept_all(&w, turns).await;
    assert_eq!(accepted.iter().filter(|a| a.is_ok()).count(), 7);
    let refused = accepted.iter().filter_map(|a| a.as_ref().err());
    assert!(
        refused
            .into_iter()
            .all(|e| matches!(e, AcceptError::TooManyOfTenant))
    );
    let mut sessions = 0;
    for owner in [w.owner, other.owner] {
        let listed = w.store.list_sessions(owner, None, None, ALL).await.unwrap();
        sessions += listed.items.len();
    }
    assert_eq!(sessions, 12, "no session of a refused turn");
}

pub async fn one_that_is_refused_among_many_takes_nothing_with_it(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let [stranger, _] = w.strangers().await;
    let theirs = {
        let other = w.another("stranger").await;
        assert_eq!(other.owner, stranger);
        other.session().await
    };
    let mut turns: Vec<AcceptTurn> = (0..20).map(|_| new(&w)).collect();
    turns[3] = starting(&w, w.turn(theirs));
    turns[7] = AcceptTurn {
        admit: false,
        ..new(&w)
    };
    let accepted = accept_all(&w, turns).await;
    for (n, accepted) in accepted.into_iter().enumerate() {
        match n {
            3 => assert!(
                matches!(accepted, Err(AcceptError::SessionNotFound)),
                "{accepted:?}"
            ),
            7 => assert!(
                matches!(accepted, Err(AcceptError::NotAdmitted)),
                "{accepted:?}"
            ),
            _ => assert!(accepted.unwrap().started.is_some()),
        }
    }
}

async fn running(w: &World, turns: usize) -> Vec<TurnKey> {
    let accepted = accept_all(w, (0..turns).map(|_| new(w)).collect()).await;
    let started = accepted
        .into_iter()
        .map(|a| a.unwrap().started.unwrap().key);
    started.collect()
}

pub async fn many_answers_at_once_are_committed_each_with_its_own(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let mut keys = running(&w, MANY).await;
    let waiting = w.accepted(keys[5].session_id).await;
    // Whoever was replaced may not commit, and is told so.
    keys[9].fence += 1;
    let commits = keys.iter().enumerate().map(|(n, key)| {
        let commit = CommitTurn {
            answer: w.answer(HARD_TEXTS[n % HARD_TEXTS.len()]),
            events_used: 3 + n as i64,
            jobs: [JobKind::Index, JobKind::Consolidate][..=n % 2]
                .iter()
                .map(|kind| w.new_job(*kind))
                .collect(),
            ..w.commit()
        };
        w.store.commit_and_look(*key, commit)
    });
    for (n, (key, committed)) in keys.iter().zip(join_all(commits).await).enumerate() {
        if n == 9 {
            assert!(
                matches!(committed, Err(TurnWriteError::Fenced)),
                "{committed:?}"
            );
            assert_eq!(w.session_row(key.session_id).await.message_count, 1);
            continue;
        }
        let committed = committed.unwrap();
        let turn = committed.turn;
        assert_eq!(committed.may_wait, n == 5);
        assert_eq!((turn.id, turn.status), (key.turn_id, TurnStatus::Completed));
        assert_eq!(turn.terminal_seq, Some(4 + n as i64));
        assert_eq!(turn.text.as_deref(), Some(HARD_TEXTS[n % HARD_TEXTS.len()]));
        assert_eq!(w.turn_row(&turn).await, turn);
        let history = w
            .store
            .history(w.owner, key.session_id, None, ALL)
            .await
            .unwrap();
        assert_eq!(history.len(), 2);
        assert_eq!((history[1].seq, history[1].role), (2, Role::Assistant));
        assert_eq!(Some(&history[1].content), turn.text.as_ref());
        assert_eq!(Some(history[1].id), turn.message_id);
    }
    assert_eq!(
        w.start(keys[5].session_id).await.unwrap().turn.id,
        waiting.id
    );
    let jobs = w
        .store
        .list_jobs(w.owner.tenant, None, None, ALL)
        .await
        .unwrap();
    let of = |kind| jobs.items.iter().filter(|job| job.kind == kind).count();
    assert_eq!(
        (of(JobKind::Index), of(JobKind::Consolidate)),
        (MANY - 1, MANY / 2 - 1)
    );
}

pub async fn an_answer_that_is_committed_twice_at_once_is_there_once(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let keys = running(&w, 10).await;
    let twice = keys.iter().chain(&keys);
    let commits = twice.map(|key| w.store.commit_turn(*key, w.commit()));
    let committed = join_all(commits).await;
    assert_eq!(committed.iter().filter(|c| c.is_ok()).count(), 10);
    for key in keys {
        assert_eq!(w.session_row(key.session_id).await.message_count, 2);
    }
}

pub async fn what_turns_are_made_from_is_read_at_once_as_one_by_one(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let other = w.another("other").await;
    let mut asked = Vec::new();
    for (n, w) in [&w, &other, &w, &w, &other].into_iter().enumerate() {
        let session = w.session().await;
        for _ in 0..n {
            w.completed(session).await;
        }
        w.started(session).await;
        asked.push((w.owner, session, n as u32 * 2));
    }
    let wanted = |session, messages| ContextWanted {
        session,
        messages,
        recall: Some(RecallWanted {
            unindexed: 5,
            preferences: 3,
            now: w.now(),
        }),
    };
    let read = asked.iter().map(|(owner, session, messages)| {
        w.store.turn_context(*owner, wanted(*session, *messages))
    });
    for ((owner, session, messages), read) in asked.iter().zip(join_all(read).await) {
        let read = read.unwrap();
        let history = w
            .store
            .history(*owner, *session, None, (*messages).max(1))
            .await;
        let expected = history.unwrap().split_off(usize::from(*messages == 0));
        assert_eq!(read.messages, expected);
        let recall = read.recall.unwrap();
        assert_eq!(
            recall.unindexed,
            w.store.unindexed(*owner, 5).await.unwrap()
        );
        assert_eq!(recall.change, w.store.memory_change(*owner).await.unwrap());
    }
    let nobody = tidemark_domain::ids::Owner::nobody(w.owner.tenant);
    let read = w.store.turn_context(nobody, wanted(asked[0].1, 9)).await;
    assert!(read.unwrap().messages.is_empty());
}
