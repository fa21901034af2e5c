//! Following the changes of an owner's memories.

use tidemark_application::ports::memories::ChangePosition;
use tidemark_domain::ids::{MemoryId, Owner, Timestamp};
use tidemark_domain::memory::index::search::{Filter, Query, Search, search};
use tidemark_domain::memory::index::{OwnerIndex, View};
use tidemark_domain::memory::recall::Moment;
use tidemark_domain::memory::scoring::Profile;

use super::{ALL, World};

/// An index that is kept by deltas.
pub(in crate::store::conformance) struct Follower {
    pub(in crate::store::conformance) owner: Owner,
    pub(in crate::store::conformance) index: OwnerIndex,
    pub(in crate::store::conformance) change: i64,
    /// The models whose vectors it follows.
    pub(in crate::store::conformance) models: Vec<String>,
    /// How much it reads at a time.
    pub(in crate::store::conformance) page: u32,
}

impl Follower {
    pub(in crate::store::conformance) fn of(owner: Owner) -> Self {
        Self {
            owner,
            index: OwnerIndex::default(),
            change: 0,
            models: Vec::new(),
            page: ALL,
        }
    }

    /// Reads what has changed, and tells in how many parts it came.
    pub(in crate::store::conformance) async fn catch_up(&mut self, w: &World) -> usize {
        let mut after = ChangePosition::behind(self.change);
        let mut parts = 0;
        loop {
            let part = w
                .store
                .index_delta(self.owner, after, self.page, &self.models)
                .await;
            let part = part.unwrap();
            parts += 1;
            if part.reset {
                self.index = OwnerIndex::default();
            }
            self.index.apply(part.delta);
            let Some(next) = part.next else {
                self.change = part.change;
                return parts;
            };
            after = next;
        }
    }
}

pub(in crate::store::conformance) fn asked(text: &str, now: Timestamp) -> Query {
    Query {
        text: text.to_owned(),
        vectors: Vec::new(),
        filter: Filter::default(),
        moment: Moment::at(now),
        profile: Profile::Hybrid,
        top_k: ALL as usize,
        limit: ALL as usize,
        why_not: Vec::new(),
    }
}

pub(in crate::store::conformance) fn found(search: &Search) -> Vec<MemoryId> {
    search.found.iter().map(|scored| scored.id).collect()
}

impl World {
    /// What an owner's memories answer to a question at a time, best first.
    pub(in crate::store::conformance) async fn finds(
        &self,
        owner: Owner,
        text: &str,
        now: Timestamp,
    ) -> Vec<MemoryId> {
        let mut follower = Follower::of(owner);
        follower.catch_up(self).await;
        found(&search(&View::of(&follower.index), &asked(text, now)))
    }
}
