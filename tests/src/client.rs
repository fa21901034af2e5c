//! Calls of the product's API, as a small SDK would make them. Nothing here judges an answer: [`Answer`] does.

use std::sync::Once;
use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::events::Reading;
use crate::paths::{events_of, id_of, is_over, messages_of, turns_of};
use crate::sse::EventStream;

/// How long one turn may take in a test before it counts as hanging.
pub const TURN_LIMIT: Duration = Duration::from_mins(1);

/// One user's access to a server.
#[derive(Debug, Clone)]
pub struct Client {
    base: String,
    http: reqwest::Client,
    user: Option<String>,
    key: Option<String>,
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
        Self::through(base, http)
    }

    /// A client of the server at `base` that speaks through `http`, as the default user.
    pub fn through(base: &str, http: reqwest::Client) -> Self {
        Self {
            base: base.to_owned(),
            http,
            user: None,
            key: None,
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

    /// The same server with an API key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self {
            key: Some(key.to_owned()),
            ..self.clone()
        }
    }

    /// The same client of another server.
    #[must_use]
    pub fn at(&self, base: &str) -> Self {
        Self {
            base: base.to_owned(),
            ..self.clone()
        }
    }

    /// A request that a test goes on to shape.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        let request = match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
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
        self.send_within(TURN_LIMIT, request).await
    }

    /// As [`Self::try_send`], with less patience: the whole answer has to come within `limit`.
    pub async fn send_within(&self, limit: Duration, request: RequestBuilder) -> Option<Answer> {
        let response = request.timeout(limit).send().await.ok()?;
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

    /// PATCH of JSON.
    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::PATCH, path).json(body))
            .await
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
        assert!(
            status == 200,
            "{path} answered {status}: {}",
            response.text().await.unwrap_or_default()
        );
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
            // One look: between two, a job may pass from one state to the other.
            let jobs = self.all("/v1/jobs").await;
            jobs.iter()
                .all(|job| job["state"] == "failed")
                .then_some(())
        })
        .await;
    }
}
