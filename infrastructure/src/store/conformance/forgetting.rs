//! Forgetting: what goes, what goes with it, and what is never learned again.

use std::sync::Arc;

use tidemark_application::ports::jobs::JobKind;
use tidemark_application::ports::learning::ConsolidationCommit;
use tidemark_application::ports::memories::{Forgetting, IndexedMemory};
use tidemark_application::ports::sessions::Updated;
use tidemark_application::ports::store::Store;
use tidemark_application::ports::turns::{CloseTurn, CommitTurn};
use tidemark_domain::ids::{MemoryId, SessionId};
use tidemark_domain::memory::{Kind, Memory, Scope, State};
use tidemark_domain::turn::{Turn, TurnStatus};

use super::world::{ALL, World, indexed, later, shown, source, unknown};

/// Applies learning that was decided on while everything was still there.
async fn learn(w: &World, session: SessionId, chunk: &IndexedMemory, fact: &IndexedMemory) {
    let claim = w.claimed(session, JobKind::Index).await;
    let mut commit = w.index(session, Vec::new()).await;
    commit.memories.push(chunk.clone());
    w.store.commit_index(&claim, commit).await.unwrap();
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let commit = ConsolidationCommit {
        new: vec![fact.clone()],
        ..w.consolidation(session, Vec::new()).await
    };
    w.store.commit_consolidation(&claim, commit).await.unwrap();
}

pub async fn what_is_forgotten_is_gone_from_everywhere(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "Answer as tables.").await;
    let preference = Memory {
        scope: Scope::UserProfile,
        kind: Kind::Preference,
        ..w.learned("Answer as tables", &[&said])
    };
    let identity = indexed(preference.clone()).identity;
    let forgotten = w.remembered(preference).await;
    let kept = w.remembered(w.memory("Tables are of wood")).await;
    assert_eq!(w.forget(w.forgetting(forgotten.id)).await, 1);
    let again = w.store.forget(w.owner, w.forgetting(forgotten.id)).await;
    assert_eq!(again.unwrap(), Updated::NotFound);

    let now = later(w.now(), 1);
    assert_eq!(w.memories().await, std::slice::from_ref(&kept));
    assert_eq!(w.memory_row(forgotten.id).await, None);
    let preferences = w.store.preferences(w.owner, now, ALL).await.unwrap();
    assert!(preferences.is_empty());
    let from = w.store.memories_from(w.owner, &[said.id]).await.unwrap();
    assert!(from.is_empty());
    let same = w.store.memories_by_identity(w.owner, &[identity]).await;
    assert!(same.unwrap().is_empty());
    assert_eq!(w.finds(w.owner, "answer tables", now).await, [kept.id]);
}

async fn shows(w: &World, session: SessionId, memories: &[&Memory]) -> Turn {
    let started = w.started(session).await;
    let commit = CommitTurn {
        recalled: memories.iter().copied().map(shown).collect(),
        ..w.commit()
    };
    w.store.commit_turn(started.key, commit).await.unwrap()
}

async fn still_shown(w: &World, turn: &Turn) -> Vec<MemoryId> {
    let row = w.turn_row(turn).await;
    row.recalled.iter().map(|memory| memory.id).collect()
}

