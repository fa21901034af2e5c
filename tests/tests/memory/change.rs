//! A fact that changes: only what holds is told, on whatever path it came, and what held is known as of then (B13).

use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::directives::Behaviour;
use tidemark_tests::each_store;
use tidemark_tests::model::Model;
use tidemark_tests::paths::{id_of, messages_of};
use tidemark_tests::server::{Server, Setup, with_model};

each_store!(
    of_three_values_the_newest_alone_is_told_on_every_path,
    of_three_values_the_newest_alone_is_told_on_paths_that_are_mixed,
    what_a_model_alone_finds_changes_like_what_rules_find,
    what_is_said_beside_a_fact_that_has_changed_is_told_further,
    what_was_said_is_told_again_when_what_ended_its_fact_is_undone,
    each_value_is_told_as_of_its_time,
    what_is_imported_late_takes_no_newer_values_place,
    a_wish_that_is_taken_back_is_in_no_prompt_any_more,
);

const QUESTION: &str = "What is our budget? 我们的预算是多少？";
const VALUES: [&str; 3] = ["300k", "400k", "500k"];

/// The ways that a fact can take into memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Path {
    /// In a turn: told at once, and indexed later.
    Said,
    /// In a turn whose session is consolidated, with rules alone.
    Consolidated,
    /// The same, and a model finds it too.
    Extracted,
    /// The same, in words that no rule knows: the model alone finds it.
    ExtractedFromFreeWords,
    Given,
    GivenWithKey,
    Imported,
    /// The memory of the value before is given another content.
    Edited,
}

const PATHS: [Path; 8] = [
    Path::Said,
    Path::Consolidated,
    Path::Extracted,
    Path::ExtractedFromFreeWords,
    Path::Given,
    Path::GivenWithKey,
    Path::Imported,
    Path::Edited,
];

async fn start(store: Store, paths: &[Path]) -> (Server, Model, Client) {
    let model = Model::start().await;
    let mut setup = Setup::on(store).model(&model);
    let consolidated = [
        Path::Consolidated,
        Path::Extracted,
        Path::ExtractedFromFreeWords,
    ];
    if consolidated.iter().any(|path| paths.contains(path)) {
        setup = setup.with("TIDEMARK_LEARNING__THRESHOLD", "2");
    }
    let server = setup.start().await;
    let client = server.client();
    (server, model, client)
}

async fn say(client: &Client, text: &str) {
    let session = client.create_session().await;
    assert_eq!(client.ask(&session, text).await["status"], "completed");
}

/// The memories of a layer that hold the value and are current.
async fn current(client: &Client, layer: &str, value: &str) -> Vec<Value> {
    let mut all = client.all(&format!("/v1/memories?layer={layer}")).await;
    all.retain(|m| m["state"] == "current" && m["content"].as_str().unwrap().contains(value));
    all
}

/// What a model finds in a message that says what the budget is.
fn budget_fact(value: &str) -> Behaviour {
    let fact = json!({
        "content": format!("The budget is {value}"), "kind": "fact", "scope": "project_context", "key": "budget", "importance": 5,
        "evidence": [1], "valid_from": null, "expires_at": null, "negated": false,
    });
    Behaviour {
        text: Some(json!({ "facts": [fact] }).to_string()),
        ..Behaviour::default()
    }
}

/// Tells the value of that day on a path.
async fn tell(client: &Client, model: &Model, path: Path, day: usize) {
    let value = VALUES[day];
    let text = match day {
        0 => format!("Our budget is {value}."),
        1 => format!("We raised the budget to {value}."),
        _ => format!("预算现在改成{value}。"),
    };
    match path {
        Path::Said => say(client, &text).await,
        Path::Consolidated => {
            say(client, &text).await;
            client.until_no_jobs().await;
            let learned = current(client, "semantic", value).await;
            assert_eq!(learned.len(), 1, "{value} is consolidated: {learned:?}");
        }
        Path::Extracted => {
            model.extraction(value, [budget_fact(value)]);
            say(client, &text).await;
            client.until_no_jobs().await;
            let learned = current(client, "semantic", value).await;
            assert_eq!(learned.len(), 1, "{value} is extracted: {learned:?}");
            assert_eq!(learned[0]["importance"], 5, "by the model: {learned:?}");
        }
        Path::ExtractedFromFreeWords => {
            let text = format!("Finance has agreed to {value} as the budget for us.");
            model.extraction(value, [budget_fact(value)]);
            say(client, &text).await;
            client.until_no_jobs().await;
            let learned = current(client, "semantic", value).await;
            assert_eq!(learned.len(), 1, "{value} is extracted: {learned:?}");
            let chunks = current(client, "episodic", value).await;
            let said = chunks.iter().find(|chunk| chunk["content"] == text);
            assert!(
                said.is_some_and(|chunk| chunk["key"].is_null()),
                "{chunks:?}"
            );
        }
        Path::Given => {
            let body = json!({"content": text});
            client.post("/v1/memories", &body).await.expect(201);
        }
        Path::GivenWithKey => {
            let body = json!({"content": format!("The team has {value} to spend as its budget"), "key": "budget"});
            client.post("/v1/memories", &body).await.expect(201);
        }
        Path::Imported => {
            let session = client.post("/v1/sessions", &json!({})).await.expect(201);
            let (session, at) = (id_of(&session), &session["created_at"]);
            let body = json!({"messages": [{"role": "user", "content": text, "created_at": at}]});
            client.post(&messages_of(&session), &body).await.expect(201);
        }
        Path::Edited if day == 0 => {
            let body = json!({"content": text});
            client.post("/v1/memories", &body).await.expect(201);
        }
        Path::Edited => {
            let before = &client.recall(QUESTION).await[0];
            let memory = format!("/v1/memories/{}", id_of(before));
            client
                .patch(&memory, &json!({"content": text}))
                .await
                .expect(200);
        }
    }
}

