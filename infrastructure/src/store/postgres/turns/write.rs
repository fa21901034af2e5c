//! What a runner writes while its turn runs.

use std::time::Duration;

use sqlx::PgConnection;
use tidemark_application::ports::turns::{NewMessage, Renewed, TurnKey, TurnWriteError};
use tidemark_domain::ids::Timestamp;
use tidemark_domain::session::Message;

use super::super::messages::{self, Draft};
use super::super::rows::{owned, owned_as};
use super::super::transaction::Abort;

const RENEW: &str = "
UPDATE turns SET lease_until = clock_timestamp() + $6 * interval '1 microsecond'
WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3 AND id = $4 AND fence = $5 AND status IN ('running', 'awaiting_approval')
RETURNING cancel_requested";

const RESERVE: &str = "
UPDATE turns SET events_reserved = greatest(events_reserved, $6)
WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3 AND id = $4 AND fence = $5 AND status IN ('running', 'awaiting_approval')";

/// Locks the session and then the turn, whose newest version is checked once it is locked.
const LOCK: &str = "
WITH held AS (
    SELECT s.id, s.message_count FROM sessions s WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.id = $3 FOR UPDATE
)
SELECT t.events_reserved, t.lease_until <= clock_timestamp(), h.message_count
FROM held h JOIN turns t ON t.session_id = h.id
WHERE t.tenant_id = $1 AND t.owner_id = $2 AND t.id = $4 AND t.fence = $5 AND t.status IN ('running', 'awaiting_approval')
FOR UPDATE OF t";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[RENEW, RESERVE, LOCK];

/// A turn that nobody else can write to until the transaction ends.
pub(super) struct LockedTurn {
    pub(super) events_reserved: i64,
    pub(super) lapsed: bool,
    /// Number of the session's last message.
    pub(super) last_seq: i64,
}

/// Locks a turn for the holder of a key.
pub(super) async fn lock(
    tx: &mut PgConnection,
    key: TurnKey,
) -> Result<LockedTurn, Abort<TurnWriteError>> {
    let row: Option<(i64, bool, i64)> = owned_as(LOCK, key.owner)
        .bind(key.session_id.0)
        .bind(key.turn_id.0)
        .bind(key.fence)
        .fetch_optional(tx)
        .await?;
    let (events_reserved, lapsed, last_seq) = row.ok_or(Abort::Decided(TurnWriteError::Fenced))?;
    Ok(LockedTurn {
        events_reserved,
        lapsed,
        last_seq,
    })
}

pub(super) async fn renew(
    tx: &mut PgConnection,
    key: TurnKey,
    lease: Duration,
) -> Result<Renewed, Abort<TurnWriteError>> {
    let row: Option<(bool,)> = owned_as(RENEW, key.owner)
        .bind(key.session_id.0)
        .bind(key.turn_id.0)
        .bind(key.fence)
        .bind(lease.as_micros() as i64)
        .fetch_optional(tx)
        .await?;
    let (cancel_requested,) = row.ok_or(Abort::Decided(TurnWriteError::Fenced))?;
    Ok(Renewed { cancel_requested })
}

pub(super) async fn reserve_events(
    tx: &mut PgConnection,
    key: TurnKey,
    up_to: i64,
) -> Result<(), Abort<TurnWriteError>> {
    let reserved = owned(RESERVE, key.owner)
        .bind(key.session_id.0)
        .bind(key.turn_id.0)
        .bind(key.fence)
        .bind(up_to)
        .execute(tx)
        .await?;
    if reserved.rows_affected() == 1 {
        Ok(())
    } else {
        Err(Abort::Decided(TurnWriteError::Fenced))
    }
}

pub(super) async fn append_step(
    tx: &mut PgConnection,
    key: TurnKey,
    messages: &[NewMessage],
    now: Timestamp,
) -> Result<Vec<Message>, Abort<TurnWriteError>> {
    lock(tx, key).await?;
    append(tx, key, messages, now).await
}

/// Appends messages of a turn that the transaction has locked.
pub(super) async fn append(
    tx: &mut PgConnection,
    key: TurnKey,
    messages: &[NewMessage],
    now: Timestamp,
) -> Result<Vec<Message>, Abort<TurnWriteError>> {
    let drafts: Vec<Draft<'_>> = messages.iter().map(|m| Draft::of_turn(m, now)).collect();
    Ok(messages::append(
        tx,
        key.owner,
        key.session_id,
        Some(key.turn_id),
        &drafts,
        now,
    )
    .await?)
}
