//! The vectors of memories, kept for each model.

use async_trait::async_trait;
use sqlx::PgConnection;
use tidemark_application::ports::embeddings::{
    EmbeddingProgress, EmbeddingRepository, VectorCommit,
};
use tidemark_application::ports::jobs::{ClaimedJob, JobWriteError, NewJob};
use tidemark_application::ports::store::{StoreError, StoreResult};
use tidemark_domain::ids::{Owner, OwnerId, TenantId, Timestamp};
use tidemark_domain::memory::Memory;
use uuid::Uuid;

use super::changes::Change;
use super::rows::{MemoryRow, all, memory_columns, owned, owned_as, unexpected};
use super::transaction::Abort;
use super::{PostgresStore, claims, jobs, owners};

const DIMENSION: &str = "SELECT tidemark_embedding_dimension($1)";

const ADOPT: &str = "SELECT tidemark_adopt_embedding_model($1, $2, $3)";

const OWNERS: &str = "SELECT tenant_id, owner_id FROM tidemark_owners_to_embed($1, $2, $3, $4)";

const UNEMBEDDED: &str = concat!(
    "SELECT ",
    memory_columns!(),
    " FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2
      AND m.change > coalesce((
        SELECT k.change FROM embedding_marks k WHERE k.tenant_id = $1 AND k.owner_id = $2 AND k.model = $3
      ), 0)
      AND NOT EXISTS (
        SELECT FROM memory_vectors v
        WHERE v.tenant_id = $1 AND v.owner_id = $2 AND v.memory_id = m.id AND v.model = $3
      )
      ORDER BY m.change DESC, m.id DESC LIMIT $4"
);

const PROGRESS: &str = "
SELECT count(v.memory_id), count(*)
FROM memories m LEFT JOIN memory_vectors v
    ON v.tenant_id = m.tenant_id AND v.owner_id = m.owner_id AND v.memory_id = m.id AND v.model = $3
WHERE m.tenant_id = $1 AND m.owner_id = $2";

/// From each name to the next one, however many memories each has.
const SPEAKERS: &str = "
WITH RECURSIVE named AS (
    (SELECT m.speaker COLLATE \"C\" AS speaker FROM memories m
     WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.speaker IS NOT NULL ORDER BY 1 LIMIT 1)
    UNION ALL
    SELECT (SELECT m.speaker COLLATE \"C\" FROM memories m
        WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.speaker COLLATE \"C\" > n.speaker ORDER BY 1 LIMIT 1)
    FROM named n WHERE n.speaker IS NOT NULL
)
SELECT n.speaker FROM named n WHERE n.speaker IS NOT NULL ORDER BY 1";

const STORE: &str = "
INSERT INTO memory_vectors (tenant_id, owner_id, memory_id, model, change, vec)
SELECT $1, $2, m.id, $6, $7, n.vec
FROM unnest($3::uuid[], $4::bigint[], $5::bytea[]) AS n (id, version, vec)
JOIN memories m ON m.tenant_id = $1 AND m.owner_id = $2 AND m.id = n.id AND m.version = n.version
ON CONFLICT (tenant_id, owner_id, memory_id, model) DO UPDATE SET change = excluded.change, vec = excluded.vec";

const MARK: &str = "
INSERT INTO embedding_marks (tenant_id, owner_id, model, change) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant_id, owner_id, model) DO UPDATE SET change = excluded.change";

const UNMARK_EARLIER: &str = "
DELETE FROM embedding_marks
WHERE tenant_id = $1 AND owner_id = $2 AND model IN (SELECT tidemark_earlier_embedding_models($3))";

const DROP_EARLIER: &str = "
DELETE FROM memory_vectors v
WHERE v.tenant_id = $1 AND v.owner_id = $2 AND (v.memory_id, v.model) IN (
    SELECT e.memory_id, e.model FROM memory_vectors e
    WHERE e.tenant_id = $1 AND e.owner_id = $2 AND e.model IN (SELECT tidemark_earlier_embedding_models($3))
    LIMIT $4
)";

