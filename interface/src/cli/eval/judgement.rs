//! What was seen against what was expected; each difference is a reason.

use std::collections::BTreeMap;

use serde_json::Value;

use super::scenario::{Change, Count, Expectations, Words};

/// What a step showed.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) answer: String,
    pub(super) recalled: Vec<String>,
    pub(super) abstained: bool,
}

/// A user's memories by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Area(BTreeMap<String, Shown>);

#[derive(Clone, Debug)]
struct Shown {
    state: String,
    layer: String,
    content: String,
}

impl Area {
    /// Of memories as the API shows them.
    pub(super) fn of(memories: &[Value]) -> Self {
        let field =
            |memory: &Value, name: &str| memory[name].as_str().unwrap_or_default().to_owned();
        Self(
            memories
                .iter()
                .map(|m| {
                    let shown = Shown {
                        state: field(m, "state"),
                        layer: field(m, "layer"),
                        content: field(m, "content"),
                    };
                    (field(m, "id"), shown)
                })
                .collect(),
        )
    }

    /// The ids of those that hold the text.
    pub(super) fn holding(&self, text: &str) -> Vec<&str> {
        self.0
            .iter()
            .filter(|(_, shown)| holds(&shown.content, text))
            .map(|(id, _)| id.as_str())
            .collect()
    }

    /// The ids of those that hold the text, and hold now.
    pub(super) fn current(&self, text: &str) -> Vec<&str> {
        self.in_state("current", text)
    }

    /// The ids of those that hold the text, and wait for confirmation.
    pub(super) fn waiting(&self, text: &str) -> Vec<&str> {
        self.in_state("quarantined", text)
    }

    fn in_state(&self, state: &str, text: &str) -> Vec<&str> {
        let mut ids = self.holding(text);
        ids.retain(|id| self.state(id) == Some(state));
        ids
    }

    fn count(&self, what: &Count, state: Option<&str>) -> usize {
        let layer = what.layer.as_deref();
        let fits = |shown: &&Shown| {
            state.is_none_or(|state| state == shown.state)
                && layer.is_none_or(|layer| layer == shown.layer)
                && holds(&shown.content, &what.with)
        };
        self.0.values().filter(fits).count()
    }

    fn state(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(|shown| shown.state.as_str())
    }
}

/// Of answers and recalled memories.
pub(super) fn of_telling(expect: &Expectations, seen: &Seen) -> Vec<String> {
    let mut reasons = words("the answer", &expect.answer, &[seen.answer.as_str()]);
    let recalled: Vec<&str> = seen.recalled.iter().map(String::as_str).collect();
    reasons.extend(words("what was recalled", &expect.recalled, &recalled));
    match expect.abstained {
        Some(true) if !seen.abstained => reasons.push(format!(
            "something was recalled where nothing should be: {}",
            shown(&recalled)
        )),
        Some(false) if seen.abstained => reasons.push("nothing was recalled".to_owned()),
        _ => {}
    }
    reasons
}

/// Of how many memories hold a text.
pub(super) fn of_counts(counts: &[Count], area: &Area) -> Vec<String> {
    let mut reasons = Vec::new();
    for count in counts {
        for (expected, state) in [
            (count.current, Some("current")),
            (count.superseded, Some("superseded")),
            (count.quarantined, Some("quarantined")),
            (count.all, None),
        ] {
            let found = area.count(count, state);
            if expected.is_some_and(|expected| expected != found) {
                let contents: Vec<String> = area
                    .holding(&count.with)
                    .into_iter()
                    .filter_map(|id| area.0.get(id))
                    .map(|shown| format!("{}, {}: {}", shown.layer, shown.state, shown.content))
                    .collect();
                let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
                reasons.push(format!(
                    "{found} instead of {} {} memories hold {:?}: {}",
                    expected.unwrap_or_default(),
                    state.unwrap_or("or any other"),
                    count.with,
                    shown(&contents)
                ));
            }
        }
    }
    reasons
}

/// Of how memories changed.
pub(super) fn of_change(change: &Change, before: &Area, now: &Area) -> Vec<String> {
    let created = now.0.keys().filter(|id| before.state(id).is_none());
    let removed = before.0.keys().filter(|id| now.state(id).is_none());
    let superseded = now
        .0
        .keys()
        .filter(|id| now.state(id) == Some("superseded") && before.state(id) != Some("superseded"));
    [
        ("created", change.created, created.count()),
        ("superseded", change.superseded, superseded.count()),
        ("removed", change.removed, removed.count()),
    ]
    .into_iter()
    .filter_map(|(what, expected, found)| {
        let expected = expected.filter(|expected| *expected != found)?;
        Some(format!(
            "{found} memories were {what} instead of {expected}"
        ))
    })
    .collect()
}

