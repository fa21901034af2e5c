#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use serde_json::json;

use super::super::super::testing::{day, message, source};
use super::*;
use crate::window::EstimateCounter;

fn batch() -> Batch {
    Batch::of(
        &[
            message(
                11,
                Role::User,
                "I prefer answers as tables. The budget is 300k.",
            ),
            message(12, Role::Assistant, "Noted. Shall I plan with Friday?"),
            message(
                13,
                Role::User,
                "Yes, Friday. I no longer use Vim. password: hunter22x",
            ),
            message(14, Role::Tool, "The office closes at 18:00 on Friday"),
        ],
        10_000,
        &EstimateCounter,
    )
}

fn item(change: &Value) -> Value {
    let mut item = json!({
        "content": "The budget is 300k", "kind": "fact", "scope": "project_context", "key": "project_budget", "importance": 4,
        "evidence": [1], "valid_from": null, "expires_at": null, "negated": false,
    });
    for (name, value) in change.as_object().unwrap() {
        item[name] = value.clone();
    }
    item
}

fn read_items(items: &[Value]) -> Answer {
    read(&json!({ "facts": items }).to_string(), &batch(), day(3))
}

fn only(change: &Value) -> Fact {
    let mut answer = read_items(&[item(change)]);
    assert_eq!(answer.faults, [], "{change}");
    answer.facts.pop().unwrap()
}

fn wrong(change: &Value) -> Wrong {
    let mut answer = read_items(&[item(change)]);
    assert_eq!(answer.facts, [], "{change}");
    assert_eq!(answer.faults.len(), 1, "{change}");
    answer.faults.pop().unwrap().what
}

#[test]
fn a_fact_is_read_with_the_messages_it_came_from() {
    let fact = only(&json!({}));
    let messages = batch();
    let said = &messages.messages()[0];
    assert_eq!(fact.content, "The budget is 300k");
    assert_eq!(fact.key.as_deref(), Some("budget"));
    assert_eq!(fact.evidence, [source(said)]);
    assert_eq!((fact.trust, fact.importance), (Trust::User, 4));
    assert_eq!(fact.valid_from, said.created_at);
}

#[test]
fn a_fact_is_trusted_as_far_as_the_least_of_its_messages() {
    let friday = |evidence: Value| {
        only(&json!({ "content": "Plan with Friday", "key": null, "evidence": evidence })).trust
    };
    assert_eq!(friday(json!([3, 2])), Trust::Assistant);
    let closing = json!({ "content": "The office closes at 18:00 on Friday", "evidence": [3, 4] });
    assert_eq!(only(&closing).trust, Trust::Tool);
}

#[test]
fn what_matters_little_is_passed_over_whatever_else_it_is() {
    for change in [
        json!({ "importance": 2 }),
        json!({ "importance": 1, "evidence": [99], "kind": "nonsense" }),
    ] {
        let answer = read_items(&[item(&change)]);
        assert_eq!(
            answer,
            Answer {
                passed_over: 1,
                ..Answer::default()
            }
        );
    }
}

#[test]
fn a_fact_without_messages_or_with_others_is_refused_and_is_no_breach_of_form() {
    for (change, what) in [
        (json!({ "evidence": [] }), Wrong::NoEvidence),
        (json!({ "evidence": [0] }), Wrong::UnknownEvidence(0)),
        (json!({ "evidence": [1, 5] }), Wrong::UnknownEvidence(5)),
        (json!({ "evidence": [11] }), Wrong::UnknownEvidence(11)),
        (json!({ "evidence": [-1] }), Wrong::UnknownEvidence(-1)),
        (
            json!({ "content": "The budget is 500k" }),
            Wrong::Ungrounded(Ungrounded::Number("500k".to_owned())),
        ),
        (
            json!({ "content": "The budget of Initech is 300k" }),
            Wrong::Ungrounded(Ungrounded::Name("Initech".to_owned())),
        ),
        (
            json!({ "content": "User has a garden with old trees" }),
            Wrong::Ungrounded(Ungrounded::Words),
        ),
        (
            json!({ "content": "I no longer use Vim", "evidence": [1] }),
            Wrong::Ungrounded(Ungrounded::Name("Vim".to_owned())),
        ),
    ] {
        let answer = read_items(&[item(&change)]);
        assert!(!answer.breaks_the_form(), "{change}");
        assert_eq!(wrong(&change), what);
    }
}

#[test]
fn a_credential_is_neither_shown_nor_learned() {
    assert!(!batch().lines().contains("hunter22x"));
    for content in [
        "The password is hunter22x",
        "User's password is [redacted]",
        "The budget card is 4111 1111 1111 1111",
    ] {
        assert_eq!(
            wrong(&json!({ "content": content, "evidence": [1, 3] })),
            Wrong::Credential
        );
    }
}

#[test]
fn a_breach_of_the_form_is_named() {
    let breaches = [
        json!({ "content": "" }),
        json!({ "content": " \u{0} " }),
        json!({ "content": 5 }),
        json!({ "content": "budget ".repeat(30) }),
        json!({ "kind": "opinion" }),
        json!({ "scope": null }),
        json!({ "importance": 6 }),
        json!({ "importance": "4" }),
        json!({ "importance": 4.5 }),
        json!({ "evidence": "1" }),
        json!({ "evidence": ["1"] }),
        json!({ "key": 7 }),
        json!({ "valid_from": "yesterday" }),
        json!({ "expires_at": "2030-01-01" }),
        json!({ "negated": "no" }),
        json!({ "source": "me" }),
    ];
    for change in breaches {
        let answer = read_items(&[item(&change)]);
        assert!(answer.breaks_the_form(), "{change}");
        assert!(answer.facts.is_empty(), "{change}");
        assert!(
            answer.faults[0].to_string().starts_with("facts[0]: "),
            "{change}"
        );
    }
    for text in [
        "",
        "[]",
        "null",
        "no JSON",
        "{\"facts\":{}}",
        "{\"fact\":[]}",
        "{\"facts\":[]",
    ] {
        assert!(read(text, &batch(), day(3)).breaks_the_form(), "{text}");
    }
    for items in [json!(["a"]), json!([null]), json!([[]])] {
        assert!(read_items(items.as_array().unwrap()).breaks_the_form());
    }
}

