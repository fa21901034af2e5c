//! Following a turn (A8, A9, C5): whatever has become of the log, ids without gap or repeat and one end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use tidemark_domain::event::{Terminal, TurnEvent};
use tidemark_domain::ids::TurnId;
use tidemark_domain::turn::{TurnStatus, terminal_seq_after_loss};

use super::fakes::{Diary, FakeTurns, key};
use crate::chat::follow::{Follower, Frame};
use crate::ports::events::{EventLog, EventLogError, LogRead, LoggedEvent};

/// Answers reads as written down; then says that it knows nothing.
struct ScriptedLog(Mutex<VecDeque<LogRead>>);

#[async_trait]
impl EventLog for ScriptedLog {
    async fn open(&self, _: TurnId, _: TurnEvent) -> Result<(), EventLogError> {
        Ok(())
    }

    async fn append(&self, _: TurnId, _: i64, _: Vec<LoggedEvent>) -> Result<(), EventLogError> {
        Ok(())
    }

    async fn read(
        &self,
        _: TurnId,
        _: i64,
        _: usize,
        _: Duration,
    ) -> Result<LogRead, EventLogError> {
        Ok(self
            .0
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or(LogRead::Unknown))
    }

    async fn changed(&self, _: TurnId, wait: Duration) {
        tokio::time::sleep(wait).await;
    }

    async fn resign(&self, _: TurnId) {}

    async fn forget(&self, _: &[TurnId]) -> bool {
        true
    }

    async fn tell_reasoning(&self, _: TurnId, _: &str) {}

    async fn reasoning(&self, _: TurnId) -> BoxStream<'static, String> {
        futures::stream::empty().boxed()
    }
}

fn says(seq: i64, token: &str) -> LoggedEvent {
    LoggedEvent {
        seq,
        event: TurnEvent::Message {
            token: token.to_owned(),
        },
    }
}

/// A turn that ended with `four`, its terminal event having that number; or one that runs.
fn turns(end: Option<i64>) -> Arc<FakeTurns> {
    let turns = FakeTurns::new(&Diary::default());
    if let Some(end) = end {
        let mut row = turns.row.lock().unwrap();
        row.status = TurnStatus::Completed;
        row.terminal_seq = Some(end);
        row.text = Some("four".to_owned());
    }
    Arc::new(turns)
}

fn follower(turns: &Arc<FakeTurns>, reads: Vec<LogRead>, cursor: i64) -> Follower {
    let log = Arc::new(ScriptedLog(Mutex::new(reads.into())));
    Follower::new(turns.clone(), log, key().owner, key().turn_id, cursor)
}

async fn all(mut follower: Follower) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some(more) = follower.next().await.unwrap() {
        frames.extend(more);
    }
    frames
}

fn seq(frame: &Frame) -> i64 {
    match frame {
        Frame::Event(logged) => logged.seq,
        Frame::Snapshot { seq, .. } => *seq,
    }
}

fn is_end(frame: &Frame) -> bool {
    matches!(frame, Frame::Event(e) if matches!(e.event, TurnEvent::Done(_)))
}

