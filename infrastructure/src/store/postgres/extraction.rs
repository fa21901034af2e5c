//! What a model has yet to read, and what it has read.

use std::collections::HashSet;

use sqlx::PgConnection;
use tidemark_application::ports::jobs::{ClaimedJob, JobKind, JobWriteError, NewJob};
use tidemark_application::ports::learning::{
    ExtractionCommit, ExtractionOutcome, PendingExtraction, Unanswered,
};
use tidemark_application::ports::memories::IndexedMemory;
use tidemark_application::ports::store::StoreError;
use tidemark_domain::ids::{Owner, OwnerId, SessionId, TenantId, Timestamp};
use tidemark_domain::memory::change::{self as domain, ChangeKind};
use uuid::Uuid;

use super::changes::Change;
use super::rows::{owned, owned_as};
use super::transaction::Abort;
use super::{claims, history, jobs, learning, sessions};

/// An earlier one that begins at the same place was cut back with the messages that followed.
const NOTE: &str = "
INSERT INTO pending_extractions (tenant_id, owner_id, session_id, from_seq, to_seq, created_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant_id, owner_id, session_id, from_seq)
DO UPDATE SET to_seq = greatest(pending_extractions.to_seq, excluded.to_seq)";

const DEFER: &str = "
UPDATE jobs SET last_error = $4, run_at = clock_timestamp() + $5 * interval '1 microsecond'
WHERE tenant_id = $1 AND owner_id = $2 AND id = $3 AND state = 'pending'";

const LIST: &str = "
SELECT from_seq, to_seq, attempts FROM pending_extractions
WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3
ORDER BY attempts, from_seq";

const SETTLE: &str = "
DELETE FROM pending_extractions WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3 AND from_seq = $4";

const COUNT_ATTEMPT: &str = "
UPDATE pending_extractions SET attempts = attempts + 1
WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3 AND from_seq = $4";

/// Messages from a number on are gone.
const DROP_CUT: &str = "
DELETE FROM pending_extractions WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3 AND from_seq >= $4 - 1";
const CUT: &str = "
UPDATE pending_extractions SET to_seq = $4 - 1
WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3 AND to_seq >= $4";

/// Of messages, those of which something was forgotten.
const FORGOTTEN: &str = "
SELECT DISTINCT b.subject_id FROM tombstones b
WHERE b.tenant_id = $1 AND b.owner_id = $2 AND b.subject_id = ANY($3) AND b.identity_hash <> ''::bytea";

const TO_CONSOLIDATE: &str =
    "SELECT tenant_id, owner_id, session_id FROM tidemark_sessions_to_consolidate($1, $2)";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    NOTE,
    DEFER,
    LIST,
    SETTLE,
    COUNT_ATTEMPT,
    DROP_CUT,
    CUT,
    FORGOTTEN,
    TO_CONSOLIDATE,
];

/// Notes that a model has yet to read the messages from one number, exclusive, to another.
pub(super) async fn note(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
    ((from_seq, to_seq), unanswered): ((i64, i64), &Unanswered),
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    owned(NOTE, owner)
        .bind(session.0)
        .bind(from_seq)
        .bind(to_seq)
        .bind(now)
        .execute(&mut *tx)
        .await?;
    let job = NewJob {
        id: unanswered.job,
        kind: JobKind::Extract,
    };
    jobs::enqueue(tx, owner, session, &[job], now).await?;
    owned(DEFER, owner)
        .bind(unanswered.job.0)
        .bind(&unanswered.error)
        .bind(unanswered.retry_in.as_micros() as i64)
        .execute(tx)
        .await?;
    Ok(())
}

/// Takes back what was to be read of messages that are gone, from `first_seq` on.
pub(super) async fn cut(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
    first_seq: i64,
) -> Result<(), sqlx::Error> {
    for statement in [DROP_CUT, CUT] {
        owned(statement, owner)
            .bind(session.0)
            .bind(first_seq)
            .execute(&mut *tx)
            .await?;
    }
    Ok(())
}

/// What may be stored of what a model has worded: nothing that was read from a message of which something was forgotten.
pub(super) async fn admitted(
    tx: &mut PgConnection,
    owner: Owner,
    worded: &[IndexedMemory],
) -> Result<Vec<IndexedMemory>, sqlx::Error> {
    if worded.is_empty() {
        return Ok(Vec::new());
    }
    let read: Vec<Uuid> = worded
        .iter()
        .flat_map(|item| item.memory.sources.iter().map(|s| s.message_id.0))
        .collect();
    let rows: Vec<(Uuid,)> = owned_as(FORGOTTEN, owner).bind(read).fetch_all(tx).await?;
    let forgotten: HashSet<Uuid> = rows.into_iter().map(|(id,)| id).collect();
    let allowed = |item: &&IndexedMemory| {
        let mut sources = item.memory.sources.iter();
        !sources.any(|s| forgotten.contains(&s.message_id.0))
    };
    Ok(worded.iter().filter(allowed).cloned().collect())
}

pub(super) async fn pending(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
) -> Result<Vec<PendingExtraction>, Abort<StoreError>> {
    let rows: Vec<(i64, i64, i32)> = owned_as(LIST, owner).bind(session.0).fetch_all(tx).await?;
    Ok(rows
        .into_iter()
        .map(|(from_seq, to_seq, attempts)| PendingExtraction {
            from_seq,
            to_seq,
            attempts,
        })
        .collect())
}

pub(super) async fn commit(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
    commit: &ExtractionCommit,
) -> Result<(), Abort<JobWriteError>> {
    let (owner, id) = (claim.job.owner, claim.session().map_err(Abort::Decided)?);
    if sessions::lock(tx, owner, id).await?.is_none() {
        return Err(Abort::Decided(JobWriteError::Lost));
    }
    let statement = match &commit.outcome {
        ExtractionOutcome::Settled => {
            claims::remove(tx, claim).await?;
            SETTLE
        }
        ExtractionOutcome::Unsettled { error, retry_in } => {
            jobs::fail(tx, claim, error, *retry_in).await?;
            COUNT_ATTEMPT
        }
    };
    let change = Change::begin(tx, owner).await?;
    learning::check(change.erase_epoch() == commit.erase_epoch)?;
    let taught = (&[][..], &*commit.worded, &*commit.strengthened);
    let items = learning::learn(tx, owner, &change, taught, commit.now).await?;
    if !items.is_empty() {
        let kept = domain::Change::new(commit.change, ChangeKind::Consolidation, commit.now, items)
            .of_session(Some(id))
            .over(commit.from_seq, commit.to_seq);
        history::record(tx, owner, kept).await?;
    }
    let found = owned(statement, owner)
        .bind(id.0)
        .bind(commit.from_seq)
        .execute(&mut *tx)
        .await?;
    learning::check(found.rows_affected() == 1)?;
    Ok(jobs::enqueue(tx, owner, id, &commit.jobs, commit.now).await?)
}

pub(super) async fn to_consolidate(
    tx: &mut PgConnection,
    before: Timestamp,
    limit: u32,
) -> Result<Vec<(Owner, SessionId)>, Abort<StoreError>> {
    let rows: Vec<(Uuid, i64, Uuid)> = sqlx::query_as(TO_CONSOLIDATE)
        .bind(before)
        .bind(i64::from(limit))
        .fetch_all(tx)
        .await?;
    Ok(rows
        .into_iter()
        .map(|(tenant, owner, session)| {
            let owner = Owner {
                tenant: TenantId(tenant),
                id: OwnerId(owner),
            };
            (owner, SessionId(session))
        })
        .collect())
}
