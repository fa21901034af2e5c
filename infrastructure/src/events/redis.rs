//! The live log over several replicas: what is written here goes to the local log first and from there to Redis Streams; what is written
//! elsewhere comes from there into the local log.
//!
//! Nobody ever waits for Redis but a reader of a turn that is not known here, for a moment. While Redis is away, each replica goes on with
//! its own log, and followers at the others read the stored turns. What Redis holds is bounded: each turn's stream in length, and in time by
//! the time for which an ended turn can be replayed; open turns are prolonged by whoever runs them.

mod commands;
mod follows;
mod link;
mod outbox;
mod publisher;
mod reply;
mod tailer;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, IntoConnectionInfo, ProtocolVersion, RedisError, RedisResult,
};
use tidemark_application::ports::events::{EventLog, EventLogError, LogRead, LoggedEvent, Reach};
use tidemark_domain::event::TurnEvent;
use tidemark_domain::ids::TurnId;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use self::follows::{Follows, Phase, Touched};
use self::link::Link;
use self::outbox::{End, Outbox, Role};
use super::memory::{MemoryEventLog, MemoryEventLogOptions};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(2);

/// How long a reader waits to hear whether Redis has a turn that is not known here.
const LOOK: Duration = Duration::from_secs(1);

/// For so long a turn that was accepted here is taken to be run here before it is looked for elsewhere.
const SOON: Duration = Duration::from_millis(100);

/// How far a reader may be ahead of what has come from another replica, where it read before.
const LAG: Duration = Duration::from_millis(500);

/// Hints that are kept, in Redis and for whoever heeds them here; each is read within a moment.
const HINTS: usize = 256;

/// Where Redis is, and what is kept.
#[derive(Clone)]
pub struct RedisEventLogOptions {
    /// `redis://user:password@host:port/db`, or `rediss://` for TLS.
    pub url: String,
    /// Its address for the log, without a password.
    pub address: String,
    /// Names this process among the replicas.
    pub replica: Uuid,
    /// Precedes the name of each key.
    pub prefix: String,
    /// The most events that Redis keeps of a turn, roughly. A reader that wants older ones reads the stored turn.
    pub max_events: usize,
    /// How long [`EventLog::forget`] waits for Redis.
    pub erase_wait: Duration,
    /// The local log. Its retention is also that of what Redis holds.
    pub memory: MemoryEventLogOptions,
}

impl fmt::Debug for RedisEventLogOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisEventLogOptions")
            .field("address", &self.address)
            .field("prefix", &self.prefix)
            .field("max_events", &self.max_events)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

/// The address of Redis is none.
#[derive(Debug, thiserror::Error)]
#[error("the address of Redis cannot be used")]
pub struct RedisAddressError(#[source] RedisError);

/// The log.
pub struct RedisEventLog {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
}

struct Shared {
    options: RedisEventLogOptions,
    client: Client,
    local: Arc<MemoryEventLog>,
    outbox: Outbox,
    follows: Follows,
    link: Link,
    hints: broadcast::Sender<TurnId>,
    wakes: AtomicU64,
}

impl RedisEventLog {
    /// Starts the log on this runtime. It connects in the background, and again whenever Redis was away.
    ///
    /// # Errors
    /// When the address is none. That nobody answers there is no error.
    pub fn start(options: RedisEventLogOptions) -> Result<Self, RedisAddressError> {
        crate::model::tls::install();
        let client = client(&options.url).map_err(RedisAddressError)?;
        let shared = Arc::new(Shared {
            client,
            local: MemoryEventLog::start(options.memory),
            outbox: Outbox::new(),
            follows: Follows::default(),
            link: Link::new(options.address.clone()),
            hints: broadcast::Sender::new(HINTS),
            wakes: AtomicU64::new(0),
            options,
        });
        let (writer, reader) = (Arc::clone(&shared), Arc::clone(&shared));
        let tasks = [
            tokio::spawn(async move { publisher::run(&writer).await }),
            tokio::spawn(async move { tailer::run(&reader).await }),
        ];
        Ok(Self { shared, tasks })
    }
}

/// Answers are read in the form of RESP2, whatever the address asks for.
fn client(url: &str) -> RedisResult<Client> {
    let info = url.into_connection_info()?;
    let settings = info.redis_settings().clone();
    Client::open(info.set_redis_settings(settings.set_protocol(ProtocolVersion::RESP2)))
}

impl Drop for RedisEventLog {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl fmt::Debug for RedisEventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisEventLog")
            .field("options", &self.shared.options)
            .field("local", &self.shared.local)
            .finish_non_exhaustive()
    }
}

