//! The outbox of derived work.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{SqliteConnection, SqliteExecutor};
use tidemark_application::ports::jobs::{
    ClaimedJob, Job, JobKind, JobRepository, JobState, JobWriteError, NewJob,
};
use tidemark_application::ports::store::{Cursor, Page, StoreResult};
use tidemark_domain::ids::{JobId, Owner, SessionId, TenantId, Timestamp};

use super::SqliteStore;
use super::errors::{corrupt, store_error};
use super::rows::{self, Row, duration_micros, micros, owned};
use super::sessions::{behind, page};
use super::statements::{database_now, statements};

macro_rules! job_columns {
    () => {
        "tenant_id, owner_id, id, session_id, kind, state, attempts, run_at, last_error, created_at, token"
    };
}

pub(super) use job_columns;

/// The parameters 1–4 name a claim that is still valid.
macro_rules! claimed {
    () => {
        "tenant_id = ?1 AND owner_id = ?2 AND id = ?3 AND token = ?4 AND state = 'running'"
    };
}

/// Work `d` that may wait for a model is done by one worker a session, or it would be asked the same twice.
macro_rules! alone {
    () => {
        concat!(
            "NOT (d.kind IN ('consolidate', 'review_memory', 'extract') AND EXISTS (SELECT 1 FROM jobs r INDEXED BY jobs_by_session \
                 WHERE r.tenant_id = d.tenant_id AND r.owner_id = d.owner_id AND r.session_id = d.session_id \
                 AND r.state = 'running' AND r.lease_until > ", database_now!(), " \
                 AND r.kind IN ('consolidate', 'review_memory', 'extract') AND (r.kind = 'extract') = (d.kind = 'extract')))"
        )
    };
}

statements! {
    ENQUEUE = concat!(
        "INSERT INTO jobs (tenant_id, owner_id, id, session_id, kind, run_at, created_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ", database_now!(), ", ?6) \
         ON CONFLICT (tenant_id, owner_id, ifnull(session_id, x''), kind) WHERE state = 'pending' DO NOTHING");
    CLAIM = concat!(
        "UPDATE jobs SET state = 'running', attempts = attempts + 1, token = token + 1, \
             lease_until = ", database_now!(), " + ?1 \
         WHERE (tenant_id, owner_id, id) = (SELECT tenant_id, owner_id, id FROM ( \
             SELECT * FROM (SELECT tenant_id, owner_id, id, run_at FROM jobs d \
                 WHERE state = 'pending' AND kind IN (SELECT value FROM json_each(?2)) AND run_at <= ", database_now!(), " AND ", alone!(), " \
                 ORDER BY run_at, id LIMIT 1) \
             UNION ALL \
             SELECT * FROM (SELECT tenant_id, owner_id, id, run_at FROM jobs d \
                 WHERE state = 'running' AND kind IN (SELECT value FROM json_each(?2)) AND lease_until <= ", database_now!(), " AND ", alone!(), " \
                 ORDER BY run_at, id LIMIT 1) \
         ) ORDER BY run_at, id LIMIT 1) \
         RETURNING ", job_columns!());
    CLAIM_ALIKE = concat!(
        "UPDATE jobs SET state = 'running', attempts = attempts + 1, token = token + 1, \
             lease_until = ", database_now!(), " + ?5 \
         WHERE tenant_id = ?1 AND owner_id = ?2 AND id IN ( \
             SELECT id FROM jobs d INDEXED BY jobs_pending WHERE d.tenant_id = ?1 AND d.owner_id = ?2 AND d.kind = ?3 AND d.state = 'pending' AND d.attempts = 0 \
                 AND d.run_at <= ", database_now!(), " AND d.session_id IS NOT ?6 \
                 AND (SELECT c.token FROM jobs c WHERE c.tenant_id = ?1 AND c.owner_id = ?2 AND c.id = ?7 AND c.state = 'running') = ?8 \
             ORDER BY d.run_at, d.id LIMIT ?4) \
         RETURNING ", job_columns!());
    RENEW = concat!("UPDATE jobs SET lease_until = ", database_now!(), " + ?5 WHERE ", claimed!());
    FINISH = concat!("DELETE FROM jobs WHERE ", claimed!());
    FAIL = concat!("UPDATE jobs SET state = 'failed', last_error = ?5, lease_until = 0 WHERE ", claimed!());
    POSTPONE = concat!(
        "UPDATE jobs SET state = 'pending', last_error = ?5, lease_until = 0, run_at = ", database_now!(), " + ?6 \
         WHERE ", claimed!());
    RESUME = concat!(
        "UPDATE jobs SET state = 'pending', last_error = ?5, lease_until = 0, attempts = 0, run_at = ", database_now!(), " + ?6 \
         WHERE ", claimed!());
    HELD = concat!("SELECT 1 FROM jobs WHERE ", claimed!());
    PENDING = concat!("SELECT ", job_columns!(), " FROM jobs \
                       WHERE tenant_id = ?1 AND owner_id = ?2 AND ifnull(session_id, x'') = ifnull(?3, x'') AND kind = ?4 AND state = 'pending'");
    LIST = concat!("SELECT ", job_columns!(), " FROM jobs \
                    WHERE tenant_id = ?1 AND (created_at, id) < (?2, ?3) AND (?4 IS NULL OR state = ?4) \
                    ORDER BY created_at DESC, id DESC LIMIT ?5");
    FAILED = concat!("SELECT ", job_columns!(), " FROM jobs WHERE tenant_id = ?1 AND id = ?2 AND state = 'failed'");
    RETRY = concat!(
        "UPDATE jobs SET state = 'pending', attempts = 0, run_at = ", database_now!(), " \
         WHERE tenant_id = ?1 AND id = ?2 AND state = 'failed' RETURNING ", job_columns!());
    DROP = "DELETE FROM jobs WHERE tenant_id = ?1 AND id = ?2 AND state IN ('failed', 'pending')";
    COUNT = "SELECT kind, state, count(*) AS jobs FROM jobs GROUP BY kind, state";
    VOID_LEASES = "UPDATE jobs SET lease_until = 0 WHERE state = 'running'";
}

