//! How like the question each entry is by its embedding.

use super::View;
use super::coarse;
use super::search::{Eligible, Query};
use super::vectors::{FEW, Vectors, product};

/// The cosine of each eligible entry with the question. Of several models an entry is compared by the first that has embedded it.
///
/// Of more than [`FEW`] entries they are near the true ones at first: those that matter are to be put right by [`Self::refine`].
#[derive(Debug)]
pub(super) struct Cosines<'v> {
    /// By slot; NaN where there is no vector to compare with.
    values: Vec<f32>,
    models: Vec<Compared<'v>>,
    near: bool,
}

/// What was compared by one model.
#[derive(Debug)]
pub(super) struct Compared<'v> {
    vectors: &'v Vectors,
    asked: &'v [f32],
    /// The length of what was asked.
    length: f32,
    /// The entries.
    pub(super) slots: Vec<u32>,
}

impl Compared<'_> {
    fn cosine(&self, vector: &[f32], length: f32) -> f32 {
        let both = self.length * length;
        if both > 0.0 {
            (product(self.asked, vector) / both).clamp(-1.0, 1.0)
        } else {
            0.0
        }
    }
}

impl<'v> Cosines<'v> {
    /// None without a vector to compare with.
    pub(super) fn of(view: &'v View<'_>, query: &'v Query, eligible: &Eligible) -> Option<Self> {
        let mut this = Self {
            values: Vec::new(),
            models: Vec::new(),
            near: false,
        };
        for (model, asked) in &query.vectors {
            let vectors = view.vectors(model);
            if let Some(vectors) = vectors.filter(|v| v.dimensions() == asked.len()) {
                this.values.resize(view.rows().len(), f32::NAN);
                this.compare(vectors, asked, eligible);
            }
        }
        let any = this.models.iter().any(|model| !model.slots.is_empty());
        any.then_some(this)
    }

    fn compare(&mut self, vectors: &'v Vectors, asked: &'v [f32], eligible: &Eligible) {
        let mut compared = Compared {
            vectors,
            asked,
            length: product(asked, asked).sqrt(),
            slots: Vec::with_capacity(vectors.len()),
        };
        let values = &mut self.values;
        let wanted =
            |values: &[f32], slot: u32| eligible.admits(slot) && values[slot as usize].is_nan();
        let coarse = vectors.coarse();
        if let Some(coarse) = coarse.filter(|_| eligible.stats.documents > FEW as u64) {
            let asked = coarse::Asked::new(asked, compared.length);
            for (&slot, row) in vectors
                .slots()
                .iter()
                .zip(coarse.rows(vectors.dimensions()))
            {
                if wanted(values, slot) {
                    values[slot as usize] = asked.cosine(row);
                    compared.slots.push(slot);
                }
            }
            self.near = true;
        } else {
            for (slot, vector, length) in vectors.measured() {
                if wanted(values, slot) {
                    values[slot as usize] = compared.cosine(vector, length);
                    compared.slots.push(slot);
                }
            }
        }
        self.models.push(compared);
    }

    /// The cosine of an entry, where it has a vector.
    pub(super) fn get(&self, slot: u32) -> Option<f64> {
        let value = self.values[slot as usize];
        (!value.is_nan()).then_some(f64::from(value))
    }

    /// What was compared, by model.
    pub(super) fn models(&self) -> &[Compared<'v>] {
        &self.models
    }

    /// By which of [`Self::models`] an entry was compared.
    pub(super) fn model(&self, slot: u32) -> Option<usize> {
        self.values[slot as usize].is_finite().then_some(())?;
        let by = |model: &Compared<'_>| model.vectors.get_measured(slot).is_some();
        self.models.iter().position(by)
    }

    /// Whether those that were not refined are near the true ones instead of true.
    pub(super) fn near(&self) -> bool {
        self.near
    }

    /// Makes the cosine of an entry true.
    pub(super) fn refine(&mut self, slot: u32) {
        if let Some(model) = self.model(slot) {
            let model = &self.models[model];
            if let Some((vector, length)) = model.vectors.get_measured(slot) {
                self.values[slot as usize] = model.cosine(vector, length);
            }
        }
    }
}
