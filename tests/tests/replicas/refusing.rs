//! Redis is there and takes nothing, or something now and then.

use std::time::{Duration, Instant};

use tidemark_tests::client::Client;

use super::{LIMIT, Replicas, until_events_are};

/// How long Redis takes a command now and then.
const TORN: Duration = Duration::from_secs(4);

/// What `/readyz` says while `torn` goes on, whenever it says something else than before.
async fn told(client: &Client, torn: impl Future<Output = ()>) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    let watching = async {
        loop {
            let ready = client.get("/readyz").await.expect(200);
            let events = ready["events"].as_str().unwrap();
            if told.last().map(String::as_str) != Some(events) {
                told.push(events.to_owned());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = torn => {}
        () = watching => {}
    }
    told
}

/// Runs turns while Redis refuses, with `refuse`, everything but for moments, with `take`.
async fn torn(replicas: &Replicas, refuse: &[&[&str]], take: &[&[&str]]) {
    let client = replicas.client(0);
    let session = client.create_session().await;
    let began = Instant::now();
    while began.elapsed() < TORN {
        for commands in [refuse, take] {
            for command in commands {
                replicas.redis.administer(command).await;
            }
            client
                .post_turn(&session, "Short [[tokens=5 delay_ms=20]]")
                .await;
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
    }
    for command in refuse {
        replicas.redis.administer(command).await;
    }
}

async fn refused_now_and_then(refuse: &[&[&str]], take: &[&[&str]]) {
    let shape = |setup: tidemark_tests::server::Setup| {
        setup.with("TIDEMARK_LIMITS__QUEUE_PER_SESSION", "100")
    };
    let replicas = Replicas::with(2, shape).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    let said = told(&one, torn(&replicas, refuse, take)).await;
    assert_eq!(said, ["ok", "degraded"], "it does not waver");
    // Chat goes on, and is told at the other replica too.
    let turn = one
        .post_turn(&one.create_session().await, "On [[tokens=5 delay_ms=20]]")
        .await;
    other.read_turn(&turn).await.assert_one_done_last();
    let text = replicas.servers[0].log().text();
    assert_eq!(text.matches("Redis is away").count(), 1, "{text}");

    for command in take {
        replicas.redis.administer(command).await;
    }
    until_events_are(&one, "ok").await;
    until_events_are(&other, "ok").await;
    let turn = one
        .post_turn(&one.create_session().await, "On [[tokens=5 delay_ms=20]]")
        .await;
    other.read_turn(&turn).await.assert_complete();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_without_memory_counts_as_away_until_it_takes_everything() {
    let refuse: &[&[&str]] = &[&["CONFIG", "SET", "maxmemory", "1"]];
    let take: &[&[&str]] = &[&["CONFIG", "SET", "maxmemory", "0"]];
    refused_now_and_then(refuse, take).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_read_only_now_and_then_counts_as_away_until_it_takes_everything() {
    // It was made the replica of nobody who answers, and is freed again.
    let refuse: &[&[&str]] = &[&["REPLICAOF", "127.0.0.1", "1"]];
    let take: &[&[&str]] = &[&["REPLICAOF", "NO", "ONE"]];
    refused_now_and_then(refuse, take).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_without_memory_still_lets_go_of_what_is_erased() {
    const WORD: &str = "quuxmeadow";
    let replicas = Replicas::start(1).await;
    let client = replicas.client(0).as_user("ann");
    let turn = client
        .post_turn(&client.create_session().await, &format!("My {WORD}"))
        .await;
    client.read_turn(&turn).await.assert_complete();
    tidemark_tests::wait::until("it to be in Redis", LIMIT, || async {
        let turns = replicas.redis.turns().await;
        (turns.iter().any(|(key, _)| key.contains(&turn))).then_some(())
    })
    .await;
    replicas
        .redis
        .administer(&["CONFIG", "SET", "maxmemory", "1"])
        .await;
    client.delete("/v1/users/ann").await.expect(200);
    tidemark_tests::wait::until("it to be gone", LIMIT, || async {
        let turns = replicas.redis.turns().await;
        turns.is_empty().then_some(())
    })
    .await;
}
