//! A client that loses its connection, at whatever event, gets the rest and nothing twice.

use std::time::Duration;

use futures::future::join_all;
use tidemark_tests::client::{Client, TURN_LIMIT};
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::events::Reading;
use tidemark_tests::paths::{chat_stream, events_of};
use tidemark_tests::server::with_model;
use tidemark_tests::sse::{Arrived, Frame};

each_store!(
    a_finished_turn_is_resumed_from_every_position,
    a_running_turn_is_resumed_from_every_position,
    a_client_that_drops_after_each_event_loses_and_repeats_nothing,
    a_cursor_that_does_not_belong_is_refused,
    an_unknown_position_of_a_running_turn_gets_a_snapshot,
);

/// Everything that a turn can say: text, a reset, tool events, more text.
const EVENTFUL: &str =
    "Eventful [[tool=search_memory before_tool=3 tokens=12 delay_ms=40 first_ms=50]]";

async fn a_finished_turn_is_resumed_from_every_position(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let turn = client
        .post_turn(&client.create_session().await, EVENTFUL)
        .await;
    let whole = client.read_turn(&turn).await;
    whole.assert_complete();
    let (last, others) = whole.events.split_last().unwrap();
    for event in others {
        for (path, header) in [
            (events_of(&turn), Some(event.id.as_str())),
            (format!("{}?after={}", events_of(&turn), event.seq), None),
            (
                chat_stream("anything else", None, Some("unused")),
                Some(event.id.as_str()),
            ),
        ] {
            let rest = client.read_after(&path, header).await;
            rest.assert_gapless_from(event.seq + 1);
            rest.assert_one_done_last();
            assert_eq!(
                rest.events.len() as u64,
                last.seq - event.seq,
                "{path} after {}",
                event.id
            );
        }
    }
    for _ in 0..2 {
        assert_eq!(
            client.request_events(&turn, Some(&last.id)).await.status(),
            204
        );
    }
    let again = client
        .request(reqwest::Method::GET, &chat_stream("x", None, None))
        .header("last-event-id", &last.id);
    assert_eq!(client.send(again).await.status, 204);
    assert_eq!(
        client.all("/v1/sessions").await.len(),
        1,
        "a resume starts nothing"
    );
}

/// Reads `count` numbered events and drops the connection.
async fn read_some(client: &Client, path: &str, after: Option<&str>, count: usize) -> Vec<Arrived> {
    let mut stream = client.open_after(path, after).await;
    let mut frames = Vec::new();
    let mut seen = 0;
    while seen < count {
        let Some(arrived) = stream.next().await else {
            break;
        };
        seen += usize::from(matches!(arrived.frame, Frame::Event(_)));
        frames.push(arrived);
    }
    frames
}

async fn a_running_turn_is_resumed_from_every_position(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let probe = client
        .post_turn(&client.create_session().await, EVENTFUL)
        .await;
    let length = client.read_turn(&probe).await.events.len();
    let positions: Vec<usize> = (1..length).collect();
    for some in positions.chunks(6) {
        join_all(some.iter().map(|position| resume_at(&client, *position))).await;
    }
}

async fn resume_at(client: &Client, position: usize) {
    let session = client.create_session().await;
    let turn = client.post_turn(&session, EVENTFUL).await;
    let mut frames = read_some(client, &events_of(&turn), None, position).await;
    let last = Reading::of(&frames).events.last().unwrap().id.clone();
    if client.request_events(&turn, Some(&last)).await.status() == 200 {
        let mut rest = client.open_after(&events_of(&turn), Some(&last)).await;
        frames.extend(rest.collect_until(TURN_LIMIT, |_| false).await);
    }
    Reading::of(&frames).assert_complete();
}

async fn a_client_that_drops_after_each_event_loses_and_repeats_nothing(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let start = chat_stream(EVENTFUL, None, Some("drops"));
    let mut frames = Vec::new();
    let mut last = None::<String>;
    tidemark_tests::wait::within("the turn to end over many connections", TURN_LIMIT, async {
        loop {
            let some = read_some(&client, &start, last.as_deref(), 1).await;
            frames.extend(some);
            let event = Reading::of(&frames).events.last().unwrap().clone();
            last = Some(event.id);
            if event.kind == "done" {
                break;
            }
        }
    })
    .await;
    Reading::of(&frames).assert_complete();
    let end = client
        .request(reqwest::Method::GET, &start)
        .header("last-event-id", last.unwrap());
    assert_eq!(client.send(end).await.status, 204);
    assert_eq!(
        model.requests_about("Eventful").len(),
        2,
        "one turn, one round, one answer"
    );
}

async fn a_cursor_that_does_not_belong_is_refused(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    let (one, other) = (
        client.post_turn(&session, "One").await,
        client.post_turn(&session, "Other").await,
    );
    let end = client.read_turn(&one).await.done().unwrap().seq;
    client.finished(&other).await;
    let nobody = "01890000-0000-7000-8000-000000000000";
    for cursor in [
        format!("{other}:1"),
        format!("{one}:{}", end + 1),
        format!("{one}:99999999999999999999"),
        format!("{one}:-1"),
        format!("{one}:x"),
        one.clone(),
        "7".to_owned(),
        "garbage".to_owned(),
        ":".to_owned(),
    ] {
        let request = client
            .request(reqwest::Method::GET, &events_of(&one))
            .header("last-event-id", &cursor);
        client.send(request).await.expect_problem(400);
    }
    for after in [
        (end + 1).to_string(),
        "x".to_owned(),
        "-1".to_owned(),
        "1.5".to_owned(),
    ] {
        client
            .get(&format!("{}?after={after}", events_of(&one)))
            .await
            .expect_problem_with(400, "after");
    }
    for (cursor, status) in [
        ("garbage".to_owned(), 400),
        (format!("{one}:x"), 400),
        (format!("{nobody}:1"), 404),
    ] {
        let request = client
            .request(reqwest::Method::GET, &chat_stream("x", None, None))
            .header("last-event-id", &cursor);
        client.send(request).await.expect_problem(status);
    }
    assert_eq!(
        client.all("/v1/sessions").await.len(),
        1,
        "no turn was started"
    );
}

async fn an_unknown_position_of_a_running_turn_gets_a_snapshot(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let turn = client
        .post_turn(
            &client.create_session().await,
            "Ahead [[tokens=30 delay_ms=50]]",
        )
        .await;
    client.until_status(&turn, "running").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let reading = client
        .read_after(&events_of(&turn), Some(&format!("{turn}:5000")))
        .await;
    assert_eq!(
        reading.kinds().first(),
        Some(&"snapshot"),
        "{:?}",
        reading.kinds()
    );
    let done = reading.assert_one_done_last();
    assert_eq!(
        done.data["text"],
        reading.text(),
        "the snapshot and what followed are the text"
    );
}
