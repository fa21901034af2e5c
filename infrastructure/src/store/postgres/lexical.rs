//! What memories are found by, and the port that covers memories as a whole.

use std::collections::HashMap;

use async_trait::async_trait;
use sqlx::PgConnection;
use tidemark_application::ports::memories::{
    Forgetting, IndexedMemory, LexicalRows, MemoryFilter, MemoryRepository,
};
use tidemark_application::ports::sessions::{CreateError, Updated};
use tidemark_application::ports::store::{Created, Cursor, Idempotency, Page, StoreResult};
use tidemark_domain::ids::{MemoryId, MessageId, Owner, Timestamp};
use tidemark_domain::memory::lexical::{CorpusStats, Posting, TermPostings};
use tidemark_domain::memory::{Layer, Memory, Scope};
use tidemark_domain::session::Message;
use uuid::Uuid;

use super::rows::{owned, owned_as};
use super::{PostgresStore, forget, memories, messages};

const INSERT: &str = "
INSERT INTO memory_terms (tenant_id, owner_id, term, memory_id, count)
SELECT $1, $2, n.term, n.memory_id, n.count FROM unnest($3::text[], $4::uuid[], $5::bigint[]) AS n (term, memory_id, count)";

const STATS: &str = "
SELECT count(*), coalesce(sum(m.term_count), 0)::bigint FROM memories m
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.state = 'current' AND (m.expires_at IS NULL OR m.expires_at > $3)
    AND (cardinality($4::text[]) = 0 OR m.scope = ANY($4))";

const POSTINGS: &str = "
SELECT t.term, array_agg(t.memory_id) AS memories, array_agg(t.count) AS counts, array_agg(m.term_count) AS lengths
FROM memory_terms t JOIN memories m ON m.tenant_id = t.tenant_id AND m.owner_id = t.owner_id AND m.id = t.memory_id
WHERE t.tenant_id = $1 AND t.owner_id = $2 AND m.state = 'current' AND (m.expires_at IS NULL OR m.expires_at > $3)
    AND (cardinality($4::text[]) = 0 OR m.scope = ANY($4)) AND t.term = ANY($5)
GROUP BY t.term";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, STATS, POSTINGS];

/// Adds memories to the index.
pub(super) async fn insert(
    tx: &mut PgConnection,
    owner: Owner,
    items: &[&IndexedMemory],
) -> Result<(), sqlx::Error> {
    let entries: Vec<(&str, Uuid, i64)> = items
        .iter()
        .flat_map(|item| {
            let terms = item.document.terms.iter();
            terms.map(|(term, count)| (term.as_str(), item.memory.id.0, i64::from(*count)))
        })
        .collect();
    if entries.is_empty() {
        return Ok(());
    }
    owned(INSERT, owner)
        .bind(entries.iter().map(|entry| entry.0).collect::<Vec<_>>())
        .bind(entries.iter().map(|entry| entry.1).collect::<Vec<_>>())
        .bind(entries.iter().map(|entry| entry.2).collect::<Vec<_>>())
        .execute(tx)
        .await?;
    Ok(())
}

async fn rows(
    tx: &mut PgConnection,
    owner: Owner,
    terms: &[String],
    scopes: &[&'static str],
    now: Timestamp,
) -> Result<LexicalRows, sqlx::Error> {
    let (documents, total_len): (i64, i64) = owned_as(STATS, owner)
        .bind(now)
        .bind(scopes)
        .fetch_one(&mut *tx)
        .await?;
    let found: Vec<TermRow> = owned_as(POSTINGS, owner)
        .bind(now)
        .bind(scopes)
        .bind(terms)
        .fetch_all(tx)
        .await?;
    let mut found: HashMap<String, Vec<Posting>> = found
        .into_iter()
        .map(|row| (row.term.clone(), row.postings()))
        .collect();
    Ok(LexicalRows {
        stats: CorpusStats {
            documents: documents as u64,
            total_len: total_len as u64,
        },
        postings: terms
            .iter()
            .filter_map(|term| {
                let (term, postings) = found.remove_entry(term)?;
                Some(TermPostings { term, postings })
            })
            .collect(),
    })
}

/// A term with three arrays of one length.
#[derive(sqlx::FromRow)]
struct TermRow {
    term: String,
    memories: Vec<Uuid>,
    counts: Vec<i64>,
    lengths: Vec<i64>,
}

impl TermRow {
    fn postings(self) -> Vec<Posting> {
        self.memories
            .into_iter()
            .zip(self.counts.into_iter().zip(self.lengths))
            .map(|(memory, (count, len))| Posting {
                memory: MemoryId(memory),
                count: count as u32,
                len: len as u32,
            })
            .collect()
    }
}

fn raw(ids: &[MemoryId]) -> Vec<Uuid> {
    ids.iter().map(|id| id.0).collect()
}

#[async_trait]
impl MemoryRepository for PostgresStore {
    async fn remember(
        &self,
        owner: Owner,
        items: Vec<IndexedMemory>,
        idempotency: Option<Idempotency>,
        now: Timestamp,
    ) -> Result<Created<Vec<Memory>>, CreateError> {
        self.database
            .write(
                owner.tenant,
                (items, idempotency),
                move |tx, (items, key)| {
                    Box::pin(memories::remember(tx, owner, items, key.as_ref(), now))
                },
            )
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

    async fn forget(&self, owner: Owner, what: Forgetting) -> StoreResult<Updated<u64>> {
        self.database
            .write(owner.tenant, what, move |tx, what| {
                Box::pin(async move { Ok(forget::forget(tx, owner, what).await?) })
            })
            .await
    }

    async fn lexical(
        &self,
        owner: Owner,
        terms: &[String],
        scopes: &[Scope],
        now: Timestamp,
    ) -> StoreResult<LexicalRows> {
        let scopes: Vec<&'static str> = scopes.iter().map(|scope| scope.as_str()).collect();
        self.database
            .read(
                owner.tenant,
                (terms.to_vec(), scopes),
                move |tx, (terms, scopes)| {
                    Box::pin(async move { Ok(rows(tx, owner, terms, scopes, now).await?) })
                },
            )
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
                Box::pin(async move {
                    let layers = [Layer::Semantic];
                    Ok(memories::by_identity(tx, owner, identities, &layers, None).await?)
                })
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
