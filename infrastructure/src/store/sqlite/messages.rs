//! Messages: appended under the session's next numbers, read in their order.

use std::collections::HashMap;

use sqlx::{SqliteConnection, SqlitePool};
use tidemark_application::ports::sessions::{ImportError, NewImport};
use tidemark_application::ports::store::{Created, Idempotency, Page, StoreResult};
use tidemark_application::ports::turns::NewMessage;
use tidemark_domain::ids::{MessageId, Owner, SessionId, Timestamp, TurnId};
use tidemark_domain::memory::change::Change;
use tidemark_domain::session::Message;
use uuid::Uuid;

use super::errors::{corrupt, store_error};
use super::idempotency::{self, Earlier};
use super::rows::{self, Row, hex_list, json, micros, owned};
use super::statements::statements;
use super::{history, jobs, sessions};

macro_rules! message_columns {
    () => {
        "m.id, m.session_id, m.turn_id, m.seq, m.role, m.content, m.name, m.tool_calls, m.tool_call_id, m.partial, \
         m.learnable, m.created_at"
    };
}
pub(super) use message_columns;

statements! {
    /// Takes the next numbers of the session; they are what orders its messages.
    TAKE_NUMBERS = "UPDATE sessions SET message_count = message_count + ?4, updated_at = max(updated_at, ?5) \
                    WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3 RETURNING message_count";
    ADD = "INSERT INTO messages (tenant_id, owner_id, session_id, seq, id, turn_id, role, content, name, tool_calls, \
           tool_call_id, partial, learnable, created_at) \
           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    AFTER = concat!("SELECT ", message_columns!(), " FROM messages m \
                     WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.session_id = ?3 AND m.seq > ?4 \
                     ORDER BY m.seq LIMIT ?5");
    NEWEST = concat!("SELECT ", message_columns!(), " FROM messages m \
                      WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.session_id = ?3 AND m.seq < ?4 \
                      ORDER BY m.seq DESC LIMIT ?5");
    BY_ID = concat!("SELECT ", message_columns!(), " FROM messages m \
                     WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id IN (SELECT unhex(value) FROM json_each(?3))");
    REMOVE_FROM = "DELETE FROM messages WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND seq >= ?4";
    IS_RUNNING = "SELECT count(*) AS running FROM turns WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 \
                  AND status IN ('running', 'awaiting_approval')";
    UNINDEXED = concat!("SELECT ", message_columns!(), " FROM sessions s INDEXED BY sessions_unindexed \
         CROSS JOIN messages m ON m.tenant_id = s.tenant_id AND m.owner_id = s.owner_id AND m.session_id = s.id \
             AND m.seq > max(s.indexed_seq, s.message_count - ?3) \
         LEFT JOIN turns t ON t.tenant_id = m.tenant_id AND t.owner_id = m.owner_id AND t.id = m.turn_id \
         WHERE s.tenant_id = ?1 AND s.owner_id = ?2 AND s.indexed_seq < s.message_count AND m.learnable = 1 \
         AND (m.turn_id IS NULL OR t.status IN ('completed', 'failed', 'interrupted')) \
         ORDER BY m.created_at DESC, m.id DESC LIMIT ?3");
}

/// Appends messages in their order under the session's next numbers, and returns them with these.
pub(super) async fn append(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    mut messages: Vec<Message>,
    now: Timestamp,
) -> StoreResult<Vec<Message>> {
    if messages.is_empty() {
        return Ok(messages);
    }
    let count = messages.len() as i64;
    let row = owned(TAKE_NUMBERS, owner)
        .bind(session.0)
        .bind(count)
        .bind(micros(now))
        .fetch_optional(&mut *connection)
        .await
        .map_err(store_error)?
        .ok_or_else(|| corrupt("messages: their session is not there"))?;
    let last: i64 = Row::of("sessions", &row).get("message_count")?;
    for (message, seq) in messages.iter_mut().zip(last - count + 1..) {
        message.seq = seq;
        owned(ADD, owner)
            .bind(session.0)
            .bind(seq)
            .bind(message.id.0)
            .bind(message.turn_id.map(|t| t.0))
            .bind(message.role.as_str())
            .bind(&message.content)
            .bind(message.name.as_deref())
            .bind(json(&message.tool_calls)?)
            .bind(message.tool_call_id.as_deref())
            .bind(message.partial)
            .bind(message.learnable)
            .bind(micros(message.created_at))
            .execute(&mut *connection)
            .await
            .map_err(store_error)?;
    }
    Ok(messages)
}

