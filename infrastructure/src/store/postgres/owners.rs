//! Whom data belongs to.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
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

/// Waits for whoever is making the same owners, and then makes none. All make them in the same order, so that nobody waits for who waits for them.
const MAKE: &str = "
INSERT INTO owners (tenant_id, name) SELECT $1, n.name FROM unnest($2::text[]) AS n (name) ORDER BY n.name COLLATE \"C\"
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
pub(super) const STATEMENTS: &[&str] = &[FIND, MAKE, LOCK, HOLD_COUNT, TRY_HOLD_COUNT, RAISE_EPOCH];

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

/// The owners of these names; made on first sight.
async fn resolve(
    tx: &mut PgConnection,
    tenant: TenantId,
    names: &[String],
) -> Result<HashMap<String, OwnerId>, sqlx::Error> {
    let mut known = find(tx, tenant, names).await?;
    let unknown = names.iter().filter(|name| !known.contains_key(*name));
    let unknown: Vec<String> = unknown.cloned().collect();
    if !unknown.is_empty() {
        sqlx::query(MAKE)
            .bind(tenant.0)
            .bind(&unknown)
            .execute(&mut *tx)
            .await?;
        // Behind whoever was making the same ones.
        known.extend(find(tx, tenant, &unknown).await?);
    }
    Ok(known)
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
        let known = database.write(tenant, names, move |tx, names| {
            Box::pin(async move { Ok::<_, Abort<StoreError>>(resolve(tx, tenant, names).await?) })
        });
        let known = known.await.map_err(Arc::new);
        for Asked { item, answer } in asked {
            let outcome = match &known {
                Ok(known) => match known.get(item.as_str()) {
                    Some(id) => Ok(*id),
                    // Erased between the two looks.
                    None => Err(StoreError::OwnerGone),
                },
                Err(error) => Err(error.shared()),
            };
            let _ = answer.send(outcome);
        }
    })
}

/// Requests of one user come together, and then in one transaction.
fn of_name(user: &UserName) -> u64 {
    let mut hasher = DefaultHasher::new();
    user.hash(&mut hasher);
    hasher.finish()
}

#[async_trait]
impl OwnerRepository for PostgresStore {
    async fn resolve_owner(&self, tenant: TenantId, user: &UserName) -> StoreResult<Owner> {
        let id = self
            .owners
            .ask(tenant, of_name(user), user.clone())
            .await??;
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
