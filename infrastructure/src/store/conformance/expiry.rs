//! What has expired is gone.

use std::sync::Arc;

use chrono::TimeDelta;
use tidemark_application::ports::jobs::{JobKind, JobWriteError};
use tidemark_application::ports::learning::{ConsolidationCommit, IndexCommit, Strengthened};
use tidemark_application::ports::memories::Forgetting;
use tidemark_application::ports::sessions::Updated;
use tidemark_application::ports::store::Store;
use tidemark_domain::ids::{Owner, SessionId, Timestamp};
use tidemark_domain::memory::{Kind, Memory, Scope};

use super::world::{ALL, CENTURY, World, indexed, key, later};

/// Whether an owner's memory of this word is found at a time.
async fn finds(w: &World, owner: Owner, word: &str, at: Timestamp) -> bool {
    !w.finds(owner, word, at).await.is_empty()
}

fn moment() -> TimeDelta {
    TimeDelta::microseconds(1)
}

pub async fn no_read_returns_what_has_expired(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let said = w.said(w.session().await, "Answer as tables.").await;
    let preference = |content, expires_at| Memory {
        scope: Scope::UserProfile,
        kind: Kind::Preference,
        expires_at: Some(expires_at),
        ..w.learned(content, &[&said])
    };
    let expires_at = later(w.now(), 1);
    let expired = w.remembered(preference("Tables", expires_at)).await;
    let valid = preference("Lists", later(w.now(), CENTURY));
    let valid = w.remembered(valid).await;
    let before = expires_at - moment();
    assert!(finds(&w, w.owner, "tables", before).await);
    let found = w.store.preferences(w.owner, before, ALL).await.unwrap();
    assert_eq!(found, [valid.clone(), expired.clone()]);

    let left = std::slice::from_ref(&valid);
    let ids = [expired.id, valid.id];
    assert_eq!(w.store.memories(w.owner, &ids).await.unwrap(), left);
    assert_eq!(w.memories().await, left);
    let from = w.store.memories_from(w.owner, &[said.id]).await.unwrap();
    assert_eq!(from, left);
    let identity = |memory: &Memory| indexed(memory.clone()).identity;
    let identities = [identity(&expired), identity(&valid)];
    let same = w.store.memories_by_identity(w.owner, &identities).await;
    assert_eq!(same.unwrap(), [(identity(&valid), valid.clone())]);
    let found = w.store.preferences(w.owner, expires_at, ALL).await;
    assert_eq!(found.unwrap(), left);
    assert!(!finds(&w, w.owner, "tables", expires_at).await);
}

async fn write(w: &World, session: SessionId, way: &str, now: Timestamp) {
    match way {
        "remember" => {
            let stored = w
                .store
                .remember(w.owner, Vec::new(), Vec::new(), w.ids.change(), None, now)
                .await;
            assert!(stored.unwrap().value.is_empty());
        }
        "index" => {
            let claim = w.claimed(session, JobKind::Index).await;
            let commit = w.index(session, Vec::new()).await;
            let commit = IndexCommit { now, ..commit };
            w.store.commit_index(&claim, commit).await.unwrap();
        }
        "consolidate" => {
            let claim = w.claimed(session, JobKind::Consolidate).await;
            let commit = w.consolidation(session, Vec::new()).await;
            let commit = ConsolidationCommit { now, ..commit };
            w.store.commit_consolidation(&claim, commit).await.unwrap();
        }
        _ => {
            let other = w.remembered(w.memory("Something else")).await;
            let what = w.forgetting(other.id);
            // What has expired is not what was forgotten.
            assert_eq!(w.forget(Forgetting { now, ..what }).await, 1);
        }
    }
}

pub async fn each_write_of_memories_deletes_what_has_expired_by_its_time(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let expires_at = later(w.now(), 1);
    let before = expires_at - moment();
    let expiring = || Memory {
        expires_at: Some(expires_at),
        ..w.memory("The budget is 400k")
    };
    let strangers = w.strangers().await;
    for stranger in strangers {
        let items = vec![indexed(expiring())];
        let stored = w
            .store
            .remember(stranger, items, Vec::new(), w.ids.change(), None, w.now())
            .await;
        stored.unwrap();
    }
    for way in ["remember", "index", "consolidate", "forget"] {
        w.remembered(expiring()).await;
        write(&w, session, way, before).await;
        assert!(finds(&w, w.owner, "budget", before).await, "{way}");
        write(&w, session, way, expires_at).await;
        assert!(!finds(&w, w.owner, "budget", before).await, "{way}");
    }
    for stranger in strangers {
        assert!(finds(&w, stranger, "budget", before).await);
    }
}

pub async fn what_has_expired_can_be_learned_anew_but_not_said_again(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "The budget is 400k.").await;
    let expires_at = later(w.now(), 1);
    let expiring = Memory {
        expires_at: Some(expires_at),
        ..w.learned("The budget is 400k", &[&said])
    };
    let expiring = w.remembered(expiring).await;
    let claim = w.claimed(session, JobKind::Consolidate).await;
    let again = ConsolidationCommit {
        strengthened: vec![Strengthened {
            id: expiring.id,
            version: expiring.version,
            confidence: 0.9,
            sources: Vec::new(),
        }],
        now: expires_at,
        ..w.consolidation(session, Vec::new()).await
    };
    let refused = w.store.commit_consolidation(&claim, again).await;
    assert!(matches!(refused, Err(JobWriteError::Conflict)));

    let anew = w.learned("The budget is 400k", &[&said]);
    let commit = w.consolidation(session, vec![anew.clone()]).await;
    let early = ConsolidationCommit {
        now: expires_at - moment(),
        ..commit.clone()
    };
    let refused = w.store.commit_consolidation(&claim, early).await;
    assert!(matches!(refused, Err(JobWriteError::Conflict)));
    let commit = ConsolidationCommit {
        now: expires_at,
        ..commit
    };
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    assert_eq!(w.memories().await, [anew]);
}

pub async fn what_has_expired_can_neither_be_forgotten_nor_told_again(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let expires_at = later(w.now(), 1);
    let expiring = Memory {
        expires_at: Some(expires_at),
        ..w.memory("The budget is 400k")
    };
    let remember = async |now| {
        let items = vec![indexed(expiring.clone())];
        let stored = w.store.remember(
            w.owner,
            items,
            Vec::new(),
            w.ids.change(),
            Some(key("k", 1)),
            now,
        );
        stored.await.unwrap()
    };
    let told = remember(w.now()).await;
    assert_eq!((told.value, told.replayed), (vec![expiring.clone()], false));
    let told = remember(expires_at - moment()).await;
    assert_eq!((told.value, told.replayed), (vec![expiring.clone()], true));
    let told = remember(expires_at).await;
    assert_eq!((told.value, told.replayed), (Vec::new(), true));
    let forget = |now| Forgetting {
        now,
        ..w.forgetting(expiring.id)
    };
    let refused = w.store.forget(w.owner, forget(expires_at)).await;
    assert_eq!(refused.unwrap(), Updated::NotFound);
    assert_eq!(w.forget(forget(expires_at - moment())).await, 1);
}
