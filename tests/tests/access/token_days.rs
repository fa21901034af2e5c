//! Limits of the tokens that each tenant, key and user may use in a day.

use std::time::Duration;

use chrono::DateTime;
use serde_json::json;
use tidemark_tests::answer::Answer;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::keys::{client_of, keyed};
use tidemark_tests::model::Model;
use tidemark_tests::paths::{chat_stream, is_event, turns_of};
use tidemark_tests::server::Setup;

each_store!(
    who_has_used_the_tokens_of_the_day_starts_no_turn_and_keeps_those_that_are_there,
    keys_and_tenants_have_tokens_of_their_own,
    an_answer_that_is_cancelled_costs_what_was_said_of_it,
);

/// A question whose answer costs 16 tokens, by what the model reports.
const SIXTEEN: &str = "Five words [[tokens=5]]";

/// Fails unless the answer refuses for the tokens of the day of those.
fn refused(answer: &Answer, whose: &str) {
    assert_eq!(answer.expect_problem(429), "too_many_tokens");
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("this {whose} ")), "{detail}");
    let wait: i64 = answer.header("retry-after").parse().expect("whole seconds");
    // The clock of the answer's date ticks in seconds.
    let said = DateTime::parse_from_rfc2822(answer.header("date")).expect("a date");
    let midnight = (said.timestamp() + wait).rem_euclid(86_400);
    assert!(midnight <= 2 || midnight >= 86_398, "{said}, {wait} s");
}

/// Has a turn answered.
async fn answered(client: &Client) {
    let session = client.create_session().await;
    let turn = client.ask(&session, SIXTEEN).await;
    assert_eq!(turn["status"], "completed");
    let usage = &turn["usage"];
    let tokens =
        usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
    assert_eq!(tokens, 16, "{usage}");
}

async fn try_turn(client: &Client) -> Answer {
    let session = client.create_session().await;
    client
        .post(&turns_of(&session), &json!({"message": SIXTEEN}))
        .await
}

async fn who_has_used_the_tokens_of_the_day_starts_no_turn_and_keeps_those_that_are_there(
    store: Store,
) {
    let model = Model::start().await;
    let server = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_LIMITS__USER_TOKENS_PER_DAY", "32")
        .start()
        .await;
    let (ada, bob) = (
        server.client().as_user("ada"),
        server.client().as_user("bob"),
    );
    let session = ada.create_session().await;
    let body = json!({"message": SIXTEEN});
    let first = ada.post_once("k", &turns_of(&session), &body).await;
    let first = first.expect(202)["turn_id"].clone();
    ada.finished(first.as_str().unwrap()).await;
    let path = chat_stream(SIXTEEN, None, Some("r-1"));
    ada.read_to_end(&path).await;

    refused(&try_turn(&ada).await, "user");
    refused(
        &ada.get(&chat_stream("New", None, Some("r-2"))).await,
        "user",
    );
    answered(&bob).await;
    // What is there is read, repeated and followed as ever.
    let again = ada.post_once("k", &turns_of(&session), &body).await;
    assert_eq!(again.expect(202)["turn_id"], first);
    let frames = ada
        .open(&path)
        .await
        .collect_until(Duration::from_secs(20), |frame| is_event(frame, "done"))
        .await;
    assert!(
        frames
            .iter()
            .any(|arrived| is_event(&arrived.frame, "done"))
    );
    assert_eq!(ada.history(&session).await.len(), 2);
    let metrics = ada.get("/metrics").await.text;
    let counted = "tidemark_limited_total{limit=\"user_tokens_per_day\"} 2";
    assert!(metrics.contains(counted), "{metrics}");
    assert!(model.requests_about("New").is_empty());
    if store != Store::Sqlite {
        let replica = server.start_another().await;
        refused(&try_turn(&replica.client().as_user("ada")).await, "user");
    }
}

async fn keys_and_tenants_have_tokens_of_their_own(store: Store) {
    let model = Model::start().await;
    let server = keyed(store)
        .model(&model)
        .with("TIDEMARK_LIMITS__KEY_TOKENS_PER_DAY", "30")
        .with("TIDEMARK_LIMITS__TENANT_TOKENS_PER_DAY", "60")
        .start()
        .await;
    let first = client_of(&server, "acme", "chat,admin").await;
    let second = client_of(&server, "acme", "chat").await;
    let other = client_of(&server, "globex", "chat").await;
    for user in ["ada", "bob"] {
        answered(&first.as_user(user)).await;
    }
    refused(&try_turn(&first.as_user("eve")).await, "key");
    answered(&second.as_user("ada")).await;
    // 48 are used; with a user's end none of them is given back.
    let erased = first.delete("/v1/users/ada").await;
    assert_eq!(erased.status, 200, "{}", erased.text);
    refused(&try_turn(&first.as_user("eve")).await, "key");
    answered(&second.as_user("ada")).await;
    let third = client_of(&server, "acme", "chat").await;
    refused(&try_turn(&third).await, "tenant");
    answered(&other).await;
}

async fn an_answer_that_is_cancelled_costs_what_was_said_of_it(store: Store) {
    let model = Model::start().await;
    let server = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_LIMITS__USER_TOKENS_PER_DAY", "12")
        .start()
        .await;
    let client = server.client();
    let path = chat_stream("Long [[tokens=400 delay_ms=50]]", None, None);
    let mut stream = client.open(&path).await;
    let frames = stream
        .collect_until(Duration::from_secs(20), |frame| is_event(frame, "message"))
        .await;
    let read = tidemark_tests::events::Reading::of(&frames);
    let turn = read.events[0].data["turn_id"].as_str().unwrap().to_owned();
    client
        .post(&format!("/v1/turns/{turn}/cancel"), &json!({}))
        .await
        .expect(200);
    let turn = client.finished(&turn).await;
    assert_eq!(turn["status"], "cancelled");
    assert_eq!(turn["usage"]["estimated"], true, "{turn}");
    refused(&try_turn(&client).await, "user");
}
