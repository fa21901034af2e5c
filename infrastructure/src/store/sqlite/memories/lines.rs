//! All that is said of a key, and how long each of it holds: the domain decides, within the transaction that has changed any of it.

use sqlx::{SqliteConnection, SqliteExecutor};
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{MemoryId, Owner, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::Item;
use tidemark_domain::memory::conflict::{Touched, verdicts};
use uuid::Uuid;

use super::memory_columns;
use super::read::{read_all, unexpired};
use crate::store::sqlite::changes::Change;
use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::rows::{Row, hex_list, json, micros, owned};
use crate::store::sqlite::statements::{database_now, statements};

statements! {
    LINES = concat!("SELECT ", memory_columns!(), " FROM json_each(?3) asked CROSS JOIN memories m INDEXED BY memories_by_key \
                     ON m.tenant_id = ?1 AND m.owner_id = ?2 AND m.fact_key = asked.value \
                     AND coalesce(m.valid_to, 9223372036854775807) >= ?4 \
                     WHERE m.state <> 'quarantined' AND ", unexpired!("?5"));
    STAND = "UPDATE memories SET state = ?4, valid_to = ?5, superseded_by = ?6, version = version + 1, change = ?7, ended_at = ?8 \
             WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3";
    RELEASE = "UPDATE memories SET superseded_by = NULL, ended_at = valid_to, version = version + 1, change = ?4 \
               WHERE tenant_id = ?1 AND owner_id = ?2 AND superseded_by IN (SELECT unhex(value) FROM json_each(?3))";
    ENDED = concat!("SELECT ", memory_columns!(), " FROM memories m INDEXED BY memories_by_successor \
                     WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.superseded_by = ?3 AND ", unexpired!("NULL"));
    ENDED_BY = "SELECT fact_key, min(valid_from) AS since FROM memories INDEXED BY memories_by_successor \
                WHERE tenant_id = ?1 AND owner_id = ?2 AND superseded_by IN (SELECT unhex(value) FROM json_each(?3)) AND fact_key IS NOT NULL \
                GROUP BY fact_key";
}

/// All that is said of the keys and did not end before; expired by then is what has expired at `now`, or by the database's clock.
pub(in crate::store::sqlite) async fn of(
    executor: impl SqliteExecutor<'_>,
    owner: Owner,
    touched: &Touched,
    now: Option<Timestamp>,
) -> StoreResult<Vec<Memory>> {
    let found = owned(LINES, owner)
        .bind(json(&touched.keys)?)
        .bind(micros(touched.since))
        .bind(now.map(micros))
        .fetch_all(executor)
        .await
        .map_err(store_error)?;
    read_all(&found)
}

/// Makes everything that is said of the keys stand as it has to, and tells what stands otherwise now.
pub(in crate::store::sqlite) async fn settle(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Change,
    touched: Option<Touched>,
    now: Option<Timestamp>,
) -> StoreResult<Vec<Item>> {
    let Some(touched) = touched else {
        return Ok(Vec::new());
    };
    let line = of(&mut *connection, owner, &touched, now).await?;
    let mut items = Vec::new();
    for verdict in verdicts(&line) {
        if let Some(before) = line.iter().find(|memory| memory.id == verdict.id) {
            let mut after = before.clone();
            verdict.apply(&mut after);
            after.version += 1;
            stand(connection, owner, change, &after).await?;
            items.push(Item::changed(before, &after, verdict.outcome.into()));
        }
    }
    Ok(items)
}

/// Makes one memory stand as it is given.
pub(in crate::store::sqlite) async fn stand(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Change,
    memory: &Memory,
) -> StoreResult<()> {
    owned(STAND, owner)
        .bind(memory.id.0)
        .bind(memory.state.as_str())
        .bind(memory.valid_to.map(micros))
        .bind(memory.superseded_by.map(|id| id.0))
        .bind(change.number())
        .bind(memory.ended_at.map(micros))
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// What a memory has ended.
pub(in crate::store::sqlite) async fn ended(
    executor: impl SqliteExecutor<'_>,
    owner: Owner,
    memory: MemoryId,
) -> StoreResult<Vec<Memory>> {
    let found = owned(ENDED, owner)
        .bind(memory.0)
        .fetch_all(executor)
        .await
        .map_err(store_error)?;
    read_all(&found)
}

/// What memories had ended stays ended, though they are gone.
pub(super) async fn release(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Change,
    gone: &str,
) -> StoreResult<()> {
    owned(RELEASE, owner)
        .bind(gone)
        .bind(change.number())
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// What may hold again once memories are gone that had ended it.
pub(in crate::store::sqlite) async fn ended_by(
    connection: &mut SqliteConnection,
    owner: Owner,
    gone: &[Uuid],
) -> StoreResult<Option<Touched>> {
    let found = owned(ENDED_BY, owner)
        .bind(hex_list(gone.iter().copied()))
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    let mut keys = Vec::with_capacity(found.len());
    let mut since: Option<Timestamp> = None;
    for row in &found {
        let row = Row::of("memories", row);
        keys.push(row.get("fact_key")?);
        let at = row.time("since")?;
        since = Some(since.map_or(at, |earlier| earlier.min(at)));
    }
    Ok(since.map(|since| Touched { keys, since }))
}
