//! The log of one turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidemark_application::ports::events::{LogRead, LoggedEvent};
use tidemark_domain::event::TurnEvent;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::Refused;

/// Pieces of reasoning that a listener may fall behind before it misses some.
const REASONING_BACKLOG: usize = 256;

/// What a turn costs beside its events: the map's entry, the locks and channels.
const FIXED_BYTES: usize = 512;

pub(super) struct TurnLog {
    state: Mutex<State>,
    /// Tells waiting readers to look again.
    changed: watch::Sender<()>,
}

struct State {
    /// Event number n stands at place n − 1.
    events: Vec<LoggedEvent>,
    bytes: usize,
    fence: i64,
    last_append: Instant,
    phase: Phase,
    /// Made when the first listener comes.
    reasoning: Option<broadcast::Sender<Arc<str>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Ended,
    Evicted,
}

/// A reader. It subscribes before it can look, so that no change is lost between a look and the wait that follows it.
pub(super) struct Follower {
    log: Arc<TurnLog>,
    changes: watch::Receiver<()>,
}

impl Follower {
    /// What follows the cursor, now.
    pub(super) fn look(&self, after: i64, limit: usize) -> LogRead {
        self.log.look(after, limit)
    }

    /// Waits for a change since the last wait, or since this reader was made.
    pub(super) async fn changed(&mut self) {
        // The sender lives in the log that is held here.
        let _ = self.changes.changed().await;
    }
}

/// What an append did.
pub(super) struct Appended {
    /// It ended the turn.
    pub(super) ended: bool,
    pub(super) result: Result<(), Refused>,
}

impl TurnLog {
    /// A log with its first event, and its size.
    pub(super) fn new(start: TurnEvent, now: Instant) -> (Self, usize) {
        let bytes = FIXED_BYTES + size(&start);
        let state = State {
            events: vec![LoggedEvent {
                seq: 1,
                event: start,
            }],
            bytes,
            fence: 0,
            last_append: now,
            phase: Phase::Open,
            reasoning: None,
        };
        let log = Self {
            state: Mutex::new(state),
            changed: watch::Sender::new(()),
        };
        (log, bytes)
    }

    /// Appends what follows, up to the first event that does not; `total` is the size of all logs.
    pub(super) fn append(
        &self,
        fence: i64,
        events: Vec<LoggedEvent>,
        now: Instant,
        total: &AtomicUsize,
    ) -> Appended {
        let mut state = self.lock();
        if fence < state.fence {
            return Appended {
                ended: false,
                result: Ok(()),
            };
        }
        state.fence = fence;
        let before = state.events.len();
        let was_open = state.phase == Phase::Open;
        let result = events
            .into_iter()
            .try_for_each(|event| state.push(event, total));
        let grew = state.events.len() > before;
        if grew {
            state.last_append = now;
        }
        let ended = was_open && state.phase == Phase::Ended;
        drop(state);
        if grew {
            self.changed.send_replace(());
        }
        Appended { ended, result }
    }

    /// A reader that misses no change from now on.
    pub(super) fn follow(self: Arc<Self>) -> Follower {
        let changes = self.changed.subscribe();
        Follower { log: self, changes }
    }

    fn look(&self, after: i64, limit: usize) -> LogRead {
        let state = self.lock();
        let Ok(place) = usize::try_from(after) else {
            return LogRead::Unknown;
        };
        if state.phase == Phase::Evicted || place > state.events.len() {
            return LogRead::Unknown;
        }
        let rest = &state.events[place..];
        if rest.is_empty() {
            return LogRead::Quiet;
        }
        LogRead::Events(rest[..rest.len().min(limit)].to_vec())
    }

    pub(super) fn tell_reasoning(&self, token: &str) {
        if let Some(listeners) = &self.lock().reasoning {
            let _ = listeners.send(Arc::from(token)); // nobody listens any more: nobody is told
        }
    }

    /// A listener; none if the turn has ended.
    pub(super) fn reasoning(&self) -> Option<broadcast::Receiver<Arc<str>>> {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return None;
        }
        let listeners = state
            .reasoning
            .get_or_insert_with(|| broadcast::Sender::new(REASONING_BACKLOG));
        Some(listeners.subscribe())
    }

    /// Since when an open turn has been silent; none for one that has ended.
    pub(super) fn silent_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.phase == Phase::Open).then_some(state.last_append)
    }

    /// Drops everything, turns away whoever still holds the log, and says how many bytes that was.
    pub(super) fn evict(&self) -> usize {
        let mut state = self.lock();
        state.phase = Phase::Evicted;
        state.events = Vec::new();
        state.reasoning = None;
        let bytes = std::mem::take(&mut state.bytes);
        drop(state);
        self.changed.send_replace(());
        bytes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, event: LoggedEvent, total: &AtomicUsize) -> Result<(), Refused> {
        let last = self.events.len() as i64;
        if self.phase == Phase::Evicted {
            return Err(Refused::Unknown);
        }
        if event.seq <= last {
            return Ok(());
        }
        if self.phase == Phase::Ended {
            return Err(Refused::Ended);
        }
        if event.seq > last + 1 && matches!(event.event, TurnEvent::Done(_)) {
            return Err(Refused::Cut);
        }
        if event.seq > last + 1 {
            return Err(Refused::Gap {
                last,
                found: event.seq,
            });
        }
        if matches!(event.event, TurnEvent::Done(_)) {
            self.phase = Phase::Ended;
            self.reasoning = None;
        }
        let bytes = size(&event.event);
        self.bytes += bytes;
        // Under this lock, so that an eviction takes away exactly what was added.
        total.fetch_add(bytes, Ordering::Relaxed);
        self.events.push(event);
        Ok(())
    }
}

/// What an event takes: its place in the list and its texts. Growth of the list beyond its length is left out.
pub(in crate::events) fn size(event: &TurnEvent) -> usize {
    let texts = match event {
        TurnEvent::Start { .. } => 0,
        TurnEvent::Recall {
            memories, degraded, ..
        } => {
            let memories: usize = memories
                .iter()
                .map(|m| size_of_val(m) + m.content.len())
                .sum();
            let degraded: usize = degraded.iter().map(|d| size_of_val(d) + d.len()).sum();
            memories + degraded
        }
        TurnEvent::Message { token } => token.len(),
        TurnEvent::Tool {
            call_id,
            name,
            summary,
            ..
        } => call_id.len() + name.len() + summary.len(),
        TurnEvent::Reset { reason } => reason.len(),
        TurnEvent::Done(terminal) => {
            let problem = terminal
                .problem
                .as_ref()
                .map_or(0, |p| p.code.len() + p.detail.len());
            terminal.text.len() + problem
        }
    };
    size_of::<LoggedEvent>() + texts
}
