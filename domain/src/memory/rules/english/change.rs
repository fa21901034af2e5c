//! What a subject is, and what it becomes: "our budget is 300k", "we raised the budget to 400k", "the deadline was moved to Friday".

use super::{Finding, Value, Voice, key, value_of};
use crate::memory::Scope;
use crate::memory::rules::subject::amount;

/// Owners in front of a subject.
#[rustfmt::skip]
const OWNERS: &[&str] = &[
    "my ", "our ", "the project's ", "the project ", "project ", "the team's ", "this project's ", "the ",
];
/// Owners in front of a subject when the person is spoken to.
const OWNERS_ANSWERED: &[&str] = &[
    "your ",
    "the project's ",
    "the project ",
    "project ",
    "the ",
];
/// What may stand before a subject without making it another.
#[rustfmt::skip]
const QUALIFIERS: &[&str] = &[
    "new ", "updated ", "revised ", "current ", "latest ", "final ", "overall ", "total ", "actual ", "official ", "present ",
];
/// Subjects that "the" may stand in front of: without an owner only these are taken.
#[rustfmt::skip]
const PROJECT: &[&str] = &[
    "budget", "deadline", "due date", "deploy target", "deployment target", "database", "stack", "tech stack",
    "launch date", "release date", "goal", "team size", "client", "customer", "domain", "repository", "repo",
    "project name", "codename", "language", "framework", "architecture", "port", "api version", "main branch",
    "default branch", "backend", "frontend", "cloud provider", "environment", "region", "deploy", "license", "licence",
    "start date", "end date",
];
/// Subjects that are about the person.
#[rustfmt::skip]
const PERSONAL: &[&str] = &[
    "name", "full name", "birthday", "age", "job", "profession", "occupation", "wife", "husband", "partner", "son",
    "daughter", "mother", "father", "mom", "mum", "dad", "sister", "brother", "dog", "cat", "pet", "hometown", "email",
    "email address", "phone", "phone number", "timezone", "time zone", "address", "hobby", "hobbies", "title",
    "pronouns", "nickname", "native language", "dog's name", "cat's name", "wife's name", "husband's name",
    "son's name", "daughter's name", "employer", "boss", "school", "diet",
];
/// Subjects of the talk at hand.
#[rustfmt::skip]
const PASSING: &[&str] = &[
    "question", "problem", "issue", "point", "answer", "guess", "idea", "understanding", "request", "fault", "bad",
    "pleasure", "apologies", "concern", "turn", "opinion", "feeling", "mistake", "first question", "next question",
    "thought", "plan for today", "favorite", "favourite", "preference",
];
/// Who changes things.
#[rustfmt::skip]
const ACTORS: &[&str] = &[
    "we", "i", "they", "he", "she", "the team", "the client", "the customer", "management", "finance", "my boss",
    "our boss", "the board", "our client",
];
/// What may stand before a verb of change.
#[rustfmt::skip]
const AUXILIARIES: &[&str] = &[
    "have", "has", "had", "just", "now", "already", "also", "finally", "recently", "decided", "agreed", "to", "will",
    "then", "officially", "since", "again", "so", "today", "yesterday",
];
/// Verbs of change, as one says what was done, and asks for it.
#[rustfmt::skip]
const VERBS: &[&str] = &[
    "raised", "increased", "lifted", "bumped", "upped", "lowered", "cut", "reduced", "decreased", "dropped", "changed",
    "moved", "pushed", "postponed", "extended", "delayed", "shifted", "set", "updated", "adjusted", "revised", "switched",
    "renamed", "expanded", "shrunk", "trimmed", "brought", "migrated", "replaced", "rescheduled", "fixed", "capped", "grown",
    "raise", "increase", "lift", "bump", "up", "lower", "reduce", "decrease", "drop", "change", "move", "push", "postpone",
    "extend", "delay", "shift", "update", "adjust", "revise", "switch", "rename", "expand", "trim", "bring", "reschedule",
    "make", "made", "correct", "corrected",
];
/// Verbs of what changes by itself.
#[rustfmt::skip]
const MOVES: &[&str] = &[
    "went", "gone", "risen", "rose", "increased", "grown", "grew", "fell", "fallen", "dropped", "moved", "changed",
    "slipped", "shifted", "become", "became", "turned",
];
/// Verbs that end what was.
#[rustfmt::skip]
const ENDED: &[&str] = &["cancelled", "canceled", "dropped", "scrapped", "removed", "lifted", "withdrawn", "abandoned", "gone", "off", "void"];
const BE: &[&str] = &[
    "is", "are", "will", "was", "were", "has", "have", "had", "been", "be", "being", "got", "'s",
];
const PRESENT: &[&str] = &["is", "are", "will", "'s"];
const BETWEEN: &[&str] = &[
    "now",
    "just",
    "recently",
    "already",
    "officially",
    "finally",
    "since",
    "currently",
    "again",
    "to",
];
const WAYS: &[&str] = &["up", "down", "back", "forward", "out", "forwards", "over"];
const PREPOSITIONS: &[&str] = &["to", "until", "till", "at", "into"];
/// Values that say nothing.
const OPEN: &[&str] = &[
    "not sure", "that ", "to ", "what ", "how ", "if ", "whether ", "why ",
];

