//! Tenants and their API keys.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::join_all;
use tidemark_application::ports::keys::{StoredKey, Tenant};
use tidemark_application::ports::store::Store;
use tidemark_domain::identity::PassSecret;
use tidemark_domain::ids::{KeyId, TenantId, TenantName};

use super::world::{World, later};

pub async fn the_default_tenant_is_there_and_others_are_made_once(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let default = TenantName::default_tenant();
    let found = w.store.find_tenant(&default).await.unwrap();
    assert_eq!(found, Some(TenantId::DEFAULT));
    let acme: TenantName = "acme".parse().unwrap();
    assert_eq!(w.store.find_tenant(&acme).await.unwrap(), None);
    let made = join_all((0..8).map(|_| {
        let fresh = TenantId(w.ids.uuid());
        w.store.make_tenant(&acme, fresh, w.now())
    }));
    let made: Vec<Tenant> = made.await.into_iter().map(Result::unwrap).collect();
    let distinct: HashSet<TenantId> = made.iter().map(|tenant| tenant.id).collect();
    assert_eq!(distinct.len(), 1);
    assert_eq!(w.store.find_tenant(&acme).await.unwrap(), Some(made[0].id));
    // Names differ by the case of their letters.
    let other = w.tenant("Acme").await;
    assert_ne!(other.id, made[0].id);
    let all = w.store.tenants().await.unwrap();
    let names: Vec<&str> = all.iter().map(|tenant| tenant.name.as_str()).collect();
    assert_eq!(names, ["Acme", "acme", "default"]);
    assert_eq!(all[1], made[0]);
    assert_eq!(all[2].id, TenantId::DEFAULT);
}

pub async fn a_key_is_found_by_its_id_alone_as_it_was_stored(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let tenant = w.tenant("acme").await.id;
    let mut whole = w.new_key(tenant);
    whole.key.name = Some("a note; it's \"quoted\" 预算".to_owned());
    whole.key.user = Some("ada@example.org".parse().unwrap());
    whole.key.expires_at = Some(later(w.now(), 1));
    let bare = w.new_key(TenantId::DEFAULT);
    for key in [&whole, &bare] {
        w.store.add_key(key.clone()).await.unwrap();
    }
    for key in [whole, bare] {
        let found = w.store.key(key.key.id).await.unwrap();
        assert_eq!(found, Some(key));
    }
    let none = w.store.key(KeyId(w.ids.uuid())).await.unwrap();
    assert_eq!(none, None);
}

pub async fn a_tenants_keys_are_listed_for_it_alone_newest_first(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (acme, other) = (w.tenant("acme").await.id, w.tenant("other").await.id);
    let (first, second) = (w.added(acme).await, w.added(acme).await);
    let elsewhere = w.added(other).await;
    let ids = async |tenant| -> Vec<KeyId> {
        let keys = w.store.keys(tenant).await.unwrap();
        keys.into_iter().map(|key| key.id).collect()
    };
    assert_eq!(ids(acme).await, [second.key.id, first.key.id]);
    assert_eq!(ids(other).await, [elsewhere.key.id]);
    assert!(ids(TenantId::DEFAULT).await.is_empty());
    assert!(ids(TenantId(w.ids.uuid())).await.is_empty());
}

pub async fn a_key_that_was_rotated_ends_then_and_names_what_followed_it(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let tenant = w.tenant("acme").await.id;
    let (former, next, until) = (w.added(tenant).await, w.new_key(tenant), w.now());
    let id = former.key.id;
    let rotated = w.store.rotate_key(tenant, id, until, next.clone()).await;
    assert!(rotated.unwrap());
    let found = w.store.key(id).await.unwrap().unwrap();
    assert_eq!(found.key.expires_at, Some(until));
    assert_eq!(found.key.successor, Some(next.key.id));
    assert_eq!(found.hash, former.hash);
    let found = w.store.key(next.key.id).await.unwrap();
    assert_eq!(found, Some(next));
    // A second time it is not, and then nothing else is stored either.
    let twice = w.new_key(tenant);
    let rotated = w.store.rotate_key(tenant, id, w.now(), twice.clone()).await;
    assert!(!rotated.unwrap());
    assert_eq!(w.store.key(twice.key.id).await.unwrap(), None);
    let found = w.store.key(id).await.unwrap().unwrap();
    assert_eq!(found.key.expires_at, Some(until));
    let revoked = w.added(tenant).await.key.id;
    w.store.revoke_key(tenant, revoked, w.now()).await.unwrap();
    let late = w.new_key(tenant);
    let rotated = w.store.rotate_key(tenant, revoked, until, late).await;
    assert!(!rotated.unwrap());
}

