//! What is to go to Redis. Events themselves stay in the local log: a turn is only marked as having new ones, so that nothing grows here
//! while Redis is slow or away but sets of turns that the local log holds.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidemark_application::ports::events::LoggedEvent;
use tidemark_domain::ids::TurnId;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::events::memory::size;

/// More ends than this do not wait, nor ends with more text than this many bytes: their followers find them in the stored turns.
const MAX_ENDS: usize = 4_096;
const MAX_END_BYTES: usize = 16 * 1024 * 1024;

/// So long nothing of a turn is written that is gone. No turn runs for longer.
pub(super) const REFUSED: Duration = Duration::from_hours(24);

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

impl End {
    /// Roughly what it takes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + size(&self.done.event)
    }
}

/// Ends, the first first; the oldest go where there are too many.
#[derive(Debug, Default)]
struct Ends {
    waiting: VecDeque<End>,
    bytes: usize,
}

impl Ends {
    fn push_back(&mut self, end: End) {
        self.bytes += end.bytes();
        self.waiting.push_back(end);
        while self.waiting.len() > MAX_ENDS || self.bytes > MAX_END_BYTES {
            let Some(oldest) = self.waiting.pop_front() else {
                break;
            };
            self.bytes -= oldest.bytes();
        }
    }

    /// Puts what was taken before the others, as far as there is room.
    fn give_back(&mut self, ends: Vec<End>) {
        for end in ends.into_iter().rev() {
            let bytes = self.bytes + end.bytes();
            if self.waiting.len() == MAX_ENDS || bytes > MAX_END_BYTES {
                break;
            }
            self.bytes = bytes;
            self.waiting.push_front(end);
        }
    }

    fn retain(&mut self, wanted: impl Fn(TurnId) -> bool) {
        self.waiting.retain(|end| wanted(end.turn));
        self.bytes = self.waiting.iter().map(End::bytes).sum();
    }

    fn take(&mut self) -> Vec<End> {
        self.bytes = 0;
        self.waiting.drain(..).collect()
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Turns, each once, the first marked before the others: whoever is marked all the time never keeps another one waiting.
#[derive(Debug, Default)]
struct Queue {
    order: VecDeque<TurnId>,
    members: HashSet<TurnId>,
}

impl Queue {
    fn insert(&mut self, turn: TurnId) {
        if self.members.insert(turn) {
            self.order.push_back(turn);
        }
    }

    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn take(&mut self, most: usize) -> Vec<TurnId> {
        let taken: Vec<TurnId> = self.order.drain(..most.min(self.order.len())).collect();
        for turn in &taken {
            self.members.remove(turn);
        }
        taken
    }

    fn retain(&mut self, wanted: impl Fn(&TurnId) -> bool) {
        self.order.retain(|turn| wanted(turn));
        self.members.retain(|turn| wanted(turn));
    }
}

/// What waits.
#[derive(Debug, Default)]
struct Waiting {
    roles: HashMap<TurnId, Role>,
    /// When a turn was accepted here, or opened to be run here, last.
    opened: HashMap<TurnId, Instant>,
    changed: Queue,
    ends: Ends,
    /// Turns that are gone from the store, and are to be removed from Redis, since when.
    gone: HashMap<TurnId, Instant>,
    /// Turns that are gone, since when: nothing of them is written any more, however late it comes.
    refused: HashMap<TurnId, Instant>,
    hints: HashSet<TurnId>,
    wake: bool,
    /// Something was taken, and is not known to have been written.
    under_way: bool,
}

impl Waiting {
    /// Nothing is left to be written, the reader's wake aside.
    fn is_settled(&self) -> bool {
        !self.under_way
            && self.changed.is_empty()
            && self.ends.is_empty()
            && self.gone.is_empty()
            && self.hints.is_empty()
    }

    fn refuse(&mut self, turns: &[TurnId], now: Instant) {
        for turn in turns {
            self.roles.remove(turn);
            self.refused.insert(*turn, now);
        }
        let Self { ends, refused, .. } = self;
        ends.retain(|turn| !refused.contains_key(&turn));
    }
}

/// How long ago a turn was accepted, as its id has it.
#[expect(
    clippy::disallowed_methods,
    reason = "an id carries the time of the clock, which a log has no port to"
)]
pub(super) fn age(turn: TurnId) -> Option<Duration> {
    let (seconds, nanoseconds) = turn.0.get_timestamp()?.to_unix();
    let accepted = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    SystemTime::now().duration_since(accepted).ok()
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
    settled: watch::Sender<()>,
}

impl Outbox {
    pub(super) fn new() -> Self {
        Self {
            waiting: Mutex::default(),
            more: Notify::new(),
            erased: watch::Sender::new(()),
            settled: watch::Sender::new(()),
        }
    }

