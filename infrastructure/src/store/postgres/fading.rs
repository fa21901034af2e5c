//! Forgetting over time, and what brings back from the archive.

use async_trait::async_trait;
use sqlx::PgConnection;
use tidemark_application::ports::fading::{Fading, FadingRepository};
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{ChangeId, MemoryId, Owner, OwnerId, SessionId, TenantId, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::{self as domain, ChangeKind, Item, Op};
use tidemark_domain::memory::forgetting::{self, Fate, fades_at, fate};
use uuid::Uuid;

use super::changes::Change;
use super::rows::owned;
use super::{PostgresStore, forget, history, memories, owners};

const FADING: &str = "
SELECT tenant_id, owner_id, memory_id, fades_at
FROM tidemark_fading_memories($1, coalesce($2::timestamptz, '-infinity'), $3, $4)";

/// Whether a memory is told, how sure it is, since when it holds, and when it was used.
const PUT: &str = "
UPDATE memories m SET state = n.state, layer = n.layer, confidence = n.confidence, valid_from = n.valid_from, last_access = n.last_access,
    version = n.version, fades_at = n.fades_at, change = $11
FROM unnest($3::uuid[], $4::text[], $5::text[], $6::double precision[], $7::timestamptz[], $8::timestamptz[], $9::bigint[], $10::timestamptz[])
    AS n (id, state, layer, confidence, valid_from, last_access, version, fades_at)
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = n.id";

/// No index of memories knows it, so there is nothing to follow.
const NOTE: &str = "
UPDATE memories m SET fades_at = n.at FROM unnest($3::uuid[], $4::timestamptz[]) AS n (id, at)
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = n.id";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[FADING, PUT, NOTE];

/// Stores whether memories are told, how sure they are, since when they hold, and when they were used.
pub(super) async fn put(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    memories: &[Memory],
) -> Result<(), sqlx::Error> {
    if memories.is_empty() {
        return Ok(());
    }
    let all = || memories.iter();
    owned(PUT, owner)
        .bind(all().map(|m| m.id.0).collect::<Vec<_>>())
        .bind(all().map(|m| m.state.as_str()).collect::<Vec<_>>())
        .bind(all().map(|m| m.layer.as_str()).collect::<Vec<_>>())
        .bind(all().map(|m| m.confidence).collect::<Vec<_>>())
        .bind(all().map(|m| m.valid_from).collect::<Vec<_>>())
        .bind(all().map(|m| m.last_access).collect::<Vec<_>>())
        .bind(all().map(|m| m.version).collect::<Vec<_>>())
        .bind(all().map(fades_at).collect::<Vec<_>>())
        .bind(change.number())
        .execute(tx)
        .await?;
    Ok(())
}

async fn fade(
    tx: &mut PgConnection,
    owner: Owner,
    due: &[Uuid],
    id: ChangeId,
    now: Timestamp,
) -> Result<u64, sqlx::Error> {
    owners::lock(tx, owner).await?;
    let found = memories::by_id(tx, owner, due, Some(now)).await?;
    let (faded, others): (Vec<_>, Vec<_>) =
        (found.iter()).partition(|memory| fate(memory, now) == Fate::Archive);
    if !others.is_empty() {
        owned(NOTE, owner)
            .bind(others.iter().map(|m| m.id.0).collect::<Vec<_>>())
            .bind(others.iter().map(|m| fades_at(m)).collect::<Vec<_>>())
            .execute(&mut *tx)
            .await?;
    }
    if faded.is_empty() {
        return Ok(0);
    }
    let change = &Change::begin(tx, owner).await?;
    forget::expire(tx, owner, change, Some(now)).await?;
    let (archived, items): (Vec<Memory>, Vec<Item>) = faded.into_iter().map(domain::faded).unzip();
    put(tx, owner, change, &archived).await?;
    let kept = domain::Change::new(id, ChangeKind::Archive, now, items);
    history::record(tx, owner, kept).await?;
    Ok(archived.len() as u64)
}

/// Brings back those of some memories that are archived because they had faded, since a turn of this session has shown them.
pub(super) async fn revive(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    shown: &[Memory],
    (id, session): (ChangeId, SessionId),
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    let (revived, items): (Vec<Memory>, Vec<Item>) = shown
        .iter()
        .filter_map(|memory| {
            let revived = forgetting::revive(memory, now)?;
            let item = Item::changed(memory, &revived, Op::Restored);
            Some((revived, item))
        })
        .unzip();
    if items.is_empty() {
        return Ok(());
    }
    put(tx, owner, change, &revived).await?;
    let kept = domain::Change::new(id, ChangeKind::Use, now, items).of_session(Some(session));
    history::record(tx, owner, kept).await
}

#[async_trait]
impl FadingRepository for PostgresStore {
    async fn fading(
        &self,
        now: Timestamp,
        after: Option<Fading>,
        limit: u32,
    ) -> StoreResult<Vec<Fading>> {
        self.database
            .before_tenant((), move |tx, ()| {
                Box::pin(async move {
                    let rows: Vec<(Uuid, i64, Uuid, Timestamp)> = sqlx::query_as(FADING)
                        .bind(now)
                        .bind(after.map(|after| after.at))
                        .bind(after.map_or(Uuid::nil(), |after| after.memory.0))
                        .bind(i64::from(limit))
                        .fetch_all(tx)
                        .await?;
                    let fading = rows.into_iter().map(|(tenant, owner, memory, at)| Fading {
                        owner: Owner {
                            tenant: TenantId(tenant),
                            id: OwnerId(owner),
                        },
                        memory: MemoryId(memory),
                        at,
                    });
                    Ok(fading.collect())
                })
            })
            .await
    }

    async fn fade(
        &self,
        owner: Owner,
        memories: Vec<MemoryId>,
        change: ChangeId,
        now: Timestamp,
    ) -> StoreResult<u64> {
        let due: Vec<Uuid> = memories.into_iter().map(|id| id.0).collect();
        self.database
            .write(owner.tenant, due, move |tx, due| {
                Box::pin(async move { Ok(fade(tx, owner, due, change, now).await?) })
            })
            .await
    }
}
