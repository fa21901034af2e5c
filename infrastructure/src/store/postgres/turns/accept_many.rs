//! Acceptance of many turns in one transaction.
//!
//! Only what is certain is done here: a turn that starts at once, in a session that is new or free, under a key that was never used. Whatever else a
//! turn may meet (a queue, a limit, an earlier one of the same key) is found out by accepting it alone; nothing was stored of it then.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::future::BoxFuture;
use serde::Serialize;
use sqlx::PgConnection;
use sqlx::types::Json;
use tidemark_application::ports::store::{IDEMPOTENCY_HOURS, StoreError};
use tidemark_application::ports::turns::{
    AcceptError, AcceptTurn, Accepted, StartTurn, Started, TurnKey, TurnSession,
};
use tidemark_domain::ids::{OwnerId, SessionId, TenantId, Timestamp};
use tidemark_domain::session::{MemoryMode, Message, Role, Session};
use tidemark_domain::turn::{Turn, TurnOptions};
use uuid::Uuid;

use super::super::owners;
use super::super::rows::{SessionRow, TurnRow, session_columns, turn_columns};
use super::super::together::{Asked, tell_failure};
use super::super::transaction::{Abort, Database};
use super::{accept, shared, tokens};

/// Locks those of some sessions that nobody else has locked.
const LOCK: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions s JOIN unnest($2::bigint[], $3::uuid[]) AS w (owner_id, id) ON w.owner_id = s.owner_id AND w.id = s.id
      WHERE s.tenant_id = $1 FOR UPDATE OF s SKIP LOCKED"
);

/// Which of these sessions have an open turn.
const BUSY: &str = "
SELECT w.id FROM unnest($2::bigint[], $3::uuid[]) AS w (owner_id, id)
WHERE EXISTS (
    SELECT FROM turns t
    WHERE t.tenant_id = $1 AND t.owner_id = w.owner_id AND t.session_id = w.id AND t.status IN ('queued', 'running', 'awaiting_approval')
)";

/// How many turns of these owners are open.
const OPEN: &str = "
SELECT w.owner_id, (
    SELECT count(*) FROM turns t
    WHERE t.tenant_id = $1 AND t.owner_id = w.owner_id AND t.status IN ('queued', 'running', 'awaiting_approval')
)
FROM unnest($2::bigint[]) AS w (owner_id)";

const CLEAR_KEYS: &str = "
DELETE FROM idempotency WHERE ctid = ANY (ARRAY(
    SELECT e.ctid FROM unnest($2::bigint[]) AS w (owner_id) CROSS JOIN LATERAL (
        SELECT i.ctid FROM idempotency i
        WHERE i.tenant_id = $1 AND i.owner_id = w.owner_id AND i.created_at <= $3
        ORDER BY i.created_at LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) e
))";

/// Reserves keys that were never used; which turns have theirs.
const RESERVE: &str = "
INSERT INTO idempotency (tenant_id, owner_id, operation, key, body_hash, resource_ids, created_at)
SELECT $1, n.owner_id, n.operation, n.key, decode(n.body_hash, 'hex'), ARRAY[n.turn_id], n.now
FROM jsonb_to_recordset($2) AS n (owner_id bigint, operation text, key text, body_hash text, turn_id uuid, now timestamptz)
ORDER BY n.owner_id, n.operation, n.key
ON CONFLICT (tenant_id, owner_id, operation, key) DO NOTHING
RETURNING resource_ids[1]";

/// Makes sessions that hold one message already.
const MAKE: &str = concat!(
    "INSERT INTO sessions AS s (tenant_id, owner_id, id, title, labels, channel, memory, message_count, created_at, updated_at)
     SELECT $1, n.owner_id, n.id, n.title, ARRAY(SELECT jsonb_array_elements_text(n.labels)), n.channel, n.memory, 1, n.now, n.updated_at
     FROM jsonb_to_recordset($2) AS n (owner_id bigint, id uuid, title text, labels jsonb, channel text, memory text, now timestamptz,
        updated_at timestamptz)
     RETURNING ",
    session_columns!()
);

