//! The machine's clock, and the sources of identifiers and of secrets.

use std::sync::Mutex;

use chrono::{DateTime, SubsecRound, Utc};
use tidemark_application::ports::clock::Clock;
use tidemark_application::ports::entropy::{Entropy, NoEntropy};
use tidemark_application::ports::ids::Ids;
use uuid::{ContextV7, Timestamp, Uuid};

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the port that everybody else uses"
        )]
        let now = Utc::now();
        now.trunc_subsecs(6)
    }
}

/// `UUIDv7` with a counter, so that identifiers of one process rise even within a millisecond.
#[derive(Debug, Default)]
pub struct UuidV7 {
    context: Mutex<ContextV7>,
}

impl Ids for UuidV7 {
    fn uuid(&self) -> Uuid {
        let context = self
            .context
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        Uuid::new_v7(Timestamp::now(&*context))
    }
}

/// The operating system's generator for cryptography.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        getrandom::fill(bytes).map_err(|error| NoEntropy(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_of_one_process_rise() {
        let ids = UuidV7::default();
        let made: Vec<_> = (0..10_000).map(|_| ids.uuid()).collect();
        assert!(made.is_sorted());
    }

    #[test]
    fn secrets_differ() {
        let (mut one, mut other) = ([0; 20], [0; 20]);
        SystemEntropy.fill(&mut one).unwrap();
        SystemEntropy.fill(&mut other).unwrap();
        assert!(one != other && one != [0; 20]);
    }

    #[test]
    fn the_time_has_no_more_than_microseconds() {
        let now = SystemClock.now();
        assert_eq!(now.timestamp_subsec_nanos() % 1_000, 0);
    }
}
