//! Creations that can be repeated.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::TimeDelta;
use futures::future::join_all;
use tidemark_application::ports::jobs::JobKind;
use tidemark_application::ports::sessions::{CreateError, ImportError};
use tidemark_application::ports::store::{IDEMPOTENCY_HOURS, Idempotency, Store};
use tidemark_application::ports::turns::{AcceptError, AcceptTurn, TurnSession};
use tidemark_domain::ids::{SessionId, Timestamp};
use tidemark_domain::session::{MemoryMode, Role};
use tidemark_domain::turn::TurnStatus;

use super::world::{World, indexed, key, later};

/// The session made, or found, with this key at this time.
async fn session_with(w: &World, key: Idempotency, now: Timestamp) -> (SessionId, bool) {
    let mut new = w.new_session();
    new.now = now;
    let created = w.store.create_session(w.owner, new, Some(key)).await;
    let created = created.unwrap();
    (created.value.id, created.replayed)
}

pub async fn a_session_is_made_once_for_a_key_and_told_as_it_is_now(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (first, replayed) = session_with(&w, key("k", 1), w.now()).await;
    assert!(!replayed);
    w.said(first, "Since then.").await;
    let new = w.new_session();
    let id = new.id;
    let again = w.store.create_session(w.owner, new, Some(key("k", 1)));
    let again = again.await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.value, w.session_row(first).await);
    assert_eq!(again.value.message_count, 1);
    assert_eq!(w.store.session(w.owner, id).await.unwrap(), None);
}

pub async fn a_key_with_another_body_is_a_mismatch_and_makes_nothing(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (first, _) = session_with(&w, key("k", 1), w.now()).await;
    let other = || Some(key("k", 2));
    let new = w.new_session();
    let refused = w.store.create_session(w.owner, new.clone(), other()).await;
    assert!(matches!(refused, Err(CreateError::IdempotencyMismatch)));
    assert_eq!(w.store.session(w.owner, new.id).await.unwrap(), None);

    let turn = AcceptTurn {
        idempotency: other(),
        ..w.turn(first)
    };
    let refused = w.store.accept_turn(turn.clone()).await;
    assert!(matches!(refused, Err(AcceptError::IdempotencyMismatch)));
    assert_eq!(w.store.turn(w.owner, turn.id).await.unwrap(), None);

    let items = vec![indexed(w.memory("Something"))];
    let refused = w
        .store
        .remember(w.owner, items, Vec::new(), w.ids.change(), other(), w.now())
        .await;
    assert!(matches!(refused, Err(CreateError::IdempotencyMismatch)));
    assert!(w.memories().await.is_empty());

    let past = vec![w.past(Role::User, "Something")];
    let jobs = vec![w.new_job(JobKind::Index)];
    let refused = w
        .store
        .import_messages(w.owner, first, w.importing(past, jobs), other())
        .await;
    assert!(matches!(refused, Err(ImportError::IdempotencyMismatch)));
    assert!(w.history(first).await.is_empty());
    assert!(w.jobs().await.is_empty());
}

pub async fn a_key_belongs_to_its_owner_and_operation(store: Arc<dyn Store>) {
    let mut w = World::new(store).await;
    let mut made = HashSet::new();
    let owners = [
        w.owner,
        w.owner_named(w.owner.tenant, "other").await,
        w.strangers().await[1],
    ];
    for owner in owners {
        w.owner = owner;
        for operation in ["POST /v1/sessions", "POST /v2/sessions"] {
            let key = Idempotency {
                operation: operation.to_owned(),
                ..key("k", 1)
            };
            let (id, replayed) = session_with(&w, key, w.now()).await;
            assert!(!replayed);
            made.insert(id);
        }
    }
    assert_eq!(made.len(), 6);
}

pub async fn a_key_is_kept_for_its_hours_and_free_afterwards(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let start = w.now();
    let (first, _) = session_with(&w, key("k", 1), start).await;
    let end = later(start, IDEMPOTENCY_HOURS);
    let before = end - TimeDelta::seconds(1);
    let kept = session_with(&w, key("k", 1), before).await;
    assert_eq!(kept, (first, true));
    let after = end + TimeDelta::seconds(1);
    let (second, replayed) = session_with(&w, key("k", 2), after).await;
    assert!(!replayed);
    assert_ne!(second, first);
    let again = session_with(&w, key("k", 2), after).await;
    assert_eq!(again, (second, true));
}

