//! Which messages recall must cover because they are committed and not yet indexed.

use std::sync::Arc;

use tidemark_application::ports::sessions::ImportedMessage;
use tidemark_application::ports::store::Store;
use tidemark_application::ports::turns::AcceptTurn;
use tidemark_domain::ids::MessageId;
use tidemark_domain::session::{MemoryMode, Role};
use tidemark_domain::turn::TurnStatus;

use super::world::{ALL, World, message_ids, sorted};

/// Ids of the messages that recall must cover because they are not indexed yet.
async fn unindexed(w: &World) -> Vec<MessageId> {
    let found = w.store.unindexed(w.owner, ALL).await.unwrap();
    sorted(message_ids(&found))
}

pub async fn what_is_committed_and_not_yet_indexed_is_told(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (a, b) = (w.session().await, w.session().await);
    let mut expected = message_ids(&[w.said(b, "Imported.").await]);
    for status in [TurnStatus::Failed, TurnStatus::Interrupted] {
        w.ended(a, status).await;
    }
    w.completed(a).await;
    expected.extend(message_ids(&w.history(a).await));
    let muted = ImportedMessage {
        learnable: false,
        ..w.past(Role::User, "Not this.")
    };
    w.import(b, vec![muted]).await;
    w.ended(a, TurnStatus::Cancelled).await;
    let off = AcceptTurn {
        memory: Some(MemoryMode::ReadOnly),
        ..w.turn(a)
    };
    w.store.accept_turn(off).await.unwrap();
    let started = w.start(a).await.unwrap();
    let mut commit = w.commit();
    commit.answer.learnable = false;
    w.store.commit_turn(started.key, commit).await.unwrap();
    let running = w.started(a).await;
    w.store
        .append_step(running.key, vec![w.answer("Let me see.")], w.now())
        .await
        .unwrap();
    assert_eq!(unindexed(&w).await, sorted(expected));
}

pub async fn unindexed_messages_are_the_newest_and_whole(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (a, b) = (w.session().await, w.session().await);
    let mut all = Vec::new();
    for session in [a, b, a, b] {
        all.push(w.said(session, "The budget is 400k.").await);
    }
    let newest = w.store.unindexed(w.owner, 2).await.unwrap();
    assert_eq!(newest.len(), 2);
    assert!(newest.contains(&all[2]) && newest.contains(&all[3]));
}

pub async fn what_is_indexed_is_no_longer_told(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (a, b) = (w.session().await, w.session().await);
    w.said(a, "Indexed.").await;
    let left = w.said(b, "Not indexed.").await;
    w.index_all(a).await;
    let new = w.said(a, "New.").await;
    assert_eq!(unindexed(&w).await, sorted([left.id, new.id]));
    for stranger in w.strangers().await {
        assert!(w.store.unindexed(stranger, ALL).await.unwrap().is_empty());
    }
}
