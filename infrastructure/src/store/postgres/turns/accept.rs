//! Acceptance: the turn is stored as queued, or nothing is.

use sqlx::PgConnection;
use sqlx::types::Json;
use tidemark_application::ports::turns::{
    AcceptError, AcceptTurn, Accepted, StartTurn, Started, TurnSession,
};
use tidemark_domain::ids::{Owner, SessionId, TurnId};
use tidemark_domain::session::Session;
use tidemark_domain::turn::{Turn, TurnStatus};

use super::super::idempotency::{self, Reservation};
use super::super::owners;
use super::super::rows::{TurnRow, owned_as, turn_columns};
use super::super::sessions;
use super::super::transaction::Abort;
use super::{find, replace, shared, start, tokens};

/// Stores the turn and tells what was open before it. It waits behind every turn of the session that was accepted before, whatever the clocks of the
/// processes say that accepted them.
const INSERT: &str = concat!(
    "WITH open AS (
        SELECT count(*) AS of_owner, count(*) FILTER (WHERE session_id = $4) AS of_session,
            count(*) FILTER (WHERE session_id = $4 AND status = 'queued') AS queued
        FROM turns
        WHERE tenant_id = $1 AND owner_id = $2 AND status IN ('queued', 'running', 'awaiting_approval')
     ), stored AS (
        INSERT INTO turns (tenant_id, owner_id, id, session_id, status, input, memory, created_at, options, key_id)
        SELECT $1, $2, $3, $4, 'queued', $5, $6, greatest($7, max(q.created_at) + interval '1 microsecond'), $8, $9
        FROM turns q
        WHERE q.tenant_id = $1 AND q.owner_id = $2 AND q.session_id = $4 AND q.status = 'queued'
        RETURNING *
     )
     SELECT o.of_owner, o.of_session, o.queued, ",
    turn_columns!(),
    " FROM open o, stored t"
);

/// Whether another turn of the session comes before a queued one.
const WAITS: &str = "
SELECT EXISTS (
    SELECT FROM turns o, turns t
    WHERE t.tenant_id = $1 AND t.owner_id = $2 AND t.id = $3 AND t.status = 'queued'
        AND o.tenant_id = $1 AND o.owner_id = $2 AND o.session_id = t.session_id AND o.id <> t.id
        AND (o.status IN ('running', 'awaiting_approval')
            OR (o.status = 'queued' AND (o.created_at, o.id) < (t.created_at, t.id)))
)";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, WAITS];

#[derive(sqlx::FromRow)]
struct StoredRow {
    of_owner: i64,
    of_session: i64,
    queued: i64,
    #[sqlx(flatten)]
    turn: TurnRow,
}

pub(super) async fn accept(
    tx: &mut PgConnection,
    wanted: &AcceptTurn,
) -> Result<Accepted, Abort<AcceptError>> {
    let owner = wanted.owner;
    let key = wanted.idempotency.as_ref();
    match idempotency::reserve(tx, owner, key, &[wanted.id.0], wanted.now).await? {
        Reservation::Made if !wanted.admit => {
            return Err(Abort::Decided(AcceptError::NotAdmitted));
        }
        Reservation::Made => {}
        Reservation::Mismatch => return Err(Abort::Decided(AcceptError::IdempotencyMismatch)),
        Reservation::Earlier(ids) => {
            for id in ids {
                if let Some(turn) = find(tx, owner, TurnId(id)).await? {
                    return replayed(tx, owner, turn).await;
                }
            }
            // Deleted or replaced since. A late repetition must not ask again what was taken back.
            return Err(Abort::Decided(AcceptError::SessionNotFound));
        }
    }
    let session = match &wanted.session {
        TurnSession::Existing(id) => sessions::lock(tx, owner, *id)
            .await?
            .ok_or(Abort::Decided(AcceptError::SessionNotFound))?,
        TurnSession::New(session) => sessions::insert(tx, owner, session).await?,
    };
    if let Some(replaced) = wanted.replaces {
        replace::replace(tx, owner, session.id, replaced).await?;
    }
    store(tx, wanted, &session).await
}

async fn replayed(
    tx: &mut PgConnection,
    owner: Owner,
    turn: Turn,
) -> Result<Accepted, Abort<AcceptError>> {
    let waits = if turn.status == TurnStatus::Queued {
        let (waits,) = owned_as(WAITS, owner).bind(turn.id.0).fetch_one(tx).await?;
        waits
    } else {
        false
    };
    Ok(Accepted {
        turn,
        started: None,
        waits,
        replayed: true,
    })
}

/// Stores first and counts in the same statement; a refusal rolls back. The owner's count is held, since turns of other sessions count too.
async fn store(
    tx: &mut PgConnection,
    wanted: &AcceptTurn,
    session: &Session,
) -> Result<Accepted, Abort<AcceptError>> {
    owners::hold_count(tx, wanted.owner.tenant, &[wanted.owner.id.0]).await?;
    let mut shared = shared::count(tx, wanted.owner.tenant, &[wanted]).await?;
    let used = tokens::used(tx, wanted.owner.tenant, &[wanted]).await?;
    let row: StoredRow = owned_as(INSERT, wanted.owner)
        .bind(wanted.id.0)
        .bind(session.id.0)
        .bind(&wanted.input)
        .bind(wanted.memory.unwrap_or(session.memory).as_str())
        .bind(wanted.now)
        .bind(Json(&wanted.options))
        .bind(wanted.key.map(|key| key.0))
        .fetch_one(&mut *tx)
        .await?;
    let waits = row.of_session > 0;
    let refusal = if waits && wanted.reject_if_busy {
        Some(AcceptError::SessionBusy)
    } else if waits && row.queued >= wanted.max_queued {
        Some(AcceptError::QueueFull)
    } else if row.of_owner >= wanted.max_open_per_owner {
        Some(AcceptError::TooManyTurns)
    } else {
        shared.take(wanted).and_then(|()| used.admit(wanted)).err()
    };
    if let Some(refusal) = refusal {
        return Err(Abort::Decided(refusal));
    }
    let turn: Turn = row.turn.try_into()?;
    let started = match wanted.start.filter(|_| !waits) {
        Some(start) => started(tx, wanted, session.id, start).await?,
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

/// Starts the turn that has just been stored; no other of the session is open.
async fn started(
    tx: &mut PgConnection,
    wanted: &AcceptTurn,
    session: SessionId,
    start: StartTurn,
) -> Result<Option<Started>, Abort<AcceptError>> {
    let start = start::Start {
        owner: wanted.owner,
        session,
        message: start.message,
        lease: start.lease,
        event_block: start.event_block,
        now: wanted.now,
    };
    start::start(tx, &start).await
}
