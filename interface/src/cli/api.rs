//! A client of the public HTTP API, for commands that use a server as anybody would.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde::Serialize;
use serde_json::{Value, json};
use tidemark_domain::ids::Timestamp;
use tidemark_infrastructure::model::tls;
use tokio::time::{Instant, sleep};

/// How long one request may take.
const REQUEST_LIMIT: Duration = Duration::from_mins(2);

/// The most messages of one import, and the most bytes of their texts: the body may have 1 MiB.
const MOST_MESSAGES: usize = 500;
const MOST_BYTES: usize = 256 * 1024;

/// Work whose time is later than this after it was enqueued was put off on purpose.
const PUT_OFF: TimeDelta = TimeDelta::seconds(1);

/// How often derived work is looked at while it is waited for.
const LOOK: Duration = Duration::from_millis(50);

/// The key for a server that asks for one. An option would show it to whoever lists the processes of the machine.
const KEY_VARIABLE: &str = "TIDEMARK_API_KEY";

/// A server cannot be called.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    /// What the variable holds fits in no header. It is not told, being secret.
    #[error("{KEY_VARIABLE} holds no API key: it has characters that no key has")]
    Key,
    /// No client could be made.
    #[error(transparent)]
    Http(#[from] reqwest::Error),
}

/// A request was not answered as it should be.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    /// No answer.
    #[error("{operation} got no answer")]
    Unanswered {
        /// Which request.
        operation: String,
        /// Why.
        source: reqwest::Error,
    },
    /// A refusal.
    #[error("{operation} was refused with {status}: {body}")]
    Refused {
        /// Which request.
        operation: String,
        /// The status of the answer.
        status: u16,
        /// The answer.
        body: String,
    },
    /// An answer of another form than the contract's.
    #[error("the answer to {operation} lacks {what}")]
    Malformed {
        /// Which request.
        operation: String,
        /// What is not there.
        what: &'static str,
    },
    /// A turn without an answer.
    #[error("the turn is {status}: {problem}")]
    Unfinished {
        /// Where it stands.
        status: String,
        /// Why, as the turn tells it.
        problem: String,
    },
    /// Derived work does not end.
    #[error("derived work is not done after {} s; the first of it: {first}", waited.as_secs())]
    Unsettled {
        /// How long it was waited for.
        waited: Duration,
        /// A job.
        first: String,
    },
}

/// A message of the past.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct PastMessage {
    /// `user` or `assistant`.
    pub(super) role: &'static str,
    /// What was said.
    pub(super) content: String,
    /// Who said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// When.
    pub(super) created_at: DateTime<Utc>,
}

/// A server.
#[derive(Clone, Debug)]
pub(super) struct Api {
    base: String,
    client: Client,
}

impl Api {
    /// The server of this process at `base`, such as `http://127.0.0.1:8080`, which asks for no key.
    pub(super) fn new(base: &str) -> Result<Self, ClientError> {
        Self::with_headers(base, HeaderMap::new())
    }

    /// Somebody's server at `base`, with the key of the environment, if there is one.
    pub(super) fn of_others(base: &str) -> Result<Self, ClientError> {
        let key = std::env::var_os(KEY_VARIABLE).filter(|key| !key.is_empty());
        let headers = key.map(|key| bearer(key.to_str())).transpose()?;
        Self::with_headers(base, headers.unwrap_or_default())
    }

    fn with_headers(base: &str, headers: HeaderMap) -> Result<Self, ClientError> {
        Ok(Self {
            base: base.trim_end_matches('/').to_owned(),
            client: tls::client_builder(base.starts_with("https://"))
                .timeout(REQUEST_LIMIT)
                .default_headers(headers)
                .build()?,
        })
    }

    /// Makes a session; gives its id.
    pub(super) async fn create_session(&self, user: &str, title: &str) -> Result<String, ApiError> {
        let made = self
            .post(user, "/v1/sessions", &json!({ "title": title }))
            .await?;
        text(&made, "id", "POST /v1/sessions")
    }

    /// Removes a session with what was learned from it.
    pub(super) async fn delete_session(&self, user: &str, id: &str) -> Result<(), ApiError> {
        let path = format!("/v1/sessions/{id}");
        self.call(Method::DELETE, user, &path, None).await?;
        Ok(())
    }

