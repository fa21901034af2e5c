//! A server that takes no new turns still serves the turns that it has, however they are asked for.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tidemark_tests::answer::Answer;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::model::Model;
use tidemark_tests::paths::{chat_stream, is_event, turns_of};
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::wait::until;

each_store!(
    a_turn_beyond_the_limit_is_refused_until_there_is_room,
    a_turn_that_is_known_by_its_key_is_served_when_no_new_one_is_taken,
);

const LONG: &str = "Long [[tokens=4000 delay_ms=50]]";

async fn with_one_open_session(store: Store) -> (Server, Model, Client) {
    let model = Model::start().await;
    let server = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_LIMITS__OPEN_SESSIONS", "1")
        .start()
        .await;
    let client = server.client();
    (server, model, client)
}

/// The id of a turn that runs, asked for under this `request_id`.
async fn running(client: &Client, session: &str, request_id: &str) -> String {
    let path = chat_stream(LONG, Some(session), Some(request_id));
    let mut stream = client.open(&path).await;
    let frames = stream
        .collect_until(Duration::from_secs(20), |frame| is_event(frame, "message"))
        .await;
    let reading = tidemark_tests::events::Reading::of(&frames);
    reading.events[0].data["turn_id"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Posts as soon as there is room.
async fn post_when_there_is_room(client: &Client, session: &str, key: &str) -> Answer {
    until("room for a turn", Duration::from_secs(20), || async {
        let body = json!({"message": "Short"});
        let answer = client.post_once(key, &turns_of(session), &body).await;
        (answer.status != 503).then_some(answer)
    })
    .await
}

fn assert_refused(answer: &Answer) {
    answer.expect_problem(503);
    let wait: u64 = answer.header("retry-after").parse().expect("Retry-After");
    assert!((1..=60).contains(&wait), "Retry-After: {wait}");
}

async fn a_turn_beyond_the_limit_is_refused_until_there_is_room(store: Store) {
    let (_server, model, client) = with_one_open_session(store).await;
    let (busy, idle) = (client.create_session().await, client.create_session().await);
    let turn = running(&client, &busy, "r-1").await;
    let body = json!({"message": "Refused"});
    assert_refused(&client.post(&turns_of(&idle), &body).await);
    assert_refused(&client.post_once("k-1", &turns_of(&idle), &body).await);
    let stream = chat_stream("Refused", Some(&idle), Some("r-2"));
    assert_refused(&client.get(&stream).await);
    client
        .post(&format!("/v1/turns/{turn}/cancel"), &json!({}))
        .await;
    let taken = post_when_there_is_room(&client, &idle, "k-2")
        .await
        .expect(202);
    let taken = client.finished(taken["turn_id"].as_str().unwrap()).await;
    assert_eq!(taken["status"], "completed");
    assert_eq!(
        client.history(&idle).await.len(),
        2,
        "nothing of the refused"
    );
    assert!(model.requests_about("Refused").is_empty());
}

async fn a_turn_that_is_known_by_its_key_is_served_when_no_new_one_is_taken(store: Store) {
    let (_server, _model, client) = with_one_open_session(store).await;
    let (busy, idle) = (client.create_session().await, client.create_session().await);
    let over = chat_stream("Over", Some(&idle), Some("r-1"));
    let told = client.read_to_end(&over).await;
    told.assert_complete();
    let posted = post_when_there_is_room(&client, &idle, "k-1")
        .await
        .expect(202);
    client.finished(posted["turn_id"].as_str().unwrap()).await;
    let turn = until("room for a turn", Duration::from_secs(20), || async {
        let answer = client
            .request(Method::POST, &turns_of(&busy))
            .header("idempotency-key", "k-2")
            .json(&json!({"message": LONG}));
        let answer = client.send(answer).await;
        (answer.status == 202).then(|| answer.body["turn_id"].as_str().unwrap().to_owned())
    })
    .await;
    client.until_status(&turn, "running").await;
    assert_refused(
        &client
            .post(&turns_of(&idle), &json!({"message": "New"}))
            .await,
    );

    let again = client.read_to_end(&over).await;
    let (end, before) = (again.assert_one_done_last(), told.assert_one_done_last());
    assert_eq!((&end.id, &end.data), (&before.id, &before.data));
    let short = json!({"message": "Short"});
    let again = client.post_once("k-1", &turns_of(&idle), &short).await;
    assert_eq!(again.expect(202)["turn_id"], posted["turn_id"]);
    let again = client
        .post_once("k-2", &turns_of(&busy), &json!({"message": LONG}))
        .await;
    assert_eq!(again.expect(202)["turn_id"], turn.as_str());
    assert_eq!(client.turn(&turn).await["status"], "running");
}
