//! Scenarios as they are written.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

macro_rules! built_in {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../eval/scenarios/",
                $name
            )),
        )
    };
}

/// The scenarios that come with the product.
const BUILT_IN: [(&str, &str); 6] = [
    built_in!("preference.en.yaml"),
    built_in!("preference.zh.yaml"),
    built_in!("changed_fact.en.yaml"),
    built_in!("changed_fact.zh.yaml"),
    built_in!("cleanliness.en.yaml"),
    built_in!("cleanliness.zh.yaml"),
];

/// Scenarios cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScenarioError {
    /// A folder or file cannot be read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path} is no file of scenarios: {reason}")]
    Malformed {
        /// Which.
        path: String,
        /// What is wrong, with its place.
        reason: String,
    },
    /// A scenario says what makes no sense.
    #[error("{path}: scenario {scenario}: {reason}")]
    Wrong {
        /// Which file.
        path: String,
        /// Which scenario.
        scenario: String,
        /// What is wrong.
        reason: String,
    },
}

/// What kind of promise a scenario holds (B15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Class {
    /// Wishes are known in every session.
    Preference,
    /// The newest statement is told, and it alone.
    ChangedFact,
    /// Nothing is told that should not be.
    Cleanliness,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Preference => "preference",
            Self::ChangedFact => "changed_fact",
            Self::Cleanliness => "cleanliness",
        })
    }
}

/// A file of scenarios.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    class: Class,
    language: String,
    scenarios: Vec<Written>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    about: String,
    steps: Vec<Step>,
}

/// A scenario.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) class: Class,
    pub(super) language: String,
    /// The promise, in a sentence.
    pub(super) about: String,
    pub(super) steps: Vec<Step>,
}

/// One thing that is done, and what is expected of it. Exactly one of the actions is named.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// A turn with this message; its answer is waited for.
    pub(super) say: Option<String>,
    /// Past messages, imported.
    pub(super) import: Option<Vec<Past>>,
    /// A memory that is given by hand.
    pub(super) remember: Option<String>,
    /// A query to recall alone, without a turn.
    pub(super) recall: Option<String>,
    /// Gives the memory that holds this text, and holds now, another content.
    pub(super) edit: Option<String>,
    /// Confirms every memory that holds this text and waits for it.
    pub(super) confirm: Option<String>,
    /// Forgets every memory that holds this text.
    pub(super) forget: Option<String>,
    /// Deletes this session, with what was learned from it.
    pub(super) delete_session: Option<String>,
    /// Waits until derived work is done.
    pub(super) settle: Option<bool>,

    /// Who does it; `ann` when nobody is named.
    pub(super) user: Option<String>,
    /// Where it is said or imported; a session of its own when none is named.
    pub(super) session: Option<String>,
    /// The turn's memory mode: `on`, `read_only` or `off`.
    pub(super) memory: Option<String>,
    /// The content that an edited memory is given.
    pub(super) to: Option<String>,
    /// Of what is remembered.
    pub(super) scope: Option<String>,
    /// Of what is remembered.
    pub(super) kind: Option<String>,
    /// Of what is remembered.
    pub(super) key: Option<String>,
    /// Of what is remembered.
    pub(super) valid_from: Option<DateTime<Utc>>,
    /// What recall is to believe: what held then.
    pub(super) as_of: Option<DateTime<Utc>>,

    /// What has to hold.
    #[serde(default)]
    pub(super) expect: Expectations,
}

/// A past message.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Past {
    /// Said by the user.
    pub(super) user: Option<String>,
    /// Said by the assistant.
    pub(super) assistant: Option<String>,
    /// When.
    pub(super) at: DateTime<Utc>,
    /// How often the message is imported, each time numbered; once when not said.
    pub(super) times: Option<u32>,
}

/// What has to hold after a step.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expectations {
    /// Of the answer's text.
    #[serde(default)]
    pub(super) answer: Words,
    /// Of what was recalled, by profile or relevance.
    #[serde(default)]
    pub(super) recalled: Words,
    /// Whether nothing was recalled by relevance.
    pub(super) abstained: Option<bool>,
    /// How many memories hold a text.
    #[serde(default)]
    pub(super) memories: Vec<Count>,
    /// How the user's memories have changed since the last step that expected something of their change, or the beginning.
    pub(super) change: Option<Change>,
}

