//! Storing what a caller gives.

use std::collections::{HashMap, HashSet};

use sqlx::SqliteConnection;
use tidemark_application::ports::jobs::NewJob;
use tidemark_application::ports::memories::IndexedMemory;
use tidemark_application::ports::sessions::CreateError;
use tidemark_application::ports::store::{Created, Idempotency, StoreResult};
use tidemark_domain::ids::{ChangeId, MemoryId, Owner, Timestamp};
use tidemark_domain::memory::change::{Change, Item, Op};
use tidemark_domain::memory::conflict::{Touched, repeated, voiced};
use tidemark_domain::memory::{Memory, State};
use uuid::Uuid;

use super::{lines, memory_columns, read, remove, write};
use crate::store::sqlite::changes::Change as Numbered;
use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::fading;
use crate::store::sqlite::history;
use crate::store::sqlite::idempotency::{self, Earlier};
use crate::store::sqlite::jobs;
use crate::store::sqlite::rows::{fingerprint, owned};
use crate::store::sqlite::statements::statements;

statements! {
    /// Of the same layer: a chunk of a conversation with the same words is not what the caller gave, and has another scope and kind.
    PRESENT = concat!("SELECT ", memory_columns!(), " FROM memories m INDEXED BY memories_by_identity \
                       WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.fingerprint = ?3 AND m.identity = ?4 \
                       AND m.state IN ('current', 'archived') AND m.layer IN (?5, 'archival') ORDER BY m.state DESC, m.id");
    /// Of any layer, what waits for confirmation among them.
    SAID = concat!("SELECT ", memory_columns!(), " FROM memories m INDEXED BY memories_by_identity \
                    WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.fingerprint = ?3 AND m.identity = ?4 \
                    AND m.state IN ('current', 'archived') \
                    UNION ALL SELECT ", memory_columns!(), " FROM memories m INDEXED BY memories_waiting \
                    WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.fingerprint = ?3 AND m.identity = ?4 AND m.state = 'quarantined'");
}

/// What says the same as something that waits for confirmation and is confirmed, archived or waits itself: in this order.
async fn said(
    connection: &mut SqliteConnection,
    owner: Owner,
    item: &IndexedMemory,
) -> StoreResult<Vec<Memory>> {
    let found = owned(SAID, owner)
        .bind(&fingerprint(&item.identity)[..])
        .bind(&item.identity)
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    let mut said = read::read_all(&found)?;
    said.sort_by_key(|memory| memory.state);
    Ok(said)
}

/// Whether something new waits for confirmation.
pub(in crate::store::sqlite) fn waits(item: &IndexedMemory) -> bool {
    item.memory.state == State::Quarantined
}

/// New memories without those that wait for confirmation and say nothing new, beside the others or beside what is stored, in whatever order they come.
pub(in crate::store::sqlite) async fn unsaid(
    connection: &mut SqliteConnection,
    owner: Owner,
    new: Vec<IndexedMemory>,
) -> StoreResult<Vec<IndexedMemory>> {
    let told = new.iter().filter(|item| !waits(item));
    let mut known: HashSet<String> = told.map(|item| item.identity.clone()).collect();
    let mut unsaid: Vec<IndexedMemory> = Vec::with_capacity(new.len());
    for item in new {
        let says = !waits(&item)
            || known.insert(item.identity.clone())
                && said(connection, owner, &item).await?.is_empty();
        if says {
            unsaid.push(item);
        }
    }
    Ok(unsaid)
}

async fn present(
    connection: &mut SqliteConnection,
    owner: Owner,
    item: &IndexedMemory,
) -> StoreResult<Option<Memory>> {
    let found = owned(PRESENT, owner)
        .bind(&fingerprint(&item.identity)[..])
        .bind(&item.identity)
        .bind(item.memory.layer.as_str())
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    let mut present = read::read_all(&found)?.into_iter();
    Ok(present.find(|memory| memory.made_in() == item.memory.layer))
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

/// What a caller gives, as one change.
pub(super) struct Given {
    pub(super) items: Vec<IndexedMemory>,
    pub(super) jobs: Vec<NewJob>,
    pub(super) change: ChangeId,
    pub(super) now: Timestamp,
}

pub(super) async fn remember(
    connection: &mut SqliteConnection,
    owner: Owner,
    given: Given,
    key: Option<Idempotency>,
) -> Result<Created<Vec<Memory>>, CreateError> {
    let now = given.now;
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
    let change = Numbered::begin(connection, owner).await?;
    remove::expire(connection, owner, &change, Some(now)).await?;
    let ids = keep(connection, owner, &change, &given).await?;
    jobs::enqueue_for_owner(connection, owner, &given.jobs, now).await?;
    let value = in_order(connection, owner, &ids, now).await?;
    let resources: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    idempotency::record(connection, owner, key.as_ref(), &resources, now).await?;
    Ok(Created {
        value,
        replayed: false,
    })
}

/// Stores what is new, settles the keys, and keeps the change if there is one. The ids of what was given, or is there in its place.
async fn keep(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Numbered,
    given: &Given,
) -> StoreResult<Vec<MemoryId>> {
    let touched = Touched::by(given.items.iter().map(|item| &item.memory));
    let mut line = match &touched {
        Some(touched) => lines::of(&mut *connection, owner, touched, Some(given.now)).await?,
        None => Vec::new(),
    };
    let mut ids = Vec::with_capacity(given.items.len());
    let mut done = Vec::new();
    for item in &given.items {
        let known = if waits(item) {
            let said = said(connection, owner, item).await?.into_iter();
            said.filter(|memory| memory.made_in() == item.memory.layer)
                .find(|memory| memory.id != item.memory.id)
        } else if item.memory.key.is_some() {
            repeated(&line, &item.memory).cloned()
        } else {
            present(connection, owner, item).await?
        };
        let Some(known) = known else {
            if write::add(connection, owner, change, item).await? {
                done.push(Item::created(&item.memory));
            }
            line.push(item.memory.clone());
            ids.push(item.memory.id);
            continue;
        };
        ids.push(known.id);
        if let Some(voiced) = voiced(&known, &item.memory) {
            fading::put(connection, owner, change, &voiced).await?;
            done.push(Item::changed(&known, &voiced, Op::Strengthened));
            line.retain(|memory| memory.id != known.id);
            line.push(voiced);
        }
    }
    let settled = lines::settle(connection, owner, change, touched, Some(given.now)).await?;
    done.extend(settled);
    if !done.is_empty() {
        let memories = given.items.iter().map(|item| &item.memory);
        let kept = Change::adding(given.change, memories, given.now, done);
        history::record(connection, owner, kept).await?;
    }
    Ok(ids)
}
