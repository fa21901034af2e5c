//! Counts how often memories were shown: the jobs of one owner together.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::PgConnection;
use sqlx::types::Json;
use tidemark_application::ports::jobs::{ClaimedJob, JobWriteError};
use tidemark_domain::event::RecalledMemory;
use tidemark_domain::ids::{ChangeId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::forgetting;
use uuid::Uuid;

use super::changes::Change;
use super::learning::{check, take};
use super::rows::{owned, owned_as};
use super::transaction::{Abort, Database};
use super::{claims, fading, memories, sessions, together};

const MARK_COUNTED: &str = "
UPDATE turns t SET use_counted = true
WHERE t.tenant_id = $1 AND t.owner_id = $2 AND t.session_id = ANY ($3) AND t.status = 'completed' AND NOT t.use_counted
RETURNING t.recalled";

/// Not a change of the memory in the sense of its version: chatting must not make an edit stale.
const COUNT_USE: &str = "
UPDATE memories m SET access_count = m.access_count + n.uses, last_access = greatest(m.last_access, $5), change = $6
FROM unnest($3::uuid[], $4::bigint[]) AS n (id, uses)
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = n.id";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[MARK_COUNTED, COUNT_USE];

/// Counts what the turns of one session have shown.
pub(super) async fn commit(
    database: &Database,
    claim: ClaimedJob,
    change: ChangeId,
    now: Timestamp,
) -> Result<u64, JobWriteError> {
    let tenant = claim.job.owner.tenant;
    database
        .write(tenant, claim, move |tx, claim| {
            Box::pin(apply(tx, claim, change, now))
        })
        .await
}

/// Counts what the turns of many sessions have shown: in one transaction, or one by one where that cannot be.
pub(super) async fn commit_all(
    database: &Database,
    owner: Owner,
    claims: Vec<(ClaimedJob, ChangeId)>,
    now: Timestamp,
) -> Vec<Result<(), JobWriteError>> {
    if claims.len() > 1 {
        let all: Vec<ClaimedJob> = claims.iter().map(|(claim, _)| claim.clone()).collect();
        let counted = database.write_many(owner.tenant, all, move |tx, claims| {
            Box::pin(apply_all(tx, owner, claims, now))
        });
        match counted.await.map_err(together::Failure::of) {
            Ok(outcomes) => return outcomes,
            Err(together::Failure::OfAll(error)) => {
                return claims.iter().map(|_| Err(error.shared().into())).collect();
            }
            Err(together::Failure::OfOne) => {}
        }
    }
    let mut outcomes = Vec::with_capacity(claims.len());
    for (claim, change) in claims {
        outcomes.push(commit(database, claim, change, now).await.map(|_| ()));
    }
    outcomes
}

async fn apply(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
    id: ChangeId,
    now: Timestamp,
) -> Result<u64, Abort<JobWriteError>> {
    let owner = claim.job.owner;
    let session = take(tx, claim).await?.id;
    let uses = uses(tx, owner, &[session.0]).await?;
    if uses.is_empty() {
        return Ok(0);
    }
    let change = Change::begin(tx, owner).await?;
    let (shown, counted) = count(tx, owner, &change, uses, now).await?;
    fading::revive(tx, owner, &change, &shown, (id, session), now).await?;
    Ok(counted)
}

/// The owner first, and no session that somebody else holds, as in `indexing`. What had faded and would be told again is a change of one session: a
/// conflict of all.
async fn apply_all(
    tx: &mut PgConnection,
    owner: Owner,
    claims: &[ClaimedJob],
    now: Timestamp,
) -> Result<Vec<Result<(), JobWriteError>>, Abort<JobWriteError>> {
    let of_session = claims.iter().filter_map(|claim| claim.job.session_id);
    let ids: Vec<Uuid> = of_session.map(|session| session.0).collect();
    let change = Change::begin(tx, owner).await?;
    let free = sessions::lock_free(tx, owner, &ids).await?;
    let free: BTreeSet<SessionId> = free.iter().map(|session| session.id).collect();
    let is_free = |claim: &&ClaimedJob| claim.job.session_id.is_some_and(|id| free.contains(&id));
    let lasting: Vec<&ClaimedJob> = claims.iter().filter(is_free).collect();
    let removed = claims::remove_all(tx, owner, lasting.iter().copied()).await?;
    let ours = lasting
        .iter()
        .filter(|claim| removed.contains(&claim.job.id));
    let ours = ours.filter_map(|claim| Some(claim.job.session_id?.0));
    let uses = uses(tx, owner, &ours.collect::<Vec<_>>()).await?;
    let (shown, _) = count(tx, owner, &change, uses, now).await?;
    check((shown.iter()).all(|memory| forgetting::revive(memory, now).is_none()))?;
    let outcomes = claims.iter().map(|claim| {
        if removed.contains(&claim.job.id) {
            Ok(())
        } else if is_free(&claim) {
            Err(JobWriteError::Lost)
        } else {
            Err(JobWriteError::Conflict)
        }
    });
    Ok(outcomes.collect())
}

/// How often memories were shown by turns of these sessions that were not counted yet.
async fn uses(
    tx: &mut PgConnection,
    owner: Owner,
    sessions: &[Uuid],
) -> Result<BTreeMap<Uuid, i64>, sqlx::Error> {
    let turns: Vec<(Json<Vec<RecalledMemory>>,)> = owned_as(MARK_COUNTED, owner)
        .bind(sessions)
        .fetch_all(tx)
        .await?;
    let mut uses: BTreeMap<Uuid, i64> = BTreeMap::new();
    for (Json(recalled),) in turns {
        let shown: BTreeSet<Uuid> = recalled.into_iter().map(|memory| memory.id.0).collect();
        for id in shown {
            *uses.entry(id).or_default() += 1;
        }
    }
    Ok(uses)
}

/// Counts uses: what was shown, as it was before, and how many memories it was.
async fn count(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    uses: BTreeMap<Uuid, i64>,
    now: Timestamp,
) -> Result<(Vec<Memory>, u64), sqlx::Error> {
    let (ids, counts): (Vec<Uuid>, Vec<i64>) = uses.into_iter().unzip();
    if ids.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let shown = memories::by_id(tx, owner, &ids, Some(now)).await?;
    let counted = owned(COUNT_USE, owner)
        .bind(ids)
        .bind(counts)
        .bind(now)
        .bind(change.number())
        .execute(tx)
        .await?;
    Ok((shown, counted.rows_affected()))
}
