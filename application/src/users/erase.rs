//! The end of all that is kept of a user.

use std::sync::Arc;
use std::time::Duration;

use tidemark_domain::ids::{Owner, TenantId, TurnId, UserName};

use crate::chat::service::Chat;
use crate::memory::recall::Recall;
use crate::ports::clock::Clock;
use crate::ports::events::EventLog;
use crate::ports::ids::Ids;
use crate::ports::store::{Store, StoreResult};
use crate::ports::users::{Erased, Receipt};

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
    /// Reaches the live logs that other processes have, for a process that has none itself.
    events: Option<Arc<dyn EventLog>>,
}

/// What was done.
#[derive(Debug)]
pub struct Erasure {
    /// What was removed from the store.
    pub receipt: Receipt,
    /// Nothing is left of the live logs in Redis and in this process either; other processes drop theirs as soon as they hear of it. Otherwise what
    /// could not be reached is tried again for as long as this process lives, and goes by
    /// itself when the time is over for which ended turns can be replayed.
    pub logs_are_gone: bool,
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
            events: None,
        }
    }

    /// Also from the live logs that other processes share.
    #[must_use]
    pub fn with_events(mut self, events: Arc<dyn EventLog>) -> Self {
        self.events = Some(events);
        self
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
    ) -> StoreResult<Option<Erasure>> {
        let removed = self.remove(tenant, user).await;
        gone();
        let Some((owner, erased)) = removed? else {
            return Ok(None);
        };
        let logs_are_gone = self.forget_held(owner, &erased.turns).await;
        self.store.overwrite_erased().await?;
        Ok(Some(Erasure {
            receipt: erased.receipt,
            logs_are_gone,
        }))
    }

    async fn remove(
        &self,
        tenant: TenantId,
        user: &UserName,
    ) -> StoreResult<Option<(Owner, Erased)>> {
        let Some(known) = self.store.find_user(tenant, user).await? else {
            return Ok(None);
        };
        let owner = known.owner;
        match &self.held {
            Some(held) => {
                held.chat.end_turns(owner, None).await?;
            }
            None => self.end_turns(owner).await?,
        }
        let now = self.clock.now();
        let erased = self.store.erase(owner, self.ids.uuid(), now).await?;
        Ok(erased.map(|erased| (owner, erased)))
    }

    /// Drops what is held beside the store. False if Redis could not be reached.
    async fn forget_held(&self, owner: Owner, turns: &[TurnId]) -> bool {
        let mut logs_are_gone = true;
        if let Some(held) = &self.held {
            held.recall.forget_owner(owner);
            logs_are_gone = held.chat.forget_turns(turns).await;
        }
        if let Some(events) = &self.events {
            logs_are_gone = events.forget(turns).await;
        }
        if !logs_are_gone {
            tracing::warn!(
                "what an erased user's turns have told could not be removed from Redis yet"
            );
        }
        logs_are_gone
    }

    /// Cancels turns that other processes run, and waits a while for their ends. A runner that does not hear of it finds its turn gone.
    async fn end_turns(&self, owner: Owner) -> StoreResult<()> {
        for turn in self.store.open_turns(owner, None).await? {
            let now = self.clock.now();
            self.store.request_cancel(owner, turn, now).await?;
            if let Some(events) = &self.events {
                events.hint(turn).await;
            }
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
