//! One turn at a time in a session: the order, the refusal, the bound.

use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::paths::turns_of;
use tidemark_tests::server::with_model;
use tidemark_tests::transcript::violations;

each_store!(
    turns_of_a_session_run_one_after_the_other_in_their_order,
    a_busy_session_refuses_a_turn_that_would_not_wait,
    a_session_s_queue_has_an_end,
    sessions_do_not_wait_for_each_other,
    a_cancelled_turn_in_the_queue_never_reaches_the_model,
);

fn contents(history: &[Value], role: &str) -> Vec<String> {
    history
        .iter()
        .filter(|message| message["role"] == role)
        .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

async fn turns_of_a_session_run_one_after_the_other_in_their_order(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let session = client.create_session().await;
    let mut turns = Vec::new();
    for n in 0..4 {
        let message = format!("Question {n} [[tool=search_memory text=Answer_{n} first_ms=100]]");
        turns.push(client.post_turn(&session, &message).await);
    }
    for turn in &turns {
        assert_eq!(client.finished(turn).await["status"], "completed");
    }
    let history = client.history(&session).await;
    assert_eq!(violations(&history), Vec::<String>::new());
    let asked = contents(&history, "user");
    assert!(
        (0..4).all(|n| asked[n].starts_with(&format!("Question {n}"))),
        "{asked:?}"
    );
    let answers: Vec<String> = contents(&history, "assistant")
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    assert!(
        (0..4).all(|n| answers[n].ends_with(&format!("Answer {n}"))),
        "{answers:?}"
    );
    model.assert_every_transcript_was_valid();
}

async fn busy(client: &Client) -> (String, String) {
    let session = client.create_session().await;
    let running = client
        .post_turn(&session, "Busy [[tokens=200 delay_ms=50]]")
        .await;
    client.until_status(&running, "running").await;
    (session, running)
}

async fn a_busy_session_refuses_a_turn_that_would_not_wait(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let (session, running) = busy(&client).await;
    let body = json!({"message": "Now or never", "if_busy": "reject"});
    client
        .post(&turns_of(&session), &body)
        .await
        .expect_problem(409);
    client
        .post(&format!("/v1/turns/{running}/cancel"), &json!({}))
        .await;
    client.finished(&running).await;
    assert_eq!(client.ask_with(&session, body).await["status"], "completed");
    let asked = contents(&client.history(&session).await, "user");
    assert_eq!(
        asked
            .iter()
            .filter(|text| text.contains("Now or never"))
            .count(),
        1
    );
}

async fn a_session_s_queue_has_an_end(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let (session, _running) = busy(&client).await;
    let mut accepted = 0;
    let refused = loop {
        assert!(
            accepted < 1000,
            "a thousand turns are waiting in one session"
        );
        let answer = client
            .post(&turns_of(&session), &json!({"message": "More"}))
            .await;
        if answer.status != 202 {
            break answer;
        }
        accepted += 1;
    };
    refused.expect_problem(429);
    assert!(accepted >= 1, "a turn may wait");
    let other = client.create_session().await;
    assert_eq!(client.ask(&other, "Elsewhere").await["status"], "completed");
}

async fn sessions_do_not_wait_for_each_other(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let (_session, running) = busy(&client).await;
    let other = client.create_session().await;
    assert_eq!(client.ask(&other, "Quick").await["status"], "completed");
    assert_eq!(client.turn(&running).await["status"], "running");
}

async fn a_cancelled_turn_in_the_queue_never_reaches_the_model(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let (session, running) = busy(&client).await;
    let queued = client.post_turn(&session, "Never mind").await;
    client
        .post(&format!("/v1/turns/{queued}/cancel"), &json!({}))
        .await;
    assert_eq!(client.finished(&queued).await["status"], "cancelled");
    client.read_turn(&queued).await.assert_one_done_last();
    client
        .post(&format!("/v1/turns/{running}/cancel"), &json!({}))
        .await;
    client.finished(&running).await;
    assert_eq!(client.ask(&session, "Next").await["status"], "completed");
    assert!(model.requests_about("Never mind").is_empty());
    model.assert_every_transcript_was_valid();
}
