//! Lists of memories: what they keep, and how they are walked.

use std::sync::Arc;

use chrono::TimeDelta;
use tidemark_application::ports::memories::MemoryFilter;
use tidemark_application::ports::store::{Cursor, Store};
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, State};

use super::world::{ALL, World};

pub async fn a_list_keeps_what_the_filter_asks_for(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "Said here.").await;
    let fact = w.remembered(w.memory("A fact")).await;
    let profile = Memory {
        scope: Scope::UserProfile,
        kind: Kind::Preference,
        ..w.memory("A preference")
    };
    let profile = w.remembered(profile).await;
    let chunk = Memory {
        layer: Layer::Episodic,
        ..w.learned("A chunk", &[&said])
    };
    let chunk = w.remembered(chunk).await;
    let old = Memory {
        state: State::Superseded,
        kind: Kind::Decision,
        ..w.memory("An old decision")
    };
    let old = w.remembered(old).await;
    let all = MemoryFilter::default;
    for (filter, expected) in [
        (all(), vec![&old, &chunk, &profile, &fact]),
        (
            MemoryFilter {
                scope: Some(Scope::UserProfile),
                ..all()
            },
            vec![&profile],
        ),
        (
            MemoryFilter {
                kind: Some(Kind::Fact),
                ..all()
            },
            vec![&chunk, &fact],
        ),
        (
            MemoryFilter {
                layer: Some(Layer::Episodic),
                ..all()
            },
            vec![&chunk],
        ),
        (
            MemoryFilter {
                state: Some(State::Current),
                ..all()
            },
            vec![&chunk, &profile, &fact],
        ),
        (
            MemoryFilter {
                session_id: Some(session),
                ..all()
            },
            vec![&chunk],
        ),
        (
            MemoryFilter {
                created_from: Some(profile.created_at),
                created_to: Some(old.created_at),
                ..all()
            },
            vec![&chunk, &profile],
        ),
        (
            MemoryFilter {
                created_from: Some(old.created_at + TimeDelta::microseconds(1)),
                ..all()
            },
            vec![],
        ),
        (
            MemoryFilter {
                kind: Some(Kind::Fact),
                layer: Some(Layer::Semantic),
                text: Some("FACT".to_owned()),
                ..all()
            },
            vec![&fact],
        ),
    ] {
        let page = w.store.list_memories(w.owner, &filter, None, ALL).await;
        let found: Vec<_> = page.unwrap().items.into_iter().map(|m| m.id).collect();
        let expected: Vec<_> = expected.into_iter().map(|m| m.id).collect();
        assert_eq!(found, expected, "{filter:?}");
    }
}

pub async fn a_text_filter_is_taken_literally(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let contents = ["100% Öl", "100 litres", r"a_b\c", "aXb/c", "预算是30万"];
    for content in contents {
        w.remembered(w.memory(content)).await;
    }
    for (text, expected) in [
        ("100%", vec![0]),
        ("%", vec![0]),
        ("_", vec![2]),
        (r"\", vec![2]),
        ("A_B", vec![2]),
        ("LITRES", vec![1]),
        ("ö", vec![]),
        ("Öl", vec![0]),
        ("是30", vec![4]),
        ("100", vec![1, 0]),
    ] {
        let filter = MemoryFilter {
            text: Some(text.to_owned()),
            ..MemoryFilter::default()
        };
        let page = w.store.list_memories(w.owner, &filter, None, ALL).await;
        let found: Vec<_> = page.unwrap().items.into_iter().map(|m| m.content).collect();
        let expected: Vec<_> = expected.into_iter().map(|n: usize| contents[n]).collect();
        assert_eq!(found, expected, "{text}");
    }
}

pub async fn a_walk_over_memories_of_one_time_is_not_disturbed_by_new_ones(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let now = w.now();
    let mut expected = Vec::new();
    for number in 0..7 {
        let memory = Memory {
            created_at: now,
            ..w.memory(&format!("Number {number}"))
        };
        expected.push(w.remembered(memory).await.id);
    }
    expected.sort();
    expected.reverse();
    let mut walked = Vec::new();
    let mut after = None;
    loop {
        let filter = MemoryFilter::default();
        let page = w.store.list_memories(w.owner, &filter, after, 3).await;
        let page = page.unwrap();
        walked.extend(page.items.iter().map(|m| m.id));
        if !page.more {
            break;
        }
        after = walked.last().map(|id| Cursor { at: now, id: id.0 });
        let count = walked.len();
        w.remembered(w.memory(&format!("New after {count}"))).await;
    }
    assert_eq!(walked, expected);
}

pub async fn a_list_of_a_session_holds_what_was_learned_in_it_or_given_for_it(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let (here, there, empty) = (w.session().await, w.session().await, w.session().await);
    let mine = w.said(here, "I like tea.").await;
    let other = w.said(there, "I like tea, as I said.").await;
    let given = Memory {
        session_id: Some(here),
        ..w.memory("Given for it")
    };
    let given = w.remembered(given).await.id;
    let both = w.learned("I like tea", &[&mine, &other]);
    let both = w.remembered(both).await.id;
    let elsewhere = w.learned("I said so", &[&other]);
    let elsewhere = w.remembered(elsewhere).await.id;
    w.remembered(w.memory("Of no session")).await;
    for (session, expected) in [
        (here, vec![both, given]),
        (there, vec![elsewhere, both]),
        (empty, vec![]),
    ] {
        let filter = MemoryFilter {
            session_id: Some(session),
            ..MemoryFilter::default()
        };
        let page = w.store.list_memories(w.owner, &filter, None, ALL).await;
        let found: Vec<_> = page.unwrap().items.into_iter().map(|m| m.id).collect();
        assert_eq!(found, expected);
    }
}
