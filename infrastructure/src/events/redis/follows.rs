//! Which turns of other replicas are followed here, and how far each is known.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidemark_domain::ids::TurnId;
use tokio::sync::watch;
use tokio::time::Instant;

use super::wire::EntryId;

/// Of more turns nothing is read: their followers read the stored turns. Each stands in every request of the reader.
const MAX_FOLLOWED: usize = 4_096;

/// A turn that nobody has asked for so long is not followed. A follower asks each two seconds.
const UNASKED: Duration = Duration::from_secs(10);

/// What is known of a followed turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nobody has looked yet.
    Looking,
    /// Redis has nothing of it, so far.
    Absent,
    /// Its events come to the local log.
    Here,
    /// Its events have a gap. They are not to be had from here any more.
    Broken,
    /// What stands in its place is somebody else's.
    Foreign,
}

#[derive(Debug)]
struct Follow {
    /// The last entry that was read.
    last: EntryId,
    touched: Instant,
    phase: watch::Sender<Phase>,
}

/// The turns.
#[derive(Debug, Default)]
pub(super) struct Follows(Mutex<HashMap<TurnId, Follow>>);

/// Somebody follows a turn.
#[derive(Debug)]
pub(super) struct Touched {
    /// What is known of it, and what will be.
    pub(super) phase: watch::Receiver<Phase>,
    /// Nobody did before.
    pub(super) is_new: bool,
}

impl Follows {
    /// Somebody follows the turn; none where too many are followed.
    pub(super) fn touch(&self, turn: TurnId) -> Option<Touched> {
        let mut turns = self.lock();
        let full = turns.len() >= MAX_FOLLOWED;
        let now = Instant::now();
        match turns.entry(turn) {
            Entry::Occupied(mut follow) => {
                follow.get_mut().touched = now;
                Some(Touched {
                    phase: follow.get().phase.subscribe(),
                    is_new: false,
                })
            }
            Entry::Vacant(_) if full => None,
            Entry::Vacant(place) => {
                let follow = place.insert(Follow {
                    last: EntryId::default(),
                    touched: now,
                    phase: watch::Sender::new(Phase::Looking),
                });
                Some(Touched {
                    phase: follow.phase.subscribe(),
                    is_new: true,
                })
            }
        }
    }

    /// Nobody needs to read of it any more.
    pub(super) fn leave(&self, turn: TurnId) {
        self.lock().remove(&turn);
    }

    /// Each is looked at anew, behind what was read of it.
    pub(super) fn look_again(&self) {
        for follow in self.lock().values() {
            follow.phase.send_replace(Phase::Looking);
        }
    }

    /// The turns nobody has looked for yet.
    pub(super) fn looking(&self) -> Vec<(TurnId, EntryId)> {
        self.pick(|phase| phase == Phase::Looking)
    }

    /// The turns that are read on, and from where.
    pub(super) fn known(&self) -> Vec<(TurnId, EntryId)> {
        self.pick(|phase| !matches!(phase, Phase::Looking | Phase::Foreign))
    }

    fn pick(&self, wanted: impl Fn(Phase) -> bool) -> Vec<(TurnId, EntryId)> {
        let turns = self.lock();
        let picked = turns
            .iter()
            .filter(|(_, follow)| wanted(*follow.phase.borrow()));
        picked.map(|(turn, follow)| (*turn, follow.last)).collect()
    }

    /// The phase of a turn that is followed.
    pub(super) fn phase(&self, turn: TurnId) -> Option<Phase> {
        self.lock().get(&turn).map(|follow| *follow.phase.borrow())
    }

    /// Entries up to this one were read.
    pub(super) fn advance(&self, turn: TurnId, last: EntryId) {
        if let Some(follow) = self.lock().get_mut(&turn) {
            follow.last = last;
        }
    }

    /// Something became known; whoever waits is told, also where it is what was known before.
    pub(super) fn set(&self, turn: TurnId, phase: Phase) {
        if let Some(follow) = self.lock().get(&turn) {
            follow.phase.send_replace(phase);
        }
    }

    /// Nobody can look: whoever waits goes on without.
    pub(super) fn give_up_looking(&self) {
        for follow in self.lock().values() {
            follow.phase.send_if_modified(|phase| {
                let looking = *phase == Phase::Looking;
                if looking {
                    *phase = Phase::Absent;
                }
                looking
            });
        }
    }

    /// Turns that nobody has asked for lately; they are followed no longer.
    pub(super) fn drop_idle(&self) -> Vec<TurnId> {
        let mut turns = self.lock();
        let idle: Vec<TurnId> = turns
            .iter()
            .filter(|(_, follow)| follow.touched.elapsed() > UNASKED)
            .map(|(turn, _)| *turn)
            .collect();
        for turn in &idle {
            turns.remove(turn);
        }
        idle
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TurnId, Follow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
