//! The messages of a session: appended in one place, read in three ways.

use serde::Serialize;
use sqlx::PgConnection;
use sqlx::types::Json;
use tidemark_application::ports::sessions::ImportedMessage;
use tidemark_application::ports::store::Page;
use tidemark_application::ports::turns::NewMessage;
use tidemark_domain::ids::{MessageId, Owner, SessionId, Timestamp, TurnId};
use tidemark_domain::session::{Message, Role};
use tidemark_domain::tool::ToolCall;
use uuid::Uuid;

use super::rows::{MessageRow, all, message_columns, owned_as};

/// Gives messages the next numbers of their session. Whoever calls holds the session's lock.
const APPEND: &str = "
WITH grown AS (
    UPDATE sessions s SET message_count = s.message_count + jsonb_array_length($6), updated_at = $5
    WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.id = $3
    RETURNING s.message_count - jsonb_array_length($6) AS before
)
INSERT INTO messages (tenant_id, owner_id, id, session_id, turn_id, seq, role, content, name, tool_calls, tool_call_id, partial,
    learnable, created_at)
SELECT $1, $2, d.id, $3, $4, g.before + d.position, d.role, d.content, d.name, d.tool_calls, d.tool_call_id, d.partial, d.learnable,
    d.created_at
FROM grown g, ROWS FROM (
    jsonb_to_recordset($6) AS (id uuid, role text, content text, name text, tool_calls jsonb, tool_call_id text, partial boolean,
        learnable boolean, created_at timestamptz)
) WITH ORDINALITY
    AS d (id, role, content, name, tool_calls, tool_call_id, partial, learnable, created_at, position)
RETURNING seq";

const AFTER: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM messages m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.session_id = $3 AND m.seq > $4 ORDER BY m.seq LIMIT $5"
);

const NEWEST: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM messages m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.session_id = $3 AND ($4::bigint IS NULL OR m.seq < $4)",
    " ORDER BY m.seq DESC LIMIT $5"
);

const BY_ID: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM messages m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = ANY($3) ORDER BY m.session_id, m.seq"
);

/// What recall must cover because it is committed but not yet indexed. Of a long session, such as one that is imported, the end.
///
/// Subqueries rather than joins: until the tables have been analysed a join reads all messages of the owner for each session.
const UNINDEXED: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM sessions s
      CROSS JOIN LATERAL (
        SELECT * FROM messages n
        WHERE n.tenant_id = $1 AND n.owner_id = $2 AND n.session_id = s.id AND n.learnable
            AND n.seq > greatest(s.indexed_seq, s.message_count - $3)
        OFFSET 0
      ) m
      WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.unindexed
        AND (m.turn_id IS NULL OR (
            SELECT t.status FROM turns t WHERE t.tenant_id = $1 AND t.owner_id = $2 AND t.id = m.turn_id
        ) IN ('completed', 'failed', 'interrupted'))
      ORDER BY m.created_at DESC, m.id DESC LIMIT $3"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[APPEND, AFTER, NEWEST, BY_ID, UNINDEXED];

/// A message before it has its number.
#[derive(Serialize)]
pub(super) struct Draft<'a> {
    id: Uuid,
    #[serde(skip)]
    speaker: Role,
    role: &'static str,
    content: &'a str,
    name: Option<&'a str>,
    tool_calls: &'a [ToolCall],
    tool_call_id: Option<&'a str>,
    partial: bool,
    learnable: bool,
    created_at: Timestamp,
}

impl<'a> Draft<'a> {
    pub(super) fn of_turn(message: &'a NewMessage, now: Timestamp) -> Self {
        Self {
            id: message.id.0,
            speaker: message.role,
            role: message.role.as_str(),
            content: &message.content,
            name: None,
            tool_calls: &message.tool_calls,
            tool_call_id: message.tool_call_id.as_deref(),
            partial: message.partial,
            learnable: message.learnable,
            created_at: now,
        }
    }

    pub(super) fn of_user(
        id: MessageId,
        content: &'a str,
        learnable: bool,
        now: Timestamp,
    ) -> Self {
        Self {
            id: id.0,
            speaker: Role::User,
            role: Role::User.as_str(),
            content,
            name: None,
            tool_calls: &[],
            tool_call_id: None,
            partial: false,
            learnable,
            created_at: now,
        }
    }

    pub(super) fn imported(message: &'a ImportedMessage) -> Self {
        Self {
            id: message.id.0,
            speaker: message.role,
            role: message.role.as_str(),
            content: &message.content,
            name: message.name.as_deref(),
            tool_calls: &[],
            tool_call_id: None,
            partial: false,
            learnable: message.learnable,
            created_at: message.created_at,
        }
    }

    fn stored(&self, session: SessionId, turn: Option<TurnId>, seq: i64) -> Message {
        Message {
            id: MessageId(self.id),
            session_id: session,
            turn_id: turn,
            seq,
            role: self.speaker,
            content: self.content.to_owned(),
            name: self.name.map(ToOwned::to_owned),
            tool_calls: self.tool_calls.to_vec(),
            tool_call_id: self.tool_call_id.map(ToOwned::to_owned),
            partial: self.partial,
            learnable: self.learnable,
            created_at: self.created_at,
        }
    }
}

/// Appends messages to a session that the transaction has locked.
pub(super) async fn append(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
    turn: Option<TurnId>,
    drafts: &[Draft<'_>],
    now: Timestamp,
) -> Result<Vec<Message>, sqlx::Error> {
    if drafts.is_empty() {
        return Ok(Vec::new());
    }
    let mut numbers: Vec<(i64,)> = owned_as(APPEND, owner)
        .bind(session.0)
        .bind(turn.map(|turn| turn.0))
        .bind(now)
        .bind(Json(drafts))
        .fetch_all(tx)
        .await?;
    if numbers.len() != drafts.len() {
        return Err(sqlx::Error::RowNotFound);
    }
    numbers.sort_unstable();
    Ok(drafts
        .iter()
        .zip(numbers)
        .map(|(draft, (seq,))| draft.stored(session, turn, seq))
        .collect())
}

pub(super) async fn after(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
    after: i64,
    limit: u32,
) -> Result<Page<Message>, sqlx::Error> {
    let rows: Vec<MessageRow> = owned_as(AFTER, owner)
        .bind(session.0)
        .bind(after)
        .bind(i64::from(limit) + 1)
        .fetch_all(tx)
        .await?;
    Ok(page(all(rows)?, limit))
}

pub(super) async fn newest(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<Message>, sqlx::Error> {
    let mut rows: Vec<MessageRow> = owned_as(NEWEST, owner)
        .bind(session.0)
        .bind(before)
        .bind(i64::from(limit))
        .fetch_all(tx)
        .await?;
    rows.reverse();
    all(rows)
}

/// Messages by id, in the order of their session.
pub(super) async fn by_id(
    tx: &mut PgConnection,
    owner: Owner,
    ids: &[Uuid],
) -> Result<Vec<Message>, sqlx::Error> {
    let rows: Vec<MessageRow> = owned_as(BY_ID, owner).bind(ids).fetch_all(tx).await?;
    all(rows)
}

pub(super) async fn unindexed(
    tx: &mut PgConnection,
    owner: Owner,
    limit: u32,
) -> Result<Vec<Message>, sqlx::Error> {
    let rows: Vec<MessageRow> = owned_as(UNINDEXED, owner)
        .bind(i64::from(limit))
        .fetch_all(tx)
        .await?;
    all(rows)
}

/// A page of what was read with one item more than asked for.
pub(super) fn page<T>(mut items: Vec<T>, limit: u32) -> Page<T> {
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    Page { items, more }
}
