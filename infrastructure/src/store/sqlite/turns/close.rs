//! Closing a turn without an answer.

use sqlx::SqliteConnection;
use tidemark_application::ports::turns::{CloseTurn, Closer, TurnKey, TurnWriteError};
use tidemark_domain::ids::MessageId;
use tidemark_domain::session::Role;
use tidemark_domain::turn::{Turn, TurnStatus, terminal_seq_after, terminal_seq_after_loss};

use super::write::keyed;
use super::{fenced, tokens, turn_columns};
use crate::store::sqlite::errors::{corrupt, store_error};
use crate::store::sqlite::recalled::kept_sql;
use crate::store::sqlite::rows::{self, Row, json, micros};
use crate::store::sqlite::statements::{database_now, statements};
use crate::store::sqlite::{jobs, messages};

statements! {
    LAPSED = concat!("SELECT events_reserved FROM turns WHERE ", fenced!(), " AND lease_until <= ", database_now!(), " \
         AND (SELECT s.message_count FROM sessions s WHERE s.tenant_id = ?1 AND s.owner_id = ?2 AND s.id = ?4) = ?6");
    CLOSE = concat!(
        "UPDATE turns SET status = ?6, terminal_seq = ?7, text = ?8, message_id = ?9, usage = ?10, recalled = ", kept_sql!("?11"), ", \
             problem = ?12, ended_at = ?13, lease_until = 0 \
         WHERE ", fenced!(), " RETURNING ", turn_columns!());
}

/// The terminal number, if this closer may close the turn.
async fn terminal_seq(
    connection: &mut SqliteConnection,
    key: TurnKey,
    closer: Closer,
) -> Result<i64, TurnWriteError> {
    match closer {
        Closer::Runner { events_used } => Ok(terminal_seq_after(events_used)),
        Closer::LeaseLapsed { last_seq } => {
            let row = keyed(LAPSED, key)
                .bind(last_seq)
                .fetch_optional(connection)
                .await
                .map_err(store_error)?
                .ok_or(TurnWriteError::Fenced)?;
            Ok(terminal_seq_after_loss(
                Row::of("turns", &row).get("events_reserved")?,
            ))
        }
    }
}

/// What was shown of the answer, if it is stored.
fn partial_answer(close: &CloseTurn) -> Option<MessageId> {
    close
        .messages
        .iter()
        .rfind(|m| m.role == Role::Assistant && m.tool_calls.is_empty())
        .map(|m| m.id)
}

/// Closes a turn.
pub(super) async fn close(
    connection: &mut SqliteConnection,
    key: TurnKey,
    close: CloseTurn,
) -> Result<Turn, TurnWriteError> {
    if !close.status.is_terminal() || close.status == TurnStatus::Completed {
        return Err(corrupt("turns.status: only commit_turn completes a turn").into());
    }
    let terminal_seq = terminal_seq(connection, key, close.closer).await?;
    let row = keyed(CLOSE, key)
        .bind(close.status.as_str())
        .bind(terminal_seq)
        .bind(close.text.as_deref())
        .bind(partial_answer(&close).map(|id| id.0))
        .bind(close.usage.as_ref().map(json).transpose()?)
        .bind(json(&close.recalled)?)
        .bind(close.problem.as_ref().map(json).transpose()?)
        .bind(micros(close.now))
        .fetch_optional(&mut *connection)
        .await
        .map_err(store_error)?
        .ok_or(TurnWriteError::Fenced)?;
    let turn = rows::turn(&row)?;
    messages::append_said(
        &mut *connection,
        key.owner,
        key.session_id,
        key.turn_id,
        close.messages,
        close.now,
    )
    .await?;
    jobs::enqueue(
        &mut *connection,
        key.owner,
        key.session_id,
        &close.jobs,
        close.now,
    )
    .await?;
    if close.counts_tokens {
        tokens::add(connection, key, &turn).await?;
    }
    Ok(turn)
}
