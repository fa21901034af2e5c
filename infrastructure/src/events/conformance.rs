//! The suite that every event log must pass, seen by those who write and read at one replica. `event_log_conformance!(open)` runs it;
//! `open` is an `async fn() -> (Arc<dyn EventLog>, T)`, where `T` is kept as long as the log is used.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![expect(
    clippy::missing_panics_doc,
    reason = "a promise that is not kept panics"
)]

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tidemark_application::ports::events::{EventLog, LogRead, LoggedEvent};
use tidemark_application::ports::ids::Ids as _;
use tidemark_domain::event::{Terminal, TurnEvent};
use tidemark_domain::ids::{SessionId, TurnId};
use tidemark_domain::turn::TurnStatus;
use tokio::time::timeout;
use uuid::Uuid;

use crate::system::UuidV7;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// A turn that nobody else has.
pub fn turn() -> TurnId {
    TurnId(UuidV7::default().uuid())
}

/// The first event.
pub fn start() -> TurnEvent {
    TurnEvent::Start {
        session_id: SessionId(Uuid::nil()),
        queued: false,
    }
}

/// A piece of an answer.
pub fn word(seq: i64) -> LoggedEvent {
    LoggedEvent {
        seq,
        event: TurnEvent::Message {
            token: format!("word {seq} 你好\n"),
        },
    }
}

/// An end.
pub fn done(seq: i64) -> LoggedEvent {
    LoggedEvent {
        seq,
        event: TurnEvent::Done(Terminal {
            status: TurnStatus::Completed,
            message_id: None,
            text: "all".to_owned(),
            finish_reason: None,
            usage: None,
            problem: None,
        }),
    }
}

/// What a reader gets from `after` on until it has `enough` events, or finds the turn unknown.
pub async fn read_on(
    log: &dyn EventLog,
    turn: TurnId,
    after: i64,
    enough: usize,
) -> Vec<LoggedEvent> {
    let mut all: Vec<LoggedEvent> = Vec::new();
    let reading = async {
        while all.len() < enough {
            let cursor = all.last().map_or(after, |event| event.seq);
            match log.read(turn, cursor, 7, LONG).await.unwrap() {
                LogRead::Events(events) => {
                    assert!(!events.is_empty() && events.len() <= 7);
                    all.extend(events);
                }
                LogRead::Quiet => {}
                LogRead::Unknown => break,
            }
        }
    };
    timeout(LONG, reading).await.expect("the events come");
    all
}

/// Whether the turn is unknown, from the start.
pub async fn is_unknown(log: &dyn EventLog, turn: TurnId) -> bool {
    log.read(turn, 0, 1, Duration::ZERO).await.unwrap() == LogRead::Unknown
}

/// Every cursor finds what follows it, in parts no larger than asked for.
pub async fn cursors_find_what_follows(log: Arc<dyn EventLog>) {
    let turn = turn();
    log.open(turn, start()).await.unwrap();
    log.open(turn, start()).await.unwrap();
    let events: Vec<LoggedEvent> = (2..=40).map(word).collect();
    log.append(turn, 1, events.clone()).await.unwrap();
    for after in [0, 1, 20, 39] {
        let read = read_on(log.as_ref(), turn, after, 40 - after as usize).await;
        let seqs: Vec<i64> = read.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (after + 1..=40).collect::<Vec<i64>>());
        if after > 0 {
            assert_eq!(read[..], events[after as usize - 1..]);
        }
    }
    let at_end = log
        .read(turn, 40, 7, Duration::from_millis(50))
        .await
        .unwrap();
    assert_eq!(at_end, LogRead::Quiet);
}

/// A waiting reader is woken by what comes.
pub async fn a_waiting_reader_is_woken(log: Arc<dyn EventLog>) {
    let turn = turn();
    log.open(turn, start()).await.unwrap();
    let reader = {
        let log = Arc::clone(&log);
        tokio::spawn(async move { read_on(log.as_ref(), turn, 1, 3).await })
    };
    for seq in 2..=4 {
        tokio::time::sleep(Duration::from_millis(30)).await;
        log.append(turn, 1, vec![word(seq)]).await.unwrap();
    }
    assert_eq!(reader.await.unwrap(), [word(2), word(3), word(4)]);
}

/// What was told is passed over, a gap is refused, nothing follows the end.
pub async fn numbers_follow_each_other(log: Arc<dyn EventLog>) {
    let turn = turn();
    log.open(turn, start()).await.unwrap();
    log.append(turn, 1, vec![word(2), word(3)]).await.unwrap();
    log.append(turn, 1, vec![word(2), word(3), word(4)])
        .await
        .unwrap();
    assert!(log.append(turn, 1, vec![word(6)]).await.is_err());
    log.append(turn, 1, vec![done(5)]).await.unwrap();
    assert!(log.append(turn, 1, vec![word(6)]).await.is_err());
    let read = read_on(log.as_ref(), turn, 1, 4).await;
    assert_eq!(read, [word(2), word(3), word(4), done(5)]);
}