#[tokio::test(start_paused = true)]
async fn without_a_log_every_position_of_an_ended_turn_gets_what_is_missing_and_one_end() {
    let end = 12;
    for cursor in 0..end {
        let frames = all(follower(&turns(Some(end)), Vec::new(), cursor)).await;
        let numbers: Vec<i64> = frames.iter().map(seq).collect();
        let expected: &[i64] = if cursor == end - 1 { &[12] } else { &[11, 12] };
        assert_eq!(numbers, expected, "from {cursor}");
        assert!(is_end(frames.last().unwrap()));
        assert!(numbers.iter().all(|n| *n > cursor));
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_no_position_that_a_client_may_hold_is_told_twice() {
    let reserved = 64;
    let end = terminal_seq_after_loss(reserved);
    for cursor in 0..=reserved {
        let frames = all(follower(&turns(Some(end)), Vec::new(), cursor)).await;
        assert_eq!(frames.len(), 2, "from {cursor}");
        assert!(seq(&frames[0]) > cursor);
        assert!(is_end(&frames[1]));
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_committed_but_never_published_is_told_from_the_row() {
    let reads = vec![
        LogRead::Events(vec![says(3, "four")]),
        LogRead::Quiet,
        LogRead::Quiet,
    ];
    let frames = all(follower(&turns(Some(4)), reads, 2)).await;
    assert_eq!(frames.iter().map(seq).collect::<Vec<_>>(), [3, 4]);
    assert!(is_end(&frames[1]));
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_published_while_the_row_is_read_is_told_once() {
    let done = LoggedEvent {
        seq: 4,
        event: TurnEvent::Done(Terminal::of(&turns(Some(4)).row.lock().unwrap()).unwrap()),
    };
    let reads = vec![LogRead::Quiet, LogRead::Events(vec![says(3, "four"), done])];
    let frames = all(follower(&turns(Some(4)), reads, 2)).await;
    assert_eq!(frames.iter().map(seq).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(frames.iter().filter(|f| is_end(f)).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_position_that_the_log_of_a_running_turn_does_not_know_gets_a_snapshot() {
    let reads = vec![
        LogRead::Unknown,
        LogRead::Events(vec![says(2, "it is "), says(3, "four")]),
        LogRead::Quiet,
    ];
    let frames = follower(&turns(None), reads, 50)
        .next()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        frames,
        [Frame::Snapshot {
            seq: 3,
            text: "it is four".to_owned(),
            status: TurnStatus::Running,
        }]
    );
}

#[tokio::test(start_paused = true)]
async fn a_position_that_was_told_elsewhere_is_waited_for_where_the_log_is_behind() {
    let reads = vec![
        LogRead::Unknown,
        LogRead::Events(vec![says(2, "it is ")]),
        LogRead::Quiet,
        LogRead::Events(vec![says(4, "!")]),
    ];
    // The row has reserved 4: somebody may well have been told 3.
    let frames = follower(&turns(None), reads, 3)
        .next()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(frames, [Frame::Event(says(4, "!"))]);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_opens_between_two_looks_is_followed_without_a_snapshot() {
    let reads = vec![
        LogRead::Unknown,
        LogRead::Events(vec![says(2, "it is ")]),
        LogRead::Quiet,
        LogRead::Events(vec![says(3, "four")]),
    ];
    let frames = follower(&turns(None), reads, 2)
        .next()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(frames, [Frame::Event(says(3, "four"))]);
}

/// A log that is there and says nothing, for as long as it is asked to wait.
struct SilentLog;

#[async_trait]
impl EventLog for SilentLog {
    async fn open(&self, _: TurnId, _: TurnEvent) -> Result<(), EventLogError> {
        Ok(())
    }

    async fn append(&self, _: TurnId, _: i64, _: Vec<LoggedEvent>) -> Result<(), EventLogError> {
        Ok(())
    }

    async fn read(
        &self,
        _: TurnId,
        _: i64,
        _: usize,
        wait: Duration,
    ) -> Result<LogRead, EventLogError> {
        tokio::time::sleep(wait).await;
        Ok(LogRead::Quiet)
    }

    async fn changed(&self, _: TurnId, wait: Duration) {
        tokio::time::sleep(wait).await;
    }

    async fn resign(&self, _: TurnId) {}

    async fn forget(&self, _: &[TurnId]) -> bool {
        true
    }

    async fn tell_reasoning(&self, _: TurnId, _: &str) {}

    async fn reasoning(&self, _: TurnId) -> BoxStream<'static, String> {
        futures::stream::empty().boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_cuts_every_wait_short_does_not_hide_the_end() {
    let turns = turns(Some(4));
    let mut follower = Follower::new(turns, Arc::new(SilentLog), key().owner, key().turn_id, 3);
    for _ in 0..4 {
        let beat = tokio::time::timeout(Duration::from_secs(1), follower.next()).await;
        if let Ok(frames) = beat {
            let frames = frames.unwrap().unwrap();
            assert!(is_end(&frames[0]));
            return;
        }
    }
    panic!("the end was never told");
}
