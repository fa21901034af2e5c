//! Starting the oldest queued turn of a session.

use std::time::Duration;

use sqlx::SqliteConnection;
use tidemark_application::ports::store::StoreResult;
use tidemark_application::ports::turns::{NewMessage, Started, TurnKey};
use tidemark_domain::ids::{MessageId, Owner, SessionId, Timestamp};
use tidemark_domain::session::Role;

use super::turn_columns;
use crate::store::sqlite::errors::{corrupt, store_error};
use crate::store::sqlite::rows::{self, duration_micros, micros, owned};
use crate::store::sqlite::statements::{database_now, statements};
use crate::store::sqlite::{messages, sessions};

statements! {
    START = concat!(
        "UPDATE turns SET status = 'running', fence = fence + 1, lease_until = ", database_now!(), " + ?4, \
             events_reserved = ?5, started_at = ?6, \
             first_seq = (SELECT message_count + 1 FROM sessions WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3) \
         WHERE tenant_id = ?1 AND owner_id = ?2 AND status = 'queued' AND id = ( \
             SELECT id FROM turns WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND status = 'queued' \
             ORDER BY created_at, id LIMIT 1) \
         AND NOT EXISTS (SELECT 1 FROM turns WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 \
             AND status IN ('running', 'awaiting_approval')) \
         RETURNING ", turn_columns!());
}

/// Starts a turn and gives its user's message the next number, or finds nothing to start.
pub(super) async fn start(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    message: MessageId,
    lease: Duration,
    event_block: i64,
    now: Timestamp,
) -> StoreResult<Option<Started>> {
    let started = owned(START, owner)
        .bind(session.0)
        .bind(duration_micros(lease))
        .bind(event_block)
        .bind(micros(now))
        .fetch_optional(&mut *connection)
        .await
        .map_err(store_error)?;
    let Some(turn) = started.as_ref().map(rows::turn).transpose()? else {
        return Ok(None);
    };
    let said = NewMessage {
        id: message,
        role: Role::User,
        content: turn.input.clone(),
        tool_calls: Vec::new(),
        tool_call_id: None,
        partial: false,
        learnable: turn.memory.learns(),
    };
    let message = messages::append_said(connection, owner, session, turn.id, vec![said], now)
        .await?
        .pop()
        .ok_or_else(|| corrupt("messages: the user's message was not stored"))?;
    let session = sessions::find(connection, owner, session)
        .await?
        .ok_or_else(|| corrupt("turns: their session is not there"))?;
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
