//! Storing what a caller gives.

use std::collections::HashMap;

use sqlx::SqliteConnection;
use tidemark_application::ports::jobs::NewJob;
use tidemark_application::ports::memories::IndexedMemory;
use tidemark_application::ports::sessions::CreateError;
use tidemark_application::ports::store::{Created, Idempotency, StoreResult};
use tidemark_domain::ids::{MemoryId, Owner, Timestamp};
use tidemark_domain::memory::Memory;
use uuid::Uuid;

use super::{read, remove, write};
use crate::store::sqlite::changes::Change;
use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::idempotency::{self, Earlier};
use crate::store::sqlite::jobs;
use crate::store::sqlite::rows::{Row, fingerprint, owned};
use crate::store::sqlite::statements::statements;

statements! {
    /// Of the same layer: a chunk of a conversation with the same words is not what the caller gave, and has another scope and kind.
    PRESENT = "SELECT id FROM memories INDEXED BY memories_by_identity WHERE tenant_id = ?1 AND owner_id = ?2 AND fingerprint = ?3 AND identity = ?4 \
               AND state = 'current' AND layer = ?5 ORDER BY id LIMIT 1";
}

async fn present(
    connection: &mut SqliteConnection,
    owner: Owner,
    item: &IndexedMemory,
) -> StoreResult<Option<MemoryId>> {
    let found = owned(PRESENT, owner)
        .bind(&fingerprint(&item.identity)[..])
        .bind(&item.identity)
        .bind(item.memory.layer.as_str())
        .fetch_optional(connection)
        .await
        .map_err(store_error)?;
    found
        .map(|row| Row::of("memories", &row).get("id").map(MemoryId))
        .transpose()
}

/// The memories of these ids in their order, one as often as it is named, without those that are gone by then.
async fn in_order(
    connection: &mut SqliteConnection,
    owner: Owner,
    ids: &[MemoryId],
    now: Timestamp,
) -> StoreResult<Vec<Memory>> {
    let found = read::by_ids(connection, owner, ids, Some(now)).await?;
    let found: HashMap<MemoryId, Memory> = found.into_iter().map(|m| (m.id, m)).collect();
    Ok(ids.iter().filter_map(|id| found.get(id).cloned()).collect())
}

pub(super) async fn remember(
    connection: &mut SqliteConnection,
    owner: Owner,
    (items, jobs): (Vec<IndexedMemory>, Vec<NewJob>),
    key: Option<Idempotency>,
    now: Timestamp,
) -> Result<Created<Vec<Memory>>, CreateError> {
    match idempotency::earlier(connection, owner, key.as_ref(), now).await? {
        Earlier::Mismatch => return Err(CreateError::IdempotencyMismatch),
        Earlier::Created(ids) => {
            let ids: Vec<_> = ids.into_iter().map(MemoryId).collect();
            return Ok(Created {
                value: in_order(connection, owner, &ids, now).await?,
                replayed: true,
            });
        }
        Earlier::Nothing => {}
    }
    let change = Change::begin(connection, owner).await?;
    remove::expire(connection, owner, &change, now).await?;
    let mut ids = Vec::with_capacity(items.len());
    for item in &items {
        if let Some(id) = present(connection, owner, item).await? {
            ids.push(id);
        } else {
            write::add(connection, owner, &change, item).await?;
            ids.push(item.memory.id);
        }
    }
    jobs::enqueue_for_owner(connection, owner, &jobs, now).await?;
    let value = in_order(connection, owner, &ids, now).await?;
    let resources: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    idempotency::record(connection, owner, key.as_ref(), &resources, now).await?;
    Ok(Created {
        value,
        replayed: false,
    })
}
