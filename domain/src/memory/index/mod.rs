//! One owner's memories as recall looks through them: everything but the text, in the memory of the process.
//!
//! An index is filled and kept current by [`Delta`]s from the store and decides nothing by itself. What is asked of it goes through a
//! [`View`], which adds what is not stored yet; ranking is in [`search`].

mod abstention;
mod asked;
mod best;
mod coarse;
mod cosines;
mod dense;
mod diversity;
mod document;
mod ended;
mod entry;
mod fusion;
mod order;
mod postings;
mod rows;
mod scale;
pub mod search;
mod terms;
#[cfg(test)]
mod tests;
mod vectors;
mod view;

use std::collections::{BTreeMap, HashMap};

pub use self::document::{Document, Malformed};
use self::ended::Ended;
pub use self::entry::{Entry, Text};
use self::order::{Order, Place};
pub use self::postings::Posting;
use self::postings::Postings;
use self::rows::{Case, Numbers, Row};
pub use self::vectors::Vectors;
pub use self::view::View;
use super::Memory;
use crate::ids::{MemoryId, MessageId};

/// Slots of removed entries are given up once they are this many and a quarter of all.
const FEW_REMOVED: usize = 64;

/// A memory as it is to be indexed.
#[derive(Clone, Debug, PartialEq)]
pub struct Upsert {
    /// What is known of it.
    pub entry: Entry,
    /// Its terms.
    pub document: Document,
}

impl Upsert {
    /// Of a memory whose document has been made already.
    pub fn new(memory: &Memory, document: Document) -> Self {
        Self {
            entry: Entry::from(memory),
            document,
        }
    }

    /// Of a memory.
    pub fn of(memory: &Memory) -> Self {
        Self::new(memory, Document::of(memory))
    }
}

/// The embedding of a memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// The memory; what the index does not know is passed over.
    pub memory: MemoryId,
    /// The model that made it.
    pub model: String,
    /// The vector. One of another length than the model's others is passed over.
    pub vector: Vec<f32>,
}

/// What changed of an owner's memories. Applied in this order: removals, upserts, vectors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delta {
    /// Memories that are gone; what the index does not know is passed over.
    pub removed: Vec<MemoryId>,
    /// Memories that are new or have changed, each as it is now.
    pub upserts: Vec<Upsert>,
    /// Embeddings that are new or have changed. A memory whose document changes loses those it had.
    pub vectors: Vec<Embedded>,
}

#[derive(Clone, Debug)]
struct Slot {
    entry: Entry,
    text: Text,
}

/// The index.
#[derive(Clone, Debug, Default)]
pub struct OwnerIndex {
    slots: Vec<Slot>,
    rows: Vec<Row>,
    cases: Vec<Case>,
    numbers: Numbers,
    by_id: HashMap<MemoryId, u32>,
    postings: Postings,
    order: Order,
    ended: Ended,
    vectors: BTreeMap<String, Vectors>,
}

