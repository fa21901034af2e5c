//! Memories made, found, listed and forgotten by hand.

use serde_json::{Value, json};
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::paths::id_of;
use tidemark_tests::server::Setup;

each_store!(
    a_memory_is_found_by_the_next_request_in_either_language,
    the_same_content_again_is_the_same_memory,
    several_memories_are_made_at_once_or_not_at_all,
    lists_of_memories_can_be_narrowed,
    a_forgotten_memory_is_gone_from_everywhere,
    recall_explains_itself_and_does_not_count_as_use,
    nothing_is_recalled_for_what_was_never_discussed,
);

async fn a_memory_is_found_by_the_next_request_in_either_language(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    for (content, query) in [
        (
            "The budget of project Falcon is 300,000 euros.",
            "What is the budget of Falcon?",
        ),
        (
            "项目凤凰的发布日期是三月十五日。",
            "凤凰的发布日期是什么时候？",
        ),
    ] {
        let made = client
            .post(
                "/v1/memories",
                &json!({"content": content, "scope": "project_context"}),
            )
            .await
            .expect(201);
        let found = client.recall(query).await;
        assert_eq!(
            found.first().map(id_of),
            Some(id_of(&made)),
            "{query}: {found:?}"
        );
        assert_eq!(found[0]["content"], content);
        let read = client
            .get(&format!("/v1/memories/{}", id_of(&made)))
            .await
            .expect(200);
        assert_eq!(
            (&read["state"], &read["scope"]),
            (&json!("current"), &json!("project_context"))
        );
        for field in [
            "kind",
            "layer",
            "importance",
            "confidence",
            "trust",
            "pinned",
            "valid_from",
            "created_at",
            "access_count",
            "version",
        ] {
            assert!(!read[field].is_null(), "no {field} in {read}");
        }
    }
}

async fn the_same_content_again_is_the_same_memory(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    let body = json!({"content": "The gate code changed in May."});
    let first = client.post("/v1/memories", &body).await.expect(201);
    let again = client.post("/v1/memories", &body).await;
    assert_eq!(again.body["id"], first["id"], "{}", again.text);
    assert_eq!(client.all("/v1/memories").await.len(), 1);
}

async fn several_memories_are_made_at_once_or_not_at_all(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    let items = |n: usize| -> Vec<Value> {
        (0..n)
            .map(|i| json!({"content": format!("Locker {i} is on floor {}.", i + 1)}))
            .collect()
    };
    client
        .post("/v1/memories", &json!({"items": items(101)}))
        .await
        .expect_problem_with(422, "items");
    let mut one_bad = items(3);
    one_bad[2] = json!({"content": ""});
    client
        .post("/v1/memories", &json!({"items": one_bad}))
        .await
        .expect_problem_with(422, "content");
    assert_eq!(client.all("/v1/memories").await, Vec::<Value>::new());
    client
        .post("/v1/memories", &json!({"items": items(100)}))
        .await
        .expect(201);
    assert_eq!(client.all("/v1/memories").await.len(), 100);
}

async fn lists_of_memories_can_be_narrowed(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    for (content, scope, kind) in [
        ("I prefer short answers.", "user_profile", "preference"),
        ("The server room is in Oslo.", "project_context", "fact"),
        (
            "We chose Rust for the gateway.",
            "project_context",
            "decision",
        ),
    ] {
        client
            .post(
                "/v1/memories",
                &json!({"content": content, "scope": scope, "kind": kind}),
            )
            .await
            .expect(201);
    }
    for (filter, expected) in [
        ("scope=project_context", 2),
        ("kind=decision", 1),
        ("scope=project_context&kind=fact", 1),
        ("text=Oslo", 1),
        ("state=current", 3),
        ("state=archived", 0),
    ] {
        let found = client.all(&format!("/v1/memories?{filter}")).await;
        assert_eq!(found.len(), expected, "{filter}: {found:?}");
    }
    client
        .get("/v1/memories?scope=nowhere")
        .await
        .expect_problem_with(400, "scope");
    client
        .get("/v1/memories?colour=red")
        .await
        .expect_problem_with(400, "colour");
}

async fn a_forgotten_memory_is_gone_from_everywhere(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    let made = client
        .post(
            "/v1/memories",
            &json!({"content": "The spare key lies under the fern."}),
        )
        .await
        .expect(201);
    let path = format!("/v1/memories/{}", id_of(&made));
    assert_eq!(client.recall("Where is the spare key?").await.len(), 1);
    assert_eq!(client.delete(&path).await.status, 204);
    client.get(&path).await.expect_problem(404);
    assert_eq!(client.all("/v1/memories").await, Vec::<Value>::new());
    assert_eq!(
        client.recall("Where is the spare key?").await,
        Vec::<Value>::new()
    );
    client.delete(&path).await.expect_problem(404);
}

async fn recall_explains_itself_and_does_not_count_as_use(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    let made = client
        .post(
            "/v1/memories",
            &json!({"content": "The archive closes at nine in winter."}),
        )
        .await
        .expect(201);
    let query = json!({"query": "When does the archive close?", "top_k": 3, "explain": true});
    let found = client.post("/v1/memories/recall", &query).await.expect(200);
    let item = &found["items"][0];
    assert_eq!(item["memory"]["id"], made["id"]);
    assert_eq!(item["rank"], 1);
    assert!(item["score"].as_f64().unwrap() > 0.0);
    assert!(
        !item["parts"].as_object().unwrap().is_empty(),
        "the parts of the score: {item}"
    );
    assert!(
        found["context"]
            .as_str()
            .unwrap()
            .contains("archive closes at nine")
    );
    assert_eq!(found["abstained"], false);
    assert!(found["took_ms"].is_number());
    for list in ["dropped", "degraded"] {
        assert!(found[list].is_array(), "{list} in {found}");
    }
    let path = format!("/v1/memories/{}", id_of(&made));
    assert_eq!(client.get(&path).await.expect(200)["access_count"], 0);
    client
        .post("/v1/memories/recall", &json!({"query": "x", "top_k": 101}))
        .await
        .expect_problem_with(422, "top_k");
    client
        .post("/v1/memories/recall", &json!({"query": ""}))
        .await
        .expect_problem_with(422, "query");
}

async fn nothing_is_recalled_for_what_was_never_discussed(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    for content in [
        "The budget of Falcon is 300,000 euros.",
        "Our office dog is called Pixel.",
        "周五下午是代码评审。",
    ] {
        client
            .post("/v1/memories", &json!({"content": content}))
            .await
            .expect(201);
    }
    for query in ["How do I bake sourdough bread?", "量子纠缠怎么解释？"] {
        let found = client
            .post("/v1/memories/recall", &json!({"query": query}))
            .await
            .expect(200);
        assert_eq!(
            (&found["items"], &found["abstained"]),
            (&json!([]), &json!(true)),
            "{query}"
        );
    }
}
