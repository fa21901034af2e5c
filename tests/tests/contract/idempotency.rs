//! The same request sent again makes nothing twice.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::{Value, json};
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::paths::{messages_of, turns_of};
use tidemark_tests::server::with_model;

each_store!(
    the_same_key_and_body_give_the_same_resource,
    the_same_key_with_another_body_is_refused,
    a_key_belongs_to_one_user_and_one_path,
    many_at_once_with_one_key_make_one_turn,
    a_key_survives_a_restart,
);

async fn the_same_key_and_body_give_the_same_resource(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    let import = json!({"messages": [{"role": "user", "content": "Blue is my colour.", "created_at": "2025-01-01T00:00:00Z"}]});
    let cases: [(String, Value, &str); 4] = [
        ("/v1/sessions".to_owned(), json!({"title": "A"}), "/id"),
        (messages_of(&session), import, "/items/0/id"),
        (turns_of(&session), json!({"message": "Once"}), "/turn_id"),
        (
            "/v1/memories".to_owned(),
            json!({"content": "The archive closes at nine."}),
            "/id",
        ),
    ];
    for (path, body, id) in cases {
        let first = client.post_once("key-1", &path, &body).await;
        let again = client.post_once("key-1", &path, &body).await;
        assert_eq!(
            first.status, again.status,
            "{path}: {} {}",
            first.text, again.text
        );
        assert!(
            first.body.pointer(id).is_some(),
            "{path}: no {id} in {}",
            first.text
        );
        assert_eq!(first.body.pointer(id), again.body.pointer(id), "{path}");
    }
    let history = client.history(&session).await;
    let blue = history
        .iter()
        .filter(|message| message["content"] == "Blue is my colour.")
        .count();
    assert_eq!(blue, 1);
}

async fn the_same_key_with_another_body_is_refused(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let path = turns_of(&client.create_session().await);
    client
        .post_once("key-2", &path, &json!({"message": "One"}))
        .await
        .expect(202);
    let code = client
        .post_once("key-2", &path, &json!({"message": "Two"}))
        .await
        .expect_problem(422);
    assert_eq!(code, "idempotency_mismatch");
}

async fn a_key_belongs_to_one_user_and_one_path(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let (ada, bob) = (client.as_user("ada"), client.as_user("bob"));
    let body = json!({"title": "Mine"});
    let of_ada = ada
        .post_once("key-3", "/v1/sessions", &body)
        .await
        .expect(201);
    let of_bob = bob
        .post_once("key-3", "/v1/sessions", &body)
        .await
        .expect(201);
    assert_ne!(of_ada["id"], of_bob["id"]);
    ada.post_once(
        "key-3",
        "/v1/memories",
        &json!({"content": "Another path."}),
    )
    .await
    .expect(201);
}

async fn many_at_once_with_one_key_make_one_turn(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let session = client.create_session().await;
    let path = turns_of(&session);
    let body = json!({"message": "All together [[first_ms=200]]"});
    let answers = join_all((0..12).map(|_| client.post_once("key-4", &path, &body))).await;
    let mut turns = BTreeSet::new();
    for answer in answers {
        match answer.status {
            202 => drop(turns.insert(answer.body["turn_id"].as_str().unwrap().to_owned())),
            _ => drop(answer.expect_problem(409)),
        }
    }
    assert_eq!(turns.len(), 1, "{turns:?}");
    client.finished(turns.first().unwrap()).await;
    assert_eq!(client.history(&session).await.len(), 2);
    assert_eq!(model.requests_about("All together").len(), 1);
}

async fn a_key_survives_a_restart(store: Store) {
    let (mut server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    let body = json!({"message": "Again"});
    let first = client
        .post_once("key-5", &turns_of(&session), &body)
        .await
        .expect(202);
    client.finished(first["turn_id"].as_str().unwrap()).await;
    server.restart().await;
    let again = server
        .client()
        .post_once("key-5", &turns_of(&session), &body)
        .await;
    assert_eq!(again.body["turn_id"], first["turn_id"], "{}", again.text);
}
