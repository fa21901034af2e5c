//! Accepting a turn: it is stored as queued with its input, its key, its session if that is new, and the removal of what it replaces.

use sqlx::SqliteConnection;
use tidemark_application::ports::store::StoreResult;
use tidemark_application::ports::turns::{
    AcceptError, AcceptTurn, Accepted, SharedLimits, StartTurn, TurnSession,
};
use tidemark_domain::ids::{Owner, SessionId, TurnId};
use tidemark_domain::session::{MemoryMode, Session};
use tidemark_domain::turn::{Turn, TurnStatus};

use super::{read, replace, start, tokens, turn_columns};
use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::idempotency::{self, Earlier};
use crate::store::sqlite::rows::{self, Row, json, micros, owned};
use crate::store::sqlite::sessions;
use crate::store::sqlite::statements::statements;

statements! {
    /// Each count is answered by a partial index that holds open turns alone.
    OPEN =
        "SELECT \
         (SELECT count(*) FROM turns WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND status = 'queued') \
             AS queued, \
         (SELECT count(*) FROM turns WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 \
             AND status IN ('running', 'awaiting_approval')) AS running, \
         (SELECT count(*) FROM turns INDEXED BY turns_queued \
             WHERE tenant_id = ?1 AND owner_id = ?2 AND status = 'queued') \
         + (SELECT count(*) FROM turns INDEXED BY turns_running \
             WHERE tenant_id = ?1 AND owner_id = ?2 AND status IN ('running', 'awaiting_approval')) \
             AS of_owner";
    /// Of a tenant, and of one of its keys.
    OPEN_SHARED =
        "SELECT count(*) AS of_tenant, count(*) FILTER (WHERE key_id = ?2) AS of_key FROM turns INDEXED BY turns_open \
         WHERE tenant_id = ?1 AND status IN ('queued', 'running', 'awaiting_approval')";
    // Behind every turn of the session that was accepted before, for the clock may have been set back since.
    ADD = concat!(
        "INSERT INTO turns (tenant_id, owner_id, id, session_id, status, input, memory, created_at, options, key_id) \
         VALUES (?1, ?2, ?3, ?4, 'queued', ?5, ?6, \
             max(?7, coalesce((SELECT max(q.created_at) + 1 FROM turns q WHERE q.tenant_id = ?1 AND q.owner_id = ?2 \
                 AND q.session_id = ?4 AND q.status = 'queued'), ?7)), ?8, ?9) RETURNING ", turn_columns!());
    BEFORE =
        "SELECT count(*) AS open FROM turns WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND id <> ?4 \
         AND (status IN ('running', 'awaiting_approval') OR (status = 'queued' AND (created_at, id) < (?5, ?4)))";
}

/// Open turns.
struct Open {
    /// Waiting in the session.
    queued: i64,
    /// Begun in the session: 0 or 1.
    running: i64,
    /// In all sessions of the owner.
    of_owner: i64,
}

async fn open(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
) -> StoreResult<Open> {
    let row = owned(OPEN, owner)
        .bind(session.0)
        .fetch_one(connection)
        .await
        .map_err(store_error)?;
    let row = Row::of("turns", &row);
    Ok(Open {
        queued: row.get("queued")?,
        running: row.get("running")?,
        of_owner: row.get("of_owner")?,
    })
}

/// The turn accepted under the same key.
async fn accepted_before(
    connection: &mut SqliteConnection,
    accept: &AcceptTurn,
) -> Result<Option<Accepted>, AcceptError> {
    let key = accept.idempotency.as_ref();
    let ids = match idempotency::earlier(connection, accept.owner, key, accept.now).await? {
        Earlier::Nothing => return Ok(None),
        Earlier::Mismatch => return Err(AcceptError::IdempotencyMismatch),
        Earlier::Created(ids) => ids,
    };
    let found = match ids.first() {
        Some(id) => read::find(&mut *connection, accept.owner, TurnId(*id)).await?,
        None => None,
    };
    // Deleted or replaced since: a late repetition must not ask again what was taken back.
    let turn = found.ok_or(AcceptError::SessionNotFound)?;
    let waits = turn.status == TurnStatus::Queued && waits(connection, accept.owner, &turn).await?;
    Ok(Some(Accepted {
        turn,
        started: None,
        waits,
        replayed: true,
    }))
}

