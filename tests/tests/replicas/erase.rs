//! An erasure reaches what Redis and the other replicas hold.

use std::process::Stdio;

use tidemark_tests::client::Client;
use tidemark_tests::paths::{events_of, is_event};
use tidemark_tests::server::command;
use tidemark_tests::wait;

use super::{LIMIT, Replicas, followed, rest, until_events_are};

const WORD: &str = "quuxmeadow";

async fn said(client: &Client) -> String {
    let session = client.create_session().await;
    let message = format!("My {WORD} [[text=Your_{WORD}_is_green.]]");
    let turn = client.post_turn(&session, &message).await;
    client.read_turn(&turn).await.assert_complete();
    turn
}

async fn until_in_redis(replicas: &Replicas) {
    wait::until("what was said to be in Redis", LIMIT, || async {
        let everything = replicas.redis.everything().await;
        everything.contains(WORD).then_some(())
    })
    .await;
}

async fn erase(client: &Client, user: &str) {
    let receipt = client
        .delete(&format!("/v1/users/{user}"))
        .await
        .expect(200);
    assert!(receipt["removed"]["turns"].as_u64() > Some(0), "{receipt}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_leaves_no_byte_of_a_user_in_redis_and_takes_nothing_of_others() {
    let replicas = Replicas::start(2).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    let (ann, bob) = (one.as_user("ann"), one.as_user("bob"));
    let turn = said(&ann).await;
    let (bobs, stream, _) = followed(
        &bob,
        &other.as_user("bob"),
        "Bob's [[tokens=60 delay_ms=30]]",
    )
    .await;
    until_in_redis(&replicas).await;
    // At a replica that has seen nothing of it.
    erase(&other, "ann").await;
    let left = replicas.redis.everything().await;
    assert!(!left.contains(WORD), "{left}");
    assert_eq!(
        ann.get(&format!("/v1/turns/{turn}/events")).await.status,
        404
    );
    rest(stream).await;
    other
        .as_user("bob")
        .read_turn(&bobs)
        .await
        .assert_complete();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_session_leaves_no_byte_in_redis_and_its_followers_are_told_the_end() {
    let replicas = Replicas::start(2).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    let kept = said(&one).await;
    let session = one.create_session().await;
    for tokens in [3, 2_000] {
        let message = format!("My {WORD} [[tokens={tokens} delay_ms=20]]");
        let turn = one.post_turn(&session, &message).await;
        let mut stream = other.open(&events_of(&turn)).await;
        stream
            .collect_until(LIMIT, |frame| is_event(frame, "message"))
            .await;
        if tokens == 3 {
            rest(stream).await;
            continue;
        }
        // At the replica that does not run it.
        let path = format!("/v1/sessions/{session}");
        let (deleted, told) = tokio::join!(other.delete(&path), rest(stream));
        assert_eq!(deleted.status, 204);
        assert_eq!(told.done().unwrap().data["status"], "cancelled");
    }
    let gone = u64::MAX.to_string();
    for (key, _) in replicas.redis.turns().await {
        let entries = replicas.redis.entries(&key).await;
        assert!(
            key.contains(&kept) || entries.contains(&gone) && !entries.contains("start"),
            "{key}: {entries}"
        );
    }
    one.read_turn(&kept).await.assert_complete();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_is_erased_while_it_runs_elsewhere_writes_nothing_more() {
    let replicas = Replicas::start(2).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    let ann = one.as_user("ann");
    let message = format!("Long {WORD} [[tokens=2000 delay_ms=20]]");
    let turn = ann.post_turn(&ann.create_session().await, &message).await;
    let mut stream = ann.open(&format!("/v1/turns/{turn}/events")).await;
    stream
        .collect_until(LIMIT, |frame| is_event(frame, "message"))
        .await;
    erase(&other, "ann").await;
    for _ in 0..10 {
        for (key, entries) in replicas.redis.turns().await {
            assert_eq!(entries, 1, "{key} holds nothing but that it is gone");
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let left = replicas.redis.everything().await;
    assert!(!left.contains(WORD), "{left}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_that_finds_redis_hanging_is_made_up_for_when_it_answers() {
    let replicas = Replicas::start(2).await;
    let (one, other) = (replicas.client(0), replicas.client(1));
    said(&one.as_user("ann")).await;
    until_in_redis(&replicas).await;
    replicas.redis.pause();
    erase(&other, "ann").await;
    let told = other_log(&replicas);
    assert!(
        told.contains("could not be removed from Redis yet"),
        "{told}"
    );
    // It still holds everything when it wakes.
    replicas.redis.go_on();
    until_events_are(&other, "ok").await;
    wait::until("nothing of the user to be in Redis", LIMIT, || async {
        (!replicas.redis.everything().await.contains(WORD)).then_some(())
    })
    .await;
}

fn other_log(replicas: &Replicas) -> String {
    replicas.servers[1].log().text()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_erases_what_redis_holds_too() {
    let replicas = Replicas::start(1).await;
    said(&replicas.client(0).as_user("ann")).await;
    until_in_redis(&replicas).await;
    let mut settings = replicas.servers[0].settings().clone();
    settings.remove("TIDEMARK_LISTEN");
    let output = command(&settings)
        .args(["erase", "ann"])
        .stderr(Stdio::piped())
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let left = replicas.redis.everything().await;
    assert!(!left.contains(WORD), "{left}");
}
