//! All that belongs to a user.

mod erase;
mod records;

use async_trait::async_trait;
use tidemark_application::ports::store::StoreResult;
use tidemark_application::ports::users::{Erased, KnownUser, Part, Place, Record, UserRepository};
use tidemark_domain::ids::{Owner, OwnerId, TenantId, Timestamp, UserName};
use uuid::Uuid;

use super::PostgresStore;

const FIND: &str = "SELECT owner_id, created_at FROM owners WHERE tenant_id = $1 AND name = $2";

#[cfg(test)]
pub(super) use erase::{DELETIONS, KEPT, WALKS};

#[cfg(test)]
pub(super) fn statements() -> Vec<&'static str> {
    [&[FIND][..], erase::STATEMENTS, records::STATEMENTS].concat()
}

#[async_trait]
impl UserRepository for PostgresStore {
    async fn find_user(&self, tenant: TenantId, user: &UserName) -> StoreResult<Option<KnownUser>> {
        self.database
            .read(tenant, user.clone(), move |tx, user| {
                Box::pin(async move {
                    let found: Option<(i64, Timestamp)> = sqlx::query_as(FIND)
                        .bind(tenant.0)
                        .bind(user.as_str())
                        .fetch_optional(tx)
                        .await?;
                    Ok(found.map(|(id, since)| KnownUser {
                        owner: Owner {
                            tenant,
                            id: OwnerId(id),
                        },
                        since,
                    }))
                })
            })
            .await
    }

    async fn records(
        &self,
        owner: Owner,
        part: Part,
        after: &Place,
        limit: u32,
    ) -> StoreResult<Vec<Record>> {
        self.database
            .read(owner.tenant, after.clone(), move |tx, after| {
                Box::pin(async move { Ok(records::read(tx, owner, part, after, limit).await?) })
            })
            .await
    }

    async fn erase(
        &self,
        owner: Owner,
        receipt: Uuid,
        now: Timestamp,
    ) -> StoreResult<Option<Erased>> {
        self.database
            .write(owner.tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(erase::erase(tx, owner, receipt, now).await?) })
            })
            .await
    }

    /// Its files are the server's, which vacuums them in its own time.
    async fn overwrite_erased(&self) -> StoreResult<()> {
        Ok(())
    }
}