/// Whether another turn of the session comes before a queued one.
async fn waits(connection: &mut SqliteConnection, owner: Owner, turn: &Turn) -> StoreResult<bool> {
    let row = owned(BEFORE, owner)
        .bind(turn.session_id.0)
        .bind(turn.id.0)
        .bind(micros(turn.created_at))
        .fetch_one(connection)
        .await
        .map_err(store_error)?;
    Ok(Row::of("turns", &row).get::<i64>("open")? > 0)
}

async fn session_of(
    connection: &mut SqliteConnection,
    accept: &AcceptTurn,
) -> Result<Session, AcceptError> {
    match &accept.session {
        TurnSession::New(session) => Ok(sessions::add(connection, accept.owner, session).await?),
        TurnSession::Existing(id) => sessions::find(connection, accept.owner, *id)
            .await?
            .ok_or(AcceptError::SessionNotFound),
    }
}

/// Whether the turn may be accepted beside those that are open.
fn admit(accept: &AcceptTurn, open: &Open) -> Result<(), AcceptError> {
    let busy = open.queued + open.running > 0;
    if busy && (accept.reject_if_busy || accept.replaces.is_some()) {
        return Err(AcceptError::SessionBusy);
    }
    if busy && open.queued >= accept.max_queued {
        return Err(AcceptError::QueueFull);
    }
    if open.of_owner >= accept.max_open_per_owner {
        return Err(AcceptError::TooManyTurns);
    }
    Ok(())
}

/// Whether the turn may be accepted beside those of its tenant and its key that are open.
async fn admit_shared(
    connection: &mut SqliteConnection,
    accept: &AcceptTurn,
) -> Result<(), AcceptError> {
    let limits = accept.max_open_shared;
    if limits == SharedLimits::default() {
        return Ok(());
    }
    let row = sqlx::query(OPEN_SHARED)
        .bind(accept.owner.tenant.0)
        .bind(accept.key.map(|key| key.0))
        .fetch_one(connection)
        .await
        .map_err(store_error)?;
    let row = Row::of("turns", &row);
    let (of_tenant, of_key): (i64, i64) = (row.get("of_tenant")?, row.get("of_key")?);
    if accept.key.is_some() && limits.key.is_some_and(|most| of_key >= most) {
        return Err(AcceptError::TooManyOfKey);
    }
    if limits.tenant.is_some_and(|most| of_tenant >= most) {
        return Err(AcceptError::TooManyOfTenant);
    }
    Ok(())
}

async fn add(
    connection: &mut SqliteConnection,
    accept: &AcceptTurn,
    session: SessionId,
    memory: MemoryMode,
) -> StoreResult<Turn> {
    let row = owned(ADD, accept.owner)
        .bind(accept.id.0)
        .bind(session.0)
        .bind(&accept.input)
        .bind(memory.as_str())
        .bind(micros(accept.now))
        .bind(json(&accept.options)?)
        .bind(accept.key.map(|key| key.0))
        .fetch_one(connection)
        .await
        .map_err(store_error)?;
    rows::turn(&row)
}

/// Accepts a turn.
pub(super) async fn accept(
    connection: &mut SqliteConnection,
    accept: AcceptTurn,
) -> Result<Accepted, AcceptError> {
    if let Some(accepted) = accepted_before(connection, &accept).await? {
        return Ok(accepted);
    }
    if !accept.admit {
        return Err(AcceptError::NotAdmitted);
    }
    let owner = accept.owner;
    let session = session_of(connection, &accept).await?;
    let open = open(connection, owner, session.id).await?;
    admit(&accept, &open)?;
    admit_shared(connection, &accept).await?;
    tokens::admit(connection, &accept).await?;
    if let Some(replaced) = accept.replaces {
        let branch = replace::branch(connection, owner, session.id, replaced)
            .await?
            .ok_or(AcceptError::ReplacedNotFound)?;
        replace::remove(connection, owner, session.id, branch).await?;
    }
    let memory = accept.memory.unwrap_or(session.memory);
    let turn = add(connection, &accept, session.id, memory).await?;
    let key = accept.idempotency.as_ref();
    idempotency::record(connection, owner, key, &[turn.id.0], accept.now).await?;
    let waits = open.queued + open.running > 0;
    let started = match accept.start.filter(|_| !waits) {
        Some(start) => {
            let (session, now) = (session.id, accept.now);
            let StartTurn {
                message,
                lease,
                event_block,
            } = start;
            start::start(connection, owner, session, message, lease, event_block, now).await?
        }
        None => None,
    };
    Ok(Accepted {
        turn: started
            .as_ref()
            .map_or(turn, |started| started.turn.clone()),
        started: started.map(Box::new),
        waits,
        replayed: false,
    })
}