/// What is done once for each batch, model or start, through all that an owner has.
#[cfg(test)]
pub(super) const WALKS: &[&str] = &[UNEMBEDDED, PROGRESS, UNMARK_EARLIER, DROP_EARLIER];

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    DIMENSION,
    ADOPT,
    OWNERS,
    UNEMBEDDED,
    PROGRESS,
    SPEAKERS,
    STORE,
    MARK,
    UNMARK_EARLIER,
    DROP_EARLIER,
];

async fn dimension(tx: &mut PgConnection, model: &str) -> Result<Option<usize>, sqlx::Error> {
    let known: Option<i32> = sqlx::query_scalar(DIMENSION)
        .bind(model)
        .fetch_one(tx)
        .await?;
    known
        .map(|d| usize::try_from(d).map_err(|_| unexpected("embedding_models.dimension")))
        .transpose()
}

async fn owners_to_embed(
    tx: &mut PgConnection,
    model: &str,
    after: Option<Owner>,
    limit: u32,
) -> Result<Vec<Owner>, sqlx::Error> {
    let (tenant, id) = after.map_or((Uuid::nil(), i64::MIN), |owner| {
        (owner.tenant.0, owner.id.0)
    });
    let rows: Vec<(Uuid, i64)> = sqlx::query_as(OWNERS)
        .bind(model)
        .bind(tenant)
        .bind(id)
        .bind(i32::try_from(limit).unwrap_or(i32::MAX))
        .fetch_all(tx)
        .await?;
    Ok(rows
        .into_iter()
        .map(|(tenant, id)| Owner {
            tenant: TenantId(tenant),
            id: OwnerId(id),
        })
        .collect())
}

async fn unembedded(
    tx: &mut PgConnection,
    owner: Owner,
    model: &str,
    limit: u32,
) -> Result<Vec<Memory>, sqlx::Error> {
    let rows: Vec<MemoryRow> = owned_as(UNEMBEDDED, owner)
        .bind(model)
        .bind(i64::from(limit))
        .fetch_all(tx)
        .await?;
    all(rows)
}

async fn store(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
    commit: &VectorCommit,
) -> Result<u64, Abort<JobWriteError>> {
    let owner = claim.job.owner;
    let change = Change::begin(tx, owner).await?;
    claims::hold(tx, claim).await?;
    let vectors = &commit.vectors;
    let bytes = |vector: &Option<_>| {
        vector.as_ref().map_or_else(
            Vec::new,
            tidemark_domain::memory::embedding::Embedding::to_bytes,
        )
    };
    let stored = owned(STORE, owner)
        .bind(vectors.iter().map(|v| v.memory.0).collect::<Vec<_>>())
        .bind(vectors.iter().map(|v| v.version).collect::<Vec<_>>())
        .bind(vectors.iter().map(|v| bytes(&v.vector)).collect::<Vec<_>>())
        .bind(&commit.model)
        .bind(change.number())
        .execute(tx)
        .await?;
    Ok(stored.rows_affected())
}

async fn drop_earlier(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
    model: &str,
    limit: u32,
) -> Result<u64, Abort<JobWriteError>> {
    claims::hold(tx, claim).await?;
    owned(UNMARK_EARLIER, claim.job.owner)
        .bind(model)
        .execute(&mut *tx)
        .await?;
    let dropped = owned(DROP_EARLIER, claim.job.owner)
        .bind(model)
        .bind(i64::from(limit))
        .execute(tx)
        .await?;
    Ok(dropped.rows_affected())
}

async fn finish(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
    model: &str,
    change: i64,
) -> Result<(), Abort<JobWriteError>> {
    claims::remove(tx, claim).await?;
    owned(MARK, claim.job.owner)
        .bind(model)
        .bind(change)
        .execute(tx)
        .await?;
    Ok(())
}

#[async_trait]
impl EmbeddingRepository for PostgresStore {
    async fn embedding_dimension(&self, model: &str) -> StoreResult<Option<usize>> {
        self.database
            .before_tenant(model.to_owned(), |tx, model| {
                Box::pin(async move { Ok(dimension(tx, model).await?) })
            })
            .await
    }

