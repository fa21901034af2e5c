//! Changes of what is remembered: edits, lists of what was done, and undoing as a whole.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::TimeDelta;
use tidemark_application::ports::changes::{Edit, Reversal, RevertError};
use tidemark_application::ports::jobs::JobKind;
use tidemark_application::ports::memories::{ChangePosition, MemoryFilter};
use tidemark_application::ports::sessions::Updated;
use tidemark_application::ports::store::{Cursor, Store};
use tidemark_domain::ids::{MemoryId, SessionId};
use tidemark_domain::memory::change::{
    Change, ChangeKind, Item, Op, Revision, Setting, echoed, former, leaves_its_key, revise, undo,
};
use tidemark_domain::memory::{Memory, State, Trust};
use tidemark_domain::session::Role;

use super::world::{ALL, World, indexed, source};

fn keyed(w: &World, content: &str, days_ago: i64) -> Memory {
    Memory {
        key: Some("budget".to_owned()),
        valid_from: w.now() - TimeDelta::days(days_ago),
        ..w.memory(content)
    }
}

pub(super) fn to(content: &str) -> Revision {
    Revision {
        content: Some(content.to_owned()),
        ..Revision::default()
    }
}

pub(super) fn editing(w: &World, before: &Memory, revision: Revision) -> Edit {
    let now = w.now();
    let asked = revision.clone();
    let after = revise(before, revision, now);
    let former = former(before, &after, w.ids.memory());
    Edit {
        releases: leaves_its_key(before, &asked, &after),
        items: vec![Item::changed(before, &after, Op::Updated)],
        former: former.map(indexed),
        before: before.clone(),
        after: indexed(after),
        echoes: Vec::new(),
        buried: Vec::new(),
        jobs: Vec::new(),
        change: w.ids.change(),
        now,
    }
}

pub(super) async fn edited(w: &World, edit: Edit) -> Memory {
    match w.store.edit_memory(w.owner, edit).await.unwrap() {
        Updated::Done(memory) => memory,
        refused => panic!("{refused:?}"),
    }
}

async fn changes(w: &World, session: Option<SessionId>) -> Vec<Change> {
    let page = w.store.list_changes(w.owner, session, None, ALL).await;
    page.unwrap().items
}

pub(super) async fn newest(w: &World) -> Change {
    changes(w, None).await.remove(0)
}

pub(super) async fn row(w: &World, id: MemoryId) -> Memory {
    w.memory_row(id).await.unwrap()
}

/// How a change is undone as things stand.
pub(super) async fn reversal(w: &World, change: &Change) -> Reversal {
    let touched: Vec<MemoryId> = change.items.iter().map(|item| item.memory).collect();
    let now = w.store.memories(w.owner, &touched).await.unwrap();
    let later = w.store.later_items(w.owner, change.id, &touched).await;
    let undoing = undo(change, &now, &later.unwrap(), w.now()).unwrap();
    Reversal {
        reverted: change.id,
        change: w.ids.change(),
        removed: undoing.removed,
        restored: (undoing.restored.into_iter())
            .map(|(seen, put)| (seen, indexed(put)))
            .collect(),
        untaught: None,
        jobs: Vec::new(),
        now: w.now(),
    }
}

pub(super) async fn reverted(w: &World, change: &Change) -> Change {
    let reversal = reversal(w, change).await;
    w.store.revert(w.owner, reversal).await.unwrap()
}

pub(super) fn ops(change: &Change) -> HashSet<(MemoryId, Op)> {
    change.items.iter().map(|i| (i.memory, i.op)).collect()
}

pub async fn an_edit_is_a_new_version_that_is_found_by_its_words(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let old = w.remembered(w.memory("The office is in Paris")).await;
    let revision = Revision {
        importance: Some(5),
        pinned: Some(true),
        ..to("The office is in Rome")
    };
    let new = edited(&w, editing(&w, &old, revision)).await;
    assert_eq!(new, row(&w, old.id).await);
    assert_eq!(
        (new.content.as_str(), new.importance, new.pinned),
        ("The office is in Rome", 5, true)
    );
    assert_eq!(new.version, old.version + 1);
    assert_eq!(w.finds(w.owner, "Rome", w.now()).await, [old.id]);
    assert_eq!(w.finds(w.owner, "Paris", w.now()).await, []);
    let change = newest(&w).await;
    assert_eq!(change.kind, ChangeKind::Edit);
    assert_eq!(ops(&change), HashSet::from([(old.id, Op::Updated)]));
    assert_eq!(change.items[0].before["content"], "The office is in Paris");
    assert_eq!(change.items[0].after["content"], "The office is in Rome");
    let of = w.store.changes_of(w.owner, old.id).await.unwrap();
    let kinds: Vec<ChangeKind> = of.iter().map(|c| c.kind).collect();
    assert_eq!(kinds, [ChangeKind::Add, ChangeKind::Edit]);
}

