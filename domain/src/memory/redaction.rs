//! Credentials are taken out before anything is remembered: a memory is shown to models and searched for years.
//!
//! What is recognised: tokens by the prefixes their issuers document, bearer and basic authorisation, JSON web tokens, private keys in PEM,
//! passwords in addresses, payment cards by their check digit (ISO/IEC 7812, Luhn), and whatever a person calls a password, in English and
//! Chinese. Where it is not sure it takes out more rather than less.

use std::ops::Range;

mod labelled;

/// What stands in place of a credential.
pub const MARK: &str = "[redacted]";

/// A text without its credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted {
    /// The text with [`MARK`] in each place.
    pub text: String,
    /// Whether there was any.
    pub found: bool,
}

/// Takes credentials out of a text. Redact a whole message before cutting it into chunks, else a key may be cut in two.
pub fn redact(text: &str) -> Redacted {
    let mut found = Vec::new();
    private_keys(text, &mut found);
    tokens(text, &mut found);
    authorisation(text, &mut found);
    addresses(text, &mut found);
    cards(text, &mut found);
    labelled::values(text, &mut found);
    found.retain(|range| !range.is_empty() && !text[range.clone()].starts_with(MARK));
    found.sort_by_key(|range| (range.start, range.end));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for range in &found {
        if range.start >= at {
            out.push_str(&text[at..range.start]);
            out.push_str(MARK);
        }
        at = at.max(range.end);
    }
    out.push_str(&text[at..]);
    Redacted {
        text: out,
        found: !found.is_empty(),
    }
}

/// Prefixes of issued tokens, with the fewest characters that follow.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 8),
    ("sk_test_", 8),
    ("rk_live_", 8),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("xoxa-", 8),
    ("xoxb-", 8),
    ("xoxe-", 8),
    ("xoxp-", 8),
    ("xoxr-", 8),
    ("xoxs-", 8),
    ("xapp-", 8),
    ("tmk_", 8),
    ("AIza", 30),
    ("hf_", 20),
    ("npm_", 30),
    ("pypi-", 16),
    ("SG.", 20),
    ("ya29.", 20),
];
/// Prefixes of AWS key ids; sixteen capitals and digits follow.
const AWS: [&str; 2] = ["AKIA", "ASIA"];

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.+/=~".contains(c)
}

/// The token that starts `text`; a point at its end is the sentence's.
fn token_len(text: &str) -> usize {
    let end = text.find(|c| !is_token(c)).unwrap_or(text.len());
    text[..end].trim_end_matches('.').len()
}

fn tokens(text: &str, found: &mut Vec<Range<usize>>) {
    let mut before = None;
    let mut skip_to = 0;
    // Where the run of token characters ends that `at` lies in: looked for once a run.
    let mut run_end = 0;
    for (at, c) in text.char_indices() {
        let starts = before.is_none_or(|b: char| !b.is_ascii_alphanumeric());
        before = Some(c);
        if !starts || !c.is_ascii_alphabetic() || at < skip_to {
            continue;
        }
        let rest = &text[at..];
        if at >= run_end {
            run_end = at + token_len(rest);
        }
        let len = run_end - at;
        let token = &rest[..len];
        let prefixed = PREFIXES.iter().any(|(prefix, fewest)| {
            token
                .strip_prefix(prefix)
                .is_some_and(|r| r.len() >= *fewest)
        });
        let aws = AWS.iter().any(|prefix| {
            token.strip_prefix(prefix).is_some_and(|r| {
                r.len() >= 16
                    && r.bytes()
                        .take(16)
                        .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
            })
        });
        let web_token =
            token.starts_with("eyJ") && token.len() >= 20 && token.matches('.').nth(1).is_some();
        if prefixed || aws || web_token {
            found.push(at..at + len);
            skip_to = at + len;
        }
    }
}

fn private_keys(text: &str, found: &mut Vec<Range<usize>>) {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    let mut from = 0;
    while let Some(start) = text[from..].find(BEGIN).map(|i| from + i) {
        let head = start + BEGIN.len();
        from = head;
        let Some(label) = text[head..].find("-----").map(|i| &text[head..head + i]) else {
            continue;
        };
        if !label.contains("PRIVATE KEY") {
            continue;
        }
        // A key that is cut off is a key all the same.
        let end = text[head..].find(END).map_or(text.len(), |i| {
            let tail = head + i + END.len();
            text[tail..]
                .find("-----")
                .map_or(text.len(), |j| tail + j + 5)
        });
        found.push(start..end);
        from = end;
    }
}

fn authorisation(text: &str, found: &mut Vec<Range<usize>>) {
    let lower = text.to_ascii_lowercase();
    for scheme in ["bearer ", "basic "] {
        for (at, _) in lower.match_indices(scheme) {
            let start = at + scheme.len();
            let len = token_len(&text[start..]);
            let value = &text[start..start + len];
            let plain_word = value.bytes().all(|b| b.is_ascii_lowercase()) && len < 16;
            if len >= 8 && !plain_word {
                found.push(start..start + len);
            }
        }
    }
    for (at, header) in lower.match_indices("authorization:") {
        let start = at + header.len();
        let line = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let value = text[start..line].trim();
        // "Authorization: Bearer …" in an explanation has no value to hide.
        if value.split_whitespace().any(|word| word.len() >= 8) {
            let lead = text[start..line].len() - text[start..line].trim_start().len();
            found.push(start + lead..start + lead + value.len());
        }
    }
}

/// The login of an address is no longer than this, in bytes. Ours: it bounds the work on a hostile text.
const LONGEST_LOGIN: usize = 2_048;

/// The password of `scheme://user:password@host`.
fn addresses(text: &str, found: &mut Vec<Range<usize>>) {
    for (at, mark) in text.match_indices("://") {
        let start = at + mark.len();
        let most = text.floor_char_boundary(start.saturating_add(LONGEST_LOGIN));
        let end = text[start..most]
            .find(|c: char| c.is_whitespace() || "/\"'<>`，。".contains(c))
            .map_or(most, |i| start + i);
        let authority = &text[start..end];
        if let Some((login, _)) = authority.rsplit_once('@')
            && let Some((user, password)) = login.split_once(':')
        {
            let from = start + user.len() + 1;
            found.push(from..from + password.len());
        }
    }
}

/// Runs of 13–19 digits, in groups or not, that start like a payment card and pass the Luhn check.
fn cards(text: &str, found: &mut Vec<Range<usize>>) {
    let mut digits: Vec<u32> = Vec::new();
    let mut start = 0;
    let mut end = 0;
    let mut gap = false;
    for (at, c) in text.char_indices().chain([(text.len(), '\n')]) {
        if let Some(digit) = digit(c) {
            if digits.is_empty() {
                start = at;
            }
            digits.push(digit);
            end = at + c.len_utf8();
            gap = false;
        } else if matches!(c, ' ' | '-') && !gap && !digits.is_empty() {
            gap = true;
        } else {
            if is_card(&digits) {
                found.push(start..end);
            }
            digits.clear();
            gap = false;
        }
    }
}

fn digit(c: char) -> Option<u32> {
    match c {
        '\u{ff10}'..='\u{ff19}' => Some(c as u32 - 0xff10), // full-width
        _ => c.to_digit(10),
    }
}

fn is_card(digits: &[u32]) -> bool {
    if !(13..=19).contains(&digits.len()) || !(2..=6).contains(&digits[0]) {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, &d)| match (i % 2, d * 2) {
            (0, _) => d,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests;
