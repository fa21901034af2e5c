//! Forgetting over time (B12): what fades, what does not, and what comes back.

use std::sync::Arc;

use chrono::TimeDelta;
use tidemark_application::ports::changes::{Edit, Reversal};
use tidemark_application::ports::fading::Fading;
use tidemark_application::ports::jobs::JobKind;
use tidemark_application::ports::learning::{ConsolidationCommit, Strengthened};
use tidemark_application::ports::sessions::Updated;
use tidemark_application::ports::store::Store;
use tidemark_application::ports::turns::CommitTurn;
use tidemark_domain::ids::{MemoryId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::change::{Change, ChangeKind, Item, Op, Revision, revise, undo};
use tidemark_domain::memory::index::View;
use tidemark_domain::memory::index::search::search;
use tidemark_domain::memory::{Kind, Layer, Memory, State, Trust, chunk_id, consolidation};
use tidemark_domain::session::{Message, Role};

use super::world::{ALL, Follower, World, asked, found, indexed, shown, sorted, source};

fn days(at: Timestamp, days: i64) -> Timestamp {
    at + TimeDelta::days(days)
}

/// A chunk as it is indexed.
fn chunk_of(w: &World, message: &Message) -> Memory {
    Memory {
        id: chunk_id(message.id, 0),
        ..w.chunk(&message.content, message)
    }
}

/// A chunk of a message of its own.
async fn chunk(w: &World, content: &str) -> Memory {
    let session = w.session().await;
    let said = w.said(session, content).await;
    w.remembered(chunk_of(w, &said)).await
}

async fn fading(w: &World, now: Timestamp) -> Vec<MemoryId> {
    let fading = w.store.fading(now, None, ALL).await.unwrap();
    let mine = fading.iter().filter(|fading| fading.owner == w.owner);
    mine.map(|fading| fading.memory).collect()
}

async fn fade(w: &World, owner: Owner, memories: &[MemoryId], now: Timestamp) -> u64 {
    let change = w.ids.change();
    let archived = w.store.fade(owner, memories.to_vec(), change, now).await;
    archived.unwrap()
}

/// Archives what has faded of the world's owner.
async fn sweep(w: &World, now: Timestamp) -> u64 {
    let due = fading(w, now).await;
    fade(w, w.owner, &due, now).await
}

async fn row(w: &World, id: MemoryId) -> Memory {
    w.memory_row(id).await.unwrap()
}

async fn newest(w: &World) -> Change {
    let page = w.store.list_changes(w.owner, None, None, ALL).await;
    let all = page.unwrap().items;
    all.into_iter()
        .max_by_key(|c| (c.created_at, c.id))
        .unwrap()
}

async fn edited(w: &World, before: &Memory, revision: Revision) -> Memory {
    let now = w.now();
    let after = revise(before, revision, now);
    let edit = Edit {
        items: vec![Item::changed(before, &after, Op::Updated)],
        before: before.clone(),
        after: indexed(after),
        former: None,
        releases: false,
        echoes: Vec::new(),
        buried: Vec::new(),
        jobs: Vec::new(),
        change: w.ids.change(),
        now,
    };
    match w.store.edit_memory(w.owner, edit).await.unwrap() {
        Updated::Done(memory) => memory,
        refused => panic!("{refused:?}"),
    }
}

pub async fn what_has_faded_is_archived_as_one_change(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (one, two) = (
        chunk(&w, "The fair was in Bath").await,
        chunk(&w, "We took the train").await,
    );
    let models = Memory {
        trust: Trust::Assistant,
        confidence: 0.48,
        ..chunk(&w, "Trains run hourly").await
    };
    let mut follower = Follower::of(w.owner);
    follower.catch_up(&w).await;
    // What was stated, is wished, has a key or is pinned does not fade.
    w.remembered(w.memory("The fair is yearly")).await;
    let session = w.session().await;
    let said = w.said(session, "I like fairs").await;
    let wish = chunk_of(&w, &said);
    w.remembered(Memory {
        kind: Kind::Preference,
        ..wish.clone()
    })
    .await;
    let keyed = Some("fair".to_owned());
    w.remembered(Memory {
        id: w.ids.memory(),
        key: keyed,
        ..wish.clone()
    })
    .await;
    w.remembered(Memory {
        id: w.ids.memory(),
        pinned: true,
        ..wish
    })
    .await;

    let now = days(one.last_access, 181);
    assert_eq!(fading(&w, days(one.last_access, 179)).await, []);
    let due = sorted([one.id, two.id, models.id]);
    assert_eq!(sorted(fading(&w, now).await), due);
    assert_eq!(sweep(&w, now).await, 3);
    assert_eq!(fading(&w, now).await, []);
    for memory in [&one, &two] {
        let mut archived = memory.clone();
        (archived.state, archived.layer) = (State::Archived, Layer::Archival);
        archived.version += 1;
        assert_eq!(row(&w, memory.id).await, archived);
    }
    let change = newest(&w).await;
    assert_eq!(change.kind, ChangeKind::Archive);
    assert_eq!(sorted(change.items.iter().map(|i| i.memory)), due);
    for item in &change.items {
        assert_eq!((item.op, item.version), (Op::Archived, 2));
        assert_eq!(item.before["state"], "current");
        assert_eq!(item.after["state"], "archived");
    }
    // An index follows; what is archived is found on request.
    follower.catch_up(&w).await;
    let mut query = asked("train", now);
    assert_eq!(found(&search(&View::of(&follower.index), &query)), []);
    query.moment.archived = true;
    let on_request = found(&search(&View::of(&follower.index), &query));
    assert_eq!(sorted(on_request), sorted([two.id, models.id]));
    // Once is enough.
    let number = w.store.memory_change(w.owner).await.unwrap();
    assert_eq!(fade(&w, w.owner, &due, days(now, 1)).await, 0);
    assert_eq!(w.store.memory_change(w.owner).await.unwrap(), number);
}

async fn showing(w: &World, session: SessionId, memory: &Memory, now: Timestamp) {
    let started = w.started(session).await;
    let commit = CommitTurn {
        recalled: vec![shown(memory)],
        ..w.commit()
    };
    w.store.commit_turn(started.key, commit).await.unwrap();
    let claim = w.claimed_in(session, JobKind::CountUse).await;
    let change = w.ids.change();
    w.store.commit_use(&claim, change, now).await.unwrap();
}

pub async fn what_was_used_since_is_looked_at_again_later(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let used = chunk(&w, "The fair was in Bath").await;
    let session = w.session().await;
    showing(&w, session, &used, days(used.last_access, 100)).await;
    let number = w.store.memory_change(w.owner).await.unwrap();
    let now = days(used.last_access, 181);
    assert_eq!(sweep(&w, now).await, 0);
    assert_eq!(row(&w, used.id).await.state, State::Current);
    assert_eq!(w.store.memory_change(w.owner).await.unwrap(), number);
    // 100 days and two half-lives, twice as long for the one use.
    assert_eq!(fading(&w, days(used.last_access, 459)).await, []);
    assert_eq!(sweep(&w, days(used.last_access, 461)).await, 1);
}

pub async fn what_changed_since_it_was_looked_for_is_decided_on_as_it_is(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let memories = [
        chunk(&w, "One").await,
        chunk(&w, "Two").await,
        chunk(&w, "Three").await,
        chunk(&w, "Four").await,
    ];
    let [pinned, gone, superseded, faded] = &memories;
    let now = days(faded.last_access, 200);
    let due = fading(&w, now).await;
    assert_eq!(due.len(), 4);
    let pin = Revision {
        pinned: Some(true),
        ..Revision::default()
    };
    edited(&w, pinned, pin).await;
    w.forget(w.forgetting(gone.id)).await;
    let named = Revision {
        key: Some(tidemark_domain::memory::change::Setting::To(
            "place".to_owned(),
        )),
        ..Revision::default()
    };
    let named = edited(&w, superseded, named).await;
    let newer = Memory {
        key: named.key.clone(),
        valid_from: w.now(),
        ..w.memory("Rome")
    };
    w.remembered(newer).await;
    assert_eq!(fade(&w, w.owner, &due, now).await, 1);
    let states = [pinned, superseded, faded].map(|memory| memory.id);
    let mut found = Vec::new();
    for id in states {
        found.push(row(&w, id).await.state);
    }
    assert_eq!(found, [State::Current, State::Superseded, State::Archived]);
    assert_eq!(fading(&w, now).await, []);
}

pub async fn what_may_have_faded_is_told_in_parts_and_of_everybody(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let other = w.another("other").await;
    let mut expected = Vec::new();
    for n in 0..5 {
        let world = if n % 2 == 0 { &w } else { &other };
        let memory = chunk(world, &format!("Note {n}")).await;
        expected.push((world.owner, memory.id));
    }
    let now = days(w.now(), 400);
    let expired = Memory {
        expires_at: Some(days(w.now(), 300)),
        ..chunk_of(&w, &w.said(w.session().await, "Gone").await)
    };
    w.remembered(expired).await;
    let (mut told, mut after): (Vec<Fading>, _) = (Vec::new(), None);
    loop {
        let part = w.store.fading(now, after, 2).await.unwrap();
        assert!(part.len() <= 2);
        after = part.last().copied();
        if part.is_empty() {
            break;
        }
        told.extend(part);
    }
    assert!(told.is_sorted_by_key(|fading| (fading.at, fading.memory)));
    let told = told.iter().map(|fading| (fading.owner, fading.memory));
    assert_eq!(
        sorted(told.map(|(o, m)| (o.id, m))),
        sorted(expected.iter().map(|(o, m)| (o.id, *m)))
    );
}

pub async fn nobody_archives_memories_of_somebody_else(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let mine = chunk(&w, "Mine").await;
    for stranger in w.strangers().await {
        let now = days(mine.last_access, 200);
        assert_eq!(fade(&w, stranger, &[mine.id], now).await, 0);
    }
    assert_eq!(row(&w, mine.id).await, mine);
}

pub async fn an_import_of_the_past_has_not_faded(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let mut past = w.past(Role::User, "We went to the fair in Bath.");
    past.created_at = days(past.created_at, -3_000);
    let said = w.import(session, vec![past]).await.remove(0);
    let claim = w.claimed(session, JobKind::Index).await;
    let now = w.now();
    let memories = tidemark_domain::memory::episodic::memories(&said, now);
    assert_eq!(memories[0].valid_from, said.created_at);
    let commit = w.index(session, memories.clone()).await;
    w.store.commit_index(&claim, commit).await.unwrap();
    assert_eq!(fading(&w, days(now, 179)).await, []);
    assert_eq!(fading(&w, days(now, 181)).await, [memories[0].id]);
}

pub async fn archiving_is_undone_as_a_whole_and_begins_anew(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let memories = [chunk(&w, "One").await, chunk(&w, "Two").await];
    let now = days(memories[1].last_access, 200);
    assert_eq!(sweep(&w, now).await, 2);
    let change = newest(&w).await;
    let ids = memories.each_ref().map(|memory| memory.id);
    let archived = w.store.memories(w.owner, &ids).await.unwrap();
    let undoing = undo(&change, &archived, &[], now).unwrap();
    let reversal = Reversal {
        reverted: change.id,
        change: w.ids.change(),
        removed: undoing.removed,
        restored: (undoing.restored.into_iter())
            .map(|(seen, put)| (seen, indexed(put)))
            .collect(),
        untaught: None,
        jobs: Vec::new(),
        now,
    };
    w.store.revert(w.owner, reversal).await.unwrap();
    for memory in &memories {
        let back = row(&w, memory.id).await;
        assert_eq!((back.state, back.layer), (State::Current, Layer::Episodic));
        assert_eq!(back.last_access, now);
    }
    assert_eq!(fading(&w, days(now, 179)).await, []);
    assert_eq!(sweep(&w, days(now, 181)).await, 2);
}

pub async fn what_has_faded_and_is_shown_in_a_turn_is_told_again(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let faded = chunk(&w, "The fair was in Bath").await;
    let now = days(faded.last_access, 200);
    assert_eq!(sweep(&w, now).await, 1);
    let by_hand = Revision {
        state: Some(tidemark_domain::memory::change::Standing::Archived),
        ..Revision::default()
    };
    let stated = w.remembered(w.memory("We moved to Bath")).await;
    let unwanted = edited(&w, &stated, by_hand).await;
    let session = w.session().await;
    showing(&w, session, &unwanted, now).await;
    showing(&w, session, &faded, now).await;
    let back = row(&w, faded.id).await;
    assert_eq!((back.state, back.layer), (State::Current, Layer::Episodic));
    assert_eq!((back.access_count, back.last_access), (1, now));
    assert_eq!(row(&w, unwanted.id).await.state, State::Archived);
    let of = w.store.changes_of(w.owner, faded.id).await.unwrap();
    let last = of.last().unwrap();
    assert_eq!(
        (last.kind, last.session_id),
        (ChangeKind::Use, Some(session))
    );
    assert_eq!(last.items[0].op, Op::Restored);
    assert_eq!(last.items[0].version, back.version);
    assert_eq!(w.finds(w.owner, "fair", now).await, [faded.id]);
    assert_eq!(sweep(&w, days(now, 359)).await, 0);
    assert_eq!(sweep(&w, days(now, 361)).await, 1);
}

pub async fn what_was_archived_and_is_given_again_is_the_same_memory(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let said = w.said(w.session().await, "Trains run hourly").await;
    let models = Memory {
        trust: Trust::Assistant,
        confidence: 0.48,
        ..w.learned("Trains run hourly", &[&said])
    };
    let models = w.remembered(models).await;
    let keyed = Memory {
        key: Some("budget".to_owned()),
        trust: Trust::Assistant,
        confidence: 0.48,
        ..w.learned("Our budget is 300k", &[&said])
    };
    let keyed = w.remembered(keyed).await;
    assert_eq!(sweep(&w, days(w.now(), 400)).await, 2);
    for memory in [&models, &keyed] {
        let again = Memory {
            id: w.ids.memory(),
            ..memory.clone()
        };
        let back = w.remembered(again).await;
        assert_eq!(back.id, memory.id);
        assert_eq!((back.state, back.layer), (State::Current, Layer::Semantic));
        assert!(back.confidence > memory.confidence);
        let of = w.store.changes_of(w.owner, memory.id).await.unwrap();
        let ops: Vec<Op> = of.iter().map(|change| change.items[0].op).collect();
        assert_eq!(ops, [Op::Created, Op::Archived, Op::Strengthened]);
    }
    assert_eq!(w.memories().await.len(), 2);
}

pub async fn what_was_archived_and_is_said_again_is_the_same_memory(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "Trains run hourly").await;
    let models = Memory {
        trust: Trust::Assistant,
        confidence: 0.48,
        ..w.learned("Trains run hourly", &[&said])
    };
    let models = w.remembered(models).await;
    let now = days(models.last_access, 400);
    assert_eq!(sweep(&w, now).await, 1);
    let archived = row(&w, models.id).await;
    let identity = consolidation::identity(&archived);
    let known = w
        .store
        .memories_by_identity(w.owner, std::slice::from_ref(&identity))
        .await;
    assert_eq!(known.unwrap(), [(identity, archived.clone())]);
    let again = w.said(session, "Trains run hourly").await;
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let commit = ConsolidationCommit {
        strengthened: vec![Strengthened {
            id: models.id,
            version: archived.version,
            confidence: 0.74,
            sources: vec![source(&again)],
        }],
        now,
        ..w.consolidation(session, Vec::new()).await
    };
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    let back = row(&w, models.id).await;
    assert_eq!((back.state, back.layer), (State::Current, Layer::Semantic));
    assert_eq!((back.last_access, back.sources.len()), (now, 2));
    assert_eq!(fading(&w, days(now, 300)).await, []);
}

