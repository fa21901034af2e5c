//! The live log in process memory, for a server of one replica.
//!
//! Each turn has a list that only grows, under a lock of its own that is never held across a wait; a reader copies what it asks for and is
//! otherwise unknown to the log. What is kept is bounded: ended turns for a while and within a budget of bytes, turns that were abandoned
//! until they have been silent for very long, and no more turns than the budget carries.

mod turn;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use tidemark_application::ports::events::{EventLog, EventLogError, LogRead, LoggedEvent};
use tidemark_domain::event::TurnEvent;
use tidemark_domain::ids::TurnId;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

pub(super) use self::turn::size;
use self::turn::{Appended, TurnLog};

/// Bounds of what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEventLogOptions {
    /// How long an ended turn can be replayed.
    pub retention: Duration,
    /// After how long without a new event an open turn is taken for abandoned. Longer than any tool or approval may take.
    pub abandoned_after: Duration,
    /// Bytes of all logs together, roughly. When they are more, ended turns go first, the one that ended first before the others, then
    /// open turns, the most silent first. Followers of a turn that went read the stored turn.
    pub max_bytes: usize,
    /// How often the log is swept.
    pub sweep_every: Duration,
}

impl Default for MemoryEventLogOptions {
    /// 15 minutes, a day, 256 MiB, every 5 s.
    fn default() -> Self {
        Self {
            retention: Duration::from_mins(15),
            abandoned_after: Duration::from_hours(24),
            max_bytes: 256 << 20,
            sweep_every: Duration::from_secs(5),
        }
    }
}

/// The log.
pub struct MemoryEventLog {
    options: MemoryEventLogOptions,
    turns: RwLock<Turns>,
    bytes: AtomicUsize,
    /// Tells those who wait for a log to open.
    opened: watch::Sender<()>,
}

#[derive(Default)]
struct Turns {
    logs: HashMap<TurnId, Arc<TurnLog>>,
    /// Ended turns in the order of their end.
    ended: VecDeque<(Instant, TurnId)>,
}

/// Why events were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Refused {
    #[error("the turn has no log here")]
    Unknown,
    #[error("number {found} does not follow number {last}")]
    Gap { last: i64, found: i64 },
    #[error("the turn has ended")]
    Ended,
    #[error("the end does not follow")]
    Cut,
}

impl From<Refused> for EventLogError {
    fn from(refused: Refused) -> Self {
        Self(Box::new(refused))
    }
}

impl MemoryEventLog {
    /// An empty log. Without [`Self::start`] nobody sweeps it but appends that go over the budget.
    pub fn new(options: MemoryEventLogOptions) -> Self {
        Self {
            options,
            turns: RwLock::default(),
            bytes: AtomicUsize::new(0),
            opened: watch::Sender::new(()),
        }
    }

