//! What is said of a key: the newest wins, in the transaction that brings it, and what it ended is known (B13).

use std::sync::Arc;

use chrono::TimeDelta;
use tidemark_application::ports::jobs::{JobKind, JobWriteError};
use tidemark_application::ports::memories::MemoryFilter;
use tidemark_application::ports::store::Store;
use tidemark_domain::ids::{MemoryId, Timestamp};
use tidemark_domain::memory::conflict::Touched;
use tidemark_domain::memory::{Memory, State, Trust};
use tidemark_domain::session::Role;

use super::world::{ALL, World};

/// The ways that a fact takes into memory.
const PATHS: [&str; 3] = ["given", "indexed", "consolidated"];

/// A day of the past.
pub(super) fn day(w: &World, number: i64) -> Timestamp {
    w.now() - TimeDelta::days(100 - number)
}

pub(super) fn budget(w: &World, amount: &str, since: Timestamp) -> Memory {
    Memory {
        key: Some("budget".to_owned()),
        valid_from: since,
        ..w.memory(&format!("Our budget is {amount}"))
    }
}

/// Stores a memory that holds since a time, in one of the ways; its id.
pub(super) async fn stored(w: &World, path: &str, memory: Memory) -> MemoryId {
    let id = memory.id;
    if path == "given" {
        w.remembered(memory).await;
        return id;
    }
    let session = w.session().await;
    let past = w.past(Role::User, &memory.content);
    let kind = if path == "indexed" {
        JobKind::Index
    } else {
        JobKind::Consolidate
    };
    let message = w.import_with(session, vec![past], &[kind]).await.remove(0);
    let claim = w.claim().await.unwrap();
    if path == "indexed" {
        let chunk = Memory {
            id,
            key: memory.key.clone(),
            state: memory.state,
            valid_from: memory.valid_from,
            ..w.chunk(&memory.content, &message)
        };
        let commit = w.index(session, vec![chunk]).await;
        w.store.commit_index(&claim, commit).await.unwrap();
    } else {
        let learned = Memory {
            sources: w.learned(&memory.content, &[&message]).sources,
            ..memory
        };
        let commit = w.consolidation(session, vec![learned]).await;
        w.store.commit_consolidation(&claim, commit).await.unwrap();
    }
    id
}

async fn row(w: &World, id: MemoryId) -> Memory {
    w.memory_row(id).await.unwrap()
}

fn contents(memories: &[Memory]) -> Vec<&str> {
    let mut all: Vec<&str> = memories.iter().map(|m| m.content.as_str()).collect();
    all.sort_unstable();
    all
}

async fn listed(w: &World, filter: &MemoryFilter) -> Vec<Memory> {
    let page = w.store.list_memories(w.owner, filter, None, ALL).await;
    page.unwrap().items
}

pub async fn the_newest_value_holds_on_whatever_paths_they_come_and_in_whatever_order(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for (round, order) in orders.into_iter().enumerate() {
        for turn in 0..3 {
            let stranger = w.another(&format!("user-{round}-{turn}")).await;
            let mut ids = [None; 3];
            for at in order {
                let amount = ["300k", "400k", "500k"][at];
                let path = PATHS[(at + turn) % 3];
                let memory = budget(&stranger, amount, day(&stranger, 10 * at as i64));
                ids[at] = Some(stored(&stranger, path, memory).await);
            }
            let [first, second, third] = ids.map(Option::unwrap);
            let (old, mid, new) = (
                row(&stranger, first).await,
                row(&stranger, second).await,
                row(&stranger, third).await,
            );
            let case = format!("order {order:?}, turn {turn}");
            assert_eq!(new.state, State::Current, "{case}");
            assert_eq!((new.valid_to, new.superseded_by), (None, None), "{case}");
            for (one, next) in [(&old, &mid), (&mid, &new)] {
                assert_eq!(one.state, State::Superseded, "{case}");
                assert_eq!(one.valid_to, Some(next.valid_from), "{case}");
                assert_eq!(one.superseded_by, Some(next.id), "{case}");
            }
        }
    }
}

