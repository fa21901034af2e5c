//! Codes and phrases that let somebody in once, or recover an account.

use std::ops::Range;

use super::labelled::value::{bounded, quoted, skip};

#[rustfmt::skip]
const CODES: [&str; 32] = [
    "recovery code", "backup code", "verification code", "security code", "2fa code", "mfa code", "one-time code", "one time code", "login code",
    "auth code", "authentication code", "confirmation code", "access code", "scratch code", "emergency code", "otp",
    "door code", "gate code", "alarm code", "unlock code", "entry code",
    "恢复码", "备用码", "备份码", "验证码", "驗證碼", "动态码", "安全码", "校验码", "提取码", "救援码", "门禁码",
];
#[rustfmt::skip]
const SEEDS: [&str; 14] = [
    "seed phrase", "recovery phrase", "mnemonic", "secret phrase", "backup phrase", "wallet phrase", "seed words", "recovery words", "wallet seed", "backup words",
    "助记词", "種子短語", "种子短语", "恢复短语",
];
/// Words between the name of a code and the code.
#[rustfmt::skip]
const BETWEEN: [&str; 30] = [
    "is", "are", "was", "were", "for", "of", "on", "from", "my", "our", "the", "this", "these", "here", "now", "in", "case", "i", "lose", "phone", "as", "follows", "account", "following", "below",
    "to", "your", "new", "and", "s",
];
/// Behind one of these a name may follow: "for GitHub".
const BEFORE_A_NAME: [&str; 5] = ["for", "of", "on", "from", "my"];
/// Words of prose, none of which a seed phrase (BIP 39) has.
const PROSE: [&str; 18] = [
    "the", "and", "for", "are", "was", "not", "has", "have", "with", "from", "but", "your", "our",
    "were", "would", "could", "should", "because",
];
/// Between the name and the code stand no more bytes than this.
const NEAR: usize = 96;
const LONGEST_CODE: usize = 64;
/// Between two words of a seed phrase stand no more bytes than this: a number, marks, spaces.
const LONGEST_GAP: usize = 16;
/// A seed phrase has from twelve to twenty-four words (BIP 39).
const SEED: std::ops::RangeInclusive<usize> = 12..=24;

pub(super) fn codes(text: &str, lower: &str, found: &mut Vec<Range<usize>>) {
    for name in CODES {
        let mut covered = 0;
        for (at, _) in lower.match_indices(name) {
            if at >= covered && starts_word(lower, at) {
                covered = code_list(text, at + name.len(), found);
            }
        }
    }
}

fn starts_word(lower: &str, at: usize) -> bool {
    !(lower[at..].starts_with(|c: char| c.is_ascii())
        && lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric()))
}

/// Takes the codes that follow; returns where the search ended.
fn code_list(text: &str, from: usize, found: &mut Vec<Range<usize>>) -> usize {
    let Some(mut at) = first_code(text, from) else {
        return from;
    };
    loop {
        let word = word(text, skip(text, at, is_gap));
        let value = &text[word.clone()];
        if is_code(value) {
            found.push(word.clone());
        } else if !is_number_of_list(text, &word) && !matches!(value, "and" | "or") {
            return at;
        }
        at = word.end;
    }
}

/// Where the first code stands, if none but linking words, and a name behind "for", come before it.
fn first_code(text: &str, from: usize) -> Option<usize> {
    let mut at = skip(text, from, |c| c == 's');
    let mut numbered = false;
    let mut name_words = 0;
    loop {
        let start = skip(text, at, is_gap);
        // A sentence's end parts the name from what follows.
        let ended = !numbered && text[at..start].contains(['.', '。', '?', '？']);
        if ended || start > from + NEAR {
            return None;
        }
        let word = word(text, start);
        let value = text[word.clone()].to_ascii_lowercase();
        if is_code(&value) {
            return Some(start);
        }
        numbered = is_number_of_list(text, &word);
        if BEFORE_A_NAME.contains(&value.as_str()) {
            name_words = 2;
        } else if !numbered && !BETWEEN.contains(&value.as_str()) {
            if value.is_empty() || name_words == 0 {
                return None;
            }
            name_words -= 1;
        }
        at = word.end;
    }
}

