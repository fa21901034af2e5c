//! Seeded randomness: a run that failed can be run again with the seed it printed.

use std::time::{SystemTime, UNIX_EPOCH};

/// `SplitMix64` (Steele, Lea, Flood 2014): one word of state, good enough to choose moments and messages.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that repeats itself for the same seed.
    pub fn from_seed(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The seed of `TIDEMARK_TEST_SEED`, else one taken from the clock.
    pub fn seed_of_this_run() -> u64 {
        std::env::var("TIDEMARK_TEST_SEED").map_or_else(
            |_| {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
                now.as_nanos() as u64
            },
            |given| given.parse().expect("TIDEMARK_TEST_SEED is a number"),
        )
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `low..high`; the bias of the modulo does not matter for tests.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low < high, "an empty range has no number");
        low + self.bits() % (high - low)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.between(0, n) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_seed_others() {
        let take = |seed| {
            let mut random = Random::from_seed(seed);
            (0..8).map(|_| random.bits()).collect::<Vec<_>>()
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = Random::from_seed(1);
        assert!((0..1000).all(|_| (3..9).contains(&random.between(3, 9))));
    }
}
