//! Sessions.

use async_trait::async_trait;
use sqlx::{SqliteConnection, SqliteExecutor};
use tidemark_application::ports::context::ContextRepository;
use tidemark_application::ports::sessions::{
    CreateError, ImportError, NewImport, NewSession, SessionChange, SessionRepository, Updated,
};
use tidemark_application::ports::store::{Created, Cursor, Idempotency, Page, StoreResult};
use tidemark_domain::ids::{Owner, SessionId, Timestamp, TurnId};
use tidemark_domain::session::{MemoryMode, Message, Session};
use uuid::Uuid;

use super::errors::{corrupt, store_error};
use super::idempotency::{self, Earlier};
use super::rows::{self, Row, json, micros, owned};
use super::statements::statements;
use super::{SqliteStore, history, memories, messages};

macro_rules! session_columns {
    () => {
        "s.id, s.title, s.labels, s.channel, s.memory, s.created_at, s.updated_at, s.message_count, \
         s.last_consolidated, s.indexed_seq, s.version, \
         coalesce( \
             (SELECT t.id FROM turns t WHERE t.tenant_id = s.tenant_id AND t.owner_id = s.owner_id AND t.session_id = s.id \
                 AND t.status IN ('running', 'awaiting_approval')), \
             (SELECT t.id FROM turns t WHERE t.tenant_id = s.tenant_id AND t.owner_id = s.owner_id AND t.session_id = s.id \
                 AND t.status = 'queued' ORDER BY t.created_at, t.id LIMIT 1)) AS active_turn"
    };
}
pub(super) use session_columns;

statements! {
    FIND = concat!("SELECT ", session_columns!(), " FROM sessions s \
                    WHERE s.tenant_id = ?1 AND s.owner_id = ?2 AND s.id = ?3");
    ADD = "INSERT INTO sessions (tenant_id, owner_id, id, title, labels, channel, memory, created_at, updated_at) \
           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)";
    /// `lower` knows ASCII alone, which is what is promised.
    LIST = concat!("SELECT ", session_columns!(), " FROM sessions s \
                    WHERE s.tenant_id = ?1 AND s.owner_id = ?2 AND (s.updated_at, s.id) < (?3, ?4) \
                    AND (?5 IS NULL OR instr(lower(s.title), lower(?5)) > 0) \
                    ORDER BY s.updated_at DESC, s.id DESC LIMIT ?6");
    CHANGE = "UPDATE sessions SET title = CASE WHEN ?4 THEN ?5 ELSE title END, labels = coalesce(?6, labels), \
              memory = coalesce(?7, memory), version = version + 1, updated_at = ?8 \
              WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3 AND version = ?9";
    TURNS = "SELECT id FROM turns WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3";
    REMOVE = "DELETE FROM sessions WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3";
    CUT = "UPDATE sessions SET message_count = ?4, last_consolidated = min(last_consolidated, ?4), \
           indexed_seq = min(indexed_seq, ?4) \
           WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3 AND message_count >= ?4";
}

/// Behind every item of a list that is ordered downwards.
pub(super) fn behind(cursor: Option<Cursor>) -> (i64, Uuid) {
    cursor.map_or((i64::MAX, Uuid::max()), |c| (micros(c.at), c.id))
}

/// A page of what was fetched with one item more than `limit`.
pub(super) fn page<T>(mut items: Vec<T>, limit: u32) -> Page<T> {
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    Page { items, more }
}

/// The session, if it is this owner's.
pub(super) async fn find(
    executor: impl SqliteExecutor<'_>,
    owner: Owner,
    id: SessionId,
) -> StoreResult<Option<Session>> {
    owned(FIND, owner)
        .bind(id.0)
        .fetch_optional(executor)
        .await
        .map_err(store_error)?
        .as_ref()
        .map(rows::session)
        .transpose()
}

/// Stores a session.
pub(super) async fn add(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: &NewSession,
) -> StoreResult<Session> {
    owned(ADD, owner)
        .bind(session.id.0)
        .bind(session.title.as_deref())
        .bind(json(&session.labels)?)
        .bind(&session.channel)
        .bind(session.memory.as_str())
        .bind(micros(session.now))
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    find(connection, owner, session.id)
        .await?
        .ok_or_else(|| corrupt("sessions: the row just written is not there"))
}

/// Sets the number of messages back after the later ones were removed, and both cursors with it.
pub(super) async fn cut(
    connection: &mut SqliteConnection,
    owner: Owner,
    id: SessionId,
    message_count: i64,
) -> StoreResult<()> {
    let cut = owned(CUT, owner)
        .bind(id.0)
        .bind(message_count)
        .execute(connection)
        .await
        .map_err(store_error)?;
    if cut.rows_affected() == 1 {
        Ok(())
    } else {
        Err(corrupt("sessions.message_count"))
    }
}

