#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::model::scripted::{Server, Step, answer};

const KEY: &str = "sk-s3cret";

fn options(server: &Server) -> OpenAiEmbedderOptions {
    OpenAiEmbedderOptions {
        model: "openai:wave-1".to_owned(),
        base_url: server.base_url.clone(),
        name: "wave-1".to_owned(),
        api_key: ApiKey::new(KEY),
        dimensions: None,
        query_prefix: "query: ".to_owned(),
        passage_prefix: "passage: ".to_owned(),
        batch: 2,
        query_timeout: Duration::from_millis(300),
        timeout: Duration::from_secs(20),
    }
}

fn embedder(server: &Server) -> OpenAiEmbedder {
    OpenAiEmbedder::new(options(server)).unwrap()
}

fn vectors(vectors: &[&[f32]]) -> Vec<Step> {
    let data: Vec<Value> = vectors
        .iter()
        .enumerate()
        .map(|(index, vector)| json!({"object": "embedding", "index": index, "embedding": vector}))
        .collect();
    let body = json!({"object": "list", "data": data}).to_string();
    answer("200 OK", &["content-type: application/json"], body)
}

fn refusal(status: &str, headers: &[&str]) -> Vec<Step> {
    answer(
        status,
        headers,
        format!(r#"{{"error": {{"code": "{KEY}"}}}}"#),
    )
}

fn body_of(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn two() -> Vec<String> {
    vec!["the tide".to_owned(), "the moon".to_owned()]
}

#[tokio::test]
async fn questions_and_passages_are_sent_with_their_prefixes_and_the_key() {
    let server = Server::start([
        vectors(&[&[0.0, 2.0]]),
        vectors(&[&[1.0, 0.0], &[0.0, 1.0]]),
    ])
    .await;
    let embedder = embedder(&server);
    let question = embedder.embed_query("when?").await.unwrap();
    assert_eq!(question.values(), [0.0, 1.0]);
    let passages = embedder.embed_passages(&two()).await.unwrap();
    assert_eq!(passages[0].values(), [1.0, 0.0]);
    let requests = server.requests();
    assert!(requests[0].starts_with("POST /v1/embeddings HTTP/1.1\r\n"));
    assert!(requests[0].contains(&format!("authorization: Bearer {KEY}\r\n")));
    assert_eq!(body_of(&requests[0])["input"], json!(["query: when?"]));
    assert_eq!(
        body_of(&requests[1])["input"],
        json!(["passage: the tide", "passage: the moon"])
    );
    assert_eq!(embedder.dimension(), Some(2));
}

#[tokio::test]
async fn a_batch_is_asked_for_again_when_the_server_fails_or_the_connection_breaks() {
    let good = vectors(&[&[1.0], &[1.0]]);
    let server = Server::start([
        refusal("503 Service Unavailable", &[]),
        vec![Step::Reset],
        good,
    ])
    .await;
    let passages = embedder(&server).embed_passages(&two()).await.unwrap();
    assert_eq!((passages.len(), server.requests().len()), (2, 3));
}

#[tokio::test]
async fn a_question_is_asked_once_and_within_its_time() {
    let server = Server::start([refusal("503 Service Unavailable", &[])]).await;
    let failed = embedder(&server).embed_query("when?").await;
    assert!(
        matches!(failed, Err(EmbedError::Unavailable(_))),
        "{failed:?}"
    );
    assert_eq!(server.requests().len(), 1);

    let silent = Server::start([vec![Step::UntilHangUp]]).await;
    let began = Instant::now();
    let failed = embedder(&silent).embed_query("when?").await;
    assert!(
        matches!(failed, Err(EmbedError::Unavailable(_))),
        "{failed:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_server_that_keeps_failing_is_given_a_pause_by_questions_but_not_by_passages() {
    let server = Server::start([refusal("500 Internal Server Error", &[])]).await;
    let embedder = embedder(&server);
    for _ in 0..20 {
        embedder.embed_query("when?").await.unwrap_err();
    }
    let asked = server.requests().len();
    assert_eq!(asked, 5);
    embedder.embed_passages(&two()).await.unwrap_err();
    assert_eq!(server.requests().len(), asked + 1 + RETRIES as usize);
}

#[tokio::test]
async fn refusals_tell_a_wrong_key_from_texts_that_are_not_accepted_and_from_load() {
    for (status, expected) in [
        ("401 Unauthorized", EmbedError::Refused { status: 401 }),
        ("404 Not Found", EmbedError::Refused { status: 404 }),
        ("400 Bad Request", EmbedError::Unacceptable { status: 400 }),
        (
            "413 Payload Too Large",
            EmbedError::Unacceptable { status: 413 },
        ),
    ] {
        let server = Server::start([refusal(status, &[])]).await;
        let failed = embedder(&server).embed_passages(&two()).await.unwrap_err();
        assert_eq!(failed, expected);
        assert_eq!(server.requests().len(), 1, "{status}");
    }
    let server = Server::start([refusal("429 Too Many Requests", &["retry-after: 300"])]).await;
    let failed = embedder(&server).embed_passages(&two()).await.unwrap_err();
    let retry_after = Some(Duration::from_mins(5));
    assert_eq!(failed, EmbedError::Busy { retry_after });
}

#[tokio::test]
async fn vectors_of_another_dimension_are_refused() {
    let server = Server::start([vectors(&[&[1.0, 0.0]]), vectors(&[&[1.0], &[1.0]])]).await;
    let first = embedder(&server);
    first.embed_query("when?").await.unwrap();
    assert_eq!(
        first.embed_passages(&two()).await,
        Err(EmbedError::Dimension {
            expected: 2,
            given: 1
        })
    );
    let mut options = options(&server);
    options.dimensions = Some(256);
    let asked_for = OpenAiEmbedder::new(options).unwrap();
    assert_eq!(
        asked_for.embed_passages(&two()).await,
        Err(EmbedError::Dimension {
            expected: 256,
            given: 1
        })
    );
    assert_eq!(body_of(&server.requests()[2])["dimensions"], 256);
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_its_end() {
    let mut steps = answer("200 OK", &[], "");
    steps.extend((0..60).map(|_| Step::Bytes(vec![b' '; 1 << 20])));
    let server = Server::start([steps]).await;
    let mut options = options(&server);
    options.query_timeout = Duration::from_secs(30);
    let failed = OpenAiEmbedder::new(options)
        .unwrap()
        .embed_query("when?")
        .await;
    assert_eq!(
        failed,
        Err(EmbedError::Protocol("the answer is too long".to_owned()))
    );
}

#[tokio::test]
async fn long_texts_are_cut_and_empty_ones_are_sent_as_something() {
    let server = Server::start([vectors(&[&[1.0], &[1.0]])]).await;
    let texts = ["x".repeat(100_000), String::new()];
    embedder(&server).embed_passages(&texts).await.unwrap();
    let inputs = body_of(&server.requests()[0])["input"].clone();
    assert!(inputs[0].as_str().unwrap().len() < 9_000);
    assert_eq!(inputs[1], "passage: -");
}

#[tokio::test]
async fn more_than_a_batch_is_refused_and_nothing_is_nothing() {
    let server = Server::start([vectors(&[&[1.0]])]).await;
    let embedder = embedder(&server);
    let three = vec![String::new(); 3];
    let failed = embedder.embed_passages(&three).await;
    assert!(matches!(failed, Err(EmbedError::Protocol(_))));
    assert_eq!(embedder.embed_passages(&[]).await, Ok(Vec::new()));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_key_is_never_shown_and_an_address_never_repeated() {
    let server = Server::start([vectors(&[&[1.0]])]).await;
    assert!(!format!("{:?}", embedder(&server)).contains(KEY));
    let mut options = options(&server);
    options.base_url = "http://me:pass@host/v1".to_owned();
    let refused = OpenAiEmbedder::new(options).unwrap_err();
    assert!(!refused.to_string().contains("pass"), "{refused}");
}
