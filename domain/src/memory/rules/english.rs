//! The English rules. All text here is lower case with straight apostrophes.

use super::{Finding, answer_key, key, taste_key};
use crate::memory::Scope;

/// Openings that say nothing of what follows.
#[rustfmt::skip]
pub(super) const LEADS: &[&str] = &[
    "also ", "and ", "but ", "so ", "well ", "ok ", "okay ", "actually ", "by the way ", "btw ", "please note that ",
    "note that ", "just ", "just so you know ", "as i said ", "in general ", "generally ", "personally ",
    "to be honest ", "honestly ", "hi ", "hello ", "- ", "* ", "that ",
];
/// Openings that ask to keep what follows.
#[rustfmt::skip]
pub(super) const REMEMBER: &[&str] = &[
    "please remember that ", "please remember", "remember that ", "remember", "keep in mind that ",
    "please keep in mind that ", "for your information ", "fyi ", "don't forget that ", "please don't forget that ",
];

/// Openings of a standing preference.
#[rustfmt::skip]
const STANDING: &[&str] = &[
    "please always ", "please never ", "please avoid ", "my preference is ", "i want you to always ", "i want you to never ",
    "i'd like you to always ", "i would like you to always ", "you should always ", "you should never ",
    "every time i ask", "whenever i ask",
];
/// Times from which a wish holds; alone before a comma they open it.
const FROM_NOW: &[&str] = &[
    "from now on",
    "from today on",
    "going forward",
    "henceforth",
    "in the future",
    "in future",
];
/// How a wish about what the model does begins.
#[rustfmt::skip]
const WISHES: &[&str] = &[
    "please", "always", "never", "don't", "do not", "only", "i want", "i'd like", "i would like", "i prefer",
    "you should", "answer", "reply", "respond", "use", "write", "give", "include", "show", "call me", "format",
    "speak", "start", "end", "keep", "add", "tell me", "ask me", "explain", "provide", "present", "cite",
];
/// Openings of a taste or wish; what it is about follows.
#[rustfmt::skip]
const LIKES: &[&str] = &[
    "i prefer ", "i'd prefer ", "i would prefer ", "i always prefer ", "i usually prefer ", "i generally prefer ",
    "i strongly prefer ", "i like ", "i really like ", "i love ", "i really love ", "i enjoy ", "i hate ",
    "i really hate ", "i dislike ", "i don't like ", "i do not like ", "i really don't like ", "i don't enjoy ",
    "i can't stand ", "i cannot stand ", "i no longer like ", "i don't want you to ", "i want answers ",
    "i want your answers ", "i'm a fan of ", "i am a fan of ",
];
/// Objects that point at the talk at hand and mean nothing later.
#[rustfmt::skip]
const POINTING: &[&str] = &[
    "it", "that", "this", "his", "their", "its", "them", "these", "those", "your", "how", "what", "where", "to know", "to see it", "both", "you",
    "him", "her", "all the",
];
/// Openings of a request about the form of all answers.
#[rustfmt::skip]
const ANSWERS: &[&str] = &[
    "answer", "reply", "respond", "answer me", "reply to me", "give answers", "give me answers", "give your answers",
    "format answers", "format your answers", "format your replies", "write answers", "write your answers",
    "keep answers", "keep your answers", "keep your replies", "keep it", "speak", "talk to me", "speak to me",
    "show answers", "present answers",
];
/// How such a request goes on.
#[rustfmt::skip]
const FORMS: &[&str] = &[
    "as ", "in ", "with ", "using ", "only ", "always ", "never ", "briefly", "concisely", "short", "brief", "concise",
    "to the point", "without ", "like ",
];
/// Requests to leave something be.
#[rustfmt::skip]
const AVOID: &[&str] = &[
    "don't use ", "do not use ", "avoid using ", "stop using ", "stop adding ", "don't include ", "do not include ",
    "don't add ", "don't call me ", "do not call me ", "don't apologize", "don't apologise", "don't write ",
    "don't give me ", "use metric ", "use british ", "use american ",
];
/// How one wants to be called.
const CALL: &[&str] = &[
    "call me ",
    "you can call me ",
    "you may call me ",
    "address me as ",
    "refer to me as ",
    "please call me ",
];
/// Words after "call me" that are about a telephone or a time.
const NO_NAME: &[&str] = &[
    "back", "later", "when", "if", "at", "on", "tomorrow", "tonight", "once", "crazy", "after",
    "before", "a ",
];

