//! Addresses, methods, types, ids and cursors that mean nothing here.

use reqwest::Method;
use serde_json::json;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::paths::{chat_stream, turns_of};
use tidemark_tests::server::with_model;

each_store!(
    an_unknown_address_is_a_problem_document_too,
    a_method_that_is_not_served_is_named,
    only_json_is_taken,
    unknown_ids_are_not_found,
    an_id_that_is_none_is_refused,
    a_cursor_that_is_none_is_refused,
    a_cursor_of_another_list_is_refused,
    a_parameter_without_a_value_is_refused,
    a_header_that_decides_is_taken_once_alone,
    query_parameters_are_checked_by_name,
    a_header_that_means_nothing_is_refused,
);

const NOBODY: &str = "01890000-0000-7000-8000-000000000000";

/// Every call that names a resource, with `id` in its place.
fn calls_about(id: &str) -> Vec<(Method, String)> {
    let get = |path: &str| (Method::GET, path.replace("ID", id));
    let post = |path: &str| (Method::POST, path.replace("ID", id));
    vec![
        get("/v1/sessions/ID"),
        get("/v1/sessions/ID/messages"),
        post("/v1/sessions/ID/messages"),
        post("/v1/sessions/ID/turns"),
        (Method::PATCH, format!("/v1/sessions/{id}")),
        (Method::DELETE, format!("/v1/sessions/{id}")),
        get("/v1/turns/ID"),
        get("/v1/turns/ID/events"),
        post("/v1/turns/ID/cancel"),
        get("/v1/memories/ID"),
        get("/v1/memories/ID/history"),
        (Method::PATCH, format!("/v1/memories/{id}")),
        (Method::DELETE, format!("/v1/memories/{id}")),
        post("/v1/changes/ID/revert"),
        post("/v1/jobs/ID/retry"),
        (Method::DELETE, format!("/v1/jobs/{id}")),
    ]
}

fn body_for(path: &str) -> serde_json::Value {
    if path.ends_with("/turns") {
        json!({"message": "x"})
    } else if path.ends_with("/messages") {
        json!({"messages": [{"role": "user", "content": "x", "created_at": "2025-01-01T00:00:00Z"}]})
    } else if path.starts_with("/v1/sessions/") {
        json!({"title": "x"})
    } else {
        json!({})
    }
}

async fn send(client: &Client, method: &Method, path: &str) -> tidemark_tests::answer::Answer {
    let request = client.request(method.clone(), path);
    let request = if matches!(*method, Method::GET | Method::DELETE) {
        request
    } else {
        request.json(&body_for(path))
    };
    client.send(request).await
}

async fn an_unknown_address_is_a_problem_document_too(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    for path in [
        "/v1/nothing",
        "/v2/sessions",
        "/v1/sessions/",
        "/v1/../etc/passwd",
        "/%00",
        "/v1/%FF",
    ] {
        client.get(path).await.expect_problem(404);
    }
}

async fn a_method_that_is_not_served_is_named(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    for (method, path) in [
        (Method::DELETE, "/healthz"),
        (Method::PUT, "/v1/sessions"),
        (Method::GET, "/v1/memories/recall/x"),
        (Method::POST, "/v1/chat/stream"),
    ] {
        let answer = send(&client, &method, path).await;
        if answer.status == 404 {
            continue;
        }
        answer.expect_problem(405);
        assert!(
            !answer.header("allow").is_empty(),
            "{method} {path} names what is allowed"
        );
    }
    client.delete("/healthz").await.expect_problem(405);
    // Whatever is sent along: what is wrong is the method.
    for (method, path) in [
        (
            Method::POST,
            "/v1/turns/0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d9e",
        ),
        (Method::PATCH, "/v1/sessions"),
        (Method::PUT, "/v1/memories"),
        (Method::TRACE, "/v1/changes"),
    ] {
        let undeclared = client.request(method, path);
        client.send(undeclared).await.expect_problem(405);
    }
}

