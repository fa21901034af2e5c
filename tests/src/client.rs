//! Calls of the product's API, as a small SDK would make them. Nothing here judges an answer: [`Answer`]'s methods do.

use std::sync::Once;
use std::time::{Duration, Instant};

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::events::Reading;
use crate::sse::{EventStream, Frame};

/// How long one turn may take in a test before it counts as hanging.
pub const TURN_LIMIT: Duration = Duration::from_secs(60);

/// One user's access to a server.
#[derive(Debug, Clone)]
pub struct Client {
    base: String,
    http: reqwest::Client,
    user: Option<String>,
}

/// An answer, read to its end.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// The body as text.
    pub text: String,
    /// The body as JSON; null when it is none.
    pub body: Value,
}

impl Answer {
    async fn of(response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let bytes = response.bytes().await.expect("a body");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or_default();
        Self {
            status,
            headers,
            text,
            body,
        }
    }

    /// Fails the test unless the status is `expected`; gives the body.
    #[track_caller]
    pub fn expect(self, expected: u16) -> Value {
        assert_eq!(self.status, expected, "{}", self.text);
        self.body
    }

    /// The text of a header, or empty.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// Fails the test unless this is a whole problem document of this status; gives its code.
    #[track_caller]
    pub fn expect_problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{}",
            self.text
        );
        assert_eq!(self.body["status"], status, "{}", self.text);
        for field in ["type", "title", "detail", "code", "request_id"] {
            let text = self.body[field]
                .as_str()
                .unwrap_or_else(|| panic!("no {field} in {}", self.text));
            assert!(!text.is_empty(), "an empty {field} in {}", self.text);
        }
        assert_eq!(
            self.body["request_id"],
            self.header("x-request-id"),
            "{}",
            self.text
        );
        let code = self.body["code"].as_str().unwrap_or_default();
        assert!(
            code.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
            "code {code:?} is not snake_case"
        );
        code.to_owned()
    }

    /// Like [`Self::expect_problem`], and one of `errors` names `field` (or a part of it, as in `messages[0].role`).
    #[track_caller]
    pub fn expect_problem_with(&self, status: u16, field: &str) -> String {
        let code = self.expect_problem(status);
        let errors = self.body["errors"].as_array().cloned().unwrap_or_default();
        let named = errors.iter().any(|error| {
            error["field"]
                .as_str()
                .is_some_and(|name| name.contains(field))
        });
        assert!(named, "no error names {field:?}: {}", self.text);
        assert!(
            errors.iter().all(|error| error["message"].is_string()),
            "{}",
            self.text
        );
        code
    }
}

impl Client {
    /// A client of the server at `base`, as the default user.
    pub fn new(base: &str) -> Self {
        static PROVIDER: Once = Once::new();
        // reqwest asks for a provider even where only plain HTTP is spoken.
        PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let http = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(Duration::from_secs(10))
            .build()
            .expect("a client");
        Self {
            base: base.to_owned(),
            http,
            user: None,
        }
    }

    /// The same server as another user.
    #[must_use]
    pub fn as_user(&self, user: &str) -> Self {
        Self {
            user: Some(user.to_owned()),
            ..self.clone()
        }
    }

