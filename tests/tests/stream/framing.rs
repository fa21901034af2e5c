//! How a stream looks, and what it promises about its text and its end.

use serde_json::{Value, json};
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::paths::{events_of, turns_of};
use tidemark_tests::server::with_model;

each_store!(
    the_headers_keep_caches_and_proxies_away,
    events_are_numbered_without_gap_and_tokens_equal_the_text,
    every_reader_of_a_turn_gets_the_same_events,
    whoever_saw_done_finds_the_answer_in_the_history,
    text_shown_before_a_tool_round_is_void,
    reasoning_is_shown_only_to_who_asks_for_it,
);

async fn the_headers_keep_caches_and_proxies_away(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let turn = client
        .post_turn(&client.create_session().await, "Hello")
        .await;
    let request = client
        .request(reqwest::Method::GET, &events_of(&turn))
        .header("accept-encoding", "gzip, br");
    let answer = client.send(request).await;
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .header("content-type")
            .starts_with("text/event-stream"),
        "{:?}",
        answer.headers
    );
    let cache = answer.header("cache-control");
    assert!(
        cache.contains("no-cache") && cache.contains("no-transform"),
        "{cache}"
    );
    assert_eq!(answer.header("x-accel-buffering"), "no");
    assert_eq!(
        answer.header("content-encoding"),
        "",
        "a compressor holds events back"
    );
    assert!(!answer.text.contains('\r') && answer.text.ends_with("\n\n"));
    let first = answer
        .text
        .split("\n\n")
        .find(|block| block.contains("retry:"))
        .unwrap();
    assert!(
        first.contains("retry: 2000") || first.contains("retry:2000"),
        "{first}"
    );
}

async fn events_are_numbered_without_gap_and_tokens_equal_the_text(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    for message in [
        "Short [[tokens=1]]",
        "Fast [[tokens=400]]",
        "Slow [[tokens=15 delay_ms=30]]",
        "Tools [[tool=search_memory tool_rounds=2]]",
        "Empty [[think=1 text=猫は_ね_🌊]]",
    ] {
        let turn = client.post_turn(&session, message).await;
        let reading = client.read_turn(&turn).await;
        let text = reading.assert_complete();
        let start = &reading.events[0].data;
        assert_eq!(start["session_id"], session.as_str());
        assert!(
            matches!(start["status"].as_str(), Some("queued" | "processing")),
            "{start}"
        );
        assert_eq!(
            reading.of_kind("recall").len(),
            1,
            "recall is told once: {:?}",
            reading.kinds()
        );
        let done = &reading.done().unwrap().data;
        assert!(
            done["usage"].is_object()
                && done["finish_reason"].is_string()
                && done["message_id"].is_string(),
            "{done}"
        );
        assert_eq!(client.turn(&turn).await["text"], text.as_str());
    }
}

async fn every_reader_of_a_turn_gets_the_same_events(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let turn = client
        .post_turn(
            &client.create_session().await,
            "Many [[tokens=30 delay_ms=20]]",
        )
        .await;
    let readings = futures::future::join_all((0..8).map(|_| client.read_turn(&turn))).await;
    let late = client.read_turn(&turn).await;
    let expected: Vec<&Value> = late.events.iter().map(|event| &event.data).collect();
    for reading in &readings {
        assert_eq!(
            reading
                .events
                .iter()
                .map(|event| &event.data)
                .collect::<Vec<_>>(),
            expected
        );
    }
}

async fn whoever_saw_done_finds_the_answer_in_the_history(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    for n in 0..15 {
        let turn = client
            .post_turn(&session, &format!("Question {n} [[tokens=2]]"))
            .await;
        let reading = client.read_turn(&turn).await;
        let done = &reading.done().unwrap().data;
        let history = client.history(&session).await;
        let answer = history
            .iter()
            .find(|message| message["id"] == done["message_id"]);
        assert_eq!(
            answer.map(|message| &message["content"]),
            Some(&done["text"]),
            "{done}"
        );
    }
}

async fn text_shown_before_a_tool_round_is_void(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    client.ask(&session, "First, so that no intro comes").await;
    let turn = client
        .post_turn(
            &session,
            "Look [[tool=search_memory before_tool=5 text=The_answer]]",
        )
        .await;
    let reading = client.read_turn(&turn).await;
    assert_eq!(reading.assert_complete(), "The answer");
    let kinds = reading.kinds();
    let reset = kinds
        .iter()
        .position(|kind| *kind == "reset")
        .expect("a reset");
    assert!(
        kinds[..reset].contains(&"message"),
        "text was shown before: {kinds:?}"
    );
    let states: Vec<&Value> = reading
        .of_kind("tool")
        .iter()
        .map(|event| &event.data["state"])
        .collect();
    assert_eq!(
        (states.first(), states.last()),
        (Some(&&json!("started")), Some(&&json!("finished"))),
        "{states:?}"
    );
    let tool = &reading.of_kind("tool")[0].data;
    assert!(
        tool["call_id"].is_string() && tool["name"] == "search_memory",
        "{tool}"
    );
}

async fn reasoning_is_shown_only_to_who_asks_for_it(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    let body = json!({"message": "Think [[reasoning=1 tokens=4 delay_ms=100 first_ms=500]]"});
    let accepted = client.post(&turns_of(&session), &body).await.expect(202);
    let turn = accepted["turn_id"].as_str().unwrap();
    let asking = format!("{}?reasoning=true", events_of(turn));
    let (curious, plain) = tokio::join!(client.read_to_end(&asking), client.read_turn(turn));
    assert!(
        curious.reasoning.contains("private reasoning"),
        "{:?}",
        curious.reasoning
    );
    assert_eq!(plain.reasoning, "");
    assert_eq!(curious.assert_complete(), plain.assert_complete());
    assert_eq!(
        client.read_to_end(&asking).await.reasoning,
        "",
        "reasoning is never replayed"
    );
}
