//! Import of past messages into a session.

use serde_json::{Value, json};
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::paths::messages_of;
use tidemark_tests::server::Setup;

each_store!(
    imported_messages_get_numbers_in_the_order_given,
    an_import_is_whole_or_not_at_all,
    a_history_is_read_in_pages_by_sequence,
);

async fn imported_messages_get_numbers_in_the_order_given(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    let session = client.create_session().await;
    let path = messages_of(&session);
    let first = json!({"messages": [
        {"role": "user", "content": "Where is my umbrella?", "name": "Ada", "created_at": "2025-03-01T10:00:00Z"},
        {"role": "assistant", "content": "In the hall.", "created_at": "2025-03-01T10:00:05Z"},
    ]});
    let answer = client.post(&path, &first).await.expect(201);
    let seqs: Vec<u64> = answer["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, [1, 2]);
    let more = json!({"messages": [{"role": "user", "content": "Thanks, found it.", "created_at": "2025-03-01T10:01:00Z"}]});
    assert_eq!(
        client.post(&path, &more).await.expect(201)["items"][0]["seq"],
        3
    );
    let history = client.history(&session).await;
    assert_eq!(history[0]["content"], "Where is my umbrella?");
    assert_eq!(history[0]["name"], "Ada");
    assert_eq!(history[0]["id"], answer["items"][0]["id"]);
    assert!(
        history[1]["created_at"]
            .as_str()
            .unwrap()
            .starts_with("2025-03-01T10:00:05")
    );
    assert_eq!(
        history
            .iter()
            .map(|message| message["seq"].as_u64().unwrap())
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
}

async fn an_import_is_whole_or_not_at_all(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    let session = client.create_session().await;
    let path = messages_of(&session);
    let good = json!({"role": "user", "content": "good", "created_at": "2025-03-01T10:00:00Z"});
    let with = |bad: Value| json!({"messages": [good, bad]});
    let refused = [
        (
            with(json!({"role": "user", "content": "", "created_at": "2025-03-01T10:00:00Z"})),
            422,
            "content",
        ),
        (
            with(json!({"role": "narrator", "content": "x", "created_at": "2025-03-01T10:00:00Z"})),
            400,
            "role",
        ),
        (
            with(json!({"role": "user", "content": "x", "created_at": "yesterday"})),
            400,
            "created_at",
        ),
        (
            with(
                json!({"role": "user", "content": "x\u{0}", "created_at": "2025-03-01T10:00:00Z"}),
            ),
            422,
            "content",
        ),
        (json!({"messages": []}), 422, "messages"),
        (
            json!({"messages": vec![good.clone(); 1001]}),
            422,
            "messages",
        ),
    ];
    for (body, status, field) in refused {
        client
            .post(&path, &body)
            .await
            .expect_problem_with(status, field);
    }
    assert_eq!(client.history(&session).await, Vec::<Value>::new());
    client
        .post(&path, &json!({"messages": vec![good.clone(); 1000]}))
        .await
        .expect(201);
}

async fn a_history_is_read_in_pages_by_sequence(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    let session = client.create_session().await;
    let path = messages_of(&session);
    let messages: Vec<Value> = (1..=7).map(|n| json!({"role": "user", "content": format!("note {n}"), "created_at": "2025-03-01T10:00:00Z"})).collect();
    client
        .post(&path, &json!({"messages": messages}))
        .await
        .expect(201);
    let first = client.get(&format!("{path}?limit=3")).await.expect(200);
    assert_eq!(first["items"].as_array().unwrap().len(), 3);
    assert!(
        first["last_consolidated"].is_u64(),
        "history shows last_consolidated: {first}"
    );
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = client
        .get(&format!("{path}?limit=3&cursor={cursor}"))
        .await
        .expect(200);
    assert_eq!(second["items"][0]["seq"], 4);
    assert_eq!(client.history(&session).await.len(), 7);
}