    /// What this replica has to do with the turn, if it is open and was written here.
    pub(super) fn role(&self, turn: TurnId) -> Option<Role> {
        self.lock().roles.get(&turn).copied()
    }

    /// The turn is known here. Whoever runs it stays its runner.
    pub(super) fn accepted(&self, turn: TurnId) {
        let mut waiting = self.lock();
        if waiting.refused.contains_key(&turn) {
            return;
        }
        waiting.roles.entry(turn).or_insert(Role::Accepted);
        waiting.opened.insert(turn, Instant::now());
        waiting.changed.insert(turn);
        drop(waiting);
        self.more.notify_one();
    }

    /// The turn has new events from here. Whether it had none before.
    pub(super) fn runs(&self, turn: TurnId, fence: i64) -> bool {
        let mut waiting = self.lock();
        if waiting.refused.contains_key(&turn) {
            return false;
        }
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
        for turn in roles.keys() {
            changed.insert(*turn);
        }
        waiting.wake = true;
    }

    /// Nothing more of the turn is written from here. `then` runs before anybody else can take a role in it.
    pub(super) fn leave(&self, turn: TurnId, then: impl FnOnce()) {
        let mut waiting = self.lock();
        waiting.roles.remove(&turn);
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
        if waiting.refused.contains_key(&end.turn) {
            return;
        }
        waiting.ends.push_back(end);
        drop(waiting);
        self.more.notify_one();
    }

