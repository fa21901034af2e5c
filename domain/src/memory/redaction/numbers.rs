//! Payment cards and bank accounts.

use std::ops::Range;

/// A payment card has as many digits (ISO/IEC 7812).
const CARD: std::ops::RangeInclusive<usize> = 13..=19;
/// Between two groups of a number stand no more characters than this.
const LONGEST_GAP: usize = 3;
/// An account number (ISO 13616) has as many characters, spaces apart.
const IBAN: std::ops::RangeInclusive<usize> = 15..=34;

/// Digits that stand together.
struct Group {
    at: Range<usize>,
    digits: Vec<u8>,
}

/// Runs of 13–19 digits, in groups or not, that start like a payment card and pass the Luhn check. What stands beside a card in
/// digits too, its date of expiry say, does not hide it.
pub(super) fn cards(text: &str, found: &mut Vec<Range<usize>>) {
    let groups = groups(text);
    let mut first = 0;
    while first < groups.len() {
        first = match card(&groups, first, text) {
            Some(after) => {
                found.push(groups[first].at.start..groups[after - 1].at.end);
                after
            }
            None => first + 1,
        };
    }
}

/// The group after the last one of the longest card that starts with the group `first`.
fn card(groups: &[Group], first: usize, text: &str) -> Option<usize> {
    let mut digits: Vec<u8> = Vec::new();
    let mut end = None;
    for (at, group) in groups.iter().enumerate().skip(first) {
        if at > first && !joined(groups, at, text) {
            break;
        }
        digits.extend(&group.digits);
        if digits.len() > *CARD.end() {
            break;
        }
        let card = &groups[first..=at];
        // Part of a longer row of single digits, a ruler say, is no card.
        let whole = card.iter().any(|g| g.digits.len() >= 3)
            || (first == 0 || !joined(groups, first, text))
                && (at + 1 == groups.len() || !joined(groups, at + 1, text));
        if is_card(&digits) && is_grouped(card) && whole && !is_fraction(text, &groups[first]) {
            end = Some(at + 1);
        }
    }
    end
}

fn groups(text: &str) -> Vec<Group> {
    let mut all: Vec<Group> = Vec::new();
    for (at, b) in text.bytes().enumerate().filter(|(_, b)| b.is_ascii_digit()) {
        match all.last_mut() {
            Some(group) if group.at.end == at => {
                group.at.end = at + 1;
                // Longer than any card: no more is needed to know that.
                if group.digits.len() <= *CARD.end() {
                    group.digits.push(b - b'0');
                }
            }
            _ => all.push(Group {
                at: at..at + 1,
                digits: vec![b - b'0'],
            }),
        }
    }
    all
}

/// Whether a group and the one before it stand in one number.
fn joined(groups: &[Group], at: usize, text: &str) -> bool {
    let gap = &text[groups[at - 1].at.end..groups[at].at.start];
    gap.chars().take(LONGEST_GAP + 1).count() <= LONGEST_GAP
        && gap
            .chars()
            .all(|c| " -.\u{2010}\u{2011}\u{2013}\u{2014}\t".contains(c))
}

/// Cards are written in groups of a size, or of three digits and more; dates are not, nor are years in a row.
fn is_grouped(groups: &[Group]) -> bool {
    let sizes = || groups.iter().map(|g| g.digits.len());
    let is_year =
        |g: &Group| matches!(g.digits[..], [1, 9, ..] | [2, 0, ..]) && g.digits.len() == 4;
    if groups.iter().all(is_year) {
        return false;
    }
    sizes().all(|size| size >= 3) || sizes().all(|size| size == groups[0].digits.len())
}

/// Whether the digits stand behind a decimal point.
fn is_fraction(text: &str, group: &Group) -> bool {
    text[..group.at.start]
        .strip_suffix('.')
        .is_some_and(|head| head.ends_with(|c: char| c.is_ascii_digit()))
        && group.digits.len() >= *CARD.start()
}

fn is_card(digits: &[u8]) -> bool {
    if !CARD.contains(&digits.len()) || !(2..=6).contains(&digits[0]) {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, &d)| match (i % 2, u32::from(d) * 2) {
            (0, _) => u32::from(d),
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Account numbers that are introduced as such: "IBAN DE…", "my IBAN is GB…".
pub(super) fn accounts(text: &str, lower: &str, found: &mut Vec<Range<usize>>) {
    for (at, name) in lower.match_indices("iban") {
        let from = at + name.len();
        let most = text.floor_char_boundary(from.saturating_add(64));
        let near = &text[from..most];
        if near.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            continue;
        }
        let start = near.as_bytes().windows(4).position(|w| {
            w[..2].iter().all(u8::is_ascii_uppercase) && w[2..].iter().all(u8::is_ascii_digit)
        });
        let Some(start) = start.map(|i| from + i) else {
            continue;
        };
        let mut end = start;
        let mut len = 0;
        for (i, c) in text[start..].char_indices() {
            match c {
                _ if c.is_ascii_uppercase() || c.is_ascii_digit() => {
                    len += 1;
                    end = start + i + 1;
                }
                ' ' | '-' if start + i == end => {}
                _ => break,
            }
            if len == *IBAN.end() {
                break;
            }
        }
        if IBAN.contains(&len) {
            found.push(start..end);
        }
    }
}
