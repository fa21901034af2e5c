//! Stopping a running turn. Only waits on the model and on tools are cut; what is being written is written to its end, so that
//! whoever closes the turn finds its messages as they are.

use std::sync::Arc;

use tokio::sync::{Notify, watch};

/// Why a turn is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Its owner wants it.
    Cancelled,
    /// The server is going down.
    Shutdown,
    /// It ran for too long.
    TimeLimit,
    /// It belongs to somebody else now: nothing may be written or told any more.
    LeaseLost,
}

/// Tells a turn to stop; the first reason holds.
#[derive(Clone, Debug)]
pub(super) struct Stopper {
    reason: watch::Sender<Option<StopReason>>,
    look: Arc<Notify>,
}

/// Hears it.
#[derive(Clone, Debug)]
pub struct StopSignal(watch::Receiver<Option<StopReason>>);

pub(super) fn channel() -> (Stopper, StopSignal) {
    let (sender, receiver) = watch::channel(None);
    let stopper = Stopper {
        reason: sender,
        look: Arc::default(),
    };
    (stopper, StopSignal(receiver))
}

impl Stopper {
    pub(super) fn stop(&self, reason: StopReason) {
        self.reason.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(reason);
            }
            first
        });
    }

    /// The turn's row is worth a look now: perhaps it says that the turn is to stop.
    pub(super) fn look(&self) {
        self.look.notify_one();
    }

    /// Resolves when it is.
    pub(super) async fn to_look(&self) {
        self.look.notified().await;
    }
}

impl StopSignal {
    /// Resolves when the turn is to stop; never, if nobody can say so any more.
    pub async fn stopped(&mut self) -> StopReason {
        let reason = self.0.wait_for(Option::is_some).await.ok().and_then(|r| *r);
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }

    /// The reason, if there is one by now.
    pub fn reason(&self) -> Option<StopReason> {
        *self.0.borrow()
    }
}
