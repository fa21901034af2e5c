//! Ends that are final (B13): what ended for good is not reopened by what is said later of its key and taken back.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::TimeDelta;
use tidemark_application::ports::changes::Reversal;
use tidemark_application::ports::store::Store;
use tidemark_domain::ids::{MemoryId, Timestamp};
use tidemark_domain::memory::change::{Op, Revision, Setting, echoed};
use tidemark_domain::memory::{Memory, State};

use super::changes::{edited, editing, newest, ops, reversal, reverted, row, to};
use super::superseding::{budget, day, stored};
use super::world::{World, source};

/// How something comes to be said of the budget, and how it is taken back.
const TAKEN_BACK: [(&str, &str); 7] = [
    ("given", "reverted"),
    ("given", "moved to another key"),
    ("given", "corrected"),
    ("edited", "reverted"),
    ("indexed", "withdrawn"),
    ("indexed", "import reverted"),
    ("consolidated", "reverted"),
];

/// A budget that held from day 0 until day 20, when another took its place, which was forgotten.
async fn ended(w: &World) -> (MemoryId, Timestamp) {
    let old = w.remembered(budget(w, "102k", day(w, 0))).await;
    let new = w.remembered(budget(w, "103k", day(w, 20))).await;
    w.forget(w.forgetting(new.id)).await;
    (old.id, new.valid_from)
}

fn end(
    memory: &Memory,
) -> (
    State,
    Option<Timestamp>,
    Option<MemoryId>,
    Option<Timestamp>,
) {
    (
        memory.state,
        memory.valid_to,
        memory.superseded_by,
        memory.ended_at,
    )
}

fn for_good(
    at: Timestamp,
) -> (
    State,
    Option<Timestamp>,
    Option<MemoryId>,
    Option<Timestamp>,
) {
    (State::Superseded, Some(at), None, Some(at))
}

/// Says a budget since a day.
async fn said(w: &World, how: &str, amount: &str, since: Timestamp) -> MemoryId {
    let claim = budget(w, amount, since);
    if how != "edited" {
        return stored(w, how, claim).await;
    }
    let unkeyed = Memory { key: None, ..claim };
    let unkeyed = w.remembered(unkeyed).await;
    let revision = Revision {
        key: Some(Setting::To("budget".to_owned())),
        ..Revision::default()
    };
    edited(w, editing(w, &unkeyed, revision)).await.id
}

async fn taken_back(w: &World, how: &str, id: MemoryId) {
    let memory = row(w, id).await;
    match how {
        "reverted" => {
            reverted(w, &newest(w).await).await;
        }
        "moved to another key" => {
            let revision = Revision {
                key: Some(Setting::To("limit".to_owned())),
                ..Revision::default()
            };
            edited(w, editing(w, &memory, revision)).await;
        }
        "corrected" => {
            edited(w, editing(w, &memory, to("We met on Monday"))).await;
        }
        "withdrawn" => {
            let session = memory.session_id.unwrap();
            let deleted = w.store.delete_session(w.owner, session, true).await;
            assert!(deleted.unwrap().is_some());
        }
        "import reverted" => {
            let session = memory.session_id.unwrap();
            let page = w.store.list_changes(w.owner, Some(session), None, 100);
            let import = page.await.unwrap().items.pop().unwrap();
            let undone = Reversal {
                removed: Vec::new(),
                untaught: import.range.map(|(from, to)| (session, from, to)),
                ..reversal(w, &import).await
            };
            w.store.revert(w.owner, undone).await.unwrap();
        }
        how => panic!("{how}"),
    }
}

