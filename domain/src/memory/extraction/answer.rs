//! Reading what a model answered.

use std::collections::BTreeSet;
use std::fmt;

use chrono::NaiveDate;
use serde_json::{Map, Value};

use super::super::gate::KEEP_FROM;
use super::super::redaction::{MARK, redact};
use super::super::{Kind, Scope, Source, Trust, rules};
use super::batch::Batch;
use super::grounding::{self, Ungrounded};
use super::{Fact, LONGEST, MOST_FACTS};
use crate::ids::Timestamp;
use crate::reasoning;
use crate::session::{Message, Role};

/// What an answer holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// What holds, in the answer's order, nothing twice.
    pub facts: Vec<Fact>,
    /// How many facts were left out because they matter too little (B6) or are over already.
    pub passed_over: usize,
    /// What does not hold. Empty for a faultless answer.
    pub faults: Vec<Fault>,
}

impl Answer {
    /// Whether it breaks the form: something may have been meant that was not understood. Facts that are not in their messages do not count:
    /// what was made up is no loss.
    pub fn breaks_the_form(&self) -> bool {
        self.faults.iter().any(|fault| fault.what.breaks_the_form())
    }
}

/// Something in an answer that does not hold. Its text is for the model that made it; it may repeat words of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place of the fact, from 0; none for the answer as a whole.
    pub at: Option<usize>,
    /// What is wrong.
    pub what: Wrong,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "facts[{at}]: {}", self.what),
            None => self.what.fmt(f),
        }
    }
}

/// What is wrong with an answer or a fact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// No JSON object could be read.
    #[error("the answer is not one JSON object")]
    NotJson,
    /// There is no list of facts.
    #[error("the field facts is missing or no list")]
    NoFacts,
    /// There are more facts than anybody said.
    #[error("there are more than {MOST_FACTS} facts")]
    TooMany,
    /// A fact is something else than an object.
    #[error("it is not an object")]
    NotAnObject,
    /// A field that the form does not know.
    #[error("the field {0} is unknown")]
    Unknown(String),
    /// A field that is missing, or of another type or value than the form allows.
    #[error("the field {field} must be {allowed}")]
    Field {
        /// The field.
        field: &'static str,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The content is longer than a fact may be.
    #[error("content has {0} characters, {LONGEST} are allowed")]
    TooLong(usize),
    /// It names no message.
    #[error("evidence names no message")]
    NoEvidence,
    /// It names a message that was not shown.
    #[error("evidence names message {0}, which is not among those shown")]
    UnknownEvidence(i64),
    /// It holds a password, key or card number.
    #[error("content holds a credential; leave it out")]
    Credential,
    /// It is not in the messages that it names.
    #[error("{}", told(.0))]
    Ungrounded(Ungrounded),
}

impl Wrong {
    fn breaks_the_form(&self) -> bool {
        !matches!(
            self,
            Self::NoEvidence | Self::UnknownEvidence(_) | Self::Credential | Self::Ungrounded(_)
        )
    }
}

fn told(what: &Ungrounded) -> String {
    match what {
        Ungrounded::Number(number) => {
            format!(
                "the number {number} is in none of the messages it names; copy numbers as they are written"
            )
        }
        Ungrounded::Name(name) => format!("{name} is in none of the messages it names"),
        Ungrounded::Words => {
            "it does not say what the messages it names say; use their words".to_owned()
        }
    }
}

/// Reads an answer to a batch. Whatever the text is, what is returned as a fact keeps every promise of [`Fact`].
pub fn read(text: &str, batch: &Batch, now: Timestamp) -> Answer {
    let whole = |what| Answer {
        faults: vec![Fault { at: None, what }],
        ..Answer::default()
    };
    let Some(fields) = object(text) else {
        return whole(Wrong::NotJson);
    };
    let Some(Value::Array(items)) = fields.get("facts") else {
        return whole(Wrong::NoFacts);
    };
    let mut answer = Answer::default();
    if let Some(name) = fields.keys().find(|name| *name != "facts") {
        answer.faults.push(Fault {
            at: None,
            what: Wrong::Unknown(name.clone()),
        });
    }
    if items.len() > MOST_FACTS {
        answer.faults.push(Fault {
            at: None,
            what: Wrong::TooMany,
        });
    }
    for (at, item) in items.iter().take(MOST_FACTS).enumerate() {
        match fact(item, batch, now) {
            Ok(Some(fact)) if answer.facts.contains(&fact) => {}
            Ok(Some(fact)) => answer.facts.push(fact),
            Ok(None) => answer.passed_over += 1,
            Err(what) => answer.faults.push(Fault { at: Some(at), what }),
        }
    }
    answer
}

/// The JSON object in a text: without reasoning, and without the fence or the sentence that some models put around it.
fn object(text: &str) -> Option<Map<String, Value>> {
    let parse = |text: &str| match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    };
    let within = |text: &str| {
        let (from, to) = (text.find('{')?, text.rfind('}')?);
        parse(text.get(from..=to)?)
    };
    parse(text).or_else(|| within(&reasoning::clean(text)))
}