    /// Appends messages to a session, in as many calls as they need; gives their ids in their order.
    pub(super) async fn import(
        &self,
        user: &str,
        session: &str,
        messages: &[PastMessage],
    ) -> Result<Vec<String>, ApiError> {
        let path = format!("/v1/sessions/{session}/messages");
        let mut ids = Vec::with_capacity(messages.len());
        for part in parts(messages) {
            let stored = self.post(user, &path, &json!({ "messages": part })).await?;
            let items = stored["items"].as_array().map_or(&[][..], Vec::as_slice);
            if items.len() != part.len() {
                return Err(ApiError::Malformed {
                    operation: format!("POST {path}"),
                    what: "an item for each message",
                });
            }
            for item in items {
                ids.push(text(item, "id", "the import")?);
            }
        }
        Ok(ids)
    }

    /// Recalls.
    pub(super) async fn recall(&self, user: &str, query: &Value) -> Result<Value, ApiError> {
        self.post(user, "/v1/memories/recall", query).await
    }

    /// All memories of a user.
    pub(super) async fn memories(&self, user: &str) -> Result<Vec<Value>, ApiError> {
        self.all(user, "/v1/memories").await
    }

    /// Removes a user's sessions and memories.
    pub(super) async fn clear(&self, user: &str) -> Result<(), ApiError> {
        for (path, of) in [("/v1/sessions", "session"), ("/v1/memories", "memory")] {
            for item in self.all(user, path).await? {
                let id = text(&item, "id", of)?;
                let one = format!("{path}/{id}");
                match self.call(Method::DELETE, user, &one, None).await {
                    // It went with another.
                    Err(ApiError::Refused { status: 404, .. }) => {}
                    other => drop(other?),
                }
            }
        }
        Ok(())
    }

    /// Every item of a list.
    async fn all(&self, user: &str, list: &str) -> Result<Vec<Value>, ApiError> {
        let mut items = Vec::new();
        let mut path = format!("{list}?limit=100");
        loop {
            let page = self.get(user, &path).await?;
            items.extend(page["items"].as_array().into_iter().flatten().cloned());
            let Some(cursor) = page["next_cursor"].as_str() else {
                return Ok(items);
            };
            path = format!("{list}?limit=100&cursor={cursor}");
        }
    }

    /// Waits until the server has no derived work that could be done now. Work that was put off on purpose is not waited for, work that
    /// waits to be tried again is.
    pub(super) async fn settle(&self, limit: Duration) -> Result<(), ApiError> {
        let begun = Instant::now();
        while let Some(job) = self.due_job().await? {
            if begun.elapsed() > limit {
                return Err(ApiError::Unsettled {
                    waited: limit,
                    first: job.to_string(),
                });
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Work that was given up, the newest first.
    pub(super) async fn failed_jobs(&self) -> Result<Vec<Value>, ApiError> {
        let page = self
            .get("default", "/v1/jobs?state=failed&limit=100")
            .await?;
        Ok(page["items"].as_array().cloned().unwrap_or_default())
    }

    /// In one list, whatever the state: work that is taken up between two looks by state would be in neither.
    async fn due_job(&self) -> Result<Option<Value>, ApiError> {
        let jobs = self.all("default", "/v1/jobs").await?;
        Ok(jobs.into_iter().find(is_due))
    }

    /// GET; gives the JSON of the answer.
    pub(super) async fn get(&self, user: &str, path: &str) -> Result<Value, ApiError> {
        self.call(Method::GET, user, path, None).await
    }

    /// POST of JSON; gives the JSON of the answer.
    pub(super) async fn post(
        &self,
        user: &str,
        path: &str,
        body: &Value,
    ) -> Result<Value, ApiError> {
        self.call(Method::POST, user, path, Some(body)).await
    }

    /// POST of what is to be finished within `seconds`; gives the JSON of the answer.
    pub(super) async fn post_waiting(
        &self,
        user: &str,
        path: &str,
        body: &Value,
        seconds: u64,
    ) -> Result<Value, ApiError> {
        let request = self
            .request(Method::POST, user, path)
            .header("prefer", format!("wait={seconds}"))
            .json(body);
        self.send(format!("POST {path}"), request).await
    }

    /// Any request; gives the JSON of the answer, null when it has no body.
    pub(super) async fn call(
        &self,
        method: Method,
        user: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ApiError> {
        let operation = format!("{method} {path}");
        let mut request = self.request(method, user, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.send(operation, request).await
    }

    fn request(&self, method: Method, user: &str, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.base))
            .header("x-tidemark-user", user)
    }

    async fn send(&self, operation: String, request: RequestBuilder) -> Result<Value, ApiError> {
        let unanswered = |source| ApiError::Unanswered {
            operation: operation.clone(),
            source,
        };
        let response: Response = request.send().await.map_err(unanswered)?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(unanswered)?;
        if !status.is_success() {
            return Err(ApiError::Refused {
                operation,
                status: status.as_u16(),
                body: String::from_utf8_lossy(&bytes).into_owned(),
            });
        }
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|_| ApiError::Malformed {
            operation,
            what: "JSON",
        })
    }
}

/// The header that shows a key, kept out of what is printed of a client.
fn bearer(key: Option<&str>) -> Result<HeaderMap, ClientError> {
    let shown = key.and_then(|key| HeaderValue::from_str(&format!("Bearer {}", key.trim())).ok());
    let mut shown = shown.ok_or(ClientError::Key)?;
    shown.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, shown)]))
}

