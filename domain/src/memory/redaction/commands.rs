//! Passwords among the arguments of commands.

use std::ops::Range;

use super::labelled::value::quoted;

/// Where an option has its password.
#[derive(Clone, Copy)]
enum Place {
    /// In the same argument: `-pPASSWORD`. Alone it asks for one.
    Same,
    /// In the same argument or the next.
    Either,
    /// In the next argument, or in this one, behind this mark: `-u user:PASSWORD`.
    Behind(char),
}

/// Programs, their options and where the password stands, as their manuals have it.
#[rustfmt::skip]
const OPTIONS: &[(&[&str], &[&str], Place)] = &[
    (&["curl"], &["-u", "--user", "-U", "--proxy-user"], Place::Behind(':')),
    (&["http", "https", "xh"], &["-a", "--auth"], Place::Behind(':')),
    (&["mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump", "7z", "7za", "rar"], &["-p"], Place::Same),
    (&["sshpass", "login", "mongo", "mongosh", "mongodump", "mongorestore"], &["-p"], Place::Either),
    (&["redis-cli"], &["-a", "--pass"], Place::Either),
    (&["zip", "unzip", "sqlcmd", "bcp", "isql"], &["-P"], Place::Either),
    (&["ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami"], &["-w"], Place::Either),
    (&["smbclient", "rpcclient", "net"], &["-U"], Place::Behind('%')),
    (&["lftp"], &["-u"], Place::Behind(',')),
];

/// Passwords of commands; an option belongs to the last program named on its line.
pub(super) fn passwords(text: &str, found: &mut Vec<Range<usize>>) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        arguments(text, start, line, found);
        start += line.len();
    }
}

fn arguments(text: &str, start: usize, line: &str, found: &mut Vec<Range<usize>>) {
    let mut options = None;
    let mut words = words(line).map(|(at, word)| (start + at, word)).peekable();
    while let Some((at, word)) = words.next() {
        let Some((names, place)) = options else {
            options = program(word);
            continue;
        };
        let names: &[&str] = names;
        let Some(name) = names.iter().find(|name| is_option(word, name)) else {
            options = program(word).or(options);
            continue;
        };
        let attached = at + name.len() + usize::from(word[name.len()..].starts_with('='));
        let same = attached < at + word.len();
        let next = words.peek().map(|(at, _)| *at);
        let value = match place {
            Place::Same | Place::Either | Place::Behind(_) if same => Some(attached),
            Place::Same => None,
            Place::Either | Place::Behind(_) => next,
        };
        found.extend(value.and_then(|at| password(text, at, place)));
    }
}

/// The options of the program that such a word calls: a path and the marks of a code span or a prompt may stand before.
fn program(word: &str) -> Option<(&'static [&'static str], Place)> {
    let name = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let name = name.rsplit('/').next().unwrap_or(name);
    OPTIONS
        .iter()
        .find(|(programs, ..)| programs.contains(&name))
        .map(|&(_, options, place)| (options, place))
}

/// Whether a word is this option: a long one stands alone or before `=`.
fn is_option(word: &str, name: &str) -> bool {
    word.strip_prefix(name)
        .is_some_and(|rest| !name.starts_with("--") || rest.is_empty() || rest.starts_with('='))
}

/// The password in the argument at `at`.
fn password(text: &str, at: usize, place: Place) -> Option<Range<usize>> {
    let value = quoted(text, at).unwrap_or_else(|| {
        let end = text[at..]
            .find(|c: char| c.is_whitespace() || "\"'`，。；".contains(c))
            .map_or(text.len(), |i| at + i);
        at..at + text[at..end].trim_end_matches(['.', ',', ';', ')']).len()
    });
    let from = match place {
        Place::Behind(mark) => value.start + text[value.clone()].find(mark)? + mark.len_utf8(),
        Place::Same | Place::Either => value.start,
    };
    (from < value.end && !text[from..].starts_with('-')).then_some(from..value.end)
}

/// The words of a line with their places.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    line.split_inclusive(char::is_whitespace)
        .map(move |part| {
            let at = next;
            next += part.len();
            (at, part.trim_end())
        })
        .filter(|(_, word)| !word.is_empty())
}
