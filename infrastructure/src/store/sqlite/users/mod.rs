//! All that belongs to a user.

mod erase;
mod records;

use async_trait::async_trait;
use tidemark_application::ports::store::StoreResult;
use tidemark_application::ports::users::{Erased, KnownUser, Part, Place, Record, UserRepository};
use tidemark_domain::ids::{Owner, TenantId, Timestamp, UserName};
use uuid::Uuid;

use super::SqliteStore;
use super::errors::store_error;
use super::rows::{self, Row};
use super::statements::statements;

#[cfg(test)]
pub(super) use erase::{DELETIONS, KEPT, WALKS};
pub(super) use erase::{is_unfinished, mark_finished};

statements! {
    FIND = "SELECT tenant_id, owner_id, created_at FROM owners WHERE tenant_id = ?1 AND user_name = ?2";
}

/// Every statement on users.
#[cfg(test)]
pub(super) fn all_statements() -> Vec<&'static str> {
    let deletions = DELETIONS.iter().map(|(_, deletion)| *deletion);
    [STATEMENTS, erase::STATEMENTS, records::STATEMENTS]
        .concat()
        .into_iter()
        .chain(deletions)
        .collect()
}

#[async_trait]
impl UserRepository for SqliteStore {
    async fn find_user(&self, tenant: TenantId, user: &UserName) -> StoreResult<Option<KnownUser>> {
        let found = sqlx::query(FIND)
            .bind(tenant.0)
            .bind(user.as_str())
            .fetch_optional(&self.readers)
            .await
            .map_err(store_error)?;
        found
            .map(|row| {
                Ok(KnownUser {
                    owner: rows::owner(&row)?,
                    since: Row::of("owners", &row).time("created_at")?,
                })
            })
            .transpose()
    }

    async fn records(
        &self,
        owner: Owner,
        part: Part,
        after: &Place,
        limit: u32,
    ) -> StoreResult<Vec<Record>> {
        records::read(&self.readers, owner, part, after, limit).await
    }

    async fn erase(
        &self,
        owner: Owner,
        receipt: Uuid,
        now: Timestamp,
    ) -> StoreResult<Option<Erased>> {
        self.writer
            .write(move |c| Box::pin(erase::erase(c, owner, receipt, now)))
            .await
    }

    /// Rewrites the file if something was erased since it was rewritten last.
    async fn overwrite_erased(&self) -> StoreResult<()> {
        if !is_unfinished(&self.readers).await.map_err(store_error)? {
            return Ok(());
        }
        self.writer.rewrite().await?;
        self.writer
            .write(|c| Box::pin(async move { mark_finished(c).await.map_err(store_error) }))
            .await
    }
}
