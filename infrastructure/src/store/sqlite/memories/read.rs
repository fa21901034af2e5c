//! Reading memories.

use sqlx::sqlite::SqliteRow;
use sqlx::{SqliteConnection, SqliteExecutor, SqlitePool};
use tidemark_application::ports::memories::MemoryFilter;
use tidemark_application::ports::store::{Cursor, Page, StoreResult};
use tidemark_domain::ids::{MemoryId, MessageId, Owner, Timestamp};
use tidemark_domain::memory::consolidation::can_be_repeated;
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, State};
use uuid::Uuid;

use super::{memory_columns, remove};
use crate::store::sqlite::errors::{corrupt, store_error};
use crate::store::sqlite::rows::{self, Row, fingerprint, hex_list, json, micros, owned};
use crate::store::sqlite::sessions::{behind, page};
use crate::store::sqlite::statements::{database_now, statements};

/// Not expired at a time, or by the database's clock when none is given.
macro_rules! unexpired {
    ($at:literal) => {
        concat!(
            "(m.expires_at IS NULL OR m.expires_at > coalesce(",
            $at,
            ", ",
            database_now!(),
            "))"
        )
    };
}

pub(in crate::store::sqlite) use unexpired;

statements! {
    BY_IDS = concat!("SELECT ", memory_columns!(), " FROM memories m \
                      WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id IN (SELECT unhex(value) FROM json_each(?3)) AND ",
                      unexpired!("?4"));
    /// `lower` knows ASCII alone, which is what is promised.
    LIST = concat!("SELECT ", memory_columns!(), " FROM memories m \
                    WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND (m.created_at, m.id) < (?3, ?4) \
                    AND (?5 IS NULL OR m.scope = ?5) AND (?6 IS NULL OR m.kind = ?6) AND (?7 IS NULL OR m.layer = ?7) \
                    AND (?8 IS NULL OR m.state = ?8) \
                    AND (?9 IS NULL OR m.session_id = ?9 OR EXISTS (SELECT 1 FROM memory_sources l \
                        WHERE l.tenant_id = ?1 AND l.owner_id = ?2 AND l.memory_id = m.id AND +l.session_id = ?9)) \
                    AND (?10 IS NULL OR instr(lower(m.content), lower(?10)) > 0) \
                    AND m.created_at >= ?11 AND (?12 IS NULL OR m.created_at < ?12) AND (?14 IS NULL OR m.fact_key = ?14) \
                    AND (?15 IS NULL OR (m.state <> 'quarantined' AND m.valid_from <= ?15 AND (m.valid_to IS NULL OR m.valid_to > ?15))) AND ",
                    unexpired!("NULL"), " \
                    ORDER BY m.created_at DESC, m.id DESC LIMIT ?13");
    KEYS_IN_USE = concat!("SELECT m.fact_key FROM memories m INDEXED BY memories_stated \
                           WHERE m.tenant_id = ?1 AND m.owner_id = ?2 \
                           AND m.fact_key IS NOT NULL AND m.state = 'current' AND m.layer = 'semantic' AND ", unexpired!("NULL"), " \
                           ORDER BY m.created_at DESC, m.id DESC LIMIT ?3");
    PREFERENCES = concat!("SELECT ", memory_columns!(), " FROM memories m \
                           WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.state = 'current' AND m.scope = 'user_profile' \
                           AND m.kind = 'preference' AND (m.expires_at IS NULL OR m.expires_at > ?3) \
                           ORDER BY m.valid_from DESC, m.id DESC LIMIT ?4");
    FROM_MESSAGES = concat!("SELECT ", memory_columns!(), " FROM ( \
                                 SELECT DISTINCT o.memory_id FROM json_each(?3) asked \
                                 CROSS JOIN memory_sources o INDEXED BY memory_sources_by_message \
                                 ON o.tenant_id = ?1 AND o.owner_id = ?2 AND o.message_id = unhex(asked.value)) learned \
                             CROSS JOIN memories m ON m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id = learned.memory_id \
                             WHERE ", unexpired!("NULL"));
    BURIED = "SELECT asked.key AS place FROM json_each(?3) asked CROSS JOIN source_tombstones b \
              ON b.tenant_id = ?1 AND b.owner_id = ?2 AND b.message_id = unhex(asked.value ->> 0) AND b.fingerprint = unhex(asked.value ->> 1)";
    BY_IDENTITIES = concat!("SELECT m.identity, ", memory_columns!(), " FROM json_each(?3) asked CROSS JOIN memories m INDEXED BY memories_by_identity \
                             ON m.tenant_id = ?1 AND m.owner_id = ?2 AND m.fingerprint = unhex(asked.value ->> 0) \
                             AND m.identity = asked.value ->> 1 \
                             WHERE m.state IN ('current', 'archived') AND m.layer IN ('semantic', 'archival') AND ", unexpired!("?4"));
}

