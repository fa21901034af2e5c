//! Values that a person calls a password, a token or a key.

use std::ops::Range;

mod again;
mod link;
mod names;
pub(super) mod value;

use link::Link;
use names::{Kind, NAMES};
use value::{
    LONGEST_PHRASE, LONGEST_VALUE, clause_end, ends_clause, is_count, is_no_value, is_plain,
    is_reference, looks_random, looks_secret, quoted, separator, skip, token,
};

/// Whose passwords: what "are" says of them are their values.
#[rustfmt::skip]
const OWNERS: [&str; 12] = ["my", "our", "your", "his", "her", "their", "the", "two", "both", "these", "old", "new"];
/// What joins a value and the name behind it.
#[rustfmt::skip]
const LINKS: [&str; 14] = [" is my", " is the", " is our", " was my", " was the", " as my", " as the", " as a", " as", "是我的", "是我", "是", "作为", "做"];
/// Words that are the password in no sentence.
#[rustfmt::skip]
const NO_SUBJECT: [&str; 12] = ["this", "that", "it", "what", "which", "here", "there", "where", "one", "who", "name", "security"];

/// The folded text with its lower case.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) text: &'a str,
    pub(super) lower: &'a str,
}

pub(super) fn values(t: Text<'_>, found: &mut Vec<Range<usize>>) {
    // Where something was called a password: "the new one is …" speaks of it.
    let mut mentions = Vec::new();
    let mut named = Vec::new();
    for (kind, words) in NAMES {
        for word in *words {
            behind(t, word, *kind, &mut mentions, &mut named);
        }
    }
    mentions.sort_unstable();
    again::values(t, &mentions, &mut named);
    named.sort_unstable_by_key(|range| (range.start, range.end));
    let mut covered = 0;
    for range in named {
        if range.end > covered {
            let range = value::whole(t.text, range);
            covered = range.end;
            found.push(range);
        }
    }
}

/// The values of a name, wherever it stands.
fn behind(
    t: Text<'_>,
    word: &str,
    kind: Kind,
    mentions: &mut Vec<usize>,
    found: &mut Vec<Range<usize>>,
) {
    // A name inside a value that is taken out anyway is not looked at: each part of a text is looked through once a name.
    let mut covered = 0;
    for (at, _) in t.lower.match_indices(word) {
        let end = at + word.len();
        if at < covered || !stands_alone(t, at..end, kind) {
            continue;
        }
        let name = Named { t, kind, at, end };
        let values = name.values();
        if kind.is_strong() {
            mentions.push(values.last().map_or(end, |value| value.end));
        }
        if let Some(value) = values.last() {
            covered = value.end;
            found.extend(values);
        } else {
            found.extend(name.value_before());
        }
    }
}

/// Whether a name is a word of its own, or the end of one such as `DB_PASSWORD`, `clientSecret`, `PGPASSWORD=`.
fn stands_alone(t: Text<'_>, name: Range<usize>, kind: Kind) -> bool {
    if !t.lower[name.clone()].is_ascii() {
        return true;
    }
    let tail = &t.lower[name.end..];
    let tail = tail.strip_prefix('s').unwrap_or(tail);
    if tail.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return false;
    }
    let head = &t.text[..name.start];
    if !head.ends_with(|c: char| c.is_ascii_alphanumeric()) {
        return true;
    }
    let hump = head.ends_with(|c: char| c.is_ascii_lowercase())
        && t.text[name.start..].starts_with(|c: char| c.is_ascii_uppercase());
    hump || kind == Kind::Strong && tail.starts_with(['=', ':'])
}

/// A name where it stands.
struct Named<'a> {
    t: Text<'a>,
    kind: Kind,
    at: usize,
    end: usize,
}