/// Stores turns that run, and their questions. A turn is younger than those before it, whatever clock these were accepted by.
const START: &str = concat!(
    "WITH n AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset($2) AS r (owner_id bigint, id uuid, session_id uuid, input text, memory text, options jsonb,
            lease bigint, event_block bigint, message_id uuid, learnable boolean, seq bigint, made boolean, key_id uuid,
            now timestamptz)
     ), stored AS (
        INSERT INTO turns (tenant_id, owner_id, id, session_id, status, input, memory, options, fence, lease_until, events_reserved,
            first_seq, created_at, started_at, key_id)
        SELECT $1, n.owner_id, n.id, n.session_id, 'running', n.input, n.memory, n.options, 1,
            clock_timestamp() + n.lease * interval '1 microsecond', n.event_block, n.seq,
            greatest(n.now, (
                SELECT max(b.created_at) + interval '1 microsecond' FROM turns b
                WHERE b.tenant_id = $1 AND b.owner_id = n.owner_id AND b.session_id = n.session_id
            )), n.now, n.key_id
        FROM n
        RETURNING *
     ), grown AS (
        UPDATE sessions s SET message_count = n.seq, updated_at = n.now
        FROM n WHERE NOT n.made AND s.tenant_id = $1 AND s.owner_id = n.owner_id AND s.id = n.session_id
     ), asked AS (
        INSERT INTO messages (tenant_id, owner_id, id, session_id, turn_id, seq, role, content, tool_calls, partial, learnable, created_at)
        SELECT $1, n.owner_id, n.message_id, n.session_id, n.id, n.seq, 'user', n.input, '[]', false, n.learnable, n.now
        FROM n
     )
     SELECT ",
    turn_columns!(),
    " FROM stored t"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[LOCK, BUSY, OPEN, CLEAR_KEYS, RESERVE, MAKE, START];

#[derive(Serialize)]
struct NewKey<'a> {
    owner_id: i64,
    operation: &'a str,
    key: &'a str,
    body_hash: String,
    turn_id: Uuid,
    now: Timestamp,
}

#[derive(Serialize)]
struct NewRow<'a> {
    owner_id: i64,
    id: Uuid,
    title: Option<&'a str>,
    labels: &'a [String],
    channel: &'a str,
    memory: &'static str,
    now: Timestamp,
    updated_at: Timestamp,
}

#[derive(Serialize)]
struct NewTurn<'a> {
    owner_id: i64,
    id: Uuid,
    session_id: Uuid,
    input: &'a str,
    memory: &'static str,
    options: &'a TurnOptions,
    lease: i64,
    event_block: i64,
    message_id: Uuid,
    learnable: bool,
    seq: i64,
    /// Its session was made with it, and counts the question already.
    made: bool,
    key_id: Option<Uuid>,
    now: Timestamp,
}

