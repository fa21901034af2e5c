//! Turns: the commit boundary. Everything a turn writes goes through here, each step one transaction guarded by the fence.

use std::time::Duration;

use async_trait::async_trait;
use tidemark_domain::event::RecalledMemory;
use tidemark_domain::ids::{KeyId, MessageId, Owner, SessionId, Timestamp, TurnId};
use tidemark_domain::session::{MemoryMode, Message, Role, Session};
use tidemark_domain::tool::ToolCall;
use tidemark_domain::turn::{FinishReason, Turn, TurnOptions, TurnProblem, TurnStatus, Usage};

use super::jobs::NewJob;
use super::sessions::NewSession;
use super::store::{Idempotency, StoreError, StoreResult};

/// The session that a turn is accepted into.
#[derive(Clone, Debug)]
pub enum TurnSession {
    /// One that is there.
    Existing(SessionId),
    /// One that is made in the same transaction.
    New(NewSession),
}

/// A turn to be accepted.
#[derive(Clone, Debug)]
pub struct AcceptTurn {
    /// Whose it is.
    pub owner: Owner,
    /// Its id.
    pub id: TurnId,
    /// Where it belongs.
    pub session: TurnSession,
    /// What the user says.
    pub input: String,
    /// The mode; the session's own when none is named.
    pub memory: Option<MemoryMode>,
    /// What the request sets for this turn alone.
    pub options: TurnOptions,
    /// Refuse instead of waiting when another turn of the session is open.
    pub reject_if_busy: bool,
    /// The turn to be replaced: it and what came after it is removed from the session, with what was learned from it alone.
    pub replaces: Option<TurnId>,
    /// Whether a new turn may be stored. An earlier one of the same key is returned all the same: a repeated request is never refused
    /// for load.
    pub admit: bool,
    /// How many turns of a session may wait.
    pub max_queued: i64,
    /// How many turns of an owner may be open (queued or running).
    pub max_open_per_owner: i64,
    /// The API key that it is asked for with; none where none is needed.
    pub key: Option<KeyId>,
    /// How many turns may be open of those with whom the owner shares the installation.
    pub max_open_shared: SharedLimits,
    /// How many tokens may have been used before it on its day.
    pub max_tokens: TokenLimits,
    /// Makes it repeatable.
    pub idempotency: Option<Idempotency>,
    /// Starts it in the same transaction, unless it has to wait or had been accepted before.
    pub start: Option<StartTurn>,
    /// When.
    pub now: Timestamp,
}

/// How many turns of a tenant, and of those asked for with one key, may be open in all processes; none for any number. With none of both
/// nothing is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedLimits {
    /// Of the tenant.
    pub tenant: Option<i64>,
    /// Of the key.
    pub key: Option<i64>,
}

/// Whose use is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// All of a tenant together.
    Tenant,
    /// Whatever is asked for with one API key.
    Key,
    /// One user.
    User,
}

impl Whose {
    /// As it is named to whoever is limited.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Key => "key",
            Self::User => "user",
        }
    }
}

/// How many tokens the turns of a tenant, of a key and of a user may use in a day of UTC; none for any number. With none of all nothing is counted. A
/// turn is counted when it ends, so those that run at the same time may go beyond the limit together; none is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenLimits {
    /// Of the tenant.
    pub tenant: Option<i64>,
    /// Of the key.
    pub key: Option<i64>,
    /// Of the user.
    pub user: Option<i64>,
}

/// How many tokens were used on a day; of those who are not limited, nothing need be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokensUsed {
    /// By the tenant.
    pub tenant: i64,
    /// With the key.
    pub key: i64,
    /// By the user.
    pub user: i64,
}

impl TokenLimits {
    /// Whether there is one.
    pub fn is_some(&self) -> bool {
        *self != Self::default()
    }

