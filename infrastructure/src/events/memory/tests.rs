#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::atomic::AtomicI64;

use tidemark_domain::event::Terminal;
use tidemark_domain::ids::SessionId;
use tidemark_domain::turn::TurnStatus;
use tokio::time::{advance, timeout};
use uuid::Uuid;

use super::*;

const LONG: Duration = Duration::from_mins(1);
const NO_WAIT: Duration = Duration::ZERO;

fn turn(n: u128) -> TurnId {
    TurnId(Uuid::from_u128(n))
}

fn start() -> TurnEvent {
    TurnEvent::Start {
        session_id: SessionId(Uuid::nil()),
        queued: false,
    }
}

fn word(seq: i64) -> LoggedEvent {
    LoggedEvent {
        seq,
        event: TurnEvent::Message {
            token: format!("word {seq}"),
        },
    }
}

fn done(seq: i64) -> LoggedEvent {
    LoggedEvent {
        seq,
        event: TurnEvent::Done(Terminal {
            status: TurnStatus::Completed,
            message_id: None,
            text: String::new(),
            finish_reason: None,
            usage: None,
            problem: None,
        }),
    }
}

fn log() -> MemoryEventLog {
    MemoryEventLog::new(MemoryEventLogOptions::default())
}

async fn seqs(log: &MemoryEventLog, turn: TurnId, after: i64) -> Vec<i64> {
    match log.read(turn, after, 1_000_000, NO_WAIT).await.unwrap() {
        LogRead::Events(events) => events.iter().map(|e| e.seq).collect(),
        other => panic!("{other:?}"),
    }
}

async fn is_known(log: &MemoryEventLog, turn: TurnId) -> bool {
    log.read(turn, 0, 1, NO_WAIT).await.unwrap() != LogRead::Unknown
}

/// Opens a turn with words up to `last`, the last one its end if `ended`.
async fn filled(log: &MemoryEventLog, turn: TurnId, last: i64, ended: bool) {
    log.open(turn, start()).await.unwrap();
    let mut events: Vec<_> = (2..=last).map(word).collect();
    if ended {
        *events.last_mut().unwrap() = done(last);
    }
    log.append(turn, 1, events).await.unwrap();
}

#[tokio::test]
async fn every_cursor_finds_what_follows_it_and_no_more_than_it_asks_for() {
    let log = log();
    filled(&log, turn(1), 5, false).await;
    assert_eq!(seqs(&log, turn(1), 0).await, [1, 2, 3, 4, 5]);
    assert_eq!(seqs(&log, turn(1), 3).await, [4, 5]);
    let LogRead::Events(two) = log.read(turn(1), 1, 2, NO_WAIT).await.unwrap() else {
        panic!()
    };
    assert_eq!(two, [word(2), word(3)]);
    assert_eq!(
        log.read(turn(1), 5, 10, NO_WAIT).await.unwrap(),
        LogRead::Quiet
    );
}

#[tokio::test]
async fn a_cursor_that_no_event_precedes_is_unknown() {
    let log = log();
    filled(&log, turn(1), 5, true).await;
    for (turn, after) in [
        (turn(1), 6),
        (turn(1), -1),
        (turn(1), i64::MAX),
        (turn(2), 0),
    ] {
        assert_eq!(
            log.read(turn, after, 10, LONG).await.unwrap(),
            LogRead::Unknown
        );
    }
}

#[tokio::test]
async fn opening_again_changes_nothing() {
    let log = log();
    filled(&log, turn(1), 3, false).await;
    log.open(turn(1), start()).await.unwrap();
    assert_eq!(seqs(&log, turn(1), 0).await, [1, 2, 3]);
}

#[tokio::test]
async fn numbers_not_above_the_last_are_passed_over() {
    let log = log();
    filled(&log, turn(1), 3, false).await;
    let other = LoggedEvent {
        seq: 3,
        event: TurnEvent::Reset { reason: "x".into() },
    };
    log.append(turn(1), 1, vec![word(1), word(2), other, word(4)])
        .await
        .unwrap();
    let LogRead::Events(events) = log.read(turn(1), 2, 10, NO_WAIT).await.unwrap() else {
        panic!()
    };
    assert_eq!(events, [word(3), word(4)]);
}

