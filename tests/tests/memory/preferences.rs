//! Standing preferences reach every prompt, whatever is asked (B2a).

use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::events::Reading;
use tidemark_tests::server::with_model;

each_store!(
    a_preference_told_in_one_session_is_in_the_next_prompt_in_english,
    a_preference_told_in_one_session_is_in_the_next_prompt_in_chinese,
    a_preference_still_holds_once_its_turn_has_been_indexed_and_after_a_restart,
    a_preference_made_by_hand_is_in_every_prompt,
);

async fn ask_in_new_session(client: &Client, message: &str) -> Reading {
    let session = client.create_session().await;
    let turn = client.post_turn(&session, message).await;
    let reading = client.read_turn(&turn).await;
    reading.assert_complete();
    reading
}

/// The recalled memory whose content holds `part`, which has to have come by the profile.
fn by_profile(reading: &Reading, part: &str) -> Value {
    let recalled = reading.recalled();
    let found = recalled.iter().find(|memory| {
        memory["content"]
            .as_str()
            .is_some_and(|content| content.contains(part))
    });
    let memory = found.unwrap_or_else(|| panic!("{part:?} was not recalled: {recalled:?}"));
    assert_eq!(
        (&memory["via"], &memory["scope"]),
        (&json!("profile"), &json!("user_profile")),
        "{memory}"
    );
    assert!(
        memory["id"].is_string() && memory["kind"] == "preference",
        "{memory}"
    );
    memory.clone()
}

async fn told_then_asked(store: Store, told: &str, part: &str, asked: &str) {
    let (_server, model, client) = with_model(store).await;
    ask_in_new_session(&client, told).await;
    let reading = ask_in_new_session(&client, asked).await;
    by_profile(&reading, part);
    let prompt = model.prompt_about(asked);
    let line = prompt
        .lines()
        .find(|line| line.contains(part) && line.contains("[user_profile]"));
    assert!(
        line.is_some(),
        "the prompt shows it with its scope:\n{prompt}"
    );
    model.assert_every_transcript_was_valid();
}

async fn a_preference_told_in_one_session_is_in_the_next_prompt_in_english(store: Store) {
    told_then_asked(
        store,
        "I prefer answers as tables.",
        "answers as tables",
        "How did sales develop in March?",
    )
    .await;
}

async fn a_preference_told_in_one_session_is_in_the_next_prompt_in_chinese(store: Store) {
    told_then_asked(
        store,
        "我喜欢用表格形式回答。",
        "表格",
        "三月份的销售情况怎么样？",
    )
    .await;
}

async fn a_preference_still_holds_once_its_turn_has_been_indexed_and_after_a_restart(store: Store) {
    let (mut server, _model, client) = with_model(store).await;
    ask_in_new_session(&client, "I prefer answers as tables.").await;
    client.until_no_jobs().await;
    by_profile(
        &ask_in_new_session(&client, "What is the weather like?").await,
        "tables",
    );
    server.restart().await;
    by_profile(
        &ask_in_new_session(&server.client(), "And tomorrow?").await,
        "tables",
    );
}

async fn a_preference_made_by_hand_is_in_every_prompt(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let body = json!({"content": "Always answer in French.", "scope": "user_profile", "kind": "preference"});
    client.post("/v1/memories", &body).await.expect(201);
    by_profile(
        &ask_in_new_session(&client, "How deep is the lake?").await,
        "French",
    );
    assert!(
        model
            .prompt_about("How deep")
            .contains("Always answer in French.")
    );
}
