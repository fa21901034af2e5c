//! One turn is one trace, and neither traces nor logs hold what was said.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use reqwest::Method;
use serde_json::json;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::model::Model;
use tidemark_tests::otlp::{Collector, hex};
use tidemark_tests::paths::turns_of;
use tidemark_tests::server::{Server, Setup};

async fn traced() -> (Server, Model, Collector, Client) {
    let (model, collector) = (Model::start().await, Collector::start().await);
    let setup = Setup::on(Store::Sqlite)
        .model(&model)
        .with("TIDEMARK_TELEMETRY__OTLP_ENDPOINT", collector.endpoint());
    let server = setup.with("TIDEMARK_LOG", "debug").start().await;
    let client = server.client();
    (server, model, collector, client)
}

fn says(span: &Span, text: &str) -> bool {
    span.attributes.iter().any(|attribute| {
        let value = attribute
            .value
            .as_ref()
            .and_then(|value| value.value.as_ref());
        matches!(value, Some(AnyValue::StringValue(found)) if found == text)
    })
}

/// The spans that name the turn, once the exporter has gone quiet.
async fn spans_naming(collector: &Collector, turn: &str) -> Vec<Span> {
    collector
        .until_span("a span that names the turn", |span| says(span, turn))
        .await;
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = collector.spans().len();
        if now == before {
            return collector
                .spans()
                .into_iter()
                .filter(|span| says(span, turn))
                .collect();
        }
        before = now;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_continues_the_trace_of_its_request() {
    let (_server, model, collector, client) = traced().await;
    let session = client.create_session().await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let request = client
        .request(Method::POST, &turns_of(&session))
        .header("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"));
    let body = json!({"message": "Trace me [[tool=search_memory]]"});
    let accepted = client.send(request.json(&body)).await.expect(202);
    let turn = accepted["turn_id"].as_str().unwrap();
    client.read_turn(turn).await.assert_complete();
    let naming = spans_naming(&collector, turn).await;
    let working: Vec<&Span> = naming
        .iter()
        .filter(|span| hex(&span.trace_id) == trace)
        .collect();
    assert!(
        !working.is_empty(),
        "the turn's spans are in the caller's trace: {naming:#?}"
    );
    let all = collector.spans_of(&working[0].trace_id);
    let names: BTreeSet<&str> = all.iter().map(|span| span.name.as_str()).collect();
    println!("spans of the trace: {names:?}");
    assert!(
        all.len() >= 4,
        "context, inference, response and the request: {names:?}"
    );
    let ids: BTreeSet<String> = all.iter().map(|span| hex(&span.span_id)).collect();
    for span in &all {
        let parent = hex(&span.parent_span_id);
        assert!(
            ids.contains(&parent) || parent == "00f067aa0ba902b7",
            "{} hangs in the air",
            span.name
        );
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
    }
    model.assert_every_transcript_was_valid();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_turns_are_two_traces() {
    let (_server, _model, collector, client) = traced().await;
    let session = client.create_session().await;
    let mut traces = Vec::new();
    for message in ["One", "Two"] {
        let turn = client.post_turn(&session, message).await;
        client.read_turn(&turn).await.assert_complete();
        let naming = spans_naming(&collector, &turn).await;
        let sizes = naming.iter().map(|span| {
            (
                collector.spans_of(&span.trace_id).len(),
                span.trace_id.clone(),
            )
        });
        traces.push(sizes.max().unwrap().1);
    }
    assert_ne!(traces[0], traces[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_said_is_in_traces_or_logs() {
    let (server, model, collector, client) = traced().await;
    let session = client.create_session().await;
    client
        .post(
            "/v1/memories",
            &json!({"content": "The old pangolin sleeps in the orangery at night."}),
        )
        .await
        .expect(201);
    let turn = client
        .post_turn(
            &session,
            "Where does the old pangolin sleep at night? [[text=Xylophone_zeppelin]]",
        )
        .await;
    client.read_turn(&turn).await.assert_complete();
    client
        .ask(&session, "A capybara fails [[tokens=3 cut_after=1]]")
        .await;
    client.recall("pangolin").await;
    client.until_no_jobs().await;
    spans_naming(&collector, &turn).await;
    assert!(
        model.prompt_about("pangolin").contains("orangery"),
        "the memory was in use"
    );
    for said in ["pangolin", "orangery", "Xylophone", "zeppelin", "capybara"] {
        assert!(!collector.holds(said), "{said:?} is in a trace");
        let log = server.log().lines();
        let line = log.iter().find(|line| line.contains(said));
        assert_eq!(line, None, "{said:?} is in the log");
    }
}
