//! Memories are edited, have a history, and what was done to them is listed and undone as a whole.

use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::model::Model;
use tidemark_tests::paths::{id_of, messages_of};
use tidemark_tests::server::{Setup, with_model};

each_store!(
    an_edited_memory_is_found_by_its_new_words_alone,
    an_edited_fact_ends_what_was_said_of_its_key_and_its_revert_reopens_it,
    an_end_is_final_whatever_is_said_later_and_reverted,
    a_fact_that_is_taken_off_its_key_reopens_nothing_and_its_revert_gives_it_back,
    what_a_fact_said_is_told_as_of_then_until_it_is_forgotten,
    an_edited_chunk_is_not_learned_again_by_the_consolidation_of_its_message,
    an_edit_needs_the_version_it_names,
    unacceptable_edits_name_what_is_wrong,
    a_change_that_was_edited_since_is_undone_last_first,
    an_import_is_undone_as_a_whole,
    a_consolidation_is_listed_with_its_boundary_and_undone,
    what_was_forgotten_is_not_brought_back,
    nothing_of_this_is_another_users,
);

async fn given(client: &Client, content: &str) -> Value {
    let body = json!({"content": content});
    client.post("/v1/memories", &body).await.expect(201)
}

async fn patched(client: &Client, memory: &Value, body: Value) -> Value {
    let path = format!("/v1/memories/{}", id_of(memory));
    client.patch(&path, &body).await.expect(200)
}

async fn history(client: &Client, memory: &Value) -> Value {
    let path = format!("/v1/memories/{}/history", id_of(memory));
    client.get(&path).await.expect(200)
}

async fn newest_change(client: &Client) -> Value {
    let page = client.get("/v1/changes?limit=1").await.expect(200);
    page["items"][0].clone()
}

fn revert_of(change: &Value) -> String {
    format!("/v1/changes/{}/revert", id_of(change))
}

async fn reverted(client: &Client, change: &Value) -> Value {
    client
        .post(&revert_of(change), &json!({}))
        .await
        .expect(200)
}

async fn recalled(client: &Client, query: &str) -> Vec<String> {
    let found = client.recall(query).await;
    let contents = found
        .iter()
        .map(|m| m["content"].as_str().unwrap().to_owned());
    contents.collect()
}

/// The budgets that are told.
async fn budgets(client: &Client) -> Vec<&'static str> {
    let told = recalled(client, "What is our budget?").await.concat();
    let values = ["300k", "400k", "500k"].into_iter();
    values.filter(|value| told.contains(value)).collect()
}

