//! Asking for a cancellation.

use sqlx::SqliteConnection;
use tidemark_application::ports::store::StoreResult;
use tidemark_application::ports::turns::CancelOutcome;
use tidemark_domain::ids::{Owner, Timestamp, TurnId};
use tidemark_domain::turn::{TurnStatus, terminal_seq_after};

use super::{read, turn_columns};
use crate::store::sqlite::errors::{corrupt, store_error};
use crate::store::sqlite::rows::{self, micros, owned};
use crate::store::sqlite::statements::statements;

statements! {
    CLOSE = concat!(
        "UPDATE turns SET status = 'cancelled', terminal_seq = ?4, ended_at = ?5 \
         WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3 AND status = 'queued' RETURNING ", turn_columns!());
    MARK = concat!(
        "UPDATE turns SET cancel_requested = 1 WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3 \
         AND status IN ('running', 'awaiting_approval') RETURNING ", turn_columns!());
}

/// The `start` event of a turn that waited is all that anybody has seen of it.
const START_SEQ: i64 = 1;

/// Closes a queued turn or marks a running one.
pub(super) async fn request(
    connection: &mut SqliteConnection,
    owner: Owner,
    id: TurnId,
    now: Timestamp,
) -> StoreResult<CancelOutcome> {
    let Some(turn) = read::find(&mut *connection, owner, id).await? else {
        return Ok(CancelOutcome::NotFound);
    };
    if turn.status.is_terminal() {
        return Ok(CancelOutcome::AlreadyEnded(turn));
    }
    let queued = turn.status == TurnStatus::Queued;
    let statement = if queued {
        owned(CLOSE, owner)
            .bind(id.0)
            .bind(terminal_seq_after(START_SEQ))
            .bind(micros(now))
    } else {
        owned(MARK, owner).bind(id.0)
    };
    let row = statement
        .fetch_optional(connection)
        .await
        .map_err(store_error)?
        .ok_or_else(|| corrupt("turns: a turn has moved within a transaction"))?;
    let turn = rows::turn(&row)?;
    Ok(if queued {
        CancelOutcome::Closed(turn)
    } else {
        CancelOutcome::Requested(turn)
    })
}