pub async fn turns_show_no_longer_what_was_removed_since(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (session, source_session) = (w.session().await, w.session().await);
    let said = w.said(source_session, "I like tea.").await;
    let forgotten = w.remembered(w.memory("Tea")).await;
    let withdrawn = w.remembered(w.learned("Green tea", &[&said])).await;
    let kept = w.remembered(w.memory("Coffee")).await;
    let fresh = w.chunk("I like tea.", &said);
    let turn = shows(&w, session, &[&forgotten, &kept, &withdrawn, &fresh]).await;
    let other = shows(&w, session, &[&kept]).await;
    assert_eq!(still_shown(&w, &turn).await.len(), 4);
    assert_eq!(w.forget(w.forgetting(forgotten.id)).await, 1);
    assert_eq!(
        still_shown(&w, &turn).await,
        [kept.id, withdrawn.id, fresh.id]
    );
    let before_it_is_stored = Forgetting {
        fresh: true,
        ..w.forgetting(fresh.id)
    };
    w.store.forget(w.owner, before_it_is_stored).await.unwrap();
    assert_eq!(still_shown(&w, &turn).await, [kept.id, withdrawn.id]);
    let deleted = w.store.delete_session(w.owner, source_session, true).await;
    assert!(deleted.unwrap().is_some());
    assert_eq!(still_shown(&w, &turn).await, [kept.id]);
    assert_eq!(w.turn_row(&other).await, other);
}

pub async fn a_turn_that_ends_shows_nothing_that_was_removed_while_it_ran(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (session, elsewhere) = (w.session().await, w.session().await);
    let said = w.said(elsewhere, "I like tea.").await;
    let forgotten = w.remembered(w.memory("Tea")).await;
    let kept = w.remembered(w.memory("Coffee")).await;
    let (fresh, unstored) = (w.chunk("I like tea.", &said), w.chunk("Tea!", &said));
    for close in [false, true] {
        let started = w.started(session).await;
        let recalled: Vec<_> = [&forgotten, &kept, &fresh, &unstored].map(shown).into();
        if !close {
            assert_eq!(w.forget(w.forgetting(forgotten.id)).await, 1);
            let wish = Forgetting {
                fresh: true,
                ..w.forgetting(fresh.id)
            };
            w.store.forget(w.owner, wish).await.unwrap();
        }
        let ended = if close {
            let close = CloseTurn {
                recalled,
                ..w.close_with(TurnStatus::Cancelled, Vec::new())
            };
            w.store.close_turn(started.key, close).await
        } else {
            let commit = CommitTurn {
                recalled,
                ..w.commit()
            };
            w.store.commit_turn(started.key, commit).await
        };
        assert_eq!(
            still_shown(&w, &ended.unwrap()).await,
            [kept.id, unstored.id]
        );
    }
}

pub async fn what_was_forgotten_can_be_said_anew(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let old = w.remembered(w.memory("The budget is 400k")).await;
    assert_eq!(w.forget(w.forgetting(old.id)).await, 1);
    let new = w.memory("The budget is 400k");
    assert_eq!(w.remembered(new.clone()).await, new);
    assert_eq!(w.memories().await, [new]);
}

pub async fn only_the_version_that_was_seen_is_forgotten(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea.").await;
    let fact = Memory {
        version: 3,
        ..w.learned("I like tea", &[&said])
    };
    let echo = w.chunk("I like tea, he said.", &said);
    let fact = w.remembered(fact).await;
    let echo = w.remembered(echo).await;
    let learned = [w.chunk("Green tea.", &said), w.learned("Tea", &[&said])].map(indexed);
    let wish = |id, expected| Forgetting {
        expected,
        echoes: vec![echo.id],
        buried: learned
            .iter()
            .map(|item| (said.id, item.identity.clone()))
            .collect(),
        ..w.forgetting(id)
    };
    for (id, expected, outcome) in [
        (fact.id, Some(2), Updated::Stale),
        (fact.id, Some(4), Updated::Stale),
        (MemoryId(unknown()), None, Updated::NotFound),
        (MemoryId(unknown()), Some(1), Updated::NotFound),
    ] {
        let refused = w.store.forget(w.owner, wish(id, expected)).await;
        assert_eq!(refused.unwrap(), outcome);
        assert_eq!(w.memories().await, [echo.clone(), fact.clone()]);
    }
    let [chunk, new] = &learned;
    learn(&w, session, chunk, new).await;
    assert_eq!(
        w.memories().await.len(),
        4,
        "a refusal has buried something"
    );
    assert_eq!(w.forget(wish(fact.id, Some(3))).await, 4);
    assert!(w.memories().await.is_empty());
}

