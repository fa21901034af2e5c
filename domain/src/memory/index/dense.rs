//! What the embeddings tell of each entry with respect to a question.

use std::collections::HashSet;

use super::View;
use super::coarse::NEARNESS;
use super::cosines::Cosines;
use super::rows::{NONE, Row};
use super::scale::{LEAST_DEVIATION, Moments, Scale};
use super::search::{Eligible, Query};

/// Features from the embeddings.
///
/// Each model and each script has cosines on a scale of its own.
#[derive(Debug)]
pub(super) struct Dense<'v> {
    rows: &'v [Row],
    cosines: Cosines<'v>,
    /// Of each model.
    scales: Vec<Scales>,
    /// The cosine, standardised over the entries in the same script with a vector of the same model; 0 where there is none.
    own: Vec<f32>,
    /// How the means of neighbours lie.
    around: Scale,
    /// By session.
    best: Vec<f32>,
}

/// How the cosines of one model lie.
#[derive(Clone, Copy, Debug)]
struct Scales {
    all: Scale,
    /// Of those without and of those with Han, kana or hangul.
    scripts: [Scale; 2],
}

impl<'v> Dense<'v> {
    /// None without a vector to compare with.
    pub(super) fn of(view: &'v View<'_>, query: &'v Query, eligible: &Eligible) -> Option<Self> {
        let rows = view.rows();
        let cosines = Cosines::of(view, query, eligible)?;
        let mut this = Self {
            rows,
            own: vec![0.0; rows.len()],
            scales: Vec::new(),
            around: Scale::default(),
            best: Vec::new(),
            cosines,
        };
        for model in this.cosines.models() {
            let mut moments = [Moments::default(); 2];
            for &slot in &model.slots {
                let value = this.cosines.get(slot).unwrap_or_default();
                moments[usize::from(rows[slot as usize].ideographic())].add(value);
            }
            let scales = Scales {
                all: moments[0].and(moments[1]).scale(),
                scripts: moments.map(Moments::scale),
            };
            for &slot in &model.slots {
                let value = this.cosines.get(slot).unwrap_or_default();
                this.own[slot as usize] = scales.standard(&rows[slot as usize], value);
            }
            this.scales.push(scales);
        }
        let mut moments = Moments::default();
        for slot in this.cosines.models().iter().flat_map(|m| &m.slots) {
            moments.add(this.mean_around(*slot));
        }
        this.around = moments.scale();
        this.best = best_in_sessions(view, &this.own, eligible);
        Some(this)
    }

    /// The mean of an entry with those before and after it, which count half each.
    fn mean_around(&self, slot: u32) -> f64 {
        let row = &self.rows[slot as usize];
        let (mut sum, mut weight) = (f64::from(self.own[slot as usize]), 1.0);
        for other in [row.previous, row.next] {
            if other != NONE {
                sum += 0.5 * f64::from(self.own[other as usize]);
                weight += 0.5;
            }
        }
        sum / weight
    }

    /// Cosine with the question, where the entry has a vector.
    pub(super) fn cosine(&self, slot: u32) -> Option<f64> {
        self.cosines.get(slot)
    }

    /// How much of the way from the mean cosine to 1 it is.
    pub(super) fn lift(&self, slot: u32) -> Option<f64> {
        let scales = &self.scales[self.cosines.model(slot)?];
        Some(scales.all.lift(self.cosine(slot)?))
    }

    /// The cosine, standardised.
    pub(super) fn own(&self, slot: u32) -> f64 {
        f64::from(self.own[slot as usize])
    }

    /// That with the neighbours', standardised.
    pub(super) fn around(&self, slot: u32) -> f64 {
        self.around.standard(self.mean_around(slot))
    }

    /// Mean of the two greatest in the session; of one that belongs to none its own.
    pub(super) fn session(&self, slot: u32) -> f64 {
        let session = self.rows[slot as usize].session;
        match self.best.get(session as usize) {
            Some(best) => f64::from(*best),
            None => self.own(slot),
        }
    }