async fn only_json_is_taken(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    let body = json!({"message": "x", "content": "x", "query": "x"}).to_string();
    for path in [
        turns_of(&session),
        "/v1/memories".to_owned(),
        "/v1/memories/recall".to_owned(),
        "/v1/sessions".to_owned(),
    ] {
        for kind in [
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
            Some("multipart/form-data; boundary=x"),
            Some("application/jsonx"),
            None,
        ] {
            let request = client.request(Method::POST, &path).body(body.clone());
            let request = kind.into_iter().fold(request, |request, kind| {
                request.header("content-type", kind)
            });
            client.send(request).await.expect_problem(415);
        }
    }
    let request = client
        .request(Method::POST, "/v1/sessions")
        .header("content-type", "application/json; charset=utf-8");
    client.send(request.body("{}")).await.expect(201);
}

async fn unknown_ids_are_not_found(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    for (method, path) in calls_about(NOBODY) {
        send(&client, &method, &path).await.expect_problem(404);
    }
    client
        .get(&chat_stream("x", Some(NOBODY), None))
        .await
        .expect_problem(404);
    assert_eq!(
        client.all("/v1/sessions").await,
        Vec::<serde_json::Value>::new()
    );
}

async fn an_id_that_is_none_is_refused(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    for id in [
        "abc",
        "17",
        "01890000-0000-7000-8000-00000000000g",
        "%00",
        "%F0%9F%8C%8A",
        &"9".repeat(500),
    ] {
        for (method, path) in calls_about(id) {
            let answer = send(&client, &method, &path).await;
            assert!(
                matches!(answer.status, 400 | 404),
                "{method} {path}: {} {}",
                answer.status,
                answer.text
            );
            answer.expect_problem(answer.status);
        }
    }
}

async fn a_cursor_that_is_none_is_refused(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let (one, other) = (client.create_session().await, client.create_session().await);
    let import = json!({"messages": [
        {"role": "user", "content": "a", "created_at": "2025-01-01T00:00:00Z"},
        {"role": "user", "content": "b", "created_at": "2025-01-01T00:00:00Z"},
    ]});
    for session in [&one, &other] {
        client
            .post(&format!("/v1/sessions/{session}/messages"), &import)
            .await
            .expect(201);
    }
    for list in [
        "/v1/sessions",
        "/v1/memories",
        "/v1/jobs",
        &format!("/v1/sessions/{one}/messages"),
    ] {
        for cursor in [
            "garbage",
            "17",
            "-1",
            "AAAA",
            "%00",
            "%F0%9F%8C%8A",
            &"A".repeat(5000),
        ] {
            let mark = if list.contains('?') { '&' } else { '?' };
            client
                .get(&format!("{list}{mark}cursor={cursor}"))
                .await
                .expect_problem_with(400, "cursor");
        }
    }
    let page = client.get("/v1/sessions?limit=1").await.expect(200);
    let foreign = page["next_cursor"].as_str().expect("a second page");
    client
        .get(&format!("/v1/sessions/{one}/messages?cursor={foreign}"))
        .await
        .expect_problem_with(400, "cursor");
    client
        .get(&format!("/v1/memories?cursor={foreign}"))
        .await
        .expect_problem_with(400, "cursor");
}

async fn a_cursor_of_another_list_is_refused(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let (one, two) = (client.create_session().await, client.create_session().await);
    for session in [&one, &two] {
        let past = |n: i32| json!({"role": "user", "content": format!("I like tea {n}."), "created_at": "2025-01-01T00:00:00Z"});
        let body = json!({"messages": [past(1), past(2), past(3)]});
        let path = format!("/v1/sessions/{session}/messages");
        client.post(&path, &body).await.expect(201);
    }
    for n in 0..3 {
        let body = json!({"content": format!("Oslo is city {n}"), "kind": "fact"});
        client.post("/v1/memories", &body).await.expect(201);
    }
    let cursor_of = async |path: &str| {
        let page = client.get(path).await.expect(200);
        page["next_cursor"]
            .as_str()
            .expect("a second page")
            .to_owned()
    };
    let messages = cursor_of(&format!("/v1/sessions/{one}/messages?limit=1")).await;
    let path = |session: &str| format!("/v1/sessions/{session}/messages?limit=2&cursor={messages}");
    client.get(&path(&one)).await.expect(200);
    client
        .get(&path(&two))
        .await
        .expect_problem_with(400, "cursor");
    let memories = cursor_of("/v1/memories?text=Oslo&limit=1").await;
    client
        .get(&format!("/v1/memories?cursor={memories}&text=Oslo"))
        .await
        .expect(200);
    for other in ["", "&text=city", "&text=Oslo&kind=fact"] {
        let path = format!("/v1/memories?cursor={memories}{other}");
        client.get(&path).await.expect_problem_with(400, "cursor");
    }
    let path = format!("/v1/memories?cursor={memories}&text=Oslo");
    let request = client
        .request(Method::GET, &path)
        .header("x-tidemark-user", "somebody-else");
    client
        .send(request)
        .await
        .expect_problem_with(400, "cursor");
}

