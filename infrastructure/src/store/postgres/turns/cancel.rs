//! The wish to stop a turn.

use sqlx::PgConnection;
use tidemark_application::ports::store::StoreError;
use tidemark_application::ports::turns::CancelOutcome;
use tidemark_domain::ids::{Owner, Timestamp, TurnId};
use tidemark_domain::turn::{Turn, TurnStatus, terminal_seq_after};

use super::super::rows::{TurnRow, owned_as, turn_columns};
use super::super::sessions;
use super::super::transaction::Abort;
use super::find;

const CLOSE: &str = concat!(
    "UPDATE turns t SET status = 'cancelled', terminal_seq = $4, ended_at = $5 \
     WHERE t.tenant_id = $1 AND t.owner_id = $2 AND t.id = $3 AND t.status = 'queued' RETURNING ",
    turn_columns!()
);

const MARK: &str = concat!(
    "UPDATE turns t SET cancel_requested = true \
     WHERE t.tenant_id = $1 AND t.owner_id = $2 AND t.id = $3 AND t.status IN ('running', 'awaiting_approval') RETURNING ",
    turn_columns!()
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[CLOSE, MARK];

/// The only event that a queued turn has told is `start`, number 1.
const EVENTS_OF_A_QUEUED_TURN: i64 = 1;

pub(super) async fn request(
    tx: &mut PgConnection,
    owner: Owner,
    id: TurnId,
    now: Timestamp,
) -> Result<CancelOutcome, Abort<StoreError>> {
    let Some(turn) = find(tx, owner, id).await? else {
        return Ok(CancelOutcome::NotFound);
    };
    if turn.status.is_terminal() {
        return Ok(CancelOutcome::AlreadyEnded(turn));
    }
    // A start chooses the oldest queued turn under this lock and must not find it closed meanwhile.
    sessions::lock(tx, owner, turn.session_id).await?;
    let Some(turn) = find(tx, owner, id).await? else {
        return Ok(CancelOutcome::NotFound);
    };
    match turn.status {
        TurnStatus::Queued => {
            let row: TurnRow = owned_as(CLOSE, owner)
                .bind(id.0)
                .bind(terminal_seq_after(EVENTS_OF_A_QUEUED_TURN))
                .bind(now)
                .fetch_one(tx)
                .await?;
            Ok(CancelOutcome::Closed(Turn::try_from(row)?))
        }
        TurnStatus::Running | TurnStatus::AwaitingApproval => {
            let row: TurnRow = owned_as(MARK, owner).bind(id.0).fetch_one(tx).await?;
            Ok(CancelOutcome::Requested(Turn::try_from(row)?))
        }
        _ => Ok(CancelOutcome::AlreadyEnded(turn)),
    }
}
