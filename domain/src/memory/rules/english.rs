//! The English rules. All text here is lower case with straight apostrophes.

mod change;

use super::subject::{key, taste_key, value_of};
use super::{Finding, Value, Voice, answers, normalise};
use crate::memory::Scope;

pub(super) use change::{correction, is_subject};

/// Openings that say nothing of what follows.
#[rustfmt::skip]
pub(super) const LEADS: &[&str] = &[
    "also ", "and ", "but ", "so ", "well ", "ok ", "okay ", "actually ", "by the way ", "btw ", "please note that ",
    "note that ", "just ", "just so you know ", "as i said ", "in general ", "generally ", "personally ",
    "to be honest ", "honestly ", "hi ", "hello ", "- ", "* ", "that ", "update: ", "correction: ", "note: ", "fyi: ",
    "good news: ", "news: ", "ps: ", "now ", "however ", "as of today ", "as of now ", "quick update: ", "heads up: ",
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
    "every time i ask", "whenever i ask", "you must always ", "you must never ",
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
    "speak", "start", "end", "keep", "add", "tell me", "ask me", "explain", "provide", "present", "cite", "no", "avoid",
    "talk", "begin", "address me", "make",
];
/// Openings of a taste; what it is about follows.
#[rustfmt::skip]
const LIKES: &[&str] = &[
    "i like ", "i love ", "i enjoy ", "i'm a fan of ", "i am a fan of ", "i'm a big fan of ", "i am a big fan of ", "i adore ",
];
/// Openings of a distaste.
#[rustfmt::skip]
const DISLIKES: &[&str] = &[
    "i hate ", "i dislike ", "i don't like ", "i do not like ", "i don't enjoy ", "i do not enjoy ", "i can't stand ",
    "i cannot stand ", "i don't love ", "i'm not a fan of ", "i am not a fan of ",
];
/// Openings of a wish of how things are to be.
#[rustfmt::skip]
const PREFERS: &[&str] = &[
    "i prefer ", "i'd prefer ", "i would prefer ", "i'd rather have ", "i would rather have ", "i'd rather get ",
    "i would rather get ",
];
/// Openings of a wish of what the model does; it counts when it is about answers.
#[rustfmt::skip]
const WANTS: &[&str] = &[
    "i want ", "i'd like ", "i would like ", "i don't want ", "i do not want ", "i need ", "i only want ", "i expect ",
];
/// What may stand between "I" and the verb.
#[rustfmt::skip]
const ADVERBS: &[&str] = &[
    "really", "do", "now", "always", "usually", "generally", "strongly", "much", "still", "also", "actually", "just",
    "definitely", "absolutely", "personally", "currently", "honestly", "typically", "normally", "mostly", "truly",
];
/// Objects that point at the talk at hand and mean nothing later.
#[rustfmt::skip]
const POINTING: &[&str] = &[
    "it", "that", "this", "his", "their", "its", "them", "these", "those", "your", "how", "what", "where", "to know", "to see it", "both", "you",
    "him", "her", "all the", "not to", "when you", "if you", "my",
];
/// Openings of a request about the form of all answers.
#[rustfmt::skip]
const ANSWERS: &[&str] = &[
    "answer", "reply", "respond", "answer me", "reply to me", "give answers", "give me answers", "give your answers",
    "format answers", "format your answers", "format your replies", "write answers", "write your answers",
    "keep answers", "keep your answers", "keep your replies", "keep it", "speak", "talk to me", "speak to me",
    "show answers", "present answers", "make answers", "make your answers", "keep all answers", "keep replies",
];
/// How such a request goes on.
#[rustfmt::skip]
const FORMS: &[&str] = &[
    "as ", "in ", "with ", "using ", "only ", "always ", "never ", "briefly", "concisely", "short", "brief", "concise",
    "to the point", "without ", "like ", "shorter", "longer", "detailed", "in detail",
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

/// What makes a request one of the moment.
#[rustfmt::skip]
pub(super) const ONCE: &[&str] = &[
    "just this once", "only this once", "this one time", "just this time", "only this time", "for this one", "this once",
    "for this answer", "for this question", "for this reply", "for this message", "just for now", "in this case only",
    "for once",
];
/// Openings of what is not so, but might be.
#[rustfmt::skip]
pub(super) const CONDITIONS: &[&str] = &[
    "if ", "what if ", "suppose ", "supposing ", "assuming ", "assume ", "imagine ", "let's say ", "say ", "unless ",
    "in case ", "provided that ", "once ", "until ", "pretend ", "hypothetically",
];
/// Openings of a request in the form of a question.
#[rustfmt::skip]
const REQUESTS: &[&str] = &[
    "can you please ", "could you please ", "would you please ", "will you please ", "can you ", "could you ",
    "would you mind ", "would you ", "will you ", "can we ", "may i ask you to ",
];

/// What a clause without its lead states.
pub(super) fn finding(clause: &str, voice: Voice) -> Option<Finding> {
    if voice == Voice::Answering {
        return change::attribute(clause, voice);
    }
    no_longer(clause)
        .or_else(|| preference(clause))
        .or_else(|| other(clause))
}

/// A standing wish in a question; after how many bytes it begins.
pub(super) fn request(sentence: &str) -> Option<(usize, Finding)> {
    let rest = opening(sentence, REQUESTS)?;
    let standing = opening(rest, &["always ", "never ", "only ever "]).is_some()
        || FROM_NOW.iter().any(|time| rest.contains(time));
    let rest = rest.trim_end_matches(" please");
    let lead = sentence.find(rest)?;
    let found = opening(rest, &["always ", "never ", "only ever "])
        .or_else(|| opening(rest, FROM_NOW).map(|r| r.trim_start_matches([',', ' '])));
    let wished = found.unwrap_or(rest);
    (standing && WISHES.iter().any(|w| begins(wished, w)))
        .then(|| (lead, Finding::preference(answers::about(rest))))
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

/// "I no longer like coffee", "I don't live in Paris any more".
fn no_longer(clause: &str) -> Option<Finding> {
    if !is_personal(clause) {
        return None;
    }
    let without = |words: &str| {
        clause
            .contains(words)
            .then(|| clause.replacen(words, " ", 1))
    };
    let once = without(" no longer ").or_else(|| {
        let held = [" any more", " anymore", " any longer"]
            .iter()
            .find_map(|end| clause.strip_suffix(end))?;
        [" don't ", " do not ", "'m not ", " am not "]
            .iter()
            .find_map(|not| {
                let with = if not.contains('m') { "'m " } else { " " };
                held.contains(not).then(|| held.replacen(not, with, 1))
            })
    })?;
    preference(&once).or_else(|| other(&once))?.no_longer()
}

fn preference(clause: &str) -> Option<Finding> {
    if let Some(favorite) = opening(
        clause,
        &[
            "my favourite ",
            "my favorite ",
            "my new favourite ",
            "my new favorite ",
        ],
    ) {
        let (subject, value) = favorite
            .split_once(" is ")
            .or_else(|| favorite.split_once(" are "))?;
        let about = key(subject)
            .map(|subject| (format!("favorite_{subject}"), Value::Is(normalise(value))));
        return Some(Finding::preference(about));
    }
    if opening(clause, STANDING).is_some() {
        return Some(Finding::preference(answers::about(clause)));
    }
    let always = ["always ", "never "]
        .iter()
        .find_map(|w| clause.strip_prefix(w));
    if let Some(rest) = opening(clause, FROM_NOW).or(always) {
        let rest = rest.trim();
        if WISHES.iter().any(|w| begins(rest, w)) {
            return Some(Finding::preference(answers::about(clause)));
        }
        return rest.is_empty().then(Finding::opening);
    }
    if let Some(found) = taste(clause) {
        return Some(found);
    }
    let asked = clause.strip_prefix("please ").unwrap_or(clause);
    if let Some(name) = opening(asked, CALL) {
        return (!NO_NAME.iter().any(|w| name.starts_with(w))).then(|| {
            Finding::preference(Some((
                "form_of_address".to_owned(),
                Value::Is(normalise(name)),
            )))
        });
    }
    if opening(asked, AVOID).is_some() || is_refused(clause) {
        return Some(Finding::preference(answers::about(clause)));
    }
    let about_answers = ANSWERS.iter().any(|verb| {
        asked
            .strip_prefix(verb)
            .and_then(|rest| rest.strip_prefix(' '))
            .is_some_and(|rest| FORMS.iter().any(|form| rest.starts_with(form)))
    });
    about_answers.then(|| Finding::preference(answers::about(clause)))
}

/// "No emojis please", "please no tables".
fn is_refused(clause: &str) -> bool {
    let polite = clause
        .strip_suffix(" please")
        .or_else(|| clause.strip_prefix("please "));
    let refused = polite
        .or_else(|| answers::speaks_of_answers(clause).then_some(clause))
        .and_then(|words| words.strip_prefix("no "));
    refused.is_some_and(|what| {
        (1..=5).contains(&what.split(' ').count())
            && !["need", "problem", "worries", "thanks"]
                .iter()
                .any(|w| begins(what, w))
    })
}

/// What one likes, prefers or wants.
fn taste(clause: &str) -> Option<Finding> {
    let plain = without_adverbs(clause);
    if let Some(object) = opening(&plain, LIKES) {
        return liking(clause, object, "like");
    }
    if let Some(object) = opening(&plain, DISLIKES) {
        return liking(clause, object, "dislike");
    }
    if let Some(object) = opening(&plain, PREFERS) {
        let object = object.trim();
        let short = object.split(' ').count() <= 3 && !object.contains(" to ");
        let about = (short || answers::speaks_of_answers(object))
            .then(|| answers::about(clause))
            .flatten()
            .or_else(|| Some((taste_key(object)?, Value::Is("like".to_owned()))));
        return (!object.is_empty() && !points(object)).then(|| Finding::preference(about));
    }
    let wanted = opening(&plain, WANTS)?;
    let asked = opening(wanted, &["you to ", "for you to "]);
    let refusing = plain.contains(" don't want ") || plain.contains(" do not want ");
    let wish = match asked {
        Some(wish) => refusing || preference(wish).is_some(),
        // "a short answer" is wanted now, "short answers" always.
        None => {
            wanted.split(' ').count() <= 6
                && ["answers", "replies", "responses"]
                    .iter()
                    .any(|all| wanted.contains(all))
        }
    };
    wish.then(|| Finding::preference(answers::about(clause)))
}

fn liking(clause: &str, object: &str, how: &str) -> Option<Finding> {
    let object = object.trim();
    // "I love the actors" speaks of a film.
    if object.is_empty() || points(object) || begins(object, "the") {
        return None;
    }
    let about = answers::speaks_of_answers(clause)
        .then(|| answers::about(clause))
        .flatten()
        .or_else(|| Some((taste_key(object)?, Value::Is(how.to_owned()))));
    Some(Finding::preference(about))
}

fn points(object: &str) -> bool {
    object == "to" || POINTING.iter().any(|w| begins(object, w))
}

/// "I really do prefer" as "I prefer".
fn without_adverbs(clause: &str) -> String {
    let Some(mut rest) = clause.strip_prefix("i ") else {
        return clause.to_owned();
    };
    while let Some(shorter) = ADVERBS
        .iter()
        .find_map(|adverb| rest.strip_prefix(adverb)?.strip_prefix(' '))
    {
        if shorter.is_empty() {
            break;
        }
        rest = shorter;
    }
    format!("i {rest}")
}

fn other(clause: &str) -> Option<Finding> {
    if let Some(decided) = opening(clause, DECISIONS) {
        let decided = decided
            .trim_start_matches("that ")
            .trim_start_matches("to ");
        let about = change::attribute(decided, Voice::Own).and_then(|f| f.about);
        return Some(Finding::decision(about));
    }
    if opening(clause, STATES).is_some() {
        return Some(Finding::state());
    }
    let clause = &without_adverbs(clause);
    for (words, subject) in PERSON {
        if let Some(rest) = clause.strip_prefix(words) {
            let mood = MOODS.iter().any(|m| rest.starts_with(m));
            let about = subject.map(|s| (s.to_owned(), Value::Is(normalise(rest))));
            return (!mood).then(|| Finding::fact(Scope::UserProfile, 3, about));
        }
    }
    change::attribute(clause, Voice::Own)
}

fn opening<'a>(clause: &'a str, openings: &[&str]) -> Option<&'a str> {
    openings.iter().find_map(|o| clause.strip_prefix(o))
}

/// Whether the text begins with the word or words.
fn begins(text: &str, words: &str) -> bool {
    text.strip_prefix(words)
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}