pub async fn what_held_at_a_time_is_listed_as_of_it(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let start = day(&w, 0);
    for (days, amount) in [(0, "300k"), (10, "400k"), (20, "500k")] {
        w.remembered(budget(&w, amount, start + TimeDelta::days(days)))
            .await;
    }
    let as_of = |days: i64| MemoryFilter {
        as_of: Some(start + TimeDelta::days(days)),
        key: Some("budget".to_owned()),
        ..MemoryFilter::default()
    };
    for (days, expected) in [
        (-1, None),
        (0, Some("Our budget is 300k")),
        (9, Some("Our budget is 300k")),
        (10, Some("Our budget is 400k")),
        (25, Some("Our budget is 500k")),
    ] {
        let found = listed(&w, &as_of(days)).await;
        assert_eq!(contents(&found), Vec::from_iter(expected), "day {days}");
    }
}

pub async fn what_ended_a_fact_is_known_and_the_fact_is_a_new_version(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let old = w.remembered(budget(&w, "300k", day(&w, 0))).await;
    assert_eq!(old.version, 1);
    let end = Memory {
        content: "We don't have a budget any more".to_owned(),
        ..budget(&w, "", day(&w, 5))
    };
    let end = w.remembered(end).await;
    let old = row(&w, old.id).await;
    assert_eq!((old.state, old.version), (State::Superseded, 2));
    assert_eq!(
        (old.valid_to, old.superseded_by),
        (Some(end.valid_from), Some(end.id))
    );
    assert_eq!(end.state, State::Current);
}

pub async fn repeating_what_holds_adds_no_row_and_saying_it_anew_does(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let first = w.remembered(budget(&w, "300k", day(&w, 0))).await;
    let again = w.remembered(budget(&w, "300k", day(&w, 5))).await;
    assert_eq!(again, first);
    w.remembered(budget(&w, "400k", day(&w, 10))).await;
    let anew = w.remembered(budget(&w, "300k", day(&w, 20))).await;
    assert_ne!(anew.id, first.id);
    assert_eq!(anew.state, State::Current);
    assert_eq!(w.memories().await.len(), 3);
    // In one call as well.
    let items = ["600k", "600k", "700k", "600k"];
    let since = day(&w, 30);
    let items = (0..).zip(items).map(|(hours, amount)| {
        super::world::indexed(budget(&w, amount, since + TimeDelta::hours(hours)))
    });
    let stored = w.store.remember(
        w.owner,
        items.collect(),
        Vec::new(),
        w.ids.change(),
        None,
        w.now(),
    );
    let stored = stored.await.unwrap().value;
    assert_eq!(stored[0].id, stored[1].id);
    assert_ne!(stored[0].id, stored[3].id);
    let states: Vec<State> = stored.iter().map(|m| m.state).collect();
    assert_eq!(
        states,
        [
            State::Superseded,
            State::Superseded,
            State::Superseded,
            State::Current
        ]
    );
}

pub async fn a_fact_that_is_said_to_hold_earlier_holds_since_then(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let start = day(&w, 0);
    let old = w.remembered(budget(&w, "300k", start)).await;
    let new = w
        .remembered(budget(&w, "400k", start + TimeDelta::days(20)))
        .await;
    let earlier = start + TimeDelta::days(10);
    let told = w.remembered(budget(&w, "400k", earlier)).await;
    assert_eq!((told.id, told.valid_from), (new.id, earlier));
    assert_eq!(row(&w, old.id).await.valid_to, Some(earlier));
}

pub async fn another_key_or_another_owner_is_not_touched(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let other = Memory {
        key: Some("team_size".to_owned()),
        ..w.memory("We are 12")
    };
    let other = w.remembered(other).await;
    let unkeyed = w.remembered(w.memory("Our budget is 300k")).await;
    let stranger = w.another("somebody").await;
    let theirs = stranger
        .remembered(budget(&stranger, "1m", day(&w, 0)))
        .await;
    w.remembered(budget(&w, "300k", day(&w, 0))).await;
    w.remembered(budget(&w, "400k", day(&w, 1))).await;
    assert_eq!(row(&w, other.id).await, other);
    assert_eq!(row(&w, unkeyed.id).await, unkeyed);
    assert_eq!(row(&stranger, theirs.id).await, theirs);
}

pub async fn a_lower_trust_never_ends_what_a_higher_one_says(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let own = w.remembered(budget(&w, "300k", day(&w, 0))).await;
    let models = Memory {
        trust: Trust::Assistant,
        ..budget(&w, "400k", day(&w, 5))
    };
    let models = w.remembered(models).await;
    assert_eq!(row(&w, own.id).await, own);
    assert_eq!(models.state, State::Superseded);
    assert_eq!(models.valid_to, Some(models.valid_from));
    assert_eq!(models.superseded_by, Some(own.id));
}

