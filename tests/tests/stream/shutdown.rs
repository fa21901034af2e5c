//! SIGTERM: streams are told when to come back, and the process is gone within the drain time.

use std::time::Duration;

use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::events::Reading;
use tidemark_tests::paths::{chat_stream, events_of, is_event, is_over};
use tidemark_tests::server::with_model;

each_store!(
    a_stop_tells_open_streams_and_ends_in_time,
    an_idle_server_stops_at_once
);

async fn a_stop_tells_open_streams_and_ends_in_time(store: Store) {
    let (mut server, model, client) = with_model(store).await;
    let path = chat_stream("Endless [[tokens=1000 delay_ms=100]]", None, Some("d-1"));
    let mut stream = client.open(&path).await;
    let mut frames = stream
        .collect_until(Duration::from_secs(20), |frame| is_event(frame, "message"))
        .await;
    let second = client
        .post_turn(
            &client.create_session().await,
            "Stalled [[tokens=5 stall_ms=60000 stall_after=2]]",
        )
        .await;
    let mut quiet = client.open(&events_of(&second)).await;
    client.until_status(&second, "running").await;
    let retries = Reading::of(&frames).retries.len();
    let (stopped, rest, other) = tokio::join!(
        server.terminate(Duration::from_secs(30)),
        stream.collect_until(Duration::from_secs(30), |_| false),
        quiet.collect_until(Duration::from_secs(30), |_| false),
    );
    assert!(stopped.0.success(), "{}", stopped.0);
    println!("stopped after {:?}", stopped.1);
    assert!(
        stopped.1 <= Duration::from_millis(10_500),
        "the drain took {:?}",
        stopped.1
    );
    assert_eq!(
        (&stream.ended, &quiet.ended),
        (&Some(Ok(())), &Some(Ok(()))),
        "streams end properly"
    );
    frames.extend(rest);
    let reading = Reading::of(&frames);
    let told = |reading: &Reading, before: usize| {
        reading.retries.len() > before || reading.done().is_some()
    };
    assert!(
        told(&reading, retries) && told(&Reading::of(&other), 1),
        "each stream got a retry or its end"
    );

    server.start_again().await;
    let client = server.client();
    let first = reading.events[0].data["turn_id"].as_str().unwrap();
    let session = reading.events[0].data["session_id"].as_str().unwrap();
    for turn in [first, &second] {
        assert!(is_over(&client.finished(turn).await));
        client.read_turn(turn).await.assert_one_done_last();
    }
    let last = &reading.events.last().unwrap().id;
    if reading.done().is_none() {
        client
            .read_after(&path, Some(last))
            .await
            .assert_one_done_last();
    }
    assert_eq!(client.ask(session, "Next").await["status"], "completed");
    model.assert_every_transcript_was_valid();
}

async fn an_idle_server_stops_at_once(store: Store) {
    let (mut server, _model, client) = with_model(store).await;
    client.ask(&client.create_session().await, "Hello").await;
    let (status, took) = server.terminate(Duration::from_secs(20)).await;
    assert!(status.success(), "{status}");
    assert!(
        took < Duration::from_secs(5),
        "an idle server took {took:?} to stop"
    );
}
