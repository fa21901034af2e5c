//! What Redis keeps: for a while, and never for longer.

use std::time::Duration;

use tidemark_tests::wait;

use super::{LIMIT, Replicas, followed, rest};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_expired_in_redis_is_told_from_the_stored_turn() {
    let replicas = Replicas::start(2).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    let turn = one
        .post_turn(&one.create_session().await, "Soon over [[tokens=10]]")
        .await;
    let here = one.read_turn(&turn).await;
    here.assert_complete();
    let all = here.events.len();
    let key = wait::until("the turn to be in Redis as a whole", LIMIT, || async {
        let (key, entries) = replicas.redis.turns().await.pop()?;
        (entries == all).then_some(key)
    })
    .await;
    replicas.redis.expire(&key).await;
    let there = other.read_turn(&turn).await;
    assert_eq!(there.kinds(), ["snapshot", "done"]);
    let (end, expected) = (there.assert_one_done_last(), here.done().unwrap());
    assert_eq!((&end.id, &end.data), (&expected.id, &expected.data));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_removed_under_a_running_turn_is_written_anew() {
    let replicas = Replicas::start(2).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    let message = "Robbed [[tokens=100 delay_ms=30]]";
    let (turn, stream, mut elsewhere) = followed(&one, &other, message).await;
    let key = replicas.redis.turns().await[0].0.clone();
    replicas.redis.expire(&key).await;
    elsewhere.events.extend(rest(stream).await.events);
    elsewhere.assert_complete();
    let again = other.read_turn(&turn).await;
    again.assert_complete();
    assert!(replicas.redis.time_left(&key).await > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_has_an_end_and_goes_when_ended_turns_can_be_replayed_no_longer() {
    let replicas = Replicas::with(2, |setup| {
        setup.with("TIDEMARK_STREAM__RETENTION_SECONDS", "5")
    })
    .await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    let (turn, stream, _) = followed(&one, &other, "Kept [[tokens=150 delay_ms=40]]").await;
    for key in replicas.redis.keys().await {
        assert!(replicas.redis.time_left(&key).await > 0, "{key} has no end");
    }
    // It runs for longer than that, and is there all the while.
    rest(stream).await;
    other.read_turn(&turn).await.assert_complete();
    wait::until("the turn's key to go", Duration::from_secs(20), || async {
        replicas.redis.turns().await.is_empty().then_some(())
    })
    .await;
    // The replica that has followed it holds it for as long, and a little longer.
    wait::until(
        "the stored turn to be told",
        Duration::from_secs(20),
        || async {
            let late = wait::within("a reading", LIMIT, other.read_turn(&turn)).await;
            (late.kinds() == ["snapshot", "done"]).then_some(())
        },
    )
    .await;
}
