//! A scripted language model: an OpenAI-compatible server in this process that does what a message tells it to.
//!
//! It keeps every request, and judges every transcript it is given as a real model API would ([`crate::transcript`]).

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::directives::Behaviour;
use crate::model_reply;
use crate::transcript::{text_of, violations};

/// A running scripted model; it stops when dropped.
#[derive(Debug)]
pub struct Model {
    base_url: String,
    seen: Arc<Seen>,
    serving: JoinHandle<()>,
}

/// One request as it arrived.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The body.
    pub body: Value,
    /// The `traceparent` header, if any.
    pub traceparent: Option<String>,
    /// When it arrived.
    pub at: Instant,
}

impl ModelRequest {
    /// The transcript.
    pub fn messages(&self) -> Vec<Value> {
        self.body["messages"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }

    /// Text of the last user message.
    pub fn last_user(&self) -> String {
        self.messages()
            .iter()
            .rfind(|message| message["role"] == "user")
            .map(text_of)
            .unwrap_or_default()
    }

    /// The whole prompt as text: everything the model could read.
    pub fn prompt(&self) -> String {
        self.messages()
            .iter()
            .map(text_of)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// What the server has seen; shared with its handlers.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    requests: Mutex<Vec<ModelRequest>>,
    rules: Mutex<Vec<(String, Behaviour)>>,
    extractions: Mutex<Vec<ModelRequest>>,
    extraction_scripts: Mutex<Vec<(String, VecDeque<Behaviour>)>>,
    violations: Mutex<Vec<String>>,
    errors_given: Mutex<HashMap<String, usize>>,
    pub(crate) in_flight: AtomicUsize,
    pub(crate) gone: AtomicUsize,
}

impl Model {
    /// Starts on a free port of the loopback address.
    pub async fn start() -> Self {
        let seen = Arc::new(Seen::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/v1/models", get(list_models))
            .layer(DefaultBodyLimit::max(32 << 20))
            .with_state(Arc::clone(&seen));
        let serving = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the scripted model serves");
        });
        Self {
            base_url: format!("http://{address}/v1"),
            seen,
            serving,
        }
    }

    /// The base URL for `TIDEMARK_MODEL__BASE_URL`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Requests whose last user message contains `part` behave so, whatever directive they hold; the newest rule wins.
    pub fn rule(&self, part: &str, behaviour: Behaviour) {
        self.seen
            .rules
            .lock()
            .unwrap()
            .push((part.to_owned(), behaviour));
    }

    /// Requests to extract facts that hold `part` are answered so, one after the other, the last answer again and again; the newest script
    /// wins. Without a script nothing is found.
    pub fn extraction(&self, part: &str, answers: impl IntoIterator<Item = Behaviour>) {
        let mut scripts = self.seen.extraction_scripts.lock().unwrap();
        scripts.push((part.to_owned(), answers.into_iter().collect()));
    }

    /// Every request to extract facts so far, oldest first.
    pub fn extractions(&self) -> Vec<ModelRequest> {
        self.seen.extractions.lock().unwrap().clone()
    }

    /// Every other request so far, oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// The requests whose last user message contains `part`.
    pub fn requests_about(&self, part: &str) -> Vec<ModelRequest> {
        self.requests()
            .into_iter()
            .filter(|request| request.last_user().contains(part))
            .collect()
    }

    /// The prompt of the newest request about `part`; fails the test when there was none.
    pub fn prompt_about(&self, part: &str) -> String {
        let about = self.requests_about(part);
        about
            .last()
            .unwrap_or_else(|| panic!("the model was never asked about {part:?}"))
            .prompt()
    }

    /// Requests being answered now.
    pub fn in_flight(&self) -> usize {
        self.seen.in_flight.load(Ordering::SeqCst)
    }

    /// Answers whose reader left before their end.
    pub fn clients_gone(&self) -> usize {
        self.seen.gone.load(Ordering::SeqCst)
    }

    /// Fails the test if any request held a transcript that a model API refuses, or a directive that is unknown.
    pub fn assert_every_transcript_was_valid(&self) {
        let found = self.seen.violations.lock().unwrap();
        assert!(
            found.is_empty(),
            "invalid requests to the model:\n{}",
            found.join("\n")
        );
    }

    /// Waits until no request is being answered.
    pub async fn until_idle(&self) {
        crate::wait::until("the model to be idle", Duration::from_secs(20), || async {
            (self.in_flight() == 0).then_some(())
        })
        .await;
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Seen {
    /// What the newest script that fits says to a request to extract facts.
    fn extracted_by(&self, request: &ModelRequest) -> Behaviour {
        let prompt = request.prompt();
        let mut scripts = self.extraction_scripts.lock().unwrap();
        let script = scripts
            .iter_mut()
            .rev()
            .find(|(part, _)| prompt.contains(part.as_str()));
        let answers = script
            .map(|(_, answers)| answers)
            .filter(|answers| !answers.is_empty());
        match answers {
            Some(answers) if answers.len() > 1 => answers.pop_front().expect("an answer"),
            Some(answers) => answers[0].clone(),
            None => Behaviour {
                text: Some(r#"{"facts":[]}"#.to_owned()),
                ..Behaviour::default()
            },
        }
    }

    fn behaviour_for(&self, request: &ModelRequest) -> Result<Behaviour, String> {
        let asked = request.last_user();
        let rules = self.rules.lock().unwrap();
        match rules.iter().rev().find(|(part, _)| asked.contains(part)) {
            Some((_, behaviour)) => Ok(behaviour.clone()),
            None => Behaviour::of_message(&asked),
        }
    }

    /// Whether this request still gets the behaviour's error answer.
    fn gives_error(&self, request: &ModelRequest, behaviour: &Behaviour) -> bool {
        let mut given = self.errors_given.lock().unwrap();
        let count = given.entry(request.last_user()).or_default();
        *count += 1;
        behaviour.error_times.is_none_or(|times| *count <= times)
    }
}

async fn complete(State(seen): State<Arc<Seen>>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        seen.violations
            .lock()
            .unwrap()
            .push("a body that is no JSON".to_owned());
        return model_reply::error(400, None);
    };
    let traceparent = headers
        .get("traceparent")
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let request = ModelRequest {
        body,
        traceparent,
        at: Instant::now(),
    };
    let mut breaches = violations(&request.messages());
    if request.messages().is_empty() {
        breaches.push("no messages".to_owned());
    }
    if !breaches.is_empty() {
        let text = format!("{}\n  of {}", breaches.join("; "), request.body["messages"]);
        seen.violations.lock().unwrap().push(text);
    }
    let extracts = request.body["response_format"]["json_schema"]["name"] == "extracted_facts";
    let number = {
        let kept = if extracts {
            &seen.extractions
        } else {
            &seen.requests
        };
        let mut requests = kept.lock().unwrap();
        requests.push(request.clone());
        requests.len()
    };
    if extracts {
        let behaviour = seen.extracted_by(&request);
        return match behaviour.error_status {
            Some(status) => model_reply::error(status, behaviour.retry_after),
            None => model_reply::answer(&seen, number, &request.body, behaviour).await,
        };
    }
    let behaviour = match seen.behaviour_for(&request) {
        Ok(behaviour) => behaviour,
        Err(problem) => {
            seen.violations.lock().unwrap().push(problem);
            return model_reply::error(400, None);
        }
    };
    if let Some(status) = behaviour.error_status
        && seen.gives_error(&request, &behaviour)
    {
        return model_reply::error(status, behaviour.retry_after);
    }
    model_reply::answer(&seen, number, &request.body, behaviour).await
}

async fn list_models() -> axum::Json<Value> {
    axum::Json(
        json!({"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "tests"}]}),
    )
}