impl Shared {
    async fn connect(&self, response: Duration) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(response));
        self.client
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }

    fn key(&self, turn: TurnId) -> String {
        format!("{}turn:{turn}", self.options.prefix)
    }

    fn turn_of(&self, key: &str) -> Option<TurnId> {
        let name = key.strip_prefix(&self.options.prefix)?;
        name.strip_prefix("turn:")?.parse().ok()
    }

    /// What all replicas read.
    fn hints_key(&self) -> String {
        format!("{}hints", self.options.prefix)
    }

    /// What wakes this replica's reader.
    fn wake_key(&self) -> String {
        format!("{}wake:{}", self.options.prefix, self.options.replica)
    }

    fn next_wake(&self) -> u64 {
        self.wakes.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What is here of a turn is not to be told any more.
    fn drop_turn(&self, turn: TurnId) {
        self.outbox.leave(turn, || self.local.drop_log(turn));
    }

    /// Somebody follows the turn; none while its events cannot come.
    fn follow(&self, turn: TurnId) -> Option<Touched> {
        if !self.link.reads() {
            return None;
        }
        let touched = self.follows.touch(turn)?;
        if touched.is_new {
            self.outbox.wake();
        }
        Some(touched)
    }

    /// What is known of a turn that is not written here, once it was looked for.
    async fn look(&self, turn: TurnId) -> Phase {
        let Some(Touched { mut phase, .. }) = self.follow(turn) else {
            return Phase::Here;
        };
        let looked = phase.wait_for(|phase| *phase != Phase::Looking);
        match timeout(LOOK, looked).await {
            Ok(Ok(phase)) => *phase,
            // It has ended, and is here as a whole or not at all.
            Ok(Err(_)) => Phase::Here,
            Err(_) => Phase::Absent,
        }
    }

    /// Reads a turn whose events come from elsewhere.
    async fn read_followed(
        &self,
        turn: TurnId,
        after: i64,
        limit: usize,
        wait: Duration,
    ) -> Result<LogRead, EventLogError> {
        let until = Instant::now() + wait;
        match self.look(turn).await {
            Phase::Here => {}
            Phase::Broken | Phase::Foreign => return Ok(LogRead::Unknown),
            Phase::Absent | Phase::Looking => {
                let read = self.local.read(turn, after, limit, Duration::ZERO).await?;
                // What is only begun here and not to be had elsewhere is not known.
                return Ok(match read {
                    LogRead::Quiet => LogRead::Unknown,
                    read => read,
                });
            }
        }
        let lag = Instant::now() + LAG;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let read = self.local.read(turn, after, limit, left).await?;
            let lags = lag.saturating_duration_since(Instant::now());
            if read != LogRead::Unknown || lags.is_zero() || !self.local.holds(turn) {
                return Ok(read);
            }
            self.local.changed(turn, lags).await;
        }
    }
}

#[async_trait]
impl EventLog for RedisEventLog {
    async fn open(&self, turn: TurnId, start: TurnEvent) -> Result<(), EventLogError> {
        self.shared.outbox.accepted(turn);
        self.shared.local.open(turn, start).await
    }

    async fn append(
        &self,
        turn: TurnId,
        fence: i64,
        events: Vec<LoggedEvent>,
    ) -> Result<(), EventLogError> {
        let shared = &self.shared;
        let done = events
            .last()
            .filter(|logged| matches!(logged.event, TurnEvent::Done(_)))
            .cloned();
        let told = shared.local.append(turn, fence, events).await;
        match done {
            // The events before it are not here: the end goes where they are.
            Some(done) if !shared.local.holds(turn) => {
                shared.outbox.leave(turn, || {});
                shared.outbox.end(End { turn, fence, done });
                Ok(())
            }
            _ => {
                told?;
                if shared.outbox.runs(turn, fence) {
                    shared.follows.leave(turn);
                }
                Ok(())
            }
        }
    }

    async fn read(
        &self,
        turn: TurnId,
        after: i64,
        limit: usize,
        wait: Duration,
    ) -> Result<LogRead, EventLogError> {
        let shared = &self.shared;
        let soon = match shared.outbox.role(turn) {
            Some(Role::Runs { .. }) => wait,
            Some(Role::Accepted) => wait.min(SOON),
            None => Duration::ZERO,
        };
        let read = shared.local.read(turn, after, limit, soon).await?;
        if matches!(read, LogRead::Events(_)) || shared.writes(turn) {
            return Ok(read);
        }
        shared
            .read_followed(turn, after, limit, wait.saturating_sub(soon))
            .await
    }

    async fn changed(&self, turn: TurnId, wait: Duration) {
        let shared = &self.shared;
        let followed = if shared.writes(turn) {
            None
        } else {
            shared.follow(turn)
        };
        let Some(Touched { mut phase, .. }) = followed else {
            return shared.local.changed(turn, wait).await;
        };
        tokio::select! {
            () = shared.local.changed(turn, wait) => {}
            _ = phase.changed() => {}
        }
    }

    async fn resign(&self, turn: TurnId) {
        self.shared.drop_turn(turn);
    }

    async fn forget(&self, turns: &[TurnId]) -> bool {
        let shared = &self.shared;
        // From the log first: what is marked now can no longer be read there.
        shared.local.forget(turns).await;
        shared.outbox.forget(turns);
        for turn in turns {
            shared.follows.leave(*turn);
        }
        // Where it is known to be away nobody is kept waiting.
        let limit = if shared.link.is_away() {
            Duration::ZERO
        } else {
            shared.options.erase_wait
        };
        shared.outbox.until_erased(turns, limit).await
    }

    async fn tell_reasoning(&self, turn: TurnId, token: &str) {
        self.shared.local.tell_reasoning(turn, token).await;
    }

    async fn reasoning(&self, turn: TurnId) -> BoxStream<'static, String> {
        self.shared.local.reasoning(turn).await
    }

    async fn hint(&self, turn: TurnId) {
        self.shared.outbox.hint(turn);
    }

    async fn hints(&self) -> BoxStream<'static, TurnId> {
        let mut hints = self.shared.hints.subscribe();
        async_stream::stream! {
            loop {
                match hints.recv().await {
                    Ok(turn) => yield turn,
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => break,
                }
            }
        }
        .boxed()
    }

    async fn flush(&self, limit: Duration) -> bool {
        let shared = &self.shared;
        !shared.link.is_away() && shared.outbox.until_settled(limit).await
    }

    fn reach(&self) -> Reach {
        if self.shared.link.is_up() {
            Reach::Replicas
        } else {
            Reach::Degraded
        }
    }
}

impl Shared {
    /// Whether the turn runs here.
    fn writes(&self, turn: TurnId) -> bool {
        matches!(self.outbox.role(turn), Some(Role::Runs { .. }))
    }
}
