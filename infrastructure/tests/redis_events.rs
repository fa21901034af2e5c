//! The event log over Redis keeps what the port promises, at one replica and between several. The Redis is that of
//! `TIDEMARK_TEST_REDIS_URL`; each test has keys of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use redis::RedisResult;
use redis::aio::MultiplexedConnection;
use tidemark_application::ports::events::{EventLog, LogRead, LoggedEvent, Reach};
use tidemark_application::ports::ids::Ids as _;
use tidemark_domain::event::TurnEvent;
use tidemark_domain::ids::TurnId;
use tidemark_infrastructure::events::conformance::{done, is_unknown, read_on, start, turn, word};
use tidemark_infrastructure::events::memory::MemoryEventLogOptions;
use tidemark_infrastructure::events::redis::{RedisEventLog, RedisEventLogOptions};
use tidemark_infrastructure::system::UuidV7;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

const LIMIT: Duration = Duration::from_secs(10);

/// Keys of a test's own, in the Redis that all share.
struct World {
    prefix: String,
    options: RedisEventLogOptions,
}

impl World {
    fn new() -> Self {
        let url = std::env::var("TIDEMARK_TEST_REDIS_URL")
            .expect("TIDEMARK_TEST_REDIS_URL names the Redis of the tests");
        let prefix = format!("test:{}:", UuidV7::default().uuid().simple());
        Self {
            options: RedisEventLogOptions {
                address: url.clone(),
                url,
                replica: UuidV7::default().uuid(),
                prefix: prefix.clone(),
                max_events: 10_000,
                erase_wait: Duration::from_secs(5),
                memory: MemoryEventLogOptions {
                    retention: Duration::from_mins(1),
                    ..MemoryEventLogOptions::default()
                },
            },
            prefix,
        }
    }

    /// One more replica, connected.
    async fn replica(&self) -> Arc<RedisEventLog> {
        let mut options = self.options.clone();
        options.replica = UuidV7::default().uuid();
        let log = Arc::new(RedisEventLog::start(options).unwrap());
        let connected = async {
            while log.reach() != Reach::Replicas {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LIMIT, connected).await.expect("Redis answers");
        log
    }

    async fn connection(&self) -> MultiplexedConnection {
        let client = redis::Client::open(self.options.url.as_str()).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }

    fn key(&self, turn: TurnId) -> String {
        format!("{}turn:{turn}", self.prefix)
    }

    /// Ids of what Redis has of the turn.
    async fn ids(&self, turn: TurnId) -> Vec<String> {
        let entries: Vec<(String, Vec<(String, String)>)> = redis::cmd("XRANGE")
            .arg(self.key(turn))
            .arg("-")
            .arg("+")
            .query_async(&mut self.connection().await)
            .await
            .unwrap();
        entries.into_iter().map(|(id, _)| id).collect()
    }

    /// Waits until Redis has so many events of the turn.
    async fn until_written(&self, turn: TurnId, number: usize) {
        let written = async {
            while self.ids(turn).await.len() < number {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LIMIT, written).await.expect("it is written");
    }

    /// Milliseconds that the turn's key still has.
    async fn time_left(&self, turn: TurnId) -> i64 {
        redis::cmd("PTTL")
            .arg(self.key(turn))
            .query_async(&mut self.connection().await)
            .await
            .unwrap()
    }
}

/// As `read_on`, for a turn that may not have reached Redis yet.
async fn read_soon(
    log: &dyn EventLog,
    turn: TurnId,
    after: i64,
    enough: usize,
) -> Vec<LoggedEvent> {
    let known = async {
        while is_unknown(log, turn).await {
            log.changed(turn, LIMIT).await;
        }
    };
    timeout(LIMIT, known).await.expect("it arrives");
    read_on(log, turn, after, enough).await
}

async fn open() -> (Arc<dyn EventLog>, World) {
    let world = World::new();
    let log = world.replica().await;
    (log, world)
}

tidemark_infrastructure::event_log_conformance!(open);

#[tokio::test]
async fn another_replica_reads_every_event_in_its_order_from_any_cursor() {
    let world = World::new();
    let (writer, reader) = (world.replica().await, world.replica().await);
    let turn = turn();
    writer.open(turn, start()).await.unwrap();
    let reading = {
        let reader = Arc::clone(&reader);
        tokio::spawn(async move { read_soon(reader.as_ref(), turn, 0, 601).await })
    };
    for seq in 2..=600 {
        writer.append(turn, 1, vec![word(seq)]).await.unwrap();
        if seq % 50 == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    }
    writer.append(turn, 1, vec![done(601)]).await.unwrap();
    let read = reading.await.unwrap();
    let seqs: Vec<i64> = read.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=601).collect::<Vec<i64>>());
    assert_eq!(read[1], word(2));
    assert_eq!(read[600], done(601));
    let third = world.replica().await;
    let rest = read_on(third.as_ref(), turn, 590, 11).await;
    assert_eq!(rest[..], read[590..]);
}

