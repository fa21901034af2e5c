//! Cancelling a turn at a replica that does not run it.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Replicas, followed, rest};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_cancelled_at_another_replica_stops_at_once_and_keeps_what_was_shown() {
    let replicas = Replicas::start(3).await;
    let message = "To be stopped [[tokens=4000 delay_ms=30]]";
    let (turn, stream, _) = followed(&replicas.client(0), &replicas.client(1), message).await;
    let asked = Instant::now();
    let cancel = format!("/v1/turns/{turn}/cancel");
    replicas
        .client(2)
        .post(&cancel, &json!({}))
        .await
        .expect(200);
    let reading = rest(stream).await;
    let end = reading.assert_one_done_last();
    assert_eq!(end.data["status"], "cancelled");
    let late = end.at.saturating_duration_since(asked);
    // Without a hint its runner would see it when it prolongs its lease, after ten seconds.
    assert!(
        late < Duration::from_secs(5),
        "told {late:?} after it was asked for"
    );
    let stored = replicas.client(2).turn(&turn).await;
    assert_eq!(stored["text"], end.data["text"]);
    assert!(!end.data["text"].as_str().unwrap().is_empty());
    // Idempotent, also where it never ran.
    replicas
        .client(1)
        .post(&cancel, &json!({}))
        .await
        .expect(200);
}
