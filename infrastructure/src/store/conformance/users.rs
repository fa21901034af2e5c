//! A user as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidemark_application::ports::jobs::{JobKind, JobWriteError};
use tidemark_application::ports::sessions::CreateError;
use tidemark_application::ports::store::{Store, StoreError};
use tidemark_application::ports::turns::{CommitTurn, TurnWriteError};
use tidemark_application::ports::users::{Part, Place, Record};
use tidemark_domain::ids::{Owner, TenantId};

use super::world::{World, indexed, key, shown};

async fn all(w: &World, owner: Owner, part: Part, page: u32) -> Vec<Record> {
    let mut records = Vec::new();
    let mut after = Place::default();
    loop {
        let next = w.store.records(owner, part, &after, page).await.unwrap();
        let full = next.len() == page as usize;
        after = next.last().map_or(after, Record::place);
        records.extend(next);
        if !full {
            return records;
        }
    }
}

/// Something of every kind.
async fn lived(w: &World) {
    let session = w.titled("A title").await;
    let said = w.said(session, "I like tea.").await;
    let gone = w.remembered(w.memory("Gone")).await;
    w.remembered(w.learned("I like tea", &[&said])).await;
    let started = w.started(session).await;
    let commit = CommitTurn {
        recalled: vec![shown(&w.memory("I like tea"))],
        jobs: vec![w.new_job(JobKind::Index), w.new_job(JobKind::Consolidate)],
        ..w.commit()
    };
    w.store.commit_turn(started.key, commit).await.unwrap();
    w.accepted(session).await;
    w.forget(w.forgetting(gone.id)).await;
    for name in ["one", "two"] {
        let made = w
            .store
            .create_session(w.owner, w.new_session(), Some(key(name, 1)));
        made.await.unwrap();
    }
}

pub async fn every_record_of_a_user_is_told_once_whatever_the_page(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    lived(&w).await;
    let expected = [
        (Part::Sessions, 3),
        (Part::Messages, 3),
        (Part::Turns, 2),
        (Part::Memories, 1),
        (Part::Changes, 4),
        (Part::Tombstones, 1),
        (Part::Jobs, 2),
        (Part::IdempotencyKeys, 2),
    ];
    assert_eq!(expected.map(|(part, _)| part), Part::ALL);
    for (part, count) in expected {
        let whole = all(&w, w.owner, part, 1_000).await;
        assert_eq!(whole.len(), count, "{part:?}: {whole:?}");
        for page in 1..4 {
            assert_eq!(all(&w, w.owner, part, page).await, whole, "{part:?}");
        }
        for stranger in w.strangers().await {
            assert_eq!(all(&w, stranger, part, 10).await, [], "{part:?}");
        }
    }
}

pub async fn what_is_told_of_a_record_is_what_was_stored(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.titled("A title").await;
    let said = w.said(session, "I like tea.").await;
    let memory = w.remembered(w.learned("I like tea", &[&said])).await;
    let turn = w.completed(session).await;
    let one = async |part| all(&w, w.owner, part, 10).await.remove(0);
    let row = w.session_row(session).await;
    assert_eq!(one(Part::Sessions).await, Record::Session(row));
    assert_eq!(one(Part::Messages).await, Record::Message(said));
    let row = w.turn_row(&turn).await;
    assert_eq!(one(Part::Turns).await, Record::Turn(Box::new(row)));
    assert_eq!(one(Part::Memories).await, Record::Memory(Box::new(memory)));
}

pub async fn an_unknown_user_is_not_made_by_looking(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let name = "nobody".parse().unwrap();
    for _ in 0..2 {
        let found = w.store.find_user(TenantId::DEFAULT, &name).await;
        assert_eq!(found.unwrap(), None);
    }
    let made = w.owner_named(TenantId::DEFAULT, "nobody").await;
    let found = w.store.find_user(TenantId::DEFAULT, &name).await.unwrap();
    assert_eq!(found.map(|user| user.owner), Some(made));
}

