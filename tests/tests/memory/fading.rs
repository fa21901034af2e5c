//! What is not used for long is archived: kept, told on request alone, and back once it is wanted. The tests let time pass in the database.

use std::time::Duration;

use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::model::Model;
use tidemark_tests::paths::{id_of, messages_of};
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::wait::until;

each_store!(
    what_was_not_used_for_half_a_year_is_archived_and_what_was_stated_is_not,
    archiving_is_a_change_that_is_undone_as_a_whole,
    what_is_shown_on_request_is_told_again,
    nothing_is_archived_where_forgetting_is_switched_off,
);

const CHUNK: &str = "The lighthouse at the cape was painted in broad green stripes.";
/// What only the chunk says, and no question.
const PAINT: &str = "green stripes";
const STATED: &str = "I prefer answers as tables.";
const QUESTION: &str = "How was the lighthouse painted?";

/// A server that looks every second, on which a conversation of years ago was imported.
async fn imported(store: Store, settings: &[(&str, &str)]) -> (Server, Model, Client) {
    let model = Model::start().await;
    let mut setup = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_FORGETTING__INTERVAL_SECONDS", "1");
    for (name, value) in settings {
        setup = setup.with(name, value);
    }
    let server = setup.start().await;
    let client = server.client();
    let session = client.create_session().await;
    let messages = [CHUNK, STATED].map(
        |content| json!({"role": "user", "content": content, "created_at": "2021-05-04T10:00:00Z"}),
    );
    let body = json!({"messages": messages});
    client.post(&messages_of(&session), &body).await.expect(201);
    client.until_no_jobs().await;
    (server, model, client)
}

/// Lets days pass since anything was used, while the server is down.
async fn pass_days(store: Store, server: &mut Server, days: u32) -> Client {
    let (status, _) = server.terminate(Duration::from_secs(15)).await;
    assert!(status.success(), "exit after SIGTERM: {status}");
    let earlier = match store {
        Store::Sqlite => format!("- {days} * 86400000000"),
        _ => format!("- interval '{days} days'"),
    };
    let pass = format!(
        "UPDATE memories SET last_access = last_access {earlier}, fades_at = fades_at {earlier}"
    );
    store.execute(server.store_url(), &pass).await;
    server.start_again().await;
    server.client()
}

async fn holding(client: &Client, state: &str, part: &str) -> Vec<Value> {
    let all = client.all(&format!("/v1/memories?state={state}")).await;
    all.into_iter()
        .filter(|memory| memory["content"].as_str().unwrap().contains(part))
        .collect()
}

/// The one memory about the lighthouse, once it is in that state.
async fn until_it_is(client: &Client, state: &str) -> Value {
    until(state, Duration::from_secs(30), || async {
        holding(client, state, PAINT).await.pop()
    })
    .await
}

async fn recall(client: &Client, more: Value) -> Value {
    let mut body = json!({"query": QUESTION});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    client.post("/v1/memories/recall", &body).await.expect(200)
}

fn told(found: &Value) -> bool {
    found["items"].to_string().contains(PAINT)
}

async fn what_was_not_used_for_half_a_year_is_archived_and_what_was_stated_is_not(store: Store) {
    let (mut server, _model, client) = imported(store, &[]).await;
    let fresh = &holding(&client, "current", PAINT).await[0];
    assert_eq!(fresh["confidence"], 0.8);
    // A quarter later half of the confidence is left, and it is told all the same.
    let client = pass_days(store, &mut server, 90).await;
    let aged = &holding(&client, "current", PAINT).await[0];
    assert_eq!(aged["confidence"], 0.4);
    assert!(told(&recall(&client, json!({})).await));

    let client = pass_days(store, &mut server, 91).await;
    let archived = until_it_is(&client, "archived").await;
    assert_eq!(id_of(&archived), id_of(fresh));
    assert_eq!(archived["layer"], "archival");
    assert!(archived["confidence"].as_f64().unwrap() <= 0.2);
    assert_eq!(
        holding(&client, "archived", "tables").await,
        Vec::<Value>::new()
    );
    assert!(!holding(&client, "current", "tables").await.is_empty());

    let by_default = recall(&client, json!({"why_not": [id_of(&archived)]})).await;
    assert!(!told(&by_default));
    let dropped = json!([{"id": id_of(&archived), "reason": "archived"}]);
    assert_eq!(by_default["dropped"], dropped);
    assert!(told(
        &recall(&client, json!({"include_archived": true})).await
    ));

    let path = format!("/v1/memories/{}", id_of(&archived));
    let wanted = client.patch(&path, &json!({"state": "current"})).await;
    assert_eq!(wanted.expect(200)["state"], "current");
    assert!(told(&recall(&client, json!({})).await));
}