#[test]
fn one_wrong_fact_does_not_cost_the_others() {
    let answer = read_items(&[item(&json!({ "kind": "opinion" })), item(&json!({}))]);
    assert_eq!((answer.facts.len(), answer.faults.len()), (1, 1));
    assert_eq!(answer.faults[0].at, Some(0));
}

#[test]
fn a_fact_that_is_told_twice_is_one() {
    assert_eq!(
        read_items(&[item(&json!({})), item(&json!({}))])
            .facts
            .len(),
        1
    );
}

#[test]
fn reasoning_and_wrapping_around_the_object_are_taken_off() {
    let object = json!({ "facts": [item(&json!({}))] }).to_string();
    for text in [
        format!("<think>The user {{said}} something</think>{object}"),
        format!("```json\n{object}\n```"),
        format!("Here are the facts:\n{object}\nDone."),
    ] {
        let answer = read(&text, &batch(), day(3));
        assert_eq!((answer.facts.len(), answer.faults.len()), (1, 0), "{text}");
    }
}

#[test]
fn a_keyed_fact_holds_since_it_was_said_and_another_since_it_says() {
    let since = json!({ "valid_from": "2024-01-15" });
    assert_eq!(only(&since).valid_from, day(2));
    let unkeyed = |since: &str| only(&json!({ "key": null, "valid_from": since })).valid_from;
    let january: Timestamp = "2024-01-15T00:00:00Z".parse().unwrap();
    assert_eq!(unkeyed("2024-01-15"), january);
    assert_eq!(unkeyed("2024-01-15T01:00:00+01:00"), january);
    assert_eq!(
        unkeyed("2031-01-15"),
        day(2),
        "nothing holds from a time to come"
    );
}

#[test]
fn only_a_temporary_state_ends_by_itself_and_what_is_over_is_passed_over() {
    let until = |end: &str| json!({ "kind": "temporary_state", "expires_at": end });
    let end: Timestamp = "2024-06-01T00:00:00Z".parse().unwrap();
    assert_eq!(only(&until("2024-06-01")).expires_at, Some(end));
    let over = read_items(&[item(&until("2024-05-03"))]);
    assert_eq!(
        over,
        Answer {
            passed_over: 1,
            ..Answer::default()
        }
    );
}

#[test]
fn a_negation_is_marked() {
    let fact = only(
        &json!({ "content": "User no longer uses Vim", "key": "editor", "evidence": [3], "negated": true }),
    );
    assert!(fact.negated);
    assert!(!only(&json!({})).negated);
}

#[test]
fn a_chosen_key_takes_the_form_of_the_rules() {
    for (scope, chosen, key) in [
        ("user_profile", "user_name", Some("name")),
        ("user_profile", "User Name", Some("name")),
        ("project_context", "project_budget", Some("budget")),
        ("project_context", "项目预算", Some("budget")),
        ("project_context", "project_name", Some("project_name")),
        (
            "project_context",
            "apollo.deadline",
            Some("apollo_deadline"),
        ),
        ("project_context", "", None),
        ("project_context", "--", None),
        ("project_context", &"long ".repeat(20), None),
    ] {
        let fact = only(&json!({ "scope": scope, "key": chosen }));
        assert_eq!(fact.key.as_deref(), key, "{chosen}");
    }
}

#[test]
fn a_fact_about_somebody_with_a_name_is_filed_under_the_name() {
    let named = |seq, name: &str, text| {
        let mut message = message(seq, Role::User, text);
        message.name = Some(name.to_owned());
        message
    };
    let said = [
        named(1, "Mary Ann", "I work as a nurse, the budget is 300k"),
        named(2, "Bob", "I work as a cook, the budget is 300k"),
    ];
    let batch = Batch::of(&said, 10_000, &EstimateCounter);
    for (content, scope, chosen, evidence, key) in [
        (
            "Mary Ann works as a nurse",
            "user_profile",
            "mary_ann_job",
            vec![1],
            "mary_ann/job",
        ),
        (
            "Mary Ann works as a nurse",
            "user_profile",
            "user_job",
            vec![1],
            "mary_ann/job",
        ),
        (
            "Bob works as a cook",
            "user_profile",
            "job",
            vec![2],
            "bob/job",
        ),
        (
            "The budget is 300k",
            "project_context",
            "project_budget",
            vec![1, 2],
            "budget",
        ),
    ] {
        let change =
            json!({ "content": content, "scope": scope, "key": chosen, "evidence": evidence });
        let answer = read(
            &json!({ "facts": [item(&change)] }).to_string(),
            &batch,
            day(3),
        );
        assert_eq!(answer.faults, [], "{content}");
        assert_eq!(answer.facts[0].key.as_deref(), Some(key));
    }
}

#[test]
fn what_is_no_longer_wanted_is_no_preference() {
    let said = message(1, Role::User, "I no longer want answers as tables");
    let batch = Batch::of(&[said], 10_000, &EstimateCounter);
    let change = json!({
        "content": "User no longer wants answers as tables", "kind": "preference", "scope": "user_profile", "negated": true,
    });
    let answer = read(
        &json!({ "facts": [item(&change)] }).to_string(),
        &batch,
        day(3),
    );
    assert_eq!(answer.facts[0].kind, Kind::Fact);
}
