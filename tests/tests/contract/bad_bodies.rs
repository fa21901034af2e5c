//! Bodies that no call accepts: a problem document that names the field, and nothing stored.

use reqwest::Method;
use serde_json::{Value, json};
use tidemark_tests::answer::Answer;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::paths::{messages_of, turns_of};
use tidemark_tests::server::with_model;

each_store!(
    what_is_no_json_is_refused,
    an_unknown_field_is_refused_by_name,
    a_wrong_type_is_refused_by_name,
    text_that_cannot_be_stored_is_refused_by_name,
    an_empty_or_endless_text_is_refused_by_name,
    a_body_over_one_mebibyte_is_refused,
    no_operation_passes_over_its_body,
    a_change_is_not_reverted_by_a_request_that_says_something_else,
);

/// A call that takes a text: its path, the text's field, and a body around a text.
struct Call {
    path: String,
    field: &'static str,
    body: fn(&str) -> Value,
}

async fn calls(client: &Client, session: &str) -> Vec<Call> {
    assert_eq!(client.history(session).await, Vec::<Value>::new());
    vec![
        Call {
            path: turns_of(session),
            field: "message",
            body: |text| json!({"message": text}),
        },
        Call {
            path: "/v1/memories".to_owned(),
            field: "content",
            body: |text| json!({"content": text}),
        },
        Call {
            path: "/v1/memories/recall".to_owned(),
            field: "query",
            body: |text| json!({"query": text}),
        },
        Call {
            path: "/v1/sessions".to_owned(),
            field: "title",
            body: |text| json!({"title": text}),
        },
        Call {
            path: messages_of(session),
            field: "content",
            body: |text| json!({"messages": [{"role": "user", "content": text, "created_at": "2025-01-01T00:00:00Z"}]}),
        },
    ]
}

/// Sends what `broken` makes of each call, checks the refusals, and that no row came of any.
async fn every_call_refuses(
    store: Store,
    broken: impl Fn(&Call) -> Vec<Vec<u8>>,
    check: impl Fn(&Call, &Answer),
) {
    let (_server, model, client) = with_model(store).await;
    let session = client.create_session().await;
    for call in calls(&client, &session).await {
        for body in broken(&call) {
            check(&call, &client.post_bytes(&call.path, body).await);
        }
    }
    assert_eq!(client.history(&session).await, Vec::<Value>::new());
    assert_eq!(client.all("/v1/memories").await, Vec::<Value>::new());
    assert_eq!(client.all("/v1/sessions").await.len(), 1);
    assert!(model.requests().is_empty(), "the model was asked");
    assert_eq!(
        client.ask(&session, "Still usable").await["status"],
        "completed"
    );
}

async fn what_is_no_json_is_refused(store: Store) {
    let broken = |_: &Call| -> Vec<Vec<u8>> {
        [
            &b""[..],
            b"{",
            b"[1,2]",
            b"\"text\"",
            b"null",
            b"{\"message\": }",
            b"{} {}",
            b"{'message': 'x'}",
            &[0xFF, 0xFE],
        ]
        .map(<[u8]>::to_vec)
        .to_vec()
    };
    every_call_refuses(store, broken, |_, answer| drop(answer.expect_problem(400))).await;
}

async fn an_unknown_field_is_refused_by_name(store: Store) {
    let broken = |call: &Call| {
        let mut body = (call.body)("fine");
        body["colour"] = json!("red");
        vec![body.to_string().into_bytes()]
    };
    every_call_refuses(store, broken, |_, answer| {
        drop(answer.expect_problem_with(400, "colour"));
    })
    .await;
}

async fn a_wrong_type_is_refused_by_name(store: Store) {
    let broken = |call: &Call| {
        let good = (call.body)("TEXT").to_string();
        ["17", "{\"a\":1}", "[\"x\"]", "true"]
            .map(|wrong| good.replace("\"TEXT\"", wrong).into_bytes())
            .to_vec()
    };
    every_call_refuses(store, broken, |call, answer| {
        drop(answer.expect_problem_with(400, call.field));
    })
    .await;
}

