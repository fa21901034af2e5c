//! Tenants and their API keys.

use async_trait::async_trait;
use sqlx::{FromRow, PgConnection};
use tidemark_application::ports::keys::{KeyRepository, StoredKey, Tenant};
use tidemark_application::ports::store::{StoreError, StoreResult};
use tidemark_domain::identity::{ApiKey, KeyHash, PassSecret};
use tidemark_domain::ids::{KeyId, TenantId, TenantName, Timestamp, UserName};
use uuid::Uuid;

use super::PostgresStore;
use super::rows::unexpected;
use super::transaction::Abort;

const TENANT_NAMED: &str = "SELECT tidemark_tenant_named($1)";

const TENANT_IDS: &str = "SELECT * FROM tidemark_tenants()";

/// From here on this transaction is the tenant's.
const BE_TENANT: &str = "SELECT set_config('tidemark.tenant', $1, true)";

const TENANT: &str = "SELECT tenant_id, name, created_at FROM tenants WHERE tenant_id = $1";

/// Waits for whoever is making a tenant of that name, and then makes none.
const MAKE_TENANT: &str = "INSERT INTO tenants (tenant_id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING";

const KEY_TENANT: &str = "SELECT tidemark_key_tenant($1)";

const KEY: &str = "
SELECT tenant_id, id, hash, name, scopes, user_name, created_at, expires_at, revoked_at, successor
FROM api_keys WHERE tenant_id = $1 AND id = $2";

const KEYS: &str = "
SELECT tenant_id, id, hash, name, scopes, user_name, created_at, expires_at, revoked_at, successor
FROM api_keys WHERE tenant_id = $1 ORDER BY created_at DESC, id DESC";

const ADD: &str = "
INSERT INTO api_keys (tenant_id, id, hash, name, scopes, user_name, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const FOLLOW: &str = "
UPDATE api_keys SET successor = $3, expires_at = $4
WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL AND successor IS NULL";

const REVOKE: &str =
    "UPDATE api_keys SET revoked_at = coalesce(revoked_at, $3) WHERE tenant_id = $1 AND id = $2";

const PASS_SECRET: &str = "SELECT secret FROM pass_secrets WHERE tenant_id = $1";

/// Waits for whoever is making it, and then makes none.
const MAKE_PASS_SECRET: &str = "INSERT INTO pass_secrets (tenant_id, secret, created_at) VALUES ($1, $2, $3) ON CONFLICT (tenant_id) DO NOTHING";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    TENANT_NAMED,
    TENANT_IDS,
    BE_TENANT,
    TENANT,
    MAKE_TENANT,
    KEY_TENANT,
    KEY,
    KEYS,
    ADD,
    FOLLOW,
    REVOKE,
    PASS_SECRET,
    MAKE_PASS_SECRET,
];

/// An operator lists the keys of a tenant, all at once.
#[cfg(test)]
pub(super) const WALKS: &[&str] = &[KEYS];

#[derive(FromRow)]
struct TenantRow {
    tenant_id: Uuid,
    name: String,
    created_at: Timestamp,
}

impl TryFrom<TenantRow> for Tenant {
    type Error = sqlx::Error;

    fn try_from(row: TenantRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: TenantId(row.tenant_id),
            name: row.name.parse().map_err(|_| unexpected("name"))?,
            created_at: row.created_at,
        })
    }
}

#[derive(FromRow)]
struct KeyRow {
    tenant_id: Uuid,
    id: Uuid,
    hash: Vec<u8>,
    name: Option<String>,
    scopes: String,
    user_name: Option<String>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
    successor: Option<Uuid>,
}

impl TryFrom<KeyRow> for StoredKey {
    type Error = sqlx::Error;

    fn try_from(row: KeyRow) -> Result<Self, sqlx::Error> {
        let user = row.user_name.map(|name| name.parse());
        Ok(Self {
            hash: KeyHash(row.hash.try_into().map_err(|_| unexpected("hash"))?),
            key: ApiKey {
                id: KeyId(row.id),
                tenant: TenantId(row.tenant_id),
                name: row.name,
                scopes: row.scopes.parse().map_err(|_| unexpected("scopes"))?,
                user: user.transpose().map_err(|_| unexpected("user_name"))?,
                created_at: row.created_at,
                expires_at: row.expires_at,
                revoked_at: row.revoked_at,
                successor: row.successor.map(KeyId),
            },
        })
    }
}

