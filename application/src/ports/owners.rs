//! Whom data belongs to.

use async_trait::async_trait;
use tidemark_domain::ids::{Owner, TenantId, UserName};

use super::store::StoreResult;

/// Knows the users of each tenant, and whether the store is well.
#[async_trait]
pub trait OwnerRepository: Send + Sync + 'static {
    /// The owner of that name; made on first sight.
    async fn resolve_owner(&self, tenant: TenantId, user: &UserName) -> StoreResult<Owner>;

    /// The store answers and its schema is the one this program expects.
    async fn ready(&self) -> StoreResult<()>;
}
