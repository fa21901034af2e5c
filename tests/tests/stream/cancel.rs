//! Stop: what was shown is kept and marked, and the session goes on.

use std::time::Duration;

use serde_json::{Value, json};
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::events::Reading;
use tidemark_tests::paths::{events_of, is_event};
use tidemark_tests::server::with_model;
use tidemark_tests::transcript::violations;

each_store!(
    a_cancelled_turn_keeps_what_was_shown_and_says_so,
    cancelling_during_a_tool_round_leaves_a_valid_transcript,
    cancelling_again_or_too_late_changes_nothing,
    whoever_follows_turns_of_a_session_that_is_deleted_is_told_their_end,
);

async fn a_cancelled_turn_keeps_what_was_shown_and_says_so(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let session = client.create_session().await;
    let turn = client
        .post_turn(
            &session,
            "My umbrella is violet. [[tokens=500 delay_ms=30]]",
        )
        .await;
    let mut stream = client.open(&events_of(&turn)).await;
    let mut frames = Vec::new();
    for _ in 0..3 {
        frames.extend(
            stream
                .collect_until(Duration::from_secs(20), |frame| is_event(frame, "message"))
                .await,
        );
    }
    client
        .post(&format!("/v1/turns/{turn}/cancel"), &json!({}))
        .await;
    frames.extend(
        stream
            .collect_until(Duration::from_secs(10), |_| false)
            .await,
    );
    let reading = Reading::of(&frames);
    reading.assert_gapless_from(1);
    let done = reading.assert_one_done_last();
    assert_eq!(done.data["status"], "cancelled");
    let partial = reading.text();
    assert!(
        partial.contains("word1") && !partial.contains("word500"),
        "{partial}"
    );
    let stored = client.turn(&turn).await;
    assert_eq!(
        (&stored["status"], &stored["text"]),
        (&json!("cancelled"), &json!(partial))
    );
    let history = client.history(&session).await;
    assert_eq!(history.len(), 2);
    assert_eq!(history[1]["content"], partial.as_str());
    assert_eq!(
        history[1]["partial"], true,
        "the partial answer is marked: {}",
        history[1]
    );
    model.until_idle().await;
    assert_eq!(model.clients_gone(), 1, "the model is not left running");
    client.until_no_jobs().await;
    assert_eq!(
        client.recall("What colour is my umbrella?").await,
        Vec::<Value>::new(),
        "nothing is learned"
    );
    assert_eq!(client.ask(&session, "Next").await["status"], "completed");
    model.assert_every_transcript_was_valid();
}

async fn cancelling_during_a_tool_round_leaves_a_valid_transcript(store: Store) {
    let (_server, model, client) = with_model(store).await;
    for n in 0..6_u64 {
        let session = client.create_session().await;
        let turn = client.post_turn(&session, "Rounds [[tool=search_memory tool_rounds=5 tool_calls=2 before_tool=4 delay_ms=15]]").await;
        tokio::time::sleep(Duration::from_millis(60 * n)).await;
        client
            .post(&format!("/v1/turns/{turn}/cancel"), &json!({}))
            .await;
        client.finished(&turn).await;
        let history = client.history(&session).await;
        assert_eq!(violations(&history), Vec::<String>::new(), "{history:#?}");
        assert_eq!(client.ask(&session, "Next").await["status"], "completed");
    }
    model.assert_every_transcript_was_valid();
}

async fn cancelling_again_or_too_late_changes_nothing(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    let turn = client.post_turn(&session, "Whole").await;
    let before = client.finished(&turn).await;
    for _ in 0..2 {
        let answer = client
            .post(&format!("/v1/turns/{turn}/cancel"), &json!({}))
            .await;
        assert!((200..300).contains(&answer.status), "{}", answer.text);
    }
    assert_eq!(client.turn(&turn).await, before);
    let running = client
        .post_turn(&session, "Part [[tokens=500 delay_ms=30]]")
        .await;
    client.until_status(&running, "running").await;
    for _ in 0..3 {
        let answer = client
            .post(&format!("/v1/turns/{running}/cancel"), &json!({}))
            .await;
        assert!((200..300).contains(&answer.status), "{}", answer.text);
    }
    assert_eq!(client.finished(&running).await["status"], "cancelled");
    client.read_turn(&running).await.assert_one_done_last();
}

async fn whoever_follows_turns_of_a_session_that_is_deleted_is_told_their_end(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    let running = client
        .post_turn(&session, "Long [[tokens=500 delay_ms=30]]")
        .await;
    client.until_status(&running, "running").await;
    let waiting = client.post_turn(&session, "Next").await;
    let mut streams = Vec::new();
    for turn in [&running, &waiting] {
        let mut stream = client.open(&events_of(turn)).await;
        let first = stream
            .collect_until(Duration::from_secs(10), |frame| is_event(frame, "start"))
            .await;
        streams.push((stream, first));
    }
    let path = format!("/v1/sessions/{session}");
    assert_eq!(client.delete(&path).await.status, 204);
    for (mut stream, mut frames) in streams {
        frames.extend(
            stream
                .collect_until(Duration::from_secs(10), |_| false)
                .await,
        );
        let reading = Reading::of(&frames);
        assert_eq!(reading.assert_one_done_last().data["status"], "cancelled");
    }
    client.get(&events_of(&running)).await.expect_problem(404);
}
