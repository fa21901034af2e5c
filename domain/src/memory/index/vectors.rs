//! The embeddings of one model, side by side.

use super::coarse::Coarse;

/// That an entry has no vector of the model.
const NONE: u32 = u32::MAX;

/// Up to so many vectors each is compared as it is. Of more a [`Coarse`] copy is kept.
pub(super) const FEW: usize = 20_000;

/// Vectors of one length, by slot.
#[derive(Clone, Debug)]
pub struct Vectors {
    dimensions: usize,
    data: Vec<f32>,
    /// The length of each row's vector.
    lengths: Vec<f32>,
    /// The slot of each row.
    slots: Vec<u32>,
    /// The row of each slot.
    rows: Vec<u32>,
    /// The same by row, when there are many.
    coarse: Option<Coarse>,
}

impl Vectors {
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            data: Vec::new(),
            lengths: Vec::new(),
            slots: Vec::new(),
            rows: Vec::new(),
            coarse: None,
        }
    }

    /// How many numbers a vector has.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// How many entries have one.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no entry has one.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The vector of an entry.
    pub fn get(&self, slot: u32) -> Option<&[f32]> {
        self.get_measured(slot).map(|(vector, _)| vector)
    }

    /// The slot of each entry that has a vector, by row.
    pub(super) fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Each entry that has a vector, with it and its length, by row.
    pub(super) fn measured(&self) -> impl Iterator<Item = (u32, &[f32], f32)> {
        let rows = self.data.chunks_exact(self.dimensions.max(1));
        let with_length = self.slots.iter().zip(rows).zip(&self.lengths);
        with_length.map(|((slot, vector), length)| (*slot, vector, *length))
    }

    /// The vector of an entry, and its length.
    pub(super) fn get_measured(&self, slot: u32) -> Option<(&[f32], f32)> {
        let row = *self.rows.get(slot as usize)?;
        (row != NONE).then(|| (self.row(row as usize), self.lengths[row as usize]))
    }

    /// The same vectors by row in less room, when they are more than [`FEW`].
    pub(super) fn coarse(&self) -> Option<&Coarse> {
        self.coarse.as_ref()
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.dimensions..(row + 1) * self.dimensions]
    }

    /// Gives an entry a vector of the right length.
    pub(super) fn set(&mut self, slot: u32, vector: &[f32]) {
        debug_assert_eq!(vector.len(), self.dimensions);
        if self.rows.len() <= slot as usize {
            self.rows.resize(slot as usize + 1, NONE);
        }
        let row = self.rows[slot as usize];
        let length = product(vector, vector).sqrt();
        if row == NONE {
            self.rows[slot as usize] = self.slots.len() as u32;
            self.slots.push(slot);
            self.lengths.push(length);
            self.data.extend_from_slice(vector);
            match &mut self.coarse {
                Some(coarse) => coarse.push(vector, length),
                None if self.slots.len() > FEW => self.coarse = Some(self.made_coarse()),
                None => {}
            }
        } else {
            self.lengths[row as usize] = length;
            let start = row as usize * self.dimensions;
            self.data[start..start + self.dimensions].copy_from_slice(vector);
            if let Some(coarse) = &mut self.coarse {
                coarse.set(row as usize, vector, length);
            }
        }
    }

    fn made_coarse(&self) -> Coarse {
        let mut coarse = Coarse::default();
        for (_, vector, length) in self.measured() {
            coarse.push(vector, length);
        }
        coarse
    }

    /// Takes an entry's vector away; the last row takes its place.
    pub(super) fn remove(&mut self, slot: u32) {
        let Some(row) = self.rows.get(slot as usize).copied().filter(|r| *r != NONE) else {
            return;
        };
        self.rows[slot as usize] = NONE;
        let (row, last) = (row as usize, self.slots.len() - 1);
        self.slots.swap_remove(row);
        self.lengths.swap_remove(row);
        if row != last {
            let from = last * self.dimensions;
            self.data
                .copy_within(from..from + self.dimensions, row * self.dimensions);
            self.rows[self.slots[row] as usize] = row as u32;
        }
        self.data.truncate(last * self.dimensions);
        if last <= FEW {
            self.coarse = None;
        } else if let Some(coarse) = &mut self.coarse {
            coarse.swap_remove(row, self.dimensions);
        }
    }

    /// Moves each entry to its new slot. Those that have none have lost their vectors before, and their room is given back.
    pub(super) fn renumber(&mut self, slot: impl Fn(u32) -> Option<u32>) {
        self.data.shrink_to_fit();
        self.rows.clear();
        for (row, held) in self.slots.iter_mut().enumerate() {
            if let Some(new) = slot(*held) {
                *held = new;
                if self.rows.len() <= new as usize {
                    self.rows.resize(new as usize + 1, NONE);
                }
                self.rows[new as usize] = row as u32;
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        (self.data.len() + self.lengths.len()) * size_of::<f32>()
            + (self.slots.len() + self.rows.len()) * size_of::<u32>()
            + self.coarse.as_ref().map_or(0, Coarse::bytes)
    }
}

/// The inner product of two vectors of one length. Several sums side by side, for the processor's wide registers.
pub(super) fn product(one: &[f32], other: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0_f32; LANES];
    let (ones, others) = (one.chunks_exact(LANES), other.chunks_exact(LANES));
    let rests = ones.remainder().iter().zip(others.remainder());
    let rest: f32 = rests.map(|(a, b)| a * b).sum();
    for (a, b) in ones.zip(others) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_product_is_that_of_the_definition() {
        let one: Vec<f32> = (0..39_u8).map(f32::from).collect();
        let other: Vec<f32> = (0..39_u8).map(|n| f32::from(n % 3) - 1.0).collect();
        let expected: f32 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
        assert!((product(&one, &other) - expected).abs() < f32::EPSILON);
    }

    proptest! {
        #[test]
        fn each_entry_keeps_its_own_vector_whatever_comes_and_goes(
            steps in prop::collection::vec((0_u32..12, any::<bool>()), 0..60),
        ) {
            let mut vectors = Vectors::new(2);
            let mut expected = BTreeMap::new();
            for (number, (slot, set)) in steps.into_iter().enumerate() {
                if set {
                    vectors.set(slot, &[number as f32, slot as f32]);
                    expected.insert(slot, number as f32);
                } else {
                    vectors.remove(slot);
                    expected.remove(&slot);
                }
                for slot in 0..13 {
                    let held = vectors.get(slot).map(|v| v[0]);
                    prop_assert_eq!(held, expected.get(&slot).copied());
                }
                prop_assert_eq!(vectors.len(), expected.len());
                for (_, vector, length) in vectors.measured() {
                    prop_assert!((length - vector[0].hypot(vector[1])).abs() < 1e-4);
                }
            }
            let kept: Vec<u32> = expected.keys().copied().collect();
            vectors.renumber(|slot| kept.iter().position(|k| *k == slot).map(|at| at as u32));
            for (new, old) in kept.iter().enumerate() {
                prop_assert_eq!(vectors.get(new as u32).unwrap(), &[expected[old], *old as f32]);
            }
        }
    }
}
