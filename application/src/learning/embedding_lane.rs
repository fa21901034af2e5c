//! What stands around the embedding of memories: an embedder that does not work is waited for, and owners whose memories nobody has asked to
//! embed are found (a new model, an embedder where there was none).

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::worker::Workers;
use crate::ports::embedder::Embedder;
use crate::ports::jobs::{JobKind, NewJob};
use crate::ports::store::StoreResult;

/// How long an embedder that does not work is left alone, at first, doubled each time, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long a probe may take.
const PROBE_LIMIT: Duration = Duration::from_secs(10);

/// How often owners are looked for.
const SWEEP: Duration = Duration::from_mins(10);

/// How many owners are enqueued at a time.
const OWNERS: u32 = 256;

impl Workers {
    /// Looks for owners whose memories are to be embedded, now and from time to time.
    pub(super) fn start_embedding(&self, tasks: &TaskTracker, shutdown: &CancellationToken) {
        if self.embedder.is_none() {
            return;
        }
        let (workers, shutdown) = (self.clone(), shutdown.clone());
        tasks.spawn(async move {
            loop {
                if let Err(error) = workers.sweep_unembedded().await {
                    tracing::warn!(%error, "could not look for memories to embed");
                }
                let pause = shutdown.run_until_cancelled(tokio::time::sleep(SWEEP));
                if pause.await.is_none() {
                    return;
                }
            }
        });
    }

    /// Enqueues the embedding of whatever the embedder's model has not embedded and nobody has enqueued. For how many owners.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn sweep_unembedded(&self) -> StoreResult<usize> {
        let Some(embedder) = &self.embedder else {
            return Ok(0);
        };
        let (mut found, mut after) = (0, None);
        loop {
            let owners = self
                .store
                .owners_to_embed(embedder.model(), after, OWNERS)
                .await?;
            for owner in &owners {
                let job = NewJob {
                    id: self.ids.job(),
                    kind: JobKind::Embed,
                };
                self.store
                    .enqueue_embedding(*owner, job, self.clock.now())
                    .await?;
            }
            if !owners.is_empty() {
                self.work.notify_one();
            }
            found += owners.len();
            after = owners.last().copied();
            if owners.len() < OWNERS as usize {
                return Ok(found);
            }
        }
    }

    /// Waits until the embedder works. False at shutdown.
    pub(super) async fn embedder_is_well(&self, shutdown: &CancellationToken) -> bool {
        let Some(embedder) = &self.embedder else {
            return false;
        };
        let mut pause = FIRST_PAUSE;
        while !embedder.is_well() {
            let rest = shutdown.run_until_cancelled(tokio::time::sleep(pause));
            if rest.await.is_none() {
                return false;
            }
            // Somebody else may have found it well meanwhile.
            if !embedder.is_well() && embedder.probe(PROBE_LIMIT).await.is_err() {
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        true
    }
}
