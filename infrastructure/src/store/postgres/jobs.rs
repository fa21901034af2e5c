//! The outbox of derived work.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::PgConnection;
use tidemark_application::ports::jobs::{
    ClaimedJob, Job, JobKind, JobRepository, JobState, JobWriteError, NewJob,
};
use tidemark_application::ports::store::{Cursor, Page, StoreError, StoreResult};
use tidemark_domain::ids::{JobId, Owner, SessionId, TenantId, Timestamp};
use uuid::Uuid;

use super::claims::{claim, claim_alike, lost_unless, remove, renew};
use super::messages::page;
use super::rows::{JobRow, all, job_columns, job_kind, job_state, owned, owned_as};
use super::transaction::Abort;
use super::{PostgresStore, owners, sessions};

/// Enqueues `$5` (ids) and `$6` (kinds) at `$4`, once for each row of what is given: for session `$3`, or for its owner.
///
/// One that is pending already is locked, not only left: until this transaction commits nobody claims it, so that whoever works on it
/// sees what is committed here.
macro_rules! enqueue_sql {
    ($joined:literal) => {
        concat!(
            "INSERT INTO jobs (tenant_id, owner_id, session_id, id, kind, state, run_at, created_at) \
             SELECT $1, $2, CASE n.kind WHEN 'embed' THEN NULL ELSE $3::uuid END, n.id, n.kind, 'pending', statement_timestamp(), $4 \
             FROM unnest($5::uuid[], $6::text[]) AS n (id, kind)",
            $joined,
            " ORDER BY n.kind \
             ON CONFLICT (tenant_id, owner_id, session_id, kind) WHERE state = 'pending' DO UPDATE SET state = 'pending'"
        )
    };
}
pub(super) use enqueue_sql;

const ENQUEUE: &str = enqueue_sql!("");

const GIVE_UP: &str = "
UPDATE jobs SET state = 'failed', lease_until = NULL, last_error = $5
WHERE tenant_id = $1 AND owner_id = $2 AND id = $3 AND state = 'running' AND token = $4";

const PUT_BACK: &str = "
UPDATE jobs SET state = 'pending', lease_until = NULL, last_error = $5, run_at = clock_timestamp() + $6 * interval '1 microsecond'
WHERE tenant_id = $1 AND owner_id = $2 AND id = $3 AND state = 'running' AND token = $4";

const POSTPONE: &str = "
UPDATE jobs SET state = 'pending', lease_until = NULL, last_error = $5, run_at = clock_timestamp() + $6 * interval '1 microsecond', attempts = 0
WHERE tenant_id = $1 AND owner_id = $2 AND id = $3 AND state = 'running' AND token = $4";

const PENDING_LIKE: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs j WHERE j.tenant_id = $1 AND j.owner_id = $2 AND j.session_id IS NOT DISTINCT FROM $3 AND j.kind = $4 AND j.state = 'pending'"
);

const FIND_FAILED: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs j WHERE j.tenant_id = $1 AND j.id = $2 AND j.state = 'failed'"
);

const REVIVE: &str = concat!(
    "UPDATE jobs j SET state = 'pending', attempts = 0, run_at = clock_timestamp() \
     WHERE j.tenant_id = $1 AND j.owner_id = $2 AND j.id = $3 AND j.state = 'failed' RETURNING ",
    job_columns!()
);

const REMOVE_FAILED: &str =
    "DELETE FROM jobs WHERE tenant_id = $1 AND owner_id = $2 AND id = $3 AND state = 'failed'";

const DROP: &str =
    "DELETE FROM jobs WHERE tenant_id = $1 AND id = $2 AND state IN ('failed', 'pending')";

const LIST: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs j WHERE j.tenant_id = $1 AND ($2::text IS NULL OR j.state = $2)
        AND ($3::timestamptz IS NULL OR (j.created_at, j.id) < ($3, $4::uuid))
      ORDER BY j.created_at DESC, j.id DESC LIMIT $5"
);

const COUNT: &str = "SELECT kind, state, number FROM tidemark_count_jobs()";

/// Reviving a job that has failed.
#[cfg(test)]
pub(super) const WALKS: &[&str] = &[PENDING_LIKE];

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    ENQUEUE,
    GIVE_UP,
    PUT_BACK,
    POSTPONE,
    PENDING_LIKE,
    FIND_FAILED,
    REVIVE,
    REMOVE_FAILED,
    DROP,
    LIST,
    COUNT,
];

