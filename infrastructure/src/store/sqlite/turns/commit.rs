//! The commit boundary: the answer, the turn's state and the derived jobs become true together.

use sqlx::SqliteConnection;
use tidemark_application::ports::turns::{CommitTurn, Committed, TurnKey, TurnWriteError};
use tidemark_domain::turn::terminal_seq_after;

use super::write::keyed;
use super::{fenced, tokens, turn_columns};
use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::recalled::kept_sql;
use crate::store::sqlite::rows::{self, Row, json, micros, owned};
use crate::store::sqlite::statements::statements;
use crate::store::sqlite::{jobs, messages};

statements! {
    WAITING = "SELECT count(*) AS waiting FROM turns WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND status = 'queued'";
    /// A turn that waits for approval cannot complete. One that has shown no memory has no use to be counted.
    COMPLETE = concat!(
        "UPDATE turns SET status = 'completed', terminal_seq = ?6, text = ?7, message_id = ?8, finish_reason = ?9, \
             usage = ?10, recalled = ", kept_sql!("?11"), ", use_counted = ?12, ended_at = ?13, lease_until = 0 \
         WHERE ", fenced!(), " AND status = 'running' RETURNING ", turn_columns!());
}

/// Commits a turn.
pub(super) async fn commit(
    connection: &mut SqliteConnection,
    key: TurnKey,
    commit: CommitTurn,
) -> Result<Committed, TurnWriteError> {
    let row = keyed(COMPLETE, key)
        .bind(terminal_seq_after(commit.events_used))
        .bind(&commit.answer.content)
        .bind(commit.answer.id.0)
        .bind(commit.finish_reason.as_str())
        .bind(json(&commit.usage)?)
        .bind(json(&commit.recalled)?)
        .bind(commit.recalled.is_empty())
        .bind(micros(commit.now))
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
        vec![commit.answer],
        commit.now,
    )
    .await?;
    jobs::enqueue(
        &mut *connection,
        key.owner,
        key.session_id,
        &commit.jobs,
        commit.now,
    )
    .await?;
    if commit.counts_tokens {
        tokens::add(&mut *connection, key, &turn).await?;
    }
    let waiting = owned(WAITING, key.owner)
        .bind(key.session_id.0)
        .fetch_one(connection)
        .await
        .map_err(store_error)?;
    let may_wait = Row::of("turns", &waiting).get::<i64>("waiting")? > 0;
    Ok(Committed { turn, may_wait })
}
