//! Memories: kept and found, never ordered by worth.

pub(super) mod formers;
pub(super) mod lines;
mod read;
mod remember;
mod remove;
mod write;

use async_trait::async_trait;
use tidemark_application::ports::jobs::NewJob;
use tidemark_application::ports::memories::{
    ChangePosition, Forgetting, IndexDelta, IndexedMemory, MemoryFilter, MemoryRepository,
};
use tidemark_application::ports::sessions::{CreateError, Updated};
use tidemark_application::ports::store::{Created, Cursor, Idempotency, Page, StoreResult};
use tidemark_domain::ids::{ChangeId, MemoryId, MessageId, Owner, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::conflict::Touched;
use tidemark_domain::session::Message;

pub(super) use self::read::{any_known, by_ids, read_all, unexpired};
pub(super) use self::remember::{unsaid, waits};
pub(super) use self::remove::{bury_all, bury_pairs, expire, remove, withdraw};
pub(super) use self::write::{add, add_sources, teaching};
use super::{SqliteStore, changes, messages};

macro_rules! memory_columns {
    () => {
        "m.id, m.content, m.speaker, m.scope, m.kind, m.layer, m.state, m.importance, m.confidence, m.trust, m.pinned, m.fact_key, \
         m.session_id, m.valid_from, m.valid_to, m.superseded_by, m.ended_at, m.expires_at, m.created_at, m.access_count, m.last_access, m.version, \
         (SELECT json_group_array(json_array(hex(s.message_id), hex(s.session_id), s.seq) ORDER BY s.session_id, s.seq) \
             FROM memory_sources s WHERE s.tenant_id = m.tenant_id AND s.owner_id = m.owner_id AND s.memory_id = m.id) AS sources"
    };
}
pub(super) use memory_columns;

/// Every statement on memories.
#[cfg(test)]
pub(super) fn all_statements() -> Vec<&'static str> {
    [
        formers::STATEMENTS,
        lines::STATEMENTS,
        read::STATEMENTS,
        remember::STATEMENTS,
        remove::STATEMENTS,
        write::STATEMENTS,
    ]
    .concat()
}

#[async_trait]
impl MemoryRepository for SqliteStore {
    async fn remember(
        &self,
        owner: Owner,
        items: Vec<IndexedMemory>,
        jobs: Vec<NewJob>,
        change: ChangeId,
        idempotency: Option<Idempotency>,
        now: Timestamp,
    ) -> Result<Created<Vec<Memory>>, CreateError> {
        let given = remember::Given {
            items,
            jobs,
            change,
            now,
        };
        self.writer
            .write(move |c| Box::pin(remember::remember(c, owner, given, idempotency)))
            .await
    }

    async fn memories_by_key(&self, owner: Owner, touched: &Touched) -> StoreResult<Vec<Memory>> {
        lines::of(&self.readers, owner, touched, None).await
    }

    async fn memories(&self, owner: Owner, ids: &[MemoryId]) -> StoreResult<Vec<Memory>> {
        read::by_ids(&self.readers, owner, ids, None).await
    }

    async fn keys_in_use(&self, owner: Owner, limit: u32) -> StoreResult<Vec<String>> {
        read::keys_in_use(&self.readers, owner, limit).await
    }

    async fn list_memories(
        &self,
        owner: Owner,
        filter: &MemoryFilter,
        after: Option<Cursor>,
        limit: u32,
    ) -> StoreResult<Page<Memory>> {
        read::list(&self.readers, owner, filter, after, limit).await
    }

    async fn forget(&self, owner: Owner, what: Forgetting) -> StoreResult<Updated<u64>> {
        self.writer
            .write(move |c| Box::pin(remove::forget(c, owner, what)))
            .await
    }

    async fn memory_change(&self, owner: Owner) -> StoreResult<i64> {
        changes::newest(&self.readers, owner).await
    }

    async fn index_delta(
        &self,
        owner: Owner,
        after: ChangePosition,
        limit: u32,
        models: &[String],
    ) -> StoreResult<IndexDelta> {
        changes::delta(&self.readers, owner, after, limit, models).await
    }

    async fn buried(
        &self,
        owner: Owner,
        pairs: &[(MessageId, String)],
    ) -> StoreResult<Vec<(MessageId, String)>> {
        read::buried(&self.readers, owner, pairs).await
    }

    async fn preferences(
        &self,
        owner: Owner,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Memory>> {
        read::preferences(&self.readers, owner, now, limit).await
    }

    async fn memories_from(
        &self,
        owner: Owner,
        messages: &[MessageId],
    ) -> StoreResult<Vec<Memory>> {
        read::from_messages(&self.readers, owner, messages).await
    }

    async fn memories_by_identity(
        &self,
        owner: Owner,
        identities: &[String],
    ) -> StoreResult<Vec<(String, Memory)>> {
        read::by_identities(&self.readers, owner, identities, None).await
    }

    async fn unindexed(&self, owner: Owner, limit: u32) -> StoreResult<Vec<Message>> {
        messages::unindexed(&self.readers, owner, limit).await
    }
}
