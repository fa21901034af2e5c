//! Whom data belongs to.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use sqlx::PgConnection;
use tidemark_application::ports::owners::OwnerRepository;
use tidemark_application::ports::store::{StoreError, StoreResult};
use tidemark_domain::ids::{Owner, OwnerId, TenantId, UserName};

use super::rows::owned;
use super::together::Asked;
use super::transaction::{Abort, Database, owner_gone};
use super::{PostgresStore, schema};

const FIND: &str =
    "SELECT name, owner_id FROM owners WHERE tenant_id = $1 AND name = ANY ($2::text[])";

/// Makes those that nobody else is making at the moment. Whoever makes an owner holds this lock until that is stored.
const MAKE_FREE: &str = "
INSERT INTO owners (tenant_id, name) SELECT $1::uuid, n.name FROM unnest($2::text[]) AS n (name)
WHERE pg_try_advisory_xact_lock(hashtextextended('owner ' || $1::uuid::text || '/' || n.name, 0))
ON CONFLICT (tenant_id, name) DO NOTHING";

/// Waits for whoever is making the same owner, and then makes none.
const MAKE: &str = "
INSERT INTO owners (tenant_id, name) SELECT $1::uuid, $2::text
FROM (SELECT pg_advisory_xact_lock(hashtextextended('owner ' || $1::uuid::text || '/' || $2::text, 0)) OFFSET 0) held
ON CONFLICT (tenant_id, name) DO NOTHING";

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
pub(super) const STATEMENTS: &[&str] = &[
    FIND,
    MAKE_FREE,
    MAKE,
    LOCK,
    HOLD_COUNT,
    TRY_HOLD_COUNT,
    RAISE_EPOCH,
];

/// Locks the owner.
pub(super) async fn lock(tx: &mut PgConnection, owner: Owner) -> Result<(), sqlx::Error> {
    let locked = owned(LOCK, owner).fetch_optional(tx).await?;
    locked.map(|_| ()).ok_or_else(owner_gone)
}

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

/// Refuses whatever was decided on the owner's messages before now. Locks the owner.
pub(super) async fn raise_epoch(tx: &mut PgConnection, owner: Owner) -> Result<(), sqlx::Error> {
    owned(RAISE_EPOCH, owner).execute(tx).await?;
    Ok(())
}

async fn find(
    tx: &mut PgConnection,
    tenant: TenantId,
    names: &[String],
) -> Result<HashMap<String, OwnerId>, sqlx::Error> {
    let found: Vec<(String, i64)> = sqlx::query_as(FIND)
        .bind(tenant.0)
        .bind(names)
        .fetch_all(tx)
        .await?;
    Ok(found.into_iter().map(|(n, id)| (n, OwnerId(id))).collect())
}

/// The owners of these names; made on first sight, except those that somebody else is making.
async fn resolve_free(
    tx: &mut PgConnection,
    tenant: TenantId,
    names: &[String],
) -> Result<HashMap<String, OwnerId>, Abort<StoreError>> {
    let mut known = find(tx, tenant, names).await?;
    let unknown = names.iter().filter(|name| !known.contains_key(*name));
    let unknown: Vec<String> = unknown.cloned().collect();
    if !unknown.is_empty() {
        sqlx::query(MAKE_FREE)
            .bind(tenant.0)
            .bind(&unknown)
            .execute(&mut *tx)
            .await?;
        known.extend(find(tx, tenant, &unknown).await?);
    }
    Ok(known)
}

/// The owner of a name; made on first sight.
async fn resolve(
    tx: &mut PgConnection,
    tenant: TenantId,
    name: &str,
) -> Result<OwnerId, Abort<StoreError>> {
    sqlx::query(MAKE)
        .bind(tenant.0)
        .bind(name)
        .execute(&mut *tx)
        .await?;
    let found = find(tx, tenant, &[name.to_owned()]).await?;
    // Erased between the two.
    Ok(found.into_values().next().ok_or_else(owner_gone)?)
}

/// Finds or makes owners of one tenant.
pub(super) fn resolve_all(
    database: &Database,
    tenant: TenantId,
    asked: Vec<Asked<UserName, StoreResult<OwnerId>>>,
) -> BoxFuture<'static, ()> {
    let database = database.clone();
    Box::pin(async move {
        let names: BTreeSet<&str> = asked.iter().map(|asked| asked.item.as_str()).collect();
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let known = database.write_many(tenant, names, move |tx, names| {
            Box::pin(resolve_free(tx, tenant, names))
        });
        let known = known.await.map_err(Arc::new);
        for Asked { item, answer } in asked {
            let found = match &known {
                Ok(known) => known.get(item.as_str()).map(|id| Ok(*id)),
                Err(error) => Some(Err(error.shared())),
            };
            if let Some(outcome) = found {
                let _ = answer.send(outcome);
                continue;
            }
            // It waits for others, and nobody is to wait for it.
            let database = database.clone();
            tokio::spawn(async move {
                let resolved = database.write(tenant, item, move |tx, name| {
                    Box::pin(resolve(tx, tenant, name.as_str()))
                });
                let _ = answer.send(resolved.await);
            });
        }
    })
}

#[async_trait]
impl OwnerRepository for PostgresStore {
    async fn resolve_owner(&self, tenant: TenantId, user: &UserName) -> StoreResult<Owner> {
        let id = self.owners.ask(tenant, user.clone()).await??;
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
