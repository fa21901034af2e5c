//! Numbering and publishing a turn's events.

use std::sync::Arc;

use metrics::counter;
use tidemark_domain::event::{Terminal, TurnEvent};
use tidemark_domain::turn::Turn;

use crate::ports::events::{EventLog, LoggedEvent};
use crate::ports::turns::{TurnKey, TurnRepository, TurnWriteError};

/// The number of `start`, always the first.
pub const START_SEQ: i64 = 1;

/// Gives events their numbers and puts them on the live log. A number is used only after the turn's row has reserved it, so that a
/// crash never lets a later event repeat one.
#[derive(Clone)]
pub struct Publisher {
    log: Arc<dyn EventLog>,
    turns: Arc<dyn TurnRepository>,
    key: TurnKey,
    used: i64,
    reserved: i64,
    block: i64,
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher")
            .field("key", &self.key)
            .field("used", &self.used)
            .field("reserved", &self.reserved)
            .finish_non_exhaustive()
    }
}

impl Publisher {
    /// For a turn whose `start` is on the log and whose row has reserved numbers up to `reserved`.
    pub fn new(
        log: Arc<dyn EventLog>,
        turns: Arc<dyn TurnRepository>,
        key: TurnKey,
        reserved: i64,
        block: i64,
    ) -> Self {
        Self {
            log,
            turns,
            key,
            used: START_SEQ,
            reserved,
            block: block.max(1),
        }
    }

    /// The last number used.
    pub fn used(&self) -> i64 {
        self.used
    }

    /// Publishes an event of a running turn.
    ///
    /// # Errors
    /// When no number could be reserved for it. A log that is down is no error: followers read the stored turn.
    pub async fn publish(&mut self, event: TurnEvent) -> Result<(), TurnWriteError> {
        let seq = self.used + 1;
        if seq > self.reserved {
            let up_to = self.reserved + self.block;
            self.turns.reserve_events(self.key, up_to).await?;
            self.reserved = up_to;
        }
        self.used = seq;
        self.append(LoggedEvent { seq, event }).await;
        Ok(())
    }

    /// Publishes the terminal event of a turn that is stored as closed, rendered from the stored row (A8, A9). Whether it was sent.
    pub async fn finish(&mut self, turn: &Turn) -> bool {
        let (Some(seq), Some(terminal)) = (turn.terminal_seq, Terminal::of(turn)) else {
            return false;
        };
        self.append(LoggedEvent {
            seq,
            event: TurnEvent::Done(terminal),
        })
        .await
    }

    /// Tells reasoning to those who listen.
    pub async fn reasoning(&self, token: &str) {
        self.log.tell_reasoning(self.key.turn_id, token).await;
    }

    async fn append(&self, event: LoggedEvent) -> bool {
        match self
            .log
            .append(self.key.turn_id, self.key.fence, vec![event])
            .await
        {
            Ok(()) => true,
            Err(error) => {
                counter!("tidemark_event_log_errors_total").increment(1);
                tracing::warn!(%error, "an event did not reach the live log; followers will read the stored turn");
                false
            }
        }
    }
}
