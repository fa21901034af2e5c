//! A start with an embedder, with one that is down, and with one that cannot be used.

use std::time::{Duration, Instant};

use tidemark_tests::database::Store;
use tidemark_tests::embeddings::Embeddings;
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::wait::within;

async fn embedder_of(server: &Server) -> String {
    let ready = server.client().get("/readyz").await.expect(200);
    ready["embedder"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn readiness_tells_whether_there_is_an_embedder_and_whether_it_answers() {
    let without = Setup::on(Store::Sqlite).start().await;
    assert_eq!(embedder_of(&without).await, "none");

    let embeddings = Embeddings::start().await;
    let with = Setup::on(Store::Sqlite)
        .embedder(&embeddings)
        .with("TIDEMARK_EMBEDDER__API_KEY", "sk-embed")
        .start()
        .await;
    assert_eq!(embedder_of(&with).await, "ok");
    let probe = embeddings.requests().remove(0);
    assert_eq!(probe.model, "scripted");
    assert_eq!(probe.authorization.as_deref(), Some("Bearer sk-embed"));
    assert!(!with.log().text().contains("sk-embed"));
}

#[tokio::test]
async fn a_server_whose_embedder_is_down_or_silent_starts_all_the_same() {
    let embeddings = Embeddings::start().await;
    embeddings.set_status(Some(401));
    let refused = Setup::on(Store::Sqlite).embedder(&embeddings).start().await;
    assert_eq!(embedder_of(&refused).await, "unavailable");

    embeddings.set_status(None);
    embeddings.set_delay(Duration::from_mins(2));
    let began = Instant::now();
    let silent = Setup::on(Store::Sqlite).embedder(&embeddings).start().await;
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(embedder_of(&silent).await, "unavailable");
}

#[tokio::test]
async fn a_directory_without_a_model_is_refused_with_the_file_that_is_missing() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut process = tidemark_tests::server::command(&std::collections::BTreeMap::from([
        ("TIDEMARK_LISTEN".to_owned(), "127.0.0.1:0".to_owned()),
        ("TIDEMARK_EMBEDDER__KIND".to_owned(), "local".to_owned()),
        (
            "TIDEMARK_EMBEDDER__PATH".to_owned(),
            dir.path().display().to_string(),
        ),
    ]));
    let output = process.current_dir(dir.path()).output();
    let output = within(
        "the binary to end by itself",
        Duration::from_secs(30),
        output,
    )
    .await
    .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    assert!(
        text.contains("embedder") && text.contains("config.json"),
        "{text}"
    );
}

#[tokio::test]
async fn a_local_model_is_there_when_the_server_listens() {
    let model = std::env::var("TIDEMARK_TEST_SENTENCE_MODEL")
        .expect("TIDEMARK_TEST_SENTENCE_MODEL names a model's directory; scripts/test sets it");
    let server = Setup::on(Store::Sqlite)
        .with("TIDEMARK_EMBEDDER__KIND", "local")
        .with("TIDEMARK_EMBEDDER__PATH", &model)
        .start()
        .await;
    assert_eq!(embedder_of(&server).await, "ok");
    assert!(
        server.log().text().contains("384"),
        "{}",
        server.log().text()
    );
}