async fn be(tx: &mut PgConnection, tenant: TenantId) -> Result<(), sqlx::Error> {
    sqlx::query(BE_TENANT)
        .bind(tenant.to_string())
        .execute(tx)
        .await?;
    Ok(())
}

async fn named(tx: &mut PgConnection, name: &TenantName) -> Result<Option<TenantId>, sqlx::Error> {
    let id: Option<Uuid> = sqlx::query_scalar(TENANT_NAMED)
        .bind(name.as_str())
        .fetch_one(tx)
        .await?;
    Ok(id.map(TenantId))
}

async fn tenant(tx: &mut PgConnection, id: TenantId) -> Result<Tenant, sqlx::Error> {
    be(&mut *tx, id).await?;
    let row: TenantRow = sqlx::query_as(TENANT).bind(id.0).fetch_one(tx).await?;
    row.try_into()
}

async fn make(
    tx: &mut PgConnection,
    (name, fresh, now): &(TenantName, TenantId, Timestamp),
) -> Result<Tenant, sqlx::Error> {
    if let Some(id) = named(tx, name).await? {
        return tenant(tx, id).await;
    }
    be(&mut *tx, *fresh).await?;
    sqlx::query(MAKE_TENANT)
        .bind(fresh.0)
        .bind(name.as_str())
        .bind(now)
        .execute(&mut *tx)
        .await?;
    let id = named(tx, name).await?.ok_or(sqlx::Error::RowNotFound)?;
    tenant(tx, id).await
}

async fn tenants(tx: &mut PgConnection) -> Result<Vec<Tenant>, sqlx::Error> {
    let ids: Vec<Uuid> = sqlx::query_scalar(TENANT_IDS).fetch_all(&mut *tx).await?;
    let mut all = Vec::with_capacity(ids.len());
    for id in ids {
        all.push(tenant(tx, TenantId(id)).await?);
    }
    Ok(all)
}

async fn key(tx: &mut PgConnection, id: KeyId) -> Result<Option<StoredKey>, sqlx::Error> {
    let tenant: Option<Uuid> = sqlx::query_scalar(KEY_TENANT)
        .bind(id.0)
        .fetch_one(&mut *tx)
        .await?;
    let Some(tenant) = tenant else {
        return Ok(None);
    };
    be(&mut *tx, TenantId(tenant)).await?;
    let row: Option<KeyRow> = sqlx::query_as(KEY)
        .bind(tenant)
        .bind(id.0)
        .fetch_optional(tx)
        .await?;
    row.map(TryInto::try_into).transpose()
}

async fn keys(tx: &mut PgConnection, tenant: TenantId) -> Result<Vec<ApiKey>, sqlx::Error> {
    let rows: Vec<KeyRow> = sqlx::query_as(KEYS).bind(tenant.0).fetch_all(tx).await?;
    rows.into_iter()
        .map(|row| Ok(StoredKey::try_from(row)?.key))
        .collect()
}

async fn add(tx: &mut PgConnection, stored: &StoredKey) -> Result<(), sqlx::Error> {
    let StoredKey { key, hash } = stored;
    sqlx::query(ADD)
        .bind(key.tenant.0)
        .bind(key.id.0)
        .bind(&hash.0[..])
        .bind(&key.name)
        .bind(key.scopes.to_string())
        .bind(key.user.as_ref().map(UserName::as_str))
        .bind(key.created_at)
        .bind(key.expires_at)
        .execute(tx)
        .await?;
    Ok(())
}

async fn rotate(
    tx: &mut PgConnection,
    (id, until, successor): &(KeyId, Timestamp, StoredKey),
) -> Result<bool, sqlx::Error> {
    let followed = sqlx::query(FOLLOW)
        .bind(successor.key.tenant.0)
        .bind(id.0)
        .bind(successor.key.id.0)
        .bind(until)
        .execute(&mut *tx)
        .await?;
    if followed.rows_affected() == 0 {
        return Ok(false);
    }
    add(tx, successor).await?;
    Ok(true)
}

