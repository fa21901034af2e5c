//! Creations that can be repeated: what was made under a key of the caller's.

use chrono::TimeDelta;
use sqlx::SqliteConnection;
use tidemark_application::ports::store::{IDEMPOTENCY_HOURS, Idempotency, StoreResult};
use tidemark_domain::ids::{Owner, Timestamp};
use uuid::Uuid;

use super::errors::store_error;
use super::rows::{Row, json, micros, owned};
use super::statements::statements;

statements! {
    FIND = "SELECT body_hash, resources FROM idempotency \
            WHERE tenant_id = ?1 AND owner_id = ?2 AND operation = ?3 AND key = ?4 AND created_at > ?5";
    /// A record in the way is one that [`FIND`] did not count.
    RECORD = "INSERT INTO idempotency (tenant_id, owner_id, operation, key, body_hash, resources, created_at) \
              VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
              ON CONFLICT (tenant_id, owner_id, operation, key) DO UPDATE \
              SET body_hash = excluded.body_hash, resources = excluded.resources, created_at = excluded.created_at";
    /// A few at each new record, so that no creation pays for all.
    CLEAN = "DELETE FROM idempotency WHERE (tenant_id, owner_id, operation, key) IN \
             (SELECT tenant_id, owner_id, operation, key FROM idempotency WHERE created_at <= ?1 ORDER BY created_at LIMIT 16)";
}

/// What a key was used for before.
pub(super) enum Earlier {
    /// Nothing, or too long ago.
    Nothing,
    /// A request with another body.
    Mismatch,
    /// These resources, which may be gone since; then the record is void.
    Created(Vec<Uuid>),
}

fn void_before(now: Timestamp) -> i64 {
    micros(now - TimeDelta::hours(IDEMPOTENCY_HOURS))
}

/// What `key` was used for.
pub(super) async fn earlier(
    connection: &mut SqliteConnection,
    owner: Owner,
    key: Option<&Idempotency>,
    now: Timestamp,
) -> StoreResult<Earlier> {
    let Some(key) = key else {
        return Ok(Earlier::Nothing);
    };
    let found = owned(FIND, owner)
        .bind(&key.operation)
        .bind(&key.key)
        .bind(void_before(now))
        .fetch_optional(connection)
        .await
        .map_err(store_error)?;
    let Some(row) = found else {
        return Ok(Earlier::Nothing);
    };
    let row = Row::of("idempotency", &row);
    if row.get::<&[u8]>("body_hash")? != key.body_hash {
        return Ok(Earlier::Mismatch);
    }
    Ok(Earlier::Created(row.json("resources")?))
}

/// Records what was made under `key`.
pub(super) async fn record(
    connection: &mut SqliteConnection,
    owner: Owner,
    key: Option<&Idempotency>,
    resources: &[Uuid],
    now: Timestamp,
) -> StoreResult<()> {
    let Some(key) = key else {
        return Ok(());
    };
    sqlx::query(CLEAN)
        .bind(void_before(now))
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    owned(RECORD, owner)
        .bind(&key.operation)
        .bind(&key.key)
        .bind(&key.body_hash[..])
        .bind(json(&resources)?)
        .bind(micros(now))
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}
