//! Forgetting over time (B12): what was not used until its confidence came to the floor is archived.

use std::collections::HashMap;
use std::time::Duration;

use metrics::counter;
use tidemark_domain::ids::{MemoryId, Owner};
use tokio_util::sync::CancellationToken;

use super::worker::Workers;
use crate::ports::fading::Fading;
use crate::ports::store::StoreResult;

/// The most memories that are looked at together. Ours: their ids are held at once.
const AT_ONCE: u32 = 10_000;
/// The most memories of one owner that are decided on in one transaction. Ours: it holds the owner's lock for some milliseconds.
const A_CHANGE: usize = 500;
/// When the first sweep comes at the latest after a start: a process that seldom runs for long forgets too. Ours.
const FIRST: Duration = Duration::from_mins(1);

/// Sweeps again and again until `shutdown`. Several processes may: what one has archived is none of the others' any more.
pub(super) async fn until(workers: Workers, every: Duration, shutdown: CancellationToken) {
    let mut pause = every.min(FIRST);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = every;
        match workers.fade(&shutdown).await {
            Ok(0) => {}
            Ok(archived) => tracing::info!(archived, "memories have faded"),
            Err(error) => tracing::warn!(%error, "could not look for memories that have faded"),
        }
    }
}

impl Workers {
    /// Archives what has faded, of all owners, each owner's as one change (of very many, several). How many memories there were. An owner with
    /// whom it does not succeed is passed over until the next time.
    ///
    /// # Errors
    /// When the store cannot be asked what may have faded.
    pub async fn fade(&self, shutdown: &CancellationToken) -> StoreResult<u64> {
        let now = self.clock.now();
        let (mut archived, mut after) = (0, None);
        while !shutdown.is_cancelled() {
            let due = self.store.fading(now, after, AT_ONCE).await?;
            let full = due.len() == AT_ONCE as usize;
            after = due.last().copied();
            for (owner, memories) in by_owner(due) {
                for some in memories.chunks(A_CHANGE) {
                    let change = self.ids.change();
                    match self.store.fade(owner, some.to_vec(), change, now).await {
                        Ok(faded) => archived += faded,
                        Err(error) => {
                            tracing::warn!(%error, "what has faded was not archived");
                            break;
                        }
                    }
                }
                if shutdown.is_cancelled() {
                    break;
                }
            }
            if !full {
                break;
            }
        }
        counter!("tidemark_memories_archived_total").increment(archived);
        Ok(archived)
    }
}

fn by_owner(due: Vec<Fading>) -> HashMap<Owner, Vec<MemoryId>> {
    let mut owners: HashMap<Owner, Vec<MemoryId>> = HashMap::new();
    for fading in due {
        let memories = owners.entry(fading.owner).or_default();
        memories.push(fading.memory);
    }
    owners
}
