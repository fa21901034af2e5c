#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use futures::StreamExt;
use serde_json::{Value, json};
use tidemark_application::ports::model::{AnswerFormat, ModelEvent, PromptMessage};
use tidemark_domain::session::Role;
use tidemark_domain::tool::{Effect, TimeoutClass, ToolCall, ToolPolicy, ToolSpec};
use tidemark_domain::turn::FinishReason;
use tokio::time::Instant;

use super::*;
use crate::model::scripted::{Server, Step, answer, events};
use crate::model::testing::{asked, said};

const KEY: &str = "sk-s3cret";
const WORD: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"yes\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

fn model_with(server: &Server, change: impl FnOnce(&mut OpenAiOptions)) -> OpenAiModel {
    let mut options = OpenAiOptions::new(&server.base_url, "wave-1");
    options.api_key = ApiKey::new(KEY);
    change(&mut options);
    OpenAiModel::new(options).unwrap()
}

fn model(server: &Server) -> OpenAiModel {
    model_with(server, |_| ())
}

fn yes() -> Vec<Step> {
    events(format!("{WORD}{STOP}data: [DONE]\n\n"))
}

/// All that is told, and how it ends.
async fn ask(model: &OpenAiModel) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let mut stream = match model.answer(asked("the tide is high")).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let mut told = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => told.push(event),
            Err(error) => {
                assert!(stream.next().await.is_none(), "an error is the last");
                return (told, Err(error));
            }
        }
    }
    (told, Ok(()))
}

fn said_yes() -> Vec<ModelEvent> {
    vec![
        ModelEvent::Text("yes".into()),
        ModelEvent::Finished {
            reason: FinishReason::Stop,
            usage: None,
        },
    ]
}

fn body_of(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn the_request_is_the_published_form() {
    let server = Server::start([yes()]).await;
    let call = ToolCall {
        id: "c1".into(),
        name: "find".into(),
        arguments: r#"{"q":1}"#.into(),
    };
    let request = ModelRequest {
        messages: vec![
            said(Role::System, "be kind"),
            PromptMessage {
                name: Some("Ada_1".into()),
                ..said(Role::User, "水?")
            },
            PromptMessage {
                tool_calls: vec![call],
                ..said(Role::Assistant, "")
            },
            PromptMessage {
                tool_call_id: Some("c1".into()),
                ..said(Role::Tool, "found")
            },
            PromptMessage {
                name: Some("no header: x".into()),
                ..said(Role::User, "so?")
            },
        ],
        tools: vec![ToolSpec {
            name: "find".into(),
            description: "finds".into(),
            parameters: json!({"type": "object"}),
            policy: ToolPolicy {
                timeout: TimeoutClass::File,
                effect: Effect::Read,
            },
        }],
        ..asked("")
    };
    let model = model_with(&server, |o| o.temperature = Some(0.5));
    let told: Vec<_> = model.answer(request).await.unwrap().collect().await;
    assert_eq!(told.len(), 2);
    let requests = server.requests();
    assert!(requests[0].starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
    assert!(requests[0].contains("authorization: Bearer sk-s3cret\r\n"));
    assert_eq!(
        body_of(&requests[0]),
        json!({
            "model": "wave-1",
            "stream": true,
            "stream_options": { "include_usage": true },
            "max_tokens": 100,
            "temperature": 0.5,
            "messages": [
                { "role": "system", "content": "be kind" },
                { "role": "user", "content": "水?", "name": "Ada_1" },
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "c1", "type": "function", "function": { "name": "find", "arguments": "{\"q\":1}" } },
                ] },
                { "role": "tool", "content": "found", "tool_call_id": "c1" },
                { "role": "user", "content": "so?" },
            ],
            "tools": [
                { "type": "function", "function": { "name": "find", "description": "finds", "parameters": { "type": "object" } } },
            ],
        })
    );
}

