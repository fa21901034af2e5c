//! Counts how often memories were shown: the jobs of one owner together.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::PgConnection;
use sqlx::types::Json;
use tidemark_application::ports::jobs::{ClaimedJob, JobWriteError};
use tidemark_domain::event::RecalledMemory;
use tidemark_domain::ids::{ChangeId, JobId, Owner, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::forgetting;
use uuid::Uuid;

use super::changes::Change;
use super::learning::{check, take};
use super::rows::{owned, owned_as};
use super::transaction::{Abort, Database};
use super::{claims, fading, memories, sessions};

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
        let together: Vec<ClaimedJob> = claims.iter().map(|(claim, _)| claim.clone()).collect();
        let counted = database.write(owner.tenant, together, move |tx, claims| {
            Box::pin(apply_all(tx, owner, claims, now))
        });
        match counted.await {
            Ok(ours) => {
                let is_ours = |(claim, _): &(ClaimedJob, _)| ours.contains(&claim.job.id);
                let outcomes = claims
                    .iter()
                    .map(|claim| is_ours(claim).then_some(()).ok_or(JobWriteError::Lost));
                return outcomes.collect();
            }
            Err(error) => tracing::debug!(%error, "uses are counted one by one"),
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
    let Some((change, shown, counted)) = count(tx, owner, &[session.0], now).await? else {
        return Ok(0);
    };
    fading::revive(tx, owner, &change, &shown, (id, session), now).await?;
    Ok(counted)
}

/// The jobs that were still their callers'. What had faded and would be told again is a change of one session: a conflict.
async fn apply_all(
    tx: &mut PgConnection,
    owner: Owner,
    claims: &[ClaimedJob],
    now: Timestamp,
) -> Result<BTreeSet<JobId>, Abort<JobWriteError>> {
    let of_session = claims.iter().filter_map(|claim| claim.job.session_id);
    let ids: Vec<Uuid> = of_session.map(|session| session.0).collect();
    let sessions = sessions::lock_all(tx, owner, &ids).await?;
    let sessions: BTreeSet<Uuid> = sessions.iter().map(|session| session.id.0).collect();
    let mut ours = claims::remove_all(tx, owner, claims.iter()).await?;
    let is_ours = |claim: &&ClaimedJob| {
        let session = claim.job.session_id;
        ours.contains(&claim.job.id) && session.is_some_and(|id| sessions.contains(&id.0))
    };
    let of_ours: Vec<&ClaimedJob> = claims.iter().filter(is_ours).collect();
    let ids = of_ours.iter().filter_map(|claim| claim.job.session_id);
    let ids: Vec<Uuid> = ids.map(|session| session.0).collect();
    let counted = count(tx, owner, &ids, now).await?;
    if let Some((_, shown, _)) = counted {
        check(
            shown
                .iter()
                .all(|memory| forgetting::revive(memory, now).is_none()),
        )?;
    }
    ours = of_ours.into_iter().map(|claim| claim.job.id).collect();
    Ok(ours)
}

/// Counts what turns of these sessions have shown that were not counted yet: with which change, what they have shown, as it was, and how many
/// memories it was.
async fn count(
    tx: &mut PgConnection,
    owner: Owner,
    sessions: &[Uuid],
    now: Timestamp,
) -> Result<Option<(Change, Vec<Memory>, u64)>, sqlx::Error> {
    let turns: Vec<(Json<Vec<RecalledMemory>>,)> = owned_as(MARK_COUNTED, owner)
        .bind(sessions)
        .fetch_all(&mut *tx)
        .await?;
    let mut uses: BTreeMap<Uuid, i64> = BTreeMap::new();
    for (Json(recalled),) in turns {
        let shown: BTreeSet<Uuid> = recalled.into_iter().map(|memory| memory.id.0).collect();
        for id in shown {
            *uses.entry(id).or_default() += 1;
        }
    }
    if uses.is_empty() {
        return Ok(None);
    }
    let change = Change::begin(tx, owner).await?;
    let (ids, counts): (Vec<Uuid>, Vec<i64>) = uses.into_iter().unzip();
    let shown = memories::by_id(tx, owner, &ids, Some(now)).await?;
    let counted = owned(COUNT_USE, owner)
        .bind(ids)
        .bind(counts)
        .bind(now)
        .bind(change.number())
        .execute(tx)
        .await?;
    Ok(Some((change, shown, counted.rows_affected())))
}