/// Enqueues jobs; one that is pending already serves in place of a new one (A13).
pub(super) async fn enqueue(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    jobs: &[NewJob],
    now: Timestamp,
) -> StoreResult<()> {
    enqueue_in(connection, owner, Some(session), jobs, now).await
}

/// Enqueues jobs of an owner.
pub(super) async fn enqueue_for_owner(
    connection: &mut SqliteConnection,
    owner: Owner,
    jobs: &[NewJob],
    now: Timestamp,
) -> StoreResult<()> {
    enqueue_in(connection, owner, None, jobs, now).await
}

async fn enqueue_in(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: Option<SessionId>,
    jobs: &[NewJob],
    now: Timestamp,
) -> StoreResult<()> {
    for job in jobs {
        let session = session.filter(|_| !job.kind.is_of_owner());
        owned(ENQUEUE, owner)
            .bind(job.id.0)
            .bind(session.map(|session| session.0))
            .bind(job.kind.as_str())
            .bind(micros(now))
            .execute(&mut *connection)
            .await
            .map_err(store_error)?;
    }
    Ok(())
}

/// Removes a claimed job with what it has led to, or refuses.
pub(super) async fn finish(
    connection: &mut SqliteConnection,
    claim: &ClaimedJob,
) -> Result<(), JobWriteError> {
    let finished = owned(FINISH, claim.job.owner)
        .bind(claim.job.id.0)
        .bind(claim.token)
        .execute(connection)
        .await
        .map_err(store_error)?;
    still_claimed(finished.rows_affected())
}

/// Makes sure that a claim still holds.
pub(super) async fn hold(
    connection: &mut SqliteConnection,
    claim: &ClaimedJob,
) -> Result<(), JobWriteError> {
    let held = owned(HELD, claim.job.owner)
        .bind(claim.job.id.0)
        .bind(claim.token)
        .fetch_optional(connection)
        .await
        .map_err(store_error)?;
    still_claimed(u64::from(held.is_some()))
}

async fn renew(
    connection: &mut SqliteConnection,
    claim: &ClaimedJob,
    lease: Duration,
) -> Result<(), JobWriteError> {
    let renewed = owned(RENEW, claim.job.owner)
        .bind(claim.job.id.0)
        .bind(claim.token)
        .bind(duration_micros(lease))
        .execute(connection)
        .await
        .map_err(store_error)?;
    still_claimed(renewed.rows_affected())
}

