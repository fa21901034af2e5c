//! What edited memories said before: memories of their own, which are kept and lost with the edited one.

use sqlx::{SqliteConnection, SqliteExecutor};
use tidemark_application::ports::memories::IndexedMemory;
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{MemoryId, Owner};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::is_said_again;
use uuid::Uuid;

use super::memory_columns;
use super::read::{read_all, unexpired};
use super::write::add;
use crate::store::sqlite::changes::Change;
use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::rows::{Row, micros, owned};
use crate::store::sqlite::statements::{database_now, statements};

statements! {
    OF = concat!("SELECT ", memory_columns!(), " FROM memory_formers f CROSS JOIN memories m \
                  ON m.tenant_id = f.tenant_id AND m.owner_id = f.owner_id AND m.id = f.former_id \
                  WHERE f.tenant_id = ?1 AND f.owner_id = ?2 AND f.memory_id = ?3 AND ", unexpired!("NULL"), " ORDER BY m.valid_from, m.id");
    KEEP = "INSERT INTO memory_formers (tenant_id, owner_id, memory_id, former_id) VALUES (?1, ?2, ?3, ?4)";
    /// They expire with the edited one.
    FOLLOW = "UPDATE memories SET expires_at = ?4, version = version + 1, change = ?5 \
              WHERE tenant_id = ?1 AND owner_id = ?2 \
              AND id IN (SELECT former_id FROM memory_formers WHERE tenant_id = ?1 AND owner_id = ?2 AND memory_id = ?3) \
              AND expires_at IS NOT ?4";
    IDS_OF = "SELECT former_id FROM memory_formers \
              WHERE tenant_id = ?1 AND owner_id = ?2 AND memory_id IN (SELECT unhex(value) FROM json_each(?3))";
    /// What edited memories of which something is gone are.
    PART = "DELETE FROM memory_formers WHERE rowid IN ( \
                SELECT f.rowid FROM memory_formers f \
                WHERE f.tenant_id = ?1 AND f.owner_id = ?2 AND f.memory_id IN (SELECT unhex(value) FROM json_each(?3)) \
                UNION SELECT f.rowid FROM memory_formers f INDEXED BY memory_formers_by_former \
                WHERE f.tenant_id = ?1 AND f.owner_id = ?2 AND f.former_id IN (SELECT unhex(value) FROM json_each(?3))) \
            RETURNING memory_id";
}

/// What a memory said before, in the order of time.
pub(in crate::store::sqlite) async fn of(
    executor: impl SqliteExecutor<'_>,
    owner: Owner,
    memory: MemoryId,
) -> StoreResult<Vec<Memory>> {
    let found = owned(OF, owner)
        .bind(memory.0)
        .fetch_all(executor)
        .await
        .map_err(store_error)?;
    read_all(&found)
}

/// Keeps what an edited memory said until now, if that is to be kept, with what it said before.
pub(in crate::store::sqlite) async fn keep(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Change,
    edited: &Memory,
    former: Option<&IndexedMemory>,
) -> StoreResult<()> {
    owned(FOLLOW, owner)
        .bind(edited.id.0)
        .bind(edited.expires_at.map(micros))
        .bind(change.number())
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    if let Some(former) = former
        && add(connection, owner, change, former).await?
    {
        owned(KEEP, owner)
            .bind(edited.id.0)
            .bind(former.memory.id.0)
            .execute(connection)
            .await
            .map_err(store_error)?;
    }
    Ok(())
}

/// What memories said before.
pub(super) async fn ids_of(
    connection: &mut SqliteConnection,
    owner: Owner,
    memories: &str,
) -> StoreResult<Vec<Uuid>> {
    let found = owned(IDS_OF, owner)
        .bind(memories)
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    found
        .iter()
        .map(|row| Row::of("memory_formers", row).get("former_id"))
        .collect()
}

/// Forgets which memory said what before, of memories that are gone on either side. The edited ones.
pub(in crate::store::sqlite) async fn part(
    connection: &mut SqliteConnection,
    owner: Owner,
    gone: &str,
) -> StoreResult<Vec<Uuid>> {
    let found = owned(PART, owner)
        .bind(gone)
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    found
        .iter()
        .map(|row| Row::of("memory_formers", row).get("memory_id"))
        .collect()
}

/// What a memory that is put back says itself again is not kept beside it. The ids, which are there until they are removed.
pub(in crate::store::sqlite) async fn said_again(
    connection: &mut SqliteConnection,
    owner: Owner,
    restored: &Memory,
) -> StoreResult<Vec<Uuid>> {
    let formers = of(connection, owner, restored.id).await?.into_iter();
    let again = formers.filter(|former| is_said_again(former, restored));
    Ok(again.map(|former| former.id.0).collect())
}