pub async fn an_edit_of_what_has_moved_or_is_not_there_changes_nothing(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let old = w.remembered(w.memory("The office is in Paris")).await;
    let late = editing(&w, &old, to("The office is in Oslo"));
    let mut foreign = editing(&w, &old, to("Not mine"));
    foreign.change = w.ids.change();
    let new = edited(&w, editing(&w, &old, to("The office is in Rome"))).await;
    let outcome = w.store.edit_memory(w.owner, late).await.unwrap();
    assert_eq!(outcome, Updated::Stale);
    for stranger in w.strangers().await {
        let outcome = w.store.edit_memory(stranger, foreign.clone()).await;
        assert_eq!(outcome.unwrap(), Updated::NotFound);
    }
    assert_eq!(row(&w, old.id).await, new);
    assert_eq!(changes(&w, None).await.len(), 2);
    // Nor if it said the same as something that has moved.
    let message = w.said(w.session().await, "We are in Rome").await;
    let echo = w.chunk("We are in Rome", &message);
    let echo = w.remembered(echo).await;
    let mut edit = editing(&w, &new, to("The office is in Bern"));
    let (ended, item) = echoed(&echo, &edit.after.memory, edit.now).unwrap();
    edit.items.push(item);
    edit.echoes.push((echo.clone(), ended));
    let moved = edited(
        &w,
        editing(
            &w,
            &echo,
            Revision {
                importance: Some(1),
                ..Revision::default()
            },
        ),
    );
    moved.await;
    let outcome = w.store.edit_memory(w.owner, edit).await.unwrap();
    assert_eq!(outcome, Updated::Stale);
    assert_eq!(row(&w, new.id).await, new);
}

pub async fn what_an_edit_says_of_a_key_ends_what_was_said_of_it(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let other = w.remembered(w.memory("The limit is 400k")).await;
    let known = w.remembered(keyed(&w, "Our budget is 300k", 10)).await;
    let revision = Revision {
        key: Some(Setting::To("budget".to_owned())),
        ..Revision::default()
    };
    edited(&w, editing(&w, &other, revision)).await;
    let ended = row(&w, known.id).await;
    assert_eq!(ended.state, State::Superseded);
    assert_eq!(ended.superseded_by, Some(other.id));
    let by = w.store.ended_by(w.owner, other.id).await.unwrap();
    assert_eq!(by, [ended]);
    let change = newest(&w).await;
    assert_eq!(
        ops(&change),
        HashSet::from([(other.id, Op::Updated), (known.id, Op::Superseded)])
    );
    reverted(&w, &change).await;
    let again = row(&w, known.id).await;
    assert_eq!((again.state, again.valid_to), (State::Current, None));
    assert_eq!(row(&w, other.id).await.key, None);
}