    /// An empty log with a task that sweeps it for as long as anybody holds it.
    pub fn start(options: MemoryEventLogOptions) -> Arc<Self> {
        let log = Arc::new(Self::new(options));
        let swept: Weak<Self> = Arc::downgrade(&log);
        let mut ticks = tokio::time::interval(options.sweep_every.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tokio::spawn(async move {
            loop {
                let now = ticks.tick().await;
                let Some(log) = swept.upgrade() else { break };
                log.sweep(now);
            }
        });
        log
    }

    /// Forgets what has been kept long enough.
    pub fn sweep(&self, now: Instant) {
        let mut turns = self.write();
        while let Some(&(ended_at, turn)) = turns.ended.front() {
            if now.duration_since(ended_at) < self.options.retention {
                break;
            }
            turns.ended.pop_front();
            self.evict(&mut turns, turn);
        }
        let abandoned: Vec<TurnId> = turns
            .logs
            .iter()
            .filter(|(_, log)| {
                log.silent_since()
                    .is_some_and(|since| now.duration_since(since) >= self.options.abandoned_after)
            })
            .map(|(turn, _)| *turn)
            .collect();
        for turn in abandoned {
            self.evict(&mut turns, turn);
        }
    }

    /// Makes room when there is too much. `writing` is spared while it is open.
    fn keep_budget(&self, turns: &mut Turns, writing: TurnId) {
        while self.bytes.load(Ordering::Relaxed) > self.options.max_bytes {
            let Some((_, turn)) = turns.ended.pop_front() else {
                break;
            };
            self.evict(turns, turn);
        }
        if self.bytes.load(Ordering::Relaxed) <= self.options.max_bytes {
            return;
        }
        let mut open: Vec<(Instant, TurnId)> = turns
            .logs
            .iter()
            .filter(|(turn, _)| **turn != writing)
            .filter_map(|(turn, log)| Some((log.silent_since()?, *turn)))
            .collect();
        open.sort_unstable_by_key(|(since, _)| *since);
        for (_, turn) in open {
            if self.bytes.load(Ordering::Relaxed) <= self.options.max_bytes {
                break;
            }
            tracing::warn!(%turn, "the event log is over its budget; an open turn's events are dropped");
            self.evict(turns, turn);
        }
    }

    /// Whether it has a log of the turn.
    pub(super) fn holds(&self, turn: TurnId) -> bool {
        self.read_lock().logs.contains_key(&turn)
    }

    /// Drops the log of a turn; its readers find it unknown.
    pub(super) fn drop_log(&self, turn: TurnId) {
        let mut turns = self.write();
        self.evict(&mut turns, turn);
    }

    /// Drops the log of a turn unless it has ended: then it is whole, and kept for as long as any.
    pub(super) fn drop_open(&self, turn: TurnId) {
        let mut turns = self.write();
        let open = turns.logs.get(&turn).and_then(|log| log.silent_since());
        if open.is_some() {
            self.evict(&mut turns, turn);
        }
    }

    fn evict(&self, turns: &mut Turns, turn: TurnId) {
        if let Some(log) = turns.logs.remove(&turn) {
            self.bytes.fetch_sub(log.evict(), Ordering::Relaxed);
        }
    }

    fn log_of(&self, turn: TurnId) -> Option<Arc<TurnLog>> {
        self.read_lock().logs.get(&turn).map(Arc::clone)
    }

    fn read_lock(&self) -> RwLockReadGuard<'_, Turns> {
        self.turns.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Turns> {
        self.turns.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryEventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryEventLog")
            .field("options", &self.options)
            .field("turns", &self.read_lock().logs.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl EventLog for MemoryEventLog {
    async fn open(&self, turn: TurnId, start: TurnEvent) -> Result<(), EventLogError> {
        let mut turns = self.write();
        if turns.logs.contains_key(&turn) {
            return Ok(());
        }
        let (log, bytes) = TurnLog::new(start, Instant::now());
        turns.logs.insert(turn, Arc::new(log));
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.keep_budget(&mut turns, turn);
        drop(turns);
        self.opened.send_replace(());
        Ok(())
    }

    async fn append(
        &self,
        turn: TurnId,
        fence: i64,
        events: Vec<LoggedEvent>,
    ) -> Result<(), EventLogError> {
        let log = self.log_of(turn).ok_or(Refused::Unknown)?;
        let now = Instant::now();
        let Appended { ended, result } = log.append(fence, events, now, &self.bytes);
        if matches!(result, Err(Refused::Cut)) {
            self.drop_log(turn);
            return Ok(());
        }
        if ended || self.bytes.load(Ordering::Relaxed) > self.options.max_bytes {
            let mut turns = self.write();
            if ended && turns.logs.contains_key(&turn) {
                turns.ended.push_back((now, turn));
            }
            self.keep_budget(&mut turns, turn);
        }
        Ok(result?)
    }

    async fn read(
        &self,
        turn: TurnId,
        after: i64,
        limit: usize,
        wait: Duration,
    ) -> Result<LogRead, EventLogError> {
        let Some(log) = self.log_of(turn) else {
            return Ok(LogRead::Unknown);
        };
        let deadline = Instant::now() + wait;
        let mut follower = log.follow();
        loop {
            let found = follower.look(after, limit.max(1));
            if found != LogRead::Quiet || timeout_at(deadline, follower.changed()).await.is_err() {
                return Ok(found);
            }
        }
    }

    async fn changed(&self, turn: TurnId, wait: Duration) {
        let deadline = Instant::now() + wait;
        let mut opened = self.opened.subscribe();
        if let Some(log) = self.log_of(turn) {
            let _ = timeout_at(deadline, log.follow().changed()).await;
            return;
        }
        while !self.holds(turn) {
            if timeout_at(deadline, opened.changed()).await.is_err() {
                return;
            }
        }
    }

    async fn resign(&self, turn: TurnId) {
        self.drop_log(turn);
    }

    async fn forget(&self, gone: &[TurnId]) -> bool {
        let mut turns = self.write();
        for turn in gone {
            self.evict(&mut turns, *turn);
        }
        let Turns { logs, ended } = &mut *turns;
        ended.retain(|(_, turn)| logs.contains_key(turn));
        true
    }

    async fn tell_reasoning(&self, turn: TurnId, token: &str) {
        if let Some(log) = self.log_of(turn) {
            log.tell_reasoning(token);
        }
    }

    async fn reasoning(&self, turn: TurnId) -> BoxStream<'static, String> {
        let Some(mut told) = self.log_of(turn).and_then(|log| log.reasoning()) else {
            return futures::stream::empty().boxed();
        };
        async_stream::stream! {
            loop {
                match told.recv().await {
                    Ok(token) => yield token.to_string(),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => break,
                }
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
