//! What is to go to Redis. Events themselves stay in the local log: a turn is only marked as having new ones, so that nothing grows here
//! while Redis is slow or away but sets of turns that the local log holds.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidemark_application::ports::events::LoggedEvent;
use tidemark_domain::ids::TurnId;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// More ends than this do not wait: their followers find them in the stored turns.
const MAX_ENDS: usize = 4_096;

/// More hints than this do not wait: a runner sees the row when it prolongs its lease.
const MAX_HINTS: usize = 1_024;

/// What this replica has to do with an open turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It was accepted here, and has told its start. Whoever runs it tells the rest.
    Accepted,
    /// It runs here.
    Runs {
        /// The number of its start.
        fence: i64,
    },
}

/// The end of a turn whose events are not here.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) turn: TurnId,
    pub(super) fence: i64,
    pub(super) done: LoggedEvent,
}

/// What waits.
#[derive(Debug, Default)]
struct Waiting {
    roles: HashMap<TurnId, Role>,
    changed: HashSet<TurnId>,
    ends: VecDeque<End>,
    /// Turns that are gone from the store, since when.
    gone: HashMap<TurnId, Instant>,
    hints: HashSet<TurnId>,
    wake: bool,
}

/// What is to be done next.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) turns: Vec<(TurnId, Role)>,
    pub(super) ends: Vec<End>,
    /// They go on waiting until [`Outbox::erased`].
    pub(super) gone: Vec<TurnId>,
    pub(super) hints: Vec<TurnId>,
    /// The reader is to look which turns are followed.
    pub(super) wake: bool,
}

impl Work {
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
            && self.ends.is_empty()
            && self.gone.is_empty()
            && self.hints.is_empty()
            && !self.wake
    }
}

/// The queue of the task that writes.
#[derive(Debug)]
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    more: Notify,
    erased: watch::Sender<()>,
}

impl Outbox {
    pub(super) fn new() -> Self {
        Self {
            waiting: Mutex::default(),
            more: Notify::new(),
            erased: watch::Sender::new(()),
        }
    }

    /// What this replica has to do with the turn, if it is open and was written here.
    pub(super) fn role(&self, turn: TurnId) -> Option<Role> {
        self.lock().roles.get(&turn).copied()
    }

    /// The turn is known here. Whoever runs it stays its runner.
    pub(super) fn accepted(&self, turn: TurnId) {
        let mut waiting = self.lock();
        waiting.roles.entry(turn).or_insert(Role::Accepted);
        waiting.changed.insert(turn);
        drop(waiting);
        self.more.notify_one();
    }

    /// The turn has new events from here. Whether it had none before.
    pub(super) fn runs(&self, turn: TurnId, fence: i64) -> bool {
        let mut waiting = self.lock();
        let before = waiting.roles.insert(turn, Role::Runs { fence });
        waiting.changed.insert(turn);
        drop(waiting);
        self.more.notify_one();
        !matches!(before, Some(Role::Runs { .. }))
    }

    /// The turn has something to be written again.
    pub(super) fn again(&self, turn: TurnId) {
        let mut waiting = self.lock();
        if waiting.roles.contains_key(&turn) {
            waiting.changed.insert(turn);
            drop(waiting);
            self.more.notify_one();
        }
    }

    /// Every open turn has: Redis may have come back empty.
    pub(super) fn all_again(&self) {
        let mut waiting = self.lock();
        let Waiting { roles, changed, .. } = &mut *waiting;
        changed.extend(roles.keys());
        waiting.wake = true;
    }

    /// Nothing more of the turn is written from here. `then` runs before anybody else can take a role in it.
    pub(super) fn leave(&self, turn: TurnId, then: impl FnOnce()) {
        let mut waiting = self.lock();
        waiting.roles.remove(&turn);
        waiting.changed.remove(&turn);
        then();
    }

    /// Runs `then` if nothing of the turn is written from here, before anybody can begin to.
    pub(super) fn unless_ours(&self, turn: TurnId, then: impl FnOnce()) {
        let waiting = self.lock();
        if !waiting.roles.contains_key(&turn) {
            then();
        }
    }

