//! What ranking reads of every entry, side by side in memory.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Document, Entry};
use crate::ids::SessionId;
use crate::memory::Scope;
use crate::memory::recall::Standing;

/// That there is none.
pub(super) const NONE: u32 = u32::MAX;

/// One entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// The chunk that was said before it in its session.
    pub(super) previous: u32,
    /// The chunk that was said after it.
    pub(super) next: u32,
    /// The number of the session in which it was said.
    pub(super) session: u32,
    /// The number of its speaker.
    pub(super) speaker: u32,
    /// Its terms, with repeats.
    pub(super) len: u32,
    /// `ln(1 + terms in sentences that do not ask)`.
    pub(super) stated: f32,
    /// The names it holds, with repeats; the most that are counted are 65,535.
    pub(super) names: u16,
    marks: u8,
}

const ASKS: u8 = 1;
const QUESTION: u8 = 2;
const TIME: u8 = 4;
const IDEOGRAPHIC: u8 = 8;

impl Row {
    /// Of a document, bound to nothing yet.
    pub(super) fn new(document: &Document) -> Self {
        let marks = [
            (ASKS, document.asks()),
            (QUESTION, document.holds_question()),
            (TIME, document.holds_time()),
            (IDEOGRAPHIC, document.is_ideographic()),
        ];
        Self {
            previous: NONE,
            next: NONE,
            session: NONE,
            speaker: NONE,
            len: document.len(),
            stated: f64::from(document.stated()).ln_1p() as f32,
            names: document.names().try_into().unwrap_or(u16::MAX),
            marks: (marks.iter())
                .map(|(mark, set)| if *set { *mark } else { 0 })
                .sum(),
        }
    }

    /// Whether it does nothing but ask.
    pub(super) fn asks(&self) -> bool {
        self.marks & ASKS != 0
    }

    /// Whether it asks, among others.
    pub(super) fn question(&self) -> bool {
        self.marks & QUESTION != 0
    }

    /// Whether it holds a word for a time.
    pub(super) fn time(&self) -> bool {
        self.marks & TIME != 0
    }

    /// Whether it holds Han, kana or hangul.
    pub(super) fn ideographic(&self) -> bool {
        self.marks & IDEOGRAPHIC != 0
    }
}

/// What decides whether an entry may be told: every question looks at it for every entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) standing: Standing,
    pub(super) scope: Scope,
    pub(super) removed: bool,
}

impl Case {
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            standing: entry.standing(),
            scope: entry.scope,
            removed: false,
        }
    }
}

/// Takes an entry out of the order of its session.
pub(super) fn unlink(rows: &mut [Row], slot: u32) {
    let Row { previous, next, .. } = rows[slot as usize];
    if previous != NONE {
        rows[previous as usize].next = next;
    }
    if next != NONE {
        rows[next as usize].previous = previous;
    }
    let row = &mut rows[slot as usize];
    (row.previous, row.next) = (NONE, NONE);
}

/// Puts entries into an order.
pub(super) fn link(rows: &mut [Row], slots: impl Iterator<Item = u32>) {
    let mut previous = NONE;
    for slot in slots {
        rows[slot as usize].previous = previous;
        rows[slot as usize].next = NONE;
        if previous != NONE {
            rows[previous as usize].next = slot;
        }
        previous = slot;
    }
}

/// Numbers for sessions and speakers.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    sessions: HashMap<SessionId, u32>,
    speakers: HashMap<Arc<str>, u32>,
    /// By number, each with how many entries are by that one.
    names: Vec<(Arc<str>, u32)>,
}

impl Numbers {
    /// The number of a session, a new one for a new session.
    pub(super) fn session(&mut self, id: SessionId) -> u32 {
        let next = self.sessions.len() as u32;
        *self.sessions.entry(id).or_insert(next)
    }

    /// The number of a session that is known.
    pub(super) fn known_session(&self, id: SessionId) -> Option<u32> {
        self.sessions.get(&id).copied()
    }

    /// The number of a speaker who is known.
    pub(super) fn known_speaker(&self, name: &str) -> Option<u32> {
        self.speakers.get(name).copied()
    }

    /// Counts one entry more by a speaker.
    pub(super) fn hold(&mut self, name: Option<&Arc<str>>) -> u32 {
        let Some(name) = name else { return NONE };
        let next = self.names.len() as u32;
        let number = *self.speakers.entry(Arc::clone(name)).or_insert(next);
        if number == next {
            self.names.push((Arc::clone(name), 0));
        }
        self.names[number as usize].1 += 1;
        number
    }

    /// Counts one entry less by a speaker.
    pub(super) fn release(&mut self, speaker: u32) {
        if let Some((_, held)) = self.names.get_mut(speaker as usize) {
            *held -= 1;
        }
    }

    /// How many sessions, and speakers, have a number.
    pub(super) fn len(&self) -> (u32, u32) {
        (self.sessions.len() as u32, self.names.len() as u32)
    }

    /// Each number of a speaker, with the name where there is an entry by that one.
    pub(super) fn speakers(&self) -> impl Iterator<Item = (u32, Option<&str>)> {
        (0..)
            .zip(&self.names)
            .map(|(number, (name, held))| (number, (*held > 0).then_some(&**name)))
    }

    pub(super) fn bytes(&self) -> usize {
        self.sessions.len() * 64 + self.names.len() * 128
    }
}
