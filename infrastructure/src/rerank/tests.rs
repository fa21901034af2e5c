#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::model::scripted::{Server, Step, answer};

const KEY: &str = "sk-s3cret";

fn options(server: &Server) -> HttpRerankerOptions {
    HttpRerankerOptions {
        url: server.base_url.clone(),
        model: Some("judge-1".to_owned()),
        api_key: ApiKey::new(KEY),
        timeout: Duration::from_millis(300),
    }
}

fn reranker(server: &Server) -> HttpReranker {
    HttpReranker::new(options(server)).unwrap()
}

fn good() -> Vec<Step> {
    let body = json!({"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.2}]});
    answer(
        "200 OK",
        &["content-type: application/json"],
        body.to_string(),
    )
}

fn body_of(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

async fn asked(reranker: &HttpReranker) -> Result<Vec<f64>, RerankError> {
    let texts = ["the tide".to_owned(), "the moon".to_owned()];
    reranker.rerank("when?", &texts).await
}

#[tokio::test]
async fn a_question_is_sent_with_its_texts_the_model_and_the_key() {
    let server = Server::start([good()]).await;
    assert_eq!(asked(&reranker(&server)).await, Ok(vec![0.2, 0.9]));
    let requests = server.requests();
    assert!(requests[0].starts_with("POST /v1/rerank HTTP/1.1\r\n"));
    assert!(requests[0].contains(&format!("authorization: Bearer {KEY}\r\n")));
    let body = json!({"model": "judge-1", "query": "when?", "documents": ["the tide", "the moon"], "top_n": 2});
    assert_eq!(body_of(&requests[0]), body);
}

#[tokio::test]
async fn a_server_of_one_model_is_asked_without_a_name_and_without_a_key() {
    let body = json!([{"index": 1, "score": -3.5}, {"index": 0, "score": 2.0}]).to_string();
    let server = Server::start([answer("200 OK", &[], body)]).await;
    let reranker = HttpReranker::new(HttpRerankerOptions {
        model: None,
        api_key: None,
        ..options(&server)
    });
    assert_eq!(asked(&reranker.unwrap()).await, Ok(vec![2.0, -3.5]));
    let request = &server.requests()[0];
    assert_eq!(body_of(request)["texts"], json!(["the tide", "the moon"]));
    assert!(!request.contains("authorization"));
}

#[tokio::test]
async fn the_address_may_name_the_operation_or_not() {
    let server = Server::start([good()]).await;
    let root = server.base_url.trim_end_matches("/v1");
    for (url, path) in [
        (root.to_owned(), "/rerank"),
        (format!("{root}/"), "/rerank"),
        (format!("{root}/rerank"), "/rerank"),
        (format!("{root}/v2/rerank/"), "/v2/rerank"),
        (format!("{root}/prerank"), "/prerank/rerank"),
    ] {
        let options = HttpRerankerOptions {
            url,
            ..options(&server)
        };
        asked(&HttpReranker::new(options).unwrap()).await.unwrap();
        let last = server.requests().pop().unwrap();
        assert!(last.starts_with(&format!("POST {path} HTTP")), "{last}");
    }
}

#[tokio::test]
async fn a_silent_server_is_not_waited_for_and_a_failing_one_not_asked_again() {
    let silent = Server::start([vec![Step::UntilHangUp]]).await;
    let began = Instant::now();
    let failed = asked(&reranker(&silent)).await;
    assert!(
        matches!(failed, Err(RerankError::Unavailable(_))),
        "{failed:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(5));

    for steps in [
        answer("503 Service Unavailable", &[], ""),
        vec![Step::Reset],
    ] {
        let server = Server::start([steps]).await;
        let failed = asked(&reranker(&server)).await;
        assert!(
            matches!(failed, Err(RerankError::Unavailable(_))),
            "{failed:?}"
        );
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_server_that_keeps_failing_or_keeps_silent_is_given_a_pause() {
    for steps in [
        answer("500 Internal Server Error", &[], ""),
        vec![Step::UntilHangUp],
    ] {
        let server = Server::start([steps]).await;
        let reranker = HttpReranker::new(HttpRerankerOptions {
            timeout: Duration::from_millis(100),
            ..options(&server)
        });
        let reranker = reranker.unwrap();
        for _ in 0..12 {
            asked(&reranker).await.unwrap_err();
        }
        assert_eq!(server.requests().len(), 5);
    }
}

#[tokio::test]
async fn a_refusal_is_told_without_what_the_server_says() {
    let refusal = format!(r#"{{"error": {{"code": "{KEY}", "message": "the tide"}}}}"#);
    for status in ["401 Unauthorized", "404 Not Found", "413 Payload Too Large"] {
        let server = Server::start([answer(status, &[], &refusal)]).await;
        let failed = asked(&reranker(&server)).await.unwrap_err();
        let status = status[..3].parse().unwrap();
        assert_eq!(failed, RerankError::Refused { status });
        assert!(!failed.to_string().contains("tide"), "{failed}");
    }
    let server = Server::start([answer("429 Too Many Requests", &[], "")]).await;
    assert_eq!(asked(&reranker(&server)).await, Err(RerankError::Busy));
}

#[tokio::test]
async fn what_is_no_answer_breaks_the_protocol() {
    for body in [
        "<html>",
        r#"{"results":[{"index":0,"relevance_score":1}]}"#,
        "\u{feff}",
    ] {
        let server = Server::start([answer("200 OK", &[], body)]).await;
        let failed = asked(&reranker(&server)).await;
        assert!(
            matches!(failed, Err(RerankError::Protocol(_))),
            "{failed:?}"
        );
    }
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_its_end() {
    let mut steps = answer("200 OK", &[], "");
    steps.extend((0..60).map(|_| Step::Bytes(vec![b' '; 1 << 20])));
    let server = Server::start([steps]).await;
    let reranker = HttpReranker::new(HttpRerankerOptions {
        timeout: Duration::from_secs(30),
        ..options(&server)
    });
    assert_eq!(
        asked(&reranker.unwrap()).await,
        Err(RerankError::Protocol("the answer is too long".to_owned()))
    );
}

#[tokio::test]
async fn a_long_question_and_long_texts_are_cut_between_two_characters() {
    let server = Server::start([good()]).await;
    let texts = ["水".repeat(10_000), "short".to_owned()];
    let question = "é".repeat(10_000);
    reranker(&server).rerank(&question, &texts).await.unwrap();
    let body = body_of(&server.requests()[0]);
    for long in [&body["query"], &body["documents"][0]] {
        let length = long.as_str().unwrap().len();
        assert!((MAX_TEXT_BYTES - 3..=MAX_TEXT_BYTES).contains(&length));
    }
    assert_eq!(body["documents"][1], "short");
}

#[tokio::test]
async fn a_key_is_never_shown_and_an_address_never_repeated() {
    let server = Server::start([good()]).await;
    assert!(!format!("{:?}", reranker(&server)).contains(KEY));
    let refused = HttpReranker::new(HttpRerankerOptions {
        url: "http://me:pass@host/v1".to_owned(),
        ..options(&server)
    });
    let refused = refused.unwrap_err();
    assert!(!refused.to_string().contains("pass"), "{refused}");
}