pub async fn what_ended_for_good_stays_so_whatever_is_said_meanwhile_and_taken_back(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    for (at, (comes, goes)) in TAKEN_BACK.into_iter().enumerate() {
        let case = format!("{comes}, {goes}");
        let w = w.another(&format!("user-{at}")).await;
        let (old, end_at) = ended(&w).await;
        assert_eq!(end(&row(&w, old).await), for_good(end_at), "{case}");
        // Between its beginning and its end.
        let sooner = day(&w, 10);
        let meanwhile = said(&w, comes, "111k", sooner).await;
        let shortened = (
            State::Superseded,
            Some(sooner),
            Some(meanwhile),
            Some(end_at),
        );
        assert_eq!(end(&row(&w, old).await), shortened, "{case}");
        taken_back(&w, goes, meanwhile).await;
        assert_eq!(end(&row(&w, old).await), for_good(end_at), "{case}");
        // Nor by what comes after.
        let later = said(&w, comes, "120k", day(&w, 30)).await;
        assert_eq!(end(&row(&w, old).await), for_good(end_at), "{case}");
        taken_back(&w, goes, later).await;
        assert_eq!(end(&row(&w, old).await), for_good(end_at), "{case}");
    }
}

pub async fn an_end_that_was_shortened_for_good_stays_short(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    for (at, goes) in ["forgotten", "expired"].into_iter().enumerate() {
        let w = w.another(&format!("user-{at}")).await;
        let (old, _) = ended(&w).await;
        let sooner = day(&w, 10);
        let soon = w.now() + TimeDelta::hours(1);
        let meanwhile = Memory {
            expires_at: (goes == "expired").then_some(soon),
            ..budget(&w, "111k", sooner)
        };
        let meanwhile = w.remembered(meanwhile).await;
        if goes == "forgotten" {
            w.forget(w.forgetting(meanwhile.id)).await;
        } else {
            let stored =
                w.store
                    .remember(w.owner, Vec::new(), Vec::new(), w.ids.change(), None, soon);
            stored.await.unwrap();
        }
        assert_eq!(w.memory_row(meanwhile.id).await, None);
        assert_eq!(end(&row(&w, old).await), for_good(sooner), "{goes}");
        let again = said(&w, "given", "112k", day(&w, 5)).await;
        taken_back(&w, "reverted", again).await;
        assert_eq!(end(&row(&w, old).await), for_good(sooner), "{goes}");
    }
}

pub async fn what_an_edit_put_aside_for_good_stays_so_whatever_is_taken_back(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    // What it said before the edit.
    let fact = w.remembered(budget(&w, "102k", day(&w, 0))).await;
    let fact = edited(&w, editing(&w, &fact, to("Our budget is 103k"))).await;
    let former = w.store.formers(w.owner, fact.id).await.unwrap().remove(0);
    assert_eq!(end(&former), for_good(fact.valid_from));
    // What said the same as an edited one, of another key.
    let message = w.said(w.session().await, "Our limit is 9").await;
    let echo = Memory {
        sources: vec![source(&message)],
        key: Some("limit".to_owned()),
        valid_from: day(&w, 0),
        ..w.memory("Our limit is 9")
    };
    let echo = w.remembered(echo).await;
    let unkeyed = w.remembered(w.memory("We met on Monday")).await;
    let mut edit = editing(&w, &unkeyed, to("We met on Tuesday"));
    let (as_ended, item) = echoed(&echo, &edit.after.memory, edit.now).unwrap();
    let end_of_echo = as_ended.valid_to.unwrap();
    edit.items.push(item);
    edit.echoes.push((echo.clone(), as_ended));
    edited(&w, edit).await;
    let change = newest(&w).await;
    assert_eq!(end(&row(&w, echo.id).await), for_good(end_of_echo));

    for sooner in [5, 10] {
        let meanwhile = said(&w, "given", "111k", day(&w, sooner)).await;
        let cut = row(&w, former.id).await;
        assert_eq!(cut.superseded_by, Some(meanwhile));
        // The edited one may change what its past shares with it.
        let pinned = Revision {
            pinned: Some(sooner == 5),
            ..Revision::default()
        };
        let seen = row(&w, fact.id).await;
        edited(&w, editing(&w, &seen, pinned)).await;
        let given = w.store.changes_of(w.owner, meanwhile).await.unwrap();
        let given = w.store.change(w.owner, given[0].id).await.unwrap();
        reverted(&w, &given.unwrap()).await;
        assert_eq!(
            end(&row(&w, former.id).await),
            for_good(fact.valid_from),
            "{sooner}"
        );
        let limit = Memory {
            key: echo.key.clone(),
            ..budget(&w, "8", day(&w, sooner))
        };
        let limit = w.remembered(limit).await;
        assert_eq!(row(&w, echo.id).await.superseded_by, Some(limit.id));
        reverted(&w, &newest(&w).await).await;
        assert_eq!(end(&row(&w, echo.id).await), for_good(end_of_echo));
    }
    // Undone, the edit gives back what it put aside.
    reverted(&w, &change).await;
    assert_eq!(
        end(&row(&w, echo.id).await),
        (State::Current, None, None, None)
    );
}

