//! Sentences as clauses: a rule looks at the opening of each.

use super::{chinese, english, folded, is_ideographic, strip_leads};

/// No subject takes more bytes.
const LONGEST_SUBJECT: usize = 200;

/// A part of a sentence.
pub(super) struct Clause<'a> {
    /// Where it begins, in bytes.
    pub(super) start: usize,
    pub(super) text: &'a str,
    /// A colon ends it.
    pub(super) colon: bool,
}

/// Clauses with their offsets: parted at commas, semicolons, dashes and before "and", "but"; not inside quotation marks, between a
/// subject and its value ("Budget: …"), or within "not … but …".
pub(super) fn clauses(sentence: &str) -> Vec<Clause<'_>> {
    let mut out = Vec::new();
    let mut start = 0;
    // What was looked at is not looked at again: sentences may be as long as messages.
    let mut denied = false;
    let mut quoted: Option<char> = None;
    let mut chars = sentence.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match quoted {
            Some(close) if c == close => quoted = None,
            Some(_) => continue,
            None => quoted = closing_quote(c),
        }
        if quoted.is_some() {
            continue;
        }
        let spaced = chars
            .peek()
            .is_none_or(|&(_, next)| next.is_whitespace() || is_ideographic(next));
        let end = at + c.len_utf8();
        let colon = c == '：' || (c == ':' && spaced);
        let parts = colon
            || matches!(c, '，' | '；' | '—')
            || (matches!(c, ',' | ';') && spaced)
            || (c == ' '
                && [" and ", " but ", " - "]
                    .iter()
                    .any(|w| sentence[at..].starts_with(w)));
        denied |= c == '不' || sentence[at..].starts_with(" not ");
        if !parts {
            continue;
        }
        let before = &sentence[start..at];
        let joined = (colon && before.len() <= LONGEST_SUBJECT && names_a_subject(before))
            || (denied && sentence[at..].starts_with(" but "))
            || (denied && sentence[end..].starts_with("而是"));
        if !joined {
            out.push(Clause {
                start,
                text: &sentence[start..at],
                colon,
            });
            start = end;
            denied = false;
        }
    }
    out.push(Clause {
        start,
        text: &sentence[start..],
        colon: false,
    });
    out
}

/// The words of each clause.
pub(in crate::memory) fn texts(sentence: &str) -> impl Iterator<Item = &str> {
    clauses(sentence).into_iter().map(|clause| clause.text)
}

/// "Budget: …", "Our new deadline: …".
fn names_a_subject(clause: &str) -> bool {
    let text = folded(clause);
    if text.chars().any(is_ideographic) {
        let lead = strip_leads(&text, chinese::LEADS);
        chinese::is_subject(&text[lead..])
    } else {
        let lead = strip_leads(&text, english::LEADS);
        english::is_subject(&text[lead..])
    }
}

/// The mark that closes a quotation opened by `c`. A straight apostrophe opens none: it is in "don't".
fn closing_quote(c: char) -> Option<char> {
    match c {
        '"' | '`' => Some(c),
        '“' => Some('”'),
        '「' => Some('」'),
        '『' => Some('』'),
        '«' => Some('»'),
        _ => None,
    }
}
