//! A question as ranking takes it apart, and what of it is seen of an entry at once.

use super::View;
use super::rows::NONE;
use super::search::{Eligible, Query};
use crate::memory::analysis::is_ideographic;
use crate::memory::cues::{self, Cues};
use crate::memory::lexical;
use crate::memory::speakers::Names;
use crate::memory::when::{self, Span};

/// A question as ranking takes it apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// Its terms, without the names of speakers where other terms are left.
    pub(super) terms: Vec<String>,
    /// The one speaker it names, if it names just one.
    speaker: Option<u32>,
    /// Terms of that name.
    name: Vec<String>,
    /// The terms of all speakers' names, when the question wants a name.
    names: Vec<String>,
    /// The times it names.
    pub(super) spans: Vec<Span>,
    /// What it wants.
    pub(super) wanted: Cues,
    /// It wants several things.
    pub(super) several: bool,
    /// It is written with Han, kana or hangul.
    pub(super) ideographic: bool,
}

impl Asked {
    /// A question to these memories.
    pub(super) fn of(view: &View<'_>, query: &Query, eligible: &Eligible) -> Self {
        let speakers = view.speakers();
        let names = Names::new(speakers.iter().map(|(_, name)| name));
        let who = names.named(&query.text);
        let bare = names.without(&query.text);
        let mut terms = lexical::query_terms(&bare);
        if terms.is_empty() {
            terms = lexical::query_terms(&query.text);
        }
        let speaker = match who.iter().copied().collect::<Vec<_>>()[..] {
            [only] => speakers.get(only).copied(),
            _ => None,
        };
        let wanted = cues::wanted(&bare);
        let all = speakers.iter().filter(|_| wanted.name);
        let latest = eligible.newest.unwrap_or(query.moment.now);
        Self {
            terms,
            speaker: speaker.map(|(number, _)| number),
            name: speaker.map_or_else(Vec::new, |(_, name)| lexical::query_terms(name)),
            names: lexical::query_terms(&all.map(|(_, name)| *name).collect::<Vec<_>>().join(" ")),
            spans: when::spans(&query.text, query.moment.now, latest),
            wanted,
            several: cues::wants_several(&bare),
            ideographic: query.text.contains(is_ideographic),
        }
    }

    /// How many names each entry holds besides those of speakers; empty when the question wants none.
    pub(super) fn other_names(&self, view: &View<'_>) -> Vec<u16> {
        if !self.wanted.name {
            return Vec::new();
        }
        let mut names: Vec<u16> = view.rows().iter().map(|row| row.names).collect();
        for term in &self.names {
            for posting in view.holders(term).iter() {
                let held = &mut names[posting.slot as usize];
                *held = held.saturating_sub(posting.count.try_into().unwrap_or(u16::MAX));
            }
        }
        names
    }

    /// Which entries are by the one person that the question names, or, where nobody is known to have said them, name that person; empty when the
    /// question names no one.
    pub(super) fn by_the_named(&self, view: &View<'_>) -> Vec<bool> {
        let Some(speaker) = self.speaker else {
            return Vec::new();
        };
        let rows = view.rows();
        let mut out: Vec<bool> = rows.iter().map(|row| row.speaker == speaker).collect();
        for term in &self.name {
            for posting in view.holders(term).iter() {
                out[posting.slot as usize] |= rows[posting.slot as usize].speaker == NONE;
            }
        }
        out
    }
}