pub async fn a_turn_is_accepted_once_for_a_key_and_told_as_it_is_now(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let keyed = || AcceptTurn {
        idempotency: Some(key("k", 1)),
        reject_if_busy: true,
        max_open_per_owner: 1,
        ..w.turn(session)
    };
    let first = w.store.accept_turn(keyed()).await.unwrap();
    assert!(!first.replayed);
    let again = w.store.accept_turn(keyed()).await.unwrap();
    assert!(again.replayed);
    assert!(!again.waits);
    assert_eq!(again.turn, first.turn);

    let started = w.start(session).await.unwrap();
    let done = w.store.commit_turn(started.key, w.commit()).await.unwrap();
    let again = w.store.accept_turn(keyed()).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.turn, done);
    assert_eq!(again.turn.status, TurnStatus::Completed);
    assert!(w.start(session).await.is_none());
}

pub async fn a_replacement_is_done_once_for_a_key(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let replaced = w.completed(session).await;
    let keyed = || AcceptTurn {
        idempotency: Some(key("k", 1)),
        replaces: Some(replaced.id),
        ..w.turn(session)
    };
    let first = w.store.accept_turn(keyed()).await.unwrap();
    let started = w.start(session).await.unwrap();
    w.store.commit_turn(started.key, w.commit()).await.unwrap();
    let again = w.store.accept_turn(keyed()).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.turn.id, first.turn.id);
    assert_eq!(w.history(session).await.len(), 2);
}

pub async fn a_refused_turn_leaves_its_key_free(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let running = w.started(session).await;
    let keyed = |body| AcceptTurn {
        idempotency: Some(key("k", body)),
        reject_if_busy: true,
        ..w.turn(session)
    };
    let refused = w.store.accept_turn(keyed(1)).await;
    assert!(matches!(refused, Err(AcceptError::SessionBusy)));
    w.store.commit_turn(running.key, w.commit()).await.unwrap();
    let accepted = w.store.accept_turn(keyed(2)).await.unwrap();
    assert!(!accepted.replayed);
}

pub async fn a_turn_that_is_not_admitted_leaves_nothing_and_an_earlier_one_is_told(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let session = w.session().await;
    let replaced = w.completed(session).await;
    let new = w.new_session();
    let keyed = |name: &str, admit| AcceptTurn {
        idempotency: Some(key(name, 1)),
        admit,
        max_open_per_owner: 1,
        ..w.turn(session)
    };
    for refused in [
        keyed("k", false),
        AcceptTurn {
            idempotency: None,
            ..keyed("k", false)
        },
        AcceptTurn {
            replaces: Some(replaced.id),
            ..keyed("k", false)
        },
        AcceptTurn {
            session: TurnSession::New(new.clone()),
            ..keyed("k", false)
        },
    ] {
        let outcome = w.store.accept_turn(refused.clone()).await;
        assert!(matches!(outcome, Err(AcceptError::NotAdmitted)));
        assert_eq!(w.store.turn(w.owner, refused.id).await.unwrap(), None);
    }
    assert_eq!(w.store.session(w.owner, new.id).await.unwrap(), None);
    assert_eq!(w.turn_row(&replaced).await, replaced);

    let first = w.store.accept_turn(keyed("k", true)).await.unwrap();
    assert!(!first.replayed);
    let again = w.store.accept_turn(keyed("k", false)).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.turn, first.turn);
    let refused = w.store.accept_turn(keyed("other", false)).await;
    assert!(matches!(refused, Err(AcceptError::NotAdmitted)));
    let refused = w.store.accept_turn(keyed("other", true)).await;
    assert!(matches!(refused, Err(AcceptError::TooManyTurns)));
}

