//! The end of all that is kept of a user.

use std::sync::Arc;
use std::time::Duration;

use tidemark_domain::ids::{Owner, TenantId, UserName};

use crate::chat::service::Chat;
use crate::memory::recall::Recall;
use crate::ports::clock::Clock;
use crate::ports::ids::Ids;
use crate::ports::store::{Store, StoreResult};
use crate::ports::users::Receipt;

/// How long an erasure waits for turns that another process runs.
const END_LIMIT: Duration = Duration::from_secs(5);
/// How often it looks for them.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What this process holds of users beside the store.
#[derive(Clone, Debug)]
pub struct Held {
    /// Runs turns, and has their live logs.
    pub chat: Chat,
    /// Has the indexes of memories.
    pub recall: Arc<Recall>,
}

/// Erases users.
pub struct Erase {
    store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    /// Nothing in a process that serves nobody.
    held: Option<Held>,
}

impl std::fmt::Debug for Erase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Erase").finish_non_exhaustive()
    }
}

impl Erase {
    /// From this store, and from what the process holds.
    pub fn new(
        store: Arc<dyn Store>,
        ids: Arc<dyn Ids>,
        clock: Arc<dyn Clock>,
        held: Option<Held>,
    ) -> Self {
        Self {
            store,
            ids,
            clock,
            held,
        }
    }

    /// Ends what runs for the user, then removes everything. `None` if there is no such user. Calls `gone` as soon as the name is free for
    /// somebody new, or never was known: what is left to do may take a while.
    ///
    /// # Errors
    /// When the store fails; what was removed is gone all the same.
    pub async fn run(
        &self,
        tenant: TenantId,
        user: &UserName,
        gone: impl FnOnce() + Send,
    ) -> StoreResult<Option<Receipt>> {
        let erased = self.remove(tenant, user).await;
        gone();
        let receipt = erased?;
        if receipt.is_some() {
            self.store.overwrite_erased().await?;
        }
        Ok(receipt)
    }

    async fn remove(&self, tenant: TenantId, user: &UserName) -> StoreResult<Option<Receipt>> {
        let Some(known) = self.store.find_user(tenant, user).await? else {
            return Ok(None);
        };
        let owner = known.owner;
        match &self.held {
            Some(held) => held.chat.end_turns(owner, None).await?,
            None => self.end_turns(owner).await?,
        }
        let erased = self
            .store
            .erase(owner, self.ids.uuid(), self.clock.now())
            .await?;
        let Some(erased) = erased else {
            return Ok(None);
        };
        if let Some(held) = &self.held {
            held.chat.forget_turns(&erased.turns).await;
            held.recall.forget_owner(owner);
        }
        Ok(Some(erased.receipt))
    }

    /// Cancels turns that other processes run, and waits a while for their ends. A runner that does not hear of it finds its turn gone.
    async fn end_turns(&self, owner: Owner) -> StoreResult<()> {
        for turn in self.store.open_turns(owner, None).await? {
            let now = self.clock.now();
            self.store.request_cancel(owner, turn, now).await?;
        }
        let until = tokio::time::Instant::now() + END_LIMIT;
        while !self.store.open_turns(owner, None).await?.is_empty()
            && tokio::time::Instant::now() < until
        {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}