/// Texts that are or are not there, whatever their case.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    #[serde(default)]
    pub(super) has: Vec<String>,
    #[serde(default)]
    pub(super) lacks: Vec<String>,
}

/// How many memories hold a text; what is not named is not looked at.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Count {
    pub(super) with: String,
    /// Only in this layer: what was said is there once, and what was learned of it may be there too or not yet.
    pub(super) layer: Option<String>,
    pub(super) current: Option<usize>,
    pub(super) superseded: Option<usize>,
    pub(super) quarantined: Option<usize>,
    pub(super) all: Option<usize>,
}

/// How many memories came, were superseded or went; what is not named is not looked at.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    pub(super) created: Option<usize>,
    pub(super) superseded: Option<usize>,
    pub(super) removed: Option<usize>,
}

/// The scenarios that come with the product.
pub(super) fn built_in() -> Result<Vec<Scenario>, ScenarioError> {
    let files = BUILT_IN
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    read(files)
}

/// Those of a folder: every file that ends in `.yaml`.
pub(super) fn of_folder(folder: &Path) -> Result<Vec<Scenario>, ScenarioError> {
    let unreadable = |path: &Path| {
        let path = path.display().to_string();
        move |source| ScenarioError::Unreadable { path, source }
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable(folder))? {
        let path = entry.map_err(unreadable(folder))?.path();
        if path.extension().is_some_and(|e| e == "yaml") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(unreadable(&path))?;
        files.push((path.display().to_string(), text));
    }
    read(files)
}

fn read(files: impl IntoIterator<Item = (String, String)>) -> Result<Vec<Scenario>, ScenarioError> {
    let mut all = Vec::new();
    let mut names = HashSet::new();
    for (path, text) in files {
        let file: File =
            serde_saphyr::from_str(&text).map_err(|error| ScenarioError::Malformed {
                path: path.clone(),
                reason: error.to_string(),
            })?;
        for written in file.scenarios {
            let wrong = |reason: String| ScenarioError::Wrong {
                path: path.clone(),
                scenario: written.name.clone(),
                reason,
            };
            if !names.insert(written.name.clone()) {
                return Err(wrong("another has this name".to_owned()));
            }
            for (number, step) in (1..).zip(&written.steps) {
                step.check()
                    .map_err(|reason| wrong(format!("step {number} {reason}")))?;
            }
            if !written.steps.iter().any(|step| step.expect.any()) {
                return Err(wrong("expects nothing".to_owned()));
            }
            all.push(Scenario {
                class: file.class,
                language: file.language.clone(),
                name: written.name,
                about: written.about,
                steps: written.steps,
            });
        }
    }
    Ok(all)
}

impl Scenario {
    /// Whether its name, class or language holds the text.
    pub(super) fn is_meant_by(&self, text: &str) -> bool {
        let class = self.class.to_string();
        [self.name.as_str(), class.as_str(), self.language.as_str()]
            .iter()
            .any(|part| part.contains(text))
    }
}

