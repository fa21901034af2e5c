//! The live log of turns: append-only, numbered, pulled by cursor.
//!
//! It is a convenience, not a truth: when it is gone, the stored turn answers with a snapshot and the terminal event. A log may reach over
//! all replicas; then it also carries hints between them, which say no more than that a row is worth a look.

use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use tidemark_domain::event::TurnEvent;
use tidemark_domain::ids::TurnId;

/// An event with its number.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedEvent {
    /// Its number, from 1, without gaps.
    pub seq: i64,
    /// What happened.
    pub event: TurnEvent,
}

/// What a reader finds behind its cursor.
#[derive(Clone, Debug, PartialEq)]
pub enum LogRead {
    /// The next events, at least one.
    Events(Vec<LoggedEvent>),
    /// The cursor is at the end, and nothing came in the time given.
    Quiet,
    /// The log is not here, or does not reach back (or forward) to the cursor.
    Unknown,
}

/// The log could not be reached. Chat goes on: followers read the stored turn.
#[derive(Debug, thiserror::Error)]
#[error("the event log is unavailable")]
pub struct EventLogError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Whom a log reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Readers in this process; it is made for no others.
    Process,
    /// Readers at every replica.
    Replicas,
    /// Readers in this process, while what carries events to other replicas is away.
    Degraded,
}

/// The live log.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Begins a turn's log with its first event (number 1). Does nothing if it has begun.
    async fn open(&self, turn: TurnId, start: TurnEvent) -> Result<(), EventLogError>;

    /// Appends events whose numbers follow the last one; those not above it are passed over. `fence` is the writer's: a log that has
    /// seen a higher one refuses silently. An end that does not follow, since the events before it are lost here or are told at another
    /// replica, ends the log all the same: it becomes unknown, so that its readers read the stored turn at once.
    async fn append(
        &self,
        turn: TurnId,
        fence: i64,
        events: Vec<LoggedEvent>,
    ) -> Result<(), EventLogError>;

    /// At most `limit` events after `after`; waits up to `wait` for the first. Never more than the reader asks for: a slow reader costs
    /// nobody anything.
    async fn read(
        &self,
        turn: TurnId,
        after: i64,
        limit: usize,
        wait: Duration,
    ) -> Result<LogRead, EventLogError>;

    /// Waits until the log of a turn opens, grows or goes, at most `wait`: for a reader to whom it was unknown. May return early, but not
    /// again and again.
    async fn changed(&self, turn: TurnId, wait: Duration);

    /// The writer has lost the turn to somebody else: nothing more is told of it from here, and its readers here look elsewhere.
    async fn resign(&self, turn: TurnId);

    /// Drops the logs of turns that are gone, wherever they are kept. Whoever follows one reads the stored turn, and finds none. False if
    /// something could not be reached in a moment: then this process goes on trying, and what it does not reach goes by itself when the
    /// time is over for which an ended turn can be replayed.
    async fn forget(&self, turns: &[TurnId]) -> bool;

    /// Tells a piece of the model's reasoning to whoever listens now; never kept.
    async fn tell_reasoning(&self, turn: TurnId, token: &str);

    /// The reasoning told from now on, until the turn ends; a listener that is too slow misses some.
    async fn reasoning(&self, turn: TurnId) -> BoxStream<'static, String>;

    /// Hints whoever runs the turn, at whatever replica, that its row has changed: a cancellation was asked for. It may get lost.
    async fn hint(&self, _turn: TurnId) {}

    /// The turns that such hints from other replicas name, from now on.
    async fn hints(&self) -> BoxStream<'static, TurnId> {
        futures::stream::pending().boxed()
    }

    /// Waits until what was appended, and who was hinted, has reached the other replicas, at most `limit`; not at all while what carries it
    /// is away. Whether it has. For a process that is about to end.
    async fn flush(&self, _limit: Duration) -> bool {
        true
    }

    /// Whom it reaches now.
    fn reach(&self) -> Reach {
        Reach::Process
    }
}
