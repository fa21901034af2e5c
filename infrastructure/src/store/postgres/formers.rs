//! What edited memories said before: memories of their own, which are kept and lost with the edited one.

use sqlx::PgConnection;
use tidemark_application::ports::memories::IndexedMemory;
use tidemark_domain::ids::{MemoryId, Owner};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::is_said_again;
use uuid::Uuid;

use super::changes::Change;
use super::history;
use super::memories::{self, unexpired};
use super::rows::{MemoryRow, all, memory_columns, owned, owned_as};

const OF: &str = concat!(
    "SELECT ",
    memory_columns!(),
    " FROM memory_formers f JOIN memories m ON m.tenant_id = f.tenant_id AND m.owner_id = f.owner_id AND m.id = f.former_id
      WHERE f.tenant_id = $1 AND f.owner_id = $2 AND f.memory_id = $3 AND ",
    unexpired!("NULL"),
    " ORDER BY m.valid_from, m.id"
);

const KEEP: &str = "INSERT INTO memory_formers (tenant_id, owner_id, memory_id, former_id) VALUES ($1, $2, $3, $4)";

/// They expire with the edited one.
const FOLLOW: &str = "
UPDATE memories m SET expires_at = $4, version = m.version + 1, change = $5
FROM memory_formers f
WHERE f.tenant_id = $1 AND f.owner_id = $2 AND f.memory_id = $3 AND m.tenant_id = $1 AND m.owner_id = $2 AND m.id = f.former_id
    AND m.expires_at IS DISTINCT FROM $4";

const REMOVE_OF: &str = "
WITH removed AS (
    DELETE FROM memories m USING memory_formers f
    WHERE f.tenant_id = $1 AND f.owner_id = $2 AND f.memory_id = ANY($3) AND m.tenant_id = $1 AND m.owner_id = $2 AND m.id = f.former_id
    RETURNING m.id
)
INSERT INTO memory_removals (tenant_id, owner_id, change, memory_id) SELECT $1, $2, $4, r.id FROM removed r RETURNING memory_id";

const REMOVE: &str = "
WITH removed AS (
    DELETE FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = ANY($3) RETURNING m.id
)
INSERT INTO memory_removals (tenant_id, owner_id, change, memory_id) SELECT $1, $2, $4, r.id FROM removed r RETURNING memory_id";

/// What edited memories of which something is gone are.
const PART: &str = "
WITH gone AS (
    DELETE FROM memory_formers f WHERE f.tenant_id = $1 AND f.owner_id = $2 AND f.memory_id = ANY($3) RETURNING f.memory_id
), parted AS (
    DELETE FROM memory_formers f WHERE f.tenant_id = $1 AND f.owner_id = $2 AND f.former_id = ANY($3) RETURNING f.memory_id
)
SELECT g.memory_id FROM gone g UNION SELECT p.memory_id FROM parted p";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[OF, KEEP, FOLLOW, REMOVE_OF, REMOVE, PART];

/// What a memory said before, in the order of time.
pub(super) async fn of(
    tx: &mut PgConnection,
    owner: Owner,
    memory: MemoryId,
) -> Result<Vec<Memory>, sqlx::Error> {
    let rows: Vec<MemoryRow> = owned_as(OF, owner).bind(memory.0).fetch_all(tx).await?;
    all(rows)
}

/// Keeps what an edited memory said until now, if that is to be kept, with what it said before.
pub(super) async fn keep(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    edited: &Memory,
    former: Option<&IndexedMemory>,
) -> Result<(), sqlx::Error> {
    owned(FOLLOW, owner)
        .bind(edited.id.0)
        .bind(edited.expires_at)
        .bind(change.number())
        .execute(&mut *tx)
        .await?;
    if let Some(former) = former {
        memories::insert(tx, owner, change, &[former]).await?;
        owned(KEEP, owner)
            .bind(edited.id.0)
            .bind(former.memory.id.0)
            .execute(tx)
            .await?;
    }
    Ok(())
}

/// What memories that are gone said before goes too. The ids. Nor do changes keep the words of what edited ones said before and is gone.
pub(super) async fn remove_of(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    gone: &[Uuid],
) -> Result<Vec<Uuid>, sqlx::Error> {
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    let removed: Vec<(Uuid,)> = owned_as(REMOVE_OF, owner)
        .bind(gone)
        .bind(change.number())
        .fetch_all(&mut *tx)
        .await?;
    let removed: Vec<Uuid> = removed.into_iter().map(|(id,)| id).collect();
    let edited = part(tx, owner, &[gone, &removed].concat()).await?;
    history::scrub(tx, owner, &edited).await?;
    Ok(removed)
}

/// Forgets which memory said what before, of memories that are gone on either side. The edited ones.
async fn part(
    tx: &mut PgConnection,
    owner: Owner,
    gone: &[Uuid],
) -> Result<Vec<Uuid>, sqlx::Error> {
    let edited: Vec<(Uuid,)> = owned_as(PART, owner).bind(gone).fetch_all(tx).await?;
    Ok(edited.into_iter().map(|(id,)| id).collect())
}

/// What a memory that is put back says itself again is not kept beside it. The ids, which are there until they are removed.
pub(super) async fn said_again(
    tx: &mut PgConnection,
    owner: Owner,
    restored: &Memory,
) -> Result<Vec<Uuid>, sqlx::Error> {
    let formers = of(tx, owner, restored.id).await?.into_iter();
    let again = formers.filter(|former| is_said_again(former, restored));
    Ok(again.map(|former| former.id.0).collect())
}

/// Removes some of what memories said before. The messages behind them may teach it: the memories say it.
pub(super) async fn remove(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    ids: &[Uuid],
) -> Result<(), sqlx::Error> {
    if !ids.is_empty() {
        owned(REMOVE, owner)
            .bind(ids)
            .bind(change.number())
            .execute(&mut *tx)
            .await?;
        part(tx, owner, ids).await?;
    }
    Ok(())
}