/// Jobs as the two arrays that [`enqueue_sql!`] takes: one of each kind, since no second one would be added.
pub(super) fn columns(jobs: &[NewJob]) -> (Vec<Uuid>, Vec<&'static str>) {
    JobKind::ALL
        .into_iter()
        .filter_map(|kind| jobs.iter().find(|job| job.kind == kind))
        .map(|job| (job.id.0, job.kind.as_str()))
        .unzip()
}

/// Enqueues jobs of a session that the transaction has locked.
pub(super) async fn enqueue(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
    jobs: &[NewJob],
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    enqueue_in(tx, owner, Some(session), jobs, now).await
}

/// Enqueues jobs of an owner whom the transaction has locked.
pub(super) async fn enqueue_for_owner(
    tx: &mut PgConnection,
    owner: Owner,
    jobs: &[NewJob],
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    enqueue_in(tx, owner, None, jobs, now).await
}

async fn enqueue_in(
    tx: &mut PgConnection,
    owner: Owner,
    session: Option<SessionId>,
    jobs: &[NewJob],
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    if jobs.is_empty() {
        return Ok(());
    }
    let (ids, kinds) = columns(jobs);
    owned(ENQUEUE, owner)
        .bind(session.map(|session| session.0))
        .bind(now)
        .bind(ids)
        .bind(kinds)
        .execute(tx)
        .await?;
    Ok(())
}

async fn pending_like(tx: &mut PgConnection, job: &Job) -> Result<Option<Job>, sqlx::Error> {
    let row: Option<JobRow> = owned_as(PENDING_LIKE, job.owner)
        .bind(job.session_id.map(|session| session.0))
        .bind(job.kind.as_str())
        .fetch_optional(tx)
        .await?;
    row.map(Job::try_from).transpose()
}

/// Ends a claimed job in failure; see the port.
pub(super) async fn fail(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
    error: &str,
    retry_in: Option<Duration>,
) -> Result<(), Abort<JobWriteError>> {
    let job = &claim.job;
    let Some(retry_in) = retry_in else {
        let failed = owned(GIVE_UP, job.owner)
            .bind(job.id.0)
            .bind(claim.token)
            .bind(error)
            .execute(tx)
            .await?;
        return lost_unless(failed.rows_affected() == 1);
    };
    put_back(tx, claim, PUT_BACK, Some(error), retry_in).await
}

/// Jobs become pending under the lock of their session, or of their owner, only, so that no second one can while somebody looks. False
/// if the session is gone.
async fn lock_place(tx: &mut PgConnection, job: &Job) -> Result<bool, sqlx::Error> {
    match job.session_id {
        Some(session) => Ok(sessions::lock(tx, job.owner, session).await?.is_some()),
        None => owners::lock(tx, job.owner).await.map(|()| true),
    }
}

async fn put_back(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
    statement: &'static str,
    error: Option<&str>,
    delay: Duration,
) -> Result<(), Abort<JobWriteError>> {
    let job = &claim.job;
    if !lock_place(tx, job).await? {
        return Err(Abort::Decided(JobWriteError::Lost));
    }
    if pending_like(tx, job).await?.is_some() {
        return remove(tx, claim).await;
    }
    let put_back = owned(statement, job.owner)
        .bind(job.id.0)
        .bind(claim.token)
        .bind(error)
        .bind(delay.as_micros() as i64)
        .execute(tx)
        .await?;
    lost_unless(put_back.rows_affected() == 1)
}

async fn retry(
    tx: &mut PgConnection,
    tenant: TenantId,
    id: JobId,
) -> Result<Option<Job>, Abort<StoreError>> {
    let failed: Option<JobRow> = sqlx::query_as(FIND_FAILED)
        .bind(tenant.0)
        .bind(id.0)
        .fetch_optional(&mut *tx)
        .await?;
    let Some(failed) = failed.map(Job::try_from).transpose()? else {
        return Ok(None);
    };
    if !lock_place(tx, &failed).await? {
        return Ok(None);
    }
    if let Some(pending) = pending_like(tx, &failed).await? {
        let removed = owned(REMOVE_FAILED, failed.owner)
            .bind(id.0)
            .execute(tx)
            .await?;
        return Ok((removed.rows_affected() == 1).then_some(pending));
    }
    let row: Option<JobRow> = owned_as(REVIVE, failed.owner)
        .bind(id.0)
        .fetch_optional(tx)
        .await?;
    Ok(row.map(Job::try_from).transpose()?)
}

