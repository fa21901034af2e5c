//! A model's facts become memory with the messages behind them; a model that is slow, wrong or gone loses nothing (B4, B6, A13).

use std::time::Duration;

use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::directives::Behaviour;
use tidemark_tests::each_store;
use tidemark_tests::model::Model;
use tidemark_tests::paths::{id_of, messages_of};
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::wait::until;

each_store!(
    what_a_model_extracts_is_recalled_with_the_messages_behind_it,
    an_answer_that_breaks_the_form_is_mended_once,
    an_answer_that_stays_bad_loses_nothing_and_is_asked_for_again,
    what_nobody_said_is_not_stored,
    a_model_that_is_gone_holds_nothing_up,
    a_slow_extraction_loses_nothing_of_what_happens_meanwhile,
    what_is_taken_back_during_an_extraction_is_not_learned,
    a_server_that_dies_during_an_extraction_extracts_again_and_stores_once,
    a_slow_extraction_keeps_no_other_work_waiting,
    a_quiet_session_is_consolidated_below_the_threshold,
);

const LIMIT: Duration = Duration::from_secs(40);
/// What is said; no rule makes a statement of the first sentence.
const SAID: &str = "The crew heard that crate 77 goes to Bergen by ship, not by train. I prefer answers as tables.";
const READ: &str = "Crate 77 goes to Bergen by ship";

async fn start(store: Store) -> (Server, Model, Client) {
    let model = Model::start().await;
    let setup = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_MODEL__SMALL_NAME", "small")
        .with("TIDEMARK_EXTRACTION__RETRY_SECONDS", "1")
        .with("TIDEMARK_LEARNING__THRESHOLD", "4");
    let server = setup.start().await;
    let client = server.client();
    (server, model, client)
}

fn fact(content: &str, evidence: &[i64]) -> Value {
    json!({
        "content": content, "kind": "fact", "scope": "project_context", "key": "crate_77_route", "importance": 4,
        "evidence": evidence, "valid_from": null, "expires_at": null, "negated": false,
    })
}

fn saying(text: &str) -> Behaviour {
    Behaviour {
        text: Some(text.to_owned()),
        ..Behaviour::default()
    }
}

fn facts(facts: &[Value]) -> Behaviour {
    saying(&json!({ "facts": facts }).to_string())
}

fn slowly(millis: u64, behaviour: Behaviour) -> Behaviour {
    Behaviour {
        first: Duration::from_millis(millis),
        ..behaviour
    }
}

/// Two turns, after which the session is due.
async fn due_session(client: &Client) -> String {
    let session = client.create_session().await;
    client.ask(&session, SAID).await;
    client
        .ask(&session, "The quay is wet today. [[text=Noted.]]")
        .await;
    session
}

async fn boundary(client: &Client, session: &str) -> i64 {
    let page = client.get(&messages_of(session)).await.expect(200);
    page["last_consolidated"].as_i64().expect("a boundary")
}

async fn until_boundary(client: &Client, session: &str, at_least: i64) -> i64 {
    until("the boundary to move", LIMIT, || async {
        let now = boundary(client, session).await;
        (now >= at_least).then_some(now)
    })
    .await
}

async fn until_asked(model: &Model, times: usize) {
    until("the model to be asked for facts", LIMIT, || async {
        (model.extractions().len() >= times).then_some(())
    })
    .await;
}

/// The memories of this layer that hold `part`.
async fn holding(client: &Client, layer: &str, part: &str) -> Vec<Value> {
    let all = client.all(&format!("/v1/memories?layer={layer}")).await;
    all.into_iter()
        .filter(|memory| memory["content"].as_str().unwrap().contains(part))
        .collect()
}

/// What rules and chunks keep of [`SAID`], whatever a model does.
async fn assert_kept(client: &Client) {
    assert_eq!(
        holding(client, "semantic", "answers as tables").await.len(),
        1
    );
    assert_eq!(holding(client, "episodic", "crate 77").await.len(), 1);
}

