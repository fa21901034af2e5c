//! A part of the changes of an owner's memories, cut so that nothing between two parts is lost.

use tidemark_application::ports::memories::{ChangePosition, IndexDelta};
use tidemark_domain::ids::MemoryId;
use tidemark_domain::memory::index::{Delta, Embedded, Upsert};

/// What a store read behind a position: memories, removals, and vectors that are newer than their memories, by change and id, at most `limit` of
/// each. The vectors of the memories that are read are read with them, whatever their change: an index passes over the vector of a memory that it
/// does not know yet.
#[derive(Debug)]
pub(super) struct ReadChanges {
    /// The owner's newest change.
    pub(super) change: i64,
    pub(super) reset: bool,
    pub(super) limit: usize,
    pub(super) upserts: Vec<(i64, Upsert)>,
    pub(super) removed: Vec<(i64, MemoryId)>,
    pub(super) vectors: Vec<(i64, Embedded)>,
}

/// Where to read from: behind the position, or from nothing when the position is from before the owner's memories were erased, or from a
/// time that the store does not know (it was set back).
pub(super) fn begin(after: ChangePosition, change: i64, floor: i64) -> (ChangePosition, bool) {
    let unknown = after.change > change || after.change < floor;
    if unknown && after != ChangePosition::START {
        (ChangePosition::START, true)
    } else {
        (after, false)
    }
}

impl ReadChanges {
    /// What is complete of it. Where one of the lists is full there may be more behind its end, so the others are cut there too.
    pub(super) fn into_delta(mut self) -> IndexDelta {
        let end = |last: Option<(i64, MemoryId)>, len| last.filter(|_| len >= self.limit);
        let upserts = self.upserts.last().map(|(change, u)| (*change, u.entry.id));
        let vectors = self.vectors.last().map(|(change, v)| (*change, v.memory));
        let ends = [
            end(upserts, self.upserts.len()),
            end(self.removed.last().copied(), self.removed.len()),
            end(vectors, self.vectors.len()),
        ];
        let bound = ends.into_iter().flatten().min();
        if let Some(bound) = bound {
            self.upserts
                .retain(|(change, upsert)| (*change, upsert.entry.id) <= bound);
            self.removed.retain(|removed| *removed <= bound);
            self.vectors
                .retain(|(change, vector)| (*change, vector.memory) <= bound);
        }
        IndexDelta {
            change: self.change,
            reset: self.reset,
            delta: Delta {
                removed: self.removed.into_iter().map(|(_, id)| id).collect(),
                upserts: self.upserts.into_iter().map(|(_, u)| u).collect(),
                vectors: self.vectors.into_iter().map(|(_, v)| v).collect(),
            },
            next: bound.map(|(change, id)| ChangePosition { change, id }),
        }
    }
}
