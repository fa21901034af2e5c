//! Memories that have not been used for long.

use async_trait::async_trait;
use tidemark_domain::ids::{ChangeId, MemoryId, Owner, Timestamp};

use super::store::StoreResult;

/// A memory that may have faded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fading {
    /// Whose it is.
    pub owner: Owner,
    /// The memory.
    pub memory: MemoryId,
    /// When it fades, as far as that is noted: it may be later, since neither use nor repetition need change it.
    pub at: Timestamp,
}

/// Forgetting over time (B12).
#[async_trait]
pub trait FadingRepository: Send + Sync + 'static {
    /// Memories of any owner that are current, have not expired, and may have faded by `now`: those behind `after`, by time and id, at most `limit`.
    /// None is left out that has faded ([`fates`](tidemark_domain::memory::forgetting::fate) are of the domain).
    async fn fading(
        &self,
        now: Timestamp,
        after: Option<Fading>,
        limit: u32,
    ) -> StoreResult<Vec<Fading>>;

    /// Archives those of an owner's memories that have faded by `now`, as one change, which is kept if there are any. Of the others it is noted when
    /// they fade. What each comes to is decided on what it is within the transaction. How many were archived.
    async fn fade(
        &self,
        owner: Owner,
        memories: Vec<MemoryId>,
        change: ChangeId,
        now: Timestamp,
    ) -> StoreResult<u64>;
}
