//! The test support itself: a scripted model that did not do what it was told would make every suite a lie.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tidemark_tests::client::Client;
use tidemark_tests::database::{Database, Store};
use tidemark_tests::directives::Behaviour;
use tidemark_tests::model::Model;
use tidemark_tests::model_reply::REASONING;
use tidemark_tests::otlp::Collector;
use tidemark_tests::sse::{EventStream, Frame};

const PATH: &str = "/v1/chat/completions";

fn client_of(model: &Model) -> Client {
    Client::new(model.base_url().trim_end_matches("/v1"))
}

fn prompt(text: &str) -> Value {
    json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}, "messages": [{"role": "user", "content": text}]})
}

async fn stream_of(model: &Model, body: &Value) -> EventStream {
    let request = client_of(model)
        .request(reqwest::Method::POST, PATH)
        .json(body);
    let asked_at = Instant::now();
    EventStream::new(request.send().await.unwrap(), asked_at)
}

async fn data_of(model: &Model, body: &Value) -> (Vec<String>, Result<(), String>) {
    let mut stream = stream_of(model, body).await;
    let frames = stream
        .collect_until(Duration::from_secs(10), |_| false)
        .await;
    let data = frames
        .into_iter()
        .filter_map(|arrived| match arrived.frame {
            Frame::Event(event) => Some(event.data),
            _ => None,
        });
    (data.collect(), stream.ended.unwrap())
}

fn content_of(data: &[String]) -> String {
    let chunks = data
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    chunks
        .filter_map(|chunk| {
            chunk["choices"][0]["delta"]["content"]
                .as_str()
                .map(str::to_owned)
        })
        .collect()
}

#[tokio::test]
async fn the_model_streams_the_words_asked_for_then_usage_and_the_end() {
    let model = Model::start().await;
    let (data, ended) = data_of(&model, &prompt("hello [[tokens=4]]")).await;
    assert_eq!(ended, Ok(()));
    assert_eq!(content_of(&data), "word1 word2 word3 word4");
    assert_eq!(data.last().unwrap(), "[DONE]");
    let usage: Value = serde_json::from_str(&data[data.len() - 2]).unwrap();
    assert_eq!(usage["usage"]["completion_tokens"], 4);
    assert_eq!(model.requests_about("hello").len(), 1);
    assert_eq!((model.in_flight(), model.clients_gone()), (0, 0));
    model.assert_every_transcript_was_valid();
}

#[tokio::test]
async fn the_model_answers_without_a_stream_too() {
    let model = Model::start().await;
    let mut body = prompt("x [[text=one_two think=1]]");
    body["stream"] = json!(false);
    let answer = client_of(&model).post(PATH, &body).await.expect(200);
    assert_eq!(
        answer["choices"][0]["message"]["content"],
        format!("<think>{REASONING}</think>one two")
    );
}

#[tokio::test]
async fn the_model_keeps_its_timing() {
    let model = Model::start().await;
    let started = Instant::now();
    let (_, ended) = data_of(
        &model,
        &prompt("[[tokens=3 first_ms=100 delay_ms=50 stall_ms=100 stall_after=1]]"),
    )
    .await;
    let took = started.elapsed();
    assert_eq!(ended, Ok(()));
    assert!(took >= Duration::from_millis(300), "{took:?}");
}

#[tokio::test]
async fn a_reader_that_leaves_is_counted_and_frees_its_place() {
    let model = Model::start().await;
    let mut stream = stream_of(&model, &prompt("[[tokens=1000 delay_ms=20]]")).await;
    stream.next().await.unwrap();
    assert_eq!(model.in_flight(), 1);
    drop(stream);
    model.until_idle().await;
    assert_eq!(model.clients_gone(), 1);
}

#[tokio::test]
async fn the_model_cuts_errs_and_ends_as_told() {
    let model = Model::start().await;
    let (data, ended) = data_of(&model, &prompt("[[tokens=9 cut_after=3]]")).await;
    assert_eq!(content_of(&data), "word1 word2 word3");
    assert!(ended.is_err(), "a cut is no proper end");
    let (data, ended) = data_of(&model, &prompt("[[no_finish=1]]")).await;
    assert_eq!(
        (content_of(&data).as_str(), ended),
        ("word1 word2 word3", Ok(()))
    );
    assert!(!data.contains(&"[DONE]".to_owned()));
    let (data, _) = data_of(&model, &prompt("[[tokens=9 error_after=2]]")).await;
    assert!(data.last().unwrap().contains("\"error\""));
    let (data, _) = data_of(&model, &prompt("[[empty=1]]")).await;
    assert_eq!(content_of(&data), "");
    let (data, _) = data_of(&model, &prompt("[[garbage=1]]")).await;
    assert!(
        data.iter()
            .any(|line| serde_json::from_str::<Value>(line).is_err())
    );
    let (data, _) = data_of(&model, &prompt("[[think=1 reasoning=1 tokens=1]]")).await;
    assert_eq!(
        content_of(&data),
        format!("<think>{REASONING}</think>word1")
    );
    assert!(data.concat().contains("reasoning_content"));
}

