//! One user's things do not exist for another.

use reqwest::Method;
use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::paths::{chat_stream, id_of, turns_of};
use tidemark_tests::server::with_model;

each_store!(
    what_belongs_to_another_user_is_not_found,
    lists_and_recall_show_only_what_is_ones_own,
    whoever_only_reads_is_not_made_a_user,
);

async fn with_things(client: &Client) -> (String, String, String) {
    let session = client.create_session().await;
    let turn = client
        .post_turn(&session, "The vault opens with seven turns.")
        .await;
    client.finished(&turn).await;
    let memory = client
        .post(
            "/v1/memories",
            &json!({"content": "The vault stands in Bern."}),
        )
        .await
        .expect(201);
    (session, turn, id_of(&memory))
}

async fn what_belongs_to_another_user_is_not_found(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let (ada, bob) = (client.as_user("ada@example.org"), client.as_user("bob:1"));
    let (session, turn, memory) = with_things(&ada).await;
    for (method, path, body) in [
        (Method::GET, format!("/v1/sessions/{session}"), None),
        (
            Method::PATCH,
            format!("/v1/sessions/{session}"),
            Some(json!({"title": "taken"})),
        ),
        (Method::DELETE, format!("/v1/sessions/{session}"), None),
        (
            Method::GET,
            format!("/v1/sessions/{session}/messages"),
            None,
        ),
        (
            Method::POST,
            format!("/v1/sessions/{session}/messages"),
            Some(
                json!({"messages": [{"role": "user", "content": "x", "created_at": "2025-01-01T00:00:00Z"}]}),
            ),
        ),
        (
            Method::POST,
            turns_of(&session),
            Some(json!({"message": "x"})),
        ),
        (Method::GET, format!("/v1/turns/{turn}"), None),
        (Method::GET, format!("/v1/turns/{turn}/events"), None),
        (
            Method::POST,
            format!("/v1/turns/{turn}/cancel"),
            Some(json!({})),
        ),
        (Method::GET, format!("/v1/memories/{memory}"), None),
        (Method::GET, format!("/v1/memories/{memory}/history"), None),
        (
            Method::PATCH,
            format!("/v1/memories/{memory}"),
            Some(json!({"content": "taken"})),
        ),
        (Method::DELETE, format!("/v1/memories/{memory}"), None),
        (Method::GET, chat_stream("x", Some(&session), None), None),
    ] {
        for stranger in [&bob, &client] {
            let request = stranger.request(method.clone(), &path);
            let request = body.iter().fold(request, reqwest::RequestBuilder::json);
            stranger.send(request).await.expect_problem(404);
        }
    }
    let resumed = bob
        .request(Method::GET, &chat_stream("x", None, None))
        .header("last-event-id", format!("{turn}:1"));
    bob.send(resumed).await.expect_problem(404);
    assert_eq!(ada.history(&session).await.len(), 2);
    assert_eq!(ada.get(&format!("/v1/memories/{memory}")).await.status, 200);
}

async fn lists_and_recall_show_only_what_is_ones_own(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let (ada, bob) = (client.as_user("ada"), client.as_user("bob"));
    with_things(&ada).await;
    ada.until_no_jobs().await;
    for list in ["/v1/sessions", "/v1/memories"] {
        assert_eq!(bob.all(list).await, Vec::<Value>::new(), "{list}");
    }
    assert_eq!(bob.recall("Where is the vault?").await, Vec::<Value>::new());
    let session = bob.create_session().await;
    let turn = bob.post_turn(&session, "Where is the vault?").await;
    assert_eq!(bob.read_turn(&turn).await.recalled(), Vec::<Value>::new());
    assert!(!model.prompt_about("Where is the vault?").contains("Bern"));
    assert!(!ada.recall("Where is the vault?").await.is_empty());
}

async fn whoever_only_reads_is_not_made_a_user(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let (ada, bob) = (client.as_user("ada"), client.as_user("bob"));
    let (session, turn, memory) = with_things(&ada).await;
    let is_known = async || {
        let exported = client.post("/v1/users/bob/export", &json!({})).await;
        exported.status == 200
    };
    let document = client.get("/openapi.json").await.expect(200);
    let mut read = 0;
    for (template, operations) in document["paths"].as_object().unwrap() {
        // It asks a question, which is no reading.
        if !operations["get"].is_object() || template == "/v1/chat/stream" {
            continue;
        }
        let id = match template {
            path if path.contains("/turns/") => &turn,
            path if path.contains("/memories/") => &memory,
            _ => &session,
        };
        let path = template.replace("{id}", id);
        let answer = bob.get(&path).await;
        if template.contains("{id}") {
            answer.expect_problem(404);
        } else {
            assert_eq!(answer.status, 200, "{path}");
        }
        assert!(!is_known().await, "{path}");
        read += 1;
    }
    assert!(read >= 10, "{read}");
    let resumed = bob
        .request(Method::GET, &chat_stream("x", None, None))
        .header("last-event-id", format!("{turn}:1"));
    bob.send(resumed).await.expect_problem(404);
    assert_eq!(bob.recall("Where is the vault?").await, Vec::<Value>::new());
    assert!(!is_known().await);
    // Whoever writes is, at once.
    bob.create_session().await;
    assert!(is_known().await);
    assert_eq!(bob.all("/v1/sessions").await.len(), 1);
}