    /// A request that a test goes on to shape.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.user {
            Some(user) => request.header("x-tidemark-user", user),
            None => request,
        }
    }

    /// Sends a shaped request.
    pub async fn send(&self, request: RequestBuilder) -> Answer {
        Answer::of(request.timeout(TURN_LIMIT).send().await.expect("an answer")).await
    }

    /// As [`Self::send`], where a server that dies is no failure.
    pub async fn try_send(&self, request: RequestBuilder) -> Option<Answer> {
        let response = request.timeout(TURN_LIMIT).send().await.ok()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.ok()?;
        let body = serde_json::from_str(&text).unwrap_or_default();
        Some(Answer {
            status,
            headers,
            text,
            body,
        })
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    /// POST of JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// POST of JSON with an `Idempotency-Key`.
    pub async fn post_once(&self, key: &str, path: &str, body: &Value) -> Answer {
        self.send(
            self.request(Method::POST, path)
                .header("idempotency-key", key)
                .json(body),
        )
        .await
    }

    /// POST of bytes that claim to be JSON.
    pub async fn post_bytes(&self, path: &str, body: impl Into<Vec<u8>>) -> Answer {
        let request = self
            .request(Method::POST, path)
            .header("content-type", "application/json");
        self.send(request.body(body.into())).await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }

    /// A new session's id.
    pub async fn create_session(&self) -> String {
        id_of(&self.post("/v1/sessions", &json!({})).await.expect(201))
    }

    /// Posts a turn and gives its id.
    pub async fn post_turn(&self, session: &str, message: &str) -> String {
        self.post_turn_with(session, json!({"message": message}))
            .await
    }

    /// Posts a turn with options and gives its id.
    pub async fn post_turn_with(&self, session: &str, body: Value) -> String {
        let accepted = self.post(&turns_of(session), &body).await.expect(202);
        accepted["turn_id"].as_str().expect("a turn id").to_owned()
    }

    /// Posts a turn and waits for its end; gives the finished turn.
    pub async fn ask(&self, session: &str, message: &str) -> Value {
        self.ask_with(session, json!({"message": message})).await
    }

    /// Posts a turn with options and waits for its end.
    pub async fn ask_with(&self, session: &str, body: Value) -> Value {
        let turn = self.post_turn_with(session, body).await;
        self.finished(&turn).await
    }

    /// A turn as it is now.
    pub async fn turn(&self, turn: &str) -> Value {
        self.get(&format!("/v1/turns/{turn}")).await.expect(200)
    }

    /// The turn once it is over.
    pub async fn finished(&self, turn: &str) -> Value {
        crate::wait::until("a turn to end", TURN_LIMIT, || async {
            let now = self.turn(turn).await;
            is_over(&now).then_some(now)
        })
        .await
    }

    /// Waits until a turn has this status.
    pub async fn until_status(&self, turn: &str, status: &str) -> Value {
        crate::wait::until(&format!("a turn to be {status}"), TURN_LIMIT, || async {
            let now = self.turn(turn).await;
            (now["status"] == status).then_some(now)
        })
        .await
    }

    /// Asks for a turn's events; the answer may be a refusal.
    pub async fn request_events(
        &self,
        turn: &str,
        last_event_id: Option<&str>,
    ) -> reqwest::Response {
        let mut request = self
            .request(Method::GET, &events_of(turn))
            .header("accept", "text/event-stream");
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        request.send().await.expect("an answer")
    }

    /// An open stream at `path`; fails the test at any status but 200.
    pub async fn open(&self, path: &str) -> EventStream {
        self.open_after(path, None).await
    }

    /// An open stream at `path` from a cursor on.
    pub async fn open_after(&self, path: &str, last_event_id: Option<&str>) -> EventStream {
        let asked_at = Instant::now();
        let mut request = self
            .request(Method::GET, path)
            .header("accept", "text/event-stream");
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        if status != 200 {
            panic!(
                "{path} answered {status}: {}",
                response.text().await.unwrap_or_default()
            );
        }
        EventStream::new(response, asked_at)
    }

    /// Reads the stream at `path` to its end.
    pub async fn read_to_end(&self, path: &str) -> Reading {
        self.read_after(path, None).await
    }

    /// Reads the stream at `path` from a cursor to its end.
    pub async fn read_after(&self, path: &str, last_event_id: Option<&str>) -> Reading {
        let mut stream = self.open_after(path, last_event_id).await;
        let frames = stream.collect_until(TURN_LIMIT, |_| false).await;
        assert_eq!(stream.ended, Some(Ok(())), "the stream was cut");
        Reading::of(&frames)
    }

    /// The whole log of a turn.
    pub async fn read_turn(&self, turn: &str) -> Reading {
        self.read_to_end(&events_of(turn)).await
    }

    /// The whole history of a session, over all its pages.
    pub async fn history(&self, session: &str) -> Vec<Value> {
        self.all(&messages_of(session)).await
    }

    /// Every item of a list, over all its pages.
    pub async fn all(&self, path: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut cursor = None::<String>;
        let mark = if path.contains('?') { '&' } else { '?' };
        loop {
            let after = cursor
                .map(|cursor| format!("&cursor={cursor}"))
                .unwrap_or_default();
            let page = self
                .get(&format!("{path}{mark}limit=100{after}"))
                .await
                .expect(200);
            items.extend(page["items"].as_array().expect("items").iter().cloned());
            cursor = page["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                return items;
            }
        }
    }

    /// The memories that `query` recalls.
    pub async fn recall(&self, query: &str) -> Vec<Value> {
        let found = self
            .post("/v1/memories/recall", &json!({"query": query}))
            .await
            .expect(200);
        found["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|item| item["memory"].clone())
            .collect()
    }

    /// Waits until no derived job is pending or running.
    pub async fn until_no_jobs(&self) {
        crate::wait::until("the derived jobs to be done", TURN_LIMIT, || async {
            let pending = self.all("/v1/jobs?state=pending").await;
            let running = self.all("/v1/jobs?state=running").await;
            (pending.is_empty() && running.is_empty()).then_some(())
        })
        .await;
    }
}

/// The `id` of a resource.
#[track_caller]
pub fn id_of(resource: &Value) -> String {
    resource["id"]
        .as_str()
        .unwrap_or_else(|| panic!("no id in {resource}"))
        .to_owned()
}

/// Whether a turn's status is a terminal one.
pub fn is_over(turn: &Value) -> bool {
    matches!(
        turn["status"].as_str(),
        Some("completed" | "failed" | "cancelled" | "interrupted")
    )
}

/// Path of a session's turns.
pub fn turns_of(session: &str) -> String {
    format!("/v1/sessions/{session}/turns")
}

/// Path of a session's messages.
pub fn messages_of(session: &str) -> String {
    format!("/v1/sessions/{session}/messages")
}

/// Path of a turn's events.
pub fn events_of(turn: &str) -> String {
    format!("/v1/turns/{turn}/events")
}

/// Path that starts a turn and streams it.
pub fn chat_stream(query: &str, session: Option<&str>, request_id: Option<&str>) -> String {
    let encode = |text: &str| -> String {
        text.bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect()
    };
    let mut path = format!("/v1/chat/stream?query={}", encode(query));
    for (name, value) in [("session_id", session), ("request_id", request_id)] {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", encode(value)));
        }
    }
    path
}

/// Whether a frame is the event of this type.
pub fn is_event(frame: &Frame, kind: &str) -> bool {
    matches!(frame, Frame::Event(event) if event.kind == kind)
}