/// A writer whose turn was started anew elsewhere is refused silently.
pub async fn an_older_fence_is_refused(log: Arc<dyn EventLog>) {
    let turn = turn();
    log.open(turn, start()).await.unwrap();
    log.append(turn, 2, vec![word(2)]).await.unwrap();
    log.append(turn, 1, vec![word(3)]).await.unwrap();
    log.append(turn, 2, vec![done(3)]).await.unwrap();
    assert_eq!(read_on(log.as_ref(), turn, 1, 2).await, [word(2), done(3)]);
}

/// Of a turn that nobody told anything of, nothing is known, and of one that is known not what lies beyond its end.
pub async fn what_was_not_told_is_unknown(log: Arc<dyn EventLog>) {
    assert!(is_unknown(log.as_ref(), turn()).await);
    let turn = turn();
    log.open(turn, start()).await.unwrap();
    log.append(turn, 1, vec![word(2)]).await.unwrap();
    for after in [3, -1, i64::MAX] {
        let read = log.read(turn, after, 7, Duration::from_millis(50)).await;
        assert_eq!(read.unwrap(), LogRead::Unknown, "after {after}");
    }
}

/// An end that does not follow makes the turn unknown at once, for those who wait too.
pub async fn an_end_that_does_not_follow_sends_readers_to_the_stored_turn(log: Arc<dyn EventLog>) {
    let turn = turn();
    log.open(turn, start()).await.unwrap();
    let reader = {
        let log = Arc::clone(&log);
        tokio::spawn(async move {
            let read = read_on(log.as_ref(), turn, 1, 1).await;
            assert!(read.is_empty());
        })
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    log.append(turn, 2, vec![done(258)]).await.unwrap();
    timeout(Duration::from_secs(5), reader)
        .await
        .expect("within a moment")
        .unwrap();
    assert!(is_unknown(log.as_ref(), turn).await);
}

/// A reader to whom a turn was unknown hears when it opens.
pub async fn a_reader_hears_when_a_turn_opens(log: Arc<dyn EventLog>) {
    let turn = turn();
    assert!(is_unknown(log.as_ref(), turn).await);
    let reader = {
        let log = Arc::clone(&log);
        tokio::spawn(async move {
            while is_unknown(log.as_ref(), turn).await {
                log.changed(turn, LONG).await;
            }
        })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    log.open(turn, start()).await.unwrap();
    timeout(Duration::from_secs(5), reader)
        .await
        .expect("within a moment")
        .unwrap();
}

/// Nothing is left of what is forgotten, and nobody waits for it any longer.
pub async fn what_is_forgotten_is_gone(log: Arc<dyn EventLog>) {
    let (gone, stays) = (turn(), turn());
    for turn in [gone, stays] {
        log.open(turn, start()).await.unwrap();
        log.append(turn, 1, vec![word(2)]).await.unwrap();
    }
    assert!(log.forget(&[gone]).await, "it can be reached");
    assert!(is_unknown(log.as_ref(), gone).await);
    assert!(log.append(gone, 1, vec![word(3)]).await.is_err());
    assert_eq!(read_on(log.as_ref(), stays, 1, 1).await, [word(2)]);
}

/// Whoever has lost a turn tells nothing more of it.
pub async fn a_writer_that_resigns_tells_nothing_more(log: Arc<dyn EventLog>) {
    let turn = turn();
    log.open(turn, start()).await.unwrap();
    log.append(turn, 1, vec![word(2)]).await.unwrap();
    log.resign(turn).await;
    assert!(log.append(turn, 1, vec![word(3)]).await.is_err());
}

/// Reasoning reaches those who listen, until the end.
pub async fn reasoning_is_told_to_those_who_listen(log: Arc<dyn EventLog>) {
    let turn = turn();
    log.open(turn, start()).await.unwrap();
    log.tell_reasoning(turn, "unheard").await;
    let thoughts = log.reasoning(turn).await;
    log.tell_reasoning(turn, "heard").await;
    log.append(turn, 1, vec![done(2)]).await.unwrap();
    let heard: Vec<String> = timeout(LONG, thoughts.collect()).await.expect("it ends");
    assert_eq!(heard, ["heard"]);
}

/// Runs the suite on the log that `open` makes.
#[macro_export]
macro_rules! event_log_conformance {
    ($open:path) => {
        $crate::event_log_conformance!(@ $open:
            cursors_find_what_follows,
            a_waiting_reader_is_woken,
            numbers_follow_each_other,
            an_older_fence_is_refused,
            what_was_not_told_is_unknown,
            an_end_that_does_not_follow_sends_readers_to_the_stored_turn,
            a_reader_hears_when_a_turn_opens,
            what_is_forgotten_is_gone,
            a_writer_that_resigns_tells_nothing_more,
            reasoning_is_told_to_those_who_listen,
        );
    };
    (@ $open:path: $($name:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $name() {
                let (log, _kept) = $open().await;
                $crate::events::conformance::$name(log).await;
            }
        )+
    };
}
