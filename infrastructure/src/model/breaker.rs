//! When to stop asking a model that does not answer, and when to try again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A circuit breaker: closed, open for a while after failures in a row, then half-open for a single trial.
#[derive(Debug)]
pub(super) struct Breaker {
    what: &'static str,
    threshold: u32,
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Closed { failures: u32 },
    Open { until: Instant },
    Trial,
}

/// How an admitted request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The model answered, if only to refuse.
    Reached,
    /// It cannot be reached, or keeps silent.
    Failed,
    /// Nobody waited for the end.
    Unknown,
}

/// Leave to ask. To be given back with the outcome.
#[derive(Debug)]
struct Pass {
    is_trial: bool,
}

/// An admitted request, which settles with the breaker exactly once, also when its asker goes away half-way.
#[derive(Debug)]
pub(super) struct Settlement {
    breaker: Arc<Breaker>,
    pass: Option<Pass>,
}

impl Settlement {
    /// Only the first outcome counts.
    pub(super) fn settle(&mut self, outcome: Outcome) {
        if let Some(pass) = self.pass.take() {
            self.breaker.settle(pass, outcome, Instant::now());
        }
    }
}

impl Drop for Settlement {
    fn drop(&mut self) {
        self.settle(Outcome::Unknown);
    }
}

impl Breaker {
    /// For what `what` names in the log. Opens after `threshold` failures in a row (at least 1), for `pause`.
    pub(super) fn new(what: &'static str, threshold: u32, pause: Duration) -> Self {
        Self {
            what,
            threshold: threshold.max(1),
            pause,
            state: Mutex::new(State::Closed { failures: 0 }),
        }
    }

    /// Whether [`Self::admit`] would refuse now.
    pub(super) fn refuses(&self, now: Instant) -> bool {
        match *self.lock() {
            State::Closed { .. } => false,
            State::Open { until } => now < until,
            State::Trial => true,
        }
    }

    /// Leave to ask now, or none.
    pub(super) fn admitted(breaker: &Arc<Self>) -> Option<Settlement> {
        let pass = breaker.admit(Instant::now())?;
        Some(Settlement {
            breaker: Arc::clone(breaker),
            pass: Some(pass),
        })
    }

    fn admit(&self, now: Instant) -> Option<Pass> {
        let mut state = self.lock();
        match *state {
            State::Closed { .. } => Some(Pass { is_trial: false }),
            State::Open { until } if now >= until => {
                *state = State::Trial;
                Some(Pass { is_trial: true })
            }
            State::Open { .. } | State::Trial => None,
        }
    }

    /// Takes the outcome of what was admitted. What was admitted before the breaker opened says nothing about now.
    #[expect(clippy::needless_pass_by_value, reason = "a pass counts once")]
    fn settle(&self, pass: Pass, outcome: Outcome, now: Instant) {
        let mut state = self.lock();
        let next = match (*state, pass.is_trial, outcome) {
            (State::Closed { .. }, _, Outcome::Reached)
            | (State::Trial, true, Outcome::Reached) => State::Closed { failures: 0 },
            (State::Closed { failures }, _, Outcome::Failed) if failures + 1 < self.threshold => {
                State::Closed {
                    failures: failures + 1,
                }
            }
            (State::Closed { .. }, _, Outcome::Failed) | (State::Trial, true, Outcome::Failed) => {
                State::Open {
                    until: now + self.pause,
                }
            }
            // The trial was given up; the next request is the trial.
            (State::Trial, true, Outcome::Unknown) => State::Open { until: now },
            (unchanged, _, _) => unchanged,
        };
        if matches!(next, State::Open { .. }) != matches!(*state, State::Open { .. }) {
            tracing::warn!(of = self.what, from = ?*state, to = ?next, "a circuit breaker changed");
        }
        *state = next;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
