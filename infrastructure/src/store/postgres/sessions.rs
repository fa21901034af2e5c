//! Sessions, and the port that also covers their messages.

use async_trait::async_trait;
use sqlx::PgConnection;
use tidemark_application::ports::sessions::{
    CreateError, ImportError, NewImport, NewSession, SessionChange, SessionRepository, Updated,
};
use tidemark_application::ports::store::{
    Created, Cursor, Idempotency, Page, StoreError, StoreResult,
};
use tidemark_domain::ids::{Owner, SessionId, Timestamp, TurnId};
use tidemark_domain::memory::change as domain;
use tidemark_domain::session::{MemoryMode, Message, Session};
use uuid::Uuid;

use super::PostgresStore;
use super::changes::Change;
use super::idempotency::{self, Reservation};
use super::messages::{self, Draft, page};
use super::rows::{SessionRow, all, owned, owned_as, session_columns};
use super::transaction::Abort;
use super::{forget, history, jobs, owners, turns};

const FIND: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions s WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.id = $3"
);

/// Taken first by whoever writes to a session.
const LOCK: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions s WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.id = $3 FOR UPDATE"
);

/// Those that nobody else has locked.
const LOCK_FREE: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions s WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.id = ANY ($3) FOR UPDATE SKIP LOCKED"
);

const INSERT: &str = concat!(
    "INSERT INTO sessions AS s (tenant_id, owner_id, id, title, labels, channel, memory, created_at, updated_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) RETURNING ",
    session_columns!()
);

