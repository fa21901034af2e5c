//! The port that covers memories.

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
use uuid::Uuid;

use super::{PostgresStore, changes, forget, lines, memories, messages};

fn raw(ids: &[MemoryId]) -> Vec<Uuid> {
    ids.iter().map(|id| id.0).collect()
}

#[async_trait]
impl MemoryRepository for PostgresStore {
    async fn remember(
        &self,
        owner: Owner,
        items: Vec<IndexedMemory>,
        jobs: Vec<NewJob>,
        change: ChangeId,
        idempotency: Option<Idempotency>,
        now: Timestamp,
    ) -> Result<Created<Vec<Memory>>, CreateError> {
        let given = memories::Given {
            items,
            jobs,
            change,
            idempotency,
            now,
        };
        self.database
            .write(owner.tenant, given, move |tx, given| {
                Box::pin(memories::remember(tx, owner, given))
            })
            .await
    }

    async fn memories_by_key(&self, owner: Owner, touched: &Touched) -> StoreResult<Vec<Memory>> {
        self.database
            .read(owner.tenant, touched.clone(), move |tx, touched| {
                Box::pin(async move { Ok(lines::of(tx, owner, touched, None).await?) })
            })
            .await
    }

    async fn memories(&self, owner: Owner, ids: &[MemoryId]) -> StoreResult<Vec<Memory>> {
        self.database
            .read(owner.tenant, raw(ids), move |tx, ids| {
                Box::pin(async move { Ok(memories::by_id(tx, owner, ids, None).await?) })
            })
            .await
    }

    async fn list_memories(
        &self,
        owner: Owner,
        filter: &MemoryFilter,
        after: Option<Cursor>,
        limit: u32,
    ) -> StoreResult<Page<Memory>> {
        self.database
            .read(owner.tenant, filter.clone(), move |tx, filter| {
                Box::pin(async move { Ok(memories::list(tx, owner, filter, after, limit).await?) })
            })
            .await
    }

    async fn keys_in_use(&self, owner: Owner, limit: u32) -> StoreResult<Vec<String>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(memories::keys_in_use(tx, owner, limit).await?) })
            })
            .await
    }

    async fn forget(&self, owner: Owner, what: Forgetting) -> StoreResult<Updated<u64>> {
        self.database
            .write(owner.tenant, what, move |tx, what| {
                Box::pin(async move { Ok(forget::forget(tx, owner, what).await?) })
            })
            .await
    }

    async fn memory_change(&self, owner: Owner) -> StoreResult<i64> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(changes::newest(tx, owner).await?) })
            })
            .await
    }

    async fn index_delta(
        &self,
        owner: Owner,
        after: ChangePosition,
        limit: u32,
        models: &[String],
    ) -> StoreResult<IndexDelta> {
        self.database
            .read(owner.tenant, models.to_vec(), move |tx, models| {
                Box::pin(changes::delta(tx, owner, after, limit, models))
            })
            .await
    }

    async fn buried(
        &self,
        owner: Owner,
        pairs: &[(MessageId, String)],
    ) -> StoreResult<Vec<(MessageId, String)>> {
        self.database
            .read(owner.tenant, pairs.to_vec(), move |tx, pairs| {
                Box::pin(async move {
                    let pairs: Vec<_> = pairs.iter().map(|(m, i)| (*m, i.as_str())).collect();
                    let found = forget::forgotten(tx, owner, &pairs).await?;
                    Ok(found.into_iter().collect())
                })
            })
            .await
    }

    async fn preferences(
        &self,
        owner: Owner,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Memory>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(memories::preferences(tx, owner, now, limit).await?) })
            })
            .await
    }

    async fn memories_from(
        &self,
        owner: Owner,
        messages: &[MessageId],
    ) -> StoreResult<Vec<Memory>> {
        let messages: Vec<Uuid> = messages.iter().map(|id| id.0).collect();
        self.database
            .read(owner.tenant, messages, move |tx, messages| {
                Box::pin(async move { Ok(memories::from_messages(tx, owner, messages).await?) })
            })
            .await
    }

    async fn memories_by_identity(
        &self,
        owner: Owner,
        identities: &[String],
    ) -> StoreResult<Vec<(String, Memory)>> {
        self.database
            .read(owner.tenant, identities.to_vec(), move |tx, identities| {
                Box::pin(async move { Ok(memories::known(tx, owner, identities, None).await?) })
            })
            .await
    }

    async fn unindexed(&self, owner: Owner, limit: u32) -> StoreResult<Vec<Message>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(messages::unindexed(tx, owner, limit).await?) })
            })
            .await
    }
}