/// The server's time.
async fn moment(client: &Client) -> String {
    let session = client.post("/v1/sessions", &json!({})).await.expect(201);
    session["created_at"].as_str().unwrap().to_owned()
}

/// The values that recall tells, and that the prompt of a turn holds.
async fn told(client: &Client, when: &str) -> Vec<&'static str> {
    let recalled = format!("{:?}", client.recall(QUESTION).await);
    let values: Vec<&str> = VALUES
        .into_iter()
        .filter(|value| recalled.contains(value))
        .collect();
    assert!(values.len() <= 1, "{when}: {recalled}");
    values
}

async fn change_on(store: Store, paths: [Path; 3]) {
    let (_server, model, client) = start(store, &paths).await;
    let mut times = Vec::new();
    for (day, (path, value)) in paths.into_iter().zip(VALUES).enumerate() {
        tell(&client, &model, path, day).await;
        let at_once = format!("{paths:?}, {value} at once");
        assert_eq!(told(&client, &at_once).await, [value], "{at_once}");
        times.push(moment(&client).await);
        if day == 1 {
            client.until_no_jobs().await;
            let indexed = format!("{paths:?}, {value} indexed");
            assert_eq!(told(&client, &indexed).await, [value], "{indexed}");
        }
    }
    let asked = "Please repeat our budget (预算) to me.";
    client.ask(&client.create_session().await, asked).await;
    let prompt = model.prompt_about(asked);
    assert!(prompt.contains("500k"), "{paths:?}: {prompt}");
    for old in ["300k", "400k"] {
        assert!(!prompt.contains(old), "{paths:?}: {prompt}");
    }
    client.until_no_jobs().await;
    assert_eq!(told(&client, "in the end").await, ["500k"], "{paths:?}");
    for (at, value) in times.iter().zip(VALUES) {
        let recalled = recalled_as_of(&client, at).await;
        for other in VALUES {
            let there = recalled.contains(other);
            assert_eq!(
                there,
                other == value,
                "{paths:?}, as of {value}: {recalled}"
            );
        }
    }
}

async fn of_three_values_the_newest_alone_is_told_on_every_path(store: Store) {
    for path in PATHS {
        change_on(store, [path; 3]).await;
    }
}

async fn of_three_values_the_newest_alone_is_told_on_paths_that_are_mixed(store: Store) {
    change_on(store, [Path::Said, Path::Given, Path::Imported]).await;
    change_on(store, [Path::Imported, Path::Said, Path::GivenWithKey]).await;
    change_on(store, [Path::GivenWithKey, Path::Imported, Path::Said]).await;
    change_on(store, [Path::Extracted, Path::Edited, Path::Consolidated]).await;
    change_on(store, [Path::Consolidated, Path::Extracted, Path::Edited]).await;
}

async fn what_a_model_alone_finds_changes_like_what_rules_find(store: Store) {
    let free = Path::ExtractedFromFreeWords;
    change_on(store, [free, Path::Said, free]).await;
    change_on(store, [Path::Imported, free, Path::GivenWithKey]).await;
}

async fn what_is_said_beside_a_fact_that_has_changed_is_told_further(store: Store) {
    let (_server, model, client) = start(store, &[Path::ExtractedFromFreeWords]).await;
    for (value, more) in [("300k", " and Bo will lead"), ("400k", "")] {
        model.extraction(value, [budget_fact(value)]);
        let text = format!("Finance has agreed to {value} as the budget{more}.");
        say(&client, &text).await;
        client.until_no_jobs().await;
    }
    let recalled = format!("{:?}", client.recall(QUESTION).await);
    assert!(
        recalled.contains("Bo will lead") && recalled.contains("400k"),
        "{recalled}"
    );
    assert!(!recalled.contains("The budget is 300k"), "{recalled}");
}

