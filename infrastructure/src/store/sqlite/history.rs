//! The changes of what is remembered, kept so that they can be listed and undone.

use std::collections::HashMap;

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{SqliteConnection, SqlitePool};
use tidemark_application::ports::changes::{ChangeRepository, Edit, Reversal, RevertError};
use tidemark_application::ports::sessions::Updated;
use tidemark_application::ports::store::{Cursor, Page, StoreResult};
use tidemark_domain::ids::{ChangeId, MemoryId, Owner, SessionId};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::{Change, ChangeKind, Item, Op, merged};
use uuid::Uuid;

use super::errors::store_error;
use super::rows::{Row, hex_list, json, micros, owned};
use super::sessions::{behind, page};
use super::snapshot::snapshot;
use super::statements::statements;
use super::{SqliteStore, edits, memories};

macro_rules! change_columns {
    () => {
        "c.id, c.kind, c.session_id, c.from_seq, c.to_seq, c.created_at, c.reverted_by, c.reverts"
    };
}

macro_rules! item_columns {
    () => {
        "i.change_id, i.memory_id, i.op, i.version, i.before_values, i.after_values"
    };
}

statements! {
    ADD = "INSERT INTO changes (tenant_id, owner_id, id, number, kind, session_id, from_seq, to_seq, created_at, reverts) \
           SELECT ?1, ?2, ?3, memory_change, ?4, ?5, ?6, ?7, ?8, ?9 FROM owners WHERE tenant_id = ?1 AND owner_id = ?2";
    ADD_ITEMS = "INSERT INTO change_items (tenant_id, owner_id, change_id, memory_id, op, version, before_values, after_values) \
                 SELECT ?1, ?2, ?3, unhex(value ->> 0), value ->> 1, value ->> 2, value -> 3, value -> 4 FROM json_each(?4)";
    /// The values that changes keep of memories that are gone.
    SCRUB = "UPDATE change_items INDEXED BY change_items_by_memory SET before_values = '{}', after_values = '{}' \
             WHERE tenant_id = ?1 AND owner_id = ?2 AND memory_id IN (SELECT unhex(value) FROM json_each(?3))";
    FIND = concat!("SELECT ", change_columns!(), " FROM changes c WHERE c.tenant_id = ?1 AND c.owner_id = ?2 AND c.id = ?3");
    BEHIND = concat!("SELECT ", change_columns!(), " FROM changes c \
                      WHERE c.tenant_id = ?1 AND c.owner_id = ?2 AND c.id > ?3 ORDER BY c.id LIMIT ?4");
    LIST = concat!("SELECT ", change_columns!(), " FROM changes c \
                    WHERE c.tenant_id = ?1 AND c.owner_id = ?2 AND (c.created_at, c.id) < (?3, ?4) \
                    ORDER BY c.created_at DESC, c.id DESC LIMIT ?5");
    LIST_OF_SESSION = concat!("SELECT ", change_columns!(), " FROM changes c INDEXED BY changes_by_session \
                    WHERE c.tenant_id = ?1 AND c.owner_id = ?2 AND c.session_id = ?6 AND (c.created_at, c.id) < (?3, ?4) \
                    ORDER BY c.created_at DESC, c.id DESC LIMIT ?5");
    ITEMS = concat!("SELECT ", item_columns!(), " FROM json_each(?3) asked CROSS JOIN change_items i \
                     ON i.tenant_id = ?1 AND i.owner_id = ?2 AND i.change_id = unhex(asked.value) ORDER BY i.change_id, i.memory_id");
    OF_MEMORY = concat!("SELECT ", change_columns!(), ", ", item_columns!(), " FROM change_items i INDEXED BY change_items_by_memory \
                         CROSS JOIN changes c ON c.tenant_id = ?1 AND c.owner_id = ?2 AND c.id = i.change_id \
                         WHERE i.tenant_id = ?1 AND i.owner_id = ?2 AND i.memory_id = ?3 ORDER BY c.number, c.created_at, c.id");
    LATER = concat!("SELECT ", item_columns!(), " FROM json_each(?4) asked \
                     CROSS JOIN change_items i INDEXED BY change_items_by_memory \
                     ON i.tenant_id = ?1 AND i.owner_id = ?2 AND i.memory_id = unhex(asked.value) \
                     CROSS JOIN changes c ON c.tenant_id = ?1 AND c.owner_id = ?2 AND c.id = i.change_id \
                     WHERE c.reverted_by IS NULL AND c.reverts IS NULL AND c.number > (SELECT n.number FROM changes n \
                         WHERE n.tenant_id = ?1 AND n.owner_id = ?2 AND n.id = ?3)");
    /// What messages have taught by now.
    TAUGHT = "SELECT DISTINCT m.id, m.version FROM memory_sources s INDEXED BY memory_sources_by_session \
              CROSS JOIN memories m ON m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id = s.memory_id \
              WHERE s.tenant_id = ?1 AND s.owner_id = ?2 AND s.session_id = ?3 AND s.seq > ?4 AND s.seq <= ?5 ORDER BY m.id";
    MARK = "UPDATE changes SET reverted_by = ?4 WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3";
    DROP_OF_SESSION = "DELETE FROM changes WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3";
}