/// Openings of a fact about the person, and its key.
#[rustfmt::skip]
const PERSON: &[(&str, Option<&str>)] = &[
    ("i live in ", Some("home")), ("i moved to ", Some("home")), ("i'm based in ", Some("home")),
    ("i am based in ", Some("home")), ("i work at ", Some("employer")), ("i work for ", Some("employer")),
    ("i work as ", Some("job")), ("i work in ", None), ("i work on ", None), ("i'm from ", Some("origin")),
    ("i am from ", Some("origin")), ("i come from ", Some("origin")), ("i'm called ", Some("name")),
    ("i am called ", Some("name")), ("i'm allergic to ", None), ("i am allergic to ", None), ("i'm a ", None),
    ("i am a ", None), ("i'm an ", None), ("i am an ", None), ("i'm vegetarian", None), ("i am vegetarian", None),
    ("i'm vegan", None), ("i am vegan", None), ("i speak ", None), ("i was born ", Some("birthday")), ("i use ", None),
    ("i have a dog", None), ("i have a cat", None), ("i have two ", None), ("i have three ", None),
];
/// What "I am a …" says of a mood, not of a person.
const MOODS: &[&str] = &["bit", "little", "lot", "big fan", "huge fan", "fan"];

/// Openings of a decision.
#[rustfmt::skip]
const DECISIONS: &[&str] = &[
    "we decided ", "we've decided ", "we have decided ", "we agreed ", "we've agreed ", "we have agreed ",
    "i decided to ", "i've decided to ", "i have decided to ", "the decision is ", "we will use ", "we'll use ",
    "we are going with ", "we're going with ", "we chose ", "we've chosen ", "we have chosen ", "let's go with ",
    "we settled on ", "we're going to use ", "we are going to use ", "decision: ", "the team decided ",
];
/// Openings of what holds for a while.
#[rustfmt::skip]
const STATES: &[&str] = &[
    "i'm working on ", "i am working on ", "i'm currently ", "i am currently ", "we're currently ", "we are currently ",
    "currently i'm ", "currently we're ", "right now i'm ", "right now we're ", "we're working on ",
    "we are working on ", "today i'm working on ",
];

/// Owners in front of a subject.
#[rustfmt::skip]
const OWNERS: &[&str] = &[
    "my ", "our ", "the project's ", "the project ", "project ", "the team's ", "the ", "this project's ",
];
/// Subjects that "the" may stand in front of: without an owner only these are taken.
#[rustfmt::skip]
const PROJECT: &[&str] = &[
    "budget", "deadline", "due date", "deploy target", "deployment target", "database", "stack", "tech stack",
    "launch date", "release date", "goal", "team size", "client", "customer", "domain", "repository", "repo",
    "project name", "codename", "language", "framework", "architecture", "port", "api version", "main branch",
    "default branch", "backend", "frontend", "cloud provider", "environment", "region", "deploy", "license", "licence",
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
    "thought", "plan for today",
];
/// What joins a subject with its value.
#[rustfmt::skip]
const COPULAS: &[&str] = &[
    " is now ", " is ", " are now ", " are ", " will be ", " was changed to ", " has changed to ", " changed to ",
    " = ",
];

/// What a clause without its lead states.
pub(super) fn finding(clause: &str) -> Option<Finding> {
    preference(clause).or_else(|| other(clause))
}

/// Whether what one is asked to remember says something: "remember to …" and "remember when …" do not.
pub(super) fn says_something(clause: &str) -> bool {
    clause.contains(' ')
        && !["to", "when", "how", "what", "why", "do", "me", "us"]
            .iter()
            .any(|w| begins(clause, w))
}

/// Whether the clause speaks of the person.
pub(super) fn is_personal(clause: &str) -> bool {
    ["i ", "i'", "my "].iter().any(|w| clause.starts_with(w))
}

