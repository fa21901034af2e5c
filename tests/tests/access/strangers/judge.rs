//! What no answer may tell.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tidemark_tests::answer::Answer;
use tidemark_tests::server::repository;

use super::asks::Ask;
use super::people::{Ids, Person, ids_in};

/// Headers that are of the one request, or follow from its body's length.
const OF_ITS_OWN: [&str; 3] = ["x-request-id", "date", "content-length"];

/// The statuses that the document tells of, for each operation.
#[derive(Debug)]
pub(super) struct Document(BTreeMap<String, BTreeSet<u16>>);

impl Document {
    pub(super) fn read() -> Self {
        let text = std::fs::read_to_string(repository().join("openapi/tidemark.json")).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let paths = document["paths"].as_object().unwrap().values();
        let operations = paths.flat_map(|methods| methods.as_object().unwrap().values());
        Self(
            operations
                .map(|operation| {
                    let statuses = operation["responses"].as_object().unwrap().keys();
                    let id = operation["operationId"].as_str().unwrap().to_owned();
                    (id, statuses.map(|status| status.parse().unwrap()).collect())
                })
                .collect(),
        )
    }

    /// Operations that nothing was asked of.
    pub(super) fn unasked(&self, asked: &BTreeMap<&'static str, BTreeMap<u16, u64>>) -> Vec<&str> {
        let all = self.0.keys().map(String::as_str);
        all.filter(|id| !asked.contains_key(id)).collect()
    }

    /// The answer is one that the document tells of, no failure of the server, and a whole problem if it is one.
    fn allows(&self, ask: &Ask, answer: &Answer) -> Result<(), String> {
        if answer.status >= 500 || !self.0[ask.operation].contains(&answer.status) {
            return Err(format!("status {} of {}", answer.status, ask.operation));
        }
        if answer.status >= 400 {
            answer.expect_problem(answer.status);
        }
        Ok(())
    }
}

fn headers(answer: &Answer) -> Vec<String> {
    let mut all: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| !OF_ITS_OWN.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    all.sort();
    all
}

/// Everything that an answer says.
fn said(answer: &Answer) -> String {
    format!("{}\n{}", headers(answer).join("\n"), answer.text)
}

/// The words in `text` that begin with `stem`.
fn words<'a>(text: &'a str, stem: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(stem).map(|(at, _)| {
        let end = text[at..].find(|c: char| !c.is_ascii_alphanumeric());
        end.map_or(&text[at..], |end| &text[at..at + end])
    })
}

/// What is wrong with an answer by itself: it says something of another's that was not in the request.
pub(super) fn judge(
    document: &Document,
    people: &[Person],
    ids: &Ids,
    (asker, ask): (usize, &Ask),
    answer: &Answer,
) -> Result<(), String> {
    document.allows(ask, answer)?;
    let (told, request) = (said(answer).to_lowercase(), ask.text().to_lowercase());
    let reader = &people[asker];
    let hidden = |owner: usize| {
        let other = &people[owner];
        owner != asker && !(reader.admin && reader.tenant == other.tenant)
    };
    for (number, other) in people.iter().enumerate() {
        if hidden(number)
            && let Some(word) = words(&told, &other.stem).find(|word| !request.contains(word))
        {
            return Err(format!("the word {word} is of {}", other.user));
        }
    }
    let known: BTreeSet<String> = ids_in(&request).into_iter().collect();
    for id in ids_in(&told) {
        if ids.owner(&id).is_some_and(hidden) && !known.contains(&id) {
            return Err(format!("the id {id} is of another"));
        }
    }
    Ok(())
}

/// The answer with names, ids, times and durations that differ between any two requests taken out.
fn comparable(ask: &Ask, answer: &Answer, names: impl Fn(&(String, String)) -> &str) -> String {
    let mut text = headers(answer).join("\n");
    // How an answer is cut into events is the clock's.
    if !answer
        .header("content-type")
        .starts_with("text/event-stream")
    {
        text = format!(
            "{text}\n{}",
            without_times(answer.body.clone(), &answer.text)
        );
    }
    for (number, pair) in ask.foreign.iter().enumerate() {
        text = text.replace(names(pair), &format!("<{number}>"));
    }
    for id in ids_in(&text) {
        text = text.replace(&id, "<id>");
    }
    format!("{}\n{text}", answer.status)
}

fn without_times(mut body: Value, text: &str) -> String {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let of_the_moment = name.ends_with("_at")
                        || name.ends_with("_from")
                        || matches!(
                            name.as_str(),
                            "took_ms" | "ticket" | "events_url" | "request_id"
                        );
                    // The asker's own words are new in each request.
                    let own = matches!(name.as_str(), "title" | "content" | "message");
                    if of_the_moment || (own && field.is_string()) {
                        *field = Value::Null;
                    } else {
                        strip(field);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    if body.is_null() {
        return text.to_owned();
    }
    strip(&mut body);
    body.to_string()
}

/// What tells that the thing of another is there: the answer about one that is nowhere differs.
pub(super) fn compare(ask: &Ask, answer: &Answer, of_nobody: &Answer) -> Result<(), String> {
    let theirs = comparable(ask, answer, |(theirs, _)| theirs);
    let nobodys = comparable(ask, of_nobody, |(_, nobodys)| nobodys);
    if theirs == nobodys {
        return Ok(());
    }
    Err(format!(
        "about what another has:\n{theirs}\nabout what nobody has:\n{nobodys}"
    ))
}
