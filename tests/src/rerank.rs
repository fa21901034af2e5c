//! A scripted reranker: a `/rerank` in this process, to which a text answers a question when it holds what the test says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// How the server answers.
#[derive(Clone, Debug)]
pub enum Answering {
    /// As Jina, Cohere and vLLM do: texts that hold this score 0.98, others 0.02.
    Documents(String),
    /// As text-embeddings-inference does: the same as log-odds.
    Texts(String),
    /// With this status.
    Status(u16),
    /// With this body, whatever was asked.
    Body(String),
    /// Not for so long.
    Late(Duration),
}

#[derive(Debug)]
struct Shared {
    answering: Mutex<Answering>,
    requests: Mutex<Vec<Value>>,
    authorizations: Mutex<Vec<String>>,
}

/// A running scripted reranker; it stops when dropped.
#[derive(Debug)]
pub struct Reranker {
    url: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl Reranker {
    /// Starts on a free port of the loopback address.
    pub async fn start(answering: Answering) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            answering: Mutex::new(answering),
            requests: Mutex::default(),
            authorizations: Mutex::default(),
        });
        let router = Router::new()
            .route("/rerank", post(rerank))
            .with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the scripted reranker serves");
        });
        Self {
            url: format!("http://{address}"),
            shared,
            serving,
        }
    }

    /// For `TIDEMARK_RERANKER__URL`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Answers so from now on.
    pub fn answer(&self, answering: Answering) {
        *self.shared.answering.lock().unwrap() = answering;
    }

    /// The bodies of all requests so far, oldest first.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The `authorization` headers of all requests so far that had one.
    pub fn authorizations(&self) -> Vec<String> {
        self.shared.authorizations.lock().unwrap().clone()
    }
}

impl Drop for Reranker {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn rerank(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    shared.requests.lock().unwrap().push(body.clone());
    if let Some(header) = headers.get(header::AUTHORIZATION) {
        let header = header.to_str().expect("text").to_owned();
        shared.authorizations.lock().unwrap().push(header);
    }
    let answering = shared.answering.lock().unwrap().clone();
    match answering {
        Answering::Documents(part) => {
            Json(json!({ "results": judged(&body["documents"], &part, "relevance_score", [0.02, 0.98]) }))
                .into_response()
        }
        Answering::Texts(part) => {
            Json(judged(&body["texts"], &part, "score", [-4.0, 4.0])).into_response()
        }
        Answering::Status(status) => StatusCode::from_u16(status).expect("a status").into_response(),
        Answering::Body(body) => body.into_response(),
        Answering::Late(delay) => {
            tokio::time::sleep(delay).await;
            StatusCode::OK.into_response()
        }
    }
}

/// What answers better comes first, as servers have it.
fn judged(texts: &Value, part: &str, name: &str, [no, yes]: [f64; 2]) -> Value {
    let texts = texts.as_array().expect("texts");
    let (good, bad): (Vec<_>, Vec<_>) = (texts.iter().enumerate())
        .partition(|(_, text)| text.as_str().expect("text").contains(part));
    let good = good
        .iter()
        .map(|(index, _)| json!({ "index": index, name: yes }));
    let bad = bad
        .iter()
        .map(|(index, _)| json!({ "index": index, name: no }));
    good.chain(bad).collect()
}
