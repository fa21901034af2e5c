//! The examples that need no SDK. Those for TypeScript and Python are compiled and run with theirs.

use std::process::Stdio;

use tidemark_tests::database::Store;
use tidemark_tests::server::Setup;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::tools::{in_repository, run, variable};

#[tokio::test]
async fn a_conversation_is_held_with_curl_alone() {
    let server = Setup::on(Store::Sqlite).start().await;
    let mut example = Command::new(in_repository("examples/curl.sh"));
    let said = run("curl.sh", example.env("TIDEMARK_URL", server.base_url())).await;
    assert!(
        said.contains("event: done") && said.matches("400k").count() > 2,
        "{said}"
    );
}

#[tokio::test]
async fn a_page_holds_a_conversation_over_a_bare_event_source() {
    let server = Setup::on(Store::Sqlite).start().await;
    let budget = serde_json::json!({"content": "The project's budget is 400k"});
    server
        .client()
        .post("/v1/memories", &budget)
        .await
        .expect(201);
    let mut serving = Command::new("node")
        .arg(in_repository("examples/eventsource/serve.mjs"))
        .env("TIDEMARK_URL", server.base_url())
        .env("PORT", "0")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(serving.stdout.take().unwrap()).lines();
    let page = said.next_line().await.unwrap().expect("where the page is");
    let mut visit = Command::new("node");
    visit
        .arg(in_repository("tests/sdk/eventsource.mjs"))
        .env("PAGE", page)
        .env("MODULES", variable("TIDEMARK_TEST_NODE_MODULES_BROWSER"))
        .env("CHROMIUM", variable("TIDEMARK_TEST_CHROMIUM"));
    let answer = run("the page in a browser", &mut visit).await;
    assert!(answer.contains("400k"), "{answer}");
}