#[tokio::test]
async fn an_answer_arrives_however_its_bytes_are_split_in_time() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"你\"}}]}\n\n".as_bytes();
    let inside_the_character = body.iter().position(|&b| b == 0xE4).unwrap() + 1;
    let mut steps = events(&body[..inside_the_character]);
    steps.push(Step::Pause(Duration::from_millis(30)));
    steps.push(Step::Bytes(
        [
            &body[inside_the_character..],
            b"data: {\"choices\":[{\"delta\":{},\"fin",
        ]
        .concat(),
    ));
    steps.push(Step::Pause(Duration::from_millis(30)));
    steps.push(Step::Bytes(b"ish_reason\":\"stop\"}]}\n\n".to_vec()));
    let server = Server::start([steps]).await;
    let (told, result) = ask(&model(&server)).await;
    assert_eq!(result, Ok(()));
    assert_eq!(told[0], ModelEvent::Text("你".into()));
}

#[tokio::test]
async fn words_are_told_when_they_come_and_not_at_the_end() {
    let mut steps = events(WORD);
    steps.push(Step::UntilHangUp);
    let server = Server::start([steps]).await;
    let mut stream = model(&server).answer(asked("hi")).await.unwrap();
    assert_eq!(
        stream.next().await,
        Some(Ok(ModelEvent::Text("yes".into())))
    );
}