    /// Whether cosines that were not refined are near the true ones instead of true.
    pub(super) fn near(&self) -> bool {
        self.cosines.near()
    }

    /// Makes what is told of some entries true: of their neighbours, and of the best in their sessions, as well.
    pub(super) fn refine(&mut self, slots: &[u32], eligible: &Eligible) {
        let rows = self.rows;
        for &slot in slots {
            let Row { previous, next, .. } = rows[slot as usize];
            for slot in [slot, previous, next].into_iter().filter(|s| *s != NONE) {
                self.refine_own(slot);
            }
        }
        let mut seen = HashSet::new();
        for &slot in slots {
            let session = rows[slot as usize].session;
            if session != NONE && seen.insert(session) {
                let members: Vec<u32> = session_of(rows, slot)
                    .filter(|other| eligible.admits(*other))
                    .collect();
                let (_, second) = self.two_best(&members);
                for &other in &members {
                    if self.own[other as usize] >= second - self.blur(other) {
                        self.refine_own(other);
                    }
                }
                self.best[session as usize] = mean(self.two_best(&members));
            }
        }
    }

    fn refine_own(&mut self, slot: u32) {
        self.cosines.refine(slot);
        if let (Some(model), Some(value)) = (self.cosines.model(slot), self.cosine(slot)) {
            let row = &self.rows[slot as usize];
            self.own[slot as usize] = self.scales[model].standard(row, value);
        }
    }

    fn two_best(&self, slots: &[u32]) -> (f32, f32) {
        let values = slots.iter().map(|slot| self.own[*slot as usize]);
        values.fold(NO_TWO, two_best)
    }

    /// How far two standardised cosines that were not refined may be apart in truth when they look alike.
    fn blur(&self, slot: u32) -> f32 {
        let script = usize::from(self.rows[slot as usize].ideographic());
        let model = self.cosines.model(slot);
        model.map_or(0.0, |model| {
            let deviation = self.scales[model].scripts[script].deviation;
            (2.0 * NEARNESS / deviation.max(LEAST_DEVIATION)) as f32
        })
    }
}

/// Everything in the session of a chunk, itself as well.
fn session_of(rows: &[Row], slot: u32) -> impl Iterator<Item = u32> {
    let step = |slot: u32| Some(slot).filter(|s| *s != NONE);
    let behind = std::iter::successors(Some(slot), move |s| step(rows[*s as usize].next));
    let before = std::iter::successors(step(rows[slot as usize].previous), move |s| {
        step(rows[*s as usize].previous)
    });
    behind.chain(before)
}

impl Scales {
    fn standard(&self, row: &Row, cosine: f64) -> f32 {
        self.scripts[usize::from(row.ideographic())].standard(cosine) as f32
    }
}

/// The two greatest of no values.
const NO_TWO: (f32, f32) = (f32::NEG_INFINITY, f32::NEG_INFINITY);

/// The two greatest, with one more value.
fn two_best((first, second): (f32, f32), value: f32) -> (f32, f32) {
    if value > second {
        (first.max(value), first.min(value))
    } else {
        (first, second)
    }
}

/// The mean of the two greatest, of one that is alone its own.
fn mean((first, second): (f32, f32)) -> f32 {
    if second > f32::NEG_INFINITY {
        f32::midpoint(first, second)
    } else {
        first
    }
}

/// Mean of the two greatest of the eligible entries in each session.
fn best_in_sessions(view: &View<'_>, values: &[f32], eligible: &Eligible) -> Vec<f32> {
    let mut best = vec![NO_TWO; view.sessions()];
    for (slot, (row, value)) in (0..).zip(view.rows().iter().zip(values)) {
        if let Some(held) = best.get_mut(row.session as usize)
            && eligible.admits(slot)
        {
            *held = two_best(*held, *value);
        }
    }
    best.into_iter().map(mean).collect()
}