    /// The end of a turn that nobody runs any more.
    pub(super) fn end(&self, end: End) {
        let mut waiting = self.lock();
        if waiting.ends.len() == MAX_ENDS {
            waiting.ends.pop_front();
        }
        waiting.ends.push_back(end);
        drop(waiting);
        self.more.notify_one();
    }

    /// Ends that could not be written.
    pub(super) fn give_back(&self, ends: Vec<End>) {
        let mut waiting = self.lock();
        for end in ends.into_iter().rev() {
            if waiting.ends.len() < MAX_ENDS {
                waiting.ends.push_front(end);
            }
        }
    }

    pub(super) fn hint(&self, turn: TurnId) {
        let mut waiting = self.lock();
        if waiting.hints.len() < MAX_HINTS {
            waiting.hints.insert(turn);
        }
        drop(waiting);
        self.more.notify_one();
    }

    pub(super) fn wake(&self) {
        self.lock().wake = true;
        self.more.notify_one();
    }

    /// Turns that are gone from the store: nothing of them may stay.
    pub(super) fn forget(&self, turns: &[TurnId]) {
        let now = Instant::now();
        let mut waiting = self.lock();
        for turn in turns {
            waiting.roles.remove(turn);
            waiting.changed.remove(turn);
            waiting.gone.insert(*turn, now);
        }
        let Waiting { ends, gone, .. } = &mut *waiting;
        ends.retain(|end| !gone.contains_key(&end.turn));
        drop(waiting);
        self.more.notify_one();
    }

    /// Nothing of these is left in Redis.
    pub(super) fn erased(&self, turns: &[TurnId]) {
        let mut waiting = self.lock();
        for turn in turns {
            waiting.gone.remove(turn);
        }
        drop(waiting);
        self.erased.send_replace(());
    }

    /// Waits until nothing of these is left, at most `limit`. Whether nothing is.
    pub(super) async fn until_erased(&self, turns: &[TurnId], limit: Duration) -> bool {
        let mut erased = self.erased.subscribe();
        let done = async {
            while {
                let waiting = self.lock();
                turns.iter().any(|turn| waiting.gone.contains_key(turn))
            } {
                if erased.changed().await.is_err() {
                    break;
                }
            }
        };
        tokio::time::timeout(limit, done).await.is_ok()
    }

    /// What is to be done next, of at most so many turns.
    pub(super) fn take(&self, most: usize) -> Work {
        let mut waiting = self.lock();
        let Waiting {
            roles,
            changed,
            ends,
            gone,
            hints,
            wake,
        } = &mut *waiting;
        let turns: Vec<(TurnId, Role)> = changed
            .iter()
            .filter_map(|turn| Some((*turn, *roles.get(turn)?)))
            .take(most)
            .collect();
        if turns.len() < most {
            changed.clear();
        } else {
            for (turn, _) in &turns {
                changed.remove(turn);
            }
        }
        Work {
            turns,
            ends: ends.drain(..).collect(),
            gone: gone.keys().copied().take(most).collect(),
            hints: hints.drain().collect(),
            wake: std::mem::take(wake),
        }
    }

    /// Whether something is to be done.
    pub(super) fn has_work(&self) -> bool {
        let waiting = self.lock();
        !waiting.changed.is_empty() || !waiting.ends.is_empty() || !waiting.gone.is_empty()
    }

    /// Waits for more to be done.
    pub(super) async fn more(&self) {
        self.more.notified().await;
    }

    /// Lets go of turns that the local log holds no longer, and of gone ones of which Redis has let go by itself.
    pub(super) fn tidy(&self, holds: impl Fn(TurnId) -> bool, retention: Duration) {
        let mut waiting = self.lock();
        waiting.roles.retain(|turn, _| holds(*turn));
        let Waiting { roles, changed, .. } = &mut *waiting;
        changed.retain(|turn| roles.contains_key(turn));
        waiting.gone.retain(|_, since| since.elapsed() < retention);
        drop(waiting);
        self.erased.send_replace(());
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