pub async fn of_rotations_at_once_one_is_done(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let tenant = w.tenant("acme").await.id;
    let (id, until) = (w.added(tenant).await.key.id, w.now());
    let many = join_all((0..8).map(|_| {
        let next = w.new_key(tenant);
        w.store.rotate_key(tenant, id, until, next)
    }));
    let done = many
        .await
        .into_iter()
        .filter(|done| *done.as_ref().unwrap());
    assert_eq!(done.count(), 1);
    assert_eq!(w.store.keys(tenant).await.unwrap().len(), 2);
}

pub async fn a_key_is_taken_back_once_and_by_its_tenant_alone(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (acme, other) = (w.tenant("acme").await.id, w.tenant("other").await.id);
    let (id, now) = (w.added(acme).await.key.id, w.now());
    assert!(!w.store.revoke_key(other, id, now).await.unwrap());
    let found = w.store.key(id).await.unwrap().unwrap();
    assert_eq!(found.key.revoked_at, None);
    assert!(w.store.revoke_key(acme, id, now).await.unwrap());
    assert!(w.store.revoke_key(acme, id, w.now()).await.unwrap());
    let found = w.store.key(id).await.unwrap().unwrap();
    assert_eq!(found.key.revoked_at, Some(now));
    let none = KeyId(w.ids.uuid());
    assert!(!w.store.revoke_key(acme, none, now).await.unwrap());
}

pub async fn the_keys_of_an_erased_user_are_gone_and_no_others(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let acme = w.tenant("acme").await.id;
    let bound = async |tenant, user: &str| -> StoredKey {
        let mut key = w.new_key(tenant);
        key.key.user = Some(user.parse().unwrap());
        w.store.add_key(key.clone()).await.unwrap();
        key
    };
    let own = bound(w.owner.tenant, "default").await;
    let kept = [
        bound(w.owner.tenant, "ada").await,
        bound(acme, "default").await,
        w.added(w.owner.tenant).await,
    ];
    let erased = w.store.erase(w.owner, w.ids.uuid(), w.now()).await;
    let removed = erased.unwrap().unwrap().receipt.removed;
    assert_eq!(removed.get("api_keys"), Some(&1));
    assert_eq!(w.store.key(own.key.id).await.unwrap(), None);
    for key in kept {
        assert_eq!(w.store.key(key.key.id).await.unwrap(), Some(key));
    }
}

pub async fn a_tenants_secret_of_passes_is_made_once_and_is_its_own(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (acme, other) = (w.tenant("acme").await.id, w.tenant("other").await.id);
    assert_eq!(w.store.pass_secret(acme).await.unwrap(), None);
    let made = join_all((1..=8).map(|byte| {
        let fresh = PassSecret([byte; 32]);
        w.store.make_pass_secret(acme, fresh, w.now())
    }));
    let made: Vec<PassSecret> = made.await.into_iter().map(Result::unwrap).collect();
    assert!(made.iter().all(|secret| *secret == made[0]), "{made:?}");
    assert_eq!(w.store.pass_secret(acme).await.unwrap(), Some(made[0]));
    assert_eq!(w.store.pass_secret(other).await.unwrap(), None);
    let fresh = PassSecret([9; 32]);
    let its = w.store.make_pass_secret(other, fresh, w.now()).await;
    assert_eq!(its.unwrap(), fresh);
    assert_eq!(w.store.pass_secret(acme).await.unwrap(), Some(made[0]));
    let nobody = TenantId(w.ids.uuid());
    assert_eq!(w.store.pass_secret(nobody).await.unwrap(), None);
}