fn keyless() -> Revision {
    Revision {
        key: Some(Setting::Nothing),
        ..Revision::default()
    }
}

pub async fn what_leaves_its_key_leaves_ended_what_it_had_ended(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let first = w.remembered(budget(&w, "300k", day(&w, 0))).await.id;
    let second = w.remembered(budget(&w, "400k", day(&w, 10))).await;
    let third = w.remembered(budget(&w, "500k", day(&w, 20))).await;
    let (since_second, since_third) = (second.valid_from, third.valid_from);
    let (second, third) = (second.id, third.id);
    let ends = [row(&w, first).await, row(&w, second).await].map(|memory| end(&memory));
    let to_another = Revision {
        key: Some(Setting::To("limit".to_owned())),
        ..Revision::default()
    };
    let until_third = (State::Superseded, Some(since_third), Some(third), None);
    let holds = (State::Current, None, None, None);
    for (id, revision, of_first, of_second) in [
        (third, keyless(), ends[0], for_good(since_third)),
        // By words that say more.
        (
            third,
            to("Our budget is 500k. The board has agreed."),
            ends[0],
            for_good(since_third),
        ),
        (second, keyless(), for_good(since_second), ends[1]),
        // Corrections: what they said never was so.
        (third, to_another.clone(), ends[0], holds),
        (third, to("We met on Monday"), ends[0], holds),
        (second, to_another, until_third, ends[1]),
    ] {
        let seen = row(&w, id).await;
        let case = format!("{revision:?}");
        let edit = editing(&w, &seen, revision);
        let releases = edit.releases;
        let after = edited(&w, edit).await;
        assert_ne!(after.key, seen.key, "{case}");
        assert_eq!(end(&row(&w, first).await), of_first, "{case}");
        let now = row(&w, second).await;
        if id == third {
            assert_eq!(end(&now), of_second, "{case}");
            assert_eq!(now.key, seen.key, "{case}");
            let what_became = if releases { Op::Closed } else { Op::Reopened };
            let change = newest(&w).await;
            assert_eq!(
                ops(&change),
                HashSet::from([(third, Op::Updated), (second, what_became)]),
                "{case}"
            );
        }
        reverted(&w, &newest(&w).await).await;
        assert_eq!(row(&w, id).await.key, seen.key, "{case}");
        assert_eq!(row(&w, id).await.content, seen.content, "{case}");
        let again = [row(&w, first).await, row(&w, second).await].map(|memory| end(&memory));
        assert_eq!(again, ends, "{case}");
        assert_eq!(row(&w, third).await.state, State::Current, "{case}");
    }
}

pub async fn what_left_its_key_and_is_gone_gives_nothing_back(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let old = w.remembered(budget(&w, "300k", day(&w, 0))).await.id;
    let new = w.remembered(budget(&w, "400k", day(&w, 10))).await;
    edited(&w, editing(&w, &new, keyless())).await;
    let change = newest(&w).await;
    w.forget(w.forgetting(new.id)).await;
    assert_eq!(end(&row(&w, old).await), for_good(new.valid_from));
    let kept = w.store.change(w.owner, change.id).await.unwrap().unwrap();
    reverted(&w, &kept).await;
    assert_eq!(end(&row(&w, old).await), for_good(new.valid_from));
    // Of what is on its key again the end is no longer in doubt either.
    let next = w.remembered(budget(&w, "500k", day(&w, 30))).await;
    assert_eq!(next.state, State::Current);
    let off = edited(&w, editing(&w, &next, keyless())).await;
    let revision = Revision {
        key: Some(Setting::To("budget".to_owned())),
        ..Revision::default()
    };
    edited(&w, editing(&w, &off, revision)).await;
    assert_eq!(end(&row(&w, old).await), for_good(new.valid_from));
}
