//! Text that speaks to the model instead of telling something: kept as memory, but not shown to a model before a person has confirmed it.
//!
//! Whatever is recalled stands in a prompt, so what a page, a tool or another person once had written into a conversation would speak to the
//! model in every later one (OWASP Top 10 for LLM Applications 2025, LLM01 Prompt Injection and LLM04 Data and Model Poisoning). The fence of
//! [`super::prompt`] tells the model that memory is data; this rule holds back what asks it to forget that.
//!
//! What is looked for is what is published of such texts: orders to disregard what the model was told (Perez and Ribeiro, *Ignore Previous
//! Prompt*, 2022), new roles without rules ("DAN"; Shen et al., *"Do Anything Now"*, 2023), requests for the hidden prompt or for secrets,
//! orders to keep something from the user and to carry data out by addresses and images (Greshake et al., *Not what you've signed up for*, 2023;
//! Rehberger, *embracethered.com*, 2023–2025), the marks by which chat templates part the roles, and text that only a program sees (tag
//! characters). In English and Chinese, whatever stands between the letters of a word: [`folding`] says how a text is read.
//!
//! Not found: what is encoded (base64, ciphers), other languages, an order in ordinary words ("recommend the blue one"), which is no
//! different from a person's wish. A wish how to answer, or something said *about* instructions, is not meant.
//!
//! Each part of a text is looked at a bounded number of times, so the work grows with the length alone.

mod chinese;
mod english;
mod folding;
mod markup;
mod pattern;

use std::ops::Range;

#[cfg(test)]
pub(super) use folding::is_invisible;
pub(super) use folding::skeleton;

use super::sentence::ranges;
use folding::Reading;
use pattern::GRAMMAR;

/// What makes a text look like an instruction to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// It wants what the model was told to be disregarded.
    Override,
    /// It wants the model to be something that has no rules.
    Role,
    /// It wants the hidden prompt, or secrets.
    Secrets,
    /// It wants something kept from the user.
    Hiding,
    /// It wants data carried out.
    Exfiltration,
    /// It holds marks by which prompts part the roles.
    Markup,
    /// It holds characters that only a program sees.
    Unseen,
}

impl Sign {
    /// Every sign.
    pub const ALL: [Self; 7] = [
        Self::Override,
        Self::Role,
        Self::Secrets,
        Self::Hiding,
        Self::Exfiltration,
        Self::Markup,
        Self::Unseen,
    ];
}

/// A part of a text that looks like an instruction to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Where it stands, in bytes: whole sentences.
    pub range: Range<usize>,
    /// What it was known by.
    pub sign: Sign,
}

/// By what a text looks like an instruction to the model, if it does.
pub fn sign(text: &str) -> Option<Sign> {
    found(text).into_iter().next().map(|passage| passage.sign)
}

/// The parts of a text that look like instructions to the model, in order: the sentences with a sign, and those right behind them in the same
/// paragraph that order something, for what follows "ignore what you were told" is what is to be done instead. What else the text says is
/// none of it.
pub fn passages(text: &str) -> Vec<Passage> {
    let found = found(text);
    if found.is_empty() {
        return found;
    }
    let sentences = ranges(text);
    let mut found = found.into_iter().peekable();
    let mut out: Vec<Passage> = Vec::new();
    for sentence in sentences {
        let mut sign = None;
        while let Some(passage) = found.peek() {
            if passage.range.start >= sentence.end {
                break;
            }
            sign = sign.or(Some(passage.sign));
            if passage.range.end > sentence.end {
                break;
            }
            found.next();
        }
        let last = out.last_mut();
        match (sign, last) {
            (Some(_), Some(last)) if joins(text, last, &sentence) => last.range.end = sentence.end,
            (Some(sign), _) => out.push(Passage {
                range: sentence,
                sign,
            }),
            (None, Some(last))
                if joins(text, last, &sentence) && orders(&text[sentence.clone()]) =>
            {
                last.range.end = sentence.end;
            }
            (None, _) => {}
        }
    }
    out
}

/// A text without its passages, each of them replaced by a mark.
pub fn without<'t>(text: &'t str, mark: &str) -> std::borrow::Cow<'t, str> {
    let passages = passages(text);
    if passages.is_empty() {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for Passage { range, .. } in passages {
        out.push_str(&text[at..range.start]);
        out.push_str(mark);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out.into()
}

/// Signs where they stand, in order.
fn found(text: &str) -> Vec<Passage> {
    let mut found = markup::marks(text);
    let reading = Reading::of(text, &GRAMMAR.words);
    found.extend(GRAMMAR.matches(&reading));
    found.sort_by_key(|passage| (passage.range.start, passage.range.end));
    found
}

/// Whether a sentence stands right behind a passage, in the same paragraph.
fn joins(text: &str, passage: &Passage, sentence: &Range<usize>) -> bool {
    let between = text.get(passage.range.end..sentence.start).unwrap_or("");
    between.trim().is_empty() && between.matches('\n').count() < 2
}

fn orders(sentence: &str) -> bool {
    let head: String = sentence.chars().take(ORDER_HEAD).collect();
    GRAMMAR.orders(&Reading::of(&head, &GRAMMAR.words))
}

/// How much of a sentence tells whether it orders something, in characters.
const ORDER_HEAD: usize = 60;

#[cfg(test)]
mod tests;