pub async fn echoes_go_with_what_they_echo_and_are_not_learned_again(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea.").await;
    let fact = w.learned("I like tea", &[&said]);
    let echoes = [
        w.chunk("I like tea, he said.", &said),
        w.chunk("Tea!", &said),
    ];
    w.remembered(fact.clone()).await;
    w.remembered(echoes[0].clone()).await;
    w.remembered(echoes[1].clone()).await;
    let kept = w.remembered(w.learned("I like coffee", &[&said])).await;
    let what = Forgetting {
        echoes: vec![
            echoes[0].id,
            echoes[1].id,
            echoes[0].id,
            MemoryId(unknown()),
        ],
        ..w.forgetting(fact.id)
    };
    assert_eq!(w.forget(what).await, 3);
    assert_eq!(w.memories().await, std::slice::from_ref(&kept));

    let same_id = w.chunk("Other words under the same id", &said);
    let same_id = Memory {
        id: echoes[0].id,
        ..same_id
    };
    learn(&w, session, &indexed(same_id), &indexed(fact)).await;
    let same_words = w.learned("I like tea, he said.", &[&said]);
    learn(
        &w,
        session,
        &indexed(w.chunk("Tea!", &said)),
        &indexed(same_words),
    )
    .await;
    assert_eq!(w.memories().await, [kept]);
}

pub async fn what_is_buried_is_never_learned(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea.").await;
    let fact = w.remembered(w.learned("I like tea", &[&said])).await;
    let chunk = indexed(w.chunk("I like tea. Green tea.", &said));
    let new = indexed(w.learned("I like green tea", &[&said]));
    let pair = |item: &IndexedMemory| (said.id, item.identity.clone());
    let what = Forgetting {
        buried: vec![pair(&chunk), pair(&new), pair(&new)],
        ..w.forgetting(fact.id)
    };
    assert_eq!(w.forget(what).await, 1);
    learn(&w, session, &chunk, &new).await;
    assert!(w.memories().await.is_empty());

    let elsewhere = w.said(session, "I like green tea.").await;
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let both = w.learned("I like green tea", &[&said, &elsewhere]);
    let commit = w.consolidation(session, vec![both.clone()]).await;
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    let learned = w.memory_row(both.id).await.unwrap();
    assert_eq!(learned.sources, [source(&elsewhere)]);
}

pub async fn what_was_learned_meanwhile_from_buried_pairs_alone_goes_too(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea.").await;
    let other = w.said(session, "Green tea.").await;
    let fact = w.remembered(w.learned("I like tea", &[&said])).await;
    let chunk = w.remembered(w.chunk("I like tea.", &said)).await;
    let archived = Memory {
        state: State::Archived,
        ..w.learned("I like green tea", &[&said, &other])
    };
    let archived = w.remembered(archived).await;
    let also_elsewhere = w.remembered(w.learned("Tea", &[&said, &other])).await;
    let else_said = w.remembered(w.learned("I like coffee", &[&said])).await;
    let given = w.remembered(w.memory("I like green teas")).await;
    let identity = |memory: &Memory| indexed(memory.clone()).identity;
    assert_eq!(identity(&fact), identity(&chunk));
    let what = Forgetting {
        buried: vec![
            (said.id, identity(&archived)),
            (other.id, identity(&archived)),
            (said.id, identity(&also_elsewhere)),
            (said.id, identity(&given)),
        ],
        ..w.forgetting(fact.id)
    };
    assert_eq!(w.forget(what).await, 3);
    assert_eq!(w.memories().await, [given, else_said, also_elsewhere]);

    let same_id = Memory {
        id: chunk.id,
        ..w.chunk("Other words under the same id", &said)
    };
    learn(&w, session, &indexed(same_id), &indexed(archived)).await;
    assert_eq!(w.memories().await.len(), 3);
}