pub async fn what_a_fact_said_before_it_was_edited_is_believed_as_of_then(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let mut fact = w.remembered(keyed(&w, "Our budget is 300k", 10)).await;
    let mut moments = vec![fact.valid_from];
    for content in ["Our budget is 400k", "Our budget is 500k"] {
        fact = edited(&w, editing(&w, &fact, to(content))).await;
        moments.push(fact.valid_from);
    }
    let said = |as_of: Option<_>, state: Option<State>| {
        let filter = MemoryFilter {
            key: fact.key.clone(),
            as_of,
            state,
            ..MemoryFilter::default()
        };
        let store = Arc::clone(&w.store);
        let owner = w.owner;
        async move {
            let page = store.list_memories(owner, &filter, None, 10).await.unwrap();
            let found = page.items.into_iter();
            found.map(|memory| memory.content).collect::<Vec<_>>()
        }
    };
    for (moment, content) in moments.into_iter().zip(["300k", "400k", "500k"]) {
        assert_eq!(
            said(Some(moment), None).await,
            [format!("Our budget is {content}")]
        );
    }
    assert_eq!(
        said(None, Some(State::Current)).await,
        ["Our budget is 500k"]
    );

    // Undone, the edit leaves nothing of it.
    let change = newest(&w).await;
    reverted(&w, &change).await;
    assert_eq!(
        said(None, Some(State::Current)).await,
        ["Our budget is 400k"]
    );
    let formers = w.store.formers(w.owner, fact.id).await.unwrap();
    let of_formers: Vec<_> = formers
        .iter()
        .map(|m| (m.content.as_str(), m.state))
        .collect();
    assert_eq!(of_formers, [("Our budget is 300k", State::Superseded)]);

    // Off its key, it leaves what it said before where it was; and they expire together.
    let expires_at = Some(w.now() + TimeDelta::days(1));
    let revision = Revision {
        content: Some("It depends on the project".to_owned()),
        key: Some(Setting::Nothing),
        expires_at: expires_at.map(Setting::To),
        ..Revision::default()
    };
    let before = row(&w, fact.id).await;
    edited(&w, editing(&w, &before, revision)).await;
    assert_eq!(said(None, Some(State::Current)).await, [""; 0]);
    for former in w.store.formers(w.owner, fact.id).await.unwrap() {
        assert_eq!(
            (former.state, former.expires_at),
            (State::Superseded, expires_at)
        );
    }

    // Forgotten, it takes along what it said before, and no index finds either.
    w.forget(w.forgetting(fact.id)).await;
    let all = MemoryFilter::default();
    let left = w
        .store
        .list_memories(w.owner, &all, None, 10)
        .await
        .unwrap();
    assert_eq!(left.items, []);
    let from = ChangePosition::START;
    let index = w.store.index_delta(w.owner, from, 100, &[]).await.unwrap();
    assert!(index.delta.upserts.is_empty());
}

pub async fn what_a_fact_said_before_is_forgotten_by_itself_for_good(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let fact = w.remembered(keyed(&w, "Our budget is 300k", 10)).await;
    edited(&w, editing(&w, &fact, to("Our budget is 400k"))).await;
    let change = newest(&w).await;
    let former = w.store.formers(w.owner, fact.id).await.unwrap().remove(0);
    w.forget(w.forgetting(former.id)).await;
    assert!(!format!("{:?}", changes(&w, None).await).contains("300k"));
    let kept = w.store.change(w.owner, change.id).await.unwrap().unwrap();
    reverted(&w, &kept).await;
    assert_eq!(row(&w, fact.id).await.content, "Our budget is 400k");
    assert_eq!(w.memories().await.len(), 1);
}

pub async fn an_edit_that_is_undone_leaves_its_message_to_teach(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let message = w.said(session, "Our budget is 300k. My name is Bo.").await;
    let taught = |content| Memory {
        sources: vec![source(&message)],
        trust: Trust::Assistant,
        ..keyed(&w, content, 10)
    };
    let fact = w.remembered(taught("Our budget is 300k")).await;
    let mut name = taught("My name is Bo");
    name.key = Some("name".to_owned());
    let name = w.remembered(name).await;
    let new = edited(&w, editing(&w, &fact, to("Our budget is 400k"))).await;
    assert_eq!(new.trust, Trust::User);
    let change = newest(&w).await;
    reverted(&w, &change).await;
    w.forget(w.forgetting(name.id)).await;
    assert_eq!(row(&w, fact.id).await.state, State::Current);
}

pub async fn messages_do_not_teach_again_what_an_edit_has_buried(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let message = w.said(session, "The office is in Paris").await;
    let claim = w.claimed(session, JobKind::Index).await;
    let chunk = w.chunk("The office is in Paris", &message);
    let commit = w.index(session, vec![chunk.clone()]).await;
    w.store.commit_index(&claim, commit).await.unwrap();
    let stored = row(&w, chunk.id).await;
    let mut edit = editing(&w, &stored, to("The office is in Rome"));
    edit.buried = vec![(message.id, indexed(stored.clone()).identity)];
    edited(&w, edit).await;
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let learned = w.learned("The office is in Paris", &[&message]);
    let commit = w.consolidation(session, vec![learned]).await;
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    let contents: Vec<String> = w.memories().await.into_iter().map(|m| m.content).collect();
    assert_eq!(contents, ["The office is in Rome"]);
}

