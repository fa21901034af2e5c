#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidemark_domain::ids::{SessionId, Timestamp};
use tidemark_domain::memory::{Kind, Scope, Source, State, chunk_id};
use uuid::Uuid;

use super::super::testing::{Changes, memory, now, owner, query};
use super::*;

fn days_ago(days: u64) -> Timestamp {
    now() - Duration::from_hours(24 * days)
}

fn source(message: u128) -> Source {
    Source {
        message_id: MessageId(Uuid::from_u128(message << 64)),
        session_id: SessionId(Uuid::from_u128(7)),
        seq: message as i64,
    }
}

/// What a message of thirty days ago says, word for word.
fn chunk(message: u128, content: &str) -> Memory {
    let source = source(message);
    Memory {
        id: chunk_id(source.message_id, 0),
        layer: Layer::Episodic,
        sources: vec![source],
        valid_from: days_ago(30),
        ..memory(0, content)
    }
}

/// What was read from that message.
fn fact(message: u128, content: &str) -> Memory {
    Memory {
        key: Some("budget".to_owned()),
        sources: vec![source(message)],
        valid_from: days_ago(30),
        ..memory(message, content)
    }
}

fn ended(fact: Memory) -> Memory {
    Memory {
        state: State::Superseded,
        valid_to: Some(days_ago(5)),
        ..fact
    }
}

fn said() -> Memory {
    chunk(1, "Finance has agreed to 300k for us")
}

fn read() -> Memory {
    fact(1, "The budget is 300k")
}

/// A store, the indexes over it, and the number of its newest change.
fn stored(memories: impl IntoIterator<Item = Memory>) -> (Arc<Changes>, Indexes, i64) {
    let store = Arc::new(Changes::default());
    let newest = store.write(1, memories);
    let indexes = Indexes::new(Arc::clone(&store) as _, usize::MAX, Vec::new());
    (store, indexes, newest)
}

async fn found(
    (store, indexes, newest): &(Arc<Changes>, Indexes, i64),
    fresh: &Fresh,
    asked: Query,
) -> Vec<MemoryId> {
    let searched = search(store.as_ref(), indexes, (owner(1), *newest), fresh, asked);
    let found = searched.await.unwrap().found;
    found.into_iter().map(|scored| scored.id).collect()
}

fn asked() -> Query {
    query("What has finance agreed to?")
}

#[tokio::test]
async fn what_says_nothing_but_what_has_ended_is_not_found_and_another_takes_its_place() {
    let other = chunk(
        2,
        "Finance has agreed to meet us on the third floor next week",
    );
    let world = stored([said(), ended(read()), other.clone()]);
    let only_one = Query {
        limit: 1,
        ..asked()
    };
    for asked in [asked(), only_one] {
        let found = found(&world, &Fresh::default(), asked).await;
        assert_eq!(found, [other.id]);
    }
}

#[tokio::test]
async fn what_held_at_a_time_is_found_as_of_it() {
    let world = stored([said(), ended(read())]);
    for (days, finds) in [(20, true), (6, true), (4, false)] {
        let asked = Query {
            moment: Moment {
                as_of: Some(days_ago(days)),
                ..Moment::at(now())
            },
            ..asked()
        };
        let found = found(&world, &Fresh::default(), asked).await;
        assert_eq!(found.contains(&said().id), finds, "{days} days ago");
    }
}

#[tokio::test]
async fn without_an_ended_fact_behind_it_no_words_are_read() {
    let world = stored([said(), read(), chunk(2, "Finance is on the third floor")]);
    let found = found(&world, &Fresh::default(), asked()).await;
    assert!(found.contains(&said().id));
    assert_eq!(world.0.asked_by_message.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn what_was_said_a_moment_ago_ends_it_too() {
    let world = stored([said(), read()]);
    let mut newer = chunk(3, "Our budget is 400k");
    newer.key = Some("budget".to_owned());
    let fresh = Fresh::new(vec![newer], vec![ended(read())]);
    let mut asked = asked();
    asked.filter.standings = fresh.standings();
    let found = found(&world, &fresh, asked).await;
    assert!(!found.contains(&said().id));
    assert_eq!(world.0.asked_by_message.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn however_many_are_over_none_of_them_is_found() {
    let many = (1..=40).flat_map(|message| {
        [
            chunk(
                message,
                &format!("Finance has agreed to {message}00k for us"),
            ),
            ended(fact(message, &format!("The budget is {message}00k"))),
        ]
    });
    let over: Vec<MemoryId> = many.clone().map(|memory| memory.id).collect();
    let world = stored(many);
    let few = Query {
        top_k: 1,
        limit: 1,
        ..asked()
    };
    for asked in [asked(), few] {
        let found = found(&world, &Fresh::default(), asked).await;
        assert!(found.iter().all(|id| !over.contains(id)), "{found:?}");
    }
}

fn preference(memory: Memory) -> Memory {
    Memory {
        scope: Scope::UserProfile,
        kind: Kind::Preference,
        ..memory
    }
}

async fn left(
    (store, indexes, newest): &(Arc<Changes>, Indexes, i64),
    fresh: &Fresh,
    preferences: &[Memory],
) -> Vec<MemoryId> {
    let mut left = preferences.to_vec();
    let moment = Moment::at(now());
    let store = store.as_ref();
    leave_out(
        store,
        (indexes, owner(1), *newest),
        fresh,
        &mut left,
        &moment,
    )
    .await
    .unwrap();
    left.into_iter().map(|memory| memory.id).collect()
}

#[tokio::test]
async fn of_preferences_those_are_left_out_that_say_what_has_ended_alone() {
    let wish = preference(chunk(1, "Could you lay it out in tables"));
    let read = |state: fn(Memory) -> Memory| {
        let mut fact = fact(1, "User prefers answers as tables");
        fact.key = Some("answer_format".to_owned());
        state(preference(fact))
    };
    let stays = preference(chunk(2, "Could you be brief"));
    let keyed = Memory {
        key: Some("answer_length".to_owned()),
        ..preference(chunk(3, "Keep answers short"))
    };
    let all = [wish.clone(), stays.clone(), keyed.clone()];
    let rest = [stays.id, keyed.id];
    let told = all.each_ref().map(|memory| memory.id);

    let over = stored(all.iter().cloned().chain([read(ended)]));
    assert_eq!(left(&over, &Fresh::default(), &all).await, rest);
    let holds = stored(all.iter().cloned().chain([read(|fact| fact)]));
    assert_eq!(left(&holds, &Fresh::default(), &all).await, told);
    assert_eq!(holds.0.asked_by_message.load(Ordering::Relaxed), 0);
    // A message that is not indexed yet has ended it.
    let fresh = Fresh::new(Vec::new(), vec![read(ended)]);
    assert_eq!(left(&holds, &fresh, &all).await, rest);
    // What has a key stands by itself: nothing is looked at.
    let store = stored([]);
    let only = std::slice::from_ref(&keyed);
    assert_eq!(left(&store, &fresh, only).await, [keyed.id]);
    assert_eq!(store.0.asked_by_message.load(Ordering::Relaxed), 0);
}
