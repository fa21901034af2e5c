//! Tenants and their API keys.

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{SqliteConnection, SqliteExecutor};
use tidemark_application::ports::keys::{KeyRepository, StoredKey, Tenant};
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::identity::{ApiKey, KeyHash, PassSecret};
use tidemark_domain::ids::{KeyId, TenantId, TenantName, Timestamp, UserName};
use uuid::Uuid;

use super::SqliteStore;
use super::errors::{corrupt, store_error};
use super::rows::{Row, micros};
use super::statements::statements;

macro_rules! key_columns {
    () => {
        "tenant_id, id, hash, name, scopes, user_name, created_at, expires_at, revoked_at, successor"
    };
}

statements! {
    TENANT_NAMED = "SELECT tenant_id, name, created_at FROM tenants WHERE name = ?1";
    TENANTS = "SELECT tenant_id, name, created_at FROM tenants ORDER BY name";
    MAKE_TENANT = "INSERT INTO tenants (tenant_id, name, created_at) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO NOTHING";
    KEY = concat!("SELECT ", key_columns!(), " FROM api_keys WHERE id = ?1");
    KEYS = concat!("SELECT ", key_columns!(), " FROM api_keys WHERE tenant_id = ?1 ORDER BY created_at DESC, id DESC");
    ADD = "INSERT INTO api_keys (tenant_id, id, hash, name, scopes, user_name, created_at, expires_at) \
           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    FOLLOW = "UPDATE api_keys SET successor = ?3, expires_at = ?4 \
              WHERE tenant_id = ?1 AND id = ?2 AND revoked_at IS NULL AND successor IS NULL";
    REVOKE = "UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?3) WHERE tenant_id = ?1 AND id = ?2";
    PASS_SECRET = "SELECT secret FROM pass_secrets WHERE tenant_id = ?1";
    MAKE_PASS_SECRET = "INSERT INTO pass_secrets (tenant_id, secret, created_at) VALUES (?1, ?2, ?3) ON CONFLICT (tenant_id) DO NOTHING";
}

fn tenant(row: &SqliteRow) -> StoreResult<Tenant> {
    let row = Row::of("tenants", row);
    let name: String = row.get("name")?;
    Ok(Tenant {
        id: TenantId(row.get("tenant_id")?),
        name: name.parse().map_err(|_| corrupt("tenants.name"))?,
        created_at: row.time("created_at")?,
    })
}

fn key(row: &SqliteRow) -> StoreResult<StoredKey> {
    let row = Row::of("api_keys", row);
    let hash: Vec<u8> = row.get("hash")?;
    let scopes: String = row.get("scopes")?;
    let user: Option<String> = row.get("user_name")?;
    let user = user.map(|name| name.parse()).transpose();
    Ok(StoredKey {
        hash: KeyHash(hash.try_into().map_err(|_| corrupt("api_keys.hash"))?),
        key: ApiKey {
            id: KeyId(row.get("id")?),
            tenant: TenantId(row.get("tenant_id")?),
            name: row.get("name")?,
            scopes: scopes.parse().map_err(|_| corrupt("api_keys.scopes"))?,
            user: user.map_err(|_| corrupt("api_keys.user_name"))?,
            created_at: row.time("created_at")?,
            expires_at: row.time_or_none("expires_at")?,
            revoked_at: row.time_or_none("revoked_at")?,
            successor: row.get::<Option<Uuid>>("successor")?.map(KeyId),
        },
    })
}

async fn named(
    executor: impl SqliteExecutor<'_>,
    name: &TenantName,
) -> StoreResult<Option<Tenant>> {
    let row = sqlx::query(TENANT_NAMED)
        .bind(name.as_str())
        .fetch_optional(executor)
        .await
        .map_err(store_error)?;
    row.as_ref().map(tenant).transpose()
}

async fn make(
    connection: &mut SqliteConnection,
    name: &TenantName,
    fresh: TenantId,
    now: Timestamp,
) -> StoreResult<Tenant> {
    sqlx::query(MAKE_TENANT)
        .bind(fresh.0)
        .bind(name.as_str())
        .bind(micros(now))
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    let made = named(connection, name).await?;
    made.ok_or_else(|| corrupt("tenants"))
}