async fn create(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: NewSession,
    key: Option<Idempotency>,
) -> Result<Created<Session>, CreateError> {
    match idempotency::earlier(connection, owner, key.as_ref(), session.now).await? {
        Earlier::Mismatch => return Err(CreateError::IdempotencyMismatch),
        Earlier::Created(ids) => {
            if let [id] = ids[..]
                && let Some(value) = find(&mut *connection, owner, SessionId(id)).await?
            {
                return Ok(Created {
                    value,
                    replayed: true,
                });
            }
        }
        Earlier::Nothing => {}
    }
    let value = add(connection, owner, &session).await?;
    idempotency::record(
        connection,
        owner,
        key.as_ref(),
        &[session.id.0],
        session.now,
    )
    .await?;
    Ok(Created {
        value,
        replayed: false,
    })
}

async fn change(
    connection: &mut SqliteConnection,
    owner: Owner,
    id: SessionId,
    expected: Option<i64>,
    change: SessionChange,
    now: Timestamp,
) -> StoreResult<Updated<Session>> {
    let Some(session) = find(&mut *connection, owner, id).await? else {
        return Ok(Updated::NotFound);
    };
    if expected.is_some_and(|version| version != session.version) {
        return Ok(Updated::Stale);
    }
    let SessionChange {
        title,
        labels,
        memory,
    } = change;
    if title.is_none() && labels.is_none() && memory.is_none() {
        return Ok(Updated::Done(session));
    }
    let changed = owned(CHANGE, owner)
        .bind(id.0)
        .bind(title.is_some())
        .bind(title.flatten())
        .bind(labels.as_ref().map(json).transpose()?)
        .bind(memory.map(MemoryMode::as_str))
        .bind(micros(now))
        .bind(session.version)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    if changed.rows_affected() != 1 {
        return Ok(Updated::Stale);
    }
    Ok(find(connection, owner, id)
        .await?
        .map_or(Updated::NotFound, Updated::Done))
}

async fn remove(
    connection: &mut SqliteConnection,
    owner: Owner,
    id: SessionId,
    forget: bool,
) -> StoreResult<Option<Vec<TurnId>>> {
    let turns = owned(TURNS, owner)
        .bind(id.0)
        .fetch_all(&mut *connection)
        .await
        .map_err(store_error)?;
    let turns = turns
        .iter()
        .map(|row| Ok(TurnId(Row::of("turns", row).get("id")?)));
    let turns = turns.collect::<StoreResult<_>>()?;
    // Messages, turns and jobs go with their session (ON DELETE CASCADE).
    let removed = owned(REMOVE, owner)
        .bind(id.0)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    if removed.rows_affected() == 0 {
        return Ok(None);
    }
    if forget {
        memories::withdraw(connection, owner, id, 1..=i64::MAX).await?;
        history::drop_of_session(connection, owner, id).await?;
    }
    Ok(Some(turns))
}

/// Each part is read by itself: a read costs no round trip.
impl ContextRepository for SqliteStore {}

#[async_trait]
impl SessionRepository for SqliteStore {
    async fn create_session(
        &self,
        owner: Owner,
        session: NewSession,
        idempotency: Option<Idempotency>,
    ) -> Result<Created<Session>, CreateError> {
        self.writer
            .write(move |c| Box::pin(create(c, owner, session, idempotency)))
            .await
    }

    async fn session(&self, owner: Owner, id: SessionId) -> StoreResult<Option<Session>> {
        find(&self.readers, owner, id).await
    }

    async fn list_sessions(
        &self,
        owner: Owner,
        text: Option<&str>,
        after: Option<Cursor>,
        limit: u32,
    ) -> StoreResult<Page<Session>> {
        let (at, id) = behind(after);
        let found = owned(LIST, owner)
            .bind(at)
            .bind(id)
            .bind(text)
            .bind(i64::from(limit) + 1)
            .fetch_all(&self.readers)
            .await
            .map_err(store_error)?;
        let sessions: StoreResult<Vec<_>> = found.iter().map(rows::session).collect();
        Ok(page(sessions?, limit))
    }

    async fn update_session(
        &self,
        owner: Owner,
        id: SessionId,
        expected: Option<i64>,
        changes: SessionChange,
        now: Timestamp,
    ) -> StoreResult<Updated<Session>> {
        self.writer
            .write(move |c| Box::pin(change(c, owner, id, expected, changes, now)))
            .await
    }

    async fn delete_session(
        &self,
        owner: Owner,
        id: SessionId,
        forget: bool,
    ) -> StoreResult<Option<Vec<TurnId>>> {
        self.writer
            .write(move |c| Box::pin(remove(c, owner, id, forget)))
            .await
    }

    async fn messages(
        &self,
        owner: Owner,
        id: SessionId,
        after_seq: i64,
        limit: u32,
    ) -> StoreResult<Option<Page<Message>>> {
        messages::after(&self.readers, owner, id, after_seq, limit).await
    }

    async fn history(
        &self,
        owner: Owner,
        id: SessionId,
        before_seq: Option<i64>,
        limit: u32,
    ) -> StoreResult<Vec<Message>> {
        messages::newest(&self.readers, owner, id, before_seq, limit).await
    }

    async fn import_messages(
        &self,
        owner: Owner,
        id: SessionId,
        import: NewImport,
        idempotency: Option<Idempotency>,
    ) -> Result<Created<Vec<Message>>, ImportError> {
        self.writer
            .write(move |c| Box::pin(messages::import(c, owner, id, import, idempotency)))
            .await
    }
}