/// What a clause says of a subject.
pub(super) fn attribute(clause: &str, voice: Voice) -> Option<Finding> {
    had(clause, voice)
        .or_else(|| changed(clause, voice))
        .or_else(|| stated(clause, voice))
}

/// Whether a clause is nothing but a subject that a value may follow.
pub(in crate::memory::rules) fn is_subject(clause: &str) -> bool {
    let words = clause.trim();
    let bare = OWNERS
        .iter()
        .find_map(|owner| words.strip_prefix(owner))
        .unwrap_or(words);
    let bare = bare_subject(bare);
    PROJECT.contains(&bare) || (PERSONAL.contains(&bare) && words.starts_with("my "))
}

/// The value that a sentence puts right: "actually, make it 500k".
pub(in crate::memory::rules) fn correction(sentence: &str) -> Option<&str> {
    #[rustfmt::skip]
    const SIGNS: &[&str] = &["actually", "no", "sorry", "correction", "i mean", "rather", "wait", "or rather", "oops"];
    #[rustfmt::skip]
    const PUTS: &[&str] = &["make it ", "make that ", "it's ", "it is ", "it should be ", "that's ", "i meant ", "i mean ", "it's now ", "it is now "];
    let mut rest = sentence;
    let mut signed = false;
    while let Some(shorter) = SIGNS.iter().find_map(|sign| {
        rest.strip_prefix(sign)
            .filter(|after| after.starts_with([',', ' ', ':']))
    }) {
        rest = shorter.trim_start_matches([',', ' ', ':']);
        signed = true;
    }
    let value = PUTS
        .iter()
        .filter_map(|put| rest.strip_prefix(put))
        .min_by_key(|value| value.len());
    let asked = rest.starts_with("make it ") || rest.starts_with("make that ");
    value
        .filter(|value| (signed || asked) && value.split(' ').count() <= 4)
        .or_else(|| {
            (signed && amount(rest).is_some() && rest.split(' ').count() <= 2).then_some(rest)
        })
}

/// Whose subject, and which.
struct Subject<'a> {
    owner: &'a str,
    name: &'a str,
}

impl Subject<'_> {
    fn finding(&self, value: impl FnOnce(&str) -> Option<Option<Value>>) -> Option<Finding> {
        let bare = bare_subject(self.name);
        let project = PROJECT.contains(&bare);
        if bare.is_empty() || bare.split(' ').count() > 4 || PASSING.contains(&bare) {
            return None;
        }
        let personal = matches!(self.owner, "my " | "your ") && PERSONAL.contains(&bare);
        if !project && !personal && matches!(self.owner, "the " | "your " | "") {
            return None;
        }
        let subject = key(bare);
        let value = match &subject {
            Some(subject) => value(subject)?,
            None => None,
        };
        // Of a subject that the rules do not know, what is short may be its value; the rest tells of it.
        let fits = |value: &Value| match value {
            Value::Is(value) => project || personal || value.split(' ').count() <= 5,
            _ => true,
        };
        let about = subject.zip(value.filter(fits));
        let mut found = if personal {
            Finding::fact(Scope::UserProfile, 3, about)
        } else {
            Finding::fact(Scope::ProjectContext, if project { 4 } else { 3 }, about)
        };
        found.own = self.owner == "my ";
        Some(found)
    }
}

