//! Two servers on one database: whoever follows a turn at the server that does not run it has no live log there, and is told its end all
//! the same, however often a heartbeat cuts the waiting short.

use std::time::Duration;

use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::events::Reading;
use tidemark_tests::model::Model;
use tidemark_tests::paths::{events_of, is_event};
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::sse::EventStream;

/// From the end of a turn, or of the server that ran it, to the end of a stream elsewhere; the lease is two seconds of it.
const BOUND: Duration = Duration::from_secs(15);

async fn two_servers(model: &Model) -> (Server, Server) {
    let one = Setup::on(Store::Postgres)
        .model(model)
        .with("TIDEMARK_TURN__LEASE_SECONDS", "2")
        .with("TIDEMARK_STREAM__HEARTBEAT_SECONDS", "1")
        .start()
        .await;
    let other = one.start_another().await;
    (one, other)
}

/// A turn that runs at one server and two followers of it at the other: from its start, and behind what was read at the first.
async fn followed_elsewhere(
    one: &Client,
    other: &Client,
    message: &str,
) -> (String, [EventStream; 2]) {
    let turn = one.post_turn(&one.create_session().await, message).await;
    let mut stream = one.open(&events_of(&turn)).await;
    let frames = stream
        .collect_until(BOUND, |frame| is_event(frame, "message"))
        .await;
    let last = Reading::of(&frames).events.last().unwrap().id.clone();
    let followers = [
        other.open(&events_of(&turn)).await,
        other.open_after(&events_of(&turn), Some(&last)).await,
    ];
    (turn, followers)
}

async fn read_to_end(mut stream: EventStream) -> Reading {
    let frames = stream.collect_until(BOUND, |_| false).await;
    let reading = Reading::of(&frames);
    assert_eq!(
        stream.ended,
        Some(Ok(())),
        "the stream has not ended after {BOUND:?}: {:?}, {} heartbeats",
        reading.kinds(),
        reading.heartbeats.len()
    );
    reading
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_server_died_ends_for_its_followers_at_another() {
    let model = Model::start().await;
    let (mut one, other) = two_servers(&model).await;
    let message = "Never finished [[tokens=4000 delay_ms=50]]";
    let (turn, followers) = followed_elsewhere(&one.client(), &other.client(), message).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    one.kill().await;
    for reading in futures::future::join_all(followers.map(read_to_end)).await {
        assert_eq!(reading.kinds(), ["snapshot", "done"]);
        assert_eq!(reading.events[0].data["status"], "interrupted");
        assert_eq!(reading.assert_one_done_last().data["status"], "interrupted");
        assert!(
            !reading.heartbeats.is_empty(),
            "it was kept alive meanwhile"
        );
    }
    assert_eq!(other.client().turn(&turn).await["status"], "interrupted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_completes_at_one_server_ends_for_its_followers_at_another() {
    let model = Model::start().await;
    let (one, other) = two_servers(&model).await;
    let message = "Finished over there [[tokens=60 delay_ms=50]]";
    let (turn, followers) = followed_elsewhere(&one.client(), &other.client(), message).await;
    let ended = one.client().read_turn(&turn).await;
    let done = ended.assert_one_done_last();
    assert_eq!(done.data["status"], "completed");
    for reading in futures::future::join_all(followers.map(read_to_end)).await {
        assert_eq!(reading.kinds(), ["snapshot", "done"]);
        assert_eq!(reading.events[0].data["text"], done.data["text"]);
        let end = reading.assert_one_done_last();
        assert_eq!(end.id, done.id);
        for field in ["status", "text", "message_id"] {
            assert_eq!(end.data[field], done.data[field], "{field}");
        }
    }
}

/// A turn that waits at one server until the other, which runs its session's turns, takes it up; and a follower where it waits, whose log
/// there holds the start and nothing more.
async fn waiting_elsewhere(one: &Client, other: &Client, message: &str) -> (String, EventStream) {
    let session = one.create_session().await;
    let before = one
        .post_turn(&session, "Before it [[tokens=20 delay_ms=50]]")
        .await;
    one.until_status(&before, "running").await;
    let turn = other.post_turn(&session, message).await;
    let mut stream = other.open(&events_of(&turn)).await;
    let frames = stream
        .collect_until(BOUND, |frame| is_event(frame, "start"))
        .await;
    assert_eq!(Reading::of(&frames).events[0].data["status"], "queued");
    assert_eq!(one.finished(&before).await["status"], "completed");
    one.until_status(&turn, "running").await;
    (turn, stream)
}

/// The end of a reading that goes on behind the start: a snapshot goes before it, unless the waiting server was the quicker one and
/// has run the turn itself.
fn assert_ended(reading: &Reading, status: &str) {
    assert_eq!(reading.assert_one_done_last().data["status"], status);
    if reading.of_kind("message").is_empty() {
        assert_eq!(reading.kinds(), ["snapshot", "done"]);
        assert!(
            !reading.heartbeats.is_empty(),
            "it was kept alive meanwhile"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_waited_at_one_server_and_completed_at_another_ends_where_it_waited() {
    let model = Model::start().await;
    let (one, other) = two_servers(&model).await;
    let message = "Taken over [[tokens=60 delay_ms=50]]";
    let (turn, stream) = waiting_elsewhere(&one.client(), &other.client(), message).await;
    let reading = read_to_end(stream).await;
    assert_ended(&reading, "completed");
    let told = one.client().read_turn(&turn).await;
    let (here, there) = (reading.assert_one_done_last(), told.assert_one_done_last());
    assert_eq!((&here.id, &here.data), (&there.id, &there.data));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_waited_at_one_server_and_died_with_another_ends_where_it_waited() {
    let model = Model::start().await;
    let (mut one, other) = two_servers(&model).await;
    let message = "Taken along [[tokens=4000 delay_ms=50]]";
    let (turn, stream) = waiting_elsewhere(&one.client(), &other.client(), message).await;
    one.kill().await;
    let reading = read_to_end(stream).await;
    assert_ended(&reading, "interrupted");
    assert_eq!(other.client().turn(&turn).await["status"], "interrupted");
}
