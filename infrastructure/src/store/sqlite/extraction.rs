//! What a model has yet to read, and what it has read.

use sqlx::{SqliteConnection, SqlitePool};
use tidemark_application::ports::jobs::{ClaimedJob, JobKind, JobWriteError, NewJob};
use tidemark_application::ports::learning::{
    ExtractionCommit, ExtractionOutcome, PendingExtraction, Unanswered,
};
use tidemark_application::ports::memories::IndexedMemory;
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{Owner, SessionId, Timestamp};
use tidemark_domain::memory::change::{self as domain, ChangeKind};
use uuid::Uuid;

use super::errors::store_error;
use super::rows::{self, Row, duration_micros, hex_list, micros, owned};
use super::statements::{database_now, statements};
use super::{history, jobs, learning};

statements! {
    /// An earlier one that begins at the same place was cut back with the messages that followed.
    NOTE = "INSERT INTO pending_extractions (tenant_id, owner_id, session_id, from_seq, to_seq, created_at) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
            ON CONFLICT (tenant_id, owner_id, session_id, from_seq) DO UPDATE SET to_seq = max(to_seq, excluded.to_seq)";
    DEFER = concat!("UPDATE jobs SET last_error = ?5, run_at = ", database_now!(), " + ?6 \
                     WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND id = ?4 AND state = 'pending'");
    LIST = "SELECT from_seq, to_seq, attempts FROM pending_extractions \
            WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 ORDER BY attempts, from_seq";
    SETTLE = "DELETE FROM pending_extractions WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND from_seq = ?4";
    COUNT_ATTEMPT = "UPDATE pending_extractions SET attempts = attempts + 1 \
                     WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND from_seq = ?4";
    /// Messages from a number on are gone.
    DROP_CUT = "DELETE FROM pending_extractions \
                WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND from_seq >= ?4 - 1";
    CUT = "UPDATE pending_extractions SET to_seq = ?4 - 1 \
           WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND to_seq >= ?4";
    /// Of messages, those of which something was forgotten.
    FORGOTTEN = "SELECT DISTINCT message_id FROM source_tombstones \
                 WHERE tenant_id = ?1 AND owner_id = ?2 AND message_id IN (SELECT unhex(value) FROM json_each(?3))";
    /// Where no boundary may stand there is nothing to do, now or at the next sweep.
    TO_CONSOLIDATE =
        "SELECT s.tenant_id, s.owner_id, s.id AS session_id FROM sessions s \
         WHERE s.last_consolidated < s.message_count \
         AND EXISTS (SELECT 1 FROM messages m \
             WHERE m.tenant_id = s.tenant_id AND m.owner_id = s.owner_id AND m.session_id = s.id AND m.seq > s.last_consolidated \
             AND m.role <> 'tool' AND m.tool_calls = '[]' AND m.created_at <= ?1) \
         AND NOT EXISTS (SELECT 1 FROM turns t \
             WHERE t.tenant_id = s.tenant_id AND t.owner_id = s.owner_id AND t.session_id = s.id \
             AND t.status IN ('running', 'awaiting_approval')) \
         AND NOT EXISTS (SELECT 1 FROM jobs j INDEXED BY jobs_by_session \
             WHERE j.tenant_id = s.tenant_id AND j.owner_id = s.owner_id AND j.session_id = s.id AND j.kind = 'consolidate') \
         LIMIT ?2";
    EXISTS = "SELECT 1 FROM sessions WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3";
}

