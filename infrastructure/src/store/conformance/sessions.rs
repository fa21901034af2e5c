//! Sessions.

use std::sync::Arc;

use tidemark_application::ports::jobs::JobKind;
use tidemark_application::ports::sessions::{NewSession, SessionChange, Updated};
use tidemark_application::ports::store::{Cursor, Page, Store};
use tidemark_application::ports::turns::TurnWriteError;
use tidemark_domain::ids::SessionId;
use tidemark_domain::session::{MemoryMode, Session};

use super::world::{ALL, HARD_TEXTS, World, indexed, later, sorted, source, unknown};

pub async fn a_new_session_is_read_as_it_was_made(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let new = NewSession {
        title: Some("Budget".to_owned()),
        labels: vec!["work".to_owned(), "2026".to_owned()],
        channel: "web".to_owned(),
        memory: MemoryMode::ReadOnly,
        ..w.new_session()
    };
    let created = w.store.create_session(w.owner, new.clone(), None).await;
    let created = created.unwrap();
    assert!(!created.replayed);
    let expected = Session {
        id: new.id,
        title: new.title,
        labels: new.labels,
        channel: new.channel,
        memory: new.memory,
        created_at: new.now,
        updated_at: new.now,
        message_count: 0,
        last_consolidated: 0,
        indexed_seq: 0,
        version: created.value.version,
        active_turn: None,
    };
    assert_eq!(created.value, expected);
    assert_eq!(w.session_row(new.id).await, expected);
}

pub async fn what_is_not_there_is_a_miss(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let id = SessionId(unknown());
    let change = SessionChange::default();
    assert_eq!(w.store.session(w.owner, id).await.unwrap(), None);
    assert_eq!(w.store.messages(w.owner, id, 0, 10).await.unwrap(), None);
    assert!(w.history(id).await.is_empty());
    assert_eq!(
        w.store.delete_session(w.owner, id, true).await.unwrap(),
        None
    );
    let updated = w.store.update_session(w.owner, id, None, change, w.now());
    assert_eq!(updated.await.unwrap(), Updated::NotFound);
}

pub async fn a_strangers_session_is_a_miss_and_stays_untouched(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let id = w.titled("Mine").await;
    w.said(id, "A secret.").await;
    let before = w.session_row(id).await;
    for stranger in w.strangers().await {
        let rename = SessionChange {
            title: Some(Some("Theirs".to_owned())),
            ..SessionChange::default()
        };
        assert_eq!(w.store.session(stranger, id).await.unwrap(), None);
        assert_eq!(w.store.messages(stranger, id, 0, 9).await.unwrap(), None);
        let history = w.store.history(stranger, id, None, 9).await.unwrap();
        assert!(history.is_empty());
        let updated = w
            .store
            .update_session(stranger, id, None, rename, w.now())
            .await;
        assert_eq!(updated.unwrap(), Updated::NotFound);
        assert_eq!(
            w.store.delete_session(stranger, id, true).await.unwrap(),
            None
        );
        let listed = w.store.list_sessions(stranger, None, None, ALL).await;
        assert!(listed.unwrap().items.is_empty());
    }
    assert_eq!(w.session_row(id).await, before);
    assert_eq!(w.contents(id).await, ["A secret."]);
}

pub async fn a_change_touches_what_it_names_and_raises_the_version(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let id = w.titled("Old").await;
    let before = w.session_row(id).await;
    let change = SessionChange {
        labels: Some(vec!["x".to_owned()]),
        ..SessionChange::default()
    };
    let now = w.now();
    let changed = w.store.update_session(w.owner, id, None, change, now).await;
    let Updated::Done(changed) = changed.unwrap() else {
        panic!("not done")
    };
    let expected = Session {
        labels: vec!["x".to_owned()],
        updated_at: now,
        version: changed.version,
        ..before.clone()
    };
    assert_eq!(changed, expected);
    assert!(changed.version > before.version);
    assert_eq!(w.session_row(id).await, expected);

    let change = SessionChange {
        title: Some(None),
        memory: Some(MemoryMode::Off),
        ..SessionChange::default()
    };
    let version = Some(changed.version);
    let untitled = w
        .store
        .update_session(w.owner, id, version, change, w.now())
        .await;
    let Updated::Done(untitled) = untitled.unwrap() else {
        panic!("not done")
    };
    assert_eq!(untitled.title, None);
    assert_eq!(untitled.memory, MemoryMode::Off);
    assert_eq!(untitled.labels, ["x"]);
}

