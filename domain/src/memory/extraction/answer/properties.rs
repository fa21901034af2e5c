//! Whatever a model answers: reading it never fails, and nothing passes that breaks a promise of a fact.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use serde_json::json;

use super::super::super::testing::{day, message};
use super::*;
use crate::window::EstimateCounter;

const SAID: [(Role, &str); 4] = [
    (
        Role::User,
        "My budget is 300k and my sister Emma lives in Oslo.",
    ),
    (Role::Assistant, "Noted, Oslo."),
    (
        Role::User,
        "我的项目预算改成40万了。 token sk-a1B2c3D4a1B2c3D4a1B2",
    ),
    (Role::Tool, "18 degrees in Oslo"),
];

fn batch() -> Batch {
    let messages: Vec<Message> = (1..)
        .zip(SAID)
        .map(|(seq, (role, text))| message(seq, role, text))
        .collect();
    Batch::of(&messages, 10_000, &EstimateCounter)
}

fn assert_promises_are_kept(answer: &Answer, batch: &Batch) {
    for fact in &answer.facts {
        assert!(
            (1..=LONGEST).contains(&fact.content.chars().count()),
            "{fact:?}"
        );
        assert!(
            !redact(&fact.content).found && !fact.content.chars().any(char::is_control),
            "{fact:?}"
        );
        assert!((KEEP_FROM..=5).contains(&fact.importance), "{fact:?}");
        assert!(!fact.evidence.is_empty(), "{fact:?}");
        let named: Vec<&Message> = fact
            .evidence
            .iter()
            .map(|s| {
                batch
                    .messages()
                    .iter()
                    .find(|m| m.id == s.message_id && m.seq == s.seq)
                    .unwrap()
            })
            .collect();
        assert!(
            named.iter().all(|m| trust(m.role) >= fact.trust),
            "{fact:?}"
        );
        assert!(
            named.iter().any(|m| fact.valid_from <= m.created_at),
            "{fact:?}"
        );
        assert_eq!(grounding::check(&fact.content, &named), Ok(()));
        assert!(
            fact.expires_at
                .is_none_or(|end| end > day(3) && fact.kind == Kind::TemporaryState),
            "{fact:?}"
        );
        assert!(
            fact.key.as_deref().is_none_or(|key| !key.is_empty()),
            "{fact:?}"
        );
    }
}

/// Any JSON, and often what is almost right.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(Value::from)
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".*",
        "[A-Z]?[a-z]{1,8}( [A-Z]?[a-z0-9]{1,8}){0,6}",
        prop::sample::select(vec![
            "My budget is 300k",
            "Emma lives in Oslo",
            "The budget is 500k",
            "项目预算40万",
            "sk-a1B2c3D4a1B2c3D4a1B2",
            "fact",
            "preference",
            "temporary_state",
            "user_profile",
            "project_context",
            "2024-06-01",
            "2024-01-01",
            "user_name",
        ])
        .prop_map(str::to_owned),
    ]
}

fn item() -> impl Strategy<Value = Value> {
    let field = (prop::sample::select(&FIELDS[..]), value());
    let right = (
        text(),
        prop::sample::select(vec!["fact", "temporary_state", "preference"]),
        prop::collection::vec(-1..6_i64, 0..3),
        0..7_i64,
    );
    (right, prop::collection::vec(field, 0..3)).prop_map(|((content, kind, evidence, importance), changes)| {
        let mut item = json!({
            "content": content, "kind": kind, "scope": "project_context", "importance": importance, "evidence": evidence,
        });
        for (name, value) in changes {
            item[name] = value;
        }
        item
    })
}

proptest! {
    #[test]
    fn no_text_makes_reading_fail(text in any::<String>()) {
        assert_promises_are_kept(&read(&text, &batch(), day(3)), &batch());
    }

    #[test]
    fn no_json_makes_reading_fail(value in value(), facts in value()) {
        let wrapped = json!({ "facts": facts }).to_string();
        for text in [value.to_string(), wrapped] {
            assert_promises_are_kept(&read(&text, &batch(), day(3)), &batch());
        }
    }

    #[test]
    fn nothing_invalid_passes(items in prop::collection::vec(item(), 0..5), before in "[^{}]*", after in "[^{}]*") {
        let text = format!("{before}{}{after}", json!({ "facts": items }));
        let answer = read(&text, &batch(), day(3));
        assert_promises_are_kept(&answer, &batch());
        prop_assert!(answer.facts.len() + answer.passed_over + answer.faults.len() <= items.len().max(1));
    }
}