async fn what_was_said_is_told_again_when_what_ended_its_fact_is_undone(store: Store) {
    let (_server, model, client) = start(store, &[Path::ExtractedFromFreeWords]).await;
    tell(&client, &model, Path::ExtractedFromFreeWords, 0).await;
    let body = json!({"content": "The team has 400k to spend as its budget", "key": "budget"});
    client.post("/v1/memories", &body).await.expect(201);
    assert_eq!(told(&client, "changed").await, ["400k"]);
    let chunk = current(&client, "episodic", "300k").await.remove(0);
    let body = json!({"query": QUESTION, "why_not": [chunk["id"]], "explain": true});
    let found = client.post("/v1/memories/recall", &body).await.expect(200);
    assert!(found.to_string().contains("not_current"), "{found}");
    let change = client.get("/v1/changes?limit=1").await.expect(200);
    let revert = format!("/v1/changes/{}/revert", id_of(&change["items"][0]));
    client.post(&revert, &json!({})).await.expect(200);
    let recalled = format!("{:?}", client.recall(QUESTION).await);
    assert!(
        recalled.contains("Finance has agreed to 300k"),
        "{recalled}"
    );
    assert!(!recalled.contains("400k"), "{recalled}");
}

async fn recalled_as_of(client: &Client, at: &str) -> String {
    let body = json!({"query": QUESTION, "as_of": at});
    let found = client.post("/v1/memories/recall", &body).await.expect(200);
    format!("{:?}", found["items"])
}

async fn each_value_is_told_as_of_its_time(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    for (day, value) in VALUES.into_iter().enumerate() {
        let body = json!({
            "content": format!("Our budget is {value}"),
            "valid_from": format!("2024-05-0{}T09:00:00Z", day + 1),
        });
        client.post("/v1/memories", &body).await.expect(201);
    }
    for (day, value) in VALUES.into_iter().enumerate() {
        let at = format!("2024-05-0{}T12:00:00Z", day + 1);
        let recalled = recalled_as_of(&client, &at).await;
        let listed = client.all(&format!("/v1/memories?as_of={at}")).await;
        assert_eq!(listed.len(), 1, "{listed:?}");
        for other in VALUES {
            assert_eq!(recalled.contains(other), other == value, "{at}: {recalled}");
            let content = listed[0]["content"].as_str().unwrap();
            assert_eq!(content.contains(other), other == value, "{at}");
        }
    }
    assert_eq!(
        recalled_as_of(&client, "2024-04-30T12:00:00Z").await,
        "Array []"
    );
    let states: Vec<Value> = client.all("/v1/memories").await;
    let superseded = states.iter().filter(|m| m["state"] == "superseded");
    assert_eq!(superseded.count(), 2);
}

async fn what_is_imported_late_takes_no_newer_values_place(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    client.ask(&session, "Our budget is 500k.").await;
    let old = client.create_session().await;
    let messages = json!({"messages": [
        {"role": "user", "content": "Our budget is 300k.", "created_at": "2024-05-01T09:00:00Z"},
        {"role": "user", "content": "We raised the budget to 400k.", "created_at": "2024-05-02T09:00:00Z"},
    ]});
    client.post(&messages_of(&old), &messages).await.expect(201);
    assert_eq!(told(&client, "at once").await, ["500k"]);
    client.until_no_jobs().await;
    assert_eq!(told(&client, "indexed").await, ["500k"]);
    let then = recalled_as_of(&client, "2024-05-01T12:00:00Z").await;
    assert!(then.contains("300k") && !then.contains("400k"), "{then}");
}

async fn a_wish_that_is_taken_back_is_in_no_prompt_any_more(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let ask = async |message: &str| {
        let session = client.create_session().await;
        client.ask(&session, message).await;
        model.prompt_about(message)
    };
    ask("I prefer answers as tables.").await;
    assert!(ask("How did sales develop?").await.contains("tables"));
    ask("From now on, answer as bullet points.").await;
    let prompt = ask("How deep is the lake?").await;
    assert!(prompt.contains("bullet points"), "{prompt}");
    assert!(!prompt.contains("tables"), "{prompt}");
    client.until_no_jobs().await;
    ask("I no longer prefer bullet points.").await;
    let prompt = ask("How high is the mountain?").await;
    assert!(!prompt.contains("bullet points"), "{prompt}");
    client.until_no_jobs().await;
    let prompt = ask("How long is the river?").await;
    assert!(!prompt.contains("bullet points"), "{prompt}");
}
