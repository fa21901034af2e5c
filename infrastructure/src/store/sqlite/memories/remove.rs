//! Removing memories: forgotten by their owner, expired, or gone with the messages behind them.

use std::ops::RangeInclusive;

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use tidemark_application::ports::memories::Forgetting;
use tidemark_application::ports::sessions::Updated;
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{MemoryId, MessageId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::change::{self as domain, ChangeKind, Item};
use uuid::Uuid;

use super::{formers, lines, read};
use crate::store::sqlite::changes::Change;
use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::history;
use crate::store::sqlite::recalled;
use crate::store::sqlite::rows::{Row, fingerprint, hex_list, json, micros, owned};
use crate::store::sqlite::statements::{database_now, statements};

statements! {
    /// Sources go with their memory (ON DELETE CASCADE).
    REMOVE = "DELETE FROM memories WHERE tenant_id = ?1 AND owner_id = ?2 AND id IN (SELECT unhex(value) FROM json_each(?3))";
    LIST_REMOVED = "INSERT INTO memory_removals (tenant_id, owner_id, change, memory_id) \
                    SELECT tenant_id, owner_id, ?4, id FROM memories \
                    WHERE tenant_id = ?1 AND owner_id = ?2 AND id IN (SELECT unhex(value) FROM json_each(?3))";
    /// Also ids that no memory has yet.
    BURY = "INSERT INTO tombstones (tenant_id, owner_id, memory_id, forgotten_at) \
            SELECT ?1, ?2, unhex(value), ?4 FROM json_each(?3) WHERE true ON CONFLICT DO NOTHING";
    VERSION = "SELECT version FROM memories \
               WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3 AND (expires_at IS NULL OR expires_at > ?4)";
    EXPIRED = concat!("SELECT id FROM memories INDEXED BY memories_expiring \
                       WHERE tenant_id = ?1 AND owner_id = ?2 AND expires_at <= coalesce(?3, ", database_now!(), ")");
    BURY_PAIRS = "INSERT INTO source_tombstones (tenant_id, owner_id, message_id, fingerprint, forgotten_at) \
                  SELECT ?1, ?2, unhex(value ->> 0), unhex(value ->> 1), ?4 FROM json_each(?3) WHERE true ON CONFLICT DO NOTHING";
    /// Of what the messages of ?3 (memories) and ?4 (pairs) taught, that of which each source has been buried.
    BURIED =
        "SELECT DISTINCT m.id FROM ( \
             SELECT s.message_id FROM memory_sources s \
             WHERE s.tenant_id = ?1 AND s.owner_id = ?2 AND s.memory_id IN (SELECT unhex(value) FROM json_each(?3)) \
             UNION SELECT unhex(value ->> 0) FROM json_each(?4)) asked \
         CROSS JOIN memory_sources t INDEXED BY memory_sources_by_message \
             ON t.tenant_id = ?1 AND t.owner_id = ?2 AND t.message_id = asked.message_id \
         CROSS JOIN memories m ON m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id = t.memory_id \
         WHERE NOT EXISTS (SELECT 1 FROM memory_sources o \
             WHERE o.tenant_id = ?1 AND o.owner_id = ?2 AND o.memory_id = m.id \
             AND NOT EXISTS (SELECT 1 FROM source_tombstones b WHERE b.tenant_id = ?1 AND b.owner_id = ?2 \
                 AND b.message_id = o.message_id AND b.fingerprint = m.fingerprint))";
    BURY_SOURCES =
        "INSERT INTO source_tombstones (tenant_id, owner_id, message_id, fingerprint, forgotten_at) \
         SELECT s.tenant_id, s.owner_id, s.message_id, m.fingerprint, ?4 \
         FROM memories m JOIN memory_sources s ON s.tenant_id = m.tenant_id AND s.owner_id = m.owner_id AND s.memory_id = m.id \
         WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id IN (SELECT unhex(value) FROM json_each(?3)) ON CONFLICT DO NOTHING";
    WITHDRAW_SOURCES = "DELETE FROM memory_sources WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND seq BETWEEN ?4 AND ?5 \
                        RETURNING memory_id";
    ORPHANS = "SELECT m.id FROM memories m \
               WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id IN (SELECT unhex(value) FROM json_each(?3)) \
               AND NOT EXISTS (SELECT 1 FROM memory_sources s \
                   WHERE s.tenant_id = m.tenant_id AND s.owner_id = m.owner_id AND s.memory_id = m.id)";
    TOUCH = "UPDATE memories SET version = version + 1, change = ?4 \
             WHERE tenant_id = ?1 AND owner_id = ?2 AND id IN (SELECT unhex(value) FROM json_each(?3))";
}

async fn with_ids(
    connection: &mut SqliteConnection,
    sql: &'static str,
    owner: Owner,
    change: &Change,
    ids: &str,
) -> StoreResult<()> {
    owned(sql, owner)
        .bind(ids)
        .bind(change.number())
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// Removes memories with their sources and what they said before, lists them as removed, and takes them out of what turns have shown: also
/// those that were shown before they were stored.
pub(in crate::store::sqlite) async fn remove(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Change,
    ids: &[Uuid],
) -> StoreResult<u64> {
    let named = hex_list(ids.iter().copied());
    let formers = formers::ids_of(connection, owner, &named).await?;
    let ids = &hex_list(ids.iter().copied().chain(formers));
    with_ids(connection, LIST_REMOVED, owner, change, ids).await?;
    history::scrub(connection, owner, ids).await?;
    let removed = owned(REMOVE, owner)
        .bind(ids)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    recalled::withdraw(connection, owner, change, ids).await?;
    // Nor do changes keep the words of what edited memories said before and is gone.
    let edited = formers::part(connection, owner, ids).await?;
    history::scrub(connection, owner, &hex_list(edited)).await?;
    Ok(removed.rows_affected())
}

/// Removes what has expired then, or by the database's clock. To be called before whatever else changes an owner's memories.
pub(in crate::store::sqlite) async fn expire(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Change,
    now: Option<Timestamp>,
) -> StoreResult<()> {
    let found = owned(EXPIRED, owner)
        .bind(now.map(micros))
        .fetch_all(&mut *connection)
        .await
        .map_err(store_error)?;
    let expired = ids_of(&found)?;
    if !expired.is_empty() {
        remove(connection, owner, change, &expired).await?;
        lines::release(connection, owner, change, &hex_list(expired)).await?;
    }
    Ok(())
}

/// The version of a memory that has not expired.
async fn version(
    connection: &mut SqliteConnection,
    owner: Owner,
    id: MemoryId,
    now: Timestamp,
) -> StoreResult<Option<i64>> {
    let found = owned(VERSION, owner)
        .bind(id.0)
        .bind(micros(now))
        .fetch_optional(connection)
        .await
        .map_err(store_error)?;
    found
        .map(|row| Row::of("memories", &row).get("version"))
        .transpose()
}

/// Removes memories and keeps their messages from teaching them again.
pub(super) async fn forget(
    connection: &mut SqliteConnection,
    owner: Owner,
    what: Forgetting,
) -> StoreResult<Updated<u64>> {
    match version(connection, owner, what.id, what.now).await? {
        None if !what.fresh => return Ok(Updated::NotFound),
        Some(version) if what.expected.is_some_and(|seen| seen != version) => {
            return Ok(Updated::Stale);
        }
        _ => {}
    }
    let change = Change::begin(connection, owner).await?;
    expire(connection, owner, &change, Some(what.now)).await?;
    let mut ids: Vec<Uuid> = vec![what.id.0];
    ids.extend(what.echoes.iter().map(|id| id.0));
    let named = hex_list(ids.iter().copied());
    let pairs = pairs_json(&what.buried)?;
    for (sql, of) in [(BURY_SOURCES, &named), (BURY_PAIRS, &pairs)] {
        bury(connection, sql, owner, of, what.now).await?;
    }
    let buried = owned(BURIED, owner)
        .bind(&named)
        .bind(&pairs)
        .fetch_all(&mut *connection)
        .await
        .map_err(store_error)?;
    ids.extend(ids_of(&buried)?);
    ids.extend(formers::ids_of(connection, owner, &hex_list(ids.iter().copied())).await?);
    let items = present(connection, owner, &ids).await?;
    let removed = remove(connection, owner, &change, &ids).await?;
    let ids = hex_list(ids);
    bury(connection, BURY, owner, &ids, what.now).await?;
    lines::release(connection, owner, &change, &ids).await?;
    if !items.is_empty() {
        let kept = domain::Change::new(what.change, ChangeKind::Forget, what.now, items);
        history::record(connection, owner, kept).await?;
    }
    Ok(Updated::Done(removed))
}

/// Those of the memories that are there, as they are removed.
async fn present(
    connection: &mut SqliteConnection,
    owner: Owner,
    ids: &[Uuid],
) -> StoreResult<Vec<Item>> {
    let ids: Vec<MemoryId> = ids.iter().copied().map(MemoryId).collect();
    let found = read::by_ids(connection, owner, &ids, None).await?;
    Ok(found.iter().map(|m| Item::removed(m.id)).collect())
}

async fn bury(
    connection: &mut SqliteConnection,
    sql: &'static str,
    owner: Owner,
    of: &str,
    now: Timestamp,
) -> StoreResult<()> {
    owned(sql, owner)
        .bind(of)
        .bind(micros(now))
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// Messages with what they taught, as JSON: `[message, fingerprint]`, both in hexadecimal.
pub(super) fn pairs_json(pairs: &[(MessageId, String)]) -> StoreResult<String> {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(message, identity)| {
            let print = Uuid::from_bytes(fingerprint(identity));
            (message.0.simple().to_string(), print.simple().to_string())
        })
        .collect();
    json(&pairs)
}

fn ids_of(found: &[SqliteRow]) -> StoreResult<Vec<Uuid>> {
    found
        .iter()
        .map(|row| Row::of("memories", row).get("id"))
        .collect()
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
    ids_of(&found)
}

/// Takes messages of a session out of the sources of all memories, and removes those memories that had no others. What these had ended holds
/// again. What became of them.
pub(in crate::store::sqlite) async fn withdraw(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    range: RangeInclusive<i64>,
) -> StoreResult<Vec<Item>> {
    let withdrawn = owned(WITHDRAW_SOURCES, owner)
        .bind(session.0)
        .bind(*range.start())
        .bind(*range.end())
        .fetch_all(&mut *connection)
        .await
        .map_err(store_error)?;
    let touched: Vec<Uuid> = withdrawn
        .iter()
        .map(|row| Row::of("memory_sources", row).get("memory_id"))
        .collect::<StoreResult<_>>()?;
    if touched.is_empty() {
        return Ok(Vec::new());
    }
    let change = &Change::begin(connection, owner).await?;
    // What they had ended stays ended.
    expire(connection, owner, change, None).await?;
    let touched = hex_list(touched);
    let mut orphans = orphans_among(connection, owner, &touched).await?;
    orphans.extend(formers::ids_of(connection, owner, &hex_list(orphans.iter().copied())).await?);
    let reopened = lines::ended_by(connection, owner, &orphans).await?;
    let mut items: Vec<Item> = (orphans.iter())
        .map(|id| Item::removed(MemoryId(*id)))
        .collect();
    if !orphans.is_empty() {
        remove(connection, owner, change, &orphans).await?;
    }
    with_ids(connection, TOUCH, owner, change, &touched).await?;
    items.extend(lines::settle(connection, owner, change, reopened, None).await?);
    Ok(items)
}

/// Removes memories, and keeps the messages behind them from teaching them again.
pub(in crate::store::sqlite) async fn bury_all(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Change,
    ids: &[Uuid],
    now: Timestamp,
) -> StoreResult<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let named = hex_list(ids.iter().copied());
    bury(connection, BURY_SOURCES, owner, &named, now).await?;
    bury(connection, BURY, owner, &named, now).await?;
    remove(connection, owner, change, ids).await?;
    Ok(())
}

/// Keeps messages from teaching again what they taught.
pub(in crate::store::sqlite) async fn bury_pairs(
    connection: &mut SqliteConnection,
    owner: Owner,
    pairs: &[(MessageId, String)],
    now: Timestamp,
) -> StoreResult<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    bury(connection, BURY_PAIRS, owner, &pairs_json(pairs)?, now).await
}