pub async fn memories_are_stored_once_for_a_key_and_told_in_their_order(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let present = w.remembered(w.memory("B")).await;
    let keyed = |contents: [&str; 3]| {
        let items = contents.map(|c| indexed(w.memory(c))).to_vec();
        w.store.remember(
            w.owner,
            items,
            Vec::new(),
            w.ids.change(),
            Some(key("k", 1)),
            w.now(),
        )
    };
    let first = keyed(["C", "B", "A"]).await.unwrap();
    assert!(!first.replayed);
    assert_eq!(first.value[1], present);
    let again = keyed(["C", "B", "A"]).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.value, first.value);
    assert_eq!(w.memories().await.len(), 3);
}

pub async fn an_import_is_done_once_for_a_key_and_told_in_its_order(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let keyed = async || {
        let past = ["A", "B", "C"].map(|c| w.past(Role::User, c)).to_vec();
        let jobs = vec![w.new_job(JobKind::Index)];
        let key = Some(key("k", 1));
        w.store
            .import_messages(w.owner, session, w.importing(past, jobs), key)
            .await
            .unwrap()
    };
    let first = keyed().await;
    assert!(!first.replayed);
    let claim = w.claim().await.unwrap();
    w.store.finish_job(&claim).await.unwrap();
    let running = w.started(session).await;
    let again = keyed().await;
    assert!(again.replayed);
    assert_eq!(again.value, first.value);
    assert!(w.jobs().await.is_empty());
    w.store.commit_turn(running.key, w.commit()).await.unwrap();
    assert_eq!(w.history(session).await.len(), 5);
    w.check_transcript(session).await;
}

pub async fn without_a_key_nothing_is_repeated(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    assert_ne!(w.session().await, w.session().await);
}

pub async fn of_many_twins_at_once_one_makes_the_session(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let made = join_all((0..16).map(|_| session_with(&w, key("k", 1), w.now()))).await;
    assert_eq!(made.iter().filter(|(_, replayed)| !replayed).count(), 1);
    assert!(made.iter().all(|(id, _)| *id == made[0].0));
    let listed = w.store.list_sessions(w.owner, None, None, 100).await;
    assert_eq!(listed.unwrap().items.len(), 1);
}

pub async fn of_many_twins_at_once_one_makes_the_turn_and_its_session(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let accepted = join_all((0..16).map(|_| {
        let mut new = w.new_session();
        new.memory = MemoryMode::ReadOnly;
        w.store.accept_turn(AcceptTurn {
            session: TurnSession::New(new.clone()),
            idempotency: Some(key("k", 1)),
            ..w.turn(new.id)
        })
    }))
    .await;
    let accepted: Vec<_> = accepted.into_iter().map(Result::unwrap).collect();
    assert_eq!(accepted.iter().filter(|a| !a.replayed).count(), 1);
    assert!(accepted.iter().all(|a| a.turn.id == accepted[0].turn.id));
    let listed = w.store.list_sessions(w.owner, None, None, 100).await;
    assert_eq!(listed.unwrap().items.len(), 1);
    assert_eq!(w.store.waiting_sessions(9).await.unwrap().len(), 1);
}

pub async fn of_many_twins_at_once_one_makes_the_import_and_the_memories(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let imports = join_all((0..12).map(|_| {
        let past = ["A", "B"].map(|c| w.past(Role::User, c)).to_vec();
        let key = Some(key("import", 1));
        w.store
            .import_messages(w.owner, session, w.importing(past, Vec::new()), key)
    }))
    .await;
    let imports: Vec<_> = imports.into_iter().map(Result::unwrap).collect();
    assert_eq!(imports.iter().filter(|i| !i.replayed).count(), 1);
    assert!(imports.iter().all(|i| i.value == imports[0].value));
    assert_eq!(w.history(session).await.len(), 2);

    let given = join_all((0..12).map(|_| {
        let items = vec![indexed(w.memory("A")), indexed(w.memory("B"))];
        let key = Some(key("remember", 1));
        w.store
            .remember(w.owner, items, Vec::new(), w.ids.change(), key, w.now())
    }))
    .await;
    let given: Vec<_> = given.into_iter().map(Result::unwrap).collect();
    assert_eq!(given.iter().filter(|g| !g.replayed).count(), 1);
    assert!(given.iter().all(|g| g.value == given[0].value));
    assert_eq!(w.memories().await.len(), 2);
}
