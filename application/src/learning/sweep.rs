//! Sessions that have grown quiet: what was said in them is consolidated after a while, though it is less than the threshold (B6).

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::worker::Workers;
use crate::ports::jobs::{JobKind, NewJob};
use crate::ports::store::StoreResult;

/// The most sessions that one sweep enqueues; the next takes more. Ours.
const AT_ONCE: u32 = 256;
/// The longest pause between two sweeps. A shorter interval is swept for five times within its length; both ours.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
const SWEEPS_AN_INTERVAL: u32 = 5;

/// Sweeps again and again until `shutdown`.
pub(super) async fn until(workers: Workers, shutdown: CancellationToken) {
    let pause = (workers.settings.interval / SWEEPS_AN_INTERVAL).min(LONGEST_PAUSE);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        if let Err(error) = workers.sweep().await {
            tracing::warn!(%error, "could not look for sessions to consolidate");
        }
    }
}

impl Workers {
    /// Enqueues the consolidation of sessions with messages older than the interval. How many there were.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn sweep(&self) -> StoreResult<usize> {
        let now = self.clock.now();
        let before = now - self.settings.interval;
        let sessions = self.store.sessions_to_consolidate(before, AT_ONCE).await?;
        for (owner, session) in &sessions {
            let job = NewJob {
                id: self.ids.job(),
                kind: JobKind::Consolidate,
            };
            self.store.enqueue_job(*owner, *session, job, now).await?;
        }
        if !sessions.is_empty() {
            self.work.notify_one();
        }
        Ok(sessions.len())
    }
}