async fn what_a_model_extracts_is_recalled_with_the_messages_behind_it(store: Store) {
    let (_server, model, client) = start(store).await;
    model.extraction(
        "crate 77",
        [facts(&[
            fact(READ, &[1]),
            fact("User heard of crate 77", &[1, 2]),
        ])],
    );
    let session = due_session(&client).await;
    until_boundary(&client, &session, 4).await;
    let learned = holding(&client, "semantic", READ).await;
    assert_eq!(learned.len(), 1, "{learned:?}");
    let message = &client.history(&session).await[0];
    assert_eq!(
        learned[0]["sources"],
        json!([{ "message_id": message["id"], "session_id": session, "seq": 1 }])
    );
    assert_eq!(
        (&learned[0]["key"], &learned[0]["importance"]),
        (&"crate_77_route".into(), &4.into())
    );
    assert_eq!(learned[0]["trust"], 1.0);
    let told = holding(&client, "semantic", "heard of").await;
    assert!(
        told[0]["trust"].as_f64().unwrap() < 1.0,
        "the model's own words are among its messages: {told:?}"
    );
    assert_kept(&client).await;
    let found = client.recall("How does crate 77 get to Bergen?").await;
    assert!(
        found.iter().any(|m| id_of(m) == id_of(&learned[0])),
        "{found:?}"
    );

    let asked = &model.extractions()[0];
    assert_eq!(
        (&asked.body["model"], &asked.body["temperature"]),
        (&"small".into(), &0.0.into())
    );
    assert_eq!(asked.body["response_format"]["json_schema"]["strict"], true);
    client.until_no_jobs().await;
    assert_eq!(model.extractions().len(), 1, "one call a batch");
    model.assert_every_transcript_was_valid();
}

async fn an_answer_that_breaks_the_form_is_mended_once(store: Store) {
    let (_server, model, client) = start(store).await;
    let mut wrong = fact(READ, &[1]);
    wrong["kind"] = "opinion".into();
    model.extraction("crate 77", [facts(&[wrong]), facts(&[fact(READ, &[1])])]);
    let session = due_session(&client).await;
    until_boundary(&client, &session, 4).await;
    assert_eq!(holding(&client, "semantic", READ).await.len(), 1);
    let asked = model.extractions();
    assert_eq!(asked.len(), 2);
    let second = asked[1].messages();
    assert_eq!(second[2]["role"], "assistant");
    assert!(second[2]["content"].as_str().unwrap().contains("opinion"));
    let objection = second[3]["content"].as_str().unwrap();
    assert!(
        objection.contains("facts[0]") && objection.contains("kind"),
        "{objection}"
    );
    client.until_no_jobs().await;
    assert_eq!(model.extractions().len(), 2);
}

async fn an_answer_that_stays_bad_loses_nothing_and_is_asked_for_again(store: Store) {
    let (_server, model, client) = start(store).await;
    let bad = [
        saying("I found nothing of interest."),
        saying("{\"facts\": ["),
    ];
    model.extraction("crate 77", bad);
    let session = due_session(&client).await;
    until_boundary(&client, &session, 4).await;
    assert_kept(&client).await;
    assert_eq!(
        holding(&client, "semantic", READ).await,
        Vec::<Value>::new()
    );
    let jobs = client.all("/v1/jobs").await;
    let job = jobs.iter().find(|job| job["kind"] == "extract");
    let job = job.unwrap_or_else(|| panic!("no pending extraction among {jobs:?}"));
    let error = job["last_error"].as_str().unwrap();
    assert!(
        error.contains("form") && !error.contains("interest"),
        "{error}"
    );
    until_asked(&model, 4).await;
    model.extraction("crate 77", [facts(&[fact(READ, &[1])])]);
    client.until_no_jobs().await;
    assert_eq!(holding(&client, "semantic", READ).await.len(), 1);
    assert_eq!(client.all("/v1/jobs").await, Vec::<Value>::new());
    assert_kept(&client).await;
}