    /// Whether a turn may be accepted at that time, after what was used on its day.
    ///
    /// # Errors
    /// [`AcceptError::TokensUsedUp`] when as many were used as may be, or more: by the user, the key or the tenant, in this order.
    pub fn admit(&self, used: TokensUsed, now: Timestamp) -> Result<(), AcceptError> {
        let all = [
            (Whose::User, used.user, self.user),
            (Whose::Key, used.key, self.key),
            (Whose::Tenant, used.tenant, self.tenant),
        ];
        let used_up =
            |(_, used, most): &(Whose, i64, Option<i64>)| most.is_some_and(|most| *used >= most);
        match all.into_iter().find(used_up) {
            None => Ok(()),
            Some((whose, ..)) => Err(AcceptError::TokensUsedUp {
                whose,
                wait: until_next_day(now),
            }),
        }
    }
}

/// From a time to the next day of UTC.
fn until_next_day(now: Timestamp) -> Duration {
    const DAY_MICROS: i64 = 86_400_000_000;
    let gone = now.timestamp_micros().rem_euclid(DAY_MICROS);
    Duration::from_micros((DAY_MICROS - gone) as u64)
}

/// What a turn is started with.
#[derive(Clone, Copy, Debug)]
pub struct StartTurn {
    /// The id of the user's message.
    pub message: MessageId,
    /// How long the runner is trusted without a word.
    pub lease: Duration,
    /// How many event numbers are reserved.
    pub event_block: i64,
}

/// A turn that is stored.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The turn, as it is now.
    pub turn: Turn,
    /// It was started in the same transaction: whoever accepted it is to run it.
    pub started: Option<Box<Started>>,
    /// Another turn of the session is open before it.
    pub waits: bool,
    /// It had been accepted by an earlier request with the same key.
    pub replayed: bool,
}

/// A turn was not accepted; nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// No such session of this owner.
    #[error("there is no such session")]
    SessionNotFound,
    /// Another turn is open and the caller did not want to wait, or wants to replace a turn.
    #[error("a turn is running in this session")]
    SessionBusy,
    /// It would be a new turn, and none is admitted now.
    #[error("no new turn is admitted now")]
    NotAdmitted,
    /// The session's queue is full.
    #[error("the session's queue is full")]
    QueueFull,
    /// The owner has too many open turns.
    #[error("too many turns of this user are open")]
    TooManyTurns,
    /// The tenant has too many open turns.
    #[error("too many turns of this tenant are open")]
    TooManyOfTenant,
    /// Too many turns that were asked for with this key are open.
    #[error("too many turns of this key are open")]
    TooManyOfKey,
    /// The day's tokens are used up.
    #[error("the turns of this {} have used the tokens that they may in a day", whose.as_str())]
    TokensUsedUp {
        /// Whose.
        whose: Whose,
        /// How long it is until the next day.
        wait: Duration,
    },
    /// The turn to be replaced is not one of this session, or never started.
    #[error("there is no such turn to replace")]
    ReplacedNotFound,
    /// The key was used with another body.
    #[error("the idempotency key was used with another body")]
    IdempotencyMismatch,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The right to write for a turn: valid while the turn runs and its fence is this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnKey {
    /// Whose turn it is.
    pub owner: Owner,
    /// Its session.
    pub session_id: SessionId,
    /// The turn.
    pub turn_id: TurnId,
    /// The number of its start.
    pub fence: i64,
}

/// A turn that has begun.
#[derive(Clone, Debug)]
pub struct Started {
    /// The right to write.
    pub key: TurnKey,
    /// The turn, running.
    pub turn: Turn,
    /// Its session, the user's message counted.
    pub session: Session,
    /// The user's message, stored.
    pub message: Message,
}

