//! Turns: accepted at once, run behind the answer, read when over.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::model_reply::REASONING;
use tidemark_tests::paths::turns_of;
use tidemark_tests::server::with_model;
use tidemark_tests::transcript::violations;

each_store!(
    a_turn_is_accepted_at_once_and_its_answer_is_in_the_history,
    a_client_may_wait_for_the_finished_turn,
    waiting_ends_with_an_accepted_turn_when_it_takes_longer,
    a_client_that_leaves_changes_nothing,
    tool_rounds_are_stored_in_protocol_order,
    reasoning_is_neither_in_the_answer_nor_in_the_history,
    the_next_turn_sees_the_history_of_the_last,
);

async fn a_turn_is_accepted_at_once_and_its_answer_is_in_the_history(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let session = client.create_session().await;
    let asked = Instant::now();
    let answer = client
        .post(
            &turns_of(&session),
            &json!({"message": "Hello there [[tokens=4 first_ms=1500]]"}),
        )
        .await;
    assert!(
        asked.elapsed() < Duration::from_secs(1),
        "a turn is accepted before the model answers"
    );
    let accepted = answer.expect(202);
    assert_eq!(accepted["session_id"], session.as_str());
    assert!(
        matches!(accepted["status"].as_str(), Some("queued" | "running")),
        "{accepted}"
    );
    let turn = accepted["turn_id"].as_str().unwrap();
    let reading = client
        .read_to_end(accepted["events_url"].as_str().unwrap())
        .await;
    let text = reading.assert_complete();
    let finished = client.turn(turn).await;
    assert_eq!(
        (&finished["status"], &finished["text"]),
        (&json!("completed"), &json!(text))
    );
    assert!(text.ends_with("word1 word2 word3 word4"), "{text}");
    assert!(finished["usage"].is_object(), "{finished}");
    let history = client.history(&session).await;
    let roles: Vec<&str> = history
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant"]);
    assert_eq!(history[1]["content"], text.as_str());
    assert_eq!(reading.done().unwrap().data["message_id"], history[1]["id"]);
    model.assert_every_transcript_was_valid();
}

async fn a_client_may_wait_for_the_finished_turn(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    let request = client
        .request(Method::POST, &turns_of(&session))
        .header("prefer", "wait=60");
    let turn = client
        .send(request.json(&json!({"message": "Hi [[first_ms=300]]"})))
        .await
        .expect(200);
    assert_eq!(turn["status"], "completed");
    assert!(
        turn["text"]
            .as_str()
            .unwrap()
            .ends_with("word1 word2 word3")
    );
}

async fn waiting_ends_with_an_accepted_turn_when_it_takes_longer(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    let request = client
        .request(Method::POST, &turns_of(&session))
        .header("prefer", "wait=1");
    let accepted = client
        .send(request.json(&json!({"message": "Slow [[first_ms=3000]]"})))
        .await
        .expect(202);
    let turn = client.finished(accepted["turn_id"].as_str().unwrap()).await;
    assert_eq!(turn["status"], "completed");
}

async fn a_client_that_leaves_changes_nothing(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let session = client.create_session().await;
    let turn = client
        .post_turn(&session, "Stay [[tokens=20 delay_ms=30]]")
        .await;
    let mut stream = client.open(&format!("/v1/turns/{turn}/events")).await;
    stream.next().await.unwrap();
    drop(stream);
    assert_eq!(client.finished(&turn).await["status"], "completed");
    assert_eq!(model.clients_gone(), 0, "the model's reader stayed");
}

async fn tool_rounds_are_stored_in_protocol_order(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let session = client.create_session().await;
    let message = r#"Look twice [[tool=search_memory tool_args={"query":"umbrella"} tool_rounds=2 tool_calls=2 before_tool=2]]"#;
    let turn = client.post_turn(&session, message).await;
    let reading = client.read_turn(&turn).await;
    let text = reading.assert_complete();
    assert!(
        !reading.of_kind("tool").is_empty(),
        "tool events: {:?}",
        reading.kinds()
    );
    let history = client.history(&session).await;
    assert_eq!(violations(&history), Vec::<String>::new(), "{history:#?}");
    let roles: Vec<&str> = history
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "tool",
            "tool",
            "assistant",
            "tool",
            "tool",
            "assistant"
        ]
    );
    assert_eq!(history[7]["content"], text.as_str());
    assert_eq!(
        model.requests_about("Look twice").len(),
        3,
        "one request a round and one for the answer"
    );
    client.ask(&session, "And now?").await;
    model.assert_every_transcript_was_valid();
}

async fn reasoning_is_neither_in_the_answer_nor_in_the_history(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    let turn = client
        .post_turn(&session, "Think [[think=1 reasoning=1 tokens=3]]")
        .await;
    let reading = client.read_turn(&turn).await;
    let text = reading.assert_complete();
    assert!(text.ends_with("word1 word2 word3"), "{text}");
    let history = client.history(&session).await;
    for shown in [
        text,
        format!("{history:?}"),
        format!("{:?}", reading.events),
    ] {
        assert!(
            !shown.contains(REASONING) && !shown.contains("think>"),
            "{shown}"
        );
    }
}

async fn the_next_turn_sees_the_history_of_the_last(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let session = client.create_session().await;
    client
        .ask(&session, "First question [[text=First_answer.]]")
        .await;
    client.ask(&session, "Second question").await;
    let seen = model
        .requests_about("Second question")
        .last()
        .unwrap()
        .messages();
    let spoken: Vec<String> = seen
        .iter()
        .filter(|message| message["role"] != "system")
        .map(|message| message["content"].to_string())
        .collect();
    assert_eq!(spoken.len(), 3, "{seen:#?}");
    assert!(
        spoken[0].contains("First question")
            && spoken[1].contains("First answer.")
            && spoken[2].contains("Second question")
    );
    model.assert_every_transcript_was_valid();
}
