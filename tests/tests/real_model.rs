//! The model adapter against a server that nobody here wrote; run by `scripts/test --real-model`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

use tidemark_tests::database::Store;
use tidemark_tests::server::Setup;

#[tokio::test]
#[ignore = "needs a running language model: scripts/test --real-model"]
async fn real_model_streams_an_answer_that_is_committed() {
    let url = std::env::var("TIDEMARK_TEST_REAL_MODEL_URL")
        .expect("TIDEMARK_TEST_REAL_MODEL_URL names an OpenAI-compatible server");
    let server = Setup::on(Store::Sqlite)
        .model_at(&url)
        .with("TIDEMARK_MODEL__MAX_OUTPUT_TOKENS", "48")
        .start()
        .await;
    let client = server.client();
    let session = client.create_session().await;
    let turn = client
        .post_turn_with(
            &session,
            serde_json::json!({"message": "Say hello in one short sentence."}),
        )
        .await;
    let reading = client.read_turn(&turn).await;
    let text = reading.assert_complete();
    println!("{} events, answer: {text}", reading.events.len());
    assert!(
        reading.of_kind("message").len() > 1,
        "the answer came in pieces"
    );
    assert!(reading.done().unwrap().data["usage"].is_object());
    assert_eq!(client.history(&session).await[1]["content"], text.as_str());
}
