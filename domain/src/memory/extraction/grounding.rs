//! Whether a statement stands on the messages that it names.
//!
//! No test of words can tell whether a paraphrase is faithful. These find what a model makes up most often: a number, a name, or a statement
//! about something else.

use std::collections::HashSet;

use super::super::analysis::{fold, is_ideographic, terms};
use crate::session::Message;

/// What a statement says and its messages do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ungrounded {
    /// A number, as folded, with its unit.
    Number(String),
    /// A name, or what is written like one.
    Name(String),
    /// Too few of its words.
    Words,
}

/// Of a statement's words of content, at least one in so many stands in its messages. Ours: "User wants short answers" from "please keep it short" passes, a
/// statement about something else that shares one word does not.
const SHARED: usize = 3;

/// Words that a model uses for the person and itself, as terms; they stand for "I" and "you".
const SPEAKERS: &[&str] = &[
    "user", "assist", "person", "speaker", "用户", "助手", "对方",
];

/// Words that open a statement with a capital and are no names, folded. The subject is left out: "Prefers answers as tables".
#[rustfmt::skip]
const OPENINGS: &[&str] = &[
    "user", "user's", "users", "assistant", "assistant's", "person", "current", "currently", "prefers", "likes", "loves", "enjoys",
    "dislikes", "hates", "avoids", "wants", "needs", "hopes", "plans", "intends", "decided", "chose", "agreed", "uses", "used", "works",
    "worked", "lives", "lived", "moved", "born", "speaks", "studies", "studied", "has", "had", "owns", "bought", "is", "was", "will",
    "no", "not", "never", "always", "usually", "often", "stopped", "started", "finished", "expects", "asked", "asks", "said", "says",
    "believes", "thinks", "knows", "project", "team", "answers", "responses",
];

/// Checks a statement against its messages.
///
/// # Errors
/// The first thing that is not in them.
pub(super) fn check(content: &str, evidence: &[&Message]) -> Result<(), Ungrounded> {
    let said = Said::by(evidence);
    // The day on which something was said may stand for "today"; its numbers alone may not.
    let undated = said
        .days
        .iter()
        .fold(content.to_owned(), |text, day| text.replace(day, " "));
    if let Some(number) = numbers(&undated).find(|n| !said.numbers.contains(n)) {
        return Err(Ungrounded::Number(number));
    }
    if let Some(name) = names(content).find(|n| !said.has_word(n)) {
        return Err(Ungrounded::Name(name));
    }
    let (shared, all) = said.share(content);
    if shared == 0 || shared * SHARED < all {
        return Err(Ungrounded::Words);
    }
    Ok(())
}

/// Whether a text tells what a statement in other words says: every number and name of it, and so many of its words of content in a hundred.
pub(super) fn tells(text: &str, statement: &str, percent: usize) -> bool {
    let mut said = Said::default();
    said.add(text);
    let (shared, all) = said.share(statement);
    numbers(statement).all(|n| said.numbers.contains(&n))
        && names(statement).all(|n| said.has_word(&n))
        && shared > 0
        && shared * 100 >= all * percent
}

/// Whether a statement may have been read from a text, by the measure that it is checked with.
pub(super) fn grounded_in(text: &str, statement: &str) -> bool {
    tells(text, statement, 100_usize.div_ceil(SHARED))
}

/// Beside the words that it shares with a statement, a clause that says nothing else has at most so many of content, two pairs of ideographs counting as
/// one. Ours: who agreed, to whom it was told, and when.
const ASIDE: usize = 8;

/// Words written like names that name an office, no person, place or thing, folded.
const OFFICES: &[&str] = &["ceo", "cfo", "coo", "cto", "hr", "vp"];

/// Whether a clause says what a statement does that was read from it, in whatever words, and nothing else: it has the numbers of the statement and no other,
/// its names and no other, enough of its words to have been read from there, and few beside. `opens`: the clause opens a sentence, so that a capital
/// at its beginning means nothing. `speaker`: whose words they are.
pub(super) fn says_only(clause: &str, opens: bool, speaker: Option<&str>, statement: &str) -> bool {
    let (mut said, mut stated) = (Said::default(), Said::default());
    said.add(clause);
    stated.add(statement);
    let beside = beside(&said, &stated);
    if let Some(speaker) = speaker {
        said.add(speaker);
    }
    let (shared, all) = said.share(statement);
    let is_said = |name: &str| said.has_word(name);
    let is_stated = |(first, word): (bool, &str)| {
        let folded = bare(&fold(word));
        (opens && first)
            || !is_name(first, word)
            || stated.has_word(word)
            || OFFICES.contains(&folded.as_str())
            || names_a_day(&folded)
    };
    numbers(clause).collect::<HashSet<_>>() == stated.numbers
        && names(statement).all(|name| is_said(&name))
        && words(clause).all(is_stated)
        && shared > 0
        && shared * SHARED >= all
        && beside <= ASIDE
}

