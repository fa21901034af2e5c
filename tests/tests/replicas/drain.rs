//! A replica goes down: whoever follows its turns elsewhere is told how they end.

use std::time::Duration;

use tidemark_tests::events::Reading;
use tidemark_tests::paths::is_event;
use tokio::time::Instant;

use super::{LIMIT, Replicas, SOON, followed};

/// Redis hangs from a moment before the turn is closed, which is six of the ten seconds after the stop, for so long: less than a follower waits
/// before it looks for the stored turn, and less than anybody waits for Redis.
const HANGS: (Duration, Duration) = (Duration::from_millis(5_700), Duration::from_millis(800));

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_turn_that_a_stop_interrupts_is_told_elsewhere_though_redis_hangs_meanwhile() {
    let replicas = Replicas::start(2).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    let message = "Endless [[tokens=2000 delay_ms=50]]";
    let (_, mut stream, _) = followed(&one, &other, message).await;
    replicas.servers[0].send_sigterm();
    tokio::time::sleep(HANGS.0).await;
    replicas.redis.pause();
    tokio::time::sleep(HANGS.1).await;
    replicas.redis.go_on();
    let woke = Instant::now();
    let frames = stream
        .collect_until(LIMIT, |frame| is_event(frame, "done"))
        .await;
    let took = woke.elapsed();
    let reading = Reading::of(&frames);
    assert_eq!(reading.done().unwrap().data["status"], "interrupted");
    assert!(
        took < SOON,
        "it was found in the stored turn after {took:?}"
    );
}
