//! Turns: from acceptance to their end, each step one transaction.

mod accept;
mod accept_many;
mod cancel;
mod commit_many;
mod end;
mod replace;
mod shared;
mod start;
mod tokens;
mod write;

use std::time::Duration;

use async_trait::async_trait;
use sqlx::PgConnection;
use tidemark_application::ports::store::StoreResult;
use tidemark_application::ports::turns::{
    AcceptError, AcceptTurn, Accepted, CancelOutcome, CloseTurn, CommitTurn, Committed, NewMessage,
    Renewed, Started, TurnKey, TurnRepository, TurnWriteError,
};
use tidemark_domain::ids::{MessageId, Owner, OwnerId, SessionId, TenantId, Timestamp, TurnId};
use tidemark_domain::session::Message;
use tidemark_domain::turn::Turn;
use uuid::Uuid;

pub(super) use self::accept_many::accept_all;
pub(super) use self::commit_many::{Commit, commit_all};
use super::PostgresStore;
use super::rows::{TurnRow, owned_as, turn_columns};

const FIND: &str = concat!(
    "SELECT ",
    turn_columns!(),
    " FROM turns t WHERE t.tenant_id = $1 AND t.owner_id = $2 AND t.id = $3"
);

const IS_RUNNING: &str = "
SELECT EXISTS (
    SELECT FROM turns WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3 AND status IN ('running', 'awaiting_approval')
)";

/// Whether a turn of the session waits. Whoever has locked the session sees all that were accepted before.
const IS_WAITING: &str = "
SELECT EXISTS (
    SELECT FROM turns WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3 AND status = 'queued'
)";

const OPEN: &str = "
SELECT t.id FROM turns t
WHERE t.tenant_id = $1 AND t.owner_id = $2 AND ($3::uuid IS NULL OR t.session_id = $3)
    AND t.status IN ('queued', 'running', 'awaiting_approval')
ORDER BY t.created_at DESC, t.id DESC";

const LAPSED: &str =
    "SELECT tenant_id, owner_id, session_id, turn_id, fence FROM tidemark_lapsed_turns($1)";

const WAITING: &str = "SELECT tenant_id, owner_id, session_id FROM tidemark_waiting_sessions($1)";

#[cfg(test)]
pub(super) fn statements() -> Vec<&'static str> {
    [
        &[FIND, IS_RUNNING, IS_WAITING, OPEN, LAPSED, WAITING][..],
        accept::STATEMENTS,
        accept_many::STATEMENTS,
        cancel::STATEMENTS,
        commit_many::STATEMENTS,
        end::STATEMENTS,
        replace::STATEMENTS,
        shared::STATEMENTS,
        start::STATEMENTS,
        tokens::STATEMENTS,
        write::STATEMENTS,
    ]
    .concat()
}

async fn find(
    tx: &mut PgConnection,
    owner: Owner,
    id: TurnId,
) -> Result<Option<Turn>, sqlx::Error> {
    let row: Option<TurnRow> = owned_as(FIND, owner).bind(id.0).fetch_optional(tx).await?;
    row.map(Turn::try_from).transpose()
}

/// Whether a turn of the session runs.
pub(super) async fn is_running(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
) -> Result<bool, sqlx::Error> {
    let (running,) = owned_as(IS_RUNNING, owner)
        .bind(session.0)
        .fetch_one(tx)
        .await?;
    Ok(running)
}

/// Whether a turn of the session waits.
async fn is_waiting(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
) -> Result<bool, sqlx::Error> {
    let (waiting,) = owned_as(IS_WAITING, owner)
        .bind(session.0)
        .fetch_one(tx)
        .await?;
    Ok(waiting)
}

fn owner(tenant: Uuid, id: i64) -> Owner {
    Owner {
        tenant: TenantId(tenant),
        id: OwnerId(id),
    }
}

async fn lapsed(tx: &mut PgConnection, limit: u32) -> Result<Vec<TurnKey>, sqlx::Error> {
    let rows: Vec<(Uuid, i64, Uuid, Uuid, i64)> = sqlx::query_as(LAPSED)
        .bind(i64::from(limit))
        .fetch_all(tx)
        .await?;
    Ok(rows
        .into_iter()
        .map(|(tenant, id, session, turn, fence)| TurnKey {
            owner: owner(tenant, id),
            session_id: SessionId(session),
            turn_id: TurnId(turn),
            fence,
        })
        .collect())
}

