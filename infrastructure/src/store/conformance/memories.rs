//! Memories: stored once for what they say, and found by what they are.

use std::sync::Arc;

use chrono::TimeDelta;
use tidemark_application::ports::memories::MemoryFilter;
use tidemark_application::ports::sessions::{ImportedMessage, Updated};
use tidemark_application::ports::store::{Cursor, Store};
use tidemark_domain::ids::{MemoryId, MessageId, Timestamp};
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, State, Trust};
use tidemark_domain::session::Role;

use super::world::{ALL, CENTURY, HARD_TEXTS, World, indexed, later, sorted, source, unknown};

pub async fn a_memory_is_read_as_it_was_given(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea.").await;
    let plain = w.memory("The budget is 400k");
    let ended = Some(later(w.now(), 1));
    let full = Memory {
        scope: Scope::TaskState,
        kind: Kind::TemporaryState,
        layer: Layer::Working,
        importance: 5,
        confidence: 0.73,
        trust: Trust::Assistant,
        pinned: true,
        key: Some("task/progress".to_owned()),
        valid_to: ended,
        ended_at: ended,
        expires_at: Some(later(w.now(), CENTURY)),
        access_count: 3,
        version: 4,
        ..w.learned("Half of it is done", &[&said])
    };
    for memory in [plain, full] {
        assert_eq!(w.remembered(memory.clone()).await, memory);
        assert_eq!(w.memory_row(memory.id).await, Some(memory.clone()));
        assert!(w.memories().await.contains(&memory));
    }
}

pub async fn every_scope_kind_layer_state_and_trust_is_kept(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let mut expected = Vec::new();
    for number in 0..4 {
        expected.push(Memory {
            scope: Scope::ALL[number % Scope::ALL.len()],
            kind: Kind::ALL[number],
            layer: Layer::ALL[number],
            state: State::ALL[number],
            trust: [Trust::Tool, Trust::Assistant, Trust::User][number % 3],
            ..w.memory(&format!("Number {number}"))
        });
    }
    let items = expected.iter().cloned().map(indexed).collect();
    let given = w
        .store
        .remember(w.owner, items, Vec::new(), w.ids.change(), None, w.now())
        .await;
    assert_eq!(given.unwrap().value, expected);
    for memory in expected {
        assert_eq!(w.memory_row(memory.id).await, Some(memory));
    }
}

pub async fn the_same_content_again_is_the_same_memory(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let first = w.remembered(w.memory("The budget is 400k")).await;
    let again = w.remembered(w.memory("the budget is 400K!")).await;
    assert_eq!(again, first);
    assert_eq!(w.memories().await.len(), 1);
    let preference = Memory {
        kind: Kind::Preference,
        ..w.memory("The budget is 400k")
    };
    assert_ne!(w.remembered(preference).await.id, first.id);
}

pub async fn the_answer_keeps_the_order_and_names_the_present_ones(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let present = w.remembered(w.memory("B")).await;
    let (a, c) = (w.memory("A"), w.memory("C"));
    let given = [c.clone(), w.memory("B"), a.clone(), w.memory("C")];
    let items = given.into_iter().map(indexed).collect();
    let stored = w
        .store
        .remember(w.owner, items, Vec::new(), w.ids.change(), None, w.now())
        .await;
    let stored = stored.unwrap();
    assert!(!stored.replayed);
    assert_eq!(stored.value, [c.clone(), present, a, c]);
    assert_eq!(w.memories().await.len(), 3);
}

pub async fn many_who_say_the_same_at_once_make_one_memory(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let stored =
        futures::future::join_all((0..16).map(|_| w.remembered(w.memory("The budget is 400k"))))
            .await;
    assert!(stored.iter().all(|memory| memory.id == stored[0].id));
    assert_eq!(w.memories().await.len(), 1);
}

pub async fn what_is_no_longer_told_does_not_stand_in_for_what_is_said_now(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    for state in [State::Superseded, State::Quarantined] {
        let old = Memory {
            state,
            ..w.memory("The budget is 400k")
        };
        assert_eq!(w.remembered(old.clone()).await, old);
    }
    let expires_at = later(w.now(), 1);
    let expiring = Memory {
        expires_at: Some(expires_at),
        ..w.memory("The budget is 400k")
    };
    assert_eq!(w.remembered(expiring.clone()).await, expiring);
    let new = w.memory("The budget is 400k");
    let items = vec![indexed(new.clone())];
    let stored = w
        .store
        .remember(w.owner, items, Vec::new(), w.ids.change(), None, expires_at)
        .await;
    assert_eq!(stored.unwrap().value, std::slice::from_ref(&new));
    let found = w.memories().await;
    assert_eq!(found.len(), 3);
    assert!(found.contains(&new));
}

