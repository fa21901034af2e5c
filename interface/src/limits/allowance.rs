//! An allowance of requests a minute for each of many, by the generic cell rate algorithm: nobody's is reset, it grows again steadily.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::ShrinkableKeyedStateStore;
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

/// Of so many is remembered how far they have used theirs: some 25 MiB, where all have long names. Beyond that nothing is held against whoever is not
/// remembered yet; limits that are wider still count them.
const MOST: usize = 100_000;

/// How often those are forgotten who have all of theirs again. Within two minutes that is everybody who asks no more.
const FORGET_EVERY: Duration = Duration::from_secs(10);

/// What a request comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// It is within the allowance.
    Admitted {
        /// How many more may come at once.
        remaining: u32,
        /// When all of the allowance is there again, if none come.
        whole_in: Duration,
    },
    /// It is not, and nothing was taken.
    Refused {
        /// When one is admitted again.
        wait: Duration,
    },
}

/// What each may do, and how far it has.
pub(super) struct Allowance<K: Hash + Eq + Clone> {
    limiter: RateLimiter<K, Used<K>, Uptime, StateInformationMiddleware>,
    quota: NonZeroU32,
    clock: Uptime,
    forgotten_at: Mutex<Instant>,
}

impl<K: Hash + Eq + Clone> fmt::Debug for Allowance<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quota = self.quota;
        f.debug_struct("Allowance")
            .field("quota", &quota)
            .finish_non_exhaustive()
    }
}

impl<K: Hash + Eq + Clone> Allowance<K> {
    /// Of so many requests.
    pub(super) fn per_minute(quota: NonZeroU32) -> Self {
        Self::remembering(MOST, quota)
    }

    fn remembering(most: usize, quota: NonZeroU32) -> Self {
        let now = Instant::now();
        let clock = Uptime(now);
        let used = Used {
            until: Mutex::default(),
            most,
        };
        Self {
            limiter: RateLimiter::new(Quota::per_minute(quota), used, clock),
            quota,
            clock,
            forgotten_at: Mutex::new(now),
        }
    }

    pub(super) fn quota(&self) -> NonZeroU32 {
        self.quota
    }

    /// Counts a request of that one.
    pub(super) fn count(&self, of: &K) -> Count {
        self.forget();
        match self.limiter.check_key(of) {
            Ok(after) => {
                let remaining = after.remaining_burst_capacity();
                let interval = Quota::per_minute(self.quota).replenish_interval();
                Count::Admitted {
                    remaining,
                    whole_in: interval * (self.quota.get() - remaining),
                }
            }
            Err(until) => Count::Refused {
                wait: until.wait_time_from(self.clock.now()),
            },
        }
    }

    /// Forgets whoever has all of theirs, from time to time.
    fn forget(&self) {
        let now = Instant::now();
        let Ok(mut forgotten_at) = self.forgotten_at.try_lock() else {
            return;
        };
        if now.duration_since(*forgotten_at) >= FORGET_EVERY {
            *forgotten_at = now;
            self.limiter.retain_recent();
        }
    }
}

/// The time since something began.
#[derive(Clone, Copy, Debug)]
struct Uptime(Instant);

impl Clock for Uptime {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.elapsed().into()
    }
}

/// Until when the requests of each would have lasted, at the rate they are allowed.
struct Used<K> {
    until: Mutex<HashMap<K, Nanos>>,
    most: usize,
}

impl<K: Hash + Eq + Clone> StateStore for Used<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut all = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = all.get_mut(key) {
            let (outcome, next) = measure(Some(*until))?;
            *until = next;
            return Ok(outcome);
        }
        let (outcome, next) = measure(None)?;
        if all.len() < self.most {
            all.insert(key.clone(), next);
        }
        Ok(outcome)
    }
}

impl<K: Hash + Eq + Clone> ShrinkableKeyedStateStore<K> for Used<K> {
    fn retain_recent(&self, whole_before: Nanos) {
        let mut all = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, until| *until > whole_before);
    }

    fn len(&self) -> usize {
        let all = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        all.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn quota(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    fn admitted(allowance: &Allowance<u32>, of: u32) -> bool {
        matches!(allowance.count(&of), Count::Admitted { .. })
    }

    #[tokio::test(start_paused = true)]
    async fn as_many_as_are_allowed_may_come_at_once_and_then_each_in_its_time() {
        let allowance = Allowance::per_minute(quota(6));
        advance(Duration::from_secs(7)).await;
        for left in (0..6).rev() {
            let whole_in = Duration::from_secs(10) * (6 - left);
            let counted = Count::Admitted {
                remaining: left,
                whole_in,
            };
            assert_eq!(allowance.count(&1), counted);
        }
        let wait = Duration::from_secs(10);
        assert_eq!(allowance.count(&1), Count::Refused { wait });
        assert!(admitted(&allowance, 2), "another has its own");
        advance(Duration::from_secs(4)).await;
        let wait = Duration::from_secs(6);
        assert_eq!(allowance.count(&1), Count::Refused { wait });
        advance(wait).await;
        assert!(admitted(&allowance, 1), "what was refused took nothing");
        assert!(!admitted(&allowance, 1));
        advance(Duration::from_mins(1)).await;
        assert_eq!((0..9).filter(|_| admitted(&allowance, 1)).count(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_all_of_theirs_is_forgotten_and_nobody_else() {
        let allowance = Allowance::per_minute(quota(2));
        for of in 0..50 {
            admitted(&allowance, of);
        }
        advance(Duration::from_secs(35)).await;
        assert!(admitted(&allowance, 1) && admitted(&allowance, 1));
        advance(Duration::from_secs(35)).await;
        admitted(&allowance, 100);
        assert_eq!(allowance.limiter.len(), 2);
        assert!(admitted(&allowance, 1) && !admitted(&allowance, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn however_many_names_there_are_so_many_are_remembered_and_stay_limited() {
        let allowance = Allowance::remembering(10, quota(1));
        for of in 0..1_000 {
            assert!(admitted(&allowance, of));
        }
        assert_eq!(allowance.limiter.len(), 10);
        assert!(!admitted(&allowance, 9), "remembered");
        assert!(admitted(&allowance, 10), "nothing is held against it");
        advance(Duration::from_mins(2)).await;
        assert!(admitted(&allowance, 10) && !admitted(&allowance, 10));
    }
}
