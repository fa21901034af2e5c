//! The changes of what is remembered, kept so that they can be listed and undone.

use std::collections::HashMap;

use async_trait::async_trait;
use sqlx::PgConnection;
use sqlx::types::Json;
use tidemark_application::ports::changes::{ChangeRepository, Edit, Reversal, RevertError};
use tidemark_application::ports::sessions::Updated;
use tidemark_application::ports::store::{Cursor, Page, StoreResult};
use tidemark_domain::ids::{ChangeId, MemoryId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::{Change, ChangeKind, Item, Op, Values, merged};
use uuid::Uuid;

use super::messages::page;
use super::rows::{all, named, owned, owned_as};
use super::{PostgresStore, edits, formers, lines};

/// With what it did to each memory.
const ADD: &str = "
WITH kept AS (
    INSERT INTO changes (tenant_id, owner_id, id, number, kind, session_id, from_seq, to_seq, created_at, reverts)
    SELECT $1, $2, $3, o.memory_change, $4, $5, $6, $7, $8, $9 FROM owners o WHERE o.tenant_id = $1 AND o.owner_id = $2
)
INSERT INTO change_items (tenant_id, owner_id, change_id, memory_id, op, version, before_values, after_values)
SELECT $1, $2, $3, n.memory_id, n.op, n.version, n.before_values, n.after_values
FROM unnest($10::uuid[], $11::text[], $12::bigint[], $13::jsonb[], $14::jsonb[]) AS n (memory_id, op, version, before_values, after_values)";

/// The values that changes keep of memories that are gone.
const SCRUB: &str = "
UPDATE change_items i SET before_values = '{}', after_values = '{}'
WHERE i.tenant_id = $1 AND i.owner_id = $2 AND i.memory_id = ANY($3)";

const DROP_OF_SESSION: &str =
    "DELETE FROM changes WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3";

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

const FIND: &str = concat!(
    "SELECT ",
    change_columns!(),
    " FROM changes c WHERE c.tenant_id = $1 AND c.owner_id = $2 AND c.id = $3"
);

const BEHIND: &str = concat!(
    "SELECT ",
    change_columns!(),
    " FROM changes c WHERE c.tenant_id = $1 AND c.owner_id = $2 AND c.id > $3 ORDER BY c.id LIMIT $4"
);

const LIST: &str = concat!(
    "SELECT ",
    change_columns!(),
    " FROM changes c WHERE c.tenant_id = $1 AND c.owner_id = $2 AND (c.created_at, c.id) < ($3, $4)
      ORDER BY c.created_at DESC, c.id DESC LIMIT $5"
);

const LIST_OF_SESSION: &str = concat!(
    "SELECT ",
    change_columns!(),
    " FROM changes c WHERE c.tenant_id = $1 AND c.owner_id = $2 AND c.session_id = $6 AND (c.created_at, c.id) < ($3, $4)
      ORDER BY c.created_at DESC, c.id DESC LIMIT $5"
);

const ITEMS: &str = concat!(
    "SELECT ",
    item_columns!(),
    " FROM change_items i WHERE i.tenant_id = $1 AND i.owner_id = $2 AND i.change_id = ANY($3) ORDER BY i.change_id, i.memory_id"
);

const OF_MEMORY: &str = concat!(
    "SELECT ",
    change_columns!(),
    ", ",
    item_columns!(),
    " FROM change_items i JOIN changes c ON c.tenant_id = i.tenant_id AND c.owner_id = i.owner_id AND c.id = i.change_id
      WHERE i.tenant_id = $1 AND i.owner_id = $2 AND i.memory_id = $3 ORDER BY c.number, c.created_at, c.id"
);

const LATER: &str = concat!(
    "SELECT ",
    item_columns!(),
    " FROM change_items i JOIN changes c ON c.tenant_id = i.tenant_id AND c.owner_id = i.owner_id AND c.id = i.change_id
      WHERE i.tenant_id = $1 AND i.owner_id = $2 AND i.memory_id = ANY($4) AND c.reverted_by IS NULL AND c.reverts IS NULL
        AND c.number > (SELECT n.number FROM changes n WHERE n.tenant_id = $1 AND n.owner_id = $2 AND n.id = $3)"
);

/// What messages have taught by now.
const TAUGHT: &str = "
SELECT DISTINCT m.id, m.version
FROM memory_sources s JOIN memories m ON m.tenant_id = s.tenant_id AND m.owner_id = s.owner_id AND m.id = s.memory_id
WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.session_id = $3 AND s.seq > $4 AND s.seq <= $5 ORDER BY m.id";

const MARK: &str =
    "UPDATE changes SET reverted_by = $4 WHERE tenant_id = $1 AND owner_id = $2 AND id = $3";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    ADD,
    SCRUB,
    DROP_OF_SESSION,
    FIND,
    BEHIND,
    LIST,
    LIST_OF_SESSION,
    ITEMS,
    OF_MEMORY,
    LATER,
    TAUGHT,
    MARK,
];