pub async fn owners_remember_apart(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let mine = w.remembered(w.memory("The budget is 400k")).await;
    for stranger in w.strangers().await {
        let theirs = indexed(w.memory("The budget is 400k"));
        let id = theirs.memory.id;
        let stored = w.store.remember(
            stranger,
            vec![theirs],
            Vec::new(),
            w.ids.change(),
            None,
            w.now(),
        );
        assert_eq!(stored.await.unwrap().value[0].id, id);
    }
    assert_eq!(w.memories().await, [mine]);
}

pub async fn a_strangers_memory_is_a_miss_everywhere(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "Answer as tables.").await;
    let preference = Memory {
        scope: Scope::UserProfile,
        kind: Kind::Preference,
        ..w.learned("Answer as tables", &[&said])
    };
    let identity = indexed(preference.clone()).identity;
    let mine = w.remembered(preference).await;
    for stranger in w.strangers().await {
        let s = &w.store;
        let now = later(w.now(), 1);
        let filter = MemoryFilter::default();
        assert!(s.memories(stranger, &[mine.id]).await.unwrap().is_empty());
        let listed = s.list_memories(stranger, &filter, None, ALL).await;
        assert!(listed.unwrap().items.is_empty());
        let forgotten = s.forget(stranger, w.forgetting(mine.id)).await.unwrap();
        assert_eq!(forgotten, Updated::NotFound);
        let preferences = s.preferences(stranger, now, ALL).await.unwrap();
        assert!(preferences.is_empty());
        let from = s.memories_from(stranger, &[said.id]).await.unwrap();
        assert!(from.is_empty());
        let same = std::slice::from_ref(&identity);
        let same = s.memories_by_identity(stranger, same).await.unwrap();
        assert!(same.is_empty());
        assert!(w.finds(stranger, "tables", now).await.is_empty());
    }
    assert_eq!(w.memories().await, [mine]);
}

pub async fn memories_are_found_by_their_ids(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let mut all = Vec::new();
    for content in ["A", "B", "C"] {
        all.push(w.remembered(w.memory(content)).await);
    }
    let asked = [all[2].id, MemoryId(unknown()), all[0].id];
    let found = w.store.memories(w.owner, &asked).await.unwrap();
    assert_eq!(
        sorted(found.iter().map(|m| m.id)),
        sorted([all[0].id, all[2].id])
    );
    assert!(w.store.memories(w.owner, &[]).await.unwrap().is_empty());
}

pub async fn contents_survive_whatever_they_hold(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let long: String = "预算 is 400k 😀 and so on; "
        .chars()
        .cycle()
        .take(4_000)
        .collect();
    for text in HARD_TEXTS.into_iter().chain([&*long]) {
        let memory = Memory {
            key: Some(text.to_owned()),
            ..w.memory(text)
        };
        let mut item = indexed(memory.clone());
        text.clone_into(&mut item.identity);
        let stored = w
            .store
            .remember(
                w.owner,
                vec![item],
                Vec::new(),
                w.ids.change(),
                None,
                w.now(),
            )
            .await;
        assert_eq!(stored.unwrap().value, std::slice::from_ref(&memory));
        assert_eq!(w.memory_row(memory.id).await, Some(memory.clone()));
        let identity = [text.to_owned()];
        let found = w.store.memories_by_identity(w.owner, &identity).await;
        assert_eq!(found.unwrap(), [(text.to_owned(), memory)]);
    }
}

