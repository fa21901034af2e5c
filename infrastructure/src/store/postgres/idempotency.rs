//! Repeated creations: the first request that reserves a key makes the resource, later ones are told which it is.

use sqlx::PgConnection;
use tidemark_application::ports::store::{IDEMPOTENCY_HOURS, Idempotency};
use tidemark_domain::ids::{Owner, Timestamp};
use uuid::Uuid;

use super::rows::{owned, owned_as};

/// Waits for a transaction that is reserving the same key. Takes over what is older than a day; as each new record
/// clears an old one, they do not pile up.
const RESERVE: &str = "
WITH cleared AS (
    DELETE FROM idempotency WHERE ctid = (
        SELECT e.ctid FROM idempotency e
        WHERE e.tenant_id = $1 AND e.owner_id = $2 AND e.created_at <= $8 AND (e.operation, e.key) <> ($3, $4)
        ORDER BY e.created_at LIMIT 1
        FOR UPDATE SKIP LOCKED
    )
)
INSERT INTO idempotency AS i (tenant_id, owner_id, operation, key, body_hash, resource_ids, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (tenant_id, owner_id, operation, key) DO UPDATE
    SET body_hash = excluded.body_hash, resource_ids = excluded.resource_ids, created_at = excluded.created_at
    WHERE i.created_at <= $8";

const FIND: &str = "
SELECT body_hash, resource_ids FROM idempotency WHERE tenant_id = $1 AND owner_id = $2 AND operation = $3 AND key = $4";

const REPLACE: &str = "
UPDATE idempotency SET resource_ids = $5, created_at = $6
WHERE tenant_id = $1 AND owner_id = $2 AND operation = $3 AND key = $4";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[RESERVE, FIND, REPLACE];

/// What is known of a key.
pub(super) enum Reservation {
    /// Nothing was made with it: make what the ids name, in this transaction.
    Made,
    /// These were made with it.
    Earlier(Vec<Uuid>),
    /// Something was made with it from another body.
    Mismatch,
}

/// Reserves a key for `ids`. Without a key nothing is ever repeated.
pub(super) async fn reserve(
    tx: &mut PgConnection,
    owner: Owner,
    idempotency: Option<&Idempotency>,
    ids: &[Uuid],
    now: Timestamp,
) -> Result<Reservation, sqlx::Error> {
    let Some(idempotency) = idempotency else {
        return Ok(Reservation::Made);
    };
    let void = now - chrono::TimeDelta::hours(IDEMPOTENCY_HOURS);
    let reserved = owned(RESERVE, owner)
        .bind(&idempotency.operation)
        .bind(&idempotency.key)
        .bind(&idempotency.body_hash[..])
        .bind(ids)
        .bind(now)
        .bind(void)
        .execute(&mut *tx)
        .await?;
    if reserved.rows_affected() == 1 {
        return Ok(Reservation::Made);
    }
    let (body_hash, ids): (Vec<u8>, Vec<Uuid>) = owned_as(FIND, owner)
        .bind(&idempotency.operation)
        .bind(&idempotency.key)
        .fetch_one(tx)
        .await?;
    Ok(if body_hash == idempotency.body_hash {
        Reservation::Earlier(ids)
    } else {
        Reservation::Mismatch
    })
}

/// Lets a key that has been reserved name other resources than was thought.
pub(super) async fn rename(
    tx: &mut PgConnection,
    owner: Owner,
    idempotency: Option<&Idempotency>,
    ids: &[Uuid],
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    if let Some(idempotency) = idempotency {
        owned(REPLACE, owner)
            .bind(&idempotency.operation)
            .bind(&idempotency.key)
            .bind(ids)
            .bind(now)
            .execute(tx)
            .await?;
    }
    Ok(())
}