fn words(what: &str, expected: &Words, texts: &[&str]) -> Vec<String> {
    let there = |text: &String| texts.iter().any(|t| holds(t, text));
    let missing = expected.has.iter().filter(|text| !there(text));
    let surplus = expected.lacks.iter().filter(|text| there(text));
    missing
        .map(|text| format!("{what} lacks {text:?}: {}", shown(texts)))
        .chain(surplus.map(|text| format!("{what} has {text:?}: {}", shown(texts))))
        .collect()
}

fn holds(content: &str, text: &str) -> bool {
    content.to_lowercase().contains(&text.to_lowercase())
}

/// Texts on one line, each in quotation marks.
fn shown(texts: &[&str]) -> String {
    if texts.is_empty() {
        return "nothing".to_owned();
    }
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    fn expectations(value: Value) -> Expectations {
        serde_json::from_value(value).unwrap()
    }

    fn area(memories: &[(&str, &str, &str)]) -> Area {
        let memories: Vec<Value> = memories
            .iter()
            .map(|(id, state, content)| json!({ "id": id, "state": state, "layer": "episodic", "content": content }))
            .collect();
        Area::of(&memories)
    }

    #[test]
    fn what_is_missing_and_what_should_not_be_there_are_told_apart() {
        let seen = Seen {
            answer: "It is 400K.".to_owned(),
            recalled: vec!["The budget is 400k".to_owned()],
            abstained: false,
        };
        let fine = expectations(
            json!({ "answer": { "has": ["400k"] }, "recalled": { "lacks": ["300k"] }, "abstained": false }),
        );
        assert!(of_telling(&fine, &seen).is_empty());
        let other = expectations(json!({
            "answer": { "has": ["500k"] }, "recalled": { "has": ["budget"], "lacks": ["400k"] }, "abstained": true,
        }));
        assert_eq!(
            of_telling(&other, &seen),
            [
                "the answer lacks \"500k\": \"It is 400K.\"",
                "what was recalled has \"400k\": \"The budget is 400k\"",
                "something was recalled where nothing should be: \"The budget is 400k\"",
            ]
        );
        let silent = expectations(json!({ "abstained": false }));
        let nothing = Seen {
            abstained: true,
            ..Seen::default()
        };
        assert_eq!(of_telling(&silent, &nothing), ["nothing was recalled"]);
    }

    #[test]
    fn memories_are_counted_by_text_and_state() {
        let area = area(&[
            ("1", "superseded", "Budget 300k"),
            ("2", "current", "Budget 400k"),
            ("3", "current", "Tea"),
        ]);
        let counts =
            |value: Value| of_counts(&serde_json::from_value::<Vec<Count>>(value).unwrap(), &area);
        let fine = json!([{ "with": "budget", "current": 1, "superseded": 1, "all": 2 }, { "with": "coffee", "all": 0 }]);
        assert!(counts(fine).is_empty());
        let layers = json!([{ "with": "budget", "layer": "episodic", "all": 2 }, { "with": "budget", "layer": "semantic", "all": 0 }]);
        assert!(counts(layers).is_empty());
        let wrong = counts(json!([{ "with": "budget", "current": 2, "superseded": 0 }]));
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].starts_with("1 instead of 2 current memories hold \"budget\""));
    }

    #[test]
    fn a_change_is_what_came_what_was_superseded_and_what_went() {
        let before = area(&[
            ("1", "current", "a"),
            ("2", "current", "b"),
            ("3", "superseded", "c"),
        ]);
        let now = area(&[
            ("1", "superseded", "a"),
            ("3", "superseded", "c"),
            ("4", "current", "d"),
        ]);
        let judged =
            |value: Value| of_change(&serde_json::from_value(value).unwrap(), &before, &now);
        assert!(judged(json!({ "created": 1, "superseded": 1, "removed": 1 })).is_empty());
        assert!(judged(json!({})).is_empty());
        assert_eq!(
            judged(json!({ "created": 0, "superseded": 1 })),
            ["1 memories were created instead of 0"]
        );
    }
}
