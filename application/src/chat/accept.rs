//! Accepting a turn: stored first, then run in a task of its own. A client that leaves changes nothing.

use tidemark_domain::ids::{KeyId, Owner, SessionId, TurnId};
use tidemark_domain::session::MemoryMode;
use tidemark_domain::turn::{TurnOptions, TurnStatus};

use super::service::Chat;
use crate::ports::sessions::NewSession;
use crate::ports::store::Idempotency;
use crate::ports::turns::{AcceptError, AcceptTurn, Accepted, StartTurn, TurnSession};

/// What somebody says (A19).
#[derive(Clone, Debug)]
pub struct Inbound {
    /// Who.
    pub owner: Owner,
    /// The API key that it is asked for with; none where none is needed.
    pub key: Option<KeyId>,
    /// In which session; a new one when none is named.
    pub session: Option<SessionId>,
    /// The entry it came through; for a new session.
    pub channel: String,
    /// What.
    pub message: String,
    /// Whether memory is shown and learned; the session's own mode when not said.
    pub memory: Option<MemoryMode>,
    /// What the request sets for this turn alone.
    pub options: TurnOptions,
    /// Refuse instead of waiting.
    pub reject_if_busy: bool,
    /// Retry, or edit and resend.
    pub replaces: Option<TurnId>,
    /// Makes it repeatable.
    pub idempotency: Option<Idempotency>,
    /// Whoever asks may do nothing new at the moment: only a turn that an earlier request with the same key has begun is given.
    pub only_known: bool,
}

/// The turn was not accepted; nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum InboundError {
    /// The server is going down.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// It would be a new turn, and only one that is known was asked for.
    #[error("there is no turn of that key yet")]
    NotKnown,
    /// Too many sessions have open turns here.
    #[error("too many turns are open")]
    Overloaded,
    /// The store refused or failed.
    #[error(transparent)]
    Accept(#[from] AcceptError),
}

impl Chat {
    /// Accepts a turn. It runs from here on, whoever is listening.
    ///
    /// # Errors
    /// Why it was not accepted.
    pub async fn accept(&self, inbound: Inbound) -> Result<Accepted, InboundError> {
        let parts = &self.parts;
        let now = parts.clock.now();
        let owner = inbound.owner;
        let session = match inbound.session {
            Some(id) => TurnSession::Existing(id),
            None => TurnSession::New(NewSession {
                id: parts.ids.session(),
                title: None,
                labels: Vec::new(),
                channel: inbound.channel,
                memory: MemoryMode::default(),
                now,
            }),
        };
        let id = parts.ids.turn();
        let only_known = inbound.only_known;
        let refused = |error| match error {
            AcceptError::NotAdmitted if only_known => InboundError::NotKnown,
            error => self.refused(error),
        };
        let session_id = match &session {
            TurnSession::Existing(id) => *id,
            TurnSession::New(new) => new.id,
        };
        let mut turn = AcceptTurn {
            owner,
            id,
            session,
            input: inbound.message,
            memory: inbound.memory,
            options: inbound.options,
            reject_if_busy: inbound.reject_if_busy,
            replaces: inbound.replaces,
            admit: !inbound.only_known && !self.is_closing() && !self.is_full(),
            max_queued: parts.settings.max_queued,
            max_open_per_owner: parts.settings.max_open_per_owner,
            key: inbound.key,
            max_open_shared: parts.settings.max_open_shared,
            max_tokens: parts.settings.max_tokens,
            idempotency: inbound.idempotency,
            start: None,
            now,
        };
        let lane = if turn.admit {
            self.take_lane(owner, session_id)
        } else {
            None
        };
        let Some(lane) = lane else {
            self.expect(owner, session_id, id);
            let accepted = parts.store.accept_turn(turn).await;
            let accepted = accepted.map_err(refused)?;
            if accepted.turn.status == TurnStatus::Queued {
                self.open_log(&accepted).await;
                self.kick_for(owner, accepted.turn.session_id, accepted.turn.id);
            }
            return Ok(accepted);
        };
        turn.start = Some(StartTurn {
            message: parts.ids.message(),
            lease: parts.settings.lease,
            event_block: parts.settings.event_block,
        });
        let accepted = self.accept_and_run(lane, turn).await;
        accepted.map_err(refused)
    }

    /// Why nothing new is admitted is known here alone.
    fn refused(&self, error: AcceptError) -> InboundError {
        match error {
            AcceptError::NotAdmitted if self.is_closing() => InboundError::ShuttingDown,
            AcceptError::NotAdmitted => InboundError::Overloaded,
            error => error.into(),
        }
    }
}