/// Accepts turns of one tenant: together what can be, the others each alone.
pub(in super::super) fn accept_all(
    database: &Database,
    tenant: TenantId,
    asked: Vec<Asked<AcceptTurn, Result<Accepted, AcceptError>>>,
) -> BoxFuture<'static, ()> {
    let database = database.clone();
    Box::pin(async move {
        let simple = simple(asked.iter().map(|asked| &asked.item));
        let (mut together, mut alone) = (Vec::new(), Vec::new());
        for (asked, simple) in asked.into_iter().zip(simple) {
            if simple {
                together.push(asked);
            } else {
                alone.push(asked);
            }
        }
        let items: Vec<AcceptTurn> = together.iter().map(|asked| asked.item.clone()).collect();
        let mut outcomes = Vec::new();
        if !items.is_empty() {
            let accepted = database.write_many(tenant, items, move |tx, items| {
                Box::pin(accept(tx, tenant, items))
            });
            match accepted.await {
                Ok(accepted) => outcomes = accepted,
                Err(error) => tell_failure(&mut together, error),
            }
        }
        outcomes.resize_with(together.len(), || None);
        for (asked, outcome) in together.into_iter().zip(outcomes) {
            match outcome {
                Some(accepted) => {
                    let _ = asked.answer.send(Ok(accepted));
                }
                None => alone.push(asked),
            }
        }
        let each = alone.into_iter().map(|Asked { item, answer }| {
            let database = database.clone();
            async move {
                // Near a limit of the tenant's they wait for each other.
                let _may_wait = if shared::is_unlimited(&[&item]) {
                    None
                } else {
                    database.of_a_tenant().await
                };
                let accepted =
                    database.write(tenant, item, |tx, turn| Box::pin(accept::accept(tx, turn)));
                let _ = answer.send(accepted.await);
            }
        });
        // They may wait for others, and nobody is to wait for them.
        tokio::spawn(futures::future::join_all(each));
    })
}

/// Which of these turns may be accepted with others, as far as can be told without looking: of one session or key only the first.
fn simple<'a>(turns: impl Iterator<Item = &'a AcceptTurn>) -> Vec<bool> {
    let (mut sessions, mut keys) = (BTreeSet::new(), BTreeSet::new());
    turns
        .map(|turn| {
            let session = match &turn.session {
                TurnSession::Existing(id) => *id,
                TurnSession::New(session) => session.id,
            };
            let owner = turn.owner.id;
            let key = turn.idempotency.as_ref();
            let key = key.map(|key| (owner, key.operation.as_str(), key.key.as_str()));
            turn.admit
                && turn.start.is_some()
                && turn.replaces.is_none()
                && sessions.insert((owner, session))
                && key.is_none_or(|key| keys.insert(key))
        })
        .collect()
}

/// Accepts and starts turns; none in the place of one that is to be accepted alone.
async fn accept(
    tx: &mut PgConnection,
    tenant: TenantId,
    wanted: &[AcceptTurn],
) -> Result<Vec<Option<Accepted>>, Abort<StoreError>> {
    let mut sessions = free_sessions(tx, tenant, wanted).await?;
    let mut rooms = rooms(tx, tenant, wanted).await?;
    let all: Vec<&AcceptTurn> = wanted.iter().collect();
    let Some(mut shared) = shared::try_count(tx, tenant, &all).await? else {
        return Ok(vec![None; wanted.len()]);
    };
    let used = tokens::used(tx, tenant, &all).await?;
    let mut fit: Vec<&AcceptTurn> = Vec::new();
    for turn in wanted {
        let is_free = match &turn.session {
            TurnSession::Existing(id) => sessions.contains_key(id),
            TurnSession::New(_) => true,
        };
        let open = rooms.get_mut(&turn.owner.id).filter(|_| is_free);
        if let Some(open) = open.filter(|open| **open < turn.max_open_per_owner)
            && used.admit(turn).is_ok()
            && shared.take(turn).is_ok()
        {
            *open += 1;
            fit.push(turn);
        }
    }
    let fit = reserved(tx, tenant, fit).await?;
    sessions.extend(made(tx, tenant, &fit).await?);
    let mut accepted = started(tx, tenant, &fit, sessions).await?;
    Ok(wanted
        .iter()
        .map(|turn| accepted.remove(&turn.id.0))
        .collect())
}