fn preference(clause: &str) -> Option<Finding> {
    if let Some(favorite) = opening(clause, &["my favourite", "my favorite"]) {
        let (subject, _) = split_copula(favorite)?;
        let subject = key(subject).map(|subject| format!("favorite_{subject}"));
        return Some(Finding::preference(subject));
    }
    if opening(clause, STANDING).is_some() {
        return Some(Finding::preference(answer_key(clause)));
    }
    let always = ["always ", "never "]
        .iter()
        .find_map(|w| clause.strip_prefix(w));
    if let Some(rest) = opening(clause, FROM_NOW).or(always) {
        let rest = rest.trim();
        if WISHES.iter().any(|w| begins(rest, w)) {
            return Some(Finding::preference(answer_key(clause)));
        }
        return rest.is_empty().then(Finding::opening);
    }
    if let Some(object) = opening(clause, LIKES) {
        let object = object.trim();
        // "I love the actors" speaks of a film, "I prefer the metric system" of a habit.
        let pointing = POINTING.iter().any(|w| begins(object, w))
            || (begins(object, "the") && !clause.contains("prefer"))
            || object == "to";
        return (!object.is_empty() && !pointing)
            .then(|| Finding::preference(answer_key(clause).or_else(|| taste_key(object))));
    }
    let asked = clause.strip_prefix("please ").unwrap_or(clause);
    if let Some(name) = opening(asked, CALL) {
        return (!NO_NAME.iter().any(|w| name.starts_with(w)))
            .then(|| Finding::preference(Some("form_of_address".to_owned())));
    }
    if opening(asked, AVOID).is_some() {
        return Some(Finding::preference(answer_key(clause)));
    }
    let about_answers = ANSWERS.iter().any(|verb| {
        asked
            .strip_prefix(verb)
            .and_then(|rest| rest.strip_prefix(' '))
            .is_some_and(|rest| FORMS.iter().any(|form| rest.starts_with(form)))
    });
    about_answers.then(|| Finding::preference(answer_key(clause)))
}

fn other(clause: &str) -> Option<Finding> {
    if opening(clause, DECISIONS).is_some() {
        return Some(Finding::decision());
    }
    if opening(clause, STATES).is_some() {
        return Some(Finding::state());
    }
    for (words, subject) in PERSON {
        if let Some(rest) = clause.strip_prefix(words) {
            let mood = MOODS.iter().any(|m| rest.starts_with(m));
            return (!mood)
                .then(|| Finding::fact(Scope::UserProfile, 3, subject.map(str::to_owned)));
        }
    }
    attribute(clause)
}

/// "my X is Y", "our X is Y", "the X is Y".
fn attribute(clause: &str) -> Option<Finding> {
    let (subject, value) = split_copula(clause)?;
    let owner = OWNERS.iter().find(|o| subject.starts_with(**o))?;
    let subject = subject[owner.len()..].trim();
    let words = subject.split(' ').count();
    let empty = value.trim().is_empty()
        || ["not sure", "that ", "to ", "what ", "how "]
            .iter()
            .any(|w| value.starts_with(w));
    if subject.is_empty() || words > 4 || empty || PASSING.contains(&subject) {
        return None;
    }
    if *owner == "my " && PERSONAL.contains(&subject) {
        return Some(Finding::fact(Scope::UserProfile, 3, key(subject)));
    }
    if *owner == "the " && !PROJECT.contains(&subject) {
        return None;
    }
    let bare = subject.strip_prefix("project ").unwrap_or(subject);
    let importance = if PROJECT.contains(&bare) { 4 } else { 3 };
    Some(Finding::fact(Scope::ProjectContext, importance, key(bare)))
}

/// What comes before and after the first copula.
fn split_copula(clause: &str) -> Option<(&str, &str)> {
    COPULAS
        .iter()
        .filter_map(|copula| clause.find(copula).map(|at| (at, copula.len())))
        .min_by_key(|&(at, len)| (at, std::cmp::Reverse(len)))
        .map(|(at, len)| (&clause[..at], &clause[at + len..]))
}

fn opening<'a>(clause: &'a str, openings: &[&str]) -> Option<&'a str> {
    openings.iter().find_map(|o| clause.strip_prefix(o))
}

/// Whether the text begins with the word or words.
fn begins(text: &str, words: &str) -> bool {
    text.strip_prefix(words)
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}
