//! Readers that are slow or many harm nobody.

use std::time::{Duration, Instant};

use futures::future::join_all;
use tidemark_tests::client::TURN_LIMIT;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::events::Reading;
use tidemark_tests::paths::events_of;
use tidemark_tests::server::with_model;

each_store!(
    a_reader_that_does_not_read_holds_nobody_and_misses_nothing,
    many_readers_are_served_at_once
);

async fn a_reader_that_does_not_read_holds_nobody_and_misses_nothing(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let turn = client
        .post_turn(&client.create_session().await, "Flood [[tokens=60000]]")
        .await;
    let mut idle = Vec::new();
    for _ in 0..5 {
        idle.push(client.open(&events_of(&turn)).await);
    }
    let started = Instant::now();
    client.read_turn(&turn).await.assert_complete();
    let other = client.create_session().await;
    assert_eq!(client.ask(&other, "Quick").await["status"], "completed");
    assert!(
        started.elapsed() < Duration::from_secs(40),
        "{:?}",
        started.elapsed()
    );
    for mut stream in idle {
        let frames = stream.collect_until(TURN_LIMIT, |_| false).await;
        Reading::of(&frames).assert_complete();
    }
}

async fn many_readers_are_served_at_once(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let one = |n: usize| {
        let client = client.as_user(&format!("user-{n}"));
        async move {
            let turn = client
                .post_turn(
                    &client.create_session().await,
                    "Together [[tokens=10 delay_ms=50]]",
                )
                .await;
            client.read_turn(&turn).await.assert_complete()
        }
    };
    let texts = join_all((0..60).map(one)).await;
    assert_eq!(texts.len(), 60);
    model.assert_every_transcript_was_valid();
}