#[tokio::test]
async fn a_turn_accepted_at_one_replica_and_run_at_another_is_one_log_for_all() {
    let world = World::new();
    let (acceptor, runner) = (world.replica().await, world.replica().await);
    let third = world.replica().await;
    let turn = turn();
    let queued = TurnEvent::Start {
        session_id: tidemark_domain::ids::SessionId(Uuid::nil()),
        queued: true,
    };
    acceptor.open(turn, queued.clone()).await.unwrap();
    let readings = [&acceptor, &third].map(|log| {
        let log = Arc::clone(log);
        tokio::spawn(async move { read_soon(log.as_ref(), turn, 0, 4).await })
    });
    sleep(Duration::from_millis(300)).await;
    runner.open(turn, start()).await.unwrap();
    runner
        .append(turn, 1, vec![word(2), word(3)])
        .await
        .unwrap();
    runner.append(turn, 1, vec![done(4)]).await.unwrap();
    for reading in readings {
        let read = reading.await.unwrap();
        assert_eq!(read[0].event, queued, "told when it was accepted");
        assert_eq!(read[1..], [word(2), word(3), done(4)]);
    }
    assert_eq!(world.ids(turn).await, ["0-1", "1-2", "1-3", "1-4"]);
}

#[tokio::test]
async fn the_end_that_another_replica_tells_for_a_dead_one_sends_readers_to_the_stored_turn() {
    let world = World::new();
    let (dead, closer, reader) = (
        world.replica().await,
        world.replica().await,
        world.replica().await,
    );
    let turn = turn();
    dead.open(turn, start()).await.unwrap();
    dead.append(turn, 1, vec![word(2)]).await.unwrap();
    assert_eq!(read_soon(reader.as_ref(), turn, 0, 2).await.len(), 2);
    let waiting = {
        let reader = Arc::clone(&reader);
        tokio::spawn(async move { read_on(reader.as_ref(), turn, 2, 1).await })
    };
    sleep(Duration::from_millis(50)).await;
    let told = Instant::now();
    closer.append(turn, 2, vec![done(258)]).await.unwrap();
    assert_eq!(waiting.await.unwrap(), [], "it is not told with a gap");
    assert!(told.elapsed() < Duration::from_secs(5));
    // The dead one was only asleep: what it tells now reaches nobody, and it lets its own readers go.
    dead.append(turn, 1, vec![word(3)]).await.unwrap();
    let let_go = async {
        while !is_unknown(dead.as_ref(), turn).await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, let_go).await.expect("its log is dropped");
    assert!(dead.append(turn, 1, vec![word(4)]).await.is_err());
    assert_eq!(world.ids(turn).await, ["0-1", "1-2", "2-258"]);
}

#[tokio::test]
async fn the_end_of_a_waiting_turn_that_was_cancelled_elsewhere_is_told_without_a_gap() {
    let world = World::new();
    let (acceptor, other) = (world.replica().await, world.replica().await);
    let turn = turn();
    acceptor.open(turn, start()).await.unwrap();
    let waiting = {
        let acceptor = Arc::clone(&acceptor);
        tokio::spawn(async move { read_on(acceptor.as_ref(), turn, 1, 1).await })
    };
    world.until_written(turn, 1).await;
    other.append(turn, 0, vec![done(2)]).await.unwrap();
    assert_eq!(waiting.await.unwrap(), [done(2)]);
}

