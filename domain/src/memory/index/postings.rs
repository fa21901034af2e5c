//! Which entries hold a term.

use std::collections::HashMap;

use super::Document;

/// That an entry holds a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The entry's place in its index.
    pub slot: u32,
    /// How often it holds the term.
    pub count: u32,
}

/// The postings of a term in an index and in what lies beside it. Some may be of removed entries, which no eligibility admits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holders<'p> {
    indexed: &'p [Posting],
    fresh: &'p [Posting],
    /// How many slots the index has: the others' begin behind them.
    behind: u32,
}

impl<'p> Holders<'p> {
    pub(super) fn new(indexed: &'p [Posting], fresh: &'p [Posting], behind: u32) -> Self {
        Self {
            indexed,
            fresh,
            behind,
        }
    }

    /// Each posting, by slot.
    pub(super) fn iter(&self) -> impl Iterator<Item = Posting> {
        let behind = self.behind;
        let fresh = self.fresh.iter().map(move |posting| Posting {
            slot: posting.slot + behind,
            count: posting.count,
        });
        self.indexed.iter().copied().chain(fresh)
    }

    /// Whether an entry holds the term.
    pub(super) fn contains(&self, slot: u32) -> bool {
        let (postings, slot) = match slot.checked_sub(self.behind) {
            None => (self.indexed, slot),
            Some(slot) => (self.fresh, slot),
        };
        let found = postings.binary_search_by_key(&slot, |posting| posting.slot);
        found.is_ok()
    }
}

/// The terms of an index, each with its postings by slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Postings {
    ids: HashMap<Box<str>, u32>,
    lists: Vec<Vec<Posting>>,
    /// All postings, and all bytes of terms.
    held: (usize, usize),
}

impl Postings {
    /// Adds an entry. Slots only rise, so each list stays sorted.
    pub(super) fn add(&mut self, slot: u32, document: &Document) {
        for (term, count) in document.terms() {
            let posting = Posting { slot, count };
            self.held.0 += 1;
            if let Some(&id) = self.ids.get(term) {
                self.lists[id as usize].push(posting);
            } else {
                self.ids.insert(term.into(), self.lists.len() as u32);
                self.lists.push(vec![posting]);
                self.held.1 += term.len();
            }
        }
    }

    /// The postings of a term, those of removed entries among them, by slot.
    pub(super) fn of(&self, term: &str) -> &[Posting] {
        self.ids
            .get(term)
            .map_or(&[], |&id| &self.lists[id as usize])
    }

    /// Moves each entry to its new slot, and leaves those out that have none. The order of the slots must stay.
    pub(super) fn renumber(&mut self, slot: impl Fn(u32) -> Option<u32>) {
        let mut lists = std::mem::take(&mut self.lists);
        self.held = (0, 0);
        let ids = std::mem::take(&mut self.ids);
        for (term, id) in ids {
            let mut list = std::mem::take(&mut lists[id as usize]);
            list.retain_mut(|posting| match slot(posting.slot) {
                Some(new) => {
                    posting.slot = new;
                    true
                }
                None => false,
            });
            if !list.is_empty() {
                list.shrink_to_fit();
                self.held.0 += list.len();
                self.held.1 += term.len();
                self.ids.insert(term, self.lists.len() as u32);
                self.lists.push(list);
            }
        }
    }

    /// An estimate of the memory it takes: postings with the slack of growing lists, and for each term its text, its list and its place in
    /// the table.
    pub(super) fn bytes(&self) -> usize {
        let (postings, text) = self.held;
        postings * size_of::<Posting>() * 3 / 2 + text + self.lists.len() * 96
    }
}
