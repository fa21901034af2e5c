//! Whom data belongs to.

use async_trait::async_trait;
use sqlx::SqliteConnection;
use tidemark_application::ports::owners::OwnerRepository;
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{Owner, TenantId, UserName};

use super::SqliteStore;
use super::errors::{no_owner, store_error};
use super::rows;
use super::statements::{database_now, statements};

statements! {
    FIND = "SELECT tenant_id, owner_id FROM owners WHERE tenant_id = ?1 AND user_name = ?2";
    /// A number is never given twice: of owners who were erased their receipts keep it.
    ADD = concat!(
        "INSERT INTO owners (tenant_id, owner_id, user_name, created_at) \
         SELECT ?1, 1 + max( \
             coalesce((SELECT max(owner_id) FROM owners WHERE tenant_id = ?1), 0), \
             coalesce((SELECT max(owner_id) FROM erasures WHERE tenant_id = ?1), 0)), ?2, ", database_now!(), " WHERE true \
         ON CONFLICT (tenant_id, user_name) DO NOTHING");
    EPOCH = "SELECT erase_epoch FROM owners WHERE tenant_id = ?1 AND owner_id = ?2";
    RAISE_EPOCH = "UPDATE owners SET erase_epoch = erase_epoch + 1 WHERE tenant_id = ?1 AND owner_id = ?2";
}

/// The owner's erase epoch.
pub(super) async fn erase_epoch(
    connection: &mut SqliteConnection,
    owner: Owner,
) -> StoreResult<i64> {
    let row = rows::owned(EPOCH, owner)
        .fetch_optional(connection)
        .await
        .map_err(store_error)?
        .ok_or_else(no_owner)?;
    rows::Row::of("owners", &row).get("erase_epoch")
}

/// Refuses whatever derived work of this owner has been decided on until now.
pub(super) async fn raise_erase_epoch(
    connection: &mut SqliteConnection,
    owner: Owner,
) -> StoreResult<()> {
    let raised = rows::owned(RAISE_EPOCH, owner)
        .execute(connection)
        .await
        .map_err(store_error)?;
    if raised.rows_affected() == 1 {
        Ok(())
    } else {
        Err(no_owner())
    }
}

#[async_trait]
impl OwnerRepository for SqliteStore {
    async fn resolve_owner(&self, tenant: TenantId, user: &UserName) -> StoreResult<Owner> {
        let known = sqlx::query(FIND)
            .bind(tenant.0)
            .bind(user.as_str())
            .fetch_optional(&self.readers)
            .await
            .map_err(store_error)?;
        if let Some(row) = known {
            return rows::owner(&row);
        }
        let user = user.clone();
        self.writer
            .write(move |connection| {
                Box::pin(async move {
                    sqlx::query(ADD)
                        .bind(tenant.0)
                        .bind(user.as_str())
                        .execute(&mut *connection)
                        .await
                        .map_err(store_error)?;
                    let row = sqlx::query(FIND)
                        .bind(tenant.0)
                        .bind(user.as_str())
                        .fetch_one(connection)
                        .await
                        .map_err(store_error)?;
                    rows::owner(&row)
                })
            })
            .await
    }

    async fn ready(&self) -> StoreResult<()> {
        super::schema::check(&self.readers).await
    }
}