async fn waiting(
    tx: &mut PgConnection,
    limit: u32,
) -> Result<Vec<(Owner, SessionId)>, sqlx::Error> {
    let rows: Vec<(Uuid, i64, Uuid)> = sqlx::query_as(WAITING)
        .bind(i64::from(limit))
        .fetch_all(tx)
        .await?;
    Ok(rows
        .into_iter()
        .map(|(tenant, id, session)| (owner(tenant, id), SessionId(session)))
        .collect())
}

#[async_trait]
impl TurnRepository for PostgresStore {
    async fn accept_turn(&self, turn: AcceptTurn) -> Result<Accepted, AcceptError> {
        self.acceptances.ask(turn.owner.tenant, turn).await?
    }

    async fn start_turn(
        &self,
        owner: Owner,
        session: SessionId,
        message: MessageId,
        lease: Duration,
        event_block: i64,
        now: Timestamp,
    ) -> StoreResult<Option<Started>> {
        let start = start::Start {
            owner,
            session,
            message,
            lease,
            event_block,
            now,
        };
        self.database
            .write(owner.tenant, start, |tx, start| {
                Box::pin(start::start(tx, start))
            })
            .await
    }

    async fn renew_turn(&self, key: TurnKey, lease: Duration) -> Result<Renewed, TurnWriteError> {
        self.database
            .write(key.owner.tenant, (), move |tx, ()| {
                Box::pin(write::renew(tx, key, lease))
            })
            .await
    }

    async fn reserve_events(&self, key: TurnKey, up_to: i64) -> Result<(), TurnWriteError> {
        self.database
            .write(key.owner.tenant, (), move |tx, ()| {
                Box::pin(write::reserve_events(tx, key, up_to))
            })
            .await
    }

    async fn append_step(
        &self,
        key: TurnKey,
        messages: Vec<NewMessage>,
        now: Timestamp,
    ) -> Result<Vec<Message>, TurnWriteError> {
        self.database
            .write(key.owner.tenant, messages, move |tx, messages| {
                Box::pin(write::append_step(tx, key, messages, now))
            })
            .await
    }

    async fn commit_turn(&self, key: TurnKey, turn: CommitTurn) -> Result<Turn, TurnWriteError> {
        Ok(self.commit_and_look(key, turn).await?.turn)
    }

    async fn commit_and_look(
        &self,
        key: TurnKey,
        turn: CommitTurn,
    ) -> Result<Committed, TurnWriteError> {
        self.commits
            .ask(key.owner.tenant, Commit { key, turn })
            .await?
    }

    async fn close_turn(&self, key: TurnKey, close: CloseTurn) -> Result<Turn, TurnWriteError> {
        self.database
            .write(key.owner.tenant, close, move |tx, close| {
                Box::pin(end::close(tx, key, close))
            })
            .await
    }

    async fn turn(&self, owner: Owner, id: TurnId) -> StoreResult<Option<Turn>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(find(tx, owner, id).await?) })
            })
            .await
    }

    async fn request_cancel(
        &self,
        owner: Owner,
        id: TurnId,
        now: Timestamp,
    ) -> StoreResult<CancelOutcome> {
        self.database
            .write(owner.tenant, (), move |tx, ()| {
                Box::pin(cancel::request(tx, owner, id, now))
            })
            .await
    }

    async fn open_turns(
        &self,
        owner: Owner,
        session: Option<SessionId>,
    ) -> StoreResult<Vec<TurnId>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move {
                    let rows: Vec<(Uuid,)> = owned_as(OPEN, owner)
                        .bind(session.map(|id| id.0))
                        .fetch_all(tx)
                        .await?;
                    Ok(rows.into_iter().map(|(id,)| TurnId(id)).collect())
                })
            })
            .await
    }

    async fn lapsed_turns(&self, limit: u32) -> StoreResult<Vec<TurnKey>> {
        self.database
            .before_tenant((), move |tx, ()| {
                Box::pin(async move { Ok(lapsed(tx, limit).await?) })
            })
            .await
    }

    async fn waiting_sessions(&self, limit: u32) -> StoreResult<Vec<(Owner, SessionId)>> {
        self.database
            .before_tenant((), move |tx, ()| {
                Box::pin(async move { Ok(waiting(tx, limit).await?) })
            })
            .await
    }
}