#[tokio::test]
async fn what_was_trimmed_is_unknown_and_the_length_is_bounded() {
    let mut world = World::new();
    world.options.max_events = 100;
    let (writer, reader) = (world.replica().await, world.replica().await);
    let turn = turn();
    writer.open(turn, start()).await.unwrap();
    let events: Vec<LoggedEvent> = (2..=2_000).map(word).collect();
    writer.append(turn, 1, events).await.unwrap();
    let written = async {
        while world.ids(turn).await.last().map(String::as_str) != Some("1-2000") {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, written).await.expect("it is written");
    // Redis trims whole nodes of a hundred entries.
    assert!(world.ids(turn).await.len() <= 200);
    assert!(is_unknown(reader.as_ref(), turn).await);
    assert_eq!(
        read_on(writer.as_ref(), turn, 0, 2_000).await.len(),
        2_000,
        "where it was told it is whole"
    );
}

#[tokio::test]
async fn every_turn_has_an_end_in_time_and_an_open_one_is_prolonged() {
    let mut world = World::new();
    world.options.memory.retention = Duration::from_secs(3);
    let writer = world.replica().await;
    let turn = turn();
    writer.open(turn, start()).await.unwrap();
    writer.append(turn, 1, vec![word(2)]).await.unwrap();
    world.until_written(turn, 2).await;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(5) {
        let left = world.time_left(turn).await;
        assert!((1..=3_000).contains(&left), "{left}");
        sleep(Duration::from_millis(250)).await;
    }
    writer.append(turn, 1, vec![done(3)]).await.unwrap();
    world.until_written(turn, 3).await;
    let gone = async {
        while !world.ids(turn).await.is_empty() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LIMIT, gone)
        .await
        .expect("it is not prolonged any more");
}

#[tokio::test]
async fn a_key_that_vanishes_is_written_anew_from_the_first_event() {
    let world = World::new();
    let writer = world.replica().await;
    let turn = turn();
    writer.open(turn, start()).await.unwrap();
    writer
        .append(turn, 1, vec![word(2), word(3)])
        .await
        .unwrap();
    world.until_written(turn, 3).await;
    let _: i64 = redis::cmd("DEL")
        .arg(world.key(turn))
        .query_async(&mut world.connection().await)
        .await
        .unwrap();
    writer.append(turn, 1, vec![word(4)]).await.unwrap();
    world.until_written(turn, 4).await;
    assert_eq!(world.ids(turn).await, ["0-1", "1-2", "1-3", "1-4"]);
    assert!(world.time_left(turn).await > 0);
}

#[tokio::test]
async fn what_is_forgotten_at_one_replica_is_gone_from_all_and_nobody_can_add_to_it() {
    let world = World::new();
    let (writer, reader, eraser) = (
        world.replica().await,
        world.replica().await,
        world.replica().await,
    );
    let (running, ended) = (turn(), turn());
    for turn in [running, ended] {
        writer.open(turn, start()).await.unwrap();
        writer.append(turn, 1, vec![word(2)]).await.unwrap();
        assert_eq!(read_soon(reader.as_ref(), turn, 0, 2).await.len(), 2);
    }
    writer.append(ended, 1, vec![done(3)]).await.unwrap();
    world.until_written(ended, 3).await;
    let unwritten = turn();
    assert!(eraser.forget(&[running, ended, unwritten]).await);
    // In place of what was there, or may still come, stands that it is gone, for as long as anything would have stood there.
    let last = format!("{}-{}", u64::MAX, u64::MAX);
    for turn in [running, ended, unwritten] {
        assert_eq!(world.ids(turn).await, std::slice::from_ref(&last));
        assert!(world.time_left(turn).await > 0);
    }
    let _ = writer.append(running, 1, vec![word(3)]).await;
    let gone = async {
        for log in [&writer, &reader, &eraser] {
            for turn in [running, ended] {
                while !is_unknown(log.as_ref(), turn).await {
                    sleep(Duration::from_millis(5)).await;
                }
            }
        }
    };
    timeout(LIMIT, gone).await.expect("no replica holds it");
    assert_eq!(world.ids(running).await, [last]);
}

#[tokio::test]
async fn what_redis_did_not_have_when_it_was_forgotten_cannot_come_later() {
    let world = World::new();
    let eraser = world.replica().await;
    let turn = turn();
    assert!(eraser.forget(&[turn]).await);
    assert_eq!(world.ids(turn).await, [format!("{0}-{0}", u64::MAX)]);
    // A replica that was away, has the whole turn and did not hear of it.
    let writer = world.replica().await;
    writer.open(turn, start()).await.unwrap();
    for seq in 2..=20 {
        let _ = writer.append(turn, 1, vec![word(seq)]).await;
    }
    let dropped = async {
        while !is_unknown(writer.as_ref(), turn).await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, dropped)
        .await
        .expect("it is dropped there too");
    assert_eq!(world.ids(turn).await.len(), 1, "nothing was added");
}

#[tokio::test]
async fn what_waits_to_be_told_is_told_before_a_flush_is_over() {
    let world = World::new();
    let writer = world.replica().await;
    let all = 3_000;
    let (long, ended_elsewhere) = (turn(), turn());
    writer.open(long, start()).await.unwrap();
    let words: Vec<LoggedEvent> = (2..all).map(word).collect();
    writer.append(long, 1, words).await.unwrap();
    writer.append(long, 1, vec![done(all)]).await.unwrap();
    writer
        .append(ended_elsewhere, 1, vec![done(9)])
        .await
        .unwrap();
    assert!((world.ids(long).await.len() as i64) < all);
    assert!(writer.flush(LIMIT).await);
    assert_eq!(world.ids(long).await.len() as i64, all);
    assert_eq!(world.ids(ended_elsewhere).await, ["1-9"]);
    let began = Instant::now();
    assert!(writer.flush(LIMIT).await);
    assert!(began.elapsed() < Duration::from_secs(1), "nothing waits");
}

#[tokio::test]
async fn a_hint_reaches_every_replica() {
    use futures::StreamExt;
    let world = World::new();
    let (one, other) = (world.replica().await, world.replica().await);
    let mut heard = other.hints().await;
    let turn = turn();
    one.hint(turn).await;
    let hint = timeout(Duration::from_secs(2), heard.next()).await;
    assert_eq!(hint.expect("within a moment"), Some(turn));
}

#[tokio::test]
async fn a_foreign_key_in_the_place_of_a_turn_harms_no_other_turn() {
    let world = World::new();
    let (writer, reader) = (world.replica().await, world.replica().await);
    let (taken, free) = (turn(), turn());
    let _: () = redis::cmd("SET")
        .arg(world.key(taken))
        .arg("x")
        .query_async(&mut world.connection().await)
        .await
        .unwrap();
    for turn in [taken, free] {
        writer.open(turn, start()).await.unwrap();
        writer.append(turn, 1, vec![word(2)]).await.unwrap();
    }
    assert_eq!(read_soon(reader.as_ref(), free, 0, 2).await.len(), 2);
    assert!(is_unknown(reader.as_ref(), taken).await);
    assert_eq!(writer.reach(), Reach::Replicas);
}

#[tokio::test]
async fn a_redis_that_is_not_there_costs_the_own_readers_nothing() {
    let mut world = World::new();
    // Nobody listens on the port of discard.
    world.options.url = "redis://127.0.0.1:9".to_owned();
    world.options.erase_wait = Duration::from_millis(100);
    let log = RedisEventLog::start(world.options.clone()).unwrap();
    let (turn, other) = (turn(), turn());
    let began = Instant::now();
    log.open(turn, start()).await.unwrap();
    log.append(turn, 1, vec![word(2), done(3)]).await.unwrap();
    assert_eq!(read_on(&log, turn, 0, 3).await.len(), 3);
    let unknown = log.read(other, 0, 1, LIMIT).await.unwrap();
    assert_eq!(unknown, LogRead::Unknown);
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(log.reach(), Reach::Degraded);
    assert!(!log.forget(&[turn]).await, "it says that it could not");
    let began = Instant::now();
    assert!(!log.flush(LIMIT).await, "nor could it tell anybody");
    assert!(began.elapsed() < Duration::from_secs(1));
    assert!(is_unknown(&log, turn).await);
}

#[tokio::test]
async fn a_user_that_may_do_what_the_manual_names_suffices() {
    let manual = include_str!("../../docs/operations.md");
    let (_, rules) = manual.split_once("an ACL user with `").unwrap();
    let (rules, _) = rules.split_once('`').unwrap();
    let mut world = World::new();
    let user = format!("test-{}", UuidV7::default().uuid().simple());
    let mut connection = world.connection().await;
    let mut command = redis::cmd("ACL");
    command.arg("SETUSER").arg(&user).arg("on").arg(">secret");
    command.arg(format!("~{}*", world.prefix));
    for rule in rules.split(' ') {
        command.arg(rule);
    }
    let () = command.query_async(&mut connection).await.unwrap();
    let own = std::mem::take(&mut world.options.url);
    world.options.url = own.replace("redis://", &format!("redis://{user}:secret@"));
    let (one, other) = (world.replica().await, world.replica().await);
    let mut heard = other.hints().await;
    let (told, forgotten) = (turn(), turn());
    for turn in [told, forgotten] {
        one.open(turn, start()).await.unwrap();
        one.append(turn, 1, vec![word(2)]).await.unwrap();
        one.append(turn, 1, vec![done(3)]).await.unwrap();
        assert_eq!(read_soon(other.as_ref(), turn, 0, 3).await.len(), 3);
    }
    one.hint(told).await;
    assert_eq!(
        timeout(LIMIT, futures::StreamExt::next(&mut heard)).await,
        Ok(Some(told))
    );
    assert!(other.forget(&[forgotten]).await);
    assert!(one.flush(LIMIT).await);
    for log in [one, other] {
        assert_eq!(log.reach(), Reach::Replicas);
    }
    let gone: RedisResult<i64> = redis::cmd("ACL")
        .arg("DELUSER")
        .arg(&user)
        .query_async(&mut connection)
        .await;
    assert_eq!(gone, Ok(1));
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    for url in ["redis://", "redis://:x:y", "http://127.0.0.1"] {
        let mut options = World::new().options;
        url.clone_into(&mut options.url);
        assert!(RedisEventLog::start(options).is_err(), "{url}");
    }
}