pub async fn a_reverted_change_leaves_what_was_before_it(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let old = w.remembered(keyed(&w, "Our budget is 300k", 10)).await;
    let new = w.remembered(keyed(&w, "Our budget is 400k", 5)).await;
    assert_eq!(row(&w, old.id).await.state, State::Superseded);
    let change = newest(&w).await;
    let undone = reverted(&w, &change).await;
    assert_eq!(undone.kind, ChangeKind::Revert);
    assert_eq!(undone.reverts, Some(change.id));
    assert_eq!(
        ops(&undone),
        HashSet::from([(new.id, Op::Removed), (old.id, Op::Reopened)])
    );
    assert_eq!(w.memory_row(new.id).await, None);
    let again = row(&w, old.id).await;
    assert_eq!(
        (again.state, again.valid_to, again.superseded_by),
        (State::Current, None, None)
    );
    assert_eq!(w.finds(w.owner, "budget", w.now()).await, [old.id]);
    let marked = w.store.change(w.owner, change.id).await.unwrap().unwrap();
    assert_eq!(marked.reverted_by, Some(undone.id));
    // An edit gets its words back.
    let edit = editing(&w, &again, to("Our budget is 350k"));
    edited(&w, edit).await;
    reverted(&w, &newest(&w).await).await;
    let restored = row(&w, old.id).await;
    assert_eq!(restored.content, "Our budget is 300k");
    assert_eq!(restored.valid_from, old.valid_from);
    assert!(restored.version > again.version);
}

pub async fn what_a_reverted_change_had_learned_is_never_learned_again(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let message = w.said(session, "I like tea").await;
    let learned = w.learned("The person likes tea", &[&message]);
    let commit = w.consolidation(session, vec![learned.clone()]).await;
    let range = (commit.from_seq, commit.to_seq);
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    let change = changes(&w, Some(session)).await.remove(0);
    assert_eq!(change.kind, ChangeKind::Consolidation);
    assert_eq!(change.range, Some(range));
    reverted(&w, &change).await;
    assert_eq!(w.memories().await, []);
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let again = Memory {
        id: w.ids.memory(),
        ..learned
    };
    let commit = w.consolidation(session, vec![again]).await;
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    assert_eq!(w.memories().await, []);
}

pub async fn a_change_is_undone_once_and_as_a_whole(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let items = ["One", "Two"].map(|content| indexed(w.memory(content)));
    let [one, two] = items.clone().map(|item| item.memory.id);
    let id = w.ids.change();
    let stored = w
        .store
        .remember(w.owner, items.to_vec(), Vec::new(), id, None, w.now());
    stored.await.unwrap();
    let change = w.store.change(w.owner, id).await.unwrap().unwrap();
    assert_eq!(
        ops(&change),
        HashSet::from([(one, Op::Created), (two, Op::Created)])
    );
    let stale = reversal(&w, &change).await;
    let seen = row(&w, two).await;
    edited(&w, editing(&w, &seen, to("Three"))).await;
    let outcome = w.store.revert(w.owner, stale).await;
    assert!(matches!(outcome, Err(RevertError::Conflict)), "{outcome:?}");
    assert_eq!(w.memories().await.len(), 2);
    reverted(&w, &newest(&w).await).await;
    let first = reversal(&w, &change).await;
    let mut second = first.clone();
    second.change = w.ids.change();
    let undone = w.store.revert(w.owner, first).await.unwrap();
    let outcome = w.store.revert(w.owner, second.clone()).await;
    assert!(
        matches!(outcome, Err(RevertError::Already(by)) if by == undone.id),
        "{outcome:?}"
    );
    assert_eq!(w.memories().await, []);
    second.reverted = w.ids.change();
    let outcome = w.store.revert(w.owner, second.clone()).await;
    assert!(matches!(outcome, Err(RevertError::NotFound)), "{outcome:?}");
    for stranger in w.strangers().await {
        second.reverted = change.id;
        let outcome = w.store.revert(stranger, second.clone()).await;
        assert!(matches!(outcome, Err(RevertError::NotFound)), "{outcome:?}");
    }
}