async fn list(
    tx: &mut PgConnection,
    tenant: TenantId,
    state: Option<JobState>,
    after: Option<Cursor>,
    limit: u32,
) -> Result<Page<Job>, Abort<StoreError>> {
    let rows: Vec<JobRow> = sqlx::query_as(LIST)
        .bind(tenant.0)
        .bind(state.map(JobState::as_str))
        .bind(after.map(|cursor| cursor.at))
        .bind(after.map(|cursor| cursor.id))
        .bind(i64::from(limit) + 1)
        .fetch_all(tx)
        .await?;
    Ok(page(all(rows)?, limit))
}

async fn count(tx: &mut PgConnection) -> Result<Vec<(JobKind, JobState, u64)>, Abort<StoreError>> {
    let rows: Vec<(String, String, i64)> = sqlx::query_as(COUNT).fetch_all(tx).await?;
    rows.into_iter()
        .map(|(kind, state, number)| Ok((job_kind(&kind)?, job_state(&state)?, number as u64)))
        .collect()
}

#[async_trait]
impl JobRepository for PostgresStore {
    async fn claim_job_of(
        &self,
        kinds: &[JobKind],
        lease: Duration,
    ) -> StoreResult<Option<ClaimedJob>> {
        let kinds: Vec<&'static str> = kinds.iter().map(|kind| kind.as_str()).collect();
        self.database
            .before_tenant(kinds, move |tx, kinds| Box::pin(claim(tx, kinds, lease)))
            .await
    }

    async fn claim_alike(
        &self,
        claim: &ClaimedJob,
        most: u32,
        lease: Duration,
    ) -> StoreResult<Vec<ClaimedJob>> {
        self.database
            .write(claim.job.owner.tenant, claim.clone(), move |tx, claim| {
                Box::pin(claim_alike(tx, claim, most, lease))
            })
            .await
    }

    async fn postpone_job(
        &self,
        claim: &ClaimedJob,
        error: Option<&str>,
        delay: Duration,
    ) -> Result<(), JobWriteError> {
        let input = (claim.clone(), error.map(str::to_owned));
        self.database
            .write(claim.job.owner.tenant, input, move |tx, (claim, error)| {
                Box::pin(put_back(tx, claim, POSTPONE, error.as_deref(), delay))
            })
            .await
    }

    async fn renew_job(&self, claim: &ClaimedJob, lease: Duration) -> Result<(), JobWriteError> {
        self.database
            .write(claim.job.owner.tenant, claim.clone(), move |tx, claim| {
                Box::pin(renew(tx, claim, lease))
            })
            .await
    }

    async fn finish_job(&self, claim: &ClaimedJob) -> Result<(), JobWriteError> {
        self.database
            .write(claim.job.owner.tenant, claim.clone(), |tx, claim| {
                Box::pin(remove(tx, claim))
            })
            .await
    }

    async fn fail_job(
        &self,
        claim: &ClaimedJob,
        error: &str,
        retry_in: Option<Duration>,
    ) -> Result<(), JobWriteError> {
        let input = (claim.clone(), error.to_owned());
        self.database
            .write(claim.job.owner.tenant, input, move |tx, (claim, error)| {
                Box::pin(fail(tx, claim, error, retry_in))
            })
            .await
    }

    async fn list_jobs(
        &self,
        tenant: TenantId,
        state: Option<JobState>,
        after: Option<Cursor>,
        limit: u32,
    ) -> StoreResult<Page<Job>> {
        self.database
            .read(tenant, (), move |tx, ()| {
                Box::pin(list(tx, tenant, state, after, limit))
            })
            .await
    }

    async fn retry_job(&self, tenant: TenantId, id: JobId) -> StoreResult<Option<Job>> {
        self.database
            .write(tenant, (), move |tx, ()| Box::pin(retry(tx, tenant, id)))
            .await
    }

    async fn drop_job(&self, tenant: TenantId, id: JobId) -> StoreResult<bool> {
        self.database
            .write(tenant, (), move |tx, ()| {
                Box::pin(async move {
                    let dropped = sqlx::query(DROP)
                        .bind(tenant.0)
                        .bind(id.0)
                        .execute(tx)
                        .await?;
                    Ok(dropped.rows_affected() == 1)
                })
            })
            .await
    }

    async fn count_jobs(&self) -> StoreResult<Vec<(JobKind, JobState, u64)>> {
        self.database
            .before_tenant((), |tx, ()| Box::pin(count(tx)))
            .await
    }
}