pub async fn a_change_decided_on_an_older_version_is_stale_and_changes_nothing(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let id = w.titled("Old").await;
    let seen = w.session_row(id).await.version;
    let rename = |title: &str| SessionChange {
        title: Some(Some(title.to_owned())),
        ..SessionChange::default()
    };
    let twice = futures::future::join_all(["A", "B"].map(|title| {
        w.store
            .update_session(w.owner, id, Some(seen), rename(title), w.now())
    }))
    .await;
    let done: Vec<Session> = twice
        .into_iter()
        .filter_map(|updated| match updated.unwrap() {
            Updated::Done(session) => Some(session),
            Updated::Stale => None,
            Updated::NotFound => panic!("it is there"),
        })
        .collect();
    assert_eq!(done.len(), 1);
    assert_eq!(w.session_row(id).await, done[0]);
}

pub async fn messages_move_the_time_of_a_session_but_not_its_version(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let id = w.session().await;
    let before = w.session_row(id).await;
    let started = w.started(id).await;
    assert!(started.session.updated_at > before.updated_at);
    w.store.commit_turn(started.key, w.commit()).await.unwrap();
    let after = w.session_row(id).await;
    assert!(after.updated_at > started.session.updated_at);
    assert_eq!(after.version, before.version);
}

async fn walk(w: &World, limit: u32, mut between: impl AsyncFnMut()) -> Vec<SessionId> {
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page: Page<Session> = w
            .store
            .list_sessions(w.owner, None, after, limit)
            .await
            .unwrap();
        assert!(page.items.len() <= limit as usize);
        seen.extend(page.items.iter().map(|s| s.id));
        let Some(last) = page.items.last().filter(|_| page.more) else {
            return seen;
        };
        after = Some(Cursor {
            at: last.updated_at,
            id: last.id.0,
        });
        between().await;
    }
}

pub async fn sessions_are_listed_by_their_last_change_newest_first(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (a, b, c) = (w.session().await, w.session().await, w.session().await);
    assert_eq!(walk(&w, 10, async || ()).await, [c, b, a]);
    w.said(a, "Back again.").await;
    assert_eq!(walk(&w, 2, async || ()).await, [a, c, b]);
}

pub async fn a_walk_over_sessions_of_one_time_is_not_disturbed_by_new_ones(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let now = w.now();
    let mut expected = Vec::new();
    for _ in 0..7 {
        let new = NewSession {
            now,
            ..w.new_session()
        };
        expected.push(new.id);
        w.store.create_session(w.owner, new, None).await.unwrap();
    }
    expected.sort();
    expected.reverse();
    let walked = walk(&w, 2, async || {
        w.session().await;
    })
    .await;
    assert_eq!(walked, expected);
}

pub async fn a_page_that_ends_the_list_says_so(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    w.session().await;
    w.session().await;
    for (limit, items, more) in [(1, 1, true), (2, 2, false), (3, 2, false)] {
        let page = w.store.list_sessions(w.owner, None, None, limit).await;
        let page = page.unwrap();
        assert_eq!((page.items.len(), page.more), (items, more));
    }
}

