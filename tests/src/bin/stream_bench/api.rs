//! What is asked of the server beside streams: whether it is ready, and what derived work is due.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use tokio::time::sleep;

use crate::process::Server;

/// How often derived work is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// What is to run later than in this time was put off on purpose; the clock of a database may be a little ahead.
const PUT_OFF: TimeDelta = TimeDelta::seconds(1);

/// Whether the server can serve.
pub(crate) async fn is_ready(server: &Server) -> bool {
    get(server, "/readyz").await.is_some()
}

/// Waits until no derived work is due.
///
/// # Errors
/// Some still was when the limit had passed.
pub(crate) async fn settle(server: &Server, limit: Duration) -> Result<(), String> {
    let begun = Instant::now();
    while has_due_job(server).await {
        if begun.elapsed() > limit {
            return Err(format!("derived work was not done within {limit:?}"));
        }
        sleep(LOOK).await;
    }
    Ok(())
}

async fn has_due_job(server: &Server) -> bool {
    let (now, mut cursor) = (Utc::now(), String::new());
    loop {
        let path = format!("/v1/jobs?limit=100{cursor}");
        let page = get(server, &path).await.expect("a list of jobs");
        if page["items"]
            .as_array()
            .is_some_and(|jobs| jobs.iter().any(|job| is_due(job, now)))
        {
            return true;
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return false,
        }
    }
}

/// Running, or waiting for a worker; what is to run later was put off on purpose.
fn is_due(job: &Value, now: DateTime<Utc>) -> bool {
    let run_at = job["run_at"].as_str().map(str::parse::<DateTime<Utc>>);
    let put_off = matches!(run_at, Some(Ok(at)) if at > now + PUT_OFF);
    job["state"] == "running" || (job["state"] == "pending" && !put_off)
}

/// Sends a user's request.
///
/// # Errors
/// It was not answered, or refused.
pub(crate) async fn post(
    server: &Server,
    user: &str,
    path: &str,
    body: &Value,
) -> Result<Value, String> {
    let url = format!("http://{}{path}", server.address);
    let request = CLIENT.post(url).header("x-tidemark-user", user).json(body);
    let answer = request.send().await.map_err(|e| format!("{path}: {e}"))?;
    let status = answer.status();
    let text = answer.text().await.map_err(|e| format!("{path}: {e}"))?;
    if status.is_success() {
        serde_json::from_str(&text).map_err(|e| format!("{path}: {e}: {text}"))
    } else {
        Err(format!("{path}: {status}: {text}"))
    }
}

async fn get(server: &Server, path: &str) -> Option<Value> {
    let url = format!("http://{}{path}", server.address);
    let answer = CLIENT.get(url).send().await.ok()?;
    let answer = answer.error_for_status().ok()?;
    Some(answer.json().await.unwrap_or_default())
}

static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(|| {
    // reqwest asks for a provider even where only plain HTTP is spoken.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::Client::builder().no_proxy();
    client.build().expect("a client")
});

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn work_is_due_unless_it_was_put_off_or_given_up() {
        let now: DateTime<Utc> = "2026-01-01T00:00:10Z".parse().unwrap();
        let due =
            |state: &str, run_at: &str| is_due(&json!({"state": state, "run_at": run_at}), now);
        let (before, later) = ("2026-01-01T00:00:02.5Z", "2026-01-01T00:05:00Z");
        assert!(due("pending", before) && due("running", before) && due("running", later));
        assert!(!due("pending", later) && !due("failed", before));
    }
}