/// A fact, or none if it need not be kept: what matters too little is not looked at further.
fn fact(item: &Value, batch: &Batch, now: Timestamp) -> Result<Option<Fact>, Wrong> {
    let fields = item.as_object().ok_or(Wrong::NotAnObject)?;
    let importance = fields
        .get("importance")
        .and_then(Value::as_i64)
        .and_then(|n| u8::try_from(n).ok())
        .filter(|n| (1..=5).contains(n))
        .ok_or(Wrong::Field {
            field: "importance",
            allowed: "a whole number from 1 to 5",
        })?;
    if importance < KEEP_FROM {
        return Ok(None);
    }
    if let Some(name) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(Wrong::Unknown(name.clone()));
    }
    let content = content(fields)?;
    let kind = named(
        fields,
        "kind",
        Kind::parse,
        "preference, fact, decision or temporary_state",
    )?;
    let scope = named(
        fields,
        "scope",
        Scope::parse,
        "user_profile, project_context or task_state",
    )?;
    let evidence = evidence(fields, batch)?;
    if redact(&content).found || content.contains(MARK) {
        return Err(Wrong::Credential);
    }
    grounding::check(&content, &evidence).map_err(Wrong::Ungrounded)?;
    let speakers: Vec<&str> = evidence.iter().filter_map(|m| m.name.as_deref()).collect();
    let key = optional(fields, "key", "a text or null")?
        .and_then(|key| rules::key_of(key, scope, &speakers));
    let negated = match fields.get("negated") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(negated)) => *negated,
        Some(_) => {
            return Err(Wrong::Field {
                field: "negated",
                allowed: "true or false",
            });
        }
    };
    let (Some(said), Some(first)) = (
        evidence.iter().map(|m| m.created_at).max(),
        evidence.first(),
    ) else {
        return Err(Wrong::NoEvidence);
    };
    let since = date(fields, "valid_from")?.filter(|_| key.is_none());
    let expires_at = date(fields, "expires_at")?;
    if expires_at.is_some() && kind != Kind::TemporaryState {
        return Err(Wrong::Field {
            field: "expires_at",
            allowed: "null unless kind is temporary_state",
        });
    }
    if expires_at.is_some_and(|end| end <= now) {
        return Ok(None);
    }
    Ok(Some(Fact {
        content,
        scope,
        // What is no longer wanted is no wish that anybody is to act on.
        kind: if negated && kind == Kind::Preference {
            Kind::Fact
        } else {
            kind
        },
        key,
        importance,
        session_id: first.session_id,
        trust: evidence
            .iter()
            .map(|m| trust(m.role))
            .min()
            .unwrap_or(Trust::Tool),
        // A history of one key is ordered by when things were said: what is said now of long ago must not lose against what it corrects.
        valid_from: since.map_or(said, |since| since.min(said)),
        expires_at,
        negated,
        evidence: evidence
            .iter()
            .map(|m| Source {
                message_id: m.id,
                session_id: m.session_id,
                seq: m.seq,
            })
            .collect(),
    }))
}

const FIELDS: [&str; 9] = [
    "content",
    "kind",
    "scope",
    "key",
    "importance",
    "evidence",
    "valid_from",
    "expires_at",
    "negated",
];

fn content(fields: &Map<String, Value>) -> Result<String, Wrong> {
    let wrong = Wrong::Field {
        field: "content",
        allowed: "a text that is not empty",
    };
    let text = fields.get("content").and_then(Value::as_str);
    // What no store can hold and no line may hold: control characters are spaces.
    let content = text
        .map(|text| text.split(|c: char| c.is_whitespace() || c.is_control()))
        .map(|words| {
            words
                .filter(|w| !w.is_empty())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .filter(|content| !content.is_empty())
        .ok_or(wrong)?;
    match content.chars().count() {
        length if length > LONGEST => Err(Wrong::TooLong(length)),
        _ => Ok(content),
    }
}

fn named<T>(
    fields: &Map<String, Value>,
    field: &'static str,
    parse: fn(&str) -> Option<T>,
    allowed: &'static str,
) -> Result<T, Wrong> {
    let name = fields.get(field).and_then(Value::as_str);
    name.and_then(parse).ok_or(Wrong::Field { field, allowed })
}

/// A text that may be absent, null or empty.
fn optional<'a>(
    fields: &'a Map<String, Value>,
    field: &'static str,
    allowed: &'static str,
) -> Result<Option<&'a str>, Wrong> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(_) => Err(Wrong::Field { field, allowed }),
    }
}

/// A day, or a moment of RFC 3339. A day is its first moment in UTC.
fn date(fields: &Map<String, Value>, field: &'static str) -> Result<Option<Timestamp>, Wrong> {
    let allowed = "a date as YYYY-MM-DD, or null";
    let Some(text) = optional(fields, field, allowed)? else {
        return Ok(None);
    };
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    day.and_then(|day| day.and_hms_opt(0, 0, 0))
        .map(|start| start.and_utc())
        .or_else(|| Some(chrono::DateTime::parse_from_rfc3339(text).ok()?.to_utc()))
        .filter(|at| (1..=9999).contains(&chrono::Datelike::year(at)))
        .map(|at| Some(chrono::SubsecRound::trunc_subsecs(at, 6)))
        .ok_or(Wrong::Field { field, allowed })
}

/// The messages that a fact names, in their order.
fn evidence<'a>(fields: &Map<String, Value>, batch: &'a Batch) -> Result<Vec<&'a Message>, Wrong> {
    let wrong = Wrong::Field {
        field: "evidence",
        allowed: "a list of message numbers",
    };
    let Some(Value::Array(named)) = fields.get("evidence") else {
        return Err(wrong);
    };
    let numbers: BTreeSet<i64> = named
        .iter()
        .map(|n| n.as_i64().ok_or(wrong.clone()))
        .collect::<Result<_, _>>()?;
    if numbers.is_empty() {
        return Err(Wrong::NoEvidence);
    }
    numbers
        .into_iter()
        .map(|n| batch.numbered(n).ok_or(Wrong::UnknownEvidence(n)))
        .collect()
}

/// How far a message can be believed. Nobody's instructions are a person's own words.
fn trust(role: Role) -> Trust {
    match role {
        Role::User => Trust::User,
        Role::Assistant => Trust::Assistant,
        Role::Tool | Role::System => Trust::Tool,
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
