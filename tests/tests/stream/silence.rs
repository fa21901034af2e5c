//! A model that says nothing: the connection lives on, and the first bytes do not wait for it.

use std::time::{Duration, Instant};

use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::events::Reading;
use tidemark_tests::model::Model;
use tidemark_tests::paths::chat_stream;
use tidemark_tests::server::{Setup, with_model};
use tidemark_tests::sse::EventStream;

each_store!(the_first_bytes_do_not_wait_for_the_model);

/// How soon the first bytes are promised.
const FIRST_BYTES: Duration = Duration::from_millis(100);

/// The longest time without any frame between the start of the request and the end.
fn longest_gap(asked_at: Instant, times: &[Instant]) -> Duration {
    let before = std::iter::once(&asked_at).chain(times);
    before
        .zip(times)
        .map(|(earlier, later)| later.duration_since(*earlier))
        .max()
        .unwrap_or_default()
}

async fn read_all(mut stream: EventStream, limit: Duration) -> (Reading, Duration) {
    let frames = stream.collect_until(limit, |_| false).await;
    let times: Vec<Instant> = frames.iter().map(|arrived| arrived.at).collect();
    let gap = longest_gap(stream.asked_at, &times);
    (Reading::of(&frames), gap)
}

#[tokio::test]
async fn heartbeats_come_on_their_own_timer_while_the_model_is_silent() {
    let model = Model::start().await;
    let server = Setup::on(Store::Sqlite)
        .model(&model)
        .with("TIDEMARK_STREAM__HEARTBEAT_SECONDS", "1")
        .start()
        .await;
    let query = "Silent twice [[first_ms=3500 tokens=4 stall_after=2 stall_ms=3500]]";
    let stream = server
        .client()
        .open(&chat_stream(query, None, Some("s-1")))
        .await;
    let (reading, gap) = read_all(stream, Duration::from_secs(30)).await;
    reading.assert_complete();
    assert!(
        reading.heartbeats.len() >= 5,
        "{} heartbeats in 7 s",
        reading.heartbeats.len()
    );
    assert!(gap < Duration::from_millis(1800), "{gap:?} without a byte");
}

#[tokio::test]
async fn a_minute_of_silence_passes_with_a_heartbeat_at_least_every_15_seconds() {
    let (_server, _model, client) = with_model(Store::Sqlite).await;
    let stream = client
        .open(&chat_stream(
            "A minute [[first_ms=61000]]",
            None,
            Some("s-2"),
        ))
        .await;
    let (reading, gap) = read_all(stream, Duration::from_secs(90)).await;
    reading.assert_complete();
    assert!(
        reading.heartbeats.len() >= 4,
        "{} heartbeats in 61 s",
        reading.heartbeats.len()
    );
    assert!(
        gap < Duration::from_millis(15_800),
        "{gap:?} without a byte"
    );
}

async fn the_first_bytes_do_not_wait_for_the_model(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let mut waits = Vec::new();
    for n in 0..9 {
        let mut stream = client
            .open(&chat_stream(
                "Patience [[first_ms=1500]]",
                None,
                Some(&format!("s-{n}")),
            ))
            .await;
        stream.next().await.unwrap();
        waits.push(stream.first_bytes_at.unwrap() - stream.asked_at);
    }
    waits.sort();
    println!("first bytes: median {:?}, longest {:?}", waits[4], waits[8]);
    assert!(
        waits[4] <= FIRST_BYTES,
        "first bytes took {waits:?}, promised are {FIRST_BYTES:?}"
    );
    model.until_idle().await;
}