/// Keeps a change, after the memories were changed.
pub(super) async fn record(
    tx: &mut PgConnection,
    owner: Owner,
    change: Change,
) -> Result<(), sqlx::Error> {
    let items = merged(change.items);
    let values = |of: fn(&Item) -> &Values| -> Vec<Json<Values>> {
        items.iter().map(|item| Json(of(item).clone())).collect()
    };
    owned(ADD, owner)
        .bind(change.id.0)
        .bind(change.kind.as_str())
        .bind(change.session_id.map(|id| id.0))
        .bind(change.range.map(|(from, _)| from))
        .bind(change.range.map(|(_, to)| to))
        .bind(change.created_at)
        .bind(change.reverts.map(|id| id.0))
        .bind(items.iter().map(|i| i.memory.0).collect::<Vec<_>>())
        .bind(items.iter().map(|i| i.op.as_str()).collect::<Vec<_>>())
        .bind(items.iter().map(|i| i.version).collect::<Vec<_>>())
        .bind(values(|item| &item.before))
        .bind(values(|item| &item.after))
        .execute(tx)
        .await?;
    Ok(())
}

/// Takes away what the changes keep of memories that are gone.
pub(super) async fn scrub(
    tx: &mut PgConnection,
    owner: Owner,
    gone: &[Uuid],
) -> Result<(), sqlx::Error> {
    if !gone.is_empty() {
        owned(SCRUB, owner).bind(gone).execute(tx).await?;
    }
    Ok(())
}

/// Drops the changes of a session that is deleted with what it taught.
pub(super) async fn drop_of_session(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
) -> Result<(), sqlx::Error> {
    owned(DROP_OF_SESSION, owner)
        .bind(session.0)
        .execute(tx)
        .await?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct ChangeRow {
    id: Uuid,
    kind: String,
    session_id: Option<Uuid>,
    from_seq: Option<i64>,
    to_seq: Option<i64>,
    created_at: Timestamp,
    reverted_by: Option<Uuid>,
    reverts: Option<Uuid>,
}

impl TryFrom<ChangeRow> for Change {
    type Error = sqlx::Error;

    fn try_from(row: ChangeRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: ChangeId(row.id),
            kind: named("changes.kind", &row.kind, ChangeKind::parse)?,
            session_id: row.session_id.map(SessionId),
            range: row.from_seq.zip(row.to_seq),
            created_at: row.created_at,
            reverted_by: row.reverted_by.map(ChangeId),
            reverts: row.reverts.map(ChangeId),
            items: Vec::new(),
        })
    }
}

#[derive(sqlx::FromRow)]
struct ItemRow {
    change_id: Uuid,
    memory_id: Uuid,
    op: String,
    version: i64,
    before_values: Json<Values>,
    after_values: Json<Values>,
}

impl TryFrom<ItemRow> for Item {
    type Error = sqlx::Error;

    fn try_from(row: ItemRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            memory: MemoryId(row.memory_id),
            op: named("change_items.op", &row.op, Op::parse)?,
            version: row.version,
            before: row.before_values.0,
            after: row.after_values.0,
        })
    }
}

#[derive(sqlx::FromRow)]
struct PastRow {
    #[sqlx(flatten)]
    change: ChangeRow,
    #[sqlx(flatten)]
    item: ItemRow,
}

/// Changes with their items.
async fn filled(
    tx: &mut PgConnection,
    owner: Owner,
    mut changes: Vec<Change>,
) -> Result<Vec<Change>, sqlx::Error> {
    let rows: Vec<ItemRow> = owned_as(ITEMS, owner)
        .bind(changes.iter().map(|c| c.id.0).collect::<Vec<_>>())
        .fetch_all(&mut *tx)
        .await?;
    let mut items: HashMap<Uuid, Vec<Item>> = HashMap::new();
    for row in rows {
        items
            .entry(row.change_id)
            .or_default()
            .push(row.try_into()?);
    }
    for change in &mut changes {
        change.items = items.remove(&change.id.0).unwrap_or_default();
        if let (ChangeKind::Import, Some(session), Some((from, to))) =
            (change.kind, change.session_id, change.range)
        {
            let taught: Vec<(Uuid, i64)> = owned_as(TAUGHT, owner)
                .bind(session.0)
                .bind(from)
                .bind(to)
                .fetch_all(&mut *tx)
                .await?;
            change.items = taught.into_iter().map(learned).collect();
        }
    }
    Ok(changes)
}

fn learned((id, version): (Uuid, i64)) -> Item {
    Item {
        memory: MemoryId(id),
        op: Op::Created,
        version,
        before: Values::new(),
        after: Values::new(),
    }
}