pub async fn what_a_withdrawn_message_had_ended_holds_again(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let start = day(&w, 0);
    let old = w.remembered(budget(&w, "300k", start)).await;
    let new = budget(&w, "400k", start + TimeDelta::days(1));
    let new = stored(&w, "indexed", new).await;
    let old = row(&w, old.id).await;
    assert_eq!(old.state, State::Superseded);
    let session = row(&w, new).await.session_id.unwrap();
    assert!(
        w.store
            .delete_session(w.owner, session, true)
            .await
            .unwrap()
            .is_some()
    );
    let again = row(&w, old.id).await;
    assert_eq!((again.state, again.valid_to), (State::Current, None));
    assert_eq!(again.superseded_by, None);
    assert!(again.version > old.version);
}

pub async fn what_a_forgotten_or_expired_memory_had_ended_stays_ended(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let start = day(&w, 0);
    let old = w.remembered(budget(&w, "300k", start)).await;
    let new = w
        .remembered(budget(&w, "400k", start + TimeDelta::days(1)))
        .await;
    w.forget(w.forgetting(new.id)).await;
    let closed = row(&w, old.id).await;
    assert_eq!(closed.state, State::Superseded);
    assert_eq!(closed.valid_to, Some(new.valid_from));
    assert_eq!(closed.superseded_by, None);
    let soon = w.now() + TimeDelta::hours(1);
    let passing = Memory {
        expires_at: Some(soon),
        ..budget(&w, "450k", start + TimeDelta::days(2))
    };
    let mid = w
        .remembered(budget(&w, "420k", start + TimeDelta::days(1)))
        .await;
    let passing = w.remembered(passing).await;
    let stored = w
        .store
        .remember(w.owner, Vec::new(), Vec::new(), w.ids.change(), None, soon);
    stored.await.unwrap();
    assert_eq!(w.memory_row(passing.id).await, None);
    let mid = row(&w, mid.id).await;
    assert_eq!(
        (mid.state, mid.valid_to, mid.superseded_by),
        (State::Superseded, Some(passing.valid_from), None)
    );
    // Nor does a later value reopen them.
    w.remembered(budget(&w, "500k", start + TimeDelta::days(9)))
        .await;
    assert_eq!(row(&w, old.id).await.valid_to, closed.valid_to);
}

pub async fn a_consolidation_that_would_repeat_what_came_meanwhile_is_decided_again(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let session = w.session().await;
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let message = w.said(session, "Our budget is 300k").await;
    let learned = Memory {
        sources: w.learned("", &[&message]).sources,
        ..budget(&w, "300k", day(&w, 5))
    };
    let commit = w.consolidation(session, vec![learned.clone()]).await;
    w.remembered(budget(&w, "300k", day(&w, 1))).await;
    let outcome = w.store.commit_consolidation(&claim, commit).await;
    assert!(matches!(outcome, Err(JobWriteError::Conflict)));
    assert_eq!(w.memories().await.len(), 1);
    // Between them something else held: then it is news.
    w.remembered(budget(&w, "400k", day(&w, 3))).await;
    let commit = w.consolidation(session, vec![learned.clone()]).await;
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    assert_eq!(row(&w, learned.id).await.state, State::Current);
}

pub async fn what_is_said_of_a_key_is_found_by_it(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let start = day(&w, 0);
    for (days, amount) in [(0, "300k"), (10, "400k"), (20, "500k")] {
        w.remembered(budget(&w, amount, start + TimeDelta::days(days)))
            .await;
    }
    w.remembered(w.memory("We met on Monday")).await;
    let waiting = Memory {
        state: State::Quarantined,
        ..budget(&w, "900k", start)
    };
    w.remembered(waiting).await;
    let touched = |days: i64| Touched {
        keys: vec!["budget".to_owned(), "deadline".to_owned()],
        since: start + TimeDelta::days(days),
    };
    for (days, expected) in [(0, 3), (10, 3), (11, 2), (30, 1)] {
        let found = w.store.memories_by_key(w.owner, &touched(days)).await;
        assert_eq!(found.unwrap().len(), expected, "day {days}");
    }
    for stranger in w.strangers().await {
        let found = w.store.memories_by_key(stranger, &touched(0)).await;
        assert!(found.unwrap().is_empty());
    }
}
