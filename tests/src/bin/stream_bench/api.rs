//! What is asked of the server beside streams: whether it is ready, and what derived work is due.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::sleep;

use crate::process::Server;

/// How long derived work may take in the end, and how often it is looked at.
const SETTLE_LIMIT: Duration = Duration::from_mins(2);
const LOOK: Duration = Duration::from_millis(100);

/// Whether the server can serve.
pub(crate) async fn is_ready(server: &Server) -> bool {
    get(server, "/readyz").await.is_some()
}

/// Waits until no derived work is due.
pub(crate) async fn settle(server: &Server) {
    let begun = Instant::now();
    while has_due_job(server).await {
        if begun.elapsed() > SETTLE_LIMIT {
            println!("derived work was not done within {SETTLE_LIMIT:?}");
            return;
        }
        sleep(LOOK).await;
    }
}

async fn has_due_job(server: &Server) -> bool {
    let mut cursor = String::new();
    loop {
        let path = format!("/v1/jobs?limit=100{cursor}");
        let page = get(server, &path).await.expect("a list of jobs");
        if page["items"]
            .as_array()
            .is_some_and(|jobs| jobs.iter().any(is_due))
        {
            return true;
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return false,
        }
    }
}

/// Running, or waiting for a worker. What was never tried and is to run later than it was made was put off on purpose.
fn is_due(job: &Value) -> bool {
    let second = |field: &str| job[field].as_str().and_then(|time| time.get(..19));
    let put_off = job["attempts"] == 0 && second("run_at") > second("created_at");
    job["state"] == "running" || (job["state"] == "pending" && !put_off)
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
        let job = |state: &str, run_at: &str, attempts: u32| json!({"state": state, "created_at": "2026-01-01T00:00:00.1Z", "run_at": run_at, "attempts": attempts});
        let (now, later) = ("2026-01-01T00:00:00.2Z", "2026-01-01T00:05:00.1Z");
        assert!(is_due(&job("pending", now, 0)));
        assert!(is_due(&job("running", later, 1)));
        assert!(is_due(&job("pending", later, 1)));
        assert!(!is_due(&job("pending", later, 0)));
        assert!(!is_due(&job("failed", now, 8)));
    }
}