async fn a_parameter_without_a_value_is_refused(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    for (path, field) in [
        ("/v1/sessions?limit=", "limit"),
        ("/v1/sessions?text=", "text"),
        ("/v1/memories?text", "text"),
        ("/v1/memories?kind=", "kind"),
        ("/v1/jobs?state=&limit=2", "state"),
        (&format!("/v1/sessions/{session}/messages?limit="), "limit"),
        ("/v1/chat/stream?query=x&session_id=", "session_id"),
    ] {
        client.get(path).await.expect_problem_with(400, field);
    }
}

async fn a_header_that_decides_is_taken_once_alone(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    for (name, values) in [
        ("X-Tidemark-User", ["alice", "bob"]),
        ("X-Tidemark-User", ["alice", "alice"]),
        ("Idempotency-Key", ["a", "b"]),
        ("Host", ["127.0.0.1", "evil.example"]),
    ] {
        let request = client
            .request(Method::POST, "/v1/sessions")
            .json(&json!({}));
        let request = values
            .iter()
            .fold(request, |request, value| request.header(name, *value));
        client.send(request).await.expect_problem_with(400, name);
    }
    assert_eq!(client.all("/v1/sessions").await.len(), 0);
}

async fn query_parameters_are_checked_by_name(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    for list in [
        "/v1/sessions",
        "/v1/memories",
        "/v1/jobs",
        &format!("/v1/sessions/{session}/messages"),
    ] {
        for limit in ["0", "101", "-1", "x", "1e3", "99999999999999999999"] {
            let answer = client.get(&format!("{list}?limit={limit}")).await;
            assert!(
                matches!(answer.status, 400 | 422),
                "{list} limit={limit}: {}",
                answer.text
            );
            answer.expect_problem_with(answer.status, "limit");
        }
        client
            .get(&format!("{list}?colour=red"))
            .await
            .expect_problem_with(400, "colour");
    }
    for (path, status, field) in [
        ("/v1/chat/stream".to_owned(), 400, "query"),
        ("/v1/chat/stream?query=".to_owned(), 422, "query"),
        ("/v1/chat/stream?query=a%00b".to_owned(), 422, "query"),
        (
            "/v1/chat/stream?query=x&session_id=abc".to_owned(),
            400,
            "session_id",
        ),
    ] {
        client.get(&path).await.expect_problem_with(status, field);
    }
    assert_eq!(client.all("/v1/sessions").await.len(), 1);
}

async fn a_header_that_means_nothing_is_refused(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    for user in ["", "a b", "a/b", "ümlaut", &"x".repeat(129)] {
        let request = client
            .request(Method::GET, "/v1/sessions")
            .header("x-tidemark-user", user.as_bytes());
        let answer = client.send(request).await;
        assert!(
            matches!(answer.status, 400 | 422),
            "user {user:?}: {} {}",
            answer.status,
            answer.text
        );
        answer.expect_problem(answer.status);
    }
    let long = "k".repeat(5000);
    let request = client
        .request(Method::POST, "/v1/sessions")
        .header("idempotency-key", &long)
        .json(&json!({}));
    let answer = client.send(request).await;
    assert!(matches!(answer.status, 400 | 422), "{}", answer.text);
    answer.expect_problem(answer.status);
}