/// The write was decided on something that has moved: the turn is closed, or belongs to another runner. Nothing was written; the
/// caller must stop.
#[derive(Debug, thiserror::Error)]
pub enum TurnWriteError {
    /// The fence has moved, or the turn is closed or gone.
    #[error("the turn belongs to another runner, or is closed")]
    Fenced,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A message to be appended; the store gives it the session's next number.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// Its id.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
    /// Calls that it makes.
    pub tool_calls: Vec<ToolCall>,
    /// The call that it answers.
    pub tool_call_id: Option<String>,
    /// It was cut.
    pub partial: bool,
    /// May become memory.
    pub learnable: bool,
}

/// The answer and all that is committed with it.
#[derive(Clone, Debug)]
pub struct CommitTurn {
    /// The answer: an assistant message, cleaned, never empty.
    pub answer: NewMessage,
    /// Why the model stopped.
    pub finish_reason: FinishReason,
    /// What it cost.
    pub usage: Usage,
    /// What was shown to the model.
    pub recalled: Vec<RecalledMemory>,
    /// The last event number used.
    pub events_used: i64,
    /// What it cost is added to what was used on the day, in the same transaction: there are [`TokenLimits`].
    pub counts_tokens: bool,
    /// Derived work, enqueued in the same transaction (A10).
    pub jobs: Vec<NewJob>,
    /// When.
    pub now: Timestamp,
}

/// A turn that is committed.
#[derive(Clone, Debug)]
pub struct Committed {
    /// As it is stored.
    pub turn: Turn,
    /// Another turn of the session may wait. False if none did when this one was committed: whoever accepts one later starts it.
    pub may_wait: bool,
}

/// Who closes a turn without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closer {
    /// Its runner; the last event number it used.
    Runner {
        /// The last event number used.
        events_used: i64,
    },
    /// Anyone, since its lease has lapsed. Checked in the transaction against the database's clock. Its log is lost: the terminal
    /// number is set above all reserved ones.
    LeaseLapsed {
        /// Number of the session's last message that the close was decided on; 0 for none. A runner that is late and not gone may have
        /// written since: then the close is refused as fenced, and has to be decided anew.
        last_seq: i64,
    },
}

/// How a turn ends without an answer.
#[derive(Clone, Debug)]
pub struct CloseTurn {
    /// Who closes it.
    pub closer: Closer,
    /// Failed, cancelled or interrupted.
    pub status: TurnStatus,
    /// Why.
    pub problem: Option<TurnProblem>,
    /// Messages that make the transcript whole: results of open tool calls, then what was shown of the answer, marked partial.
    pub messages: Vec<NewMessage>,
    /// What was shown of the answer.
    pub text: Option<String>,
    /// What it cost so far.
    pub usage: Option<Usage>,
    /// What was shown to the model.
    pub recalled: Vec<RecalledMemory>,
    /// What it cost is added to what was used on the day, in the same transaction: there are [`TokenLimits`].
    pub counts_tokens: bool,
    /// Derived work, enqueued in the same transaction.
    pub jobs: Vec<NewJob>,
    /// When.
    pub now: Timestamp,
}

/// The outcome of asking for a cancellation.
#[derive(Clone, Debug)]
pub enum CancelOutcome {
    /// No such turn of this owner.
    NotFound,
    /// It waited, and is closed now.
    Closed(Turn),
    /// It runs; its runner is to see the mark.
    Requested(Turn),
    /// It had ended before.
    AlreadyEnded(Turn),
}

/// A running turn's lease, prolonged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// Somebody asked for its cancellation.
    pub cancel_requested: bool,
}

