//! A model that is down, slow or talks nonsense costs one turn, and nothing else.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::model::Model;
use tidemark_tests::server::{Setup, with_model};
use tidemark_tests::transcript::violations;

each_store!(
    every_fault_of_the_model_ends_the_turn_with_a_stable_code,
    a_model_that_is_not_there_fails_the_turn,
    a_model_that_falls_silent_fails_the_turn,
    a_short_fault_before_the_first_word_is_outlived,
    a_fault_after_the_first_word_is_not_retried,
);

/// Posts a turn that has to fail, checks what is kept of it, and gives the code of its problem.
async fn failing_turn(client: &Client, session: &str, message: &str) -> String {
    let before = client.history(session).await.len();
    let turn = client.post_turn(session, message).await;
    let reading = client.read_turn(&turn).await;
    reading.assert_gapless_from(1);
    let done = &reading.assert_one_done_last().data;
    assert_eq!(done["status"], "failed", "{message}: {done}");
    let stored = client.turn(&turn).await;
    assert_eq!(stored["status"], "failed");
    assert_eq!(
        stored["problem"], done["problem"],
        "the terminal is rendered from the stored turn"
    );
    let code = done["problem"]["code"]
        .as_str()
        .unwrap_or_else(|| panic!("no code in {done}"));
    assert!(
        !code.is_empty()
            && code
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
        "{code}"
    );
    let history = client.history(session).await;
    assert_eq!(history[before]["role"], "user", "the user message is kept");
    assert_eq!(history[before]["content"], message);
    assert_eq!(violations(&history), Vec::<String>::new(), "{history:#?}");
    code.to_owned()
}

async fn every_fault_of_the_model_ends_the_turn_with_a_stable_code(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let session = client.create_session().await;
    for fault in [
        "error_status=500",
        "error_status=400",
        "error_status=401",
        "error_status=429 retry_after=0",
        "tokens=9 cut_after=3",
        "tokens=9 no_finish=1",
        "garbage=1",
        "tokens=9 error_after=0",
        "tokens=9 error_after=4",
        "empty=1",
        "empty=1 reasoning=1",
        "empty=1 think=1",
    ] {
        let message = format!("Fail now [[{fault}]]");
        let code = failing_turn(&client, &session, &message).await;
        assert_eq!(
            failing_turn(&client, &session, &message).await,
            code,
            "{fault}: another code the second time"
        );
        println!("{fault}: {code}");
        assert_eq!(
            client.ask(&session, "Usable?").await["status"],
            "completed",
            "after {fault}"
        );
    }
    model.assert_every_transcript_was_valid();
    client.get("/readyz").await.expect(200);
}

async fn a_model_that_is_not_there_fails_the_turn(store: Store) {
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let server = Setup::on(store)
        .model_at(&format!("http://{closed}/v1"))
        .start()
        .await;
    let client = server.client();
    let session = client.create_session().await;
    let code = failing_turn(&client, &session, "Anybody there?").await;
    assert_eq!(failing_turn(&client, &session, "And now?").await, code);
}

async fn a_model_that_falls_silent_fails_the_turn(store: Store) {
    let model = Model::start().await;
    let server = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_MODEL__IDLE_TIMEOUT_SECONDS", "1")
        .start()
        .await;
    let client = server.client();
    let session = client.create_session().await;
    let started = Instant::now();
    failing_turn(
        &client,
        &session,
        "Stall [[tokens=9 stall_after=3 stall_ms=50000]]",
    )
    .await;
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
    model.until_idle().await;
    assert_eq!(client.ask(&session, "Usable?").await["status"], "completed");
}

async fn a_short_fault_before_the_first_word_is_outlived(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let session = client.create_session().await;
    for fault in [
        "error_status=429 retry_after=1 error_times=1",
        "error_status=503 error_times=1",
    ] {
        let started = Instant::now();
        let turn = client.ask(&session, &format!("Once [[{fault}]]")).await;
        assert_eq!(turn["status"], "completed", "{fault}: {turn}");
        assert_eq!(model.requests_about(fault).len(), 2, "{fault}");
        if fault.contains("retry_after=1") {
            assert!(
                started.elapsed() >= Duration::from_secs(1),
                "Retry-After is honoured"
            );
        }
    }
    let history = client.history(&session).await;
    assert_eq!(
        history
            .iter()
            .filter(|message| message["role"] == "user")
            .count(),
        2
    );
}

async fn a_fault_after_the_first_word_is_not_retried(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let session = client.create_session().await;
    failing_turn(
        &client,
        &session,
        "Broken [[tokens=9 delay_ms=60 cut_after=5]]",
    )
    .await;
    assert_eq!(model.requests_about("Broken").len(), 1);
    let body: Value = json!({"message": "Go on", "memory": "off"});
    assert_eq!(client.ask_with(&session, body).await["status"], "completed");
    model.assert_every_transcript_was_valid();
}