/// Keeps a change, after the memories were changed.
pub(super) async fn record(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: Change,
) -> StoreResult<()> {
    owned(ADD, owner)
        .bind(change.id.0)
        .bind(change.kind.as_str())
        .bind(change.session_id.map(|id| id.0))
        .bind(change.range.map(|(from, _)| from))
        .bind(change.range.map(|(_, to)| to))
        .bind(micros(change.created_at))
        .bind(change.reverts.map(|id| id.0))
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    let items: Vec<_> = merged(change.items).into_iter().map(row).collect();
    if items.is_empty() {
        return Ok(());
    }
    owned(ADD_ITEMS, owner)
        .bind(change.id.0)
        .bind(json(&items)?)
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

fn row(
    item: Item,
) -> (
    String,
    &'static str,
    i64,
    serde_json::Value,
    serde_json::Value,
) {
    (
        item.memory.0.simple().to_string(),
        item.op.as_str(),
        item.version,
        item.before.into(),
        item.after.into(),
    )
}

/// Takes away what the changes keep of memories that are gone; their ids as a list of hexadecimal text.
pub(super) async fn scrub(
    connection: &mut SqliteConnection,
    owner: Owner,
    gone: &str,
) -> StoreResult<()> {
    owned(SCRUB, owner)
        .bind(gone)
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// Drops the changes of a session that is deleted with what it taught.
pub(super) async fn drop_of_session(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
) -> StoreResult<()> {
    owned(DROP_OF_SESSION, owner)
        .bind(session.0)
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

fn change(row: &SqliteRow) -> StoreResult<Change> {
    let row = Row::of("changes", row);
    let id = |column| -> StoreResult<Option<Uuid>> { row.get(column) };
    let from: Option<i64> = row.get("from_seq")?;
    let to: Option<i64> = row.get("to_seq")?;
    Ok(Change {
        id: ChangeId(row.get("id")?),
        kind: row.name("kind", ChangeKind::parse)?,
        session_id: id("session_id")?.map(SessionId),
        range: from.zip(to),
        created_at: row.time("created_at")?,
        reverted_by: id("reverted_by")?.map(ChangeId),
        reverts: id("reverts")?.map(ChangeId),
        items: Vec::new(),
    })
}

fn item(row: &SqliteRow) -> StoreResult<(ChangeId, Item)> {
    let row = Row::of("change_items", row);
    let item = Item {
        memory: MemoryId(row.get("memory_id")?),
        op: row.name("op", Op::parse)?,
        version: row.get("version")?,
        before: row.json("before_values")?,
        after: row.json("after_values")?,
    };
    Ok((ChangeId(row.get("change_id")?), item))
}

/// Changes with their items.
async fn filled(
    connection: &mut SqliteConnection,
    owner: Owner,
    mut changes: Vec<Change>,
) -> StoreResult<Vec<Change>> {
    let found = owned(ITEMS, owner)
        .bind(hex_list(changes.iter().map(|change| change.id.0)))
        .fetch_all(&mut *connection)
        .await
        .map_err(store_error)?;
    let mut items: HashMap<ChangeId, Vec<Item>> = HashMap::new();
    for row in &found {
        let (change, item) = item(row)?;
        items.entry(change).or_default().push(item);
    }
    for change in &mut changes {
        change.items = items.remove(&change.id).unwrap_or_default();
        if let (ChangeKind::Import, Some(session), Some(range)) =
            (change.kind, change.session_id, change.range)
        {
            change.items = taught(&mut *connection, owner, session, range).await?;
        }
    }
    Ok(changes)
}

/// What the messages of an import have taught by now.
async fn taught(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    (from, to): (i64, i64),
) -> StoreResult<Vec<Item>> {
    let found = owned(TAUGHT, owner)
        .bind(session.0)
        .bind(from)
        .bind(to)
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    found
        .iter()
        .map(|row| {
            let row = Row::of("memories", row);
            Ok(Item {
                memory: MemoryId(row.get("id")?),
                op: Op::Created,
                version: row.get("version")?,
                before: serde_json::Map::new(),
                after: serde_json::Map::new(),
            })
        })
        .collect()
}

/// A change with its items.
pub(super) async fn find(
    connection: &mut SqliteConnection,
    owner: Owner,
    id: ChangeId,
) -> StoreResult<Option<Change>> {
    let found = owned(FIND, owner)
        .bind(id.0)
        .fetch_optional(&mut *connection)
        .await
        .map_err(store_error)?;
    let Some(row) = found else { return Ok(None) };
    Ok(filled(connection, owner, vec![change(&row)?]).await?.pop())
}

async fn list(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: Option<SessionId>,
    (at, id): (i64, Uuid),
    limit: u32,
) -> StoreResult<Page<Change>> {
    let sql = session.map_or(LIST, |_| LIST_OF_SESSION);
    let mut query = owned(sql, owner)
        .bind(at)
        .bind(id)
        .bind(i64::from(limit) + 1);
    if let Some(session) = session {
        query = query.bind(session.0);
    }
    let found = query
        .fetch_all(&mut *connection)
        .await
        .map_err(store_error)?;
    let changes: Vec<Change> = found.iter().map(change).collect::<StoreResult<_>>()?;
    let Page { items, more } = page(changes, limit);
    let items = filled(connection, owner, items).await?;
    Ok(Page { items, more })
}

/// Notes that a change was undone.
pub(super) async fn mark(
    connection: &mut SqliteConnection,
    owner: Owner,
    reverted: ChangeId,
    by: ChangeId,
) -> StoreResult<()> {
    owned(MARK, owner)
        .bind(reverted.0)
        .bind(by.0)
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// Changes behind an id, in the order of their ids.
pub(super) async fn after(
    readers: &SqlitePool,
    owner: Owner,
    id: Uuid,
    limit: u32,
) -> StoreResult<Vec<Change>> {
    snapshot(readers, move |connection| {
        Box::pin(async move {
            let found = owned(BEHIND, owner)
                .bind(id)
                .bind(i64::from(limit))
                .fetch_all(&mut *connection)
                .await
                .map_err(store_error)?;
            let changes = found.iter().map(change).collect::<StoreResult<_>>()?;
            filled(connection, owner, changes).await
        })
    })
    .await
}

#[async_trait]
impl ChangeRepository for SqliteStore {
    async fn ended_by(&self, owner: Owner, memory: MemoryId) -> StoreResult<Vec<Memory>> {
        memories::lines::ended(&self.readers, owner, memory).await
    }

    async fn formers(&self, owner: Owner, memory: MemoryId) -> StoreResult<Vec<Memory>> {
        memories::formers::of(&self.readers, owner, memory).await
    }

    async fn list_changes(
        &self,
        owner: Owner,
        session: Option<SessionId>,
        after: Option<Cursor>,
        limit: u32,
    ) -> StoreResult<Page<Change>> {
        let (at, id) = behind(after);
        snapshot(&self.readers, move |c| {
            Box::pin(list(c, owner, session, (at, id), limit))
        })
        .await
    }

    async fn change(&self, owner: Owner, id: ChangeId) -> StoreResult<Option<Change>> {
        snapshot(&self.readers, move |c| Box::pin(find(c, owner, id))).await
    }

    async fn changes_of(&self, owner: Owner, memory: MemoryId) -> StoreResult<Vec<Change>> {
        let found = owned(OF_MEMORY, owner)
            .bind(memory.0)
            .fetch_all(&self.readers)
            .await
            .map_err(store_error)?;
        found
            .iter()
            .map(|row| {
                let mut change = change(row)?;
                change.items.push(item(row)?.1);
                Ok(change)
            })
            .collect()
    }

    async fn later_items(
        &self,
        owner: Owner,
        than: ChangeId,
        memories: &[MemoryId],
    ) -> StoreResult<Vec<Item>> {
        let found = owned(LATER, owner)
            .bind(than.0)
            .bind(hex_list(memories.iter().map(|id| id.0)))
            .fetch_all(&self.readers)
            .await
            .map_err(store_error)?;
        found.iter().map(|row| Ok(item(row)?.1)).collect()
    }

    async fn edit_memory(&self, owner: Owner, edit: Edit) -> StoreResult<Updated<Memory>> {
        self.writer
            .write(move |c| Box::pin(edits::edit(c, owner, edit)))
            .await
    }

    async fn revert(&self, owner: Owner, reversal: Reversal) -> Result<Change, RevertError> {
        self.writer
            .write(move |c| Box::pin(edits::revert(c, owner, reversal)))
            .await
    }
}