/// Turns.
#[async_trait]
pub trait TurnRepository: Send + Sync + 'static {
    /// Stores a turn as queued, with its input and idempotency key (and its session, and the removal of what it replaces). No
    /// message row yet, so that a waiting message never falls between another turn's tool call and its result. With [`AcceptTurn::start`] a
    /// turn that need not wait is started at once, as by [`TurnRepository::start_turn`].
    async fn accept_turn(&self, turn: AcceptTurn) -> Result<Accepted, AcceptError>;

    /// Starts the session's oldest queued turn, if none is running: takes the lease, raises the fence, reserves `event_block`
    /// event numbers, and only then gives the user's message the next number. `None` if there is nothing to start.
    async fn start_turn(
        &self,
        owner: Owner,
        session: SessionId,
        message: MessageId,
        lease: Duration,
        event_block: i64,
        now: Timestamp,
    ) -> StoreResult<Option<Started>>;

    /// Prolongs the lease of a running turn.
    async fn renew_turn(&self, key: TurnKey, lease: Duration) -> Result<Renewed, TurnWriteError>;

    /// Reserves event numbers up to `up_to`, before any of them is used.
    async fn reserve_events(&self, key: TurnKey, up_to: i64) -> Result<(), TurnWriteError>;

    /// Stores messages of a tool round before the step after them starts (A7).
    async fn append_step(
        &self,
        key: TurnKey,
        messages: Vec<NewMessage>,
        now: Timestamp,
    ) -> Result<Vec<Message>, TurnWriteError>;

    /// The commit boundary: answer, state, usage and derived jobs, in one transaction. After it the turn is `completed`, has its
    /// terminal number, and nothing else may close it.
    async fn commit_turn(&self, key: TurnKey, commit: CommitTurn) -> Result<Turn, TurnWriteError>;

    /// The same; and whether another turn of the session waits then. A store that does not look says so.
    async fn commit_and_look(
        &self,
        key: TurnKey,
        commit: CommitTurn,
    ) -> Result<Committed, TurnWriteError> {
        let turn = self.commit_turn(key, commit).await?;
        Ok(Committed {
            turn,
            may_wait: true,
        })
    }

    /// Closes a turn without an answer, in one transaction. `Fenced` when it has ended already or (for a lapsed lease) its lease was
    /// prolonged.
    async fn close_turn(&self, key: TurnKey, close: CloseTurn) -> Result<Turn, TurnWriteError>;

    /// The turn, if it is this owner's.
    async fn turn(&self, owner: Owner, id: TurnId) -> StoreResult<Option<Turn>>;

    /// Closes a queued turn as cancelled (its terminal number is 2, after `start`); marks a running one.
    async fn request_cancel(
        &self,
        owner: Owner,
        id: TurnId,
        now: Timestamp,
    ) -> StoreResult<CancelOutcome>;

    /// Turns of this owner that have not ended, of one session or of all, the newest first.
    async fn open_turns(
        &self,
        owner: Owner,
        session: Option<SessionId>,
    ) -> StoreResult<Vec<TurnId>>;

    /// Running turns of all owners whose lease has lapsed by the database's clock.
    async fn lapsed_turns(&self, limit: u32) -> StoreResult<Vec<TurnKey>>;

    /// Sessions of all owners that have a queued turn and no running one.
    async fn waiting_sessions(&self, limit: u32) -> StoreResult<Vec<(Owner, SessionId)>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_next_day_is_that_of_utc() {
        for (now, seconds) in [
            ("2026-03-01T00:00:00Z", 86_400),
            ("2026-03-01T23:59:59Z", 1),
            ("1969-12-31T23:00:00Z", 3_600),
            ("2026-03-01T23:00:00+08:00", 9 * 3_600),
        ] {
            assert_eq!(
                until_next_day(at(now)),
                Duration::from_secs(seconds),
                "{now}"
            );
        }
    }

    #[test]
    fn who_is_not_limited_may_have_used_any_number_of_tokens() {
        let used = TokensUsed {
            tenant: i64::MAX,
            key: i64::MAX,
            user: 9,
        };
        let now = at("2026-03-01T00:00:00Z");
        let limits = |user| TokenLimits {
            user,
            ..TokenLimits::default()
        };
        assert!(limits(None).admit(used, now).is_ok());
        assert!(limits(Some(10)).admit(used, now).is_ok());
        let refused = limits(Some(9)).admit(used, now).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the turns of this user have used the tokens that they may in a day"
        );
    }
}
