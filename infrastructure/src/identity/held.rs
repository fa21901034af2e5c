//! The provider's keys as they were read last, and the one task that reads them.
//!
//! They are read at start, and again and again. Who needs a key that is not among them wishes for a reading and waits for it; of many who do so at
//! once, all wait for the same. After each reading no wish is heard for [`REST`], so tokens that name keys at random cause one request in that
//! time, however many come. While the provider does not answer, what was read last holds, for a bounded time.

use std::sync::Arc;
use std::time::Duration;

use tidemark_application::ports::identity_provider::{Reading, Unverified};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::key_set::{Key, KeySet};
use super::source::{LIMIT, Source, Unread};

/// How long after a reading none is made at anybody's wish, and how long after a failed one the next is tried.
pub(super) const REST: Duration = Duration::from_secs(10);

/// Whoever waits for a reading waits a little longer than it may take.
const WAIT: Duration = LIMIT.saturating_add(Duration::from_secs(1));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reading,
    Resting,
    /// A wish is heard.
    Idle,
}

#[derive(Clone, Debug)]
struct Known {
    /// Those of the last reading that brought a set, and until when they hold without another.
    set: Option<(Arc<KeySet>, Instant)>,
    /// The last reading brought them.
    well: bool,
    /// How many readings have ended.
    readings: u64,
    phase: Phase,
}

/// Holds them. The task ends with this.
#[derive(Debug)]
pub(super) struct Held {
    known: watch::Sender<Known>,
    wishes: mpsc::Sender<()>,
    task: JoinHandle<()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Held {
    /// Begins to read them, each `interval`, which is longer than [`REST`] or counts as that. What was read holds for `patience` after it was to be
    /// read again.
    pub(super) fn start(source: Source, interval: Duration, patience: Duration) -> Self {
        let (known, _) = watch::channel(Known {
            set: None,
            well: false,
            readings: 0,
            phase: Phase::Reading,
        });
        let (wishes, heard) = mpsc::channel(1);
        let times = Times { interval, patience };
        let task = tokio::spawn(keep(source, times, known.clone(), heard));
        Self {
            known,
            wishes,
            task,
        }
    }

    /// The key of that id, for which a reading may have to be waited for.
    pub(super) async fn find(&self, id: &str) -> Result<Key, Unverified> {
        let mut known = self.known.subscribe();
        let (phase, readings) = {
            let now = known.borrow_and_update();
            if let Some(key) = now.key(id) {
                return Ok(key);
            }
            (now.phase, now.readings)
        };
        match phase {
            Phase::Resting => {}
            Phase::Reading | Phase::Idle => {
                if phase == Phase::Idle {
                    // Full: somebody else has wished for the same.
                    let _ = self.wishes.try_send(());
                }
                let read = known.wait_for(|now| now.readings > readings);
                // Whatever came of it, what is known now decides.
                let _ = timeout(WAIT, read).await;
            }
        }
        let now = self.known.borrow();
        now.key(id).ok_or(if now.well {
            Unverified::UnknownKey
        } else {
            Unverified::Unavailable
        })
    }

    pub(super) fn reading(&self) -> Reading {
        let now = self.known.borrow();
        match (now.holding(), now.well) {
            (None, _) => Reading::Missing,
            (Some(_), true) => Reading::Well,
            (Some(_), false) => Reading::Stale,
        }
    }
}

impl Known {
    /// What was read, while it holds.
    fn holding(&self) -> Option<&KeySet> {
        let (set, until) = self.set.as_ref()?;
        (Instant::now() < *until).then_some(set)
    }

    fn key(&self, id: &str) -> Option<Key> {
        self.holding()?.find(id).cloned()
    }
}

#[derive(Clone, Copy, Debug)]
struct Times {
    interval: Duration,
    patience: Duration,
}

impl Times {
    /// Until when holds what is read now.
    fn until(self) -> Instant {
        Instant::now() + self.interval.max(REST) + self.patience
    }
}

async fn keep(
    source: Source,
    times: Times,
    known: watch::Sender<Known>,
    mut heard: mpsc::Receiver<()>,
) {
    loop {
        let read = source.read().await;
        tell(&read, &known.borrow());
        let well = read.is_ok();
        known.send_modify(|now| {
            now.well = well;
            now.readings += 1;
            now.phase = Phase::Resting;
            match read {
                Ok(set) => now.set = Some((Arc::new(set), times.until())),
                Err(_) if now.holding().is_none() => now.set = None,
                Err(_) => {}
            }
        });
        sleep(REST).await;
        if well {
            while heard.try_recv().is_ok() {}
            known.send_modify(|now| now.phase = Phase::Idle);
            tokio::select! {
                () = sleep(times.interval.saturating_sub(REST)) => {}
                _ = heard.recv() => {}
            }
        }
        known.send_modify(|now| now.phase = Phase::Reading);
    }
}

/// Tells what a reading changes about what was known before it.
fn tell(read: &Result<KeySet, Unread>, before: &Known) {
    let first = before.readings == 0;
    match read {
        Ok(set) if set.len() == 0 => {
            tracing::warn!("the identity provider publishes no key that tokens may be signed with");
        }
        Ok(set) if !before.well => {
            tracing::info!(keys = set.len(), "the identity provider's keys were read");
        }
        Ok(_) => {}
        Err(error) if before.holding().is_none() && (first || before.set.is_some()) => {
            tracing::error!(%error, "the identity provider's keys cannot be read, and none is known that holds: its tokens are refused");
        }
        Err(error) if before.well => {
            tracing::warn!(%error, "the identity provider's keys could not be read; what was read before holds");
        }
        Err(error) => tracing::debug!(%error, "the identity provider's keys could not be read"),
    }
}