async fn an_edited_memory_is_found_by_its_new_words_alone(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let first = given(&client, "The cellar key hangs behind the boiler").await;
    let body = json!({"content": "The cellar key lies under the doormat", "importance": 5, "pinned": true, "scope": "task_state"});
    let second = patched(&client, &first, body).await;
    assert_eq!(id_of(&second), id_of(&first));
    assert_eq!(
        (&second["version"], &second["importance"], &second["pinned"]),
        (&json!(2), &json!(5), &json!(true))
    );
    let told = recalled(&client, "Where is the cellar key?").await;
    assert_eq!(told, ["The cellar key lies under the doormat"]);
    assert_eq!(
        recalled(&client, "What is behind the boiler?").await,
        [""; 0]
    );
    let past = history(&client, &first).await;
    let versions = past["versions"].as_array().unwrap();
    let told: Vec<_> = versions
        .iter()
        .map(|v| {
            (
                &v["memory"]["content"],
                &v["memory"]["version"],
                &v["change"]["kind"],
                &v["change"]["op"],
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (
                &json!("The cellar key lies under the doormat"),
                &json!(2),
                &json!("edit"),
                &json!("updated")
            ),
            (
                &json!("The cellar key hangs behind the boiler"),
                &json!(1),
                &json!("add"),
                &json!("created")
            ),
        ]
    );
    // The same again is no change.
    let again = patched(&client, &first, json!({"pinned": true})).await;
    assert_eq!(again["version"], 2);
    assert_eq!(client.all("/v1/changes").await.len(), 2);
}

async fn an_edited_fact_ends_what_was_said_of_its_key_and_its_revert_reopens_it(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    client.ask(&session, "Our budget is 300k.").await;
    client.until_no_jobs().await;
    let fact = client.all("/v1/memories?key=budget").await.remove(0);
    assert_eq!(fact["content"], "Our budget is 300k.");
    let edited = patched(&client, &fact, json!({"content": "Our budget is 400k."})).await;
    assert_eq!(edited["key"], fact["key"]);
    assert_eq!(budgets(&client).await, ["400k"]);
    let other = given(&client, "Our budget is 500k").await;
    assert_eq!(budgets(&client).await, ["500k"]);
    let past = history(&client, &fact).await;
    assert_eq!(past["superseded_by"]["id"], other["id"], "{past}");
    assert_eq!(
        past["messages"][0]["content"], "Our budget is 300k.",
        "{past}"
    );
    let past = history(&client, &other).await;
    assert_eq!(past["supersedes"][0]["id"], fact["id"], "{past}");
    // It cannot be made current by hand.
    let path = format!("/v1/memories/{}", id_of(&fact));
    let answer = client.patch(&path, &json!({"state": "current"})).await;
    answer.expect_problem_with(422, "state");
    let change = newest_change(&client).await;
    assert_eq!(change["kind"], "add");
    let undone = reverted(&client, &change).await;
    assert_eq!(
        (&undone["kind"], &undone["reverts"]),
        (&json!("revert"), &change["id"])
    );
    assert_eq!(budgets(&client).await, ["400k"]);
    // Twice is once.
    assert_eq!(reverted(&client, &change).await["id"], undone["id"]);
    let marked = client.all("/v1/changes").await;
    let marked = marked.iter().find(|c| c["id"] == change["id"]).unwrap();
    assert_eq!(
        (&marked["reverted_by"], &marked["revertible"]),
        (&undone["id"], &json!(false))
    );
}

async fn an_end_is_final_whatever_is_said_later_and_reverted(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let since = async |value: &str, month: u32| {
        let body = json!({
            "content": format!("Our budget is {value}"),
            "valid_from": format!("2025-{month:02}-01T00:00:00Z"),
        });
        client.post("/v1/memories", &body).await.expect(201)
    };
    let first = since("300k", 1).await;
    let second = since("400k", 9).await;
    let path = format!("/v1/memories/{}", id_of(&second));
    assert_eq!(client.delete(&path).await.status, 204);
    assert_eq!(budgets(&client).await, [""; 0]);
    for (month, goes) in [(3, "reverted"), (5, "moved"), (11, "reverted")] {
        let late = since("500k", month).await;
        assert_eq!(budgets(&client).await, ["500k"], "{month}");
        if goes == "reverted" {
            reverted(&client, &newest_change(&client).await).await;
        } else {
            patched(
                &client,
                &late,
                json!({"key": "limit", "content": "Nothing more"}),
            )
            .await;
        }
        assert_eq!(budgets(&client).await, [""; 0], "{month}");
    }
    let path = format!("/v1/memories/{}", id_of(&first));
    let first = client.get(&path).await.expect(200);
    assert_eq!(
        (&first["state"], &first["valid_to"]),
        (&json!("superseded"), &json!("2025-09-01T00:00:00Z"))
    );
    assert!(first.get("ended_at").is_none());
}

async fn a_fact_that_is_taken_off_its_key_reopens_nothing_and_its_revert_gives_it_back(
    store: Store,
) {
    let (_server, _model, client) = with_model(store).await;
    let old = given(&client, "Our budget is 300k").await;
    let new = given(&client, "Our budget is 400k").await;
    patched(&client, &new, json!({"key": null})).await;
    assert_eq!(budgets(&client).await, ["400k"]);
    let change = newest_change(&client).await;
    let items = change["items"].as_array().unwrap();
    let closed = items.iter().find(|i| i["memory_id"] == old["id"]).unwrap();
    assert_eq!(closed["op"], "closed");
    assert_eq!(closed["before"], json!({"superseded_by": new["id"]}));
    assert!(closed.get("after").is_none(), "{closed}");
    reverted(&client, &change).await;
    assert_eq!(budgets(&client).await, ["400k"]);
    let past = history(&client, &old).await;
    assert_eq!(past["superseded_by"]["id"], new["id"], "{past}");
    // Of another key: then it never spoke of the budget.
    patched(&client, &new, json!({"key": "limit"})).await;
    assert_eq!(budgets(&client).await, ["300k", "400k"]);
}

async fn what_a_fact_said_is_told_as_of_then_until_it_is_forgotten(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let mut fact = given(&client, "Our budget is 300k").await;
    let mut said = vec![(fact["valid_from"].clone(), "300k")];
    for value in ["400k", "500k"] {
        let body = json!({"content": format!("Our budget is {value}")});
        fact = patched(&client, &fact, body).await;
        said.push((fact["valid_from"].clone(), value));
    }
    assert_eq!(budgets(&client).await, ["500k"]);
    for (at, value) in &said {
        let body = json!({"query": "What is our budget?", "as_of": at});
        let found = client.post("/v1/memories/recall", &body).await.expect(200);
        let told = format!("{:?}", found["items"]);
        for (_, other) in &said {
            assert_eq!(told.contains(other), other == value, "{at}: {told}");
        }
    }
    // What it said is among its versions, not beside them.
    let past = history(&client, &fact).await;
    assert_eq!(past["versions"].as_array().unwrap().len(), 3, "{past}");
    assert_eq!(past["supersedes"], json!([]), "{past}");

    let path = format!("/v1/memories/{}", id_of(&fact));
    assert_eq!(client.delete(&path).await.status, 204);
    assert_eq!(client.all("/v1/memories").await, Vec::<Value>::new());
    assert_eq!(budgets(&client).await, [""; 0]);
}

async fn an_edited_chunk_is_not_learned_again_by_the_consolidation_of_its_message(store: Store) {
    let model = Model::start().await;
    let setup = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_LEARNING__THRESHOLD", "4");
    let server = setup.start().await;
    let client = server.client();
    let session = client.create_session().await;
    client.ask(&session, "I am allergic to peanuts.").await;
    client.until_no_jobs().await;
    let chunk = client.all("/v1/memories?text=peanuts").await.remove(0);
    assert_eq!(chunk["layer"], "episodic");
    patched(
        &client,
        &chunk,
        json!({"content": "I am allergic to walnuts.", "key": null}),
    )
    .await;
    client.ask(&session, "What is a fence?").await;
    client.ask(&session, "What is a gate?").await;
    client.until_no_jobs().await;
    let held = client.all("/v1/memories?text=peanuts&state=current").await;
    assert_eq!(held, Vec::<Value>::new());
    let told = recalled(&client, "What am I allergic to?").await;
    assert!(
        told.contains(&"I am allergic to walnuts.".to_owned()),
        "{told:?}"
    );
    assert!(
        told.iter().all(|content| !content.contains("peanuts")),
        "{told:?}"
    );
}

async fn an_edit_needs_the_version_it_names(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let memory = given(&client, "The cellar key hangs behind the boiler").await;
    let path = format!("/v1/memories/{}", id_of(&memory));
    let edit = async |tag: &str, importance: u8| {
        let request = client
            .request(reqwest::Method::PATCH, &path)
            .header("if-match", tag)
            .json(&json!({"importance": importance}));
        client.send(request).await
    };
    let done = edit("\"1\"", 4).await;
    assert_eq!((done.status, done.header("etag")), (200, "\"2\""));
    edit("\"1\"", 5).await.expect_problem(412);
    assert_eq!(client.get(&path).await.expect(200)["importance"], 4);
}

async fn unacceptable_edits_name_what_is_wrong(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let memory = given(&client, "The cellar key hangs behind the boiler").await;
    let path = format!("/v1/memories/{}", id_of(&memory));
    for (body, status, field) in [
        (json!({"content": " "}), 422, "content"),
        (json!({"content": "x".repeat(4_001)}), 422, "content"),
        (json!({"importance": 6}), 422, "importance"),
        (json!({"key": ""}), 422, "key"),
        (
            json!({"expires_at": "2001-01-01T00:00:00Z"}),
            422,
            "expires_at",
        ),
        (json!({"state": "superseded"}), 400, "state"),
        (json!({"trust": 1}), 400, "trust"),
    ] {
        client
            .patch(&path, &body)
            .await
            .expect_problem_with(status, field);
    }
    let nowhere = "01890000-0000-7000-8000-000000000000";
    for path in [
        format!("/v1/memories/{nowhere}/history"),
        "/v1/changes?limit=0".to_owned(),
        "/v1/changes?cursor=x".to_owned(),
    ] {
        assert!(
            (400..500).contains(&client.get(&path).await.status),
            "{path}"
        );
    }
    client
        .patch(&format!("/v1/memories/{nowhere}"), &json!({"pinned": true}))
        .await
        .expect_problem(404);
    client
        .post(&format!("/v1/changes/{nowhere}/revert"), &json!({}))
        .await
        .expect_problem(404);
    assert_eq!(client.get(&path).await.expect(200)["version"], 1);
}

async fn a_change_that_was_edited_since_is_undone_last_first(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let memory = given(&client, "The office is in Paris").await;
    patched(
        &client,
        &memory,
        json!({"content": "The office is in Rome"}),
    )
    .await;
    patched(
        &client,
        &memory,
        json!({"content": "The office is in Oslo"}),
    )
    .await;
    let changes = client.all("/v1/changes").await;
    let [oslo, rome, paris] = &changes[..] else {
        panic!("{changes:?}");
    };
    for change in [rome, paris] {
        let refused = client.post(&revert_of(change), &json!({})).await;
        assert_eq!(refused.body["code"], "changed_since", "{}", refused.text);
        assert!(refused.text.contains(&id_of(&memory)));
        refused.expect_problem(409);
    }
    let path = format!("/v1/memories/{}", id_of(&memory));
    reverted(&client, oslo).await;
    assert_eq!(
        client.get(&path).await.expect(200)["content"],
        "The office is in Rome"
    );
    reverted(&client, rome).await;
    assert_eq!(
        client.get(&path).await.expect(200)["content"],
        "The office is in Paris"
    );
    let undone = reverted(&client, paris).await;
    client.get(&path).await.expect_problem(404);
    let refused = client.post(&revert_of(&undone), &json!({})).await;
    assert_eq!(refused.body["code"], "not_revertible", "{}", refused.text);
    refused.expect_problem(409);
}

async fn an_import_is_undone_as_a_whole(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let body = json!({"content": "Our budget is 300k", "valid_from": "2024-05-01T09:00:00Z"});
    client.post("/v1/memories", &body).await.expect(201);
    let session = client.create_session().await;
    let later = "2024-05-02T09:00:00Z";
    let messages = json!({"messages": [
        {"role": "user", "content": "We raised the budget to 400k.", "created_at": later},
        {"role": "user", "content": "我们团队周五下午一起去爬山。", "created_at": later},
    ]});
    client
        .post(&messages_of(&session), &messages)
        .await
        .expect(201);
    client.until_no_jobs().await;
    assert_eq!(budgets(&client).await, ["400k"]);
    let changes = client
        .all(&format!("/v1/changes?session_id={session}"))
        .await;
    let import = changes.iter().find(|c| c["kind"] == "import").unwrap();
    assert_eq!(
        (&import["from_seq"], &import["to_seq"]),
        (&json!(0), &json!(2))
    );
    // A chunk of each message, and the statement if they have been consolidated by their age meanwhile.
    let items = import["items"].as_array().unwrap().len();
    assert!((2..=3).contains(&items), "{import}");
    reverted(&client, import).await;
    client.until_no_jobs().await;
    assert_eq!(budgets(&client).await, ["300k"]);
    let told = recalled(&client, "周五下午去哪里爬山？").await.concat();
    assert!(!told.contains("爬山"), "{told}");
    client
        .ask(&client.create_session().await, "Tell me the budget")
        .await;
    assert!(!model.prompt_about("Tell me the budget").contains("400k"));
    // The messages themselves stay.
    assert_eq!(client.history(&session).await.len(), 2);
}

async fn a_consolidation_is_listed_with_its_boundary_and_undone(store: Store) {
    let model = Model::start().await;
    let setup = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_LEARNING__THRESHOLD", "4");
    let server = setup.start().await;
    let client = server.client();
    let session = client.create_session().await;
    for message in [
        "I prefer answers as tables.",
        "What is a fence?",
        "What is a gate?",
    ] {
        client.ask(&session, message).await;
    }
    client.until_no_jobs().await;
    let learned = client.all("/v1/memories?layer=semantic&text=tables").await;
    assert_eq!(learned.len(), 1, "{learned:?}");
    let changes = client
        .all(&format!("/v1/changes?session_id={session}"))
        .await;
    let made = |change: &&Value| {
        let items = change["items"].as_array().unwrap();
        items
            .iter()
            .any(|item| item["memory_id"] == learned[0]["id"])
    };
    let change = changes
        .iter()
        .filter(|change| change["kind"] == "consolidation")
        .find(made)
        .unwrap_or_else(|| panic!("{changes:?}"));
    let page = client.get(&messages_of(&session)).await.expect(200);
    assert!(change["to_seq"].as_i64() <= page["last_consolidated"].as_i64());
    assert!(change["from_seq"].as_i64() < change["to_seq"].as_i64());
    reverted(&client, change).await;
    let path = format!("/v1/memories/{}", id_of(&learned[0]));
    client.get(&path).await.expect_problem(404);
}

async fn what_was_forgotten_is_not_brought_back(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let memory = given(&client, "The cellar key hangs behind the boiler").await;
    let path = format!("/v1/memories/{}", id_of(&memory));
    patched(
        &client,
        &memory,
        json!({"content": "The cellar key lies under the doormat"}),
    )
    .await;
    client.delete(&path).await;
    let change = newest_change(&client).await;
    assert_eq!(
        (&change["kind"], &change["revertible"]),
        (&json!("forget"), &json!(false))
    );
    let refused = client.post(&revert_of(&change), &json!({})).await;
    assert_eq!(refused.body["code"], "not_revertible", "{}", refused.text);
    let all = client.get("/v1/changes").await;
    assert!(!all.text.contains("cellar"), "{}", all.text);
    client
        .get(&format!("{path}/history"))
        .await
        .expect_problem(404);
}

async fn nothing_of_this_is_another_users(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let memory = given(&client, "The cellar key hangs behind the boiler").await;
    let change = newest_change(&client).await;
    let other = client.as_user("somebody-else");
    let path = format!("/v1/memories/{}", id_of(&memory));
    assert_eq!(other.all("/v1/changes").await, Vec::<Value>::new());
    other
        .patch(&path, &json!({"pinned": true}))
        .await
        .expect_problem(404);
    other
        .get(&format!("{path}/history"))
        .await
        .expect_problem(404);
    other
        .post(&revert_of(&change), &json!({}))
        .await
        .expect_problem(404);
    assert_eq!(client.get(&path).await.expect(200)["version"], 1);
}