/// Whether a clause has no word of content that is not in one of these statements.
pub(super) fn adds_nothing(clause: &str, statements: &[&str]) -> bool {
    let mut stated = Said::default();
    for statement in statements {
        stated.add(statement);
    }
    terms(clause).iter().all(|term| stated.terms.contains(term))
}

/// How many of a statement's words of content a text shares.
pub(super) fn shared(text: &str, statement: &str) -> usize {
    let mut said = Said::default();
    said.add(text);
    said.share(statement).0
}

/// How many words of content were said beside those that are stated.
fn beside(said: &Said, stated: &Said) -> usize {
    let (pairs, words): (Vec<&String>, Vec<&String>) = (said.terms)
        .difference(&stated.terms)
        .partition(|term| term.starts_with(is_ideographic));
    words.len() + pairs.len() / 2
}

/// A day of the week or a month, in full.
fn names_a_day(word: &str) -> bool {
    const NAMES: [&str; 19] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    NAMES.contains(&word)
}

/// What the messages say, in the forms that are compared: texts, speakers' names, days and years.
#[derive(Default)]
struct Said {
    days: Vec<String>,
    numbers: HashSet<String>,
    words: HashSet<String>,
    terms: HashSet<String>,
}

impl Said {
    fn by(messages: &[&Message]) -> Self {
        let mut said = Self::default();
        for message in messages {
            said.days
                .push(message.created_at.format("%Y-%m-%d").to_string());
            said.numbers
                .insert(message.created_at.format("%Y").to_string());
            said.add(&message.content);
            if let Some(name) = &message.name {
                said.add(name);
            }
        }
        said
    }

    fn add(&mut self, text: &str) {
        self.numbers.extend(numbers(text));
        self.words
            .extend(words(text).map(|(_, word)| bare(&fold(word))));
        self.terms.extend(terms(text));
    }

    /// How many of a statement's words of content were said, and how many it has.
    fn share(&self, statement: &str) -> (usize, usize) {
        let mut words = terms(statement);
        words.retain(|w| !SPEAKERS.contains(&w.as_str()));
        let shared = words.iter().filter(|w| self.terms.contains(*w)).count();
        (shared, words.len())
    }

    fn has_word(&self, name: &str) -> bool {
        let folded = bare(&fold(name));
        self.words.contains(&folded) || terms(&folded).iter().all(|t| self.terms.contains(t))
    }
}

/// The numbers of a text, in one form: folded, without separators of thousands and leading zeros, with the unit that is written onto them.
fn numbers(text: &str) -> impl Iterator<Item = String> + use<> {
    let folded: Vec<char> = fold(text).chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < folded.len() {
        if !folded[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let mut number = String::new();
        while let Some(&c) = folded.get(at) {
            let inner =
                matches!(c, '.' | ',') && folded.get(at + 1).is_some_and(char::is_ascii_digit);
            if !c.is_ascii_digit() && !inner {
                break;
            }
            if c != ',' {
                number.push(c);
            }
            at += 1;
        }
        let whole = number.trim_start_matches('0');
        let mut number = if whole.is_empty() || whole.starts_with('.') {
            format!("0{whole}")
        } else {
            whole.to_owned()
        };
        let unit: String = folded[at..]
            .iter()
            .take_while(|c| c.is_ascii_lowercase())
            .collect();
        match folded.get(at) {
            _ if matches!(unit.as_str(), "k" | "m" | "b" | "bn") => number.push_str(&unit),
            Some(&c) if "%万亿千百".contains(c) => number.push(c),
            _ => {}
        }
        found.push(number);
    }
    found.into_iter()
}

/// What is written like a name: a capital, in a script that has them, and no word that opens a statement.
fn names(text: &str) -> impl Iterator<Item = String> + use<'_> {
    words(text)
        .filter(|&(opens, word)| is_name(opens, word))
        .map(|(_, word)| word.to_owned())
}

