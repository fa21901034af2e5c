//! Removing memories: forgotten by their owner, or gone with the messages behind them.

use sqlx::SqliteConnection;
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{MemoryId, Owner, SessionId, Timestamp};
use uuid::Uuid;

use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::rows::{Row, hex_list, micros, owned};
use crate::store::sqlite::statements::statements;

statements! {
    /// Sources go with their memory (ON DELETE CASCADE).
    REMOVE = "DELETE FROM memories WHERE tenant_id = ?1 AND owner_id = ?2 AND id IN (SELECT unhex(value) FROM json_each(?3))";
    REMOVE_TERMS =
        "DELETE FROM memory_terms WHERE (tenant_id, owner_id, term, memory_id) IN ( \
             SELECT m.tenant_id, m.owner_id, t.value ->> 0, m.id FROM memories m, json_each(m.terms) t \
             WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id IN (SELECT unhex(value) FROM json_each(?3)))";
    BURY = "INSERT INTO tombstones (tenant_id, owner_id, memory_id, forgotten_at) \
            SELECT tenant_id, owner_id, id, ?4 FROM memories \
            WHERE tenant_id = ?1 AND owner_id = ?2 AND id IN (SELECT unhex(value) FROM json_each(?3)) ON CONFLICT DO NOTHING";
    BURY_SOURCES =
        "INSERT INTO source_tombstones (tenant_id, owner_id, message_id, fingerprint, forgotten_at) \
         SELECT s.tenant_id, s.owner_id, s.message_id, m.fingerprint, ?4 \
         FROM memories m JOIN memory_sources s ON s.tenant_id = m.tenant_id AND s.owner_id = m.owner_id AND s.memory_id = m.id \
         WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id IN (SELECT unhex(value) FROM json_each(?3)) ON CONFLICT DO NOTHING";
    WITHDRAW_SOURCES = "DELETE FROM memory_sources WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND seq >= ?4 \
                        RETURNING memory_id";
    ORPHANS = "SELECT m.id FROM memories m \
               WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id IN (SELECT unhex(value) FROM json_each(?3)) \
               AND NOT EXISTS (SELECT 1 FROM memory_sources s \
                   WHERE s.tenant_id = m.tenant_id AND s.owner_id = m.owner_id AND s.memory_id = m.id)";
    TOUCH = "UPDATE memories SET version = version + 1 \
             WHERE tenant_id = ?1 AND owner_id = ?2 AND id IN (SELECT unhex(value) FROM json_each(?3))";
}

async fn with_ids(
    connection: &mut SqliteConnection,
    sql: &'static str,
    owner: Owner,
    ids: &str,
) -> StoreResult<u64> {
    let done = owned(sql, owner)
        .bind(ids)
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(done.rows_affected())
}

/// Removes memories with their postings and sources.
async fn remove(connection: &mut SqliteConnection, owner: Owner, ids: &str) -> StoreResult<u64> {
    // The postings are found by the memory's own terms, so they go first.
    with_ids(connection, REMOVE_TERMS, owner, ids).await?;
    with_ids(connection, REMOVE, owner, ids).await
}

/// Removes memories and keeps their messages from teaching them again.
pub(super) async fn forget(
    connection: &mut SqliteConnection,
    owner: Owner,
    ids: Vec<MemoryId>,
    now: Timestamp,
) -> StoreResult<u64> {
    let ids = hex_list(ids.into_iter().map(|id| id.0));
    for sql in [BURY, BURY_SOURCES] {
        owned(sql, owner)
            .bind(&ids)
            .bind(micros(now))
            .execute(&mut *connection)
            .await
            .map_err(store_error)?;
    }
    remove(connection, owner, &ids).await
}

async fn orphans_among(
    connection: &mut SqliteConnection,
    owner: Owner,
    ids: &str,
) -> StoreResult<Vec<Uuid>> {
    let found = owned(ORPHANS, owner)
        .bind(ids)
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    found
        .iter()
        .map(|row| Row::of("memories", row).get("id"))
        .collect()
}

/// Takes a session's messages from `from_seq` on out of the sources of all memories, and removes those memories that had no others.
pub(in crate::store::sqlite) async fn withdraw(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    from_seq: i64,
) -> StoreResult<()> {
    let withdrawn = owned(WITHDRAW_SOURCES, owner)
        .bind(session.0)
        .bind(from_seq)
        .fetch_all(&mut *connection)
        .await
        .map_err(store_error)?;
    let touched: Vec<Uuid> = withdrawn
        .iter()
        .map(|row| Row::of("memory_sources", row).get("memory_id"))
        .collect::<StoreResult<_>>()?;
    if touched.is_empty() {
        return Ok(());
    }
    let touched = hex_list(touched);
    let orphans = hex_list(orphans_among(connection, owner, &touched).await?);
    remove(connection, owner, &orphans).await?;
    with_ids(connection, TOUCH, owner, &touched).await?;
    Ok(())
}