async fn what_nobody_said_is_not_stored(store: Store) {
    let (_server, model, client) = start(store).await;
    model.extraction(
        "crate 77",
        [facts(&[
            fact(READ, &[1]),
            fact("Crate 78 goes to Bergen by ship", &[1]),
            fact("Crate 77 belongs to Initech", &[1]),
            fact("The quay is wet today", &[1]),
            fact("The quay is wet", &[9]),
            fact("The harbour was sold last year", &[]),
        ])],
    );
    let session = due_session(&client).await;
    until_boundary(&client, &session, 4).await;
    client.until_no_jobs().await;
    let learned = client.all("/v1/memories?layer=semantic").await;
    let mut contents: Vec<&str> = learned
        .iter()
        .map(|m| m["content"].as_str().unwrap())
        .collect();
    contents.sort_unstable();
    assert_eq!(contents, [READ, "I prefer answers as tables"]);
    assert_eq!(
        model.extractions().len(),
        2,
        "it was shown what does not hold, once"
    );
}

async fn a_model_that_is_gone_holds_nothing_up(store: Store) {
    let (_server, model, client) = start(store).await;
    let gone = Behaviour {
        error_status: Some(400),
        ..Behaviour::default()
    };
    model.extraction("crate 77", [gone]);
    let session = due_session(&client).await;
    until_boundary(&client, &session, 4).await;
    assert_kept(&client).await;
    model.extraction("crate 77", [facts(&[fact(READ, &[1])])]);
    client.until_no_jobs().await;
    assert_eq!(holding(&client, "semantic", READ).await.len(), 1);
}

async fn a_slow_extraction_loses_nothing_of_what_happens_meanwhile(store: Store) {
    let (_server, model, client) = start(store).await;
    model.extraction(
        "crate 77",
        [slowly(
            3_000,
            facts(&[fact(READ, &[1]), fact("The quay is wet today", &[3])]),
        )],
    );
    let session = due_session(&client).await;
    until_asked(&model, 1).await;
    // While the model thinks: more is said here and elsewhere, a memory is given, one is forgotten, another branch is replaced.
    client.ask(&session, "My dentist is on Elm Street.").await;
    let other = client.create_session().await;
    let replaced = client.ask(&other, "I like coffee.").await;
    let body = json!({ "message": "I like tea.", "replaces": id_of(&replaced) });
    client.ask_with(&other, body).await;
    let given = json!({ "content": "The gate code changes on Mondays" });
    let given = id_of(&client.post("/v1/memories", &given).await.expect(201));
    let wet = until("the chunk", LIMIT, || async {
        holding(&client, "episodic", "quay is wet").await.pop()
    })
    .await;
    assert_eq!(
        client
            .delete(&format!("/v1/memories/{}", id_of(&wet)))
            .await
            .status,
        204
    );
    assert_eq!(
        boundary(&client, &session).await,
        0,
        "the model is still thinking"
    );

    assert_eq!(until_boundary(&client, &session, 4).await, 4);
    client.until_no_jobs().await;
    assert_eq!(model.extractions().len(), 1, "what it read has not moved");
    assert_eq!(holding(&client, "semantic", READ).await.len(), 1);
    assert_kept(&client).await;
    for layer in ["semantic", "episodic"] {
        assert_eq!(
            holding(&client, layer, "quay").await,
            Vec::<Value>::new(),
            "it was forgotten"
        );
        assert_eq!(
            holding(&client, layer, "coffee").await,
            Vec::<Value>::new(),
            "it was replaced"
        );
    }
    assert_eq!(holding(&client, "episodic", "dentist").await.len(), 1);
    assert_eq!(holding(&client, "episodic", "like tea").await.len(), 1);
    assert_eq!(
        client.get(&format!("/v1/memories/{given}")).await.status,
        200
    );
    assert_eq!(client.history(&session).await.len(), 6);
    // The rest of the session goes on from the boundary.
    client
        .ask(&session, "And one more thing: the ferry is late.")
        .await;
    until_boundary(&client, &session, 8).await;
    let second = model.extractions()[1].prompt();
    assert!(
        second.contains("dentist") && !second.contains("crate 77 goes"),
        "{second}"
    );
    assert!(
        second.contains("crate_77_route"),
        "the model is told which keys are in use: {second}"
    );
}

