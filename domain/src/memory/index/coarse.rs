//! Embeddings with a byte for each number: a quarter to read, and near enough to choose which are worth the whole.
//!
//! A vector of length one is kept in steps of its greatest number's 127th part, so a number is wrong by half a step at most, and a cosine of
//! 384 numbers by some 0.0005 on average. Reading memory is what comparing a hundred thousand takes.

/// How far a cosine is from the true one at most, as far as it matters: five times what it is on average.
pub(super) const NEARNESS: f64 = 0.002_5;
/// What stands for 0 in a byte.
const ZERO: f32 = 128.0;
/// The greatest number of a vector in steps.
const STEPS: f32 = 127.0;
/// The length of a question in steps. With more than 250,000 numbers the sum of a comparison could leave 32 bits; no model has so many.
const LENGTH: f32 = 16_384.0;

/// Vectors of one length in bytes, by row.
#[derive(Clone, Debug, Default)]
pub(super) struct Coarse {
    bytes: Vec<u8>,
    /// The step of each row.
    steps: Vec<f32>,
}

/// A vector in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed<'b> {
    bytes: &'b [u8],
    step: f32,
}

/// A question as it is compared with [`Packed`] vectors.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    numbers: Vec<i16>,
    /// What the zeros of a row add to each sum.
    zeros: i32,
}

impl Asked {
    /// Of a vector of this length.
    pub(super) fn new(vector: &[f32], length: f32) -> Self {
        let unit = if length > 0.0 { LENGTH / length } else { 0.0 };
        let numbers: Vec<i16> = vector.iter().map(|n| (n * unit).round() as i16).collect();
        Self {
            zeros: numbers.iter().map(|n| i32::from(*n)).sum::<i32>() * ZERO as i32,
            numbers,
        }
    }

    /// The cosine with a vector, nearly.
    pub(super) fn cosine(&self, with: Packed<'_>) -> f32 {
        let sum = product(&self.numbers, with.bytes) - self.zeros;
        (sum as f32 * with.step / LENGTH).clamp(-1.0, 1.0)
    }
}

impl Coarse {
    /// Adds a row, a vector of this length.
    pub(super) fn push(&mut self, vector: &[f32], length: f32) {
        let (step, bytes) = packed(vector, length);
        self.steps.push(step);
        self.bytes.extend(bytes);
    }

    /// Gives a row another vector.
    pub(super) fn set(&mut self, row: usize, vector: &[f32], length: f32) {
        let (step, bytes) = packed(vector, length);
        self.steps[row] = step;
        let start = row * vector.len();
        for (held, byte) in self.bytes[start..].iter_mut().zip(bytes) {
            *held = byte;
        }
    }

    /// Takes a row away; the last one takes its place.
    pub(super) fn swap_remove(&mut self, row: usize, dimensions: usize) {
        let last = (self.steps.len() - 1) * dimensions;
        self.steps.swap_remove(row);
        self.bytes.copy_within(last.., row * dimensions);
        self.bytes.truncate(last);
    }

    /// Each row.
    pub(super) fn rows(&self, dimensions: usize) -> impl Iterator<Item = Packed<'_>> {
        let rows = self.bytes.chunks_exact(dimensions.max(1));
        let with_steps = rows.zip(&self.steps);
        with_steps.map(|(bytes, step)| Packed { bytes, step: *step })
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + self.steps.len() * size_of::<f32>()
    }
}

/// The step of a vector, and its numbers.
fn packed(vector: &[f32], length: f32) -> (f32, impl Iterator<Item = u8>) {
    let greatest = vector.iter().fold(0.0_f32, |most, n| most.max(n.abs()));
    let step = greatest / STEPS;
    let unit = if step > 0.0 { step.recip() } else { 0.0 };
    // What is cut off is less than one, so a half more makes it the nearest.
    let bytes = vector.iter().map(move |n| (n * unit + ZERO + 0.5) as u8);
    let relative = if length > 0.0 { step / length } else { 0.0 };
    (relative, bytes)
}

/// The inner product, 32 at a time: so many the compiler multiplies and adds in pairs, in registers that every processor has.
fn product(numbers: &[i16], bytes: &[u8]) -> i32 {
    const LANES: usize = 32;
    let (numbers, last_numbers) = numbers.as_chunks::<LANES>();
    let (bytes, last_bytes) = bytes.as_chunks::<LANES>();
    let mut sum = 0;
    for (numbers, bytes) in numbers.iter().zip(bytes) {
        let mut part = 0;
        for lane in 0..LANES {
            part += i32::from(numbers[lane]) * i32::from(i16::from(bytes[lane]));
        }
        sum += part;
    }
    let last = last_numbers.iter().zip(last_bytes);
    sum + last
        .map(|(number, byte)| i32::from(*number) * i32::from(*byte))
        .sum::<i32>()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::super::vectors::product as exact;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cosine_is_nearly_that_of_the_definition(
            rows in prop::collection::vec(prop::collection::vec(-3.0..3.0_f32, 37), 1..8),
            question in prop::collection::vec(-3.0..3.0_f32, 37),
            replaced in 0_usize..8,
        ) {
            let length = |v: &[f32]| exact(v, v).sqrt();
            let mut rows = rows;
            let mut coarse = Coarse::default();
            for row in &rows {
                coarse.push(row, length(row));
            }
            if replaced < rows.len() {
                rows.swap_remove(replaced);
                coarse.swap_remove(replaced, 37);
            }
            if replaced < rows.len() {
                rows[replaced].reverse();
                coarse.set(replaced, &rows[replaced], length(&rows[replaced]));
            }
            let asked = Asked::new(&question, length(&question));
            let cosines: Vec<f32> = coarse.rows(37).map(|row| asked.cosine(row)).collect();
            prop_assert_eq!(cosines.len(), rows.len());
            for (row, cosine) in rows.iter().zip(cosines) {
                let expected = exact(row, &question) / length(row) / length(&question);
                prop_assert!((cosine - expected).abs() < 0.01, "{} instead of {}", cosine, expected);
            }
        }
    }

    #[test]
    fn the_greatest_numbers_of_the_longest_vectors_do_not_overflow() {
        let many = vec![1.0_f32; 8_192];
        let length = exact(&many, &many).sqrt();
        let mut coarse = Coarse::default();
        coarse.push(&many, length);
        coarse.push(&vec![0.0; 8_192], 0.0);
        let asked = Asked::new(&many, length);
        let cosines: Vec<f32> = coarse.rows(8_192).map(|row| asked.cosine(row)).collect();
        assert!((cosines[0] - 1.0).abs() < 0.01 && cosines[1] == 0.0);
    }
}
