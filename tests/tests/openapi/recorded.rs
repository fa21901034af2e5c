//! The examples in the document are what a server said: recorded here, and compared with what it says today.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::directives::Behaviour;
use tidemark_tests::paths::id_of;
use tidemark_tests::server::with_model;

use crate::tools::in_repository;

#[tokio::test]
async fn the_examples_in_the_document_are_what_the_server_says() {
    let (_server, model, client) = with_model(Store::Sqlite).await;
    let answer = Behaviour {
        text: Some("The budget is 400k.".to_owned()),
        ..Behaviour::default()
    };
    model.rule("budget", answer);
    let mut book = Book::default();
    tell(&client.as_user("ada"), &mut book).await;
    let path = in_repository("interface/src/openapi/examples.json");
    if std::env::var_os("TIDEMARK_UPDATE").is_some() {
        let text = serde_json::to_string_pretty(&book.printed()).unwrap() + "\n";
        std::fs::write(&path, text).unwrap();
    }
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (kept, said) = (shape(&kept), shape(&Value::Object(book.0)));
    for (operation, examples) in said.as_object().unwrap() {
        assert_eq!(
            &kept[operation], examples,
            "{operation}: run this test with TIDEMARK_UPDATE=1"
        );
    }
    assert_eq!(kept, said, "run this test with TIDEMARK_UPDATE=1");
}

/// In the place of tickets, which are no two alike.
const TICKET: &str = "tmt_AAAAAAAAAAAAAAAAAAAAAAAGYYXAMeI0YWRh";

/// By operation, what was sent and what was said.
#[derive(Default)]
struct Book(Map<String, Value>);

impl Book {
    fn note(&mut self, operation: &str, place: &str, value: &Value) {
        let operation = self.0.entry(operation).or_insert_with(|| json!({}));
        let mut value = value.clone();
        walk("", &mut value, &mut |_, text| {
            if text.starts_with("tmt_") {
                TICKET.clone_into(text);
            }
        });
        operation[place] = value;
    }

    /// With ids and times that say nothing of when it was recorded.
    fn printed(&self) -> Value {
        let (mut ids, mut times) = (HashMap::new(), HashMap::new());
        let mut printed = Value::Object(self.0.clone());
        walk("", &mut printed, &mut |_, text| {
            for id in found_ids(text) {
                let next = ids.len();
                let other = ids
                    .entry(id.clone())
                    .or_insert_with(|| format!("0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d{next:02x}"));
                *text = text.replace(&id, other);
            }
            if is_time(text) {
                let next = times.len();
                let other = times
                    .entry(text.clone())
                    .or_insert_with(|| format!("2026-03-02T09:{:02}:{:02}Z", next / 60, next % 60));
                text.clone_from(other);
            }
        });
        printed
    }

    /// Posts, and notes both sides of it.
    async fn post(
        &mut self,
        client: &Client,
        operation: &str,
        path: &str,
        body: Value,
        status: u16,
    ) -> Value {
        let said = client.post(path, &body).await.expect(status);
        self.note(operation, "request", &body);
        self.note(operation, &status.to_string(), &said);
        said
    }
}

async fn tell(client: &Client, book: &mut Book) {
    let budget =
        json!({"content": "The project's budget is 400k", "kind": "fact", "key": "budget"});
    let memory = book
        .post(client, "create_memories", "/v1/memories", budget, 201)
        .await;
    let memory = format!("/v1/memories/{}", id_of(&memory));
    let session = json!({"title": "Quarterly budget", "labels": ["finance"]});
    let session = book
        .post(client, "create_session", "/v1/sessions", session, 201)
        .await;
    let session = format!("/v1/sessions/{}", id_of(&session));
    let past = json!({"messages": [
        {"role": "user", "content": "We moved the launch to May.", "name": "Grace", "created_at": "2026-02-27T16:30:00Z"},
    ]});
    book.post(
        client,
        "import_messages",
        &format!("{session}/messages"),
        past,
        201,
    )
    .await;
    client.until_no_jobs().await;
    let question = json!({"message": "What is the budget?"});
    let turn = book
        .post(
            client,
            "create_turn",
            &format!("{session}/turns"),
            question,
            202,
        )
        .await;
    let turn = format!("/v1/turns/{}", turn["turn_id"].as_str().unwrap());
    let mut events = json!({});
    for event in client.read_to_end(&format!("{turn}/events")).await.events {
        if events[&event.kind].is_null() {
            events[&event.kind] = event.data;
        }
    }
    book.note("stream_turn_events", "200", &events);
    book.note("chat_stream", "200", &events);
    client.until_no_jobs().await;
    let recall = json!({"query": "What is the budget?", "top_k": 3});
    book.post(
        client,
        "recall_memories",
        "/v1/memories/recall",
        recall,
        200,
    )
    .await;
    book.post(
        client,
        "cancel_turn",
        &format!("{turn}/cancel"),
        json!({}),
        200,
    )
    .await;
    for (operation, path, body) in [
        ("update_session", &session, json!({"title": "Budget 2026"})),
        (
            "update_memory",
            &memory,
            json!({"content": "The project's budget is 500k"}),
        ),
    ] {
        let said = client.patch(path, &body).await.expect(200);
        book.note(operation, "request", &body);
        book.note(operation, "200", &said);
    }
    client.until_no_jobs().await;
    for (operation, path) in [
        ("get_session", session.clone()),
        ("list_sessions", "/v1/sessions".to_owned()),
        ("list_messages", format!("{session}/messages")),
        ("get_turn", turn),
        ("get_memory", memory.clone()),
        ("list_memories", "/v1/memories?key=budget".to_owned()),
        ("get_memory_history", format!("{memory}/history")),
        ("list_changes", "/v1/changes?limit=1".to_owned()),
        ("readyz", "/readyz".to_owned()),
    ] {
        book.note(operation, "200", &client.get(&path).await.expect(200));
    }
    let change = client.get("/v1/changes?limit=1").await.expect(200);
    let revert = format!("/v1/changes/{}/revert", id_of(&change["items"][0]));
    book.post(client, "revert_change", &revert, json!({}), 200)
        .await;
    let receipt = client.delete("/v1/users/ada").await.expect(200);
    book.note("erase_user", "200", &receipt);
}

/// The same whatever the ids, times and measures are, and however the answer was cut into tokens.
fn shape(value: &Value) -> Value {
    let mut shape = value.clone();
    walk("", &mut shape, &mut |field, text| {
        for id in found_ids(text) {
            *text = text.replace(&id, "ID");
        }
        if is_time(text) {
            "TIME".clone_into(text);
        }
        if matches!(field, "token" | "next_cursor") {
            "TEXT".clone_into(text);
        }
    });
    without_measures(shape)
}

fn without_measures(value: Value) -> Value {
    match value {
        Value::Number(_) => json!(1),
        Value::Array(items) => items.into_iter().map(without_measures).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, without_measures(value)))
            .collect(),
        other => other,
    }
}

/// Shows every text with its field.
fn walk(field: &str, value: &mut Value, on_text: &mut impl FnMut(&str, &mut String)) {
    match value {
        Value::String(text) => on_text(field, text),
        Value::Array(items) => items.iter_mut().for_each(|item| walk(field, item, on_text)),
        Value::Object(fields) => fields
            .iter_mut()
            .for_each(|(name, value)| walk(name, value, on_text)),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

fn found_ids(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !(c.is_ascii_hexdigit() || c == '-'));
    parts
        .filter(|part| part.len() == 36 && part.matches('-').count() == 4)
        .map(str::to_owned)
        .collect()
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T' && text.starts_with("20")
}