pub async fn times_of_every_year_from_1_to_9999_survive(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let first: Timestamp = "0001-01-01T00:00:00Z".parse().unwrap();
    let last: Timestamp = "9999-12-31T23:59:59.999999Z".parse().unwrap();
    let session = w.session().await;
    let mut stored = Vec::new();
    for (content, at) in [("First", first), ("Last", last)] {
        let past = ImportedMessage {
            created_at: at,
            ..w.past(Role::User, content)
        };
        let said = w.import(session, vec![past]).await.pop().unwrap();
        assert_eq!(said.created_at, at);
        assert_eq!(w.history(session).await.pop(), Some(said.clone()));
        let memory = Memory {
            valid_from: at,
            valid_to: Some(at),
            expires_at: Some(last),
            created_at: at,
            last_access: at,
            ..w.learned(content, &[&said])
        };
        assert_eq!(w.remembered(memory.clone()).await, memory);
        assert_eq!(w.memory_row(memory.id).await, Some(memory.clone()));
        stored.insert(0, memory);
    }
    assert_eq!(w.memories().await, stored);
    let between = MemoryFilter {
        created_from: Some(first),
        created_to: Some(last),
        ..MemoryFilter::default()
    };
    for (filter, after, expected) in [
        (&between, None, &stored[1..]),
        (&MemoryFilter::default(), stored.first(), &stored[1..]),
        (&MemoryFilter::default(), stored.last(), &stored[2..]),
    ] {
        let after = after.map(|memory| Cursor {
            at: memory.created_at,
            id: memory.id.0,
        });
        let page = w.store.list_memories(w.owner, filter, after, ALL).await;
        assert_eq!(page.unwrap().items, expected);
    }
}

pub async fn preferences_are_the_recallable_ones_of_the_profile_newest_first(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let now = later(w.now(), 1);
    let preference = |content: &str| Memory {
        scope: Scope::UserProfile,
        kind: Kind::Preference,
        ..w.memory(content)
    };
    let first = w.remembered(preference("Tables")).await;
    let third = Memory {
        valid_from: later(first.valid_from, -1),
        expires_at: Some(now + TimeDelta::microseconds(1)),
        ..preference("Short")
    };
    let third = w.remembered(third).await;
    let second = w.remembered(preference("Formal")).await;
    for other in [
        Memory {
            state: State::Superseded,
            ..preference("Long")
        },
        Memory {
            expires_at: Some(now),
            ..preference("Casual")
        },
        Memory {
            scope: Scope::ProjectContext,
            ..preference("Blue")
        },
        Memory {
            kind: Kind::Fact,
            ..preference("I live here")
        },
    ] {
        w.remembered(other).await;
    }
    let expected = [second, first, third];
    let found = w.store.preferences(w.owner, now, ALL).await.unwrap();
    assert_eq!(found, expected);
    let found = w.store.preferences(w.owner, now, 2).await.unwrap();
    assert_eq!(found, expected[..2]);
}

pub async fn memories_are_found_by_the_messages_behind_them_in_any_state(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let (a, b) = (w.said(session, "A").await, w.said(session, "B").await);
    let current = w.remembered(w.learned("Current", &[&a, &b])).await;
    let old = Memory {
        state: State::Superseded,
        ..w.learned("Old", &[&a])
    };
    let old = w.remembered(old).await;
    w.remembered(w.memory("Given")).await;
    for (asked, expected) in [
        (vec![a.id], vec![current.id, old.id]),
        (vec![b.id], vec![current.id]),
        (vec![a.id, b.id], vec![current.id, old.id]),
        (vec![MessageId(unknown())], vec![]),
        (vec![], vec![]),
    ] {
        let found = w.store.memories_from(w.owner, &asked).await.unwrap();
        assert_eq!(sorted(found.iter().map(|m| m.id)), sorted(expected));
        for memory in found.iter().filter(|m| m.id == current.id) {
            assert_eq!(
                sorted(memory.sources.iter().map(|s| (s.message_id, s.seq))),
                sorted([source(&a), source(&b)].map(|s| (s.message_id, s.seq)))
            );
        }
    }
}

pub async fn memories_are_found_by_what_they_say_if_they_are_current_and_semantic(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let said = w.said(w.session().await, "I like tea.").await;
    let fact = w.remembered(w.learned("I like tea", &[&said])).await;
    let chunk = Memory {
        layer: Layer::Episodic,
        ..w.learned("I like coffee", &[&said])
    };
    let chunk = w.remembered(chunk).await;
    let old = Memory {
        state: State::Superseded,
        ..w.memory("I like water")
    };
    let old = w.remembered(old).await;
    let identity = |memory: &Memory| indexed(memory.clone()).identity;
    let asked = [
        identity(&old),
        identity(&chunk),
        identity(&fact),
        "nothing".to_owned(),
    ];
    let found = w.store.memories_by_identity(w.owner, &asked).await.unwrap();
    assert_eq!(found, [(identity(&fact), fact)]);
    let found = w.store.memories_by_identity(w.owner, &[]).await.unwrap();
    assert!(found.is_empty());
}
