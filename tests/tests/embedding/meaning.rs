//! What was said in other words is found, however it came into the memory, and an embedder that is away takes nothing else with it.

use std::time::Duration;

use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::embeddings::Embeddings;
use tidemark_tests::model::Model;
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::wait::until;

each_store!(
    what_was_said_in_other_words_is_found_on_every_path_it_can_take,
    an_embedder_that_is_away_is_told_and_what_was_stored_meanwhile_is_embedded_later,
    a_text_that_the_embedder_refuses_is_found_by_its_words,
    what_is_forgotten_is_not_found_by_its_meaning,
);

/// About other things, so that something can stand out.
pub(crate) const OTHERS: [&str; 9] = [
    "The tide is high tonight.",
    "Tea is served at five.",
    "The gate was painted green.",
    "The harbour opens in March.",
    "The meeting moved into another room.",
    "A red lamp hangs above the desk.",
    "The train leaves from platform nine.",
    "Old maps are kept below the stairs.",
    "The orchestra plays every Sunday.",
];

pub(crate) async fn remember(client: &Client, contents: &[&str]) {
    let items: Vec<Value> = contents
        .iter()
        .map(|content| json!({"content": content, "kind": "fact"}))
        .collect();
    for item in &items {
        client.post("/v1/memories", item).await.expect(201);
    }
}

pub(crate) async fn recalled(client: &Client, query: &str) -> (Vec<String>, Value) {
    let found = client
        .post("/v1/memories/recall", &json!({"query": query}))
        .await
        .expect(200);
    let items = found["items"].as_array().unwrap().iter();
    let contents = items.map(|item| item["memory"]["content"].as_str().unwrap().to_owned());
    (contents.collect(), found["degraded"].clone())
}

async fn started(store: Store) -> (Server, Embeddings, Client) {
    let embeddings = Embeddings::start().await;
    let server = Setup::on(store).embedder(&embeddings).start().await;
    let client = server.client();
    (server, embeddings, client)
}

async fn what_was_said_in_other_words_is_found_on_every_path_it_can_take(store: Store) {
    let (embeddings, model) = (Embeddings::start().await, Model::start().await);
    let server = Setup::on(store)
        .embedder(&embeddings)
        .model(&model)
        .start()
        .await;
    let client = server.client();
    remember(&client, &OTHERS).await;
    remember(&client, &["My sister purchased an automobile."]).await;
    let session = client.create_session().await;
    client.ask(&session, "The puppy is delighted.").await;
    let import = json!({"messages": [
        {"role": "user", "content": "The physician acquired a residence.", "created_at": "2024-05-01T10:00:00Z"},
        {"role": "assistant", "content": "Noted.", "created_at": "2024-05-01T10:00:01Z"},
    ]});
    let imported = client.create_session().await;
    client
        .post(&format!("/v1/sessions/{imported}/messages"), &import)
        .await
        .expect(201);
    client.until_no_jobs().await;
    for (question, answer) in [
        ("Who bought a vehicle?", "purchased an automobile"),
        ("Was the hound glad?", "puppy"),
        ("Which surgeon bought a house?", "physician"),
    ] {
        let (found, degraded) = recalled(&client, question).await;
        assert!(
            found.first().is_some_and(|first| first.contains(answer)),
            "{question}: {found:?}"
        );
        assert_eq!(degraded, json!([]), "{question}");
    }
    assert!(!server.log().text().contains("automobile"));
}

async fn an_embedder_that_is_away_is_told_and_what_was_stored_meanwhile_is_embedded_later(
    store: Store,
) {
    let (server, embeddings, client) = started(store).await;
    remember(&client, &OTHERS).await;
    client.until_no_jobs().await;
    embeddings.set_status(Some(503));
    remember(&client, &["My sister purchased an automobile."]).await;
    let (found, degraded) = recalled(&client, "What was purchased?").await;
    assert!(
        found.iter().any(|content| content.contains("automobile")),
        "by its words: {found:?}"
    );
    assert_eq!(degraded, json!(["dense"]));
    let (found, _) = recalled(&client, "Who bought a vehicle?").await;
    assert!(
        !found.iter().any(|content| content.contains("automobile")),
        "{found:?}"
    );
    embeddings.set_status(None);
    until(
        "the memory to be embedded",
        Duration::from_mins(1),
        || async {
            let (found, degraded) = recalled(&client, "Who bought a vehicle?").await;
            let first = found.first()?;
            (first.contains("automobile") && degraded == json!([])).then_some(())
        },
    )
    .await;
    client.until_no_jobs().await;
    drop(server);
}

async fn a_text_that_the_embedder_refuses_is_found_by_its_words(store: Store) {
    let (_server, embeddings, client) = started(store).await;
    embeddings.refuse("unspeakable");
    remember(&client, &OTHERS).await;
    remember(
        &client,
        &[
            "The unspeakable lamp is broken.",
            "My sister purchased an automobile.",
        ],
    )
    .await;
    client.until_no_jobs().await;
    let (found, _) = recalled(&client, "Who bought a vehicle?").await;
    assert!(
        found
            .first()
            .is_some_and(|first| first.contains("automobile")),
        "one text that is refused holds up no other: {found:?}"
    );
    let (found, _) = recalled(&client, "What is broken?").await;
    assert!(
        found.iter().any(|content| content.contains("unspeakable")),
        "{found:?}"
    );
}

async fn what_is_forgotten_is_not_found_by_its_meaning(store: Store) {
    let (_server, _embeddings, client) = started(store).await;
    remember(&client, &OTHERS).await;
    remember(&client, &["My sister purchased an automobile."]).await;
    client.until_no_jobs().await;
    let question = "Who bought a vehicle?";
    let found = client.recall(question).await;
    assert!(found[0]["content"].as_str().unwrap().contains("automobile"));
    let path = format!("/v1/memories/{}", found[0]["id"].as_str().unwrap());
    assert_eq!(client.delete(&path).await.status, 204);
    let (found, _) = recalled(&client, question).await;
    assert!(
        !found.iter().any(|content| content.contains("automobile")),
        "{found:?}"
    );
}