pub(in crate::store::sqlite) fn read_all(found: &[SqliteRow]) -> StoreResult<Vec<Memory>> {
    found.iter().map(rows::memory).collect()
}

pub(in crate::store::sqlite) async fn by_ids(
    executor: impl SqliteExecutor<'_>,
    owner: Owner,
    ids: &[MemoryId],
    at: Option<Timestamp>,
) -> StoreResult<Vec<Memory>> {
    let found = owned(BY_IDS, owner)
        .bind(hex_list(ids.iter().map(|id| id.0)))
        .bind(at.map(micros))
        .fetch_all(executor)
        .await
        .map_err(store_error)?;
    read_all(&found)
}

pub(super) async fn keys_in_use(
    readers: &SqlitePool,
    owner: Owner,
    limit: u32,
) -> StoreResult<Vec<String>> {
    let found = owned(KEYS_IN_USE, owner)
        .bind(i64::from(limit))
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    found
        .iter()
        .map(|row| rows::Row::of("memories", row).get("fact_key"))
        .collect()
}

pub(super) async fn list(
    readers: &SqlitePool,
    owner: Owner,
    filter: &MemoryFilter,
    after: Option<Cursor>,
    limit: u32,
) -> StoreResult<Page<Memory>> {
    let (at, id) = behind(after);
    let found = owned(LIST, owner)
        .bind(at)
        .bind(id)
        .bind(filter.scope.map(Scope::as_str))
        .bind(filter.kind.map(Kind::as_str))
        .bind(filter.layer.map(Layer::as_str))
        .bind(filter.state.map(State::as_str))
        .bind(filter.session_id.map(|s| s.0))
        .bind(filter.text.as_deref())
        .bind(filter.created_from.map_or(i64::MIN, micros))
        .bind(filter.created_to.map(micros))
        .bind(i64::from(limit) + 1)
        .bind(filter.key.as_deref())
        .bind(filter.as_of.map(micros))
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    Ok(page(read_all(&found)?, limit))
}

pub(super) async fn preferences(
    readers: &SqlitePool,
    owner: Owner,
    now: Timestamp,
    limit: u32,
) -> StoreResult<Vec<Memory>> {
    let found = owned(PREFERENCES, owner)
        .bind(micros(now))
        .bind(i64::from(limit))
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    read_all(&found)
}

pub(super) async fn from_messages(
    readers: &SqlitePool,
    owner: Owner,
    messages: &[MessageId],
) -> StoreResult<Vec<Memory>> {
    let found = owned(FROM_MESSAGES, owner)
        .bind(hex_list(messages.iter().map(|id| id.0)))
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    read_all(&found)
}

pub(super) async fn by_identities(
    executor: impl SqliteExecutor<'_>,
    owner: Owner,
    identities: &[String],
    at: Option<Timestamp>,
) -> StoreResult<Vec<(String, Memory)>> {
    let asked: Vec<_> = identities
        .iter()
        .map(|identity| {
            let print = Uuid::from_bytes(fingerprint(identity));
            (print.simple().to_string(), identity)
        })
        .collect();
    let found = owned(BY_IDENTITIES, owner)
        .bind(json(&asked)?)
        .bind(at.map(micros))
        .fetch_all(executor)
        .await
        .map_err(store_error)?;
    let mut known = Vec::with_capacity(found.len());
    for row in &found {
        let memory = rows::memory(row)?;
        if can_be_repeated(&memory) {
            known.push((Row::of("memories", row).get("identity")?, memory));
        }
    }
    Ok(known)
}

/// Those of the pairs that were forgotten.
pub(super) async fn buried(
    readers: &SqlitePool,
    owner: Owner,
    pairs: &[(MessageId, String)],
) -> StoreResult<Vec<(MessageId, String)>> {
    let found = owned(BURIED, owner)
        .bind(remove::pairs_json(pairs)?)
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    found
        .iter()
        .map(|row| {
            let place: usize = Row::of("source_tombstones", row).number("place")?;
            let pair = pairs.get(place).cloned();
            pair.ok_or_else(|| corrupt("source_tombstones: a pair that nobody asked for"))
        })
        .collect()
}

/// Whether one of these identities is known at this time.
pub(in crate::store::sqlite) async fn any_known(
    connection: &mut SqliteConnection,
    owner: Owner,
    identities: &[String],
    now: Timestamp,
) -> StoreResult<bool> {
    Ok(!by_identities(connection, owner, identities, Some(now))
        .await?
        .is_empty())
}
