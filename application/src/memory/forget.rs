//! Forgetting on request.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidemark_domain::ids::{MemoryId, MessageId, Owner};
use tidemark_domain::memory::analysis::fold;
use tidemark_domain::memory::{Layer, Memory};

use crate::ports::clock::Clock;
use crate::ports::store::{Store, StoreResult};

/// Forgets.
pub struct Forget {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Forget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forget").finish_non_exhaustive()
    }
}

impl Forget {
    /// From this store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Forgets a memory, and what says the same from the same messages in another layer: whoever forgets a statement does not want
    /// its verbatim told instead, nor the other way round. `None` if there is no such memory in that version.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn run(
        &self,
        owner: Owner,
        id: MemoryId,
        expected: Option<i64>,
    ) -> StoreResult<Forgotten> {
        let Some(memory) = self.store.memories(owner, &[id]).await?.pop() else {
            return Ok(Forgotten::NotFound);
        };
        if expected.is_some_and(|version| version != memory.version) {
            return Ok(Forgotten::Stale);
        }
        let mut ids = vec![id];
        ids.extend(self.echoes(owner, &memory).await?);
        self.store.forget(owner, &ids, self.clock.now()).await?;
        Ok(Forgotten::Done)
    }

    async fn echoes(&self, owner: Owner, memory: &Memory) -> StoreResult<Vec<MemoryId>> {
        let messages: Vec<MessageId> = memory.sources.iter().map(|s| s.message_id).collect();
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let from: BTreeSet<MessageId> = messages.iter().copied().collect();
        let said = fold(&memory.content);
        Ok(self
            .store
            .memories_from(owner, &messages)
            .await?
            .into_iter()
            .filter(|other| other.id != memory.id && other.layer != memory.layer)
            .filter(|other| match other.layer {
                Layer::Episodic => fold(&other.content).contains(&said),
                _ => {
                    said.contains(&fold(&other.content))
                        && other.sources.iter().all(|s| from.contains(&s.message_id))
                }
            })
            .map(|other| other.id)
            .collect())
    }
}

/// The outcome of forgetting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// It is gone.
    Done,
    /// There is no such memory of this owner.
    NotFound,
    /// It has changed since the caller saw it.
    Stale,
}
