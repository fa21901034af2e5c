//! The boundary moves when it is due, cuts nothing, and takes nothing from the prompt.

use std::time::Duration;

use serde_json::Value;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::model::Model;
use tidemark_tests::paths::messages_of;
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::transcript::violations;
use tidemark_tests::wait::until;

each_store!(
    the_boundary_moves_after_the_threshold_and_never_cuts_a_tool_exchange,
    what_was_consolidated_is_semantic_memory_and_stays_in_the_window,
    below_the_threshold_nothing_is_consolidated,
);

async fn with_threshold(store: Store, threshold: &str) -> (Server, Model, Client) {
    let model = Model::start().await;
    let setup = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_LEARNING__THRESHOLD", threshold);
    let server = setup.start().await;
    let client = server.client();
    (server, model, client)
}

async fn boundary(client: &Client, session: &str) -> u64 {
    let page = client.get(&messages_of(session)).await.expect(200);
    page["last_consolidated"]
        .as_u64()
        .unwrap_or_else(|| panic!("no last_consolidated in {page}"))
}

async fn until_moved(client: &Client, session: &str, from: u64) -> u64 {
    until("the boundary to move", Duration::from_secs(40), || async {
        let now = boundary(client, session).await;
        assert!(now >= from, "the boundary went back from {from} to {now}");
        (now > from).then_some(now)
    })
    .await
}

async fn the_boundary_moves_after_the_threshold_and_never_cuts_a_tool_exchange(store: Store) {
    let (_server, model, client) = with_threshold(store, "8").await;
    let session = client.create_session().await;
    let mut moved = 0;
    for round in 0..3 {
        for n in 0..2 {
            let message = format!(
                "Note {round}{n}: shelf {n} holds jar {round}. [[tool=search_memory tool_rounds=2 tool_calls=2]]"
            );
            assert_eq!(client.ask(&session, &message).await["status"], "completed");
        }
        moved = until_moved(&client, &session, moved).await;
        let history = client.history(&session).await;
        let (behind, ahead) = history.split_at(usize::try_from(moved).unwrap());
        assert_eq!(
            violations(behind),
            Vec::<String>::new(),
            "behind the boundary {moved}"
        );
        assert_eq!(
            violations(ahead),
            Vec::<String>::new(),
            "ahead of the boundary {moved}"
        );
        println!("{} messages, boundary {moved}", history.len());
    }
    client.ask(&session, "Still fine?").await;
    model.assert_every_transcript_was_valid();
}

async fn what_was_consolidated_is_semantic_memory_and_stays_in_the_window(store: Store) {
    let (_server, model, client) = with_threshold(store, "4").await;
    let session = client.create_session().await;
    for message in [
        "I prefer answers as tables.",
        "My office is in Bergen.",
        "The meeting is on Tuesday.",
    ] {
        client.ask(&session, message).await;
    }
    until_moved(&client, &session, 0).await;
    let learned: Vec<Value> = client.all("/v1/memories?layer=semantic").await;
    let preference = learned
        .iter()
        .find(|memory| memory["content"].as_str().unwrap().contains("tables"));
    let preference = preference.unwrap_or_else(|| panic!("no semantic preference: {learned:?}"));
    assert_eq!(
        (&preference["kind"], &preference["scope"]),
        (&"preference".into(), &"user_profile".into())
    );
    assert!(
        !preference["sources"].as_array().unwrap().is_empty(),
        "{preference}"
    );
    client.ask(&session, "What did I say last?").await;
    let shown = model
        .requests_about("What did I say last?")
        .last()
        .unwrap()
        .messages();
    let shown: Vec<String> = shown
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"].to_string())
        .collect();
    assert!(
        shown
            .iter()
            .any(|content| content.contains("The meeting is on Tuesday.")),
        "the window kept it: {shown:?}"
    );
}

async fn below_the_threshold_nothing_is_consolidated(store: Store) {
    let (_server, _model, client) = with_threshold(store, "20").await;
    let session = client.create_session().await;
    for n in 0..3 {
        client
            .ask(&session, &format!("Fact {n}: box {n} is red."))
            .await;
    }
    client.until_no_jobs().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(boundary(&client, &session).await, 0);
}
