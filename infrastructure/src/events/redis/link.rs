//! Whether Redis is there. Two connections say so, one that writes and one that reads; the log is told when it goes and when it comes back.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::RedisError;

/// How long an answer of Redis may take.
pub(super) const RESPONSE: Duration = Duration::from_secs(2);

/// How long is waited before the next connection: at first, and at most.
pub(super) const PAUSES: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(2));

/// Which connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Writing,
    Reading,
}

#[derive(Debug, Default)]
struct State {
    writes: bool,
    reads: bool,
    /// What the log was told last; nothing at the start.
    told: Option<bool>,
}

/// The state of both.
#[derive(Debug)]
pub(super) struct Link {
    /// Without a password.
    address: String,
    state: Mutex<State>,
}

impl Link {
    pub(super) fn new(address: String) -> Self {
        Self {
            address,
            state: Mutex::default(),
        }
    }

    /// A connection works.
    pub(super) fn works(&self, side: Side) {
        self.set(side, true, |state, address| {
            if state.writes && state.reads && state.told != Some(true) {
                state.told = Some(true);
                tracing::info!(redis = address, "live events go to all replicas");
            }
        });
    }

    /// A connection broke, or could not be made.
    pub(super) fn broke(&self, side: Side, error: &RedisError) {
        self.set(side, false, |state, address| {
            if state.told != Some(false) {
                state.told = Some(false);
                tracing::warn!(redis = address, %error, "Redis is away: live events stay in this process, and followers at other replicas read the stored turns");
            }
        });
    }

    fn set(&self, side: Side, works: bool, tell: impl FnOnce(&mut State, &str)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match side {
            Side::Writing => state.writes = works,
            Side::Reading => state.reads = works,
        }
        tell(&mut state, &self.address);
    }

    /// Whether other replicas' events can be read.
    pub(super) fn reads(&self) -> bool {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .reads
    }

    /// Whether it is known that one does not work. At the start nothing is known.
    pub(super) fn is_away(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.told == Some(false)
    }

    /// Whether both work.
    pub(super) fn is_up(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.reads && state.writes
    }
}
