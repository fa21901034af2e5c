//! What a server says when it refuses.

use std::time::Duration;

use reqwest::Response;
use tokio::time::timeout;

use super::key::ApiKey;
use super::openai::{UNSPECIFIED, code_in};

/// How much of a refusal is read, and for how long, to learn what is refused.
const MOST_BYTES: usize = 64 * 1024;
const MOST_TIME: Duration = Duration::from_secs(5);

/// The body, as far as it is worth reading.
pub(super) async fn text(mut response: Response) -> String {
    let mut bytes = Vec::new();
    let _ = timeout(MOST_TIME, async {
        while let Ok(Some(chunk)) = response.chunk().await {
            bytes.extend_from_slice(&chunk[..chunk.len().min(MOST_BYTES - bytes.len())]);
            if bytes.len() == MOST_BYTES {
                break;
            }
        }
    })
    .await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The code that a body names, for the log: never its message, which may echo what was sent.
pub(super) fn code(body: &str, key: Option<&ApiKey>) -> String {
    redacted(code_in(body), key)
}

/// A server that puts the key into an error's code must not bring it into a log.
pub(super) fn redacted(code: String, key: Option<&ApiKey>) -> String {
    match key {
        Some(key) if code.contains(key.expose()) => UNSPECIFIED.to_owned(),
        _ => code,
    }
}
