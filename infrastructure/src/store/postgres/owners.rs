//! Whom data belongs to.

use async_trait::async_trait;
use sqlx::PgConnection;
use tidemark_application::ports::owners::OwnerRepository;
use tidemark_application::ports::store::{StoreError, StoreResult};
use tidemark_domain::ids::{Owner, OwnerId, TenantId, UserName};

use super::rows::owned;
use super::transaction::{Abort, owner_gone};
use super::{PostgresStore, schema};

const FIND: &str = "SELECT owner_id FROM owners WHERE tenant_id = $1 AND name = $2";

/// Waits for whoever is making the same owner, and then makes none.
const MAKE: &str =
    "INSERT INTO owners (tenant_id, name) VALUES ($1, $2) ON CONFLICT (tenant_id, name) DO NOTHING";

/// Who counts what an owner has takes turns with whoever adds to it.
const LOCK: &str = "SELECT FROM owners WHERE tenant_id = $1 AND owner_id = $2 FOR NO KEY UPDATE";

/// Lets no other turn of these owners be accepted before the transaction ends, so that those which are open can be counted. Not the owners' rows:
/// whoever writes their memories holds these.
const HOLD_COUNT: &str = "
SELECT pg_advisory_xact_lock(k.key) FROM (
    SELECT DISTINCT hashtextextended('turns of ' || $1::text || '/' || n.id, 0) AS key FROM unnest($2::bigint[]) AS n (id) ORDER BY key OFFSET 0
) k";

/// Of which of these owners the count could be held at once; the others are held by somebody else.
const TRY_HOLD_COUNT: &str = "
SELECT k.id FROM (
    SELECT n.id, hashtextextended('turns of ' || $1::text || '/' || n.id, 0) AS key
    FROM (SELECT DISTINCT unnest($2::bigint[]) AS id) n ORDER BY key OFFSET 0
) k WHERE pg_try_advisory_xact_lock(k.key)";

const RAISE_EPOCH: &str =
    "UPDATE owners SET erase_epoch = erase_epoch + 1 WHERE tenant_id = $1 AND owner_id = $2";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[FIND, MAKE, LOCK, HOLD_COUNT, TRY_HOLD_COUNT, RAISE_EPOCH];

/// Locks the owner.
pub(super) async fn lock(tx: &mut PgConnection, owner: Owner) -> Result<(), sqlx::Error> {
    let locked = owned(LOCK, owner).fetch_optional(tx).await?;
    locked.map(|_| ()).ok_or_else(owner_gone)
}

/// Refuses whatever was decided on the owner's messages before now. Locks the owner.
/// Lets no other turn of these owners be accepted before the transaction ends.
pub(super) async fn hold_count(
    tx: &mut PgConnection,
    tenant: TenantId,
    owners: &[i64],
) -> Result<(), sqlx::Error> {
    sqlx::query(HOLD_COUNT)
        .bind(tenant.0)
        .bind(owners)
        .execute(tx)
        .await?;
    Ok(())
}

/// As [`hold_count`], of those of whom nobody else holds it.
pub(super) async fn try_hold_count(
    tx: &mut PgConnection,
    tenant: TenantId,
    owners: &[i64],
) -> Result<Vec<i64>, sqlx::Error> {
    let held: Vec<(i64,)> = sqlx::query_as(TRY_HOLD_COUNT)
        .bind(tenant.0)
        .bind(owners)
        .fetch_all(tx)
        .await?;
    Ok(held.into_iter().map(|(id,)| id).collect())
}

pub(super) async fn raise_epoch(tx: &mut PgConnection, owner: Owner) -> Result<(), sqlx::Error> {
    owned(RAISE_EPOCH, owner).execute(tx).await?;
    Ok(())
}

async fn find(
    tx: &mut PgConnection,
    tenant: TenantId,
    user: &UserName,
) -> Result<Option<OwnerId>, sqlx::Error> {
    sqlx::query_scalar(FIND)
        .bind(tenant.0)
        .bind(user.as_str())
        .fetch_optional(tx)
        .await
        .map(|id: Option<i64>| id.map(OwnerId))
}

async fn resolve(
    tx: &mut PgConnection,
    tenant: TenantId,
    user: &UserName,
) -> Result<OwnerId, Abort<StoreError>> {
    if let Some(id) = find(tx, tenant, user).await? {
        return Ok(id);
    }
    sqlx::query(MAKE)
        .bind(tenant.0)
        .bind(user.as_str())
        .execute(&mut *tx)
        .await?;
    Ok(find(tx, tenant, user).await?.ok_or_else(owner_gone)?)
}

#[async_trait]
impl OwnerRepository for PostgresStore {
    async fn resolve_owner(&self, tenant: TenantId, user: &UserName) -> StoreResult<Owner> {
        let id = self
            .database
            .write(tenant, user.clone(), move |tx, user| {
                Box::pin(resolve(tx, tenant, user))
            })
            .await?;
        Ok(Owner { tenant, id })
    }

    async fn ready(&self) -> StoreResult<()> {
        let checked = self
            .database
            .before_tenant((), |tx, ()| {
                Box::pin(async move { Ok(schema::check(tx).await?) })
            })
            .await?;
        checked.map_err(|mismatch| StoreError::Corrupt {
            what: "the schema".to_owned(),
            source: Some(Box::new(mismatch)),
        })
    }
}