impl Named<'_> {
    /// The values behind the name.
    fn values(&self) -> Vec<Range<usize>> {
        let Text { text, lower } = self.t;
        let plural = lower[self.end..].starts_with('s');
        let end = self.end + usize::from(plural);
        let Some((start, link)) = link::link(self.t, end) else {
            return Vec::new();
        };
        // What is written together is one word, but in Chinese.
        if link == Link::None && start == end && lower[self.at..end].is_ascii() {
            return Vec::new();
        }
        let start = skip(text, start, |c| c.is_whitespace() || c == '\\');
        if plural && link == Link::Copula && self.kind.is_strong() {
            let all = self.list(start);
            if !all.is_empty() || !self.is_owned() {
                return all;
            }
        }
        let Some(first) = self.value(start, link, plural) else {
            return Vec::new();
        };
        let mut all = vec![first];
        if matches!(link, Link::Copula | Link::Sign { .. }) {
            self.more(&mut all, plural);
        }
        all
    }

    /// The value at `start`, if it is one.
    fn value(&self, start: usize, link: Link, plural: bool) -> Option<Range<usize>> {
        let Text { text, lower } = self.t;
        let start = if link == Link::Copula {
            link::skip_adverbs(lower, start)
        } else {
            start
        };
        let inside = quoted(text, start);
        let word = inside.clone().unwrap_or_else(|| token(text, start));
        let value = &text[word.clone()];
        if value.is_empty()
            || matches!(link, Link::Sign { .. } | Link::Suffix) && is_reference(value)
            || self.kind == Kind::Counted && is_count(value, plural)
        {
            return None;
        }
        if inside.is_none() && is_no_value(value) {
            let explained = self.kind.is_strong() && link == Link::Copula;
            return explained.then(|| self.later(start)).flatten();
        }
        let sure = match self.kind {
            Kind::Strong | Kind::Abbreviated => self.is_password(&word, link, inside.is_some()),
            Kind::Terse => self.is_terse(&word, link),
            Kind::Weak | Kind::Counted => self.is_key(&word, link, inside.is_some()),
            Kind::Pin => is_pin(value) && !matches!(link, Link::Suffix | Link::Apposition),
        };
        if !sure {
            return None;
        }
        let phrase = inside.is_none()
            && self.kind.is_strong()
            && (link == Link::Copula || matches!(link, Link::Sign { .. }) && self.begins_line());
        if phrase {
            return Some(word.start..clause_end(text, word.end, LONGEST_VALUE));
        }
        Some(word)
    }

    fn is_password(&self, word: &Range<usize>, link: Link, is_quoted: bool) -> bool {
        let value = &self.t.text[word.clone()];
        let ends = ends_clause(self.t.text, word.end);
        let secret = looks_secret(value) && value.chars().count() >= 4;
        match link {
            Link::Sign { .. } | Link::Copula => true,
            Link::Suffix => looks_random(value),
            Link::Apposition => secret && !value.starts_with(['[', '#']) && !value.contains("://"),
            Link::Aim => {
                is_quoted || looks_secret(value) || ends && link::is_set(self.t.lower, self.at)
            }
            Link::Dash => is_quoted || looks_secret(value) || ends,
            Link::None => {
                is_quoted
                    || secret
                    || self.is_option()
                    || self.kind == Kind::Abbreviated && ends && !names::is_compound(value)
            }
        }
    }

    fn is_terse(&self, word: &Range<usize>, link: Link) -> bool {
        let value = &self.t.text[word.clone()];
        match link {
            Link::Sign { tight } => {
                (tight || looks_random(value) || link::follows_login(self.t.lower, self.at))
                    && !is_count(value, false)
            }
            Link::None => self.is_option() || looks_random(value) && !value.starts_with('-'),
            Link::Copula | Link::Dash => looks_random(value),
            Link::Aim | Link::Apposition | Link::Suffix => false,
        }
    }

    fn is_key(&self, word: &Range<usize>, link: Link, is_quoted: bool) -> bool {
        let value = &self.t.text[word.clone()];
        let secret = looks_secret(value);
        match link {
            Link::Suffix => looks_random(value),
            Link::Apposition => false,
            Link::None => {
                secret && value.chars().count() >= 4 && !value.starts_with('-') || self.is_option()
            }
            Link::Sign { .. } if is_quoted => !value.contains(char::is_whitespace),
            // Beside Chinese words a Latin one is seldom a word.
            Link::Sign { .. } | Link::Copula if !self.t.lower[self.at..self.end].is_ascii() => {
                secret || value.is_ascii() && value.len() >= 6 && ends_clause(self.t.text, word.end)
            }
            Link::Sign { .. } | Link::Copula | Link::Aim | Link::Dash => {
                secret && value.chars().count() >= if self.kind == Kind::Counted { 4 } else { 6 }
            }
        }
    }

    /// Whether the name is an option of a command: `--password`.
    fn is_option(&self) -> bool {
        self.t.lower[..self.at].ends_with("--")
    }

    /// Whether nothing but marks of a list stands before the name in its line.
    fn begins_line(&self) -> bool {
        let head =
            self.t.text[..self.at].trim_end_matches([' ', '\t', '-', '*', '>', '#', '"', '•']);
        head.is_empty() || head.ends_with('\n')
    }

    /// A value that comes later in the clause: "the password is the same as mine, hunter22".
    fn later(&self, start: usize) -> Option<Range<usize>> {
        let text = self.t.text;
        let end = clause_end(text, start, LONGEST_PHRASE);
        let mut at = start;
        text[start..end]
            .split_inclusive(char::is_whitespace)
            .find_map(|part| {
                let word = token(text, at);
                at += part.len();
                looks_random(&text[word.clone()]).then_some(word)
            })
    }

    /// The values of "passwords are … and …".
    fn list(&self, start: usize) -> Vec<Range<usize>> {
        let text = self.t.text;
        let mut all = Vec::new();
        let first = quoted(text, start).unwrap_or_else(|| token(text, start));
        if first.is_empty() || is_no_value(&text[first.clone()]) || !ends_clause(text, first.end) {
            return all;
        }
        all.push(first);
        self.more(&mut all, true);
        let secret = |value: &Range<usize>| looks_secret(&text[value.clone()]);
        if all.len() < 2 && !self.is_owned() && !all.iter().any(secret) {
            all.clear();
        }
        all
    }

    /// Whether it is somebody's: "my passwords", "the passwords".
    fn is_owned(&self) -> bool {
        self.t.lower[..self.at]
            .split_whitespace()
            .next_back()
            .is_some_and(|word| OWNERS.contains(&word) || word.ends_with("'s"))
    }

    /// Further values of a list; one that is `sure` needs not look like a password.
    fn more(&self, all: &mut Vec<Range<usize>>, sure: bool) {
        let text = self.t.text;
        while let Some(start) = all.last().and_then(|last| separator(text, last.end)) {
            let word = quoted(text, start).unwrap_or_else(|| token(text, start));
            let value = &text[word.clone()];
            let listed = !is_no_value(value)
                && ends_clause(text, word.end)
                && (looks_secret(value) && value.len() >= 4 || sure && self.kind.is_strong());
            if value.is_empty() || !listed || self.kind == Kind::Counted && is_count(value, true) {
                return;
            }
            all.push(word);
        }
    }

    /// The value before its name: "hunter2 is my password", "123456是我的密码".
    fn value_before(&self) -> Option<Range<usize>> {
        let Text { text, lower } = self.t;
        let head = lower[..self.at].trim_end();
        let end = LINKS
            .iter()
            .find_map(|link| head.strip_suffix(link))?
            .trim_end()
            .len();
        let start = text[..end]
            .char_indices()
            .rev()
            .take_while(|&(_, c)| c.is_ascii_graphic())
            .take(LONGEST_VALUE)
            .last()
            .map_or(end, |(i, _)| i);
        let value = text[start..end].trim_matches(['"', '\'', '`']);
        let next = token(text, skip(text, self.end, char::is_whitespace));
        if value.len() < 4 || names::is_compound(&text[next]) {
            return None;
        }
        let secret = if self.kind.is_strong() {
            let head = text[..start].trim_end_matches(' ');
            let first = head.is_empty()
                || head.ends_with([
                    '.', ',', ';', ':', '!', '?', '\n', '，', '。', '；', '！', '？',
                ]);
            let used = ["use ", "using ", "try ", "enter ", "type "]
                .iter()
                .any(|verb| lower[..start].ends_with(verb));
            looks_secret(value)
                || !is_plain(value)
                || (first || used)
                    && ends_clause(text, self.end)
                    && !NO_SUBJECT.contains(&value.to_ascii_lowercase().as_str())
        } else {
            looks_secret(value)
        };
        secret.then_some(start..end)
    }
}

fn is_pin(value: &str) -> bool {
    (3..=12).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}
