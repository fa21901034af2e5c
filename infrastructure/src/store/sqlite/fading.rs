//! Forgetting over time, and what brings back from the archive.

use async_trait::async_trait;
use sqlx::SqliteConnection;
use tidemark_application::ports::fading::{Fading, FadingRepository};
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{ChangeId, MemoryId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::{self as domain, ChangeKind, Item, Op};
use tidemark_domain::memory::forgetting::{self, Fate, fades_at, fate};
use uuid::Uuid;

use super::changes::Change;
use super::errors::store_error;
use super::rows::{self, Row, micros, owned};
use super::statements::statements;
use super::{SqliteStore, history, memories};

statements! {
    FADING = "SELECT m.tenant_id, m.owner_id, m.id, m.fades_at FROM memories m INDEXED BY memories_fading \
              WHERE m.state = 'current' AND m.fades_at <= ?1 AND (m.fades_at, m.id) > (?2, ?3) \
              AND (m.expires_at IS NULL OR m.expires_at > ?1) ORDER BY m.fades_at, m.id LIMIT ?4";
    PUT = "UPDATE memories SET state = ?4, layer = ?5, confidence = ?6, valid_from = ?7, last_access = ?8, version = ?9, fades_at = ?10, \
           change = ?11 WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3";
    /// No index of memories knows it, so there is nothing to follow.
    NOTE = "UPDATE memories SET fades_at = ?4 WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3";
}

/// Stores whether a memory is told, how sure it is, since when it holds, and when it was used.
pub(super) async fn put(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Change,
    memory: &Memory,
) -> StoreResult<()> {
    owned(PUT, owner)
        .bind(memory.id.0)
        .bind(memory.state.as_str())
        .bind(memory.layer.as_str())
        .bind(memory.confidence)
        .bind(micros(memory.valid_from))
        .bind(micros(memory.last_access))
        .bind(memory.version)
        .bind(fades_at(memory).map(micros))
        .bind(change.number())
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

async fn fade(
    connection: &mut SqliteConnection,
    owner: Owner,
    due: Vec<MemoryId>,
    id: ChangeId,
    now: Timestamp,
) -> StoreResult<u64> {
    let found = memories::by_ids(&mut *connection, owner, &due, Some(now)).await?;
    let (faded, others): (Vec<_>, Vec<_>) =
        (found.iter()).partition(|memory| fate(memory, now) == Fate::Archive);
    for memory in others {
        owned(NOTE, owner)
            .bind(memory.id.0)
            .bind(fades_at(memory).map(micros))
            .execute(&mut *connection)
            .await
            .map_err(store_error)?;
    }
    if faded.is_empty() {
        return Ok(0);
    }
    let change = &Change::begin(connection, owner).await?;
    memories::expire(connection, owner, change, Some(now)).await?;
    let mut items = Vec::with_capacity(faded.len());
    for memory in faded {
        let (archived, item) = domain::faded(memory);
        put(connection, owner, change, &archived).await?;
        items.push(item);
    }
    let archived = items.len() as u64;
    let kept = domain::Change::new(id, ChangeKind::Archive, now, items);
    history::record(connection, owner, kept).await?;
    Ok(archived)
}

/// Brings back those of the archived memories that had faded, since a turn of this session has shown them.
pub(super) async fn revive(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Change,
    archived: &[Memory],
    (id, session): (ChangeId, SessionId),
    now: Timestamp,
) -> StoreResult<()> {
    let mut items = Vec::new();
    for memory in archived {
        if let Some(revived) = forgetting::revive(memory, now) {
            put(connection, owner, change, &revived).await?;
            items.push(Item::changed(memory, &revived, Op::Restored));
        }
    }
    if items.is_empty() {
        return Ok(());
    }
    let kept = domain::Change::new(id, ChangeKind::Use, now, items).of_session(Some(session));
    history::record(connection, owner, kept).await
}

#[async_trait]
impl FadingRepository for SqliteStore {
    async fn fading(
        &self,
        now: Timestamp,
        after: Option<Fading>,
        limit: u32,
    ) -> StoreResult<Vec<Fading>> {
        let found = sqlx::query(FADING)
            .bind(micros(now))
            .bind(after.map_or(i64::MIN, |after| micros(after.at)))
            .bind(after.map_or(Uuid::nil(), |after| after.memory.0))
            .bind(i64::from(limit))
            .fetch_all(&self.readers)
            .await
            .map_err(store_error)?;
        found
            .iter()
            .map(|row| {
                let owner = rows::owner(row)?;
                let row = Row::of("memories", row);
                Ok(Fading {
                    owner,
                    memory: MemoryId(row.get("id")?),
                    at: row.time("fades_at")?,
                })
            })
            .collect()
    }

    async fn fade(
        &self,
        owner: Owner,
        memories: Vec<MemoryId>,
        change: ChangeId,
        now: Timestamp,
    ) -> StoreResult<u64> {
        self.writer
            .write(move |c| Box::pin(fade(c, owner, memories, change, now)))
            .await
    }
}