#[tokio::test]
async fn an_error_answer_can_be_limited_to_the_first_requests() {
    let model = Model::start().await;
    let client = client_of(&model);
    let body = prompt("[[error_status=429 retry_after=1 error_times=1]]");
    let refused = client.post(PATH, &body).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, "1"));
    assert_eq!(client.post(PATH, &body).await.status, 200);
}

#[tokio::test]
async fn a_tool_call_comes_first_and_the_answer_after_its_result() {
    let model = Model::start().await;
    let mut body = prompt(
        r#"[[tool=search_memory tool_args={"query": "a b"} tokens=2 tool_calls=2 before_tool=1]]"#,
    );
    let (data, _) = data_of(&model, &body).await;
    assert_eq!(content_of(&data), "word1");
    let mut arguments = String::new();
    let mut ids = Vec::new();
    for chunk in data
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
    {
        let call = &chunk["choices"][0]["delta"]["tool_calls"][0];
        ids.extend(call["id"].as_str().map(str::to_owned));
        arguments.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
    }
    assert_eq!(arguments, r#"{"query":"a b"}"#.repeat(2));
    let calls: Vec<Value> = ids
        .iter()
        .map(|id| json!({"id": id, "type": "function", "function": {}}))
        .collect();
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
    messages.extend(
        ids.iter()
            .map(|id| json!({"role": "tool", "tool_call_id": id, "content": "found"})),
    );
    let (data, _) = data_of(&model, &body).await;
    assert_eq!(content_of(&data), "word1 word2");
    model.assert_every_transcript_was_valid();
}

#[tokio::test]
#[should_panic(expected = "invalid requests to the model")]
async fn an_invalid_transcript_is_noticed_without_being_asked() {
    let model = Model::start().await;
    let mut body = prompt("x");
    body["messages"]
        .as_array_mut()
        .unwrap()
        .push(json!({"role": "tool", "tool_call_id": "c", "content": "r"}));
    drop(data_of(&model, &body).await);
    model.assert_every_transcript_was_valid();
}

#[tokio::test]
async fn a_rule_of_the_test_wins_over_the_directive_of_the_message() {
    let model = Model::start().await;
    model.rule(
        "weather",
        Behaviour {
            text: Some("It rains.".to_owned()),
            ..Behaviour::default()
        },
    );
    let (data, _) = data_of(&model, &prompt("the weather? [[tokens=9]]")).await;
    assert_eq!(content_of(&data), "It rains.");
}

#[tokio::test]
async fn the_collector_decodes_what_an_exporter_sends() {
    let collector = Collector::start().await;
    let span = Span {
        name: "chat".to_owned(),
        trace_id: vec![7; 16],
        ..Span::default()
    };
    let scope_spans = vec![ScopeSpans {
        spans: vec![span],
        ..ScopeSpans::default()
    }];
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            scope_spans,
            ..ResourceSpans::default()
        }],
    };
    let client = Client::new(collector.endpoint());
    let sent = client
        .request(reqwest::Method::POST, "/v1/traces")
        .body(request.encode_to_vec());
    client.send(sent).await.expect(200);
    collector
        .until_span("the span", |span| span.name == "chat")
        .await;
    assert_eq!(collector.spans_of(&[7; 16]).len(), 1);
    assert!(collector.holds("chat") && !collector.holds("secret"));
}

#[tokio::test]
async fn a_database_is_made_for_one_test_and_dropped_with_it() {
    for store in [Store::Postgres, Store::PostgresDurable] {
        let dir = tempfile::TempDir::new().unwrap();
        let database = Database::create(store, dir.path()).await;
        let url = database.url().to_owned();
        let open = PgConnection::connect(&url).await.expect("it is there");
        drop(database);
        let gone = PgConnection::connect(&url)
            .await
            .expect_err("it is gone, whoever was connected");
        assert!(gone.to_string().contains("does not exist"), "{gone}");
        drop(open);
    }
}