const LIST: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions s WHERE s.tenant_id = $1 AND s.owner_id = $2
        AND ($3::text IS NULL OR strpos(lower(s.title COLLATE \"C\"), lower($3 COLLATE \"C\")) > 0)
        AND ($4::timestamptz IS NULL OR (s.updated_at, s.id) < ($4, $5::uuid))
      ORDER BY s.updated_at DESC, s.id DESC LIMIT $6"
);

const UPDATE: &str = concat!(
    "UPDATE sessions s SET title = CASE WHEN $4 THEN $5 ELSE s.title END, labels = coalesce($6, s.labels), \
     memory = coalesce($7, s.memory), version = s.version + 1, updated_at = $8 \
     WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.id = $3 RETURNING ",
    session_columns!()
);

const TURNS: &str =
    "SELECT id FROM turns WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3";
/// Messages, turns and jobs go with it.
const DELETE: &str = "DELETE FROM sessions WHERE tenant_id = $1 AND owner_id = $2 AND id = $3";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[FIND, LOCK, LOCK_FREE, INSERT, LIST, UPDATE, TURNS, DELETE];

async fn one(
    tx: &mut PgConnection,
    sql: &'static str,
    owner: Owner,
    id: SessionId,
) -> Result<Option<Session>, sqlx::Error> {
    let row: Option<SessionRow> = owned_as(sql, owner).bind(id.0).fetch_optional(tx).await?;
    row.map(Session::try_from).transpose()
}

pub(super) async fn find(
    tx: &mut PgConnection,
    owner: Owner,
    id: SessionId,
) -> Result<Option<Session>, sqlx::Error> {
    one(tx, FIND, owner, id).await
}

/// Locks a session until the transaction ends; `None` if there is none. What is read after it, in statements of their own, is what
/// the last holder of the lock has left.
pub(super) async fn lock(
    tx: &mut PgConnection,
    owner: Owner,
    id: SessionId,
) -> Result<Option<Session>, sqlx::Error> {
    one(tx, LOCK, owner, id).await
}

/// Locks those of these sessions that there are and that nobody else has locked. It waits for nobody.
pub(super) async fn lock_free(
    tx: &mut PgConnection,
    owner: Owner,
    ids: &[Uuid],
) -> Result<Vec<Session>, sqlx::Error> {
    let rows: Vec<SessionRow> = owned_as(LOCK_FREE, owner).bind(ids).fetch_all(tx).await?;
    all(rows)
}

pub(super) async fn insert(
    tx: &mut PgConnection,
    owner: Owner,
    session: &NewSession,
) -> Result<Session, sqlx::Error> {
    let row: SessionRow = owned_as(INSERT, owner)
        .bind(session.id.0)
        .bind(&session.title)
        .bind(&session.labels)
        .bind(&session.channel)
        .bind(session.memory.as_str())
        .bind(session.now)
        .fetch_one(tx)
        .await?;
    row.try_into()
}

async fn create(
    tx: &mut PgConnection,
    owner: Owner,
    session: &NewSession,
    key: Option<&Idempotency>,
) -> Result<Created<Session>, Abort<CreateError>> {
    match idempotency::reserve(tx, owner, key, &[session.id.0], session.now).await? {
        Reservation::Made => {}
        Reservation::Mismatch => return Err(Abort::Decided(CreateError::IdempotencyMismatch)),
        Reservation::Earlier(ids) => {
            for id in ids {
                if let Some(value) = find(tx, owner, SessionId(id)).await? {
                    return Ok(Created {
                        value,
                        replayed: true,
                    });
                }
            }
            // What the key made has been deleted since; the caller asks for a session, not for that one.
            idempotency::rename(tx, owner, key, &[session.id.0], session.now).await?;
        }
    }
    Ok(Created {
        value: insert(tx, owner, session).await?,
        replayed: false,
    })
}

async fn list(
    tx: &mut PgConnection,
    owner: Owner,
    text: Option<&str>,
    after: Option<Cursor>,
    limit: u32,
) -> Result<Page<Session>, Abort<StoreError>> {
    let rows: Vec<SessionRow> = owned_as(LIST, owner)
        .bind(text)
        .bind(after.map(|cursor| cursor.at))
        .bind(after.map(|cursor| cursor.id))
        .bind(i64::from(limit) + 1)
        .fetch_all(tx)
        .await?;
    Ok(page(all(rows)?, limit))
}

async fn update(
    tx: &mut PgConnection,
    owner: Owner,
    id: SessionId,
    expected: Option<i64>,
    change: &SessionChange,
    now: Timestamp,
) -> Result<Updated<Session>, Abort<StoreError>> {
    let Some(session) = lock(tx, owner, id).await? else {
        return Ok(Updated::NotFound);
    };
    if expected.is_some_and(|version| version != session.version) {
        return Ok(Updated::Stale);
    }
    if change.title.is_none() && change.labels.is_none() && change.memory.is_none() {
        return Ok(Updated::Done(session));
    }
    let row: SessionRow = owned_as(UPDATE, owner)
        .bind(id.0)
        .bind(change.title.is_some())
        .bind(change.title.as_ref().and_then(Option::as_ref))
        .bind(change.labels.as_ref())
        .bind(change.memory.map(MemoryMode::as_str))
        .bind(now)
        .fetch_one(tx)
        .await?;
    Ok(Updated::Done(row.try_into()?))
}

async fn delete(
    tx: &mut PgConnection,
    owner: Owner,
    id: SessionId,
    forget: bool,
) -> Result<Option<Vec<TurnId>>, Abort<StoreError>> {
    if lock(tx, owner, id).await?.is_none() {
        return Ok(None);
    }
    let turns: Vec<(Uuid,)> = owned_as(TURNS, owner)
        .bind(id.0)
        .fetch_all(&mut *tx)
        .await?;
    if forget {
        owners::raise_epoch(tx, owner).await?;
        let change = Change::begin(tx, owner).await?;
        forget::withdraw(tx, owner, &change, id, 1..=i64::MAX).await?;
        history::drop_of_session(tx, owner, id).await?;
    }
    owned(DELETE, owner).bind(id.0).execute(tx).await?;
    Ok(Some(turns.into_iter().map(|(id,)| TurnId(id)).collect()))
}

async fn import(
    tx: &mut PgConnection,
    owner: Owner,
    id: SessionId,
    import: &NewImport,
    key: Option<&Idempotency>,
) -> Result<Created<Vec<Message>>, Abort<ImportError>> {
    let ids: Vec<Uuid> = import.messages.iter().map(|m| m.id.0).collect();
    let reservation = idempotency::reserve(tx, owner, key, &ids, import.now).await?;
    if matches!(reservation, Reservation::Mismatch) {
        return Err(Abort::Decided(ImportError::IdempotencyMismatch));
    }
    if lock(tx, owner, id).await?.is_none() {
        return Err(Abort::Decided(ImportError::SessionNotFound));
    }
    if let Reservation::Earlier(ids) = reservation {
        return Ok(Created {
            value: messages::by_id(tx, owner, &ids).await?,
            replayed: true,
        });
    }
    if turns::is_running(tx, owner, id).await? {
        return Err(Abort::Decided(ImportError::SessionBusy));
    }
    let drafts: Vec<Draft<'_>> = import.messages.iter().map(Draft::imported).collect();
    let value = messages::append(tx, owner, id, None, &drafts, import.now).await?;
    jobs::enqueue(tx, owner, id, &import.jobs, import.now).await?;
    if let Some(kept) = domain::Change::importing(import.change, &value, import.now) {
        history::record(tx, owner, kept).await?;
    }
    Ok(Created {
        value,
        replayed: false,
    })
}

#[async_trait]
impl SessionRepository for PostgresStore {
    async fn create_session(
        &self,
        owner: Owner,
        session: NewSession,
        idempotency: Option<Idempotency>,
    ) -> Result<Created<Session>, CreateError> {
        self.database
            .write(
                owner.tenant,
                (session, idempotency),
                move |tx, (session, key)| Box::pin(create(tx, owner, session, key.as_ref())),
            )
            .await
    }

    async fn session(&self, owner: Owner, id: SessionId) -> StoreResult<Option<Session>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(find(tx, owner, id).await?) })
            })
            .await
    }

    async fn list_sessions(
        &self,
        owner: Owner,
        text: Option<&str>,
        after: Option<Cursor>,
        limit: u32,
    ) -> StoreResult<Page<Session>> {
        self.database
            .read(
                owner.tenant,
                text.map(ToOwned::to_owned),
                move |tx, text| Box::pin(list(tx, owner, text.as_deref(), after, limit)),
            )
            .await
    }

    async fn update_session(
        &self,
        owner: Owner,
        id: SessionId,
        expected: Option<i64>,
        change: SessionChange,
        now: Timestamp,
    ) -> StoreResult<Updated<Session>> {
        self.database
            .write(owner.tenant, change, move |tx, change| {
                Box::pin(update(tx, owner, id, expected, change, now))
            })
            .await
    }

    async fn delete_session(
        &self,
        owner: Owner,
        id: SessionId,
        forget: bool,
    ) -> StoreResult<Option<Vec<TurnId>>> {
        self.database
            .write(owner.tenant, (), move |tx, ()| {
                Box::pin(delete(tx, owner, id, forget))
            })
            .await
    }

    async fn messages(
        &self,
        owner: Owner,
        id: SessionId,
        after_seq: i64,
        limit: u32,
    ) -> StoreResult<Option<Page<Message>>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move {
                    if find(tx, owner, id).await?.is_none() {
                        return Ok(None);
                    }
                    Ok(Some(
                        messages::after(tx, owner, id, after_seq, limit).await?,
                    ))
                })
            })
            .await
    }

    async fn history(
        &self,
        owner: Owner,
        id: SessionId,
        before_seq: Option<i64>,
        limit: u32,
    ) -> StoreResult<Vec<Message>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(
                    async move { Ok(messages::newest(tx, owner, id, before_seq, limit).await?) },
                )
            })
            .await
    }

    async fn import_messages(
        &self,
        owner: Owner,
        id: SessionId,
        new: NewImport,
        idempotency: Option<Idempotency>,
    ) -> Result<Created<Vec<Message>>, ImportError> {
        self.database
            .write(owner.tenant, (new, idempotency), move |tx, (new, key)| {
                Box::pin(import(tx, owner, id, new, key.as_ref()))
            })
            .await
    }
}