fn is_gap(c: char) -> bool {
    c.is_whitespace() || ",;:：=、，；/|*•-.()[]\"'`“”是为和。>".contains(c)
}

/// The letters, digits and inner hyphens at `at`.
fn word(text: &str, at: usize) -> Range<usize> {
    // A longer one is no code.
    let near = bounded(text, at, 2 * LONGEST_CODE);
    let end = skip(near, 0, |c| c.is_ascii_alphanumeric() || c == '-');
    at..at + near[..end].trim_end_matches('-').len()
}

fn is_code(value: &str) -> bool {
    let groups = || value.split('-');
    let even = groups().count() >= 2
        && value.len() >= 8
        && groups().all(|g| g.len() >= 4 && Some(g.len()) == groups().next().map(str::len));
    (4..=LONGEST_CODE).contains(&value.len()) && (value.bytes().any(|b| b.is_ascii_digit()) || even)
}

/// "1." and "2)" before the entries of a list.
fn is_number_of_list(text: &str, word: &Range<usize>) -> bool {
    let value = &text[word.clone()];
    value.len() <= 2
        && value.bytes().all(|b| b.is_ascii_digit())
        && text[word.end..].starts_with(['.', ')', ':', ' '])
}

pub(super) fn seeds(text: &str, lower: &str, found: &mut Vec<Range<usize>>) {
    for name in SEEDS {
        let mut covered = 0;
        for (at, _) in lower.match_indices(name) {
            if at < covered {
                continue;
            }
            let from = at + name.len();
            let near = text.floor_char_boundary(from.saturating_add(NEAR));
            if let Some(phrase) = seed(text, lower, from, near) {
                covered = phrase.end;
                found.push(phrase);
            }
        }
    }
}

/// The first run of such words that starts between `from` and `near`; or a phrase in quotes.
fn seed(text: &str, lower: &str, from: usize, near: usize) -> Option<Range<usize>> {
    let mut at = from;
    while at < near {
        let inside =
            quoted(text, at).filter(|inside| text[inside.clone()].split_whitespace().count() >= 6);
        if inside.is_some() {
            return inside;
        }
        let end = seed_end(text, lower, at);
        if end.is_some() {
            return end.map(|end| at..end);
        }
        let past = skip(text, at, char::is_alphanumeric);
        at = skip(text, past.max(at), |c| {
            !c.is_alphanumeric() && !"\"'`“「".contains(c)
        });
        if past == at {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    None
}

/// Where the words of a seed phrase that starts at `at` end, if there are enough.
fn seed_end(text: &str, lower: &str, at: usize) -> Option<usize> {
    let mut end = at;
    let mut count = 0;
    let mut next = at;
    while count < *SEED.end() {
        let word = seed_word(text, lower, next);
        if word.is_empty() {
            break;
        }
        count += 1;
        end = word.end;
        let near = bounded(text, end, LONGEST_GAP);
        next = end
            + skip(near, 0, |c| {
                c.is_whitespace() || c.is_ascii_digit() || ",.;:)、，-|".contains(c)
            });
        // Letters that stand together are one word.
        if next == end {
            break;
        }
    }
    SEED.contains(&count).then_some(end)
}

/// A word of three to eight Latin letters that is none of prose, or a Chinese character by itself.
fn seed_word(text: &str, lower: &str, at: usize) -> Range<usize> {
    let end = at + skip(bounded(text, at, 16), 0, |c| c.is_ascii_alphabetic());
    let word = &lower[at..end];
    if (3..=8).contains(&word.len()) && !PROSE.contains(&word) {
        return at..end;
    }
    match text[at..].chars().next() {
        Some(c) if word.is_empty() && ('\u{4e00}'..='\u{9fff}').contains(&c) => {
            at..at + c.len_utf8()
        }
        _ => at..at,
    }
}
