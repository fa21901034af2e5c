//! Claims of jobs: who may apply one, and until when.

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::PgConnection;
use tidemark_application::ports::jobs::{ClaimedJob, JobWriteError};
use tidemark_application::ports::store::StoreError;
use tidemark_domain::ids::{JobId, Owner, OwnerId, TenantId};
use uuid::Uuid;

use super::rows::{JobRow, job_columns, owned, owned_as};
use super::transaction::Abort;

const CLAIM: &str =
    "SELECT tenant_id, owner_id, job_id FROM tidemark_claim_job($1, $2 * interval '1 microsecond')";
const NAME_TENANT: &str = "SELECT set_config('tidemark.tenant', $1::text, true)";

const FIND: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs j WHERE j.tenant_id = $1 AND j.owner_id = $2 AND j.id = $3"
);

const RENEW: &str = "
UPDATE jobs SET lease_until = clock_timestamp() + $5 * interval '1 microsecond'
WHERE tenant_id = $1 AND owner_id = $2 AND id = $3 AND state = 'running' AND token = $4";

const REMOVE: &str = "
DELETE FROM jobs WHERE tenant_id = $1 AND owner_id = $2 AND id = $3 AND state = 'running' AND token = $4";

/// As `REMOVE`, of several; those that were still their callers'.
const REMOVE_ALL: &str = "
DELETE FROM jobs j USING unnest($3::uuid[], $4::bigint[]) AS w (id, token)
WHERE j.tenant_id = $1 AND j.owner_id = $2 AND j.id = w.id AND j.state = 'running' AND j.token = w.token RETURNING j.id";

/// Of other sessions, and only for who still holds the claim it is like. Materialized, as in `tidemark_claim_job`.
const CLAIM_ALIKE: &str = concat!(
    "WITH due AS MATERIALIZED (
        SELECT d.id FROM jobs d
        WHERE d.tenant_id = $1 AND d.owner_id = $2 AND d.kind = $3 AND d.state = 'pending' AND d.attempts = 0
            AND d.run_at <= statement_timestamp() AND d.session_id IS DISTINCT FROM $6
            AND (
                SELECT c.token FROM jobs c WHERE c.tenant_id = $1 AND c.owner_id = $2 AND c.id = $7 AND c.state = 'running'
            ) = $8
        ORDER BY d.run_at, d.id LIMIT $4 FOR UPDATE SKIP LOCKED
     )
     UPDATE jobs j SET state = 'running', attempts = j.attempts + 1, token = j.token + 1,
        lease_until = clock_timestamp() + $5 * interval '1 microsecond'
     FROM due WHERE j.tenant_id = $1 AND j.owner_id = $2 AND j.id = due.id RETURNING ",
    job_columns!()
);

const HOLD: &str = "
SELECT FROM jobs WHERE tenant_id = $1 AND owner_id = $2 AND id = $3 AND state = 'running' AND token = $4 FOR UPDATE";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    CLAIM,
    NAME_TENANT,
    FIND,
    RENEW,
    REMOVE,
    REMOVE_ALL,
    CLAIM_ALIKE,
    HOLD,
];

/// Takes a claimed job away, for the transaction that applies it.
pub(super) async fn remove(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
) -> Result<(), Abort<JobWriteError>> {
    let removed = owned(REMOVE, claim.job.owner)
        .bind(claim.job.id.0)
        .bind(claim.token)
        .execute(tx)
        .await?;
    lost_unless(removed.rows_affected() == 1)
}

/// Takes claimed jobs of an owner away, for the transaction that applies them; those that were still their callers'.
pub(super) async fn remove_all(
    tx: &mut PgConnection,
    owner: Owner,
    claims: impl Iterator<Item = &ClaimedJob>,
) -> Result<BTreeSet<JobId>, sqlx::Error> {
    let (ids, tokens): (Vec<Uuid>, Vec<i64>) =
        claims.map(|claim| (claim.job.id.0, claim.token)).unzip();
    let removed: Vec<(Uuid,)> = owned_as(REMOVE_ALL, owner)
        .bind(ids)
        .bind(tokens)
        .fetch_all(tx)
        .await?;
    Ok(removed.into_iter().map(|(id,)| JobId(id)).collect())
}

/// Makes sure that a claim still holds, until the transaction ends.
pub(super) async fn hold(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
) -> Result<(), Abort<JobWriteError>> {
    let held = owned(HOLD, claim.job.owner)
        .bind(claim.job.id.0)
        .bind(claim.token)
        .fetch_optional(tx)
        .await?;
    lost_unless(held.is_some())
}

pub(super) async fn renew(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
    lease: Duration,
) -> Result<(), Abort<JobWriteError>> {
    let renewed = owned(RENEW, claim.job.owner)
        .bind(claim.job.id.0)
        .bind(claim.token)
        .bind(lease.as_micros() as i64)
        .execute(tx)
        .await?;
    lost_unless(renewed.rows_affected() == 1)
}

pub(super) fn lost_unless(held: bool) -> Result<(), Abort<JobWriteError>> {
    if held {
        Ok(())
    } else {
        Err(Abort::Decided(JobWriteError::Lost))
    }
}

pub(super) async fn claim(
    tx: &mut PgConnection,
    kinds: &[&'static str],
    lease: Duration,
) -> Result<Option<ClaimedJob>, Abort<StoreError>> {
    let claimed: Option<(Uuid, i64, Uuid)> = sqlx::query_as(CLAIM)
        .bind(kinds)
        .bind(lease.as_micros() as i64)
        .fetch_optional(&mut *tx)
        .await?;
    let Some((tenant, owner, id)) = claimed else {
        return Ok(None);
    };
    sqlx::query(NAME_TENANT)
        .bind(tenant)
        .execute(&mut *tx)
        .await?;
    let owner = Owner {
        tenant: TenantId(tenant),
        id: OwnerId(owner),
    };
    let row: JobRow = owned_as(FIND, owner).bind(id).fetch_one(tx).await?;
    let token = row.token;
    Ok(Some(ClaimedJob {
        job: row.try_into()?,
        token,
    }))
}

pub(super) async fn claim_alike(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
    most: u32,
    lease: Duration,
) -> Result<Vec<ClaimedJob>, Abort<StoreError>> {
    let job = &claim.job;
    let rows: Vec<JobRow> = owned_as(CLAIM_ALIKE, job.owner)
        .bind(job.kind.as_str())
        .bind(i64::from(most))
        .bind(lease.as_micros() as i64)
        .bind(job.session_id.map(|session| session.0))
        .bind(job.id.0)
        .bind(claim.token)
        .fetch_all(tx)
        .await?;
    let claims = rows.into_iter().map(|row| {
        let token = row.token;
        Ok(ClaimedJob {
            job: row.try_into()?,
            token,
        })
    });
    Ok(claims.collect::<Result<_, sqlx::Error>>()?)
}