/// Notes that a model has yet to read the messages from one number, exclusive, to another.
pub(super) async fn note(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    ((from_seq, to_seq), unanswered): ((i64, i64), Unanswered),
    now: Timestamp,
) -> StoreResult<()> {
    owned(NOTE, owner)
        .bind(session.0)
        .bind(from_seq)
        .bind(to_seq)
        .bind(micros(now))
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    let job = NewJob {
        id: unanswered.job,
        kind: JobKind::Extract,
    };
    jobs::enqueue(connection, owner, session, &[job], now).await?;
    owned(DEFER, owner)
        .bind(session.0)
        .bind(unanswered.job.0)
        .bind(unanswered.error)
        .bind(duration_micros(unanswered.retry_in))
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// Takes back what was to be read of messages that are gone, from `first_seq` on.
pub(super) async fn cut(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    first_seq: i64,
) -> StoreResult<()> {
    for statement in [DROP_CUT, CUT] {
        owned(statement, owner)
            .bind(session.0)
            .bind(first_seq)
            .execute(&mut *connection)
            .await
            .map_err(store_error)?;
    }
    Ok(())
}

/// What may be stored of what a model has worded: nothing that was read from a message of which something was forgotten.
pub(super) async fn admitted(
    connection: &mut SqliteConnection,
    owner: Owner,
    mut worded: Vec<IndexedMemory>,
) -> StoreResult<Vec<IndexedMemory>> {
    if worded.is_empty() {
        return Ok(worded);
    }
    let sources = worded.iter().flat_map(|item| &item.memory.sources);
    let found = owned(FORGOTTEN, owner)
        .bind(hex_list(sources.map(|s| s.message_id.0)))
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    let forgotten: Vec<Uuid> = found
        .iter()
        .map(|row| Row::of("source_tombstones", row).get("message_id"))
        .collect::<StoreResult<_>>()?;
    worded.retain(|item| {
        let mut sources = item.memory.sources.iter();
        !sources.any(|s| forgotten.contains(&s.message_id.0))
    });
    Ok(worded)
}

pub(super) async fn pending(
    readers: &SqlitePool,
    owner: Owner,
    session: SessionId,
) -> StoreResult<Vec<PendingExtraction>> {
    let found = owned(LIST, owner)
        .bind(session.0)
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    found
        .iter()
        .map(|row| {
            let row = Row::of("pending_extractions", row);
            Ok(PendingExtraction {
                from_seq: row.get("from_seq")?,
                to_seq: row.get("to_seq")?,
                attempts: row.get("attempts")?,
            })
        })
        .collect()
}

pub(super) async fn commit(
    connection: &mut SqliteConnection,
    claim: ClaimedJob,
    commit: ExtractionCommit,
) -> Result<(), JobWriteError> {
    let (owner, id) = (claim.job.owner, claim.session()?);
    learning::check_epoch(connection, owner, commit.erase_epoch).await?;
    let statement = match commit.outcome {
        ExtractionOutcome::Settled => {
            jobs::finish(connection, &claim).await?;
            SETTLE
        }
        ExtractionOutcome::Unsettled { error, retry_in } => {
            jobs::fail(connection, claim, error, retry_in).await?;
            COUNT_ATTEMPT
        }
    };
    let taught = (Vec::new(), commit.worded, commit.strengthened);
    let items = learning::learn(connection, owner, taught, commit.now).await?;
    if !items.is_empty() {
        let kept = domain::Change::new(commit.change, ChangeKind::Consolidation, commit.now, items)
            .of_session(Some(id))
            .over(commit.from_seq, commit.to_seq);
        history::record(connection, owner, kept).await?;
    }
    let found = owned(statement, owner)
        .bind(id.0)
        .bind(commit.from_seq)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    if found.rows_affected() != 1 {
        return Err(JobWriteError::Conflict);
    }
    Ok(jobs::enqueue(connection, owner, id, &commit.jobs, commit.now).await?)
}

pub(super) async fn to_consolidate(
    readers: &SqlitePool,
    before: Timestamp,
    limit: u32,
) -> StoreResult<Vec<(Owner, SessionId)>> {
    let found = sqlx::query(TO_CONSOLIDATE)
        .bind(micros(before))
        .bind(i64::from(limit))
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    found
        .iter()
        .map(|row| {
            let owner = rows::owner(row)?;
            let session = Row::of("sessions", row).get("session_id")?;
            Ok((owner, SessionId(session)))
        })
        .collect()
}

pub(super) async fn enqueue(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    job: NewJob,
    now: Timestamp,
) -> StoreResult<()> {
    let found = owned(EXISTS, owner)
        .bind(session.0)
        .fetch_optional(&mut *connection)
        .await
        .map_err(store_error)?;
    match found {
        Some(_) => jobs::enqueue(connection, owner, session, &[job], now).await,
        None => Ok(()),
    }
}
