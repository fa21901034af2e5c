//! How values lie around their mean.

use crate::memory::lexical::LEAST_DOCUMENTS;

/// Mean and deviation of a feature over the eligible entries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Scale {
    pub(super) mean: f64,
    pub(super) deviation: f64,
}

/// Parts of one in which sums are counted: whole numbers add up to the same whatever their order.
const GRAIN: f64 = (1_u32 << 24) as f64;

/// What is less is the grain of the sums.
pub(super) const LEAST_DEVIATION: f64 = 1e-3;
/// How much cosines of one question deviate; of a few entries it cannot be seen. Seen with small sentence models.
const DEVIATION: f64 = 0.1;

/// Values taken together: how many, their sum, and that of their squares, both in parts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    count: u64,
    sum: i128,
    squares: i128,
}

impl Moments {
    /// Takes one more in.
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += i128::from(nearest(value * GRAIN));
        self.squares += i128::from(nearest(value * value * GRAIN));
    }

    /// Those of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }

    /// The scale of these cosines, and of as many more as are missing to [`LEAST_DOCUMENTS`] that deviate by [`DEVIATION`] from the same mean: one or
    /// two entries have no deviation of their own.
    pub(super) fn scale(self) -> Scale {
        let (mut sum, mut squares) = (self.sum as f64 / GRAIN, self.squares as f64 / GRAIN);
        let mut all = self.count as f64;
        let missing = LEAST_DOCUMENTS.saturating_sub(self.count) as f64;
        let mean = sum / all.max(1.0);
        sum += missing * mean;
        squares += missing * (mean * mean + DEVIATION * DEVIATION);
        all += missing;
        let mean = sum / all;
        Scale {
            mean,
            deviation: (squares / all - mean * mean).max(0.0).sqrt(),
        }
    }
}

/// The nearest whole number of what is less than 2^51: added to 1.5·2^52 it is in the lowest bits. Ties go to the even one. Unlike
/// `round` this is no call on processors of any age.
fn nearest(value: f64) -> i64 {
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    debug_assert!(value.abs() < 2_251_799_813_685_248.0);
    (value + SHIFT).to_bits() as i64 - SHIFT.to_bits() as i64
}

impl Scale {
    /// By how many deviations a value lies above the mean; 0 where nothing deviates.
    pub(super) fn standard(&self, value: f64) -> f64 {
        if self.deviation > LEAST_DEVIATION {
            (value - self.mean) / self.deviation
        } else {
            0.0
        }
    }

    /// How much of the way from the mean to 1 a value is.
    pub(super) fn lift(&self, value: f64) -> f64 {
        (value - self.mean) / (1.0 - self.mean).max(LEAST_DEVIATION)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn moments(values: &[f64]) -> Moments {
        let mut moments = Moments::default();
        for value in values {
            moments.add(*value);
        }
        moments
    }

    fn scale(values: &[f64]) -> Scale {
        moments(values).scale()
    }

    #[test]
    fn mean_and_deviation_are_those_of_the_values_once_there_are_enough() {
        let hundred = scale(&(0..100).map(f64::from).collect::<Vec<_>>());
        assert!((hundred.mean - 49.5).abs() < 1e-6);
        assert!((hundred.deviation - 28.866_07).abs() < 1e-4);
        let two = scale(&[0.7, 0.1]);
        assert!((two.mean - 0.4).abs() < 1e-6);
        assert!(two.standard(0.7) > 2.0 && two.standard(0.7) < 3.0);
        assert!(scale(&[0.7]).standard(0.7).abs() < 1e-3);
    }

    proptest! {
        #[test]
        fn a_scale_does_not_depend_on_the_order(values in prop::collection::vec(-50.0..50.0_f64, 0..60), at in 0_usize..60) {
            let mut other = values.clone();
            other.reverse();
            let all = scale(&values);
            prop_assert_eq!(all, scale(&other));
            prop_assert!(all.standard(1.0).is_finite());
            let (first, second) = values.split_at(at.min(values.len()));
            let [first, second] = [first, second].map(moments);
            prop_assert_eq!(all, first.and(second).scale());
        }

        #[test]
        fn the_nearest_whole_number_is_no_farther_than_a_half(value in -1e15..1e15_f64) {
            prop_assert!((nearest(value) as f64 - value).abs() <= 0.5);
        }
    }
}
