//! What tools bring in does not outgrow the model's window.

use serde_json::{Value, json};
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::model::{Model, ModelRequest};
use tidemark_tests::server::Setup;
use tidemark_tests::transcript::text_of;

each_store!(long_results_in_many_rounds_stay_within_the_model_s_window);

const CONTEXT_TOKENS: usize = 2_000;
const MAX_OUTPUT_TOKENS: usize = 500;
const ROUNDS: usize = 5;

/// Four characters a token, of all texts that the model is given.
fn tokens(request: &ModelRequest) -> usize {
    let calls = |message: &Value| match &message["tool_calls"] {
        Value::Array(calls) => calls
            .iter()
            .map(|call| call["function"].to_string().chars().count())
            .sum(),
        _ => 0,
    };
    let messages: usize = request
        .messages()
        .iter()
        .map(|message| text_of(message).chars().count() + calls(message))
        .sum();
    let tools = match &request.body["tools"] {
        Value::Null => 0,
        tools => tools.to_string().chars().count(),
    };
    (messages + tools) / 4
}

async fn long_results_in_many_rounds_stay_within_the_model_s_window(store: Store) {
    let model = Model::start().await;
    let server = Setup::on(store)
        .model(&model)
        .with(
            "TIDEMARK_MODEL__CONTEXT_TOKENS",
            &CONTEXT_TOKENS.to_string(),
        )
        .with(
            "TIDEMARK_MODEL__MAX_OUTPUT_TOKENS",
            &MAX_OUTPUT_TOKENS.to_string(),
        )
        .start()
        .await;
    let client = server.client();
    for n in 0..8 {
        let content = format!(
            "Harbour log {n}: {}",
            format!("ship {n} came and went. ").repeat(150)
        );
        client
            .post("/v1/memories", &json!({"content": content}))
            .await
            .expect(201);
    }
    let question = format!(
        r#"What does the harbour log say? [[tool=search_memory tool_args={{"query":"harbour log"}} tool_rounds={ROUNDS}]]"#
    );
    let turn = client.ask(&client.create_session().await, &question).await;
    assert_eq!(turn["status"], "completed", "{turn}");
    let requests = model.requests_about("What does the harbour log say?");
    assert_eq!(requests.len(), ROUNDS + 1);
    let sizes: Vec<usize> = requests.iter().map(tokens).collect();
    println!("tokens of each request: {sizes:?}");
    assert!(
        sizes
            .iter()
            .all(|size| *size <= CONTEXT_TOKENS - MAX_OUTPUT_TOKENS),
        "tokens of each request: {sizes:?}"
    );
    let last = requests.last().unwrap();
    let results: Vec<Value> = last
        .messages()
        .into_iter()
        .filter(|message| message["role"] == "tool")
        .collect();
    assert_eq!(results.len(), ROUNDS, "every call keeps its result");
    assert!(
        text_of(results.last().unwrap()).contains("Harbour log"),
        "the newest result says something: {results:?}"
    );
    assert!(last.last_user().contains("What does the harbour log say?"));
    model.assert_every_transcript_was_valid();
}