pub async fn an_erased_user_is_gone_and_the_others_are_not(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    lived(&w).await;
    let strangers = w.strangers().await;
    for stranger in strangers {
        let made = w
            .store
            .create_session(stranger, w.new_session(), Some(key("one", 1)));
        made.await.unwrap();
    }
    let open = w.store.open_turns(w.owner, None).await.unwrap();
    let (id, now) = (w.ids.uuid(), w.now());
    let erased = w.store.erase(w.owner, id, now).await.unwrap().unwrap();
    assert_eq!((erased.receipt.id, erased.receipt.erased_at), (id, now));
    assert_eq!(erased.turns.len(), 2);
    assert!(erased.turns.contains(&open[0]));
    let some: BTreeMap<&str, u64> = erased
        .receipt
        .removed
        .iter()
        .map(|(table, count)| (table.as_str(), *count))
        .filter(|(table, _)| {
            [
                "sessions",
                "messages",
                "turns",
                "memories",
                "jobs",
                "idempotency",
                "owners",
            ]
            .contains(table)
        })
        .collect();
    let expected = [
        ("sessions", 3),
        ("messages", 3),
        ("turns", 2),
        ("memories", 1),
        ("jobs", 2),
        ("idempotency", 2),
        ("owners", 1),
    ];
    assert_eq!(some, BTreeMap::from(expected));
    for part in Part::ALL {
        assert_eq!(all(&w, w.owner, part, 10).await, [], "{part:?}");
    }
    let again = w.store.erase(w.owner, w.ids.uuid(), w.now()).await;
    assert_eq!(again.unwrap(), None);
    for stranger in strangers {
        assert_eq!(all(&w, stranger, Part::Sessions, 10).await.len(), 1);
    }
    let anew = w.owner_named(TenantId::DEFAULT, "default").await;
    assert_ne!(anew, w.owner);
}

pub async fn nothing_is_stored_for_an_erased_owner(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea.").await;
    let claim = w.claimed(session, JobKind::Index).await;
    let index = w.index(session, vec![w.chunk("I like tea.", &said)]).await;
    let claim_later = w.claimed(session, JobKind::Consolidate).await;
    let consolidation = w.consolidation(session, Vec::new()).await;
    let started = w.started(session).await;
    w.store.erase(w.owner, w.ids.uuid(), w.now()).await.unwrap();

    let late = w
        .store
        .append_step(started.key, vec![w.answer("late")], w.now())
        .await;
    assert!(matches!(late, Err(TurnWriteError::Fenced)), "{late:?}");
    let late = w.store.commit_turn(started.key, w.commit()).await;
    assert!(matches!(late, Err(TurnWriteError::Fenced)), "{late:?}");
    let late = w.store.commit_index(&claim, index).await;
    let refused = |late: &JobWriteError| {
        matches!(
            late,
            JobWriteError::Lost | JobWriteError::Store(StoreError::OwnerGone)
        )
    };
    assert!(late.as_ref().is_err_and(refused), "{late:?}");
    let late = w
        .store
        .commit_consolidation(&claim_later, consolidation)
        .await;
    assert!(late.as_ref().is_err_and(refused), "{late:?}");
    let late = w
        .store
        .create_session(w.owner, w.new_session(), Some(key("late", 1)))
        .await;
    assert!(
        matches!(late, Err(CreateError::Store(StoreError::OwnerGone))),
        "{late:?}"
    );
    let late = w
        .store
        .remember(
            w.owner,
            vec![indexed(w.memory("Late"))],
            Vec::new(),
            w.ids.change(),
            None,
            w.now(),
        )
        .await;
    assert!(
        matches!(late, Err(CreateError::Store(StoreError::OwnerGone))),
        "{late:?}"
    );
    for part in Part::ALL {
        assert_eq!(all(&w, w.owner, part, 10).await, [], "{part:?}");
    }
}
