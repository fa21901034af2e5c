//! A cross-encoder's second opinion: it changes the order of what is told and nothing else, and is not missed when it does not come.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::model::Model;
use tidemark_tests::rerank::{Answering, Reranker};
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::wait::until;

each_store!(
    the_order_is_that_of_both_judgements_and_the_scores_stay_on_their_places,
    a_reranker_that_fails_in_any_way_takes_nothing_away_and_is_told,
    a_turn_is_shown_what_the_reranker_prefers,
    who_waits_for_the_reranker_keeps_no_connection_from_others,
);

/// All answer "Which colour …": the less of its words, the later.
const MEMORIES: [&str; 4] = [
    "Which colour the harbour gate has: the harbour gate is green",
    "The harbour gate has a new colour since May",
    "The gate of the harbour opens at dawn",
    "A gate was sold",
];
const QUESTION: &str = "Which colour has the harbour gate?";
/// Words that only the last of them holds.
const LAST: &str = "was sold";

fn with(store: Store, reranker: &Reranker) -> Setup {
    Setup::on(store)
        .with("TIDEMARK_RERANKER__URL", reranker.url())
        .with("TIDEMARK_RERANKER__TIMEOUT_MS", "1000")
}

async fn remember(client: &Client) {
    for content in MEMORIES {
        let body = json!({"content": content, "kind": "fact"});
        client.post("/v1/memories", &body).await.expect(201);
    }
}

async fn recall(client: &Client) -> Value {
    let body = json!({"query": QUESTION, "explain": true, "top_k": 4});
    client.post("/v1/memories/recall", &body).await.expect(200)
}

fn field(found: &Value, of: impl Fn(&Value) -> Value) -> Vec<Value> {
    found["items"].as_array().unwrap().iter().map(of).collect()
}

fn contents(found: &Value) -> Vec<Value> {
    field(found, |item| item["memory"]["content"].clone())
}