fn still_claimed(affected: u64) -> Result<(), JobWriteError> {
    if affected == 1 {
        Ok(())
    } else {
        Err(JobWriteError::Lost)
    }
}

/// No process is left that could hold a lease.
pub(super) async fn void_leases(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query(VOID_LEASES).execute(connection).await?;
    Ok(())
}

async fn pending(
    executor: impl SqliteExecutor<'_>,
    owner: Owner,
    session: Option<SessionId>,
    kind: JobKind,
) -> StoreResult<Option<Job>> {
    owned(PENDING, owner)
        .bind(session.map(|session| session.0))
        .bind(kind.as_str())
        .fetch_optional(executor)
        .await
        .map_err(store_error)?
        .as_ref()
        .map(rows::job)
        .transpose()
}

async fn claim(
    connection: &mut SqliteConnection,
    kinds: String,
    lease: Duration,
) -> StoreResult<Option<ClaimedJob>> {
    let claimed = sqlx::query(CLAIM)
        .bind(duration_micros(lease))
        .bind(kinds)
        .fetch_optional(connection)
        .await
        .map_err(store_error)?;
    claimed.as_ref().map(claimed_job).transpose()
}

fn claimed_job(row: &SqliteRow) -> StoreResult<ClaimedJob> {
    Ok(ClaimedJob {
        job: rows::job(row)?,
        token: Row::of("jobs", row).get("token")?,
    })
}

async fn claim_alike(
    connection: &mut SqliteConnection,
    claim: ClaimedJob,
    most: u32,
    lease: Duration,
) -> StoreResult<Vec<ClaimedJob>> {
    let rows = owned(CLAIM_ALIKE, claim.job.owner)
        .bind(claim.job.kind.as_str())
        .bind(i64::from(most))
        .bind(duration_micros(lease))
        .bind(claim.job.session_id.map(|session| session.0))
        .bind(claim.job.id.0)
        .bind(claim.token)
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    rows.iter().map(claimed_job).collect()
}

/// Ends a claimed job in failure; see the port.
pub(super) async fn fail(
    connection: &mut SqliteConnection,
    claim: ClaimedJob,
    error: String,
    retry_in: Option<Duration>,
) -> Result<(), JobWriteError> {
    let job = &claim.job;
    if retry_in.is_some()
        && pending(&mut *connection, job.owner, job.session_id, job.kind)
            .await?
            .is_some()
    {
        return finish(connection, &claim).await;
    }
    let statement = owned(if retry_in.is_some() { POSTPONE } else { FAIL }, job.owner)
        .bind(job.id.0)
        .bind(claim.token)
        .bind(error);
    let statement = match retry_in {
        Some(delay) => statement.bind(duration_micros(delay)),
        None => statement,
    };
    let failed = statement.execute(connection).await.map_err(store_error)?;
    still_claimed(failed.rows_affected())
}

async fn postpone(
    connection: &mut SqliteConnection,
    claim: ClaimedJob,
    error: Option<String>,
    delay: Duration,
) -> Result<(), JobWriteError> {
    let job = &claim.job;
    if pending(&mut *connection, job.owner, job.session_id, job.kind)
        .await?
        .is_some()
    {
        return finish(connection, &claim).await;
    }
    let postponed = owned(RESUME, job.owner)
        .bind(job.id.0)
        .bind(claim.token)
        .bind(error)
        .bind(duration_micros(delay))
        .execute(connection)
        .await
        .map_err(store_error)?;
    still_claimed(postponed.rows_affected())
}

async fn retry(
    connection: &mut SqliteConnection,
    tenant: TenantId,
    id: JobId,
) -> StoreResult<Option<Job>> {
    let failed = sqlx::query(FAILED)
        .bind(tenant.0)
        .bind(id.0)
        .fetch_optional(&mut *connection)
        .await
        .map_err(store_error)?;
    let Some(failed) = failed.as_ref().map(rows::job).transpose()? else {
        return Ok(None);
    };
    let waiting = pending(
        &mut *connection,
        failed.owner,
        failed.session_id,
        failed.kind,
    )
    .await?;
    if waiting.is_some() {
        drop_waiting(connection, tenant, id).await?;
        return Ok(waiting);
    }
    let retried = sqlx::query(RETRY)
        .bind(tenant.0)
        .bind(id.0)
        .fetch_optional(connection)
        .await
        .map_err(store_error)?
        .ok_or_else(|| corrupt("jobs: a failed job is gone within a transaction"))?;
    rows::job(&retried).map(Some)
}

