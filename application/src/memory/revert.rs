//! Undoing a change as a whole.

use std::sync::Arc;

use tidemark_domain::ids::{ChangeId, MemoryId, Owner};
use tidemark_domain::memory::change::{Change, ChangeKind, undo};

use super::{CONFLICT_TRIES, remember};
use crate::learning::embed::embed_job;
use crate::ports::changes::{Reversal, RevertError};
use crate::ports::clock::Clock;
use crate::ports::ids::Ids;
use crate::ports::store::{Store, StoreResult};

/// Undoes changes.
pub struct Revert {
    store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    embeds: bool,
}

impl std::fmt::Debug for Revert {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Revert").finish_non_exhaustive()
    }
}

/// The outcome of undoing a change.
#[derive(Clone, Debug, PartialEq)]
pub enum Reverted {
    /// It is undone, by this change: now, or before.
    Done(Box<Change>),
    /// There is no such change of this owner.
    NotFound,
    /// It is of a kind that cannot be undone.
    Impossible(ChangeKind),
    /// These memories were edited since. Nothing was undone.
    Edited(Vec<MemoryId>),
    /// Others kept changing the same memories. Nothing was undone; try again.
    Busy,
}

impl Revert {
    /// In this store.
    pub fn new(store: Arc<dyn Store>, ids: Arc<dyn Ids>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            ids,
            clock,
            embeds: false,
        }
    }

    /// Has what is put back embedded, where there is an embedder.
    #[must_use]
    pub fn with_embedding(mut self, embeds: bool) -> Self {
        self.embeds = embeds;
        self
    }

    /// Undoes a change: what it made is removed and not learned again from the same messages, what it edited gets its values back, what it had
    /// ended holds again unless something newer does. Undoing it twice is undoing it once.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn run(&self, owner: Owner, id: ChangeId) -> StoreResult<Reverted> {
        for _ in 0..CONFLICT_TRIES {
            let Some(change) = self.store.change(owner, id).await? else {
                return Ok(Reverted::NotFound);
            };
            if let Some(by) = change.reverted_by {
                return self.earlier(owner, by).await;
            }
            if !change.kind.can_be_reverted() {
                return Ok(Reverted::Impossible(change.kind));
            }
            let reversal = match self.decide(owner, &change).await? {
                Ok(reversal) => reversal,
                Err(edited) => return Ok(Reverted::Edited(edited)),
            };
            match self.store.revert(owner, reversal).await {
                Ok(change) => return Ok(Reverted::Done(Box::new(change))),
                Err(RevertError::NotFound) => return Ok(Reverted::NotFound),
                Err(RevertError::Already(by)) => return self.earlier(owner, by).await,
                Err(RevertError::Conflict) => {}
                Err(RevertError::Store(error)) => return Err(error),
            }
        }
        Ok(Reverted::Busy)
    }

    async fn earlier(&self, owner: Owner, by: ChangeId) -> StoreResult<Reverted> {
        let change = self.store.change(owner, by).await?;
        Ok(change.map_or(Reverted::NotFound, |change| {
            Reverted::Done(Box::new(change))
        }))
    }

    async fn decide(
        &self,
        owner: Owner,
        change: &Change,
    ) -> StoreResult<Result<Reversal, Vec<MemoryId>>> {
        let touched: Vec<MemoryId> = change.items.iter().map(|item| item.memory).collect();
        let memories = self.store.memories(owner, &touched).await?;
        let later = self.store.later_items(owner, change.id, &touched).await?;
        let now = self.clock.now();
        let undoing = match undo(change, &memories, &later, now) {
            Ok(undoing) => undoing,
            Err(edited) => return Ok(Err(edited)),
        };
        let untaught = match (change.kind, change.session_id, change.range) {
            (ChangeKind::Import, Some(session), Some((from, to))) => Some((session, from, to)),
            _ => None,
        };
        let reworded = (undoing.restored.iter()).any(|(seen, put)| seen.content != put.content);
        Ok(Ok(Reversal {
            reverted: change.id,
            change: self.ids.change(),
            // What an import taught is withdrawn with its messages: of what others taught too, only a voice.
            removed: if untaught.is_some() {
                Vec::new()
            } else {
                undoing.removed
            },
            restored: undoing
                .restored
                .into_iter()
                .map(|(seen, restored)| (seen, remember::index(restored)))
                .collect(),
            untaught,
            jobs: embed_job(self.ids.as_ref(), self.embeds && reworded),
            now,
        }))
    }
}