pub async fn a_chunk_in_the_archive_does_not_stand_in_the_way_of_a_statement(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "We decided to use Rust").await;
    let chunk = w.remembered(chunk_of(&w, &said)).await;
    let now = days(chunk.last_access, 200);
    assert_eq!(sweep(&w, now).await, 1);
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let statement = w.learned("We decided to use Rust", &[&said]);
    let commit = w.consolidation(session, vec![statement.clone()]).await;
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    assert_eq!(row(&w, statement.id).await, statement);
    let given = w.remembered(w.memory("We decided to use Rust")).await;
    assert_eq!(given.id, statement.id);
    assert_eq!(row(&w, chunk.id).await.state, State::Archived);
}

pub async fn replicas_that_sweep_at_once_archive_each_memory_once(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    for n in 0..8 {
        chunk(&w, &format!("Note {n}")).await;
    }
    let now = days(w.now(), 200);
    let sweeps = futures::future::join_all((0..4).map(|_| sweep(&w, now))).await;
    assert_eq!(sweeps.iter().sum::<u64>(), 8);
    let page = w.store.list_changes(w.owner, None, None, ALL).await;
    let all = page.unwrap().items;
    let archiving = all.iter().filter(|c| c.kind == ChangeKind::Archive);
    assert_eq!(archiving.map(|c| c.items.len()).sum::<usize>(), 8);
}
