//! When the log of a turn is gone, the stored turn answers.

use std::time::Duration;

use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::events::TurnEvent;
use tidemark_tests::model::Model;
use tidemark_tests::paths::{chat_stream, events_of};
use tidemark_tests::server::{Setup, with_model};

each_store!(
    after_the_retention_a_snapshot_and_the_end_are_told,
    after_a_restart_a_snapshot_and_the_end_are_told,
);

async fn after_the_retention_a_snapshot_and_the_end_are_told(store: Store) {
    let model = Model::start().await;
    let server = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_STREAM__RETENTION_SECONDS", "1")
        .start()
        .await;
    let client = server.client();
    let path = chat_stream("Short memory [[tokens=6]]", None, Some("e-1"));
    let reading = client.read_to_end(&path).await;
    reading.assert_complete();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_stored_turn_answers(&client, &path, reading.done().unwrap()).await;
}

async fn after_a_restart_a_snapshot_and_the_end_are_told(store: Store) {
    let (mut server, _model, client) = with_model(store).await;
    let path = chat_stream("New process [[tokens=6]]", None, Some("e-2"));
    let reading = client.read_to_end(&path).await;
    reading.assert_complete();
    server.restart().await;
    assert_stored_turn_answers(&server.client(), &path, reading.done().unwrap()).await;
}

async fn assert_stored_turn_answers(client: &Client, path: &str, done: &TurnEvent) {
    let turn = done.data["turn_id"].as_str().unwrap();
    let cursor = |seq: u64| format!("{turn}:{seq}");
    let before_the_end = [None, Some(cursor(1)), Some(cursor(done.seq - 2))];
    for after in &before_the_end {
        for address in [events_of(turn), path.to_owned()] {
            let reading = client.read_after(&address, after.as_deref()).await;
            assert_eq!(reading.kinds(), ["snapshot", "done"], "after {after:?}");
            assert_eq!(reading.events[0].data["text"], done.data["text"]);
            let (seqs, end) = (reading.seqs(), reading.assert_one_done_last());
            assert_eq!(seqs, [done.seq - 1, done.seq], "the end keeps its number");
            assert_eq!(
                (&end.data["text"], &end.data["message_id"]),
                (&done.data["text"], &done.data["message_id"])
            );
        }
    }
    let last = client
        .read_after(&events_of(turn), Some(&cursor(done.seq - 1)))
        .await;
    assert_eq!(last.kinds(), ["done"]);
    assert_eq!(
        client
            .request_events(turn, Some(&cursor(done.seq)))
            .await
            .status(),
        204
    );
    assert_eq!(
        client
            .request_events(turn, Some(&cursor(done.seq + 1)))
            .await
            .status(),
        400
    );
}