    async fn adopt_embedding_model(
        &self,
        model: &str,
        dimension: usize,
        now: Timestamp,
    ) -> StoreResult<usize> {
        let known: i32 = self
            .database
            .before_tenant(model.to_owned(), move |tx, model| {
                Box::pin(async move {
                    Ok(sqlx::query_scalar(ADOPT)
                        .bind(model)
                        .bind(dimension as i32)
                        .bind(now)
                        .fetch_one(tx)
                        .await?)
                })
            })
            .await?;
        usize::try_from(known).map_err(|error| StoreError::Corrupt {
            what: "embedding_models.dimension".to_owned(),
            source: Some(Box::new(error)),
        })
    }

    async fn owners_to_embed(
        &self,
        model: &str,
        after: Option<Owner>,
        limit: u32,
    ) -> StoreResult<Vec<Owner>> {
        self.database
            .before_tenant(model.to_owned(), move |tx, model| {
                Box::pin(async move { Ok(owners_to_embed(tx, model, after, limit).await?) })
            })
            .await
    }

    async fn enqueue_embedding(
        &self,
        owner: Owner,
        job: NewJob,
        now: Timestamp,
    ) -> StoreResult<()> {
        self.database
            .write(owner.tenant, job, move |tx, job| {
                Box::pin(async move {
                    owners::lock(tx, owner).await?;
                    Ok(jobs::enqueue_for_owner(tx, owner, &[*job], now).await?)
                })
            })
            .await
    }

    async fn unembedded(&self, owner: Owner, model: &str, limit: u32) -> StoreResult<Vec<Memory>> {
        self.database
            .read(owner.tenant, model.to_owned(), move |tx, model| {
                Box::pin(async move { Ok(unembedded(tx, owner, model, limit).await?) })
            })
            .await
    }

    async fn speakers(&self, owner: Owner) -> StoreResult<Vec<String>> {
        let rows: Vec<(String,)> = self
            .database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(async move { Ok(owned_as(SPEAKERS, owner).fetch_all(tx).await?) })
            })
            .await?;
        Ok(rows.into_iter().map(|(speaker,)| speaker).collect())
    }

    async fn embedding_progress(
        &self,
        owner: Owner,
        model: &str,
    ) -> StoreResult<EmbeddingProgress> {
        let (done, total): (i64, i64) = self
            .database
            .read(owner.tenant, model.to_owned(), move |tx, model| {
                Box::pin(
                    async move { Ok(owned_as(PROGRESS, owner).bind(model).fetch_one(tx).await?) },
                )
            })
            .await?;
        Ok(EmbeddingProgress {
            done: done.unsigned_abs(),
            total: total.unsigned_abs(),
        })
    }

    async fn commit_vectors(
        &self,
        claim: &ClaimedJob,
        commit: VectorCommit,
    ) -> Result<u64, JobWriteError> {
        let input = (claim.clone(), commit);
        self.database
            .write(claim.job.owner.tenant, input, |tx, (claim, commit)| {
                Box::pin(store(tx, claim, commit))
            })
            .await
    }

    async fn finish_embedding(
        &self,
        claim: &ClaimedJob,
        model: &str,
        change: i64,
    ) -> Result<(), JobWriteError> {
        let input = (claim.clone(), model.to_owned());
        self.database
            .write(claim.job.owner.tenant, input, move |tx, (claim, model)| {
                Box::pin(finish(tx, claim, model, change))
            })
            .await
    }

    async fn drop_earlier_vectors(
        &self,
        claim: &ClaimedJob,
        model: &str,
        limit: u32,
    ) -> Result<u64, JobWriteError> {
        let input = (claim.clone(), model.to_owned());
        self.database
            .write(claim.job.owner.tenant, input, move |tx, (claim, model)| {
                Box::pin(drop_earlier(tx, claim, model, limit))
            })
            .await
    }
}
