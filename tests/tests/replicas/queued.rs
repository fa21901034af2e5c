//! A turn that waits at one replica while another runs its session.

use tidemark_tests::events::Reading;
use tidemark_tests::paths::{events_of, is_event};

use super::{LIMIT, Replicas, SOON};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_accepted_at_one_replica_and_run_at_another_is_told_at_all() {
    let replicas = Replicas::start(3).await;
    let (one, other, third) = (replicas.client(0), replicas.client(1), replicas.client(2));
    let session = one.create_session().await;
    let before = one
        .post_turn(&session, "Before it [[tokens=30 delay_ms=40]]")
        .await;
    one.until_status(&before, "running").await;
    let turn = other
        .post_turn(&session, "Behind it [[tokens=30 delay_ms=40]]")
        .await;
    let (a, b, c) = tokio::join!(
        one.read_turn(&turn),
        other.read_turn(&turn),
        third.read_turn(&turn)
    );
    for reading in [&a, &b, &c] {
        reading.assert_complete();
        assert!(reading.of_kind("message").len() > 10, "it came in pieces");
    }
    assert_eq!(b.events[0].data["status"], "queued");
    let ends = [&a, &b, &c].map(|reading| reading.done().unwrap());
    for end in ends {
        assert_eq!((&end.id, &end.data), (&ends[0].id, &ends[0].data));
        assert!(end.at.saturating_duration_since(ends[0].at) < SOON);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_turn_that_is_cancelled_elsewhere_ends_at_once_for_all() {
    let replicas = Replicas::start(3).await;
    let (one, other, third) = (replicas.client(0), replicas.client(1), replicas.client(2));
    let session = one.create_session().await;
    let before = one
        .post_turn(&session, "Long [[tokens=400 delay_ms=40]]")
        .await;
    one.until_status(&before, "running").await;
    let turn = one.post_turn(&session, "Never to run").await;
    let mut streams = Vec::new();
    for client in [&one, &other, &third] {
        let mut stream = client.open(&events_of(&turn)).await;
        let frames = stream
            .collect_until(LIMIT, |frame| is_event(frame, "start"))
            .await;
        assert_eq!(Reading::of(&frames).events[0].data["status"], "queued");
        streams.push(stream);
    }
    let asked = std::time::Instant::now();
    let cancel = format!("/v1/turns/{turn}/cancel");
    other
        .post(&cancel, &serde_json::json!({}))
        .await
        .expect(200);
    for stream in streams {
        let reading = super::rest(stream).await;
        let end = reading.assert_one_done_last();
        assert_eq!(end.data["status"], "cancelled");
        assert_eq!(reading.kinds(), ["done"], "nothing but the end was missing");
        let late = end.at.saturating_duration_since(asked);
        assert!(late < SOON, "told {late:?} after it was asked for");
    }
    let cancel = format!("/v1/turns/{before}/cancel");
    one.post(&cancel, &serde_json::json!({})).await.expect(200);
}
