//! Redis goes, and comes back empty.

use tidemark_tests::database::Store;
use tidemark_tests::events::Reading;
use tidemark_tests::model::Model;
use tidemark_tests::paths::is_event;
use tidemark_tests::redis::Redis;
use tidemark_tests::server::Setup;

use super::{LIMIT, Replicas, SOON, followed, rest, until_events_are};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis_chat_goes_on_and_followers_elsewhere_get_the_text_with_the_end() {
    let mut replicas = Replicas::start(2).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    let message = "Cut off [[tokens=120 delay_ms=30]]";
    let (turn, stream, mut elsewhere) = followed(&one, &other, message).await;
    let here = {
        let (one, turn) = (one.clone(), turn.clone());
        tokio::spawn(async move { one.read_turn(&turn).await })
    };
    replicas.redis.kill().await;
    until_events_are(&one, "degraded").await;
    until_events_are(&other, "degraded").await;
    let metrics = other.get("/metrics").await.text;
    assert!(metrics.contains("tidemark_events_up 0"), "{metrics}");

    here.await.unwrap().assert_complete();
    let last = rest(stream).await;
    elsewhere.events.extend(last.events);
    elsewhere.assert_gapless_from(1);
    let kinds = elsewhere.kinds();
    assert_eq!(kinds[kinds.len() - 2..], ["snapshot", "done"]);
    let end = elsewhere.assert_one_done_last();
    assert_eq!(end.data["status"], "completed");
    assert_eq!(elsewhere.text(), end.data["text"].as_str().unwrap());

    // New turns, at either and followed at either.
    for (one, other) in [(&one, &other), (&other, &one)] {
        let session = one.create_session().await;
        let turn = one
            .post_turn(&session, "Alone [[tokens=20 delay_ms=20]]")
            .await;
        let (here, there) = tokio::join!(one.read_turn(&turn), other.read_turn(&turn));
        here.assert_complete();
        let end = there.assert_one_done_last();
        assert_eq!(end.data["text"], here.done().unwrap().data["text"]);
    }

    for server in &replicas.servers {
        let text = server.log().text();
        let told = text.matches("Redis is away").count();
        assert_eq!(told, 1, "told once, not once a token:\n{text}");
    }
    replicas.redis.start_again().await;
    for client in [&one, &other] {
        until_events_are(client, "ok").await;
        let metrics = client.get("/metrics").await.text;
        assert!(metrics.contains("tidemark_events_up 1"), "{metrics}");
    }
    let turn = one
        .post_turn(
            &one.create_session().await,
            "Together again [[tokens=20 delay_ms=20]]",
        )
        .await;
    other.read_turn(&turn).await.assert_complete();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_runs_while_redis_comes_back_is_told_elsewhere_from_its_first_event_on() {
    let mut replicas = Replicas::start(2).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    let message = "On and on [[tokens=200 delay_ms=40]]";
    let (turn, mut stream, mut elsewhere) = followed(&one, &other, message).await;
    replicas.redis.kill().await;
    until_events_are(&other, "degraded").await;
    replicas.redis.start_again().await;
    until_events_are(&other, "ok").await;
    until_events_are(&one, "ok").await;
    // Whoever was there goes on without a gap, and whoever comes now gets all of it.
    let frames = stream
        .collect_until(LIMIT, |frame| is_event(frame, "message"))
        .await;
    elsewhere.events.extend(Reading::of(&frames).events);
    let late = other.read_turn(&turn).await;
    late.assert_complete();
    elsewhere.events.extend(rest(stream).await.events);
    elsewhere.assert_complete();
    assert!(late.of_kind("snapshot").is_empty() && elsewhere.of_kind("snapshot").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_without_its_redis_and_finds_it_later() {
    let (model, mut redis) = (Model::start().await, Redis::start().await);
    redis.kill().await;
    let server = Setup::on(Store::Postgres)
        .model(&model)
        .with("TIDEMARK_EVENTS__REDIS_URL", &redis.url())
        .start()
        .await;
    let client = server.client();
    until_events_are(&client, "degraded").await;
    let turn = client
        .post_turn(&client.create_session().await, "Without [[tokens=5]]")
        .await;
    client.read_turn(&turn).await.assert_complete();
    redis.start_again().await;
    until_events_are(&client, "ok").await;
    let text = server.log().text();
    assert!(text.contains("Redis is away") && text.contains("live events go to all replicas"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_hangs_makes_nobody_wait() {
    let replicas = Replicas::start(2).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    replicas.redis.pause();
    let session = one.create_session().await;
    let mut took = Vec::new();
    for _ in 0..4 {
        let asked = std::time::Instant::now();
        let turn = one
            .post_turn(&session, "Quick [[tokens=5 delay_ms=5]]")
            .await;
        let reading = one.read_turn(&turn).await;
        reading.assert_complete();
        took.push(asked.elapsed());
    }
    // Whoever waited for Redis would do so each time.
    assert!(took.iter().min() < Some(&SOON), "{took:?}");
    let turn = one
        .post_turn(&session, "Elsewhere [[tokens=5 delay_ms=5]]")
        .await;
    let end = other.read_turn(&turn).await;
    assert_eq!(end.assert_one_done_last().data["status"], "completed");
    until_events_are(&one, "degraded").await;
    replicas.redis.go_on();
    until_events_are(&one, "ok").await;
}
