#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use tracing::subscriber::with_default;
use tracing::{Instrument, info, info_span};

use super::*;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn options(otlp_endpoint: Option<String>) -> TelemetryOptions {
    TelemetryOptions {
        log_filter: "info".to_owned(),
        log_format: LogFormat::Json,
        otlp_endpoint,
        service_name: "tidemark-test".to_owned(),
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

type Exports = Mutex<Vec<(String, ExportTraceServiceRequest)>>;

/// A collector on a thread of its own; gives the path and the content of each export.
fn collector() -> (String, Arc<Exports>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let exports = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&exports);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            collect(connection.unwrap(), &kept);
        }
    });
    (endpoint, exports)
}

fn collect(mut connection: TcpStream, kept: &Exports) {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = connection.read(&mut piece).unwrap();
        bytes.extend_from_slice(&piece[..count]);
        let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let length: usize = head
            .lines()
            .find_map(|l| {
                l.to_ascii_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse()
                    .ok()
            })
            .unwrap();
        if bytes.len() < end + 4 + length {
            continue;
        }
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let export = ExportTraceServiceRequest::decode(&bytes[end + 4..end + 4 + length]).unwrap();
        kept.lock().unwrap().push((path, export));
        break;
    }
    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    connection.write_all(answer).unwrap();
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    digits.concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_of_one_request_arrive_under_the_trace_that_the_caller_began() {
    let (endpoint, exports) = collector();
    let (subscriber, guard) = build(&options(Some(endpoint)), Lines::default).unwrap();
    let subscriber = tracing::Dispatch::new(subscriber);
    let root = tracing::dispatcher::with_default(&subscriber, || info_span!("turn"));
    assert!(trace::adopt(&root, PARENT));
    tracing::dispatcher::with_default(&subscriber, || {
        let _turn = root.enter();
        assert_eq!(trace::current_trace_id().as_deref(), Some(TRACE));
        assert!(
            trace::current_traceparent()
                .unwrap()
                .starts_with(&format!("00-{TRACE}-"))
        );
        info_span!("model").in_scope(|| info!("asking"));
        tracing::info_span!(target: "hyper", "somebody elses").in_scope(|| ());
        tracing::debug_span!("too fine").in_scope(|| ());
    });
    drop((root, subscriber));
    drop(guard); // inside the runtime, as at the end of the process

    let exports = exports.lock().unwrap();
    let mut spans = Vec::new();
    for (path, export) in exports.iter() {
        assert_eq!(path, "/v1/traces");
        for resource in &export.resource_spans {
            assert!(format!("{:?}", resource.resource).contains("tidemark-test"));
            spans.extend(resource.scope_spans.iter().flat_map(|scope| &scope.spans));
        }
    }
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["model", "turn"]);
    for span in &spans {
        assert_eq!(hex(&span.trace_id), TRACE);
    }
    assert_eq!(hex(&spans[1].parent_span_id), "b7ad6b7169203331");
    assert_eq!(spans[0].parent_span_id, spans[1].span_id);
}

#[tokio::test]
async fn a_collector_that_is_not_there_does_not_hold_up_the_end() {
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let endpoint = Some(format!("http://{nobody}/"));
    let (subscriber, guard) = build(&options(endpoint), Lines::default).unwrap();
    async { info!("working") }
        .instrument(with_default(subscriber, || info_span!("turn")))
        .await;
    let began = std::time::Instant::now();
    drop(guard);
    assert!(began.elapsed() < FLUSH_TIME + Duration::from_secs(2));
}

#[test]
fn without_a_collector_there_are_trace_ids_all_the_same() {
    let (subscriber, _guard) = build(&options(None), Lines::default).unwrap();
    with_default(subscriber, || {
        assert_eq!(trace::current_trace_id(), None);
        let own = info_span!("turn");
        let id = trace::trace_id(&own).unwrap();
        assert_eq!(id.len(), 32);
        own.in_scope(|| assert_eq!(trace::current_trace_id(), Some(id.clone())));
        let given = info_span!("turn");
        assert!(trace::adopt(&given, PARENT));
        given.in_scope(|| assert_eq!(trace::current_trace_id().as_deref(), Some(TRACE)));
    });
}

#[test]
fn what_is_no_traceparent_is_not_adopted() {
    let (subscriber, _guard) = build(&options(None), Lines::default).unwrap();
    with_default(subscriber, || {
        for text in [
            "",
            "nonsense",
            "00-0-0-00",
            &PARENT.replace(TRACE, &"0".repeat(32)),
        ] {
            let span = info_span!("turn");
            assert!(!trace::adopt(&span, text), "{text}");
            assert!(trace::trace_id(&span).is_some());
        }
    });
}

#[test]
fn log_lines_follow_the_filter_and_are_json_where_asked_for() {
    let lines = Lines::default();
    let written = lines.clone();
    let (subscriber, _guard) = build(&options(None), move || written.clone()).unwrap();
    with_default(subscriber, || {
        info!(answer = 42, "told");
        tracing::debug!("not told");
    });
    let text = lines.text();
    let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!(line["message"], "told");
    assert_eq!(line["answer"], 42);
}

#[test]
fn bad_settings_say_what_was_given_and_what_would_do() {
    let bad = TelemetryOptions {
        log_filter: "tidemark=loud".to_owned(),
        ..options(None)
    };
    let error = build(&bad, Lines::default).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("tidemark=loud"), "{error}");
    let error = "xml".parse::<LogFormat>().unwrap_err().to_string();
    assert!(error.contains("xml") && error.contains("json"), "{error}");
}

#[test]
fn the_path_of_the_endpoint_is_completed() {
    for endpoint in [
        "http://a:4318",
        "http://a:4318/",
        "http://a:4318/v1/traces",
        "http://a:4318/v1/traces/",
    ] {
        assert_eq!(traces_endpoint(endpoint), "http://a:4318/v1/traces");
    }
}