async fn add(connection: &mut SqliteConnection, stored: &StoredKey) -> StoreResult<()> {
    let StoredKey { key, hash } = stored;
    sqlx::query(ADD)
        .bind(key.tenant.0)
        .bind(key.id.0)
        .bind(&hash.0[..])
        .bind(&key.name)
        .bind(key.scopes.to_string())
        .bind(key.user.as_ref().map(UserName::as_str))
        .bind(micros(key.created_at))
        .bind(key.expires_at.map(micros))
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

async fn rotate(
    connection: &mut SqliteConnection,
    id: KeyId,
    until: Timestamp,
    successor: &StoredKey,
) -> StoreResult<bool> {
    let followed = sqlx::query(FOLLOW)
        .bind(successor.key.tenant.0)
        .bind(id.0)
        .bind(successor.key.id.0)
        .bind(micros(until))
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    if followed.rows_affected() == 0 {
        return Ok(false);
    }
    add(connection, successor).await?;
    Ok(true)
}

async fn revoke(
    connection: &mut SqliteConnection,
    tenant: TenantId,
    id: KeyId,
    now: Timestamp,
) -> StoreResult<bool> {
    let revoked = sqlx::query(REVOKE)
        .bind(tenant.0)
        .bind(id.0)
        .bind(micros(now))
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(revoked.rows_affected() == 1)
}

async fn pass_secret(
    executor: impl SqliteExecutor<'_>,
    tenant: TenantId,
) -> StoreResult<Option<PassSecret>> {
    let secret: Option<Vec<u8>> = sqlx::query_scalar(PASS_SECRET)
        .bind(tenant.0)
        .fetch_optional(executor)
        .await
        .map_err(store_error)?;
    let secret = secret.map(TryInto::try_into).transpose();
    let secret = secret.map_err(|_| corrupt("pass_secrets.secret"))?;
    Ok(secret.map(PassSecret))
}

async fn make_pass_secret(
    connection: &mut SqliteConnection,
    tenant: TenantId,
    fresh: PassSecret,
    now: Timestamp,
) -> StoreResult<PassSecret> {
    sqlx::query(MAKE_PASS_SECRET)
        .bind(tenant.0)
        .bind(&fresh.0[..])
        .bind(micros(now))
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    let made = pass_secret(connection, tenant).await?;
    made.ok_or_else(|| corrupt("pass_secrets"))
}

#[async_trait]
impl KeyRepository for SqliteStore {
    async fn make_tenant(
        &self,
        name: &TenantName,
        fresh: TenantId,
        now: Timestamp,
    ) -> StoreResult<Tenant> {
        let name = name.clone();
        self.writer
            .write(move |c| Box::pin(async move { make(c, &name, fresh, now).await }))
            .await
    }

    async fn find_tenant(&self, name: &TenantName) -> StoreResult<Option<TenantId>> {
        let found = named(&self.readers, name).await?;
        Ok(found.map(|tenant| tenant.id))
    }

    async fn tenants(&self) -> StoreResult<Vec<Tenant>> {
        let rows = sqlx::query(TENANTS).fetch_all(&self.readers).await;
        rows.map_err(store_error)?.iter().map(tenant).collect()
    }

    async fn add_key(&self, key: StoredKey) -> StoreResult<()> {
        self.writer
            .write(move |c| Box::pin(async move { add(c, &key).await }))
            .await
    }

    async fn key(&self, id: KeyId) -> StoreResult<Option<StoredKey>> {
        let row = sqlx::query(KEY)
            .bind(id.0)
            .fetch_optional(&self.readers)
            .await
            .map_err(store_error)?;
        row.as_ref().map(key).transpose()
    }

    async fn keys(&self, tenant: TenantId) -> StoreResult<Vec<ApiKey>> {
        let rows = sqlx::query(KEYS)
            .bind(tenant.0)
            .fetch_all(&self.readers)
            .await
            .map_err(store_error)?;
        rows.iter().map(|row| Ok(key(row)?.key)).collect()
    }

    async fn rotate_key(
        &self,
        _: TenantId,
        id: KeyId,
        until: Timestamp,
        successor: StoredKey,
    ) -> StoreResult<bool> {
        self.writer
            .write(move |c| Box::pin(async move { rotate(c, id, until, &successor).await }))
            .await
    }

    async fn revoke_key(&self, tenant: TenantId, id: KeyId, now: Timestamp) -> StoreResult<bool> {
        self.writer
            .write(move |c| Box::pin(revoke(c, tenant, id, now)))
            .await
    }

    async fn pass_secret(&self, tenant: TenantId) -> StoreResult<Option<PassSecret>> {
        pass_secret(&self.readers, tenant).await
    }

    async fn make_pass_secret(
        &self,
        tenant: TenantId,
        fresh: PassSecret,
        now: Timestamp,
    ) -> StoreResult<PassSecret> {
        self.writer
            .write(move |c| Box::pin(make_pass_secret(c, tenant, fresh, now)))
            .await
    }
}