/// The sessions that are there, are nobody else's at the moment and have no open turn.
async fn free_sessions(
    tx: &mut PgConnection,
    tenant: TenantId,
    wanted: &[AcceptTurn],
) -> Result<HashMap<SessionId, Session>, sqlx::Error> {
    let existing = wanted.iter().filter_map(|turn| match &turn.session {
        TurnSession::Existing(id) => Some((turn.owner.id.0, id.0)),
        TurnSession::New(_) => None,
    });
    let (owners, ids): (Vec<i64>, Vec<Uuid>) = existing.unzip();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<SessionRow> = sqlx::query_as(LOCK)
        .bind(tenant.0)
        .bind(&owners)
        .bind(&ids)
        .fetch_all(&mut *tx)
        .await?;
    // A statement of its own: it sees what was stored by those who had the locks before.
    let busy: Vec<(Uuid,)> = sqlx::query_as(BUSY)
        .bind(tenant.0)
        .bind(owners)
        .bind(ids)
        .fetch_all(tx)
        .await?;
    let mut sessions = HashMap::new();
    for row in rows {
        let session = Session::try_from(row)?;
        sessions.insert(session.id, session);
    }
    for (id,) in busy {
        sessions.remove(&SessionId(id));
    }
    Ok(sessions)
}

/// How many turns of each owner are open, as far as nobody else is accepting one of theirs. Then nobody does until the transaction ends.
async fn rooms(
    tx: &mut PgConnection,
    tenant: TenantId,
    wanted: &[AcceptTurn],
) -> Result<BTreeMap<OwnerId, i64>, sqlx::Error> {
    let owners: BTreeSet<i64> = wanted.iter().map(|turn| turn.owner.id.0).collect();
    let owners: Vec<i64> = owners.into_iter().collect();
    let owners = owners::try_hold_count(tx, tenant, &owners).await?;
    let rows: Vec<(i64, i64)> = sqlx::query_as(OPEN)
        .bind(tenant.0)
        .bind(owners)
        .fetch_all(tx)
        .await?;
    Ok(rows.into_iter().map(|(id, n)| (OwnerId(id), n)).collect())
}

/// Those without a key, and those that have theirs now.
async fn reserved<'a>(
    tx: &mut PgConnection,
    tenant: TenantId,
    fit: Vec<&'a AcceptTurn>,
) -> Result<Vec<&'a AcceptTurn>, sqlx::Error> {
    let keyed = fit.iter().filter_map(|turn| {
        let key = turn.idempotency.as_ref()?;
        Some(NewKey {
            owner_id: turn.owner.id.0,
            operation: &key.operation,
            key: &key.key,
            body_hash: hex(&key.body_hash),
            turn_id: turn.id.0,
            now: turn.now,
        })
    });
    let keyed: Vec<NewKey<'_>> = keyed.collect();
    let Some(now) = keyed.iter().map(|key| key.now).min() else {
        return Ok(fit);
    };
    let owners: BTreeSet<i64> = keyed.iter().map(|key| key.owner_id).collect();
    sqlx::query(CLEAR_KEYS)
        .bind(tenant.0)
        .bind(owners.into_iter().collect::<Vec<i64>>())
        .bind(now - chrono::TimeDelta::hours(IDEMPOTENCY_HOURS))
        .execute(&mut *tx)
        .await?;
    let made: Vec<(Uuid,)> = sqlx::query_as(RESERVE)
        .bind(tenant.0)
        .bind(Json(keyed))
        .fetch_all(tx)
        .await?;
    let made: BTreeSet<Uuid> = made.into_iter().map(|(id,)| id).collect();
    let has_key = |turn: &&AcceptTurn| turn.idempotency.is_none() || made.contains(&turn.id.0);
    Ok(fit.into_iter().filter(has_key).collect())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

