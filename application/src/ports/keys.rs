//! Tenants and their API keys.

use async_trait::async_trait;
use tidemark_domain::identity::{ApiKey, KeyHash, PassSecret};
use tidemark_domain::ids::{KeyId, TenantId, TenantName, Timestamp};

use super::store::StoreResult;

/// A tenant of the installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Its id, the first part of every key.
    pub id: TenantId,
    /// What the operator calls it.
    pub name: TenantName,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A key with what is stored of its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// The key.
    pub key: ApiKey,
    /// What the secret of whoever presents it must hash to.
    pub hash: KeyHash,
}

/// Keeps tenants and keys.
///
/// A key is looked up before its tenant is known: by its id alone, which whoever asks must have. Everything else is asked of one tenant.
#[async_trait]
pub trait KeyRepository: Send + Sync + 'static {
    /// The tenant of that name; made with `fresh` as its id if there is none. Of many that make it at once, all get the same.
    async fn make_tenant(
        &self,
        name: &TenantName,
        fresh: TenantId,
        now: Timestamp,
    ) -> StoreResult<Tenant>;

    /// The tenant of that name. The default tenant is always there.
    async fn find_tenant(&self, name: &TenantName) -> StoreResult<Option<TenantId>>;

    /// Every tenant, by name.
    async fn tenants(&self) -> StoreResult<Vec<Tenant>>;

    /// Stores a key of a tenant that is there.
    async fn add_key(&self, key: StoredKey) -> StoreResult<()>;

    /// The key of that id, of whatever tenant and however it stands.
    async fn key(&self, id: KeyId) -> StoreResult<Option<StoredKey>>;

    /// The tenant's keys, the newest first, whether they are good or not.
    async fn keys(&self, tenant: TenantId) -> StoreResult<Vec<ApiKey>>;

    /// Stores `successor`, and lets the key it follows expire at `until`, in one transaction. `false`, and nothing changed, if the key is not
    /// there, was revoked, or has a successor.
    async fn rotate_key(
        &self,
        tenant: TenantId,
        id: KeyId,
        until: Timestamp,
        successor: StoredKey,
    ) -> StoreResult<bool>;

    /// Takes a key back at `now`; one that was taken back before stays as it is. `false` if there is none.
    async fn revoke_key(&self, tenant: TenantId, id: KeyId, now: Timestamp) -> StoreResult<bool>;

    /// What the tenant's passes are signed with that stand for no key; none until it is made.
    async fn pass_secret(&self, tenant: TenantId) -> StoreResult<Option<PassSecret>>;

    /// The same of a tenant that is there; it is `fresh` if there was none. Of many that make it at once, all get the same.
    async fn make_pass_secret(
        &self,
        tenant: TenantId,
        fresh: PassSecret,
        now: Timestamp,
    ) -> StoreResult<PassSecret>;
}