/// Appends what a turn says.
pub(super) async fn append_said(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    turn: TurnId,
    said: Vec<NewMessage>,
    now: Timestamp,
) -> StoreResult<Vec<Message>> {
    let messages = said
        .into_iter()
        .map(|m| Message {
            id: m.id,
            session_id: session,
            turn_id: Some(turn),
            seq: 0,
            role: m.role,
            content: m.content,
            name: None,
            tool_calls: m.tool_calls,
            tool_call_id: m.tool_call_id,
            partial: m.partial,
            learnable: m.learnable,
            created_at: now,
        })
        .collect();
    append(connection, owner, session, messages, now).await
}

/// Appends what was said elsewhere.
pub(super) async fn import(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    import: NewImport,
    key: Option<Idempotency>,
) -> Result<Created<Vec<Message>>, ImportError> {
    let now = import.now;
    let earlier = idempotency::earlier(connection, owner, key.as_ref(), now).await?;
    if matches!(earlier, Earlier::Mismatch) {
        return Err(ImportError::IdempotencyMismatch);
    }
    let found = sessions::find(&mut *connection, owner, session).await?;
    if found.is_none() {
        return Err(ImportError::SessionNotFound);
    }
    if let Earlier::Created(ids) = earlier {
        return Ok(Created {
            value: by_id(connection, owner, &ids).await?,
            replayed: true,
        });
    }
    if is_running(connection, owner, session).await? {
        return Err(ImportError::SessionBusy);
    }
    let messages = (import.messages)
        .into_iter()
        .map(|m| Message {
            id: m.id,
            session_id: session,
            turn_id: None,
            seq: 0,
            role: m.role,
            content: m.content,
            name: m.name,
            tool_calls: Vec::new(),
            tool_call_id: None,
            partial: false,
            learnable: m.learnable,
            created_at: m.created_at,
        })
        .collect();
    let value = append(connection, owner, session, messages, now).await?;
    jobs::enqueue(connection, owner, session, &import.jobs, now).await?;
    if let Some(kept) = Change::importing(import.change, &value, now) {
        history::record(connection, owner, kept).await?;
    }
    let ids: Vec<Uuid> = value.iter().map(|m| m.id.0).collect();
    idempotency::record(connection, owner, key.as_ref(), &ids, now).await?;
    Ok(Created {
        value,
        replayed: false,
    })
}

async fn is_running(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
) -> StoreResult<bool> {
    let row = owned(IS_RUNNING, owner)
        .bind(session.0)
        .fetch_one(connection)
        .await
        .map_err(store_error)?;
    Ok(Row::of("turns", &row).get::<i64>("running")? > 0)
}

/// Those of the messages that are there, in the order of `ids`.
async fn by_id(
    connection: &mut SqliteConnection,
    owner: Owner,
    ids: &[Uuid],
) -> StoreResult<Vec<Message>> {
    let found = owned(BY_ID, owner)
        .bind(hex_list(ids.iter().copied()))
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    let mut found: HashMap<MessageId, Message> = found
        .iter()
        .map(|row| rows::message(row).map(|m| (m.id, m)))
        .collect::<StoreResult<_>>()?;
    Ok(ids
        .iter()
        .filter_map(|id| found.remove(&MessageId(*id)))
        .collect())
}

/// Removes the messages from `seq` on.
pub(super) async fn remove_from(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    seq: i64,
) -> StoreResult<()> {
    owned(REMOVE_FROM, owner)
        .bind(session.0)
        .bind(seq)
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

pub(super) async fn after(
    readers: &SqlitePool,
    owner: Owner,
    session: SessionId,
    seq: i64,
    limit: u32,
) -> StoreResult<Option<Page<Message>>> {
    let found = owned(AFTER, owner)
        .bind(session.0)
        .bind(seq)
        .bind(i64::from(limit) + 1)
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    if found.is_empty() && sessions::find(readers, owner, session).await?.is_none() {
        return Ok(None);
    }
    let messages: StoreResult<Vec<_>> = found.iter().map(rows::message).collect();
    Ok(Some(sessions::page(messages?, limit)))
}

pub(super) async fn newest(
    readers: &SqlitePool,
    owner: Owner,
    session: SessionId,
    before_seq: Option<i64>,
    limit: u32,
) -> StoreResult<Vec<Message>> {
    let found = owned(NEWEST, owner)
        .bind(session.0)
        .bind(before_seq.unwrap_or(i64::MAX))
        .bind(i64::from(limit))
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    found.iter().rev().map(rows::message).collect()
}

pub(super) async fn unindexed(
    readers: &SqlitePool,
    owner: Owner,
    limit: u32,
) -> StoreResult<Vec<Message>> {
    let found = owned(UNINDEXED, owner)
        .bind(i64::from(limit))
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    found.iter().map(rows::message).collect()
}
