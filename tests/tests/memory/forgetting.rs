//! What was forgotten is not learned again from the message that said it, neither in another layer nor later.

use std::time::Duration;

use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::model::Model;
use tidemark_tests::paths::{events_of, id_of, messages_of};
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::wait::until;

each_store!(
    a_chunk_forgotten_before_its_consolidation_teaches_nothing,
    a_forgotten_statement_takes_its_chunk_along_and_leaves_the_others,
    a_turn_shows_no_longer_what_was_forgotten_since,
);

const SAID: &str = "I prefer answers as tables. My budget is 300k.";

async fn with_threshold_4(store: Store) -> (Server, Model, Client) {
    let model = Model::start().await;
    let setup = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_LEARNING__THRESHOLD", "4");
    let server = setup.start().await;
    let client = server.client();
    (server, model, client)
}

/// The memories that hold `part`.
async fn holding(client: &Client, layer: &str, part: &str) -> Vec<Value> {
    let all = client.all(&format!("/v1/memories{layer}")).await;
    all.into_iter()
        .filter(|memory| memory["content"].as_str().unwrap().contains(part))
        .collect()
}

async fn forget(client: &Client, memory: &Value) {
    let path = format!("/v1/memories/{}", id_of(memory));
    assert_eq!(client.delete(&path).await.status, 204);
}

/// Says something else until the session is consolidated beyond its first exchange.
async fn consolidate(client: &Client, session: &str, about: &str) {
    for n in 0..2 {
        let message = format!("The {about} number {n} is painted green.");
        assert_eq!(client.ask(session, &message).await["status"], "completed");
    }
    let count = client.history(session).await.len();
    until("the boundary to move", Duration::from_secs(30), || async {
        let page = client.get(&messages_of(session)).await.expect(200);
        let boundary = page["last_consolidated"].as_u64().unwrap();
        (count as u64 - boundary < 4 && boundary >= 2).then_some(())
    })
    .await;
    client.until_no_jobs().await;
}

/// Neither list, recall nor the prompt of a new session knows `part`.
async fn assert_unknown(client: &Client, model: &Model, part: &str) {
    assert_eq!(holding(client, "", part).await, Vec::<Value>::new());
    let question = format!("What do you know about {part}?");
    let found = client.recall(&question).await;
    assert!(!format!("{found:?}").contains(part), "{found:?}");
    let asked = format!("{question} [[text=Nothing]]");
    client.ask(&client.create_session().await, &asked).await;
    let prompt = model.prompt_about(&question).replace(&asked, "");
    assert!(!prompt.contains(part), "{prompt}");
    client.until_no_jobs().await;
}

async fn a_chunk_forgotten_before_its_consolidation_teaches_nothing(store: Store) {
    let (_server, model, client) = with_threshold_4(store).await;
    let session = client.create_session().await;
    client.ask(&session, SAID).await;
    client.until_no_jobs().await;
    for (part, chunk) in [
        ("300k", "My budget is 300k."),
        ("tables", "I prefer answers as tables."),
    ] {
        let chunks = holding(&client, "", part).await;
        assert_eq!(chunks.len(), 1, "{chunks:?}");
        assert_eq!(
            (&chunks[0]["content"], &chunks[0]["layer"]),
            (&chunk.into(), &"episodic".into())
        );
        forget(&client, &chunks[0]).await;
    }
    consolidate(&client, &session, "fence").await;
    for part in ["300k", "tables"] {
        assert_unknown(&client, &model, part).await;
    }
}

async fn a_forgotten_statement_takes_its_chunk_along_and_leaves_the_others(store: Store) {
    let (_server, _model, client) = with_threshold_4(store).await;
    let session = client.create_session().await;
    client.ask(&session, SAID).await;
    consolidate(&client, &session, "fence").await;
    let facts = holding(&client, "?layer=semantic", "300k").await;
    assert_eq!(facts.len(), 1, "{facts:?}");
    assert!(
        !facts[0]["content"].as_str().unwrap().contains("tables"),
        "{facts:?}"
    );
    forget(&client, &facts[0]).await;
    consolidate(&client, &session, "gate").await;
    assert_eq!(holding(&client, "", "300k").await, Vec::<Value>::new());
    let others = holding(&client, "?layer=semantic", "tables").await;
    assert_eq!(others.len(), 1, "what was not forgotten stays: {others:?}");
}

async fn a_turn_shows_no_longer_what_was_forgotten_since(store: Store) {
    let (_server, _model, client) = with_threshold_4(store).await;
    for content in ["The budget is 300k.", "The budget is for the harbour."] {
        let body = json!({"content": content, "kind": "fact"});
        client.post("/v1/memories", &body).await.expect(201);
    }
    let session = client.create_session().await;
    let turn = id_of(&client.ask(&session, "What is the budget?").await);
    let shown = async || {
        let row = client.turn(&turn).await["memories"].to_string();
        let stream = client.get(&events_of(&turn)).await.text;
        (row, stream)
    };
    let (row, stream) = shown().await;
    for part in ["300k", "harbour"] {
        assert!(
            row.contains(part) && stream.contains(part),
            "{row} {stream}"
        );
    }
    forget(&client, &holding(&client, "", "300k").await[0]).await;
    let (row, stream) = shown().await;
    assert!(row.contains("harbour") && stream.contains("harbour"));
    assert!(
        !row.contains("300k") && !stream.contains("300k"),
        "{row} {stream}"
    );
}
