//! Whom data belongs to.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::join_all;
use tidemark_application::ports::memories::{ChangePosition, MemoryFilter};
use tidemark_application::ports::store::Store;
use tidemark_domain::ids::{MemoryId, MessageId, Owner, SessionId, TenantId, TurnId, UserName};

use super::world::{ALL, World, later};

pub async fn a_migrated_store_is_ready(store: Arc<dyn Store>) {
    store.ready().await.unwrap();
}

pub async fn the_same_name_is_the_same_owner(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let again = w.owner_named(TenantId::DEFAULT, "default").await;
    assert_eq!(again, w.owner);
    assert_eq!(again.tenant, TenantId::DEFAULT);
}

pub async fn another_name_or_tenant_is_another_owner(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let elsewhere = TenantId(w.ids.uuid());
    let owners = [
        w.owner,
        w.owner_named(TenantId::DEFAULT, "Ann").await,
        w.owner_named(TenantId::DEFAULT, "ann").await,
        w.owner_named(TenantId::DEFAULT, "ann@example.org:1_2-3")
            .await,
        w.owner_named(elsewhere, "default").await,
        w.owner_named(elsewhere, "ann").await,
    ];
    let distinct: HashSet<_> = owners.into_iter().collect();
    assert_eq!(distinct.len(), owners.len());
}

pub async fn many_first_sights_at_once_make_one_owner(store: Arc<dyn Store>) {
    let name: UserName = "newcomer".parse().unwrap();
    let seen = join_all((0..16).map(|_| store.resolve_owner(TenantId::DEFAULT, &name))).await;
    let distinct: HashSet<_> = seen.into_iter().map(Result::unwrap).collect();
    assert_eq!(distinct.len(), 1);
}

pub async fn a_number_means_nothing_in_another_tenant(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "The budget is 400k.").await;
    let turn = w.completed(session).await;
    let memory = w
        .remembered(w.learned("The budget is 400k", &[&said]))
        .await;
    let elsewhere = Owner {
        tenant: w.strangers().await[1].tenant,
        ..w.owner
    };
    sees_nothing(&w, elsewhere, session, turn.id, (said.id, memory.id)).await;
}

pub async fn nobody_has_anything(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "The budget is 400k.").await;
    let turn = w.completed(session).await;
    let memory = w
        .remembered(w.learned("The budget is 400k", &[&said]))
        .await;
    for tenant in [w.owner.tenant, w.strangers().await[1].tenant] {
        let nobody = Owner::nobody(tenant);
        assert!(w.owner != nobody && w.owner.id.0 > 0);
        sees_nothing(&w, nobody, session, turn.id, (said.id, memory.id)).await;
        let all = w.store.list_changes(nobody, None, None, ALL).await;
        assert!(all.unwrap().items.is_empty());
        let index = w
            .store
            .index_delta(nobody, ChangePosition::START, ALL, &[])
            .await;
        assert!(index.unwrap().delta.upserts.is_empty());
        let preferences = w.store.preferences(nobody, w.now(), ALL).await;
        assert!(preferences.unwrap().is_empty());
        assert_eq!(w.store.open_turns(nobody, None).await.unwrap(), []);
    }
}

/// Whoever has nothing finds nothing of what another has.
async fn sees_nothing(
    w: &World,
    elsewhere: Owner,
    session: SessionId,
    turn: TurnId,
    (said, memory): (MessageId, MemoryId),
) {
    let (s, now) = (&w.store, later(w.now(), 1));
    assert_eq!(s.session(elsewhere, session).await.unwrap(), None);
    assert_eq!(s.messages(elsewhere, session, 0, 9).await.unwrap(), None);
    assert_eq!(s.turn(elsewhere, turn).await.unwrap(), None);
    let sessions = s.list_sessions(elsewhere, None, None, ALL).await;
    assert!(sessions.unwrap().items.is_empty());
    let history = s.history(elsewhere, session, None, ALL).await.unwrap();
    assert!(history.is_empty());
    assert!(s.memories(elsewhere, &[memory]).await.unwrap().is_empty());
    let filter = MemoryFilter::default();
    let memories = s.list_memories(elsewhere, &filter, None, ALL).await;
    assert!(memories.unwrap().items.is_empty());
    let from = s.memories_from(elsewhere, &[said]).await.unwrap();
    assert!(from.is_empty());
    assert!(w.finds(elsewhere, "budget", now).await.is_empty());
    assert_eq!(s.memory_change(elsewhere).await.unwrap(), 0);
    assert!(s.unindexed(elsewhere, ALL).await.unwrap().is_empty());
    let taught = s.taught_messages(elsewhere, session, 0, 9, ALL).await;
    assert!(taught.unwrap().is_empty());
    let snapshot = s.learning_snapshot(elsewhere, session).await.unwrap();
    assert!(snapshot.is_none());
}
