//! Sessions: create, read, change, delete, list.

use reqwest::Method;
use serde_json::json;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::paths::{id_of, messages_of};
use tidemark_tests::server::{Setup, with_model};

each_store!(
    a_session_is_created_read_changed_and_deleted,
    a_stale_version_of_a_session_is_refused,
    a_list_of_sessions_is_stable_while_others_are_added,
    a_deleted_session_takes_its_running_turn_with_it,
);

async fn a_session_is_created_read_changed_and_deleted(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    let body = json!({"title": "Travel", "labels": ["private"], "channel": "web"});
    let answer = client.post("/v1/sessions", &body).await;
    let created = answer.expect(201);
    let path = format!("/v1/sessions/{}", id_of(&created));
    let read = client.get(&path).await.expect(200);
    for field in ["title", "labels", "channel"] {
        assert_eq!(read[field], body[field], "{field}");
    }
    assert!(
        read["created_at"].as_str().unwrap().ends_with('Z'),
        "UTC: {read}"
    );
    let changed = client
        .send(
            client
                .request(Method::PATCH, &path)
                .json(&json!({"title": "Trips"})),
        )
        .await
        .expect(200);
    assert_eq!(
        (&changed["title"], &changed["channel"]),
        (&json!("Trips"), &json!("web"))
    );
    assert_eq!(
        client.get("/v1/sessions?text=Trips").await.expect(200)["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        client
            .get("/v1/sessions?text=nothing-like-it")
            .await
            .expect(200)["items"],
        json!([])
    );
    assert_eq!(client.delete(&path).await.status, 204);
    client.get(&path).await.expect_problem(404);
    client.delete(&path).await.expect_problem(404);
}

async fn a_stale_version_of_a_session_is_refused(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    let path = format!("/v1/sessions/{}", client.create_session().await);
    let tag = client.get(&path).await.header("etag").to_owned();
    assert!(!tag.is_empty(), "a session has an ETag");
    let change = |title: &str| {
        client
            .request(Method::PATCH, &path)
            .header("if-match", &tag)
            .json(&json!({"title": title}))
    };
    client.send(change("first")).await.expect(200);
    client.send(change("second")).await.expect_problem(412);
    assert_eq!(client.get(&path).await.expect(200)["title"], "first");
}

async fn a_list_of_sessions_is_stable_while_others_are_added(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    let mut made = Vec::new();
    for _ in 0..7 {
        made.push(client.create_session().await);
    }
    let mut seen = Vec::new();
    let mut path = "/v1/sessions?limit=3".to_owned();
    loop {
        let page = client.get(&path).await.expect(200);
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 3);
        seen.extend(items.iter().map(id_of));
        client.create_session().await;
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/v1/sessions?limit=3&cursor={cursor}");
    }
    for id in &made {
        assert_eq!(
            seen.iter().filter(|other| *other == id).count(),
            1,
            "{id} once in {seen:?}"
        );
    }
}

async fn a_deleted_session_takes_its_running_turn_with_it(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let session = client.create_session().await;
    let turn = client
        .post_turn(&session, "Long [[tokens=500 delay_ms=50]]")
        .await;
    client.until_status(&turn, "running").await;
    assert_eq!(
        client
            .delete(&format!("/v1/sessions/{session}"))
            .await
            .status,
        204
    );
    model.until_idle().await;
    for path in [messages_of(&session), format!("/v1/turns/{turn}")] {
        gone(&client, &path).await;
    }
}

async fn gone(client: &Client, path: &str) {
    client.get(path).await.expect_problem(404);
}