async fn made(
    tx: &mut PgConnection,
    tenant: TenantId,
    fit: &[&AcceptTurn],
) -> Result<Vec<(SessionId, Session)>, sqlx::Error> {
    let new = fit.iter().filter_map(|turn| match &turn.session {
        TurnSession::New(session) => Some(NewRow {
            owner_id: turn.owner.id.0,
            id: session.id.0,
            title: session.title.as_deref(),
            labels: &session.labels,
            channel: &session.channel,
            memory: session.memory.as_str(),
            now: session.now,
            updated_at: turn.now,
        }),
        TurnSession::Existing(_) => None,
    });
    let new: Vec<NewRow<'_>> = new.collect();
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<SessionRow> = sqlx::query_as(MAKE)
        .bind(tenant.0)
        .bind(Json(new))
        .fetch_all(tx)
        .await?;
    rows.into_iter()
        .map(|row| {
            let mut session = Session::try_from(row)?;
            // The message that it was made with is yet to be stored.
            session.message_count = 0;
            Ok((session.id, session))
        })
        .collect()
}

/// A turn, and what it is started with.
struct Starting<'a> {
    turn: &'a AcceptTurn,
    start: StartTurn,
    session: Session,
    memory: MemoryMode,
    seq: i64,
}

async fn started(
    tx: &mut PgConnection,
    tenant: TenantId,
    fit: &[&AcceptTurn],
    mut sessions: HashMap<SessionId, Session>,
) -> Result<HashMap<Uuid, Accepted>, sqlx::Error> {
    let starting = fit.iter().filter_map(|turn| {
        let id = match &turn.session {
            TurnSession::Existing(id) => *id,
            TurnSession::New(session) => session.id,
        };
        let session = sessions.remove(&id)?;
        Some(Starting {
            turn,
            start: turn.start?,
            memory: turn.memory.unwrap_or(session.memory),
            seq: session.message_count + 1,
            session,
        })
    });
    let starting: Vec<Starting<'_>> = starting.collect();
    if starting.is_empty() {
        return Ok(HashMap::new());
    }
    let new = starting.iter().map(|starting| NewTurn {
        owner_id: starting.turn.owner.id.0,
        id: starting.turn.id.0,
        session_id: starting.session.id.0,
        input: &starting.turn.input,
        memory: starting.memory.as_str(),
        options: &starting.turn.options,
        lease: starting.start.lease.as_micros() as i64,
        event_block: starting.start.event_block,
        message_id: starting.start.message.0,
        learnable: starting.memory.learns(),
        seq: starting.seq,
        made: matches!(starting.turn.session, TurnSession::New(_)),
        key_id: starting.turn.key.map(|key| key.0),
        now: starting.turn.now,
    });
    let rows: Vec<TurnRow> = sqlx::query_as(START)
        .bind(tenant.0)
        .bind(Json(new.collect::<Vec<_>>()))
        .fetch_all(tx)
        .await?;
    let turns: Result<HashMap<Uuid, Turn>, sqlx::Error> = rows
        .into_iter()
        .map(|row| Turn::try_from(row).map(|turn| (turn.id.0, turn)))
        .collect();
    let mut turns = turns?;
    let accepted = starting.into_iter().map(|starting| {
        let id = starting.turn.id.0;
        let turn = turns.remove(&id).ok_or(sqlx::Error::RowNotFound)?;
        Ok((id, accepted(starting, turn)))
    });
    accepted.collect()
}

fn accepted(starting: Starting<'_>, turn: Turn) -> Accepted {
    let Starting {
        turn: wanted,
        start,
        mut session,
        memory,
        seq,
    } = starting;
    session.message_count = seq;
    session.updated_at = wanted.now;
    session.active_turn = Some(turn.id);
    let message = Message {
        id: start.message,
        session_id: session.id,
        turn_id: Some(turn.id),
        seq,
        role: Role::User,
        content: wanted.input.clone(),
        name: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        partial: false,
        learnable: memory.learns(),
        created_at: wanted.now,
    };
    let key = TurnKey {
        owner: wanted.owner,
        session_id: session.id,
        turn_id: turn.id,
        fence: turn.fence,
    };
    Accepted {
        turn: turn.clone(),
        started: Some(Box::new(Started {
            key,
            turn,
            session,
            message,
        })),
        waits: false,
        replayed: false,
    }
}
