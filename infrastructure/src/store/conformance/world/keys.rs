//! Tenants and keys.

use tidemark_application::ports::keys::{StoredKey, Tenant};
use tidemark_domain::identity::{ApiKey, KeyHash, Scope};
use tidemark_domain::ids::{KeyId, TenantId};

use super::World;

impl World {
    pub(in crate::store::conformance) async fn tenant(&self, name: &str) -> Tenant {
        let fresh = TenantId(self.ids.uuid());
        let name = name.parse().unwrap();
        self.store
            .make_tenant(&name, fresh, self.now())
            .await
            .unwrap()
    }

    /// A key with a hash of its own.
    pub(in crate::store::conformance) fn new_key(&self, tenant: TenantId) -> StoredKey {
        let id = KeyId(self.ids.uuid());
        let mut hash = [7; 32];
        hash[..16].copy_from_slice(id.0.as_bytes());
        StoredKey {
            hash: KeyHash(hash),
            key: ApiKey {
                id,
                tenant,
                name: None,
                scopes: [Scope::Chat, Scope::MemoryRead].into_iter().collect(),
                user: None,
                created_at: self.now(),
                expires_at: None,
                revoked_at: None,
                successor: None,
            },
        }
    }

    pub(in crate::store::conformance) async fn added(&self, tenant: TenantId) -> StoredKey {
        let key = self.new_key(tenant);
        self.store.add_key(key.clone()).await.unwrap();
        key
    }
}
