//! What the index keeps of a memory's text: its terms with their counts, and what ranking asks of the text besides, in one compact form
//! that the stores keep beside the memory and never look into.
//!
//! Form: a version, a byte of flags, then the number of terms with repeats, of characters, of terms in sentences that do not ask, of names, and of
//! distinct terms, then each term in its order as length, UTF-8 and count. Numbers are LEB128.

use std::collections::BTreeMap;

use crate::memory::sentence::{is_question, sentences};
use crate::memory::{Layer, Memory, analysis, cues};

/// Rises whenever the form, or what the analysis makes of a text, changes.
const VERSION: u8 = 2;
/// The text does nothing but ask.
const ASKS: u8 = 1;
/// It asks, among others.
const QUESTION: u8 = 2;
/// It holds a word for a time.
const TIME: u8 = 4;
/// It holds Han, kana or hangul.
const IDEOGRAPHIC: u8 = 8;
const FLAGS: u8 = ASKS | QUESTION | TIME | IDEOGRAPHIC;

/// The entry of a text in the index of its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    bytes: Vec<u8>,
    /// Where the terms begin.
    start: usize,
    len: u32,
    chars: u32,
    stated: u32,
    names: u32,
}

/// What ranking asks of a text besides its terms.
#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    flags: u8,
    chars: u32,
    stated: u32,
    names: u32,
}

impl Shape {
    fn of(content: &str) -> Self {
        let all = sentences(content);
        let asking = all.iter().filter(|s| is_question(s)).count();
        let held = cues::held(content);
        let mut flags = 0;
        for (flag, set) in [
            (ASKS, asking > 0 && asking == all.len()),
            (QUESTION, asking > 0),
            (TIME, held.time),
            (IDEOGRAPHIC, content.contains(analysis::is_ideographic)),
        ] {
            flags |= if set { flag } else { 0 };
        }
        let stated = all.iter().filter(|s| !is_question(s));
        Self {
            flags,
            chars: content.chars().count() as u32,
            stated: stated.map(|s| analysis::terms(s).len() as u32).sum(),
            names: cues::names(content).len() as u32,
        }
    }
}

/// Bytes that no version of this program has written, or a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the terms of a memory are not in a form that this program knows")]
pub struct Malformed;

impl Document {
    /// Of a memory: what it says, who said it, and, for an episodic one, the day it was said on, so that a question that names
    /// a person or a day finds it.
    ///
    /// It depends on content, speaker, the layer that it was made in and `valid_from` alone.
    pub fn of(memory: &Memory) -> Self {
        let mut found = analysis::terms(&memory.content);
        if let Some(speaker) = &memory.speaker {
            found.extend(analysis::terms(speaker));
        }
        if memory.made_in() == Layer::Episodic {
            found.extend(analysis::terms(
                &memory.valid_from.format("%Y-%m-%d").to_string(),
            ));
        }
        Self::pack(found, Shape::of(&memory.content))
    }

    fn pack(found: Vec<String>, shape: Shape) -> Self {
        let len = found.len() as u32;
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for term in found {
            *counts.entry(term).or_default() += 1;
        }
        let mut bytes = vec![VERSION, shape.flags];
        let distinct = counts.len() as u32;
        for number in [len, shape.chars, shape.stated, shape.names, distinct] {
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
            chars: shape.chars,
            stated: shape.stated,
            names: shape.names,
        }
    }

    /// Reads what [`Self::as_bytes`] gave.
    ///
    /// # Errors
    /// When the bytes are of another form.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, Malformed> {
        let mut rest = match bytes.as_slice() {
            [VERSION, flags, rest @ ..] if flags & !FLAGS == 0 => rest,
            _ => return Err(Malformed),
        };
        let len = take_number(&mut rest).ok_or(Malformed)?;
        let chars = take_number(&mut rest).ok_or(Malformed)?;
        let stated = take_number(&mut rest).ok_or(Malformed)?;
        let names = take_number(&mut rest).ok_or(Malformed)?;
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
            stated,
            names,
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

    /// Whether the content asks, among others.
    pub fn holds_question(&self) -> bool {
        self.bytes[1] & QUESTION != 0
    }

    /// Whether the content holds a word for a time.
    pub fn holds_time(&self) -> bool {
        self.bytes[1] & TIME != 0
    }

    /// Whether the content holds Han, kana or hangul.
    pub fn is_ideographic(&self) -> bool {
        self.bytes[1] & IDEOGRAPHIC != 0
    }

    /// How many terms stand in sentences that do not ask.
    pub fn stated(&self) -> u32 {
        self.stated
    }

    /// How many names the content holds, with repeats.
    pub fn names(&self) -> u32 {
        self.names
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
    fn a_document_knows_what_its_text_holds() {
        let document = Document::of(&memory(1, "Yesterday I met Ada twice. Did you know?"));
        assert!(document.holds_question() && !document.asks());
        assert!(document.holds_time() && !document.is_ideographic());
        assert_eq!((document.stated(), document.names()), (4, 1));
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
                bytes[1] &= FLAGS;
            }
            if let Ok(document) = Document::parse(bytes.clone()) {
                prop_assert_eq!(document.as_bytes(), bytes.as_slice());
                let _ = document.terms().count();
            }
        }
    }
}