async fn rerank_metric(client: &Client, outcome: &str) -> f64 {
    let metrics = client.get("/metrics").await.text;
    let name = format!("tidemark_reranks_total{{outcome=\"{outcome}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0.0, |number| number.parse().unwrap())
}

async fn the_order_is_that_of_both_judgements_and_the_scores_stay_on_their_places(store: Store) {
    let reranker = Reranker::start(Answering::Status(503)).await;
    let server = with(store, &reranker)
        .with("TIDEMARK_RERANKER__API_KEY", "sk-tide")
        .start()
        .await;
    let client = server.client();
    remember(&client).await;
    let without = recall(&client).await;
    let ours = contents(&without);
    assert_eq!(ours.len(), 4, "{without}");
    assert_eq!(ours[3], MEMORIES[3], "{without}");

    for (asked, answering) in [
        ("documents", Answering::Documents(LAST.to_owned())),
        ("texts", Answering::Texts(LAST.to_owned())),
    ] {
        reranker.answer(answering);
        let found = recall(&client).await;
        let expected = [&ours[3], &ours[0], &ours[1], &ours[2]];
        assert_eq!(
            contents(&found).iter().collect::<Vec<_>>(),
            expected,
            "{found}"
        );
        assert_eq!(
            field(&found, |item| item["score"].clone()),
            field(&without, |item| item["score"].clone())
        );
        let first = &found["items"][0]["parts"];
        assert!(first["rerank"].as_f64().unwrap() > 0.0, "{first}");
        assert!(first["rerank_score"].is_number(), "{first}");
        assert_eq!(found["degraded"], json!([]));
        let request = reranker.requests().pop().unwrap();
        assert_eq!(request["query"], QUESTION);
        let sent: Vec<&Value> = request[asked].as_array().unwrap().iter().collect();
        assert_eq!(sent, ours.iter().collect::<Vec<_>>());
    }
    assert!(
        reranker
            .authorizations()
            .iter()
            .all(|header| header == "Bearer sk-tide")
    );
    assert!(!reranker.authorizations().is_empty());

    // What the memory does not answer is not told, whatever the reranker thinks of it, and it is not even asked.
    let asked = reranker.requests().len();
    let body = json!({"query": "Who sold violins in Lisbon to the conductor?"});
    let silent = client.post("/v1/memories/recall", &body).await.expect(200);
    assert_eq!(silent["abstained"], true, "{silent}");
    assert_eq!(reranker.requests().len(), asked);
    // The other profiles are exact formulas.
    let body = json!({"query": QUESTION, "profile": "decay"});
    client.post("/v1/memories/recall", &body).await.expect(200);
    assert_eq!(reranker.requests().len(), asked);
    assert!((rerank_metric(&client, "done").await - 2.0).abs() < f64::EPSILON);
    assert_quiet(&server);
}

/// The log names neither question, memory nor key.
fn assert_quiet(server: &Server) {
    let log = server.log().text();
    for told in ["harbour", "sold", "sk-tide"] {
        assert!(!log.contains(told), "{told}: {log}");
    }
}

async fn a_reranker_that_fails_in_any_way_takes_nothing_away_and_is_told(store: Store) {
    let reranker = Reranker::start(Answering::Documents(String::new())).await;
    let server = with(store, &reranker).start().await;
    let client = server.client();
    remember(&client).await;
    let ours = contents(&recall(&client).await);
    assert_eq!(ours.len(), 4);
    for answering in [
        Answering::Status(401),
        Answering::Status(429),
        Answering::Status(500),
        Answering::Body("<html>sold</html>".to_owned()),
        Answering::Body(r#"{"results":[{"index":0,"relevance_score":1.0}]}"#.to_owned()),
        Answering::Body(r#"[{"index":9,"score":1},{"index":1,"score":1},{"index":2,"score":1},{"index":3,"score":1}]"#.to_owned()),
        Answering::Body("[".repeat(4 << 20)),
        Answering::Late(Duration::from_secs(30)),
    ] {
        let how = format!("{answering:?}").chars().take(80).collect::<String>();
        reranker.answer(answering);
        let began = Instant::now();
        let found = recall(&client).await;
        assert!(began.elapsed() < Duration::from_secs(10), "{how}");
        assert_eq!(contents(&found), ours, "{how}");
        assert_eq!(found["degraded"], json!(["rerank"]), "{how}");
        client.get("/readyz").await.expect(200);
    }
    assert!(rerank_metric(&client, "protocol").await >= 4.0);
    assert!(rerank_metric(&client, "refused").await >= 1.0);
    drop(reranker);
    for _ in 0..8 {
        assert_eq!(contents(&recall(&client).await), ours);
    }
    // After some failures it is left alone for a while: nobody waits for it.
    let began = Instant::now();
    assert_eq!(contents(&recall(&client).await), ours);
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert!(rerank_metric(&client, "unavailable").await >= 10.0);
    assert_quiet(&server);
}

async fn a_turn_is_shown_what_the_reranker_prefers(store: Store) {
    let reranker = Reranker::start(Answering::Documents(LAST.to_owned())).await;
    let model = Model::start().await;
    let server = with(store, &reranker).model(&model).start().await;
    let client = server.client();
    remember(&client).await;
    let turn = client.ask(&client.create_session().await, QUESTION).await;
    assert_eq!(turn["status"], "completed");
    let prompt = model.prompt_about(QUESTION);
    let place = |part: &str| {
        prompt
            .find(part)
            .unwrap_or_else(|| panic!("{part}: {prompt}"))
    };
    assert!(place(LAST) < place("green"), "{prompt}");
}

async fn who_waits_for_the_reranker_keeps_no_connection_from_others(store: Store) {
    let reranker = Reranker::start(Answering::Late(Duration::from_mins(5))).await;
    let server = with(store, &reranker)
        .with("TIDEMARK_STORE__MAX_CONNECTIONS", "2")
        .with("TIDEMARK_RECALL__TIMEOUT_SECONDS", "60")
        .with("TIDEMARK_RERANKER__TIMEOUT_MS", "10000")
        .start()
        .await;
    let client = server.client();
    remember(&client).await;
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { recall(&client).await })
        })
        .collect();
    until(
        "the reranker to be asked",
        Duration::from_secs(8),
        || async { (reranker.requests().len() >= 4).then_some(()) },
    )
    .await;
    let body = json!({"content": "The quay is wet"});
    client.post("/v1/memories", &body).await.expect(201);
    assert!(waiting.iter().all(|recall| !recall.is_finished()));
    for recall in waiting {
        assert_eq!(recall.await.unwrap()["degraded"], json!(["rerank"]));
    }
}
