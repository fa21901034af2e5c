//! The live log of turns: append-only, numbered, pulled by cursor.
//!
//! It is a convenience, not a truth: when it is gone, the stored turn answers with a snapshot and the terminal event.

use std::time::Duration;

use async_trait::async_trait;
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

/// The live log.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Begins a turn's log with its first event (number 1). Does nothing if it has begun.
    async fn open(&self, turn: TurnId, start: TurnEvent) -> Result<(), EventLogError>;

    /// Appends events whose numbers follow the last one; those not above it are passed over. `fence` is the writer's: a log that has
    /// seen a higher one refuses silently.
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

    /// Drops the logs of turns that are gone. Whoever follows one reads the stored turn, and finds none.
    async fn forget(&self, turns: &[TurnId]);

    /// Tells a piece of the model's reasoning to whoever listens now; never kept.
    async fn tell_reasoning(&self, turn: TurnId, token: &str);

    /// The reasoning told from now on, until the turn ends; a listener that is too slow misses some.
    async fn reasoning(&self, turn: TurnId) -> BoxStream<'static, String>;
}