    /// Ends that could not be written.
    pub(super) fn give_back(&self, ends: Vec<End>) {
        let mut waiting = self.lock();
        let Waiting {
            ends: left,
            refused,
            ..
        } = &mut *waiting;
        let ends = ends
            .into_iter()
            .filter(|end| !refused.contains_key(&end.turn));
        left.give_back(ends.collect());
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
            waiting.gone.insert(*turn, now);
        }
        waiting.refuse(turns, now);
        drop(waiting);
        self.more.notify_one();
    }

    /// Another replica has removed these from Redis: nothing of them is written from here any more.
    pub(super) fn refuse(&self, turns: &[TurnId]) {
        self.lock().refuse(turns, Instant::now());
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

    /// What is to be done next, of at most so many turns. It is under way until [`Outbox::written`].
    pub(super) fn take(&self, most: usize) -> Work {
        let mut waiting = self.lock();
        let Waiting {
            roles,
            changed,
            ends,
            gone,
            hints,
            wake,
            under_way,
            ..
        } = &mut *waiting;
        let turns = changed.take(most).into_iter();
        let turns = turns.filter_map(|turn| Some((turn, *roles.get(&turn)?)));
        let turns = turns.collect();
        let work = Work {
            turns,
            ends: ends.take(),
            gone: gone.keys().copied().take(most).collect(),
            hints: hints.drain().collect(),
            wake: std::mem::take(wake),
        };
        *under_way = true;
        work
    }

    /// Redis has what was taken last. What a broken connection took is not known to have been written: it is marked again over the next.
    pub(super) fn written(&self) {
        let mut waiting = self.lock();
        waiting.under_way = false;
        let settled = waiting.is_settled();
        drop(waiting);
        if settled {
            self.settled.send_replace(());
        }
    }

    /// Waits until nothing is left to be written, at most `limit`. Whether nothing is.
    pub(super) async fn until_settled(&self, limit: Duration) -> bool {
        let mut settled = self.settled.subscribe();
        self.more.notify_one();
        let done = async {
            while !self.lock().is_settled() {
                if settled.changed().await.is_err() {
                    break;
                }
            }
        };
        tokio::time::timeout(limit, done).await.is_ok()
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

    /// Lets go of turns that the local log holds no longer, and of gone ones of which Redis has let go by itself. Those are named that were accepted
    /// here so long ago that they run elsewhere, or nowhere: whoever follows one looks for it in Redis.
    pub(super) fn tidy(&self, holds: impl Fn(TurnId) -> bool, retention: Duration) -> Vec<TurnId> {
        let mut waiting = self.lock();
        let mut old = Vec::new();
        let Waiting { roles, opened, .. } = &mut *waiting;
        roles.retain(|turn, role| {
            let is_old = opened.get(turn).is_some_and(|at| at.elapsed() > retention);
            let left = *role == Role::Accepted && is_old;
            if left {
                old.push(*turn);
            }
            !left && holds(*turn)
        });
        opened.retain(|turn, _| roles.contains_key(turn));
        let Waiting { roles, changed, .. } = &mut *waiting;
        changed.retain(|turn| roles.contains_key(turn));
        waiting.gone.retain(|_, since| since.elapsed() < retention);
        waiting.refused.retain(|_, since| since.elapsed() < REFUSED);
        drop(waiting);
        self.erased.send_replace(());
        old
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tidemark_domain::event::TurnEvent;
    use uuid::Uuid;

    use super::*;

    fn turn(number: u128) -> TurnId {
        TurnId(Uuid::from_u128(number))
    }

    fn end(number: u128) -> End {
        let token = "text".to_owned();
        End {
            turn: turn(number),
            fence: 1,
            done: LoggedEvent {
                seq: 2,
                event: TurnEvent::Message { token },
            },
        }
    }

    #[test]
    fn a_turn_that_is_marked_all_the_time_keeps_no_other_waiting() {
        let outbox = Outbox::new();
        let all: Vec<TurnId> = (0..600).map(turn).collect();
        for turn in &all {
            outbox.runs(*turn, 1);
        }
        let mut seen = HashSet::new();
        for _ in 0..3 {
            let work = outbox.take(256);
            for (turn, _) in work.turns {
                seen.insert(turn);
                outbox.runs(turn, 1);
            }
        }
        assert_eq!(seen.len(), 600);
    }

    #[test]
    fn nothing_of_a_turn_that_is_gone_is_written_however_late_it_comes() {
        let outbox = Outbox::new();
        outbox.runs(turn(1), 1);
        outbox.end(end(2));
        let taken = outbox.take(10);
        assert_eq!((taken.turns.len(), taken.ends.len()), (1, 1));
        outbox.forget(&[turn(1)]);
        outbox.refuse(&[turn(2)]);
        outbox.give_back(taken.ends);
        outbox.end(end(1));
        outbox.runs(turn(1), 2);
        outbox.accepted(turn(2));
        let work = outbox.take(10);
        assert!(work.turns.is_empty() && work.ends.is_empty());
        assert_eq!(work.gone, [turn(1)]);
        outbox.erased(&[turn(1)]);
        outbox.end(end(1));
        assert!(outbox.take(10).is_empty());
    }

    #[test]
    fn ends_that_wait_are_bounded_in_number_and_in_bytes() {
        let outbox = Outbox::new();
        for number in 0..=MAX_ENDS as u128 {
            outbox.end(end(number));
        }
        let taken = outbox.take(0).ends;
        assert_eq!(taken.len(), MAX_ENDS);
        assert_eq!(taken[0].turn, turn(1), "the oldest has gone");
        let long = |number| {
            let mut end = end(number);
            end.done.event = TurnEvent::Message {
                token: "x".repeat(MAX_END_BYTES / 4),
            };
            end
        };
        outbox.give_back(taken);
        for number in 0..8 {
            outbox.end(long(10_000 + number));
        }
        let taken = outbox.take(0).ends;
        let turns: Vec<TurnId> = taken.iter().map(|end| end.turn).collect();
        assert_eq!(turns, [10_005, 10_006, 10_007].map(turn));
        outbox.end(long(20_000));
        outbox.end(long(20_001));
        outbox.give_back(taken);
        let left: Vec<TurnId> = outbox.take(0).ends.iter().map(|end| end.turn).collect();
        assert_eq!(left, [10_007, 20_000, 20_001].map(turn));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_settled_before_it_is_known_to_be_written() {
        let outbox = Outbox::new();
        let soon = Duration::from_secs(1);
        assert!(outbox.until_settled(soon).await, "there is nothing");
        outbox.runs(turn(1), 1);
        assert!(!outbox.until_settled(soon).await);
        outbox.take(10);
        assert!(!outbox.until_settled(soon).await, "it is under way");
        // The connection broke; over the next it is marked again.
        outbox.all_again();
        outbox.take(10);
        outbox.hint(turn(2));
        outbox.written();
        assert!(!outbox.until_settled(soon).await, "a hint waits");
        outbox.take(10);
        outbox.written();
        assert!(outbox.until_settled(soon).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_accepted_here_that_runs_elsewhere_is_let_go_unless_it_is_opened_again() {
        let outbox = Outbox::new();
        let retention = Duration::from_mins(15);
        outbox.accepted(turn(1));
        tokio::time::advance(Duration::from_mins(16)).await;
        outbox.accepted(turn(2));
        assert_eq!(outbox.tidy(|_| true, retention), [turn(1)]);
        assert_eq!(outbox.role(turn(1)), None);
        assert_eq!(outbox.role(turn(2)), Some(Role::Accepted));
        // It waited for long, and is run here after all.
        outbox.accepted(turn(1));
        assert!(outbox.tidy(|_| true, retention).is_empty());
        outbox.runs(turn(1), 1);
        tokio::time::advance(Duration::from_mins(16)).await;
        assert_eq!(outbox.tidy(|_| true, retention), [turn(2)]);
        assert_eq!(outbox.role(turn(1)), Some(Role::Runs { fence: 1 }));
    }
}
