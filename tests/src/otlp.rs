//! A scripted collector of traces: OTLP over HTTP with protobuf bodies.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A running collector; it stops when dropped.
#[derive(Debug)]
pub struct Collector {
    endpoint: String,
    received: Arc<Mutex<Vec<Span>>>,
    raw: Arc<Mutex<Vec<u8>>>,
    serving: JoinHandle<()>,
}

#[derive(Clone)]
struct Kept {
    spans: Arc<Mutex<Vec<Span>>>,
    raw: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    /// Starts on a free port of the loopback address.
    pub async fn start() -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let kept = Kept {
            spans: Arc::clone(&received),
            raw: Arc::clone(&raw),
        };
        let router = Router::new()
            .route("/v1/traces", post(accept))
            .with_state(kept);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let serving = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the collector serves");
        });
        Self {
            endpoint: format!("http://{address}"),
            received,
            raw,
            serving,
        }
    }

    /// The address for `TIDEMARK_TELEMETRY__OTLP_ENDPOINT`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Every span so far.
    pub fn spans(&self) -> Vec<Span> {
        self.received.lock().unwrap().clone()
    }

    /// The spans of one trace.
    pub fn spans_of(&self, trace_id: &[u8]) -> Vec<Span> {
        self.spans()
            .into_iter()
            .filter(|span| span.trace_id == trace_id)
            .collect()
    }

    /// Waits for a span that `wanted` accepts.
    pub async fn until_span(&self, what: &str, wanted: impl Fn(&Span) -> bool) -> Span {
        crate::wait::until(what, Duration::from_secs(30), || async {
            self.spans().into_iter().find(|span| wanted(span))
        })
        .await
    }

    /// Whether any export held these bytes, in whatever field.
    pub fn holds(&self, text: &str) -> bool {
        let raw = self.raw.lock().unwrap();
        raw.windows(text.len())
            .any(|window| window == text.as_bytes())
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn accept(
    State(kept): State<Kept>,
    body: Bytes,
) -> Result<([(&'static str, &'static str); 1], Vec<u8>), StatusCode> {
    let request =
        ExportTraceServiceRequest::decode(body.clone()).map_err(|_| StatusCode::BAD_REQUEST)?;
    kept.raw.lock().unwrap().extend_from_slice(&body);
    let spans = request
        .resource_spans
        .into_iter()
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans);
    kept.spans.lock().unwrap().extend(spans);
    Ok((
        [("content-type", "application/x-protobuf")],
        ExportTraceServiceResponse::default().encode_to_vec(),
    ))
}

/// A trace id as `traceparent` writes it.
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|half| char::from_digit(u32::from(half), 16).unwrap_or('?'))
        .collect()
}
