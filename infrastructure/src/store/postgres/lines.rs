//! All that is said of a key, and how long each of it holds: the domain decides, within the transaction that has changed any of it.

use sqlx::PgConnection;
use tidemark_domain::ids::{MemoryId, Owner, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::Item;
use tidemark_domain::memory::conflict::{Touched, verdicts};
use uuid::Uuid;

use super::changes::Change;
use super::memories::unexpired;
use super::rows::{MemoryRow, all, memory_columns, owned, owned_as};

const LINES: &str = concat!(
    "SELECT ",
    memory_columns!(),
    " FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.key = ANY($3)
        AND coalesce(m.valid_to, 'infinity') >= $4 AND m.state <> 'quarantined' AND ",
    unexpired!("$5")
);

const STAND: &str = "
UPDATE memories m SET state = n.state, valid_to = n.valid_to, superseded_by = n.superseded_by, ended_at = n.ended_at, version = m.version + 1,
    change = $7
FROM unnest($3::uuid[], $4::text[], $5::timestamptz[], $6::uuid[], $8::timestamptz[]) AS n (id, state, valid_to, superseded_by, ended_at)
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = n.id";

const RELEASE: &str = "
UPDATE memories m SET superseded_by = NULL, ended_at = m.valid_to, version = m.version + 1, change = $4
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.superseded_by = ANY($3)";

const ENDED: &str = concat!(
    "SELECT ",
    memory_columns!(),
    " FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.superseded_by = $3 AND ",
    unexpired!("NULL")
);

const ENDED_BY: &str = "
SELECT m.key, min(m.valid_from) FROM memories m
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.superseded_by = ANY($3) AND m.key IS NOT NULL
GROUP BY m.key";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[LINES, STAND, RELEASE, ENDED, ENDED_BY];

/// All that is said of the keys and did not end before; expired is what has expired at `now`, or by the database's clock.
pub(super) async fn of(
    tx: &mut PgConnection,
    owner: Owner,
    touched: &Touched,
    now: Option<Timestamp>,
) -> Result<Vec<Memory>, sqlx::Error> {
    let rows: Vec<MemoryRow> = owned_as(LINES, owner)
        .bind(&touched.keys)
        .bind(touched.since)
        .bind(now)
        .fetch_all(tx)
        .await?;
    all(rows)
}

/// Makes everything that is said of the keys stand as it has to, and tells what stands otherwise now.
pub(super) async fn settle(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    touched: Option<Touched>,
    now: Option<Timestamp>,
) -> Result<Vec<Item>, sqlx::Error> {
    let Some(touched) = touched else {
        return Ok(Vec::new());
    };
    let line = of(&mut *tx, owner, &touched, now).await?;
    let verdicts = verdicts(&line);
    if verdicts.is_empty() {
        return Ok(Vec::new());
    }
    let mut items = Vec::with_capacity(verdicts.len());
    let mut turned = Vec::with_capacity(verdicts.len());
    for verdict in verdicts {
        if let Some(before) = line.iter().find(|memory| memory.id == verdict.id) {
            let mut after = before.clone();
            verdict.apply(&mut after);
            after.version += 1;
            items.push(Item::changed(before, &after, verdict.outcome.into()));
            turned.push(after);
        }
    }
    stand(tx, owner, change, &turned).await?;
    Ok(items)
}

/// Makes memories stand as they are given.
pub(super) async fn stand(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    memories: &[Memory],
) -> Result<(), sqlx::Error> {
    if memories.is_empty() {
        return Ok(());
    }
    let successors = memories.iter().map(|m| m.superseded_by.map(|id| id.0));
    owned(STAND, owner)
        .bind(memories.iter().map(|m| m.id.0).collect::<Vec<_>>())
        .bind(
            memories
                .iter()
                .map(|m| m.state.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(memories.iter().map(|m| m.valid_to).collect::<Vec<_>>())
        .bind(successors.collect::<Vec<_>>())
        .bind(change.number())
        .bind(memories.iter().map(|m| m.ended_at).collect::<Vec<_>>())
        .execute(tx)
        .await?;
    Ok(())
}

/// What a memory has ended.
pub(super) async fn ended(
    tx: &mut PgConnection,
    owner: Owner,
    memory: MemoryId,
) -> Result<Vec<Memory>, sqlx::Error> {
    let rows: Vec<MemoryRow> = owned_as(ENDED, owner).bind(memory.0).fetch_all(tx).await?;
    all(rows)
}

/// What memories had ended stays ended, though they are gone.
pub(super) async fn release(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    gone: &[Uuid],
) -> Result<(), sqlx::Error> {
    if gone.is_empty() {
        return Ok(());
    }
    owned(RELEASE, owner)
        .bind(gone)
        .bind(change.number())
        .execute(tx)
        .await?;
    Ok(())
}

/// What may hold again once memories are gone that had ended it.
pub(super) async fn ended_by(
    tx: &mut PgConnection,
    owner: Owner,
    gone: &[Uuid],
) -> Result<Option<Touched>, sqlx::Error> {
    let found: Vec<(String, Timestamp)> =
        owned_as(ENDED_BY, owner).bind(gone).fetch_all(tx).await?;
    let since = found.iter().map(|(_, since)| *since).min();
    let keys = found.into_iter().map(|(key, _)| key).collect();
    Ok(since.map(|since| Touched { keys, since }))
}