async fn text_that_cannot_be_stored_is_refused_by_name(store: Store) {
    let broken = |call: &Call| {
        let good = (call.body)("TEXT").to_string();
        let (head, tail) = good.split_once("TEXT").unwrap();
        let around = |inside: &[u8]| [head.as_bytes(), inside, tail.as_bytes()].concat();
        vec![
            around(b"a\\u0000b"),
            around(b"\\ud800"),
            around(b"x \\udc00 y"),
            around(b"a\xFFb"),
            around(b"\xE4\xBD"),
            around(b"a\x00b"),
        ]
    };
    every_call_refuses(store, broken, |call, answer| {
        assert!(matches!(answer.status, 400 | 422), "{}", answer.text);
        answer.expect_problem_with(answer.status, call.field);
    })
    .await;
}

async fn an_empty_or_endless_text_is_refused_by_name(store: Store) {
    let broken = |call: &Call| {
        let mut texts = vec!["x".repeat(900_000)];
        if call.field != "title" {
            texts.extend([String::new(), " \n\t\u{3000}".to_owned()]);
        }
        texts
            .iter()
            .map(|text| (call.body)(text).to_string().into_bytes())
            .collect()
    };
    every_call_refuses(store, broken, |call, answer| {
        drop(answer.expect_problem_with(422, call.field));
    })
    .await;
}

async fn a_body_over_one_mebibyte_is_refused(store: Store) {
    let broken = |call: &Call| {
        vec![
            (call.body)(&"x".repeat((1 << 20) + 1))
                .to_string()
                .into_bytes(),
        ]
    };
    every_call_refuses(store, broken, |_, answer| drop(answer.expect_problem(413))).await;
}

/// Sends a body as it is, declared as JSON.
async fn send(client: &Client, method: &Method, path: &str, body: &'static str) -> Answer {
    let request = client.request(method.clone(), path);
    let request = request
        .header("content-type", "application/json")
        .body(body);
    client.send(request).await
}

async fn no_operation_passes_over_its_body(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let document = client.get("/openapi.json").await.expect(200);
    let (mut with_body, mut without) = (0, 0);
    for (template, operations) in document["paths"].as_object().unwrap() {
        let id = if template.contains("/users/") {
            "nobody"
        } else {
            "01890000-0000-7000-8000-000000000000"
        };
        let path = template.replace("{id}", id);
        assert!(!path.contains('{'), "{template} has a parameter of its own");
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let operation = &operations[method.as_str().to_lowercase()];
            if !operation.is_object() {
                continue;
            }
            for body in ["{", "[]", "null", "{} {}", "\"x\""] {
                let answer = send(&client, &method, &path, body).await;
                assert_eq!(answer.status, 400, "{method} {path} takes {body}");
                answer.expect_problem(400);
            }
            let answer = send(&client, &method, &path, "{\"colour\":\"red\"}").await;
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let has_fields = schema["$ref"] != "#/components/schemas/NoFields";
            if schema.is_object() && has_fields {
                answer.expect_problem(400);
                with_body += 1;
                continue;
            }
            answer.expect_problem_with(400, "colour");
            for body in ["", "{}", " { } "] {
                let answer = send(&client, &method, &path, body).await;
                // Signing out is about nothing that could be missing.
                let expected = if template.contains("{id}") { 404 } else { 204 };
                assert_eq!(answer.status, expected, "{method} {path} refuses {body}");
            }
            without += 1;
        }
    }
    assert!(with_body >= 7 && without >= 8, "{with_body} and {without}");
}

async fn a_change_is_not_reverted_by_a_request_that_says_something_else(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let given = json!({"content": "The cellar key hangs behind the boiler."});
    client.post("/v1/memories", &given).await.expect(201);
    let change = client.all("/v1/changes").await.remove(0);
    let path = format!("/v1/changes/{}/revert", change["id"].as_str().unwrap());
    for body in ["{\"dry_run\":true}", "{", "[]"] {
        let answer = send(&client, &Method::POST, &path, body).await;
        answer.expect_problem(400);
    }
    assert_eq!(client.all("/v1/memories").await.len(), 1);
    send(&client, &Method::POST, &path, "").await.expect(200);
    assert_eq!(client.all("/v1/memories").await, Vec::<Value>::new());
    send(&client, &Method::POST, &path, "{}").await.expect(200);
}