pub async fn a_title_is_found_by_its_letters_taken_literally(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    for title in ["100% Äpfel", "100 apples", r"a_b\c", "aXb/c", "预算讨论"] {
        w.titled(title).await;
    }
    w.session().await;
    for (text, expected) in [
        ("100%", vec!["100% Äpfel"]),
        ("%", vec!["100% Äpfel"]),
        ("_", vec![r"a_b\c"]),
        (r"\", vec![r"a_b\c"]),
        ("A_B", vec![r"a_b\c"]),
        ("APPLES", vec!["100 apples"]),
        ("PFEL", vec!["100% Äpfel"]),
        ("ä", vec![]),
        ("算讨", vec!["预算讨论"]),
        ("100", vec!["100 apples", "100% Äpfel"]),
        ("nothing", vec![]),
    ] {
        let page = w.store.list_sessions(w.owner, Some(text), None, ALL).await;
        let titles = page.unwrap().items.into_iter().filter_map(|s| s.title);
        assert_eq!(titles.collect::<Vec<_>>(), expected, "{text}");
    }
}

pub async fn titles_labels_and_channels_survive_whatever_they_hold(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    for text in HARD_TEXTS {
        let new = NewSession {
            title: Some(text.to_owned()),
            labels: vec![text.to_owned(), String::new(), text.to_owned()],
            channel: text.to_owned(),
            ..w.new_session()
        };
        w.store
            .create_session(w.owner, new.clone(), None)
            .await
            .unwrap();
        let read = w.session_row(new.id).await;
        assert_eq!(read.title, new.title);
        assert_eq!(read.labels, new.labels);
        assert_eq!(read.channel, new.channel);
        let found = w.store.list_sessions(w.owner, Some(text), None, ALL).await;
        assert!(found.unwrap().items.iter().any(|s| s.id == new.id));
    }
}

pub async fn deleting_removes_messages_turns_and_jobs_and_fences_the_runner(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (id, other) = (w.session().await, w.session().await);
    let done = w.completed(id).await;
    w.enqueued(id, JobKind::Index).await;
    let kept = w.enqueued(other, JobKind::Index).await;
    let running = w.started(id).await;
    let queued = w.accepted(id).await;

    let deleted = w.store.delete_session(w.owner, id, true).await;
    let gone = deleted.unwrap().unwrap();
    assert_eq!(
        sorted(gone),
        sorted([done.id, running.key.turn_id, queued.id])
    );

    assert_eq!(w.store.session(w.owner, id).await.unwrap(), None);
    assert_eq!(w.store.messages(w.owner, id, 0, 9).await.unwrap(), None);
    assert!(w.history(id).await.is_empty());
    for turn in [done.id, running.key.turn_id, queued.id] {
        assert_eq!(w.store.turn(w.owner, turn).await.unwrap(), None);
    }
    assert_eq!(w.jobs().await, [kept]);
    assert_eq!(w.start(id).await.map(|s| s.turn), None);
    let late = w.store.commit_turn(running.key, w.commit()).await;
    assert!(matches!(late, Err(TurnWriteError::Fenced)), "{late:?}");
    let late = w
        .store
        .append_step(running.key, vec![w.calling(&["a"])], w.now())
        .await;
    assert!(matches!(late, Err(TurnWriteError::Fenced)), "{late:?}");
    assert_eq!(
        w.store.delete_session(w.owner, id, true).await.unwrap(),
        None
    );
    assert_eq!(w.history(other).await.len(), 1);
}

pub async fn deleting_and_forgetting_takes_what_was_learned_from_that_session_alone(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let (id, other) = (w.session().await, w.session().await);
    let here = w.said(id, "The colour is blue.").await;
    let there = w.said(other, "The colour is blue, as I said.").await;
    let only = w
        .remembered(w.learned("The shape is round", &[&here]))
        .await;
    let shared = w
        .remembered(w.learned("The colour is blue", &[&here, &there]))
        .await;
    let given = w.remembered(w.memory("The size is small")).await;

    let deleted = w.store.delete_session(w.owner, id, true).await;
    assert!(deleted.unwrap().is_some());

    assert_eq!(w.memory_row(only.id).await, None);
    let left = w.memory_row(shared.id).await.unwrap();
    assert_eq!(left.sources, [source(&there)]);
    assert_eq!(left.content, shared.content);
    assert_eq!(w.memory_row(given.id).await, Some(given.clone()));
    let now = later(w.now(), 1);
    assert!(w.finds(w.owner, "round", now).await.is_empty());
    let found = w.finds(w.owner, "blue small", now).await;
    assert_eq!(sorted(found), sorted([left.id, given.id]));
}

pub async fn deleting_without_forgetting_keeps_every_memory(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let id = w.session().await;
    let here = w.said(id, "The colour is blue.").await;
    let learned = indexed(w.learned("The colour is blue", &[&here]));
    let stored = w.remembered(learned.memory.clone()).await;
    let deleted = w.store.delete_session(w.owner, id, false).await;
    assert!(deleted.unwrap().is_some());
    let kept = w.memory_row(stored.id).await.unwrap();
    assert_eq!(kept.content, stored.content);
    let same = w
        .store
        .memories_by_identity(w.owner, std::slice::from_ref(&learned.identity))
        .await
        .unwrap();
    assert_eq!(same.len(), 1);
}