/// A change with its items.
pub(super) async fn find(
    tx: &mut PgConnection,
    owner: Owner,
    id: ChangeId,
) -> Result<Option<Change>, sqlx::Error> {
    let row: Option<ChangeRow> = owned_as(FIND, owner)
        .bind(id.0)
        .fetch_optional(&mut *tx)
        .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(filled(tx, owner, vec![row.try_into()?]).await?.pop())
}

/// Changes behind an id, in the order of their ids.
pub(super) async fn after(
    tx: &mut PgConnection,
    owner: Owner,
    id: Uuid,
    limit: i64,
) -> Result<Vec<Change>, sqlx::Error> {
    let rows: Vec<ChangeRow> = owned_as(BEHIND, owner)
        .bind(id)
        .bind(limit)
        .fetch_all(&mut *tx)
        .await?;
    filled(tx, owner, all(rows)?).await
}

async fn list(
    tx: &mut PgConnection,
    owner: Owner,
    session: Option<SessionId>,
    after: Option<Cursor>,
    limit: u32,
) -> Result<Page<Change>, sqlx::Error> {
    let sql = session.map_or(LIST, |_| LIST_OF_SESSION);
    let mut query = owned_as(sql, owner)
        .bind(after.map_or(Timestamp::MAX_UTC, |cursor| cursor.at))
        .bind(after.map_or(Uuid::max(), |cursor| cursor.id))
        .bind(i64::from(limit) + 1);
    if let Some(session) = session {
        query = query.bind(session.0);
    }
    let rows: Vec<ChangeRow> = query.fetch_all(&mut *tx).await?;
    let Page { items, more } = page(all(rows)?, limit);
    let items = filled(tx, owner, items).await?;
    Ok(Page { items, more })
}

async fn of_memory(
    tx: &mut PgConnection,
    owner: Owner,
    memory: MemoryId,
) -> Result<Vec<Change>, sqlx::Error> {
    let rows: Vec<PastRow> = owned_as(OF_MEMORY, owner)
        .bind(memory.0)
        .fetch_all(tx)
        .await?;
    rows.into_iter()
        .map(|row| {
            let mut change = Change::try_from(row.change)?;
            change.items.push(row.item.try_into()?);
            Ok(change)
        })
        .collect()
}

async fn later(
    tx: &mut PgConnection,
    owner: Owner,
    than: ChangeId,
    memories: &[Uuid],
) -> Result<Vec<Item>, sqlx::Error> {
    let rows: Vec<ItemRow> = owned_as(LATER, owner)
        .bind(than.0)
        .bind(memories)
        .fetch_all(tx)
        .await?;
    all(rows)
}

/// Notes that a change was undone.
pub(super) async fn mark(
    tx: &mut PgConnection,
    owner: Owner,
    reverted: ChangeId,
    by: ChangeId,
) -> Result<(), sqlx::Error> {
    owned(MARK, owner)
        .bind(reverted.0)
        .bind(by.0)
        .execute(tx)
        .await?;
    Ok(())
}

#[async_trait]
impl ChangeRepository for PostgresStore {
    async fn ended_by(&self, owner: Owner, memory: MemoryId) -> StoreResult<Vec<Memory>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(lines::ended(tx, owner, memory).await?) })
            })
            .await
    }

    async fn formers(&self, owner: Owner, memory: MemoryId) -> StoreResult<Vec<Memory>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(formers::of(tx, owner, memory).await?) })
            })
            .await
    }

    async fn list_changes(
        &self,
        owner: Owner,
        session: Option<SessionId>,
        after: Option<Cursor>,
        limit: u32,
    ) -> StoreResult<Page<Change>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(list(tx, owner, session, after, limit).await?) })
            })
            .await
    }

    async fn change(&self, owner: Owner, id: ChangeId) -> StoreResult<Option<Change>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(find(tx, owner, id).await?) })
            })
            .await
    }

    async fn changes_of(&self, owner: Owner, memory: MemoryId) -> StoreResult<Vec<Change>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(of_memory(tx, owner, memory).await?) })
            })
            .await
    }

    async fn later_items(
        &self,
        owner: Owner,
        than: ChangeId,
        memories: &[MemoryId],
    ) -> StoreResult<Vec<Item>> {
        let memories: Vec<Uuid> = memories.iter().map(|id| id.0).collect();
        self.database
            .read(owner.tenant, memories, move |tx, memories| {
                Box::pin(async move { Ok(later(tx, owner, than, memories).await?) })
            })
            .await
    }

    async fn edit_memory(&self, owner: Owner, edit: Edit) -> StoreResult<Updated<Memory>> {
        self.database
            .write(owner.tenant, edit, move |tx, edit| {
                Box::pin(async move { Ok(edits::edit(tx, owner, edit).await?) })
            })
            .await
    }

    async fn revert(&self, owner: Owner, reversal: Reversal) -> Result<Change, RevertError> {
        self.database
            .write(owner.tenant, reversal, move |tx, reversal| {
                Box::pin(edits::revert(tx, owner, reversal))
            })
            .await
    }
}