impl OwnerIndex {
    /// Of these memories.
    pub fn of<'m>(memories: impl IntoIterator<Item = &'m Memory>) -> Self {
        let mut index = Self::default();
        index.apply(Delta {
            upserts: memories.into_iter().map(Upsert::of).collect(),
            ..Delta::default()
        });
        index
    }

    /// How many memories it holds.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// What is known of a memory.
    pub fn get(&self, id: MemoryId) -> Option<&Entry> {
        let slot = *self.by_id.get(&id)?;
        Some(&self.slots[slot as usize].entry)
    }

    /// Those by whom there is a memory, in no order.
    pub fn speakers(&self) -> impl Iterator<Item = &str> {
        self.numbers.speakers().filter_map(|(_, name)| name)
    }

    /// Whether a fact that was learned from this message has ended, at whatever time.
    pub fn has_ended(&self, message: MessageId) -> bool {
        self.ended.has(message)
    }

    /// Takes changes in. To apply the same ones again changes nothing.
    pub fn apply(&mut self, delta: Delta) {
        for id in delta.removed {
            self.remove(id);
        }
        for upsert in delta.upserts {
            self.put(upsert);
        }
        let (cases, rows) = (&self.cases, &mut self.rows);
        self.order.settle(|places| {
            let there = places.iter().map(|place| place.slot);
            rows::link(rows, there.filter(|s| !cases[*s as usize].removed));
        });
        for embedded in delta.vectors {
            self.embed(&embedded);
        }
        let removed = self.slots.len() - self.by_id.len();
        if removed >= FEW_REMOVED && removed * 4 >= self.slots.len() {
            self.compact();
        }
    }

    fn put(&mut self, upsert: Upsert) {
        let Upsert { entry, document } = upsert;
        let text = Text::new(&entry, &document);
        if let Some(&slot) = self.by_id.get(&entry.id) {
            let held = &mut self.slots[slot as usize];
            if held.text.print == text.print && held.entry.place() == entry.place() {
                let speaker = &mut self.rows[slot as usize].speaker;
                self.numbers.release(*speaker);
                *speaker = self.numbers.hold(entry.speaker.as_ref());
                self.cases[slot as usize] = Case::of(&entry);
                self.ended.release(&held.entry);
                self.ended.hold(&entry);
                held.entry = entry;
                return;
            }
            self.remove(entry.id);
        }
        let slot = self.slots.len() as u32;
        self.by_id.insert(entry.id, slot);
        self.postings.add(slot, &document);
        let mut row = Row::new(&document);
        row.speaker = self.numbers.hold(entry.speaker.as_ref());
        if let Some(source) = entry.place() {
            row.session = self.numbers.session(source.session_id);
            let place = Place {
                seq: source.seq,
                ordinal: text.ordinal,
                slot,
            };
            self.order.add(source.session_id, place);
        }
        self.rows.push(row);
        self.cases.push(Case::of(&entry));
        self.ended.hold(&entry);
        self.slots.push(Slot { entry, text });
    }

    fn remove(&mut self, id: MemoryId) {
        if let Some(slot) = self.by_id.remove(&id) {
            self.cases[slot as usize].removed = true;
            self.numbers.release(self.rows[slot as usize].speaker);
            self.ended.release(&self.slots[slot as usize].entry);
            rows::unlink(&mut self.rows, slot);
            for vectors in self.vectors.values_mut() {
                vectors.remove(slot);
            }
        }
    }

    fn embed(&mut self, embedded: &Embedded) {
        let Some(&slot) = self.by_id.get(&embedded.memory) else {
            return;
        };
        let length = embedded.vector.len();
        let vectors = self
            .vectors
            .entry(embedded.model.clone())
            .or_insert_with(|| Vectors::new(length));
        if vectors.dimensions() == length {
            vectors.set(slot, &embedded.vector);
        }
    }

    /// Gives up the slots of removed entries. The order of the others stays.
    fn compact(&mut self) {
        let mut next = 0;
        let moved: Vec<Option<u32>> = self
            .cases
            .iter()
            .map(|case| {
                (!case.removed).then(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect();
        let to = |slot: u32| moved[slot as usize];
        keep(&mut self.rows, &moved);
        keep(&mut self.cases, &moved);
        keep(&mut self.slots, &moved);
        self.numbers = Numbers::default();
        for (row, slot) in self.rows.iter_mut().zip(&self.slots) {
            row.previous = moved
                .get(row.previous as usize)
                .copied()
                .flatten()
                .unwrap_or(rows::NONE);
            row.next = moved
                .get(row.next as usize)
                .copied()
                .flatten()
                .unwrap_or(rows::NONE);
            row.speaker = self.numbers.hold(slot.entry.speaker.as_ref());
            if let Some(source) = slot.entry.place() {
                row.session = self.numbers.session(source.session_id);
            }
        }
        self.postings.renumber(to);
        self.order.renumber(to);
        for vectors in self.vectors.values_mut() {
            vectors.renumber(to);
        }
        for slot in self.by_id.values_mut() {
            *slot = to(*slot).unwrap_or(*slot);
        }
    }

    /// An estimate of the memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        // An entry's sources and places lie beside it; a table of ids is half full.
        let each = size_of::<Slot>()
            + size_of::<Row>()
            + size_of::<Case>()
            + 64
            + size_of::<Place>()
            + 2 * size_of::<(MemoryId, u32)>();
        let vectors: usize = self.vectors.values().map(Vectors::bytes).sum();
        size_of::<Self>()
            + self.slots.len() * each
            + self.postings.bytes()
            + self.numbers.bytes()
            + self.ended.bytes()
            + vectors
    }
}

/// Leaves those that have a new place, and no room for others.
fn keep<T>(all: &mut Vec<T>, moved: &[Option<u32>]) {
    let mut kept = moved.iter().map(Option::is_some);
    all.retain(|_| kept.next().unwrap_or(false));
    all.shrink_to_fit();
}
