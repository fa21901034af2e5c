//! A text as the recognisers read it: compatibility forms of ASCII as ASCII, what is invisible left out.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

/// Marks that end a clause in Chinese without a space after them; folded, they would read like a mark inside a password.
const KEPT: &str = "，；！？（）";

/// The folded text, and where each part of it stands in the text it was made of.
pub(super) struct Folded {
    pub(super) text: String,
    /// The same in lower case; every offset means the same place.
    pub(super) lower: String,
    /// For each byte of the folded text the character of the original; `None` if nothing was folded.
    origins: Option<Vec<Range<usize>>>,
}

impl Folded {
    pub(super) fn new(original: &str) -> Self {
        if original.chars().all(|c| form(c) == Form::Itself) {
            return Self {
                text: original.to_owned(),
                lower: original.to_ascii_lowercase(),
                origins: None,
            };
        }
        let mut text = String::with_capacity(original.len());
        let mut origins = Vec::with_capacity(original.len());
        for (at, c) in original.char_indices() {
            match form(c) {
                Form::Itself => text.push(c),
                Form::Nothing => {}
                Form::Ascii => text.extend([c].into_iter().nfkc()),
            }
            origins.resize(text.len(), at..at + c.len_utf8());
        }
        Self {
            lower: text.to_ascii_lowercase(),
            text,
            origins: Some(origins),
        }
    }

    /// Where a part that is not empty stands in the original; a character is never parted.
    pub(super) fn origin(&self, part: &Range<usize>) -> Range<usize> {
        match &self.origins {
            None => part.clone(),
            Some(origins) => origins[part.start].start..origins[part.end - 1].end,
        }
    }
}

#[derive(PartialEq, Eq)]
enum Form {
    Itself,
    /// Shows nothing: zero-width characters and marks of direction, which part a word for a program and not for a reader.
    Nothing,
    Ascii,
}

fn form(c: char) -> Form {
    match c {
        '\0'..='\u{9f}' => Form::Itself,
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{feff}' => Form::Nothing,
        _ if KEPT.contains(c) => Form::Itself,
        _ if [c].into_iter().nfkc().all(|part| part.is_ascii()) => Form::Ascii,
        _ => Form::Itself,
    }
}
