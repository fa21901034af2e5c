//! What one recall looks through: an owner's index, and beside it what is not in the index yet.

use std::borrow::Cow;

use super::ended::Ended;
use super::order::Place;
use super::postings::Holders;
use super::rows::{Case, NONE, Row};
use super::{Delta, Entry, OwnerIndex, Slot, Text, Upsert, Vectors};
use crate::ids::{MemoryId, SessionId};

/// An index with an overlay that is gone afterwards. Entries are numbered through both, the overlay's behind the index's.
#[derive(Debug)]
pub struct View<'i> {
    index: &'i OwnerIndex,
    fresh: OwnerIndex,
    /// Of both.
    rows: Cow<'i, [Row]>,
}

impl<'i> View<'i> {
    /// An index alone.
    pub fn of(index: &'i OwnerIndex) -> Self {
        Self::with(index, Vec::new())
    }

    /// An index with what it will hold soon. What it holds already is not taken twice.
    pub fn with(index: &'i OwnerIndex, mut fresh: Vec<Upsert>) -> Self {
        fresh.retain(|upsert| !index.by_id.contains_key(&upsert.entry.id));
        let mut overlay = OwnerIndex::default();
        overlay.apply(Delta {
            upserts: fresh,
            ..Delta::default()
        });
        let mut view = Self {
            index,
            fresh: overlay,
            rows: Cow::Borrowed(&index.rows),
        };
        if !view.fresh.slots.is_empty() {
            view.rows = Cow::Owned(view.joined());
        }
        view
    }

    /// The rows of both, bound to each other.
    fn joined(&self) -> Vec<Row> {
        let behind = self.behind();
        let (sessions, speakers) = self.index.numbers.len();
        let mut rows = self.index.rows.clone();
        for (row, held) in self.fresh.rows.iter().zip(&self.fresh.slots) {
            let mut row = *row;
            if let Some(source) = held.entry.place() {
                let known = self.index.numbers.known_session(source.session_id);
                row.session = known.unwrap_or(row.session + sessions);
            }
            if let Some(name) = &held.entry.speaker {
                let known = self.index.numbers.known_speaker(name);
                row.speaker = known.unwrap_or(row.speaker + speakers);
            }
            rows.push(row);
        }
        for slot in behind..behind + self.fresh.slots.len() as u32 {
            let (previous, next) = (self.previous(slot), self.next(slot));
            rows[slot as usize].previous = previous.unwrap_or(NONE);
            rows[slot as usize].next = next.unwrap_or(NONE);
            if let Some(previous) = previous {
                rows[previous as usize].next = slot;
            }
            if let Some(next) = next {
                rows[next as usize].previous = slot;
            }
        }
        rows
    }

    /// What ranking reads of each entry, by slot.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// One more than the highest number of a session.
    pub(super) fn sessions(&self) -> usize {
        (self.index.numbers.len().0 + self.fresh.numbers.len().0) as usize
    }

    /// Who speaks in these memories, by the numbers in the rows.
    pub(super) fn speakers(&self) -> Vec<(u32, &str)> {
        let numbers = &self.index.numbers;
        let mut out: Vec<(u32, &str)> = (numbers.speakers())
            .filter_map(|(number, name)| Some((number, name?)))
            .collect();
        for (number, name) in self.fresh.numbers.speakers() {
            let Some(name) = name else { continue };
            match numbers.known_speaker(name) {
                Some(known) if out.iter().any(|(number, _)| *number == known) => {}
                Some(known) => out.push((known, name)),
                None => out.push((number + numbers.len().1, name)),
            }
        }
        out
    }

    /// One more than the highest slot. Some slots may belong to removed entries.
    pub fn slots(&self) -> u32 {
        self.behind() + self.fresh.slots.len() as u32
    }

    fn behind(&self) -> u32 {
        self.index.slots.len() as u32
    }

    fn held(&self, slot: u32) -> &Slot {
        match slot.checked_sub(self.behind()) {
            None => &self.index.slots[slot as usize],
            Some(slot) => &self.fresh.slots[slot as usize],
        }
    }

    /// Which messages have a fact that has ended. What is not stored yet is no fact.
    pub(super) fn ended(&self) -> &Ended {
        &self.index.ended
    }

    /// What decides whether each entry may be told, by slot.
    pub(super) fn cases(&self) -> impl Iterator<Item = &Case> {
        self.index.cases.iter().chain(&self.fresh.cases)
    }

    /// What decides whether an entry may be told.
    pub(super) fn case(&self, slot: u32) -> &Case {
        match slot.checked_sub(self.behind()) {
            None => &self.index.cases[slot as usize],
            Some(slot) => &self.fresh.cases[slot as usize],
        }
    }

    /// The entry of a slot.
    pub fn entry(&self, slot: u32) -> &Entry {
        &self.held(slot).entry
    }

    /// What is known of the text of a slot's entry.
    pub fn text(&self, slot: u32) -> &Text {
        &self.held(slot).text
    }

    /// The slot of a memory.
    pub fn slot(&self, id: MemoryId) -> Option<u32> {
        let indexed = self.index.by_id.get(&id).copied();
        let fresh = || self.fresh.by_id.get(&id).map(|slot| slot + self.behind());
        indexed.or_else(fresh)
    }

    /// Who holds a term.
    pub(super) fn holders(&self, term: &str) -> Holders<'_> {
        Holders::new(
            self.index.postings.of(term),
            self.fresh.postings.of(term),
            self.behind(),
        )
    }

    /// The chunk that was said before one in its session. None for what is no chunk.
    pub fn previous(&self, slot: u32) -> Option<u32> {
        let (session, place) = self.place(slot)?;
        let nearest = |index: &OwnerIndex| {
            let mut before = index.order.around(session, place).0;
            before.find(|other| !index.cases[other.slot as usize].removed)
        };
        self.either(nearest(self.index), nearest(&self.fresh), Ord::max)
    }

    /// The chunk that was said after one in its session. None for what is no chunk.
    pub fn next(&self, slot: u32) -> Option<u32> {
        let (session, place) = self.place(slot)?;
        let nearest = |index: &OwnerIndex| {
            let mut after = index.order.around(session, place).1;
            after.find(|other| !index.cases[other.slot as usize].removed)
        };
        self.either(nearest(self.index), nearest(&self.fresh), Ord::min)
    }

    /// Where a chunk stands in its session.
    fn place(&self, slot: u32) -> Option<(SessionId, Place)> {
        let held = self.held(slot);
        let source = held.entry.place()?;
        let place = Place {
            seq: source.seq,
            ordinal: held.text.ordinal,
            slot: slot.checked_sub(self.behind()).unwrap_or(slot),
        };
        Some((source.session_id, place))
    }

    fn either(
        &self,
        indexed: Option<Place>,
        fresh: Option<Place>,
        nearer: fn(Place, Place) -> Place,
    ) -> Option<u32> {
        let behind = self.behind();
        let fresh = fresh.map(|place| Place {
            slot: place.slot + behind,
            ..place
        });
        let found = match (indexed, fresh) {
            (Some(indexed), Some(fresh)) => Some(nearer(indexed, fresh)),
            (indexed, fresh) => indexed.or(fresh),
        };
        found.map(|place| place.slot)
    }

    /// The vectors of a model. The overlay has none.
    pub fn vectors(&self, model: &str) -> Option<&Vectors> {
        self.index.vectors.get(model)
    }

    /// The models that some vector is of.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.index.vectors.keys().map(String::as_str)
    }
}
