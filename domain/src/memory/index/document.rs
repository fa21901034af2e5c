//! What the index keeps of a memory's text: its terms with their counts, and what ranking asks of the text besides, in one compact form
//! that the stores keep beside the memory and never look into.
//!
//! Form: a version, a byte of flags, then the number of terms with repeats, the number of characters and the number of distinct terms, then each
//! term in its order as length, UTF-8 and count. Numbers are LEB128.

use std::collections::BTreeMap;

use crate::memory::sentence::only_asks;
use crate::memory::{Layer, Memory, analysis};

/// Rises whenever the form, or what the analysis makes of a text, changes.
const VERSION: u8 = 1;
/// The text does nothing but ask.
const ASKS: u8 = 1;

/// The entry of a text in the index of its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    bytes: Vec<u8>,
    /// Where the terms begin.
    start: usize,
    len: u32,
    chars: u32,
}

/// Bytes that no version of this program has written, or a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the terms of a memory are not in a form that this program knows")]
pub struct Malformed;

impl Document {
    /// Of a memory: what it says, who said it, and, for an episodic one, the day it was said on, so that a question that names
    /// a person or a day finds it.
    ///
    /// It depends on content, speaker, layer and `valid_from` alone.
    pub fn of(memory: &Memory) -> Self {
        let mut found = analysis::terms(&memory.content);
        if let Some(speaker) = &memory.speaker {
            found.extend(analysis::terms(speaker));
        }
        if memory.layer == Layer::Episodic {
            found.extend(analysis::terms(
                &memory.valid_from.format("%Y-%m-%d").to_string(),
            ));
        }
        let chars = memory.content.chars().count() as u32;
        Self::pack(found, chars, only_asks(&memory.content))
    }

    fn pack(found: Vec<String>, chars: u32, asks: bool) -> Self {
        let len = found.len() as u32;
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for term in found {
            *counts.entry(term).or_default() += 1;
        }
        let mut bytes = vec![VERSION, if asks { ASKS } else { 0 }];
        for number in [len, chars, counts.len() as u32] {
            push_number(&mut bytes, number);
        }
        let start = bytes.len();
        for (term, count) in counts {
            push_number(&mut bytes, term.len() as u32);
            bytes.extend_from_slice(term.as_bytes());
            push_number(&mut bytes, count);
        }
        Self {
            bytes,
            start,
            len,
            chars,
        }
    }

    /// Reads what [`Self::as_bytes`] gave.
    ///
    /// # Errors
    /// When the bytes are of another form.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, Malformed> {
        let mut rest = match bytes.as_slice() {
            [VERSION, flags, rest @ ..] if flags & !ASKS == 0 => rest,
            _ => return Err(Malformed),
        };
        let len = take_number(&mut rest).ok_or(Malformed)?;
        let chars = take_number(&mut rest).ok_or(Malformed)?;
        let distinct = take_number(&mut rest).ok_or(Malformed)?;
        let start = bytes.len() - rest.len();
        for _ in 0..distinct {
            take_term(&mut rest).ok_or(Malformed)?;
        }
        if !rest.is_empty() {
            return Err(Malformed);
        }
        Ok(Self {
            bytes,
            start,
            len,
            chars,
        })
    }

    /// The form in which a store keeps it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its distinct terms with their counts, sorted by term.
    pub fn terms(&self) -> impl Iterator<Item = (&str, u32)> {
        let mut rest = &self.bytes[self.start..];
        std::iter::from_fn(move || take_term(&mut rest))
    }

    /// How many terms it has, with repeats.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether it has no term at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many characters the content has.
    pub fn chars(&self) -> u32 {
        self.chars
    }

    /// Whether the content does nothing but ask.
    pub fn asks(&self) -> bool {
        self.bytes[1] & ASKS != 0
    }
}

fn push_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u64;
    for shift in (0..35).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return u32::try_from(number).ok();
        }
    }
    None
}

fn take_term<'b>(bytes: &mut &'b [u8]) -> Option<(&'b str, u32)> {
    let len = take_number(bytes)? as usize;
    let (term, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    let count = take_number(bytes)?;
    Some((std::str::from_utf8(term).ok()?, count))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::super::super::testing::{day, memory};
    use super::*;
    use proptest::prelude::*;

    fn terms(document: &Document) -> Vec<(&str, u32)> {
        document.terms().collect()
    }

    #[test]
    fn a_document_counts_its_terms() {
        let document = Document::of(&memory(1, "budget, Budgets and 预算?"));
        assert_eq!(terms(&document), [("budget", 2), ("预算", 1)]);
        assert_eq!((document.len(), document.chars()), (3, 23));
        assert!(document.asks());
        assert!(!Document::of(&memory(1, "My budget is 300k.")).asks());
        assert!(Document::of(&memory(1, "?")).is_empty());
    }

    #[test]
    fn an_episodic_memory_is_found_by_the_day_it_was_said_on_and_by_who_said_it() {
        let mut said = memory(1, "tea");
        said.valid_from = day(2);
        said.speaker = Some("Melanie".to_owned());
        assert_eq!(terms(&Document::of(&said)), [("melani", 1), ("tea", 1)]);
        said.layer = Layer::Episodic;
        let document = Document::of(&said);
        for term in ["2", "may", "melani", "tea"] {
            assert!(terms(&document).contains(&(term, 1)), "{term}");
        }
    }

    #[test]
    fn bytes_of_another_form_are_refused() {
        let good = Document::of(&memory(1, "My budget is 300k"))
            .as_bytes()
            .to_vec();
        assert!(Document::parse(good.clone()).is_ok());
        let mut later = good.clone();
        later[0] += 1;
        let mut longer = good.clone();
        longer.push(0);
        let shorter = good[..good.len() - 1].to_vec();
        for bad in [Vec::new(), vec![VERSION], later, longer, shorter] {
            assert_eq!(Document::parse(bad), Err(Malformed));
        }
    }

    proptest! {
        #[test]
        fn what_was_packed_is_read_again(content in "\\PC{0,60}", many in 0_usize..300) {
            let document = Document::of(&memory(1, &format!("{content}{}", " word".repeat(many))));
            let read = Document::parse(document.as_bytes().to_vec()).unwrap();
            prop_assert_eq!(terms(&read), terms(&document));
            prop_assert_eq!(&read, &document);
            prop_assert_eq!(terms(&read).iter().map(|t| t.1).sum::<u32>(), read.len());
            prop_assert!(terms(&read).is_sorted());
        }

        #[test]
        fn no_bytes_are_too_strange_to_be_judged(bytes in prop::collection::vec(any::<u8>(), 0..40), known in any::<bool>()) {
            let mut bytes = bytes;
            if known && bytes.len() > 1 {
                bytes[0] = VERSION;
                bytes[1] &= ASKS;
            }
            if let Ok(document) = Document::parse(bytes.clone()) {
                prop_assert_eq!(document.as_bytes(), bytes.as_slice());
                let _ = document.terms().count();
            }
        }
    }
}
