//! The start: lease and fence, and only then the user's message gets its number.

use std::time::Duration;

use sqlx::PgConnection;
use tidemark_application::ports::turns::{Started, TurnKey};
use tidemark_domain::ids::{MessageId, Owner, SessionId, Timestamp};
use tidemark_domain::turn::Turn;

use super::super::messages::{self, Draft};
use super::super::rows::{TurnRow, owned_as, turn_columns};
use super::super::sessions;
use super::super::transaction::Abort;

/// Takes the oldest queued turn, unless one runs.
const TAKE: &str = concat!(
    "UPDATE turns t SET status = 'running', fence = t.fence + 1, lease_until = clock_timestamp() + $4 * interval '1 microsecond',
        events_reserved = greatest(t.events_reserved, $5), first_seq = $6, started_at = $7
     WHERE t.tenant_id = $1 AND t.owner_id = $2
        AND t.id = (
            SELECT q.id FROM turns q
            WHERE q.tenant_id = $1 AND q.owner_id = $2 AND q.session_id = $3 AND q.status = 'queued'
            ORDER BY q.created_at, q.id LIMIT 1
        )
        AND NOT EXISTS (
            SELECT FROM turns r
            WHERE r.tenant_id = $1 AND r.owner_id = $2 AND r.session_id = $3 AND r.status IN ('running', 'awaiting_approval')
        )
     RETURNING ",
    turn_columns!()
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[TAKE];

/// What a start is asked with.
pub(super) struct Start {
    pub(super) owner: Owner,
    pub(super) session: SessionId,
    pub(super) message: MessageId,
    pub(super) lease: Duration,
    pub(super) event_block: i64,
    pub(super) now: Timestamp,
}

pub(super) async fn start<E>(
    tx: &mut PgConnection,
    start: &Start,
) -> Result<Option<Started>, Abort<E>> {
    let (owner, now) = (start.owner, start.now);
    let Some(mut session) = sessions::lock(tx, owner, start.session).await? else {
        return Ok(None);
    };
    let row: Option<TurnRow> = owned_as(TAKE, owner)
        .bind(session.id.0)
        .bind(start.lease.as_micros() as i64)
        .bind(start.event_block)
        .bind(session.message_count + 1)
        .bind(now)
        .fetch_optional(&mut *tx)
        .await?;
    let Some(turn) = row.map(Turn::try_from).transpose()? else {
        return Ok(None);
    };
    let draft = Draft::of_user(start.message, &turn.input, turn.memory.learns(), now);
    let message = messages::append(tx, owner, session.id, Some(turn.id), &[draft], now)
        .await?
        .pop()
        .ok_or(sqlx::Error::RowNotFound)?;
    session.message_count = message.seq;
    session.updated_at = now;
    session.active_turn = Some(turn.id);
    Ok(Some(Started {
        key: TurnKey {
            owner,
            session_id: session.id,
            turn_id: turn.id,
            fence: turn.fence,
        },
        turn,
        session,
        message,
    }))
}