#[tokio::test]
async fn a_gap_is_refused_and_what_precedes_it_is_kept() {
    let log = log();
    filled(&log, turn(1), 3, false).await;
    log.append(turn(1), 1, vec![word(4), word(6)])
        .await
        .unwrap_err();
    assert_eq!(seqs(&log, turn(1), 0).await, [1, 2, 3, 4]);
    log.append(turn(1), 1, vec![word(5)]).await.unwrap();
}

#[tokio::test]
async fn nothing_follows_the_end_which_may_be_told_again() {
    let log = log();
    filled(&log, turn(1), 3, true).await;
    log.append(turn(1), 1, vec![done(3)]).await.unwrap();
    log.append(turn(1), 1, vec![word(4)]).await.unwrap_err();
    assert_eq!(seqs(&log, turn(1), 0).await, [1, 2, 3]);
}

#[tokio::test]
async fn a_turn_without_a_log_takes_no_events() {
    log().append(turn(1), 1, vec![word(2)]).await.unwrap_err();
}

#[tokio::test]
async fn a_writer_with_a_lower_fence_is_refused_silently() {
    let log = log();
    filled(&log, turn(1), 2, false).await;
    log.append(turn(1), 5, vec![word(3)]).await.unwrap();
    log.append(turn(1), 4, vec![word(4), done(5)])
        .await
        .unwrap();
    assert_eq!(seqs(&log, turn(1), 0).await, [1, 2, 3]);
    log.append(turn(1), 5, vec![word(4)]).await.unwrap();
    log.append(turn(1), 6, vec![word(5)]).await.unwrap();
    assert_eq!(seqs(&log, turn(1), 3).await, [4, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_at_the_end_waits_as_long_as_it_says_and_wakes_when_something_comes() {
    let log = Arc::new(log());
    filled(&log, turn(1), 2, false).await;
    let began = Instant::now();
    assert_eq!(
        log.read(turn(1), 2, 10, LONG).await.unwrap(),
        LogRead::Quiet
    );
    assert_eq!(began.elapsed(), LONG);
    let reader = tokio::spawn({
        let log = Arc::clone(&log);
        async move { log.read(turn(1), 2, 10, LONG).await.unwrap() }
    });
    tokio::task::yield_now().await;
    let began = Instant::now();
    log.append(turn(1), 1, vec![word(3)]).await.unwrap();
    assert_eq!(reader.await.unwrap(), LogRead::Events(vec![word(3)]));
    assert_eq!(began.elapsed(), NO_WAIT);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_reader_of_a_forgotten_turn_does_not_wait_on() {
    let log = Arc::new(log());
    filled(&log, turn(1), 2, true).await;
    let reader = tokio::spawn({
        let log = Arc::clone(&log);
        async move {
            log.read(turn(1), 2, 10, Duration::from_hours(1))
                .await
                .unwrap()
        }
    });
    tokio::task::yield_now().await;
    advance(Duration::from_mins(15)).await;
    log.sweep(Instant::now());
    let began = Instant::now();
    assert_eq!(reader.await.unwrap(), LogRead::Unknown);
    assert_eq!(began.elapsed(), NO_WAIT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_readers_at_different_cursors_all_get_everything_and_none_is_forgotten_while_it_waits()
 {
    const LAST: i64 = 2_000;
    let log = Arc::new(log());
    log.open(turn(1), start()).await.unwrap();
    let readers: Vec<_> = (0..1_000_i64)
        .map(|n| {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let mut cursor = 0;
                let mut seen = 0;
                loop {
                    // Only a lost wake-up makes a reader wait this long.
                    match log
                        .read(turn(1), cursor, 1 + n as usize % 97, LONG)
                        .await
                        .unwrap()
                    {
                        LogRead::Events(events) => {
                            for event in events {
                                assert_eq!(event.seq, cursor + 1);
                                cursor = event.seq;
                                seen += 1;
                            }
                        }
                        LogRead::Quiet => panic!("reader {n} slept at {cursor}"),
                        LogRead::Unknown if cursor == 0 => tokio::task::yield_now().await,
                        LogRead::Unknown => panic!("reader {n} at {cursor}"),
                    }
                    if cursor == LAST {
                        return seen;
                    }
                }
            })
        })
        .collect();
    for seq in 2..LAST {
        log.append(turn(1), 1, vec![word(seq)]).await.unwrap();
        if seq % 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
    log.append(turn(1), 1, vec![done(LAST)]).await.unwrap();
    for reader in readers {
        let seen = timeout(Duration::from_secs(50), reader)
            .await
            .expect("no reader sleeps")
            .unwrap();
        assert_eq!(seen, LAST);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wake_up_is_lost_between_a_readers_look_and_its_wait() {
    // Each event is appended just when the reader turns to wait for it, and no later one would wake it.
    const LAST: i64 = 50_000;
    let log = Arc::new(log());
    log.open(turn(1), start()).await.unwrap();
    let cursor = Arc::new(AtomicI64::new(1));
    let reader = tokio::spawn({
        let (log, cursor) = (Arc::clone(&log), Arc::clone(&cursor));
        async move {
            while cursor.load(Ordering::Acquire) < LAST {
                let after = cursor.load(Ordering::Acquire);
                let began = Instant::now();
                match log
                    .read(turn(1), after, 10, Duration::from_secs(5))
                    .await
                    .unwrap()
                {
                    LogRead::Events(events) => {
                        assert!(began.elapsed() < Duration::from_secs(4), "slept at {after}");
                        cursor.store(events.last().unwrap().seq, Ordering::Release);
                    }
                    other => panic!("{other:?} at {after}"),
                }
            }
        }
    });
    for seq in 2..=LAST {
        while cursor.load(Ordering::Acquire) < seq - 1 && !reader.is_finished() {
            std::hint::spin_loop();
        }
        for step in 0..seq % 500 {
            std::hint::black_box(step); // sweeps the moment of the append across the reader's path
        }
        log.append(turn(1), 1, vec![word(seq)]).await.unwrap();
    }
    reader.await.unwrap();
}

#[tokio::test]
async fn a_slow_reader_costs_nothing_and_loses_nothing() {
    let alone = log();
    filled(&alone, turn(1), 5_000, false).await;
    let watched = log();
    watched.open(turn(1), start()).await.unwrap();
    let mut slow: Vec<i64> = seqs(&watched, turn(1), 0).await;
    let _hears = watched.reasoning(turn(1)).await;
    watched
        .append(turn(1), 1, (2..=5_000).map(word).collect())
        .await
        .unwrap();
    assert_eq!(
        watched.bytes.load(Ordering::Relaxed),
        alone.bytes.load(Ordering::Relaxed)
    );
    slow.extend(seqs(&watched, turn(1), 1).await);
    assert_eq!(slow, (1..=5_000).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn an_ended_turn_is_kept_for_its_retention_and_an_open_one_longer() {
    let log = log();
    filled(&log, turn(1), 3, true).await;
    filled(&log, turn(2), 3, false).await;
    advance(Duration::from_secs(899)).await;
    log.sweep(Instant::now());
    assert!(is_known(&log, turn(1)).await);
    advance(Duration::from_secs(1)).await;
    log.sweep(Instant::now());
    assert!(!is_known(&log, turn(1)).await);
    assert!(is_known(&log, turn(2)).await);
}

#[tokio::test(start_paused = true)]
async fn retention_counts_from_the_end_and_not_from_the_beginning() {
    let log = log();
    filled(&log, turn(1), 3, false).await;
    advance(Duration::from_secs(2_000)).await;
    log.append(turn(1), 1, vec![done(4)]).await.unwrap();
    advance(Duration::from_secs(899)).await;
    log.sweep(Instant::now());
    assert!(is_known(&log, turn(1)).await);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_was_abandoned_is_forgotten_at_last() {
    let log = log();
    let day = MemoryEventLogOptions::default().abandoned_after;
    filled(&log, turn(1), 3, false).await;
    advance(day / 2).await;
    log.append(turn(1), 1, vec![word(4)]).await.unwrap();
    advance(day / 2).await;
    log.sweep(Instant::now());
    assert!(
        is_known(&log, turn(1)).await,
        "it was not silent for so long"
    );
    advance(day / 2).await;
    log.sweep(Instant::now());
    assert!(!is_known(&log, turn(1)).await);
    log.append(turn(1), 1, vec![word(5)]).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn over_the_budget_the_turn_that_ended_first_goes_first_and_open_ones_last() {
    let log = MemoryEventLog::new(MemoryEventLogOptions {
        max_bytes: 60_000,
        ..MemoryEventLogOptions::default()
    });
    let open = turn(99);
    filled(&log, open, 10, false).await;
    for n in 1..=20 {
        advance(Duration::from_secs(1)).await;
        filled(&log, turn(n), 50, true).await;
        assert!(log.bytes.load(Ordering::Relaxed) <= 60_000);
        assert!(is_known(&log, turn(n)).await, "the newest is there");
        assert!(is_known(&log, open).await, "the open one is there");
    }
    let mut kept = Vec::new();
    for n in 1..=20 {
        kept.push(is_known(&log, turn(n)).await);
    }
    assert!(
        kept.is_sorted() && kept.contains(&false),
        "the oldest went: {kept:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn open_turns_over_the_budget_go_by_their_silence_and_the_writer_stays() {
    let log = MemoryEventLog::new(MemoryEventLogOptions {
        max_bytes: 60_000,
        ..MemoryEventLogOptions::default()
    });
    for n in 1..=4 {
        filled(&log, turn(n), 50, false).await;
        advance(Duration::from_secs(1)).await;
    }
    log.append(turn(1), 1, (51..=400).map(word).collect())
        .await
        .unwrap();
    assert!(is_known(&log, turn(1)).await);
    assert!(!is_known(&log, turn(2)).await);
    assert_eq!(seqs(&log, turn(1), 399).await, [400]);
}

#[tokio::test(start_paused = true)]
async fn when_all_is_forgotten_no_byte_is_counted() {
    let log = log();
    for n in 1..=10 {
        filled(&log, turn(n), n as i64 * 3, n % 2 == 0).await;
    }
    assert!(log.bytes.load(Ordering::Relaxed) > 0);
    advance(Duration::from_secs(100_000)).await;
    log.sweep(Instant::now());
    assert_eq!(log.bytes.load(Ordering::Relaxed), 0);
    assert!(log.read_lock().logs.is_empty() && log.read_lock().ended.is_empty());
}

#[tokio::test(start_paused = true)]
async fn turns_that_are_gone_leave_nothing_in_the_log() {
    let log = log();
    for n in 1..=4 {
        filled(&log, turn(n), 3, n % 2 == 0).await;
    }
    log.forget(&[turn(1), turn(2), turn(9)]).await;
    for (n, known) in [(1, false), (2, false), (3, true), (4, true)] {
        assert_eq!(is_known(&log, turn(n)).await, known, "{n}");
    }
    log.forget(&[turn(3), turn(4)]).await;
    assert_eq!(log.bytes.load(Ordering::Relaxed), 0);
    assert!(log.read_lock().ended.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_started_log_sweeps_itself_and_stops_when_nobody_holds_it() {
    let log = MemoryEventLog::start(MemoryEventLogOptions::default());
    filled(&log, turn(1), 3, true).await;
    tokio::time::sleep(Duration::from_secs(890)).await;
    assert!(is_known(&log, turn(1)).await);
    tokio::time::sleep(Duration::from_secs(16)).await;
    assert!(!is_known(&log, turn(1)).await);
    let held = Arc::downgrade(&log);
    drop(log);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(held.upgrade().is_none());
    assert_eq!(
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks(),
        0
    );
}

#[tokio::test]
async fn reasoning_is_heard_from_now_on_by_everybody_until_the_end() {
    let log = log();
    log.open(turn(1), start()).await.unwrap();
    log.tell_reasoning(turn(1), "before").await;
    let first = log.reasoning(turn(1)).await;
    log.tell_reasoning(turn(1), "a").await;
    let second = log.reasoning(turn(1)).await;
    log.tell_reasoning(turn(1), "b").await;
    log.append(turn(1), 1, vec![done(2)]).await.unwrap();
    log.tell_reasoning(turn(1), "after").await;
    assert_eq!(first.collect::<Vec<_>>().await, ["a", "b"]);
    assert_eq!(second.collect::<Vec<_>>().await, ["b"]);
    assert!(
        log.reasoning(turn(1)).await.next().await.is_none(),
        "it has ended"
    );
    assert!(
        log.reasoning(turn(2)).await.next().await.is_none(),
        "there is no such turn"
    );
}

#[tokio::test]
async fn a_listener_that_is_too_slow_misses_some_reasoning_but_not_the_newest() {
    let log = log();
    log.open(turn(1), start()).await.unwrap();
    let slow = log.reasoning(turn(1)).await;
    for n in 0..1_000 {
        log.tell_reasoning(turn(1), &n.to_string()).await;
    }
    log.append(turn(1), 1, vec![done(2)]).await.unwrap();
    let heard: Vec<String> = slow.collect().await;
    assert_eq!(heard.len(), 256);
    assert_eq!(heard.last().unwrap(), "999");
}