pub async fn an_import_is_undone_with_all_that_it_taught(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let known = w.remembered(keyed(&w, "Our budget is 300k", 10)).await;
    let session = w.session().await;
    let past = ["We raised the budget to 400k", "Tea at five"];
    let past = past.map(|content| w.past(Role::User, content)).to_vec();
    let messages = w.import_with(session, past, &[JobKind::Index]).await;
    let import = newest(&w).await;
    assert_eq!(
        (import.kind, import.range),
        (ChangeKind::Import, Some((0, 2)))
    );
    assert_eq!(import.session_id, Some(session));
    assert_eq!(import.items, []);
    let claim = w.claim().await.unwrap();
    let budget = Memory {
        key: Some("budget".to_owned()),
        ..w.chunk("We raised the budget to 400k", &messages[0])
    };
    let tea = w.chunk("Tea at five", &messages[1]);
    let commit = w.index(session, vec![budget.clone(), tea.clone()]).await;
    w.store.commit_index(&claim, commit).await.unwrap();
    assert_eq!(row(&w, known.id).await.state, State::Superseded);
    let import = w.store.change(w.owner, import.id).await.unwrap().unwrap();
    assert_eq!(
        ops(&import),
        HashSet::from([(budget.id, Op::Created), (tea.id, Op::Created)])
    );
    let epoch = w.snapshot(session).await.erase_epoch;
    let undone = Reversal {
        removed: Vec::new(),
        untaught: Some((session, 0, 2)),
        ..reversal(&w, &import).await
    };
    w.store.revert(w.owner, undone).await.unwrap();
    assert_eq!(row(&w, known.id).await.state, State::Current);
    assert_eq!(w.memories().await.len(), 1);
    // Work that has read the messages before has to look again, and sees that they teach nothing.
    assert!(w.snapshot(session).await.erase_epoch > epoch);
    let taught = w.store.taught_messages(w.owner, session, 0, 2, ALL).await;
    let learnable: Vec<bool> = (taught.unwrap().iter())
        .map(|taught| taught.message.learnable)
        .collect();
    assert!(
        learnable.iter().all(|learnable| !learnable),
        "{learnable:?}"
    );
}

pub async fn changes_are_listed_newest_first_in_parts_and_by_session(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    for n in 0..5 {
        let given = Memory {
            session_id: (n % 2 == 0).then_some(session),
            ..w.memory(&format!("Note {n}"))
        };
        w.remembered(given).await;
    }
    let all = changes(&w, None).await;
    assert_eq!(all.len(), 5);
    assert!(all.is_sorted_by_key(|c| std::cmp::Reverse((c.created_at, c.id))));
    assert_eq!(changes(&w, Some(session)).await.len(), 3);
    let mut parts = Vec::new();
    let mut after = None;
    loop {
        let page = w.store.list_changes(w.owner, None, after, 2).await.unwrap();
        parts.extend(page.items);
        let last = parts.last().unwrap();
        after = Some(Cursor {
            at: last.created_at,
            id: last.id.0,
        });
        if !page.more {
            break;
        }
    }
    assert_eq!(parts, all);
    for stranger in w.strangers().await {
        let page = w.store.list_changes(stranger, None, None, ALL).await;
        assert_eq!(page.unwrap().items, []);
        let found = w.store.change(stranger, all[0].id).await.unwrap();
        assert_eq!(found, None);
        let memory = all[0].items[0].memory;
        let of = w.store.changes_of(stranger, memory).await.unwrap();
        assert_eq!(of, []);
    }
}

pub async fn no_change_keeps_the_words_of_what_is_gone(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let old = w.remembered(w.memory("The office is in Paris")).await;
    edited(&w, editing(&w, &old, to("The office is in Rome"))).await;
    w.forget(w.forgetting(old.id)).await;
    let all = changes(&w, None).await;
    let kinds: Vec<ChangeKind> = all.iter().map(|c| c.kind).collect();
    assert_eq!(
        kinds,
        [ChangeKind::Forget, ChangeKind::Edit, ChangeKind::Add]
    );
    for item in all.iter().flat_map(|change| &change.items) {
        assert_eq!(item.memory, old.id);
        assert!(item.before.is_empty() && item.after.is_empty(), "{item:?}");
    }
}