/// Whether a word that opens a sentence, or does not, is written like a name.
fn is_name(opens: bool, word: &str) -> bool {
    let capital = word.chars().next().is_some_and(char::is_uppercase);
    let inner = word.chars().skip(1).any(char::is_uppercase);
    let folded = fold(word);
    let known = bare(&folded) == "user"
        || folded == "i"
        || folded.starts_with("i'")
        || (opens && !inner && (OPENINGS.contains(&folded.as_str()) || terms(&folded).is_empty()));
    (capital || inner) && !known
}

/// The words of scripts that part them, with whether each opens a sentence.
fn words(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut opens = true;
    text.split_inclusive(|c: char| {
        !(c.is_alphanumeric() || matches!(c, '\'' | '’')) || is_ideographic(c)
    })
    .filter_map(move |piece| {
        let word = piece.trim_matches(|c: char| !c.is_alphanumeric() || is_ideographic(c));
        let first = opens && !word.is_empty();
        if !word.is_empty() {
            opens = false;
        }
        if piece.ends_with(['.', '!', '?', ':', ';', '。', '！', '？', '：', '；', '\n']) {
            opens = true;
        }
        (!word.is_empty()).then_some((first, word))
    })
}

/// A word without the ending of a possessive.
fn bare(word: &str) -> String {
    word.strip_suffix("'s").unwrap_or(word).to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::super::super::testing::message;
    use super::*;
    use crate::session::Role;

    fn checked(content: &str, said: &[&str]) -> Result<(), Ungrounded> {
        let messages: Vec<Message> = said
            .iter()
            .enumerate()
            .map(|(at, text)| message(at as i64 + 1, Role::User, text))
            .collect();
        check(content, &messages.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_statement_in_the_words_of_its_messages_stands() {
        for (content, said) in [
            (
                "User prefers answers as tables",
                &["I prefer answers as tables."][..],
            ),
            (
                "User's sister Emma lives in Oslo",
                &["My sister lives in Oslo", "Her name is Emma"],
            ),
            ("The budget is 300k", &["budget: 300K, final"]),
            (
                "Project budget is 1,200 EUR",
                &["We have 1200 EUR of budget for the project"],
            ),
            ("用户的项目预算为40万", &["项目预算改成40万了"]),
            ("用户喜欢喝绿茶", &["我喜欢绿茶"]),
            ("Prefers Rust", &["i'd take rust any day"]),
            ("User works at O'Reilly", &["I work at O’Reilly now"]),
            ("User met Anna on 2024-05-02", &["I met Anna today"]),
        ] {
            assert_eq!(checked(content, said), Ok(()), "{content}");
        }
    }

    #[test]
    fn a_number_that_nobody_said_is_found() {
        for (content, said, number) in [
            ("The budget is 500k", "The budget is 300k", "500k"),
            ("The budget is 30", "The budget is 300", "30"),
            ("项目预算为30", "项目预算是30万", "30"),
            ("The rate is 5", "The rate is 5%", "5"),
            ("User has 2 cats", "I have cats", "2"),
            ("The port is 8080", "The port is 808", "8080"),
        ] {
            let found = checked(content, &[said]);
            assert_eq!(
                found,
                Err(Ungrounded::Number(number.to_owned())),
                "{content}"
            );
        }
    }

    #[test]
    fn a_name_that_nobody_said_is_found_wherever_it_stands() {
        for (content, said, name) in [
            (
                "User's sister Emma lives in Oslo",
                "My sister lives in Oslo",
                "Emma",
            ),
            ("Emma lives in Oslo", "My sister lives in Oslo", "Emma"),
            (
                "User deploys the service to AWS",
                "We deploy the service tomorrow",
                "AWS",
            ),
            (
                "User uses PostgreSQL as database",
                "our database is slow to use",
                "PostgreSQL",
            ),
        ] {
            let found = checked(content, &[said]);
            assert_eq!(found, Err(Ungrounded::Name(name.to_owned())), "{content}");
        }
    }

    #[test]
    fn a_statement_about_something_else_does_not_stand() {
        for (content, said) in [
            (
                "User owns a boat and sails every summer",
                "I bought bread this morning",
            ),
            (
                "User has three cats and a large garden in the city",
                "I live in the city",
            ),
            ("用户养了三只猫", "今天天气不错"),
            ("", "I like tea"),
            ("The user", "the user"),
        ] {
            assert_eq!(
                checked(content, &[said]),
                Err(Ungrounded::Words),
                "{content}"
            );
        }
    }
}
