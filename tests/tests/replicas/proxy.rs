//! Three replicas behind nginx: it gives each request to another of them, buffers by its default, and cuts what is silent for 20 seconds.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tidemark_tests::client::Client;
use tidemark_tests::events::Reading;
use tidemark_tests::nginx::Nginx;
use tidemark_tests::paths::{chat_stream, events_of, is_event};
use tidemark_tests::server::Server;

use super::{LIMIT, Replicas};

const IDLE: Duration = Duration::from_secs(20);

/// Heartbeats as they are by default.
async fn behind_nginx() -> (Replicas, Nginx) {
    let replicas = Replicas::with(3, |setup| {
        setup
            .with("TIDEMARK_STREAM__HEARTBEAT_SECONDS", "15")
            .with("TIDEMARK_TURN__LEASE_SECONDS", "2")
    })
    .await;
    let addresses: Vec<&str> = replicas.servers.iter().map(Server::address).collect();
    let nginx = Nginx::start(&addresses, IDLE).await;
    (replicas, nginx)
}

/// Reads a turn to its end, cutting the stream after each piece of the answer and coming back with the last id.
async fn in_pieces(client: &Client, path: &str) -> Reading {
    let mut whole = Reading::default();
    while whole.done().is_none() {
        let last = whole.events.last().map(|event| event.id.clone());
        let mut stream = client.open_after(path, last.as_deref()).await;
        let frames = stream
            .collect_until(LIMIT, |frame| {
                is_event(frame, "message") || is_event(frame, "done")
            })
            .await;
        let piece = Reading::of(&frames);
        whole.events.extend(piece.events);
        whole.retries.extend(piece.retries);
    }
    whole
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_come_through_at_once_and_silence_beyond_the_timeout_is_survived() {
    let (_replicas, nginx) = behind_nginx().await;
    let client = nginx.client();
    let message = "Slow [[tokens=40 delay_ms=50 stall_ms=25000 stall_after=20]]";
    let begun = Instant::now();
    let mut stream = client
        .open(&chat_stream(message, None, Some("proxy-1")))
        .await;
    let frames = stream.collect_until(LIMIT * 2, |_| false).await;
    assert_eq!(stream.ended, Some(Ok(())), "the proxy has cut it");
    let reading = Reading::of(&frames);
    reading.assert_complete();
    assert!(begun.elapsed() > IDLE, "it was never silent for long");
    let pieces = reading.of_kind("message");
    let spread = pieces[pieces.len() / 2].at - pieces[0].at;
    assert!(
        spread > Duration::from_millis(300),
        "it came in one lump: {spread:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_cut_again_and_again_is_told_once_by_whichever_replica() {
    let (_replicas, nginx) = behind_nginx().await;
    let client = nginx.client();
    let session = client.create_session().await;
    let turn = client
        .post_turn(&session, "Cut often [[tokens=60 delay_ms=40]]")
        .await;
    let reading = in_pieces(&client, &events_of(&turn)).await;
    reading.assert_complete();
    let ids: HashSet<&str> = reading
        .events
        .iter()
        .map(|event| event.id.as_str())
        .collect();
    assert_eq!(ids.len(), reading.events.len(), "an event came twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_dies_behind_the_proxy_costs_a_follower_one_reconnect() {
    let (mut replicas, nginx) = behind_nginx().await;
    let client = nginx.client();
    let session = client.create_session().await;
    let turn = client
        .post_turn(&session, "Outlived [[tokens=4000 delay_ms=50]]")
        .await;
    let mut stream = client.open(&events_of(&turn)).await;
    let frames = stream
        .collect_until(LIMIT, |frame| is_event(frame, "message"))
        .await;
    let last = Reading::of(&frames).events.last().unwrap().id.clone();
    drop(stream);
    for at in 0..2 {
        replicas.servers[at].kill().await;
    }
    // It may have run at the one that is left.
    let left = replicas.client(2);
    left.post(&format!("/v1/turns/{turn}/cancel"), &serde_json::json!({}))
        .await;
    let reading = client.read_after(&events_of(&turn), Some(&last)).await;
    let end = reading.assert_one_done_last();
    assert!(["interrupted", "cancelled"].contains(&end.data["status"].as_str().unwrap()));
    let next = client.ask(&session, "And on").await;
    assert_eq!(next["status"], "completed");
}
