//! The vectors of memories, kept for each model.

use async_trait::async_trait;
use sqlx::SqliteConnection;
use tidemark_application::ports::embeddings::{
    EmbeddingProgress, EmbeddingRepository, VectorCommit,
};
use tidemark_application::ports::jobs::{ClaimedJob, JobWriteError, NewJob};
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{Owner, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::embedding::Embedding;
use uuid::Uuid;

use super::changes::Change;
use super::errors::store_error;
use super::memories::memory_columns;
use super::rows::{self, Row, micros, owned};
use super::statements::statements;
use super::{SqliteStore, jobs};

/// The models whose vectors are to go once the model of parameter `$kept` has embedded everything.
macro_rules! earlier_models {
    ($kept:literal) => {
        concat!(
            "SELECT earlier.model FROM embedding_models earlier WHERE earlier.adoption < (SELECT k.adoption FROM embedding_models k WHERE k.model = ",
            $kept,
            ")"
        )
    };
}

statements! {
    DIMENSION = "SELECT dimension FROM embedding_models WHERE model = ?1";
    ADOPT = "INSERT INTO embedding_models AS m (model, dimension, first_seen, adoption) \
             VALUES (?1, ?2, ?3, 1 + (SELECT coalesce(max(adoption), 0) FROM embedding_models)) \
             ON CONFLICT (model) DO UPDATE SET adoption = excluded.adoption \
             WHERE m.dimension = excluded.dimension AND m.adoption < excluded.adoption - 1";
    OWNERS = concat!("SELECT o.tenant_id, o.owner_id FROM owners o WHERE (o.tenant_id, o.owner_id) > (?2, ?3) AND ( \
             EXISTS (SELECT 1 FROM memories m WHERE m.tenant_id = o.tenant_id AND m.owner_id = o.owner_id \
                 AND m.change > coalesce((SELECT k.change FROM embedding_marks k \
                     WHERE k.tenant_id = o.tenant_id AND k.owner_id = o.owner_id AND k.model = ?1), 0) \
                 AND NOT EXISTS ( \
                 SELECT 1 FROM memory_vectors v WHERE v.tenant_id = m.tenant_id AND v.owner_id = m.owner_id \
                     AND v.memory_id = m.id AND v.model = ?1)) \
             OR EXISTS (SELECT 1 FROM memory_vectors v WHERE v.tenant_id = o.tenant_id AND v.owner_id = o.owner_id \
                 AND v.model IN (", earlier_models!("?1"), "))) \
             AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.tenant_id = o.tenant_id AND j.owner_id = o.owner_id AND j.kind = 'embed') \
             ORDER BY o.tenant_id, o.owner_id LIMIT ?4");
    UNEMBEDDED = concat!("SELECT ", memory_columns!(), " FROM memories m WHERE m.tenant_id = ?1 AND m.owner_id = ?2 \
             AND m.change > coalesce((SELECT k.change FROM embedding_marks k WHERE k.tenant_id = ?1 AND k.owner_id = ?2 AND k.model = ?3), 0) \
             AND NOT EXISTS ( \
             SELECT 1 FROM memory_vectors v WHERE v.tenant_id = ?1 AND v.owner_id = ?2 AND v.memory_id = m.id AND v.model = ?3) \
             ORDER BY m.change DESC, m.id DESC LIMIT ?4");
    PROGRESS = "SELECT count(v.memory_id) AS done, count(*) AS total FROM memories m LEFT JOIN memory_vectors v \
             ON v.tenant_id = m.tenant_id AND v.owner_id = m.owner_id AND v.memory_id = m.id AND v.model = ?3 \
             WHERE m.tenant_id = ?1 AND m.owner_id = ?2";
    /// From each name to the next one, however many memories each has.
    SPEAKERS = "WITH RECURSIVE named (speaker) AS ( \
                SELECT min(speaker) FROM memories INDEXED BY memories_by_speaker WHERE tenant_id = ?1 AND owner_id = ?2 AND speaker > '' \
                UNION ALL \
                SELECT (SELECT min(m.speaker) FROM memories m INDEXED BY memories_by_speaker \
                    WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.speaker > named.speaker) FROM named WHERE named.speaker IS NOT NULL) \
                SELECT speaker FROM named WHERE speaker IS NOT NULL ORDER BY speaker";
    STORE = "INSERT INTO memory_vectors (tenant_id, owner_id, memory_id, model, change, vec) \
             SELECT ?1, ?2, m.id, ?5, ?6, ?7 FROM memories m \
             WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id = ?3 AND m.version = ?4 \
             ON CONFLICT (tenant_id, owner_id, memory_id, model) DO UPDATE SET change = excluded.change, vec = excluded.vec";
    MARK = "INSERT INTO embedding_marks (tenant_id, owner_id, model, change) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (tenant_id, owner_id, model) DO UPDATE SET change = excluded.change";
    UNMARK_EARLIER = concat!("DELETE FROM embedding_marks WHERE tenant_id = ?1 AND owner_id = ?2 AND model IN (", earlier_models!("?3"), ")");
    DROP_EARLIER = concat!("DELETE FROM memory_vectors WHERE rowid IN ( \
             SELECT v.rowid FROM memory_vectors v WHERE v.tenant_id = ?1 AND v.owner_id = ?2 \
                 AND v.model IN (", earlier_models!("?3"), ") LIMIT ?4)");
}

/// What may walk through all that an owner has, in the background: to find who has something to embed, to tell how far it is, to know the names
/// that are not embedded, and to drop what an earlier model left.
#[cfg(test)]
pub(super) const WALKS: [&str; 3] = [OWNERS, PROGRESS, DROP_EARLIER];

async fn known_dimension(
    connection: &mut SqliteConnection,
    model: &str,
) -> StoreResult<Option<usize>> {
    sqlx::query(DIMENSION)
        .bind(model)
        .fetch_optional(connection)
        .await
        .map_err(store_error)?
        .map(|row| Row::of("embedding_models", &row).number("dimension"))
        .transpose()
}

async fn adopt(
    connection: &mut SqliteConnection,
    model: String,
    dimension: usize,
    now: Timestamp,
) -> StoreResult<usize> {
    sqlx::query(ADOPT)
        .bind(&model)
        .bind(dimension as i64)
        .bind(micros(now))
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    let known = known_dimension(connection, &model).await?;
    Ok(known.unwrap_or(dimension))
}

async fn store(
    connection: &mut SqliteConnection,
    claim: ClaimedJob,
    commit: VectorCommit,
) -> Result<u64, JobWriteError> {
    jobs::hold(connection, &claim).await?;
    let owner = claim.job.owner;
    let change = Change::begin(connection, owner).await?;
    let mut stored = 0;
    for vector in commit.vectors {
        let bytes = vector.vector.as_ref().map(Embedding::to_bytes);
        let done = owned(STORE, owner)
            .bind(vector.memory.0)
            .bind(vector.version)
            .bind(&commit.model)
            .bind(change.number())
            .bind(bytes.unwrap_or_default())
            .execute(&mut *connection)
            .await
            .map_err(store_error)?;
        stored += done.rows_affected();
    }
    Ok(stored)
}

async fn drop_earlier(
    connection: &mut SqliteConnection,
    claim: ClaimedJob,
    model: String,
    limit: u32,
) -> Result<u64, JobWriteError> {
    jobs::hold(connection, &claim).await?;
    owned(UNMARK_EARLIER, claim.job.owner)
        .bind(&model)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    let dropped = owned(DROP_EARLIER, claim.job.owner)
        .bind(model)
        .bind(i64::from(limit))
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(dropped.rows_affected())
}

async fn finish(
    connection: &mut SqliteConnection,
    claim: ClaimedJob,
    model: String,
    change: i64,
) -> Result<(), JobWriteError> {
    jobs::finish(connection, &claim).await?;
    owned(MARK, claim.job.owner)
        .bind(model)
        .bind(change)
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

#[async_trait]
impl EmbeddingRepository for SqliteStore {
    async fn embedding_dimension(&self, model: &str) -> StoreResult<Option<usize>> {
        let mut reader = self.readers.acquire().await.map_err(store_error)?;
        known_dimension(&mut reader, model).await
    }

    async fn adopt_embedding_model(
        &self,
        model: &str,
        dimension: usize,
        now: Timestamp,
    ) -> StoreResult<usize> {
        let model = model.to_owned();
        self.writer
            .write(move |c| Box::pin(adopt(c, model, dimension, now)))
            .await
    }

    async fn owners_to_embed(
        &self,
        model: &str,
        after: Option<Owner>,
        limit: u32,
    ) -> StoreResult<Vec<Owner>> {
        let (tenant, id) = after.map_or((Uuid::nil(), i64::MIN), |owner| {
            (owner.tenant.0, owner.id.0)
        });
        let found = sqlx::query(OWNERS)
            .bind(model)
            .bind(tenant)
            .bind(id)
            .bind(i64::from(limit))
            .fetch_all(&self.readers)
            .await
            .map_err(store_error)?;
        found.iter().map(rows::owner).collect()
    }

    async fn enqueue_embedding(
        &self,
        owner: Owner,
        job: NewJob,
        now: Timestamp,
    ) -> StoreResult<()> {
        self.writer
            .write(move |c| {
                Box::pin(async move { jobs::enqueue_for_owner(c, owner, &[job], now).await })
            })
            .await
    }

    async fn unembedded(&self, owner: Owner, model: &str, limit: u32) -> StoreResult<Vec<Memory>> {
        let found = owned(UNEMBEDDED, owner)
            .bind(model)
            .bind(i64::from(limit))
            .fetch_all(&self.readers)
            .await
            .map_err(store_error)?;
        found.iter().map(rows::memory).collect()
    }

    async fn speakers(&self, owner: Owner) -> StoreResult<Vec<String>> {
        let found = owned(SPEAKERS, owner)
            .fetch_all(&self.readers)
            .await
            .map_err(store_error)?;
        found
            .iter()
            .map(|row| Row::of("memories", row).get("speaker"))
            .collect()
    }

    async fn embedding_progress(
        &self,
        owner: Owner,
        model: &str,
    ) -> StoreResult<EmbeddingProgress> {
        let row = owned(PROGRESS, owner)
            .bind(model)
            .fetch_one(&self.readers)
            .await
            .map_err(store_error)?;
        let row = Row::of("memory_vectors", &row);
        Ok(EmbeddingProgress {
            done: row.number("done")?,
            total: row.number("total")?,
        })
    }

    async fn commit_vectors(
        &self,
        claim: &ClaimedJob,
        commit: VectorCommit,
    ) -> Result<u64, JobWriteError> {
        let claim = claim.clone();
        self.writer
            .write(move |c| Box::pin(store(c, claim, commit)))
            .await
    }

    async fn finish_embedding(
        &self,
        claim: &ClaimedJob,
        model: &str,
        change: i64,
    ) -> Result<(), JobWriteError> {
        let (claim, model) = (claim.clone(), model.to_owned());
        self.writer
            .write(move |c| Box::pin(finish(c, claim, model, change)))
            .await
    }

    async fn drop_earlier_vectors(
        &self,
        claim: &ClaimedJob,
        model: &str,
        limit: u32,
    ) -> Result<u64, JobWriteError> {
        let (claim, model) = (claim.clone(), model.to_owned());
        self.writer
            .write(move |c| Box::pin(drop_earlier(c, claim, model, limit)))
            .await
    }
}
