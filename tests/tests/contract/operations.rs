//! Jobs, health, metrics and the documents that describe the server.

use serde_json::json;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::server::with_model;

each_store!(
    the_server_says_that_it_lives_and_is_ready,
    metrics_are_prometheus_text,
    derived_jobs_are_listed_and_done,
    the_document_names_every_operation_that_answers,
    every_answer_carries_a_request_id_and_echoes_a_given_one,
);

async fn the_server_says_that_it_lives_and_is_ready(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    client.get("/healthz").await.expect(200);
    client.get("/readyz").await.expect(200);
    let page = client.get("/").await;
    assert_eq!(page.status, 200);
    assert!(
        page.header("content-type").starts_with("text/html"),
        "{}",
        page.header("content-type")
    );
}

async fn metrics_are_prometheus_text(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    client.ask(&session, "Count me").await;
    let metrics = client.get("/metrics").await;
    assert_eq!(metrics.status, 200);
    assert!(
        metrics.header("content-type").starts_with("text/plain"),
        "{}",
        metrics.header("content-type")
    );
    let samples = metrics
        .text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut seen = 0;
    for line in samples {
        let (_, value) = line
            .rsplit_once(' ')
            .unwrap_or_else(|| panic!("no sample: {line}"));
        assert!(value.parse::<f64>().is_ok(), "no number: {line}");
        seen += 1;
    }
    assert!(seen > 0, "no samples");
    assert!(
        !metrics.text.contains(&session),
        "an id as a label grows without bound"
    );
}

async fn derived_jobs_are_listed_and_done(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    client
        .ask(&session, "The cellar key hangs behind the boiler.")
        .await;
    client.until_no_jobs().await;
    assert_eq!(
        client.all("/v1/jobs?state=failed").await,
        Vec::<serde_json::Value>::new()
    );
    client
        .get("/v1/jobs?state=sleeping")
        .await
        .expect_problem_with(400, "state");
    client
        .post(
            "/v1/jobs/01890000-0000-7000-8000-000000000000/retry",
            &json!({}),
        )
        .await
        .expect_problem(404);
    client
        .delete("/v1/jobs/01890000-0000-7000-8000-000000000000")
        .await
        .expect_problem(404);
}

async fn the_document_names_every_operation_that_answers(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let document = client.get("/openapi.json").await.expect(200);
    assert!(
        document["openapi"].as_str().unwrap().starts_with("3.1"),
        "{}",
        document["openapi"]
    );
    let paths = document["paths"].as_object().unwrap();
    for (path, method) in [
        ("/v1/sessions", "post"),
        ("/v1/sessions/{id}/messages", "post"),
        ("/v1/sessions/{id}/turns", "post"),
        ("/v1/turns/{id}", "get"),
        ("/v1/turns/{id}/events", "get"),
        ("/v1/turns/{id}/cancel", "post"),
        ("/v1/chat/stream", "get"),
        ("/v1/memories", "post"),
        ("/v1/memories/recall", "post"),
        ("/v1/memories/{id}", "patch"),
        ("/v1/memories/{id}/history", "get"),
        ("/v1/changes", "get"),
        ("/v1/changes/{id}/revert", "post"),
        ("/v1/jobs", "get"),
    ] {
        let found = paths.iter().find(|(name, _)| same_template(name, path));
        assert!(
            found.is_some_and(|(_, operations)| operations[method].is_object()),
            "{method} {path} is not in the document"
        );
    }
}

/// Whether two paths differ at most in the names of their parameters.
fn same_template(one: &str, other: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        path.split('/')
            .map(|part| {
                if part.starts_with('{') {
                    "{}".to_owned()
                } else {
                    part.to_owned()
                }
            })
            .collect()
    };
    parts(one) == parts(other)
}

async fn every_answer_carries_a_request_id_and_echoes_a_given_one(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    for path in ["/healthz", "/v1/sessions", "/v1/nothing"] {
        assert!(
            !client.get(path).await.header("x-request-id").is_empty(),
            "{path}"
        );
        let request = client
            .request(reqwest::Method::GET, path)
            .header("x-request-id", "mine-17");
        assert_eq!(
            client.send(request).await.header("x-request-id"),
            "mine-17",
            "{path}"
        );
    }
}