/// A subject without what stands before and behind it and makes it no other.
fn bare_subject(name: &str) -> &str {
    let mut bare = name.trim();
    while let Some(shorter) = QUALIFIERS.iter().find_map(|q| bare.strip_prefix(q)) {
        bare = shorter;
    }
    let bare = [
        " for the project",
        " for this project",
        " of the project",
        " of this project",
    ]
    .iter()
    .find_map(|end| bare.strip_suffix(end))
    .unwrap_or(bare);
    bare.strip_prefix("project ").unwrap_or(bare)
}

fn owned(words: &str, voice: Voice) -> Option<(&'static str, &str)> {
    let owners = match voice {
        Voice::Own => OWNERS,
        Voice::Answering => OWNERS_ANSWERED,
    };
    owners
        .iter()
        .find_map(|owner| Some((*owner, words.strip_prefix(owner)?)))
}

/// "Our budget is (now) 400k", "the deadline was moved to Friday", "the budget went up to 400k", "my budget is no longer 300k", "Budget: 400k".
fn stated(clause: &str, voice: Voice) -> Option<Finding> {
    if let Some((words, value)) = clause.split_once(": ").or_else(|| clause.split_once(" = ")) {
        let (owner, name) = owned(words, voice).unwrap_or(("", words));
        return is_subject(words)
            .then(|| Subject { owner, name }.finding(|key| Some(value_of(key, value))))
            .flatten();
    }
    let (owner, rest) = owned(clause, voice)?;
    let joint = rest.split(' ').scan(0, |at, word| {
        let start = *at;
        *at += word.len() + 1;
        Some((start, word))
    });
    let (at, first) = joint
        .skip(1)
        .find(|(_, word)| BE.contains(word) || MOVES.contains(word))?;
    let subject = Subject {
        owner,
        name: rest[..at].trim(),
    };
    let verb: Vec<&str> = rest[at..].split(' ').collect();
    let mut next = 0;
    while verb
        .get(next)
        .is_some_and(|word| BE.contains(word) || BETWEEN.contains(word))
    {
        next += 1;
    }
    let following = &verb[next..];
    let second = following.first().copied().unwrap_or_default();
    if VERBS.contains(&second) || MOVES.contains(&second) {
        if let Some(value) = reached(&following[1..]) {
            return subject.finding(|key| Some(value_of(key, &value)));
        }
        let copular = matches!(second, "become" | "became");
        return (copular && following.len() > 1)
            .then(|| subject.finding(|key| Some(value_of(key, &following[1..].join(" ")))))
            .flatten()
            .or_else(|| ended(&subject, second));
    }
    if ENDED.contains(&second) && following.len() <= 2 {
        return ended(&subject, second);
    }
    if !PRESENT.contains(&first) {
        return None;
    }
    let value = following.join(" ");
    let value = value.trim();
    if value.is_empty()
        || OPEN
            .iter()
            .any(|open| format!("{value} ").starts_with(open))
    {
        return None;
    }
    for not in ["no longer ", "not "] {
        if let Some(value) = value.strip_prefix(not) {
            return denied(&subject, value);
        }
    }
    subject.finding(|key| Some(value_of(key, value)))
}

fn ended(subject: &Subject<'_>, verb: &str) -> Option<Finding> {
    ENDED
        .contains(&verb)
        .then(|| subject.finding(|_| Some(Some(Value::Nothing))))
        .flatten()
        .and_then(Finding::no_longer)
}

/// "… is no longer 300k", "… is not 300k but 400k".
fn denied(subject: &Subject<'_>, value: &str) -> Option<Finding> {
    if let Some((_, value)) = value.split_once(" but ") {
        return subject.finding(|key| Some(value_of(key, value)));
    }
    let value = value
        .trim_end_matches(" any more")
        .trim_end_matches(" anymore");
    subject
        .finding(|key| value_of(key, value).map(Some))
        .and_then(Finding::no_longer)
}