/// The text at `field` of an answer.
pub(super) fn text(
    value: &Value,
    field: &'static str,
    operation: &str,
) -> Result<String, ApiError> {
    value[field]
        .as_str()
        .map(ToOwned::to_owned)
        .ok_or_else(|| ApiError::Malformed {
            operation: operation.to_owned(),
            what: field,
        })
}

/// Running, or waiting for a worker. Work that never began and whose time was set to come later was put off on purpose.
fn is_due(job: &Value) -> bool {
    if job["state"] != "pending" {
        return job["state"] == "running";
    }
    let time = |field: &str| job[field].as_str()?.parse::<Timestamp>().ok();
    let put_off = match (time("created_at"), time("run_at")) {
        (Some(made), Some(due)) => due > made + PUT_OFF,
        _ => false,
    };
    !(put_off && job["attempts"] == 0)
}

fn parts(messages: &[PastMessage]) -> Vec<&[PastMessage]> {
    let mut out = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, message) in messages.iter().enumerate() {
        let full = at - start == MOST_MESSAGES || bytes + message.content.len() > MOST_BYTES;
        if full && at > start {
            out.push(&messages[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += message.content.len();
    }
    if start < messages.len() {
        out.push(&messages[start..]);
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn message(length: usize) -> PastMessage {
        PastMessage {
            role: "user",
            content: "x".repeat(length),
            name: None,
            created_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn an_import_is_cut_into_calls_that_the_server_takes_and_loses_nothing() {
        for (lengths, calls) in [
            (vec![], vec![]),
            (vec![1; 500], vec![500]),
            (vec![1; 1_001], vec![500, 500, 1]),
            (vec![200_000, 200_000, 10, 300_000, 5], vec![1, 2, 1, 1]),
        ] {
            let messages: Vec<_> = lengths.into_iter().map(message).collect();
            let made = parts(&messages);
            assert_eq!(made.iter().map(|p| p.len()).collect::<Vec<_>>(), calls);
            assert_eq!(made.concat(), messages);
        }
    }

    #[test]
    fn a_key_is_printed_nowhere() {
        let headers = bearer(Some("tmk_secret\n")).unwrap();
        assert_eq!(headers[AUTHORIZATION], "Bearer tmk_secret");
        let api = Api::with_headers("http://127.0.0.1:1", headers).unwrap();
        assert!(!format!("{api:?}").contains("secret"));
        for wrong in [Some("tmk_se\ncret"), None] {
            let refused = bearer(wrong).unwrap_err();
            assert!(!format!("{refused} {refused:?}").contains("cret"));
        }
    }

    #[test]
    fn work_that_was_put_off_is_not_waited_for_but_retries_are() {
        let job = |state, attempts, run_at| json!({ "state": state, "attempts": attempts, "created_at": "2026-01-01T00:00:00Z", "run_at": run_at });
        let (now, later) = ("2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z");
        assert!(is_due(&job("pending", 0, now)) && is_due(&job("running", 1, later)));
        assert!(is_due(&job("pending", 1, later)));
        assert!(!is_due(&job("pending", 0, later)) && !is_due(&job("failed", 8, now)));
    }
}