impl Step {
    fn check(&self) -> Result<(), &'static str> {
        let actions = [
            self.say.is_some(),
            self.import.is_some(),
            self.remember.is_some(),
            self.recall.is_some(),
            self.edit.is_some(),
            self.confirm.is_some(),
            self.forget.is_some(),
            self.delete_session.is_some(),
            self.settle.is_some(),
        ];
        if actions.iter().filter(|there| **there).count() != 1 {
            return Err(
                "must name one of say, import, remember, recall, edit, confirm, forget, delete_session, settle",
            );
        }
        let expect = &self.expect;
        if expect.answer.any() && self.say.is_none() {
            return Err("expects an answer, which only say has");
        }
        let recalls = self.say.is_some() || self.recall.is_some();
        if (expect.recalled.any() || expect.abstained.is_some()) && !recalls {
            return Err("expects something recalled, which only say and recall have");
        }
        let given = self.remember.is_some();
        let of_given = self.scope.is_some()
            || self.kind.is_some()
            || self.key.is_some()
            || self.valid_from.is_some();
        if of_given && !given {
            return Err("has scope, kind, key or valid_from, which only remember has");
        }
        if self.to.is_some() != self.edit.is_some() {
            return Err("has one of edit and to without the other");
        }
        if self.as_of.is_some() && self.recall.is_none() {
            return Err("has as_of, which only recall has");
        }
        if self.memory.is_some() && self.say.is_none() {
            return Err("has memory, which only say has");
        }
        let messages = self.import.iter().flatten();
        if messages
            .into_iter()
            .any(|m| m.user.is_some() == m.assistant.is_some())
        {
            return Err("imports a message that is not either of the user or of the assistant");
        }
        Ok(())
    }

    /// What it does, in a few words.
    pub(super) fn title(&self) -> String {
        let named = |action: &str, text: &str| format!("{action} {text:?}");
        if let Some(text) = &self.say {
            named("say", text)
        } else if let Some(text) = &self.remember {
            named("remember", text)
        } else if let Some(text) = &self.recall {
            named("recall", text)
        } else if let Some(text) = &self.edit {
            named("edit", text)
        } else if let Some(text) = &self.confirm {
            named("confirm", text)
        } else if let Some(text) = &self.forget {
            named("forget", text)
        } else if let Some(text) = &self.delete_session {
            named("delete_session", text)
        } else if let Some(messages) = &self.import {
            format!("import of {} messages", messages.len())
        } else {
            "settle".to_owned()
        }
    }
}

impl Expectations {
    fn any(&self) -> bool {
        self.answer.any()
            || self.recalled.any()
            || self.abstained.is_some()
            || !self.memories.is_empty()
            || self.change.is_some()
    }
}

impl Words {
    fn any(&self) -> bool {
        !self.has.is_empty() || !self.lacks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn one(steps: &str) -> Result<Vec<Scenario>, ScenarioError> {
        let text = format!(
            "class: cleanliness\nlanguage: en\nscenarios:\n  - name: a\n    about: b\n    steps:\n{steps}"
        );
        read([("t.yaml".to_owned(), text)])
    }

    #[test]
    fn scenarios_come_with_the_product_in_three_classes_and_two_languages() {
        let all = built_in().unwrap();
        assert!(all.len() >= 30, "{}", all.len());
        for class in [Class::Preference, Class::ChangedFact, Class::Cleanliness] {
            for language in ["en", "zh"] {
                let there = all
                    .iter()
                    .any(|s| s.class == class && s.language == language);
                assert!(there, "{class} {language}");
            }
        }
    }

    #[test]
    fn every_file_of_scenarios_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../eval/scenarios");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), BUILT_IN.len());
        assert_eq!(of_folder(&folder).unwrap().len(), built_in().unwrap().len());
    }

    #[test]
    fn a_step_is_read_with_its_expectations() {
        let all = one(
            "      - say: What is it?\n        user: bo\n        expect: { recalled: { has: [x], lacks: [y] }, abstained: false }\n",
        )
        .unwrap();
        let step = &all[0].steps[0];
        assert_eq!(step.say.as_deref(), Some("What is it?"));
        assert_eq!(step.user.as_deref(), Some("bo"));
        assert_eq!(step.expect.recalled.lacks, ["y"]);
        assert_eq!(step.title(), "say \"What is it?\"");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        for (steps, told) in [
            ("      - say: a\n", "expects nothing"),
            (
                "      - say: a\n        recall: b\n",
                "step 1 must name one of",
            ),
            (
                "      - settle: true\n        expect: { answer: { has: [a] } }\n",
                "only say has",
            ),
            (
                "      - say: a\n        as_of: 2026-01-01T00:00:00Z\n",
                "only recall has",
            ),
            ("      - edit: a\n", "without the other"),
            (
                "      - import: [{ at: 2026-01-01T00:00:00Z }]\n",
                "not either",
            ),
            ("      - shout: a\n", "shout"),
            (
                "      - say: a\n        expect: { reply: { has: [a] } }\n",
                "reply",
            ),
        ] {
            let refused = one(steps).unwrap_err().to_string();
            assert!(
                refused.contains(told) && refused.contains("t.yaml"),
                "{refused}"
            );
        }
    }
}
