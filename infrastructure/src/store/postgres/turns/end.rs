//! The end of a turn: the commit boundary, and the ends without an answer.

use sqlx::PgConnection;
use sqlx::types::Json;
use tidemark_application::ports::jobs::NewJob;
use tidemark_application::ports::turns::{
    CloseTurn, Closer, CommitTurn, Committed, NewMessage, TurnKey, TurnWriteError,
};
use tidemark_domain::event::RecalledMemory;
use tidemark_domain::ids::{MessageId, Timestamp};
use tidemark_domain::session::Role;
use tidemark_domain::turn::{
    FinishReason, Turn, TurnProblem, TurnStatus, Usage, terminal_seq_after, terminal_seq_after_loss,
};

use super::super::jobs::{self, enqueue_sql};
use super::super::recalled::{self, kept_sql};
use super::super::rows::{TurnRow, owned_as, turn_columns};
use super::super::transaction::Abort;
use super::{is_waiting, tokens, write};

/// Locks the session, closes the turn if it is still the caller's, and enqueues what derives from it, in one round trip.
const END: &str = concat!(
    "WITH held AS (
        SELECT s.id FROM sessions s WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.id = $3 FOR UPDATE
     ), ended AS (
        UPDATE turns t SET status = $9, terminal_seq = $10, text = $11, message_id = $12, finish_reason = $13, usage = $14,
            recalled = ",
    kept_sql!("$15"),
    ", problem = $16, ended_at = $4, lease_until = NULL
        FROM held h
        WHERE t.tenant_id = $1 AND t.owner_id = $2 AND t.id = $7 AND t.session_id = h.id AND t.fence = $8
            AND (t.status = 'running' OR (t.status = 'awaiting_approval' AND $9 <> 'completed'))
        RETURNING t.*
     ), enqueued AS (",
    enqueue_sql!(" CROSS JOIN ended"),
    ")
     SELECT ",
    turn_columns!(),
    " FROM ended t"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[END];

/// What the row holds from now on.
struct End<'a> {
    status: TurnStatus,
    terminal_seq: i64,
    text: Option<&'a str>,
    message: Option<MessageId>,
    finish_reason: Option<FinishReason>,
    usage: Option<Usage>,
    recalled: &'a [RecalledMemory],
    problem: Option<&'a TurnProblem>,
    jobs: &'a [NewJob],
    now: Timestamp,
}

pub(super) async fn commit(
    tx: &mut PgConnection,
    key: TurnKey,
    commit: &CommitTurn,
) -> Result<Committed, Abort<TurnWriteError>> {
    let turn = end(
        tx,
        key,
        End {
            status: TurnStatus::Completed,
            terminal_seq: terminal_seq_after(commit.events_used),
            text: Some(&commit.answer.content),
            message: Some(commit.answer.id),
            finish_reason: Some(commit.finish_reason),
            usage: Some(commit.usage),
            recalled: &commit.recalled,
            problem: None,
            jobs: &commit.jobs,
            now: commit.now,
        },
    )
    .await?;
    write::append(tx, key, std::slice::from_ref(&commit.answer), commit.now).await?;
    let may_wait = is_waiting(tx, key.owner, key.session_id).await?;
    if commit.counts_tokens {
        tokens::add(tx, key.owner.tenant, std::iter::once((key, &turn))).await?;
    }
    Ok(Committed { turn, may_wait })
}

pub(super) async fn close(
    tx: &mut PgConnection,
    key: TurnKey,
    close: &CloseTurn,
) -> Result<Turn, Abort<TurnWriteError>> {
    if !close.status.is_terminal() || close.status == TurnStatus::Completed {
        let what = "only an answer completes a turn, and only an end closes it".to_owned();
        return Err(sqlx::Error::InvalidArgument(what).into());
    }
    let locked = write::lock(tx, key).await?;
    let terminal_seq = match close.closer {
        Closer::Runner { events_used } => terminal_seq_after(events_used),
        Closer::LeaseLapsed { last_seq } if locked.lapsed && locked.last_seq == last_seq => {
            terminal_seq_after_loss(locked.events_reserved)
        }
        Closer::LeaseLapsed { .. } => return Err(Abort::Decided(TurnWriteError::Fenced)),
    };
    let turn = end(
        tx,
        key,
        End {
            status: close.status,
            terminal_seq,
            text: close.text.as_deref(),
            message: answer(&close.messages),
            finish_reason: None,
            usage: close.usage,
            recalled: &close.recalled,
            problem: close.problem.as_ref(),
            jobs: &close.jobs,
            now: close.now,
        },
    )
    .await?;
    write::append(tx, key, &close.messages, close.now).await?;
    if close.counts_tokens {
        tokens::add(tx, key.owner.tenant, std::iter::once((key, &turn))).await?;
    }
    Ok(turn)
}

/// What was shown of the answer, where that is stored.
fn answer(messages: &[NewMessage]) -> Option<MessageId> {
    messages
        .iter()
        .rfind(|message| message.role == Role::Assistant && message.tool_calls.is_empty())
        .map(|message| message.id)
}

async fn end(
    tx: &mut PgConnection,
    key: TurnKey,
    end: End<'_>,
) -> Result<Turn, Abort<TurnWriteError>> {
    if !end.recalled.is_empty() {
        recalled::hold(tx, key.owner, key.session_id).await?;
    }
    let (job_ids, job_kinds) = jobs::columns(end.jobs);
    let row: Option<TurnRow> = owned_as(END, key.owner)
        .bind(key.session_id.0)
        .bind(end.now)
        .bind(job_ids)
        .bind(job_kinds)
        .bind(key.turn_id.0)
        .bind(key.fence)
        .bind(end.status.as_str())
        .bind(end.terminal_seq)
        .bind(end.text)
        .bind(end.message.map(|id| id.0))
        .bind(end.finish_reason.map(FinishReason::as_str))
        .bind(end.usage.map(Json))
        .bind(Json(end.recalled))
        .bind(end.problem.map(Json))
        .fetch_optional(&mut *tx)
        .await?;
    let row = row.ok_or(Abort::Decided(TurnWriteError::Fenced))?;
    Ok(row.try_into()?)
}
