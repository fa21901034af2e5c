//! Turns: each step is one transaction, guarded by the fence.

mod accept;
mod cancel;
mod close;
mod commit;
mod read;
mod replace;
mod start;
mod tokens;
mod write;

use std::time::Duration;

use async_trait::async_trait;
use sqlx::SqliteConnection;
use tidemark_application::ports::store::StoreResult;
use tidemark_application::ports::turns::{
    AcceptError, AcceptTurn, Accepted, CancelOutcome, CloseTurn, CommitTurn, Committed, NewMessage,
    Renewed, Started, TurnKey, TurnRepository, TurnWriteError,
};
use tidemark_domain::ids::{MessageId, Owner, SessionId, Timestamp, TurnId};
use tidemark_domain::session::Message;
use tidemark_domain::turn::Turn;

use super::SqliteStore;
use super::statements::statements;

macro_rules! turn_columns {
    () => {
        "id, session_id, status, input, memory, options, fence, events_reserved, terminal_seq, text, message_id, finish_reason, \
         usage, recalled, problem, cancel_requested, created_at, started_at, ended_at"
    };
}
pub(super) use turn_columns;

/// The parameters 1–5 name a turn that runs under this fence.
macro_rules! fenced {
    () => {
        "tenant_id = ?1 AND owner_id = ?2 AND id = ?3 AND session_id = ?4 AND fence = ?5 \
         AND status IN ('running', 'awaiting_approval')"
    };
}
use fenced;

statements! {
    VOID_LEASES = "UPDATE turns SET lease_until = 0 WHERE status IN ('running', 'awaiting_approval')";
}

/// Every statement on turns.
#[cfg(test)]
pub(super) fn all_statements() -> Vec<&'static str> {
    [
        STATEMENTS,
        accept::STATEMENTS,
        cancel::STATEMENTS,
        close::STATEMENTS,
        commit::STATEMENTS,
        read::STATEMENTS,
        replace::STATEMENTS,
        start::STATEMENTS,
        tokens::STATEMENTS,
        write::STATEMENTS,
    ]
    .concat()
}

/// No process is left that could hold a lease.
pub(super) async fn void_leases(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query(VOID_LEASES).execute(connection).await?;
    Ok(())
}

#[async_trait]
impl TurnRepository for SqliteStore {
    async fn accept_turn(&self, turn: AcceptTurn) -> Result<Accepted, AcceptError> {
        self.writer
            .write(move |c| Box::pin(accept::accept(c, turn)))
            .await
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
        self.writer
            .write(move |c| {
                Box::pin(start::start(
                    c,
                    owner,
                    session,
                    message,
                    lease,
                    event_block,
                    now,
                ))
            })
            .await
    }

    async fn renew_turn(&self, key: TurnKey, lease: Duration) -> Result<Renewed, TurnWriteError> {
        self.writer
            .write(move |c| Box::pin(write::renew(c, key, lease)))
            .await
    }

    async fn reserve_events(&self, key: TurnKey, up_to: i64) -> Result<(), TurnWriteError> {
        self.writer
            .write(move |c| Box::pin(write::reserve(c, key, up_to)))
            .await
    }

    async fn append_step(
        &self,
        key: TurnKey,
        messages: Vec<NewMessage>,
        now: Timestamp,
    ) -> Result<Vec<Message>, TurnWriteError> {
        self.writer
            .write(move |c| Box::pin(write::append(c, key, messages, now)))
            .await
    }

    async fn commit_turn(&self, key: TurnKey, commit: CommitTurn) -> Result<Turn, TurnWriteError> {
        Ok(self.commit_and_look(key, commit).await?.turn)
    }

    async fn commit_and_look(
        &self,
        key: TurnKey,
        commit: CommitTurn,
    ) -> Result<Committed, TurnWriteError> {
        self.writer
            .write(move |c| Box::pin(commit::commit(c, key, commit)))
            .await
    }

    async fn close_turn(&self, key: TurnKey, close: CloseTurn) -> Result<Turn, TurnWriteError> {
        self.writer
            .write(move |c| Box::pin(close::close(c, key, close)))
            .await
    }

    async fn turn(&self, owner: Owner, id: TurnId) -> StoreResult<Option<Turn>> {
        read::find(&self.readers, owner, id).await
    }

    async fn request_cancel(
        &self,
        owner: Owner,
        id: TurnId,
        now: Timestamp,
    ) -> StoreResult<CancelOutcome> {
        self.writer
            .write(move |c| Box::pin(cancel::request(c, owner, id, now)))
            .await
    }

    async fn open_turns(
        &self,
        owner: Owner,
        session: Option<SessionId>,
    ) -> StoreResult<Vec<TurnId>> {
        read::open(&self.readers, owner, session).await
    }

    async fn lapsed_turns(&self, limit: u32) -> StoreResult<Vec<TurnKey>> {
        read::lapsed(&self.readers, limit).await
    }

    async fn waiting_sessions(&self, limit: u32) -> StoreResult<Vec<(Owner, SessionId)>> {
        read::waiting(&self.readers, limit).await
    }
}