/// "We raised the budget (from 300k) to 400k", "please change the deadline to Friday", "make the budget 500k", "we dropped the deadline".
fn changed(clause: &str, voice: Voice) -> Option<Finding> {
    let clause = clause.strip_prefix("please ").unwrap_or(clause);
    let clause = clause.strip_prefix("let's ").unwrap_or(clause);
    let actor = ACTORS.iter().find_map(|actor| {
        clause
            .strip_prefix(actor)
            .filter(|rest| rest.starts_with([' ', '\'']))
    });
    let mut rest = actor.unwrap_or(clause);
    for short in ["'ve", "'s", "'ll", "'d"] {
        rest = rest.strip_prefix(short).unwrap_or(rest);
    }
    rest = rest.trim_start();
    while let Some((word, shorter)) = rest.split_once(' ') {
        if !AUXILIARIES.contains(&word) {
            break;
        }
        rest = shorter;
    }
    let (verb, rest) = rest.split_once(' ')?;
    if !VERBS.contains(&verb) && !ENDED.contains(&verb) {
        return None;
    }
    let rest = WAYS
        .iter()
        .find_map(|way| rest.strip_prefix(way)?.strip_prefix(' '))
        .unwrap_or(rest);
    let (owner, rest) = owned(rest, voice)?;
    let words: Vec<&str> = rest.split(' ').collect();
    if let Some(from) = (1..words.len()).find(|&at| {
        words[at] == "from" || PREPOSITIONS.contains(&words[at]) || WAYS.contains(&words[at])
    }) {
        let subject = words[..from].join(" ");
        let value = reached(&words[from..])?;
        let subject = Subject {
            owner,
            name: &subject,
        };
        return subject.finding(|key| Some(value_of(key, &value)));
    }
    if matches!(verb, "make" | "made") && words.len() > 1 {
        let subject = Subject {
            owner,
            name: words[0],
        };
        return subject.finding(|key| value_of(key, &words[1..].join(" ")).map(Some));
    }
    let subject = Subject { owner, name: rest };
    let known = PROJECT.contains(&bare_subject(rest));
    known.then(|| ended(&subject, verb)).flatten()
}

/// The value behind "(from 300k) (up) to".
fn reached(words: &[&str]) -> Option<String> {
    let at = words
        .iter()
        .position(|word| PREPOSITIONS.contains(word))
        .filter(|&at| at + 1 < words.len())?;
    let before = &words[..at];
    let plain = before.first().is_none_or(|first| *first == "from")
        || before.iter().all(|w| WAYS.contains(w));
    let by = before.first() == Some(&"by");
    (plain || by || before.len() <= 1).then(|| words[at + 1..].join(" "))
}

/// "We have a budget of 300k", "there's no deadline any more", "we no longer have a budget".
fn had(clause: &str, voice: Voice) -> Option<Finding> {
    #[rustfmt::skip]
    const HAVE: &[&str] = &[
        "we have a ", "we have an ", "we now have a ", "i have a ", "i now have a ", "we've got a ", "i've got a ", "there is a ",
        "there's a ", "there is now a ", "we got a ", "you have a ",
    ];
    #[rustfmt::skip]
    const LACK: &[&str] = &[
        "we no longer have a ", "we no longer have any ", "we no longer have the ", "we don't have a ", "we don't have any ",
        "we do not have a ", "we have no ", "there is no ", "there's no ", "there is no longer a ", "there's no longer a ",
        "i no longer have a ", "i don't have a ", "i have no ", "we no longer need a ", "there isn't a ", "we don't have the ",
    ];
    let after = |openings: &[&str]| openings.iter().find_map(|o| clause.strip_prefix(o));
    if let Some(rest) = after(HAVE) {
        let (name, value) = rest.split_once(" of ")?;
        let known = PROJECT.contains(&bare_subject(name));
        let subject = Subject {
            owner: "our ",
            name,
        };
        return known
            .then(|| subject.finding(|key| value_of(key, value).map(Some)))
            .flatten();
    }
    let rest = after(LACK)?;
    let rest = [" any more", " anymore", " any longer", " now"]
        .iter()
        .find_map(|end| rest.strip_suffix(end))
        .unwrap_or(rest);
    let known = voice == Voice::Own && PROJECT.contains(&bare_subject(rest));
    let subject = Subject {
        owner: "our ",
        name: rest,
    };
    known
        .then(|| subject.finding(|_| Some(Some(Value::Nothing))))
        .flatten()
        .and_then(Finding::no_longer)
}