async fn what_is_taken_back_during_an_extraction_is_not_learned(store: Store) {
    let (_server, model, client) = start(store).await;
    let reading = |weather| facts(&[fact(READ, &[1]), fact(weather, &[3])]);
    model.extraction(
        "crate 77",
        [
            slowly(2_000, reading("The quay is wet today")),
            slowly(2_000, reading("The quay is dry today")),
        ],
    );
    let session = client.create_session().await;
    client.ask(&session, SAID).await;
    let last = client
        .ask(&session, "The quay is wet today. [[text=Noted.]]")
        .await;
    until_asked(&model, 1).await;
    let body =
        json!({ "message": "The quay is dry today. [[text=Noted.]]", "replaces": id_of(&last) });
    client.ask_with(&session, body).await;
    until_boundary(&client, &session, 4).await;
    client.until_no_jobs().await;
    assert_eq!(holding(&client, "semantic", READ).await.len(), 1);
    assert_eq!(
        holding(&client, "semantic", "wet").await,
        Vec::<Value>::new()
    );
    assert_eq!(holding(&client, "semantic", "quay is dry").await.len(), 1);

    let asked = model.extractions().len();
    let doomed = due_session(&client).await;
    until_asked(&model, asked + 1).await;
    let learned_before = client.all("/v1/memories?layer=semantic").await;
    assert_eq!(
        client
            .delete(&format!("/v1/sessions/{doomed}"))
            .await
            .status,
        204
    );
    client.until_no_jobs().await;
    model.until_idle().await;
    assert_eq!(
        client.all("/v1/memories?layer=semantic").await,
        learned_before
    );
}

async fn a_server_that_dies_during_an_extraction_extracts_again_and_stores_once(store: Store) {
    let model = Model::start().await;
    let setup = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_LEARNING__LEASE_SECONDS", "2")
        .with("TIDEMARK_LEARNING__THRESHOLD", "4");
    let mut server = setup.start().await;
    model.extraction(
        "crate 77",
        [slowly(60_000, facts(&[])), facts(&[fact(READ, &[1])])],
    );
    let session = due_session(&server.client()).await;
    until_asked(&model, 1).await;
    server.kill().await;
    server.start_again().await;
    let client = server.client();
    until_boundary(&client, &session, 4).await;
    client.until_no_jobs().await;
    assert_eq!(holding(&client, "semantic", READ).await.len(), 1);
    assert_kept(&client).await;
    assert_eq!(model.extractions().len(), 2);
}

async fn a_slow_extraction_keeps_no_other_work_waiting(store: Store) {
    let (_server, model, client) = start(store).await;
    model.extraction("crate 77", [slowly(20_000, facts(&[]))]);
    for _ in 0..4 {
        due_session(&client).await;
    }
    until_asked(&model, 1).await;
    let session = client.create_session().await;
    client.ask(&session, "My dentist is on Elm Street.").await;
    until(
        "the message to be indexed",
        Duration::from_secs(10),
        || async { holding(&client, "episodic", "dentist").await.pop() },
    )
    .await;
    assert!(model.in_flight() > 0, "the model is still thinking");
}

async fn a_quiet_session_is_consolidated_below_the_threshold(store: Store) {
    let model = Model::start().await;
    let setup = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_LEARNING__INTERVAL_SECONDS", "2");
    let server = setup.start().await;
    let client = server.client();
    model.extraction("crate 77", [facts(&[fact(READ, &[1])])]);
    let session = client.create_session().await;
    client.ask(&session, SAID).await;
    client.until_no_jobs().await;
    assert_eq!(boundary(&client, &session).await, 0);
    assert_eq!(until_boundary(&client, &session, 1).await, 2);
    assert_eq!(holding(&client, "semantic", READ).await.len(), 1);
    client.until_no_jobs().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(client.all("/v1/jobs").await, Vec::<Value>::new());
    assert_eq!(model.extractions().len(), 1, "it is consolidated once");
}