async fn drop_waiting(
    connection: &mut SqliteConnection,
    tenant: TenantId,
    id: JobId,
) -> StoreResult<bool> {
    let dropped = sqlx::query(DROP)
        .bind(tenant.0)
        .bind(id.0)
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(dropped.rows_affected() == 1)
}

#[async_trait]
impl JobRepository for SqliteStore {
    async fn claim_job_of(
        &self,
        kinds: &[JobKind],
        lease: Duration,
    ) -> StoreResult<Option<ClaimedJob>> {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let kinds = rows::json(&names)?;
        self.writer
            .write(move |c| Box::pin(claim(c, kinds, lease)))
            .await
    }

    async fn claim_alike(
        &self,
        claim: &ClaimedJob,
        most: u32,
        lease: Duration,
    ) -> StoreResult<Vec<ClaimedJob>> {
        let claim = claim.clone();
        self.writer
            .write(move |c| Box::pin(claim_alike(c, claim, most, lease)))
            .await
    }

    async fn postpone_job(
        &self,
        claim: &ClaimedJob,
        error: Option<&str>,
        delay: Duration,
    ) -> Result<(), JobWriteError> {
        let (claim, error) = (claim.clone(), error.map(str::to_owned));
        self.writer
            .write(move |c| Box::pin(postpone(c, claim, error, delay)))
            .await
    }

    async fn renew_job(&self, claim: &ClaimedJob, lease: Duration) -> Result<(), JobWriteError> {
        let claim = claim.clone();
        self.writer
            .write(move |c| Box::pin(async move { renew(c, &claim, lease).await }))
            .await
    }

    async fn finish_job(&self, claim: &ClaimedJob) -> Result<(), JobWriteError> {
        let claim = claim.clone();
        self.writer
            .write(move |c| Box::pin(async move { finish(c, &claim).await }))
            .await
    }

    async fn fail_job(
        &self,
        claim: &ClaimedJob,
        error: &str,
        retry_in: Option<Duration>,
    ) -> Result<(), JobWriteError> {
        let (claim, error) = (claim.clone(), error.to_owned());
        self.writer
            .write(move |c| Box::pin(fail(c, claim, error, retry_in)))
            .await
    }

    async fn list_jobs(
        &self,
        tenant: TenantId,
        state: Option<JobState>,
        after: Option<Cursor>,
        limit: u32,
    ) -> StoreResult<Page<Job>> {
        let (at, id) = behind(after);
        let found = sqlx::query(LIST)
            .bind(tenant.0)
            .bind(at)
            .bind(id)
            .bind(state.map(JobState::as_str))
            .bind(i64::from(limit) + 1)
            .fetch_all(&self.readers)
            .await
            .map_err(store_error)?;
        let jobs: StoreResult<Vec<_>> = found.iter().map(rows::job).collect();
        Ok(page(jobs?, limit))
    }

    async fn retry_job(&self, tenant: TenantId, id: JobId) -> StoreResult<Option<Job>> {
        self.writer
            .write(move |c| Box::pin(retry(c, tenant, id)))
            .await
    }

    async fn drop_job(&self, tenant: TenantId, id: JobId) -> StoreResult<bool> {
        self.writer
            .write(move |c| Box::pin(drop_waiting(c, tenant, id)))
            .await
    }

    async fn count_jobs(&self) -> StoreResult<Vec<(JobKind, JobState, u64)>> {
        let found = sqlx::query(COUNT)
            .fetch_all(&self.readers)
            .await
            .map_err(store_error)?;
        found
            .iter()
            .map(|row| {
                let row = Row::of("jobs", row);
                let count: i64 = row.get("jobs")?;
                Ok((
                    row.name("kind", JobKind::parse)?,
                    row.name("state", JobState::parse)?,
                    count.unsigned_abs(),
                ))
            })
            .collect()
    }
}
