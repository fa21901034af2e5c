//! What is said of a password without its name: "the new one is …".

use std::ops::Range;

use super::Text;
use super::value::{ends_clause, is_no_value, looks_secret, quoted, skip, token};

/// A phrase speaks of a password that was mentioned no further back than this, in bytes.
const NEAR: usize = 256;

/// Phrases that name another value of the same thing; whatever follows them and ends the clause is one.
#[rustfmt::skip]
const OTHERS: [&str; 29] = [
    " one is ", " one was ", " one: ", " one's ", " ones are ", " ones were ", " other is ", " other was ", " another is ", " changed it to ",
    " set it to ", " changed to ", " used to be ", " second is ", " first is ", " hers is ", " his is ", " mine is ",
    " yours is ", " theirs is ",
    "新的是", "旧的是", "另一个是", "第二个是", "新的：", "改成了", "换成了", "后来改成", "后来换成",
];
/// Phrases that may speak of anything; what follows must look like a password.
#[rustfmt::skip]
const PERHAPS: [&str; 14] = [
    "it is ", "it's ", "it was ", "now it is ", "it's now ", " is now ", "try ", "use ", "also ", "现在是", "以前是", "之前是", "原来是", "改为",
];
/// What is said of a new password that is none.
#[rustfmt::skip]
const PRAISE: [&str; 16] = [
    "better", "stronger", "longer", "shorter", "easier", "harder", "safer", "good", "fine", "worse", "ok", "okay", "different", "simpler", "secret", "mine",
];

/// `mentions`: where passwords were named or given, sorted.
pub(super) fn values(t: Text<'_>, mentions: &[usize], found: &mut Vec<Range<usize>>) {
    if mentions.is_empty() {
        return;
    }
    let mut phrases: Vec<(usize, bool)> = Vec::new();
    for (all, sure) in [(&OTHERS[..], true), (&PERHAPS[..], false)] {
        for phrase in all {
            phrases.extend(
                t.lower
                    .match_indices(phrase)
                    .map(|(at, _)| (at + phrase.len(), sure)),
            );
        }
    }
    phrases.sort_unstable();
    let mut mentioned = None;
    let mut next = mentions.iter().copied().peekable();
    for (start, sure) in phrases {
        while let Some(at) = next.next_if(|at| *at <= start) {
            mentioned = mentioned.max(Some(at));
        }
        if mentioned.is_none_or(|at| at + NEAR < start) {
            continue;
        }
        if let Some(value) = value(t.text, start, sure) {
            mentioned = Some(value.end);
            found.push(value);
        }
    }
}

fn value(text: &str, start: usize, sure: bool) -> Option<Range<usize>> {
    let start = skip(text, start, |c| c == ' ' || c == ':');
    let word = quoted(text, start).unwrap_or_else(|| token(text, start));
    let value = &text[word.clone()];
    let ends = ends_clause(text, word.end);
    let secret = looks_secret(value)
        && value.len() >= 4
        && (ends || !value.bytes().all(|b| b.is_ascii_digit()));
    let praise = PRAISE.contains(&value.to_ascii_lowercase().as_str());
    let is_value = secret || sure && ends && value.len() >= 4 && !praise;
    (is_value && !is_no_value(value)).then_some(word)
}