async fn revoke(
    tx: &mut PgConnection,
    tenant: TenantId,
    id: KeyId,
    now: Timestamp,
) -> Result<bool, sqlx::Error> {
    let revoked = sqlx::query(REVOKE)
        .bind(tenant.0)
        .bind(id.0)
        .bind(now)
        .execute(tx)
        .await?;
    Ok(revoked.rows_affected() == 1)
}

async fn pass_secret(
    tx: &mut PgConnection,
    tenant: TenantId,
) -> Result<Option<PassSecret>, sqlx::Error> {
    let secret: Option<Vec<u8>> = sqlx::query_scalar(PASS_SECRET)
        .bind(tenant.0)
        .fetch_optional(tx)
        .await?;
    let secret = secret.map(TryInto::try_into).transpose();
    Ok(secret.map_err(|_| unexpected("secret"))?.map(PassSecret))
}

async fn make_pass_secret(
    tx: &mut PgConnection,
    (tenant, fresh, now): &(TenantId, PassSecret, Timestamp),
) -> Result<PassSecret, sqlx::Error> {
    sqlx::query(MAKE_PASS_SECRET)
        .bind(tenant.0)
        .bind(&fresh.0[..])
        .bind(now)
        .execute(&mut *tx)
        .await?;
    let made = pass_secret(tx, *tenant).await?;
    made.ok_or(sqlx::Error::RowNotFound)
}

#[async_trait]
impl KeyRepository for PostgresStore {
    async fn make_tenant(
        &self,
        name: &TenantName,
        fresh: TenantId,
        now: Timestamp,
    ) -> StoreResult<Tenant> {
        self.database
            .before_tenant((name.clone(), fresh, now), |tx, made| {
                Box::pin(async move { Ok(make(tx, made).await?) })
            })
            .await
    }

    async fn find_tenant(&self, name: &TenantName) -> StoreResult<Option<TenantId>> {
        self.database
            .before_tenant(name.clone(), |tx, name| {
                Box::pin(async move { Ok(named(tx, name).await?) })
            })
            .await
    }

    async fn tenants(&self) -> StoreResult<Vec<Tenant>> {
        self.database
            .before_tenant((), |tx, ()| Box::pin(async move { Ok(tenants(tx).await?) }))
            .await
    }

    async fn add_key(&self, key: StoredKey) -> StoreResult<()> {
        self.database
            .write(key.key.tenant, key, |tx, key| {
                Box::pin(async move { Ok::<_, Abort<StoreError>>(add(tx, key).await?) })
            })
            .await
    }

    async fn key(&self, id: KeyId) -> StoreResult<Option<StoredKey>> {
        self.database
            .before_tenant(id, |tx, id| {
                Box::pin(async move { Ok(key(tx, *id).await?) })
            })
            .await
    }

    async fn keys(&self, tenant: TenantId) -> StoreResult<Vec<ApiKey>> {
        self.database
            .read(tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(keys(tx, tenant).await?) })
            })
            .await
    }

    async fn rotate_key(
        &self,
        tenant: TenantId,
        id: KeyId,
        until: Timestamp,
        successor: StoredKey,
    ) -> StoreResult<bool> {
        self.database
            .write(tenant, (id, until, successor), |tx, rotation| {
                Box::pin(async move { Ok::<_, Abort<StoreError>>(rotate(tx, rotation).await?) })
            })
            .await
    }

    async fn revoke_key(&self, tenant: TenantId, id: KeyId, now: Timestamp) -> StoreResult<bool> {
        self.database
            .write(tenant, (), move |tx, ()| {
                Box::pin(
                    async move { Ok::<_, Abort<StoreError>>(revoke(tx, tenant, id, now).await?) },
                )
            })
            .await
    }

    async fn pass_secret(&self, tenant: TenantId) -> StoreResult<Option<PassSecret>> {
        self.database
            .read(tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(pass_secret(tx, tenant).await?) })
            })
            .await
    }

    async fn make_pass_secret(
        &self,
        tenant: TenantId,
        fresh: PassSecret,
        now: Timestamp,
    ) -> StoreResult<PassSecret> {
        self.database
            .write(tenant, (tenant, fresh, now), |tx, made| {
                Box::pin(
                    async move { Ok::<_, Abort<StoreError>>(make_pass_secret(tx, made).await?) },
                )
            })
            .await
    }
}
