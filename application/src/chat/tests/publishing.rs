//! Numbers of events.

use std::sync::Arc;

use tidemark_domain::event::TurnEvent;

use super::fakes::{Diary, FakeLog, FakeTurns, key};
use crate::chat::publisher::Publisher;

#[tokio::test]
async fn a_number_is_reserved_before_it_is_used() {
    let diary = Diary::default();
    let log = Arc::new(FakeLog::new(&diary));
    let mut publisher = Publisher::new(log, Arc::new(FakeTurns::new(&diary)), key(), 3, 2);
    for _ in 0..5 {
        let token = "x".to_owned();
        publisher
            .publish(TurnEvent::Message { token })
            .await
            .unwrap();
    }
    assert_eq!(
        diary.entries(),
        [
            "publish 2",
            "publish 3",
            "reserve up to 5",
            "publish 4",
            "publish 5",
            "reserve up to 7",
            "publish 6"
        ]
    );
    assert_eq!(publisher.used(), 6);
}
