//! What was said before and after.

use std::collections::{HashMap, HashSet};

use crate::ids::SessionId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) seq: i64,
    pub(super) ordinal: u32,
    pub(super) slot: u32,
}

/// The chunks of each session in the order in which they were said.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    sessions: HashMap<SessionId, Vec<Place>>,
    /// Sessions that a place was added to.
    touched: HashSet<SessionId>,
}

impl Order {
    /// Takes a place in; [`Self::settle`] has to follow before anything is asked.
    pub(super) fn add(&mut self, session: SessionId, place: Place) {
        self.sessions.entry(session).or_default().push(place);
        self.touched.insert(session);
    }

    /// Sorts what came out of order, and gives each session that changed to `settled`.
    pub(super) fn settle(&mut self, mut settled: impl FnMut(&[Place])) {
        for session in self.touched.drain() {
            if let Some(places) = self.sessions.get_mut(&session) {
                if !places.is_sorted() {
                    places.sort_unstable();
                }
                settled(places);
            }
        }
    }

    /// The places of a session that lie before and after one, each nearest first.
    pub(super) fn around(
        &self,
        session: SessionId,
        place: Place,
    ) -> (impl Iterator<Item = Place>, impl Iterator<Item = Place>) {
        let places = self.sessions.get(&session).map_or(&[][..], Vec::as_slice);
        let before = places.partition_point(|other| *other < place);
        let after = places.partition_point(|other| *other <= place);
        (
            places[..before].iter().rev().copied(),
            places[after..].iter().copied(),
        )
    }

    /// Moves each entry to its new slot, and leaves those out that have none.
    pub(super) fn renumber(&mut self, slot: impl Fn(u32) -> Option<u32>) {
        self.sessions.retain(|_, places| {
            places.retain_mut(|place| match slot(place.slot) {
                Some(new) => {
                    place.slot = new;
                    true
                }
                None => false,
            });
            !places.is_empty()
        });
    }
}
