//! `GET /v1/chat/stream`: one address that a bare `EventSource` may ask again and again.

use futures::future::join_all;
use reqwest::Method;
use serde_json::Value;
use tidemark_tests::client::TURN_LIMIT;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::paths::{chat_stream, is_event};
use tidemark_tests::server::with_model;

each_store!(
    a_query_without_session_opens_one_and_names_it,
    the_same_request_again_is_the_same_turn_from_its_start,
    the_same_request_with_another_query_is_refused,
    many_connections_with_one_request_make_one_turn,
    a_cursor_wins_over_every_parameter,
);

async fn a_query_without_session_opens_one_and_names_it(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let reading = client
        .read_to_end(&chat_stream(
            "你好 & hello? [[tokens=3]]",
            None,
            Some("r-1"),
        ))
        .await;
    let text = reading.assert_complete();
    let session = reading.events[0].data["session_id"].as_str().unwrap();
    let history = client.history(session).await;
    assert!(
        history[0]["content"]
            .as_str()
            .unwrap()
            .starts_with("你好 & hello?"),
        "{history:?}"
    );
    assert_eq!(history[1]["content"], text.as_str());
    let next = client
        .read_to_end(&chat_stream("And again", Some(session), Some("r-2")))
        .await;
    assert_eq!(next.events[0].data["session_id"], session);
    assert_eq!(client.history(session).await.len(), 4);
}

async fn the_same_request_again_is_the_same_turn_from_its_start(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let path = chat_stream("Repeat me [[tokens=10 delay_ms=30]]", None, Some("r-3"));
    let mut cut = client.open(&path).await;
    cut.collect_until(TURN_LIMIT, |frame| is_event(frame, "message"))
        .await;
    drop(cut);
    let again = client.read_to_end(&path).await;
    again.assert_complete();
    let late = client.read_to_end(&path).await;
    let data = |reading: &tidemark_tests::events::Reading| -> Vec<Value> {
        reading
            .events
            .iter()
            .map(|event| event.data.clone())
            .collect()
    };
    assert_eq!(data(&late), data(&again));
    assert_eq!(model.requests_about("Repeat me").len(), 1);
    assert_eq!(client.all("/v1/sessions").await.len(), 1);
}

async fn the_same_request_with_another_query_is_refused(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    client
        .read_to_end(&chat_stream("One", None, Some("r-4")))
        .await
        .assert_complete();
    let code = client
        .get(&chat_stream("Two", None, Some("r-4")))
        .await
        .expect_problem(422);
    assert_eq!(code, "idempotency_mismatch");
    client
        .as_user("other")
        .read_to_end(&chat_stream("Two", None, Some("r-4")))
        .await
        .assert_complete();
}

async fn many_connections_with_one_request_make_one_turn(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let path = chat_stream("Stampede [[first_ms=300]]", None, Some("r-5"));
    let answers = join_all((0..10).map(|_| client.send(client.request(Method::GET, &path)))).await;
    let streams: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 200)
        .collect();
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        refused.expect_problem(409);
    }
    assert!(!streams.is_empty());
    assert!(streams.iter().all(|answer| answer.text.contains("event: done") || answer.text.contains("event:done")));
    assert_eq!(model.requests_about("Stampede").len(), 1);
    assert_eq!(client.all("/v1/sessions").await.len(), 1);
}

async fn a_cursor_wins_over_every_parameter(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let first = client
        .read_to_end(&chat_stream("The first", None, Some("r-6")))
        .await;
    let cursor = &first.events[0].id;
    let other_session = client.create_session().await;
    let rest = client
        .read_after(
            &chat_stream("Something new", Some(&other_session), Some("r-7")),
            Some(cursor),
        )
        .await;
    rest.assert_gapless_from(2);
    assert_eq!(rest.done().unwrap().id, first.done().unwrap().id);
    assert!(model.requests_about("Something new").is_empty());
    assert!(client.history(&other_session).await.is_empty());
}