#[tokio::test]
async fn dropping_the_answer_hangs_up() {
    let mut steps = events(WORD);
    steps.push(Step::UntilHangUp);
    let server = Server::start([steps]).await;
    let model = model(&server);
    let mut stream = model.answer(asked("hi")).await.unwrap();
    stream.next().await;
    assert_eq!(server.hang_ups(), 0);
    drop(stream);
    let began = Instant::now();
    while server.hang_ups() == 0 {
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "the server is still connected"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_server_that_knows_no_stream_options_is_asked_without_and_remembered() {
    let refusal =
        r#"{"error":{"message":"Unrecognized request argument supplied: stream_options"}}"#;
    let server = Server::start([answer("400 Bad Request", &[], refusal), yes()]).await;
    let model = model_with(&server, |o| o.max_retries = 0);
    assert_eq!(ask(&model).await, (said_yes(), Ok(())));
    assert_eq!(ask(&model).await, (said_yes(), Ok(())));
    let asked: Vec<bool> = server
        .requests()
        .iter()
        .map(|r| body_of(r).get("stream_options").is_some())
        .collect();
    assert_eq!(asked, [true, false, false]);
}

#[tokio::test]
async fn a_server_that_wants_the_newer_name_of_the_limit_gets_it() {
    let refusal = r#"{"error":{"message":"'max_tokens' is not supported. Use 'max_completion_tokens' instead."}}"#;
    let server = Server::start([answer("400 Bad Request", &[], refusal), yes()]).await;
    assert_eq!(ask(&model(&server)).await, (said_yes(), Ok(())));
    let second = body_of(&server.requests()[1]);
    assert_eq!(second["max_completion_tokens"], 100);
    assert!(second.get("max_tokens").is_none());
}

fn asked_for_json() -> ModelRequest {
    ModelRequest {
        format: Some(AnswerFormat {
            name: "facts",
            schema: json!({ "type": "object" }),
        }),
        temperature: Some(0.0),
        ..asked("go")
    }
}

#[tokio::test]
async fn a_form_and_a_temperature_that_a_request_asks_for_are_sent() {
    let server = Server::start([yes()]).await;
    let model = model_with(&server, |o| o.temperature = Some(0.5));
    let told: Vec<_> = model
        .answer(asked_for_json())
        .await
        .unwrap()
        .collect()
        .await;
    assert_eq!(told.len(), 2);
    let body = body_of(&server.requests()[0]);
    assert_eq!(body["temperature"], 0.0);
    assert_eq!(
        body["response_format"],
        json!({
            "type": "json_schema",
            "json_schema": { "name": "facts", "strict": true, "schema": { "type": "object" } },
        })
    );
}

#[tokio::test]
async fn a_server_that_knows_no_schema_is_asked_for_json_and_then_without() {
    let refusal = |what: &str| {
        answer(
            "400 Bad Request",
            &[],
            json!({ "error": { "message": what } }).to_string(),
        )
    };
    let server = Server::start([
        refusal("response_format type json_schema is not supported"),
        refusal("This model does not support response_format"),
        refusal("temperature does not support 0.0 with this model"),
        yes(),
    ])
    .await;
    let model = model_with(&server, |o| o.max_retries = 0);
    for _ in 0..2 {
        let told: Vec<_> = model
            .answer(asked_for_json())
            .await
            .unwrap()
            .collect()
            .await;
        assert_eq!(told.len(), 2);
    }
    let asked: Vec<(Value, bool)> = server
        .requests()
        .iter()
        .map(|r| {
            let body = body_of(r);
            (
                body["response_format"]["type"].clone(),
                body.get("temperature").is_some(),
            )
        })
        .collect();
    let schema: Value = "json_schema".into();
    let object: Value = "json_object".into();
    assert_eq!(
        asked,
        [
            (schema, true),
            (object, true),
            (Value::Null, true),
            (Value::Null, false),
            (Value::Null, false)
        ]
    );
}

#[tokio::test]
async fn a_server_that_goes_on_refusing_is_not_asked_for_ever() {
    let refusal = r#"{"error":{"message":"stream_options, max_completion_tokens"}}"#;
    let server = Server::start([answer("400 Bad Request", &[], refusal)]).await;
    let (_, result) = ask(&model(&server)).await;
    assert_eq!(result, Err(ModelError::Refused { status: 400 }));
    assert!(server.requests().len() <= 3);
}

#[tokio::test]
async fn other_refusals_are_final() {
    for status in [
        "400 Bad Request",
        "401 Unauthorized",
        "404 Not Found",
        "302 Found",
    ] {
        let server = Server::start([answer(status, &["location: /elsewhere"], "{}")]).await;
        let (_, result) = ask(&model(&server)).await;
        let status = status[..3].parse().unwrap();
        assert_eq!(result, Err(ModelError::Refused { status }));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let mut lost = answer("200 OK", &[], "");
    lost.clear();
    lost.push(Step::Reset);
    let server = Server::start([answer("503 Service Unavailable", &[], "busy"), lost, yes()]).await;
    assert_eq!(ask(&model(&server)).await, (said_yes(), Ok(())));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn tries_have_an_end() {
    for (status, error) in [
        (
            "500 Internal Server Error",
            ModelError::Unavailable("status 500".into()),
        ),
        (
            "429 Too Many Requests",
            ModelError::RateLimited { retry_after: None },
        ),
    ] {
        let server = Server::start([answer(status, &[], "")]).await;
        assert_eq!(ask(&model(&server)).await.1, Err(error));
        assert_eq!(server.requests().len(), 3);
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let server = Server::start([yes()]).await;
    let model = model(&server);
    drop(server);
    tokio::task::yield_now().await;
    assert_eq!(
        ask(&model).await.1,
        Err(ModelError::Unavailable("no connection".into()))
    );
}

#[tokio::test]
async fn the_wait_that_a_server_asks_for_is_kept() {
    let busy = answer("429 Too Many Requests", &["retry-after: 1"], "");
    let server = Server::start([busy, yes()]).await;
    let began = Instant::now();
    assert_eq!(ask(&model(&server)).await, (said_yes(), Ok(())));
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_wait_longer_than_a_person_would_is_reported_at_once() {
    let busy = answer("429 Too Many Requests", &["retry-after: 3600"], "");
    let server = Server::start([busy, yes()]).await;
    let began = Instant::now();
    let retry_after = Some(Duration::from_hours(1));
    assert_eq!(
        ask(&model(&server)).await.1,
        Err(ModelError::RateLimited { retry_after })
    );
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn nothing_is_tried_again_once_something_was_told() {
    let mut steps = answer(
        "200 OK",
        &["transfer-encoding: chunked"],
        format!("{:x}\r\n{WORD}\r\n", WORD.len()),
    );
    steps.push(Step::Pause(Duration::from_millis(30)));
    steps.push(Step::Reset);
    let server = Server::start([steps, yes()]).await;
    let (told, result) = ask(&model(&server)).await;
    assert_eq!(told, [ModelEvent::Text("yes".into())]);
    assert_eq!(result, Err(ModelError::Truncated));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn silence_before_the_headers_before_the_first_chunk_and_between_chunks_has_a_limit() {
    let short = Duration::from_millis(300);
    let no_headers = vec![Step::UntilHangUp];
    let mut no_chunk = events("");
    no_chunk.push(Step::UntilHangUp);
    let mut no_second = events(WORD);
    no_second.push(Step::UntilHangUp);
    let mut only_comments = events(WORD);
    for _ in 0..100 {
        only_comments.push(Step::Pause(Duration::from_millis(20)));
        only_comments.push(Step::Bytes(b": still here\n\n".to_vec()));
    }
    for (steps, told_before) in [
        (no_headers, 0),
        (no_chunk, 0),
        (no_second, 1),
        (only_comments, 1),
    ] {
        let server = Server::start([steps]).await;
        let model = model_with(&server, |o| {
            o.first_timeout = short;
            o.idle_timeout = short;
        });
        let (told, result) = ask(&model).await;
        assert_eq!(told.len(), told_before);
        assert_eq!(result, Err(ModelError::Silent(short)));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn the_whole_answer_has_a_limit_too() {
    let mut steps = events("");
    for _ in 0..100 {
        steps.push(Step::Pause(Duration::from_millis(20)));
        steps.push(Step::Bytes(WORD.as_bytes().to_vec()));
    }
    let server = Server::start([steps]).await;
    let whole = Duration::from_millis(600);
    let (told, result) = ask(&model_with(&server, |o| o.total_timeout = whole)).await;
    assert!(told.len() > 1);
    assert_eq!(result, Err(ModelError::Silent(whole)));
}

#[tokio::test]
async fn an_answer_is_whole_when_only_its_usage_never_comes() {
    let mut steps = events(format!("{WORD}{STOP}"));
    steps.push(Step::UntilHangUp);
    let server = Server::start([steps]).await;
    let began = Instant::now();
    assert_eq!(ask(&model(&server)).await, (said_yes(), Ok(())));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn an_answer_over_its_bound_breaks_the_protocol() {
    let server = Server::start([events(WORD.repeat(1_000))]).await;
    let (_, result) = ask(&model_with(&server, |o| o.max_answer_bytes = 10_000)).await;
    assert_eq!(
        result,
        Err(ModelError::Protocol("the answer is too long".into()))
    );
}

#[tokio::test]
async fn neither_key_nor_prompt_is_in_any_error_debug_or_log() {
    let log = Arc::new(std::sync::Mutex::new(Vec::new()));
    let writer = Arc::clone(&log);
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || Sink(Arc::clone(&writer)))
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let echo = format!(
        r#"{{"error":{{"message":"the tide is high {KEY}","code":"{KEY}","type":"{KEY}"}}}}"#
    );
    let in_stream = events(format!("data: {echo}\n\n"));
    for steps in [
        answer("400 Bad Request", &[], &echo),
        answer("500 Internal Server Error", &[], &echo),
        in_stream,
    ] {
        let server = Server::start([steps]).await;
        let model = model(&server);
        let error = ask(&model).await.1.unwrap_err();
        let shown = format!("{error} {error:?} {model:?} {:?}", model.client.options());
        assert!(
            !shown.contains("s3cret") && !shown.contains("tide is"),
            "{shown}"
        );
    }
    let log = String::from_utf8(log.lock().unwrap().clone()).unwrap();
    let ours: String = log
        .lines()
        .filter(|line| line.contains("tidemark"))
        .collect();
    assert!(ours.contains("asking the model again"), "{ours}");
    assert!(!log.contains("s3cret"), "{log}");
    assert!(!ours.contains("tide is"), "{ours}");
}

struct Sink(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_key_that_no_header_can_hold_is_refused_at_once_and_blank_is_none() {
    let mut options = OpenAiOptions::new("http://a/v1", "m");
    options.api_key = ApiKey::new("two\nlines");
    assert!(matches!(OpenAiModel::new(options), Err(SetupError::ApiKey)));
    assert_eq!(ApiKey::new("  "), None);
    assert_eq!(ApiKey::new(" k\n"), ApiKey::new("k"));
}
