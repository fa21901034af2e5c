//! A turn that runs at one replica, at others.

use std::time::Duration;

use tidemark_tests::events::Reading;
use tidemark_tests::paths::{events_of, is_event};

use super::{LIMIT, Replicas, SOON, followed, rest};

/// The events without what depends on when they were read.
fn told(reading: &Reading) -> Vec<(String, serde_json::Value)> {
    let events = reading.events.iter();
    events
        .map(|event| (event.id.clone(), event.data.clone()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_followed_token_by_token_wherever_it_does_not_run() {
    let replicas = Replicas::start(3).await;
    let one = replicas.client(0);
    let message = "Word by word [[tokens=60 delay_ms=30]]";
    let turn = one.post_turn(&one.create_session().await, message).await;
    let (a, b, c) = tokio::join!(
        one.read_turn(&turn),
        async { replicas.client(1).read_turn(&turn).await },
        async { replicas.client(2).read_turn(&turn).await },
    );
    a.assert_complete();
    for reading in [&b, &c] {
        reading.assert_complete();
        assert_eq!(told(reading), told(&a), "every replica tells the same");
        assert!(reading.of_kind("message").len() > 10, "it came in pieces");
        for (here, there) in a.events.iter().zip(&reading.events) {
            let late = there.at.saturating_duration_since(here.at);
            assert!(late < SOON, "{} came {late:?} later", here.id);
        }
    }
    let late = |reading: &Reading| {
        let pairs = a.events.iter().zip(&reading.events);
        let mut late: Vec<Duration> = pairs
            .map(|(here, there)| there.at.saturating_duration_since(here.at))
            .collect();
        late.sort();
        (late[late.len() / 2], late[late.len() - 1])
    };
    println!(
        "later than where it runs, median and most: {:?}, {:?}",
        late(&b),
        late(&c)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_resumed_at_a_third_replica_from_where_a_second_has_told_it() {
    let replicas = Replicas::start(3).await;
    let message = "Cut and resumed [[tokens=80 delay_ms=30]]";
    let (turn, stream, mut first) =
        followed(&replicas.client(0), &replicas.client(1), message).await;
    drop(stream);
    let last = first.events.last().unwrap().id.clone();
    let third = replicas.client(2);
    let second = third.read_after(&events_of(&turn), Some(&last)).await;
    first.events.extend(second.events);
    assert_eq!(first.text(), first.assert_complete());
    // Again, when all is over: replayed one by one, at a replica that has not seen it before.
    let again = replicas.client(1).read_turn(&turn).await;
    assert_eq!(told(&again), told(&first));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_who_comes_before_the_turn_is_told_elsewhere_still_gets_every_token() {
    let replicas = Replicas::start(2).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    let session = one.create_session().await;
    for _ in 0..10 {
        let turn = one
            .post_turn(&session, "At once [[tokens=5 delay_ms=10]]")
            .await;
        other.read_turn(&turn).await.assert_complete();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_turns_are_followed_elsewhere_at_once() {
    let replicas = Replicas::start(2).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    let readings = (0..40).map(|n| {
        let (one, other) = (one.clone(), other.clone());
        async move {
            let message = format!("Crowd {n} [[tokens=40 delay_ms=25]]");
            let turn = one.post_turn(&one.create_session().await, &message).await;
            other.read_turn(&turn).await.assert_complete()
        }
    });
    let texts = futures::future::join_all(readings).await;
    assert_eq!(texts.len(), 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_and_resets_arrive_elsewhere_in_their_order() {
    let replicas = Replicas::start(2).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    let message = "With a tool [[tool=search_memory tool_rounds=2 tokens=8 delay_ms=20]]";
    let turn = one.post_turn(&one.create_session().await, message).await;
    let (here, there) = tokio::join!(one.read_turn(&turn), other.read_turn(&turn));
    there.assert_complete();
    assert!(!there.of_kind("tool").is_empty());
    assert_eq!(told(&there), told(&here));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_replica_dies_ends_elsewhere_as_soon_as_it_is_closed() {
    let mut replicas =
        Replicas::with(2, |setup| setup.with("TIDEMARK_TURN__LEASE_SECONDS", "2")).await;
    let other = replicas.client(1);
    let message = "Never finished [[tokens=4000 delay_ms=50]]";
    let (turn, mut stream, _) = followed(&replicas.client(0), &other, message).await;
    replicas.servers[0].kill().await;
    let closed = {
        let (other, turn) = (other.clone(), turn.clone());
        tokio::spawn(async move {
            other.until_status(&turn, "interrupted").await;
            std::time::Instant::now()
        })
    };
    let frames = stream
        .collect_until(LIMIT, |frame| is_event(frame, "done"))
        .await;
    let reading = Reading::of(&frames);
    let end = reading.assert_one_done_last();
    assert_eq!(end.data["status"], "interrupted");
    let last = reading.kinds();
    assert_eq!(last[last.len() - 2..], ["snapshot", "done"]);
    let late = end.at.saturating_duration_since(closed.await.unwrap());
    assert!(late < SOON, "told {late:?} after it was closed");
    assert!(rest(stream).await.events.is_empty());
}