async fn archiving_is_a_change_that_is_undone_as_a_whole(store: Store) {
    let (mut server, _model, _) = imported(store, &[]).await;
    let client = pass_days(store, &mut server, 200).await;
    let archived = until_it_is(&client, "archived").await;
    let page = client.get("/v1/changes?limit=1").await.expect(200);
    let change = &page["items"][0];
    assert_eq!(
        (&change["kind"], &change["revertible"]),
        (&json!("archive"), &json!(true))
    );
    assert_eq!(change["items"].as_array().unwrap().len(), 1);
    let item = &change["items"][0];
    assert_eq!(
        (&item["op"], &item["memory_id"]),
        (&json!("archived"), &json!(id_of(&archived)))
    );
    assert_eq!(
        item["before"],
        json!({"state": "current", "layer": "episodic"})
    );

    let revert = format!("/v1/changes/{}/revert", id_of(change));
    client.post(&revert, &json!({})).await.expect(200);
    let back = &holding(&client, "current", PAINT).await[0];
    assert_eq!(
        (&back["layer"], &back["confidence"]),
        (&json!("episodic"), &json!(0.8))
    );
    let history = format!("/v1/memories/{}/history", id_of(back));
    let history = client.get(&history).await.expect(200);
    let kinds: Vec<&Value> = (history["versions"].as_array().unwrap().iter())
        .map(|version| &version["change"]["kind"])
        .collect();
    assert_eq!(kinds[..2], [&json!("revert"), &json!("archive")]);
    // It has as long again.
    let client = pass_days(store, &mut server, 170).await;
    assert!(told(&recall(&client, json!({})).await));
    let client = pass_days(store, &mut server, 20).await;
    until_it_is(&client, "archived").await;
}

async fn what_is_shown_on_request_is_told_again(store: Store) {
    let (mut server, _model, _) = imported(store, &[]).await;
    let client = pass_days(store, &mut server, 200).await;
    until_it_is(&client, "archived").await;
    let session = client.create_session().await;
    let turn = client.ask(&session, QUESTION).await;
    assert!(!turn["memories"].to_string().contains(PAINT), "{turn}");
    let body = json!({"message": QUESTION, "recall": {"include_archived": true}});
    let turn = client.ask_with(&session, body).await;
    assert!(turn["memories"].to_string().contains(PAINT), "{turn}");
    let back = until_it_is(&client, "current").await;
    assert_eq!(
        (&back["layer"], &back["access_count"]),
        (&json!("episodic"), &json!(1))
    );
    assert!(told(&recall(&client, json!({})).await));
    let page = client.get("/v1/changes").await.expect(200);
    let kinds: Vec<&Value> = (page["items"].as_array().unwrap().iter())
        .map(|change| &change["kind"])
        .collect();
    assert!(kinds.contains(&&json!("use")), "{kinds:?}");
    // It was of use: now it lasts twice as long.
    let client = pass_days(store, &mut server, 300).await;
    assert!(told(&recall(&client, json!({})).await));
}

async fn nothing_is_archived_where_forgetting_is_switched_off(store: Store) {
    let off = [("TIDEMARK_FORGETTING__ENABLED", "false")];
    let (mut server, _model, _) = imported(store, &off).await;
    let client = pass_days(store, &mut server, 400).await;
    // Longer than until the first look would be.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(told(&recall(&client, json!({})).await));
    assert_eq!(holding(&client, "archived", "").await, Vec::<Value>::new());
}
