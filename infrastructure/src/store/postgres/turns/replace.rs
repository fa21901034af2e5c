//! Retry, or edit and send again: a branch of the session is taken back before the new turn is stored.

use sqlx::PgConnection;
use tidemark_application::ports::turns::AcceptError;
use tidemark_domain::ids::{Owner, SessionId, Timestamp, TurnId};

use super::super::changes::Change;
use super::super::rows::{owned, owned_as};
use super::super::transaction::Abort;
use super::super::{extraction, forget, owners};

const IS_OPEN: &str = "
SELECT EXISTS (
    SELECT FROM turns
    WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3 AND status IN ('queued', 'running', 'awaiting_approval')
)";

const FIND: &str = "
SELECT first_seq, created_at FROM turns
WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3 AND id = $4 AND first_seq IS NOT NULL";

/// The turns of the branch, and those that were accepted after its first and never started.
const DELETE_TURNS: &str = "
DELETE FROM turns
WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3
    AND (first_seq >= $4 OR (first_seq IS NULL AND (created_at, id) > ($5, $6)))";

const DELETE_MESSAGES: &str =
    "DELETE FROM messages WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3 AND seq >= $4";

const REWIND: &str = "
UPDATE sessions SET message_count = $4 - 1, last_consolidated = least(last_consolidated, $4 - 1), indexed_seq = least(indexed_seq, $4 - 1)
WHERE tenant_id = $1 AND owner_id = $2 AND id = $3";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[IS_OPEN, FIND, DELETE_TURNS, DELETE_MESSAGES, REWIND];

/// Removes a turn and what came after it from a session that the transaction has locked, with what was learned from that alone.
pub(super) async fn replace(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
    replaced: TurnId,
) -> Result<(), Abort<AcceptError>> {
    let (open,): (bool,) = owned_as(IS_OPEN, owner)
        .bind(session.0)
        .fetch_one(&mut *tx)
        .await?;
    if open {
        return Err(Abort::Decided(AcceptError::SessionBusy));
    }
    let found: Option<(i64, Timestamp)> = owned_as(FIND, owner)
        .bind(session.0)
        .bind(replaced.0)
        .fetch_optional(&mut *tx)
        .await?;
    let (first_seq, created_at) = found.ok_or(Abort::Decided(AcceptError::ReplacedNotFound))?;
    owned(DELETE_TURNS, owner)
        .bind(session.0)
        .bind(first_seq)
        .bind(created_at)
        .bind(replaced.0)
        .execute(&mut *tx)
        .await?;
    owned(DELETE_MESSAGES, owner)
        .bind(session.0)
        .bind(first_seq)
        .execute(&mut *tx)
        .await?;
    // Work that was decided on these messages is still under way.
    owners::raise_epoch(tx, owner).await?;
    let change = Change::begin(tx, owner).await?;
    forget::withdraw(tx, owner, &change, session, first_seq..=i64::MAX).await?;
    extraction::cut(tx, owner, session, first_seq).await?;
    owned(REWIND, owner)
        .bind(session.0)
        .bind(first_seq)
        .execute(tx)
        .await?;
    Ok(())
}
