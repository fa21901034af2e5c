//! The changes of an owner's memories, numbered: the key to every write of them, and how an index follows them.

use sqlx::sqlite::SqliteRow;
use sqlx::{SqliteConnection, SqlitePool};
use tidemark_application::ports::memories::{ChangePosition, IndexDelta};
use tidemark_application::ports::store::{StoreError, StoreResult};
use tidemark_domain::ids::{MemoryId, Owner, SessionId};
use tidemark_domain::memory::embedding::Embedding;
use tidemark_domain::memory::index::{Document, Embedded, Entry, Upsert};
use tidemark_domain::memory::{Kind, Layer, Scope, State, Trust};
use uuid::Uuid;

use super::errors::{corrupt, no_owner, store_error};
use super::rows::{Row, hex_list, json, owned};
use super::statements::statements;
use crate::store::changes::{self, ReadChanges};

statements! {
    BEGIN = "UPDATE owners SET memory_change = memory_change + 1 WHERE tenant_id = ?1 AND owner_id = ?2 RETURNING memory_change";
    STATE = "SELECT memory_change, memory_floor FROM owners WHERE tenant_id = ?1 AND owner_id = ?2";
    UPSERTS = "SELECT m.change, m.id, m.scope, m.kind, m.layer, m.state, m.trust, m.importance, m.pinned, m.confidence, m.access_count, \
                   m.last_access, m.created_at, m.valid_from, m.valid_to, m.expires_at, m.session_id, m.speaker, m.terms, \
                   (SELECT json_group_array(json_array(hex(s.message_id), hex(s.session_id), s.seq) ORDER BY s.session_id, s.seq) \
                    FROM memory_sources s \
                    WHERE s.tenant_id = m.tenant_id AND s.owner_id = m.owner_id AND s.memory_id = m.id) AS sources \
               FROM memories m INDEXED BY memories_by_change \
               WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND (m.change, m.id) > (?3, ?4) ORDER BY m.change, m.id LIMIT ?5";
    REMOVED = "SELECT change, memory_id FROM memory_removals \
               WHERE tenant_id = ?1 AND owner_id = ?2 AND (change, memory_id) > (?3, ?4) ORDER BY change, memory_id LIMIT ?5";
    /// Of memories that are known at the position: those of the others come with them.
    VECTORS = "SELECT v.change, v.memory_id, v.model, v.vec FROM memory_vectors v INDEXED BY memory_vectors_by_change \
               CROSS JOIN memories m ON m.tenant_id = v.tenant_id AND m.owner_id = v.owner_id AND m.id = v.memory_id \
               WHERE v.tenant_id = ?1 AND v.owner_id = ?2 AND (v.change, v.memory_id) > (?3, ?4) AND (m.change, m.id) <= (?3, ?4) \
               AND v.model IN (SELECT value FROM json_each(?6)) AND length(v.vec) > 0 ORDER BY v.change, v.memory_id LIMIT ?5";
    VECTORS_OF = "SELECT v.memory_id, v.model, v.vec FROM json_each(?3) asked CROSS JOIN memory_vectors v \
                  ON v.tenant_id = ?1 AND v.owner_id = ?2 AND v.memory_id = unhex(asked.value) \
                  WHERE v.model IN (SELECT value FROM json_each(?4)) AND length(v.vec) > 0";
}

/// The right to change an owner's memories. Every statement that writes memories wants its number.
#[derive(Debug)]
pub(super) struct Change(i64);

impl Change {
    /// Raises the number of the owner's changes.
    pub(super) async fn begin(
        connection: &mut SqliteConnection,
        owner: Owner,
    ) -> StoreResult<Self> {
        let row = owned(BEGIN, owner)
            .fetch_optional(connection)
            .await
            .map_err(store_error)?
            .ok_or_else(no_owner)?;
        Row::of("owners", &row).get("memory_change").map(Self)
    }

    pub(super) fn number(&self) -> i64 {
        self.0
    }
}

/// The owner's newest change, and the one with which all memories were erased last.
async fn state(readers: &SqlitePool, owner: Owner) -> StoreResult<(i64, i64)> {
    let found = owned(STATE, owner)
        .fetch_optional(readers)
        .await
        .map_err(store_error)?;
    let Some(row) = found else { return Ok((0, 0)) };
    let row = Row::of("owners", &row);
    Ok((row.get("memory_change")?, row.get("memory_floor")?))
}

pub(super) async fn newest(readers: &SqlitePool, owner: Owner) -> StoreResult<i64> {
    state(readers, owner).await.map(|(change, _)| change)
}

/// The number is read first, then removals, vectors and memories: what is written between the statements is in the next delta as well, and a memory
/// that was removed and made again is not lost.
pub(super) async fn delta(
    readers: &SqlitePool,
    owner: Owner,
    after: ChangePosition,
    limit: u32,
    models: &[String],
) -> StoreResult<IndexDelta> {
    let (change, floor) = state(readers, owner).await?;
    let (from, reset) = changes::begin(after, change, floor);
    let behind = |sql| {
        owned(sql, owner)
            .bind(from.change)
            .bind(from.id.0)
            .bind(i64::from(limit))
    };
    let names = json(&models)?;
    let (mut removed, mut vectors) = (Vec::new(), Vec::new());
    // An index that holds nothing has nothing to remove, and knows no memory yet.
    if from != ChangePosition::START {
        removed = behind(REMOVED)
            .fetch_all(readers)
            .await
            .map_err(store_error)?;
        if !models.is_empty() {
            vectors = behind(VECTORS)
                .bind(&names)
                .fetch_all(readers)
                .await
                .map_err(store_error)?;
        }
    }
    let upserts = behind(UPSERTS)
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    let read = ReadChanges {
        change,
        reset,
        limit: limit as usize,
        upserts: upserts.iter().map(upsert).collect::<StoreResult<_>>()?,
        removed: removed.iter().map(removal).collect::<StoreResult<_>>()?,
        vectors: vectors
            .iter()
            .map(|row| Ok((Row::of("memory_vectors", row).get("change")?, vector(row)?)))
            .collect::<StoreResult<_>>()?,
    };
    let mut part = read.into_delta();
    if !models.is_empty() && !part.delta.upserts.is_empty() {
        let upserts = part.delta.upserts.iter();
        let found = owned(VECTORS_OF, owner)
            .bind(hex_list(upserts.map(|u| u.entry.id.0)))
            .bind(names)
            .fetch_all(readers)
            .await
            .map_err(store_error)?;
        for row in &found {
            part.delta.vectors.push(vector(row)?);
        }
    }
    Ok(part)
}

fn vector(row: &SqliteRow) -> StoreResult<Embedded> {
    let row = Row::of("memory_vectors", row);
    let vector = Embedding::from_bytes(row.get("vec")?);
    Ok(Embedded {
        memory: MemoryId(row.get("memory_id")?),
        model: row.get("model")?,
        vector: vector.ok_or_else(|| corrupt("memory_vectors.vec"))?.into(),
    })
}

fn removal(row: &SqliteRow) -> StoreResult<(i64, MemoryId)> {
    let row = Row::of("memory_removals", row);
    Ok((row.get("change")?, MemoryId(row.get("memory_id")?)))
}

fn upsert(row: &SqliteRow) -> StoreResult<(i64, Upsert)> {
    let row = Row::of("memories", row);
    let entry = Entry {
        id: MemoryId(row.get("id")?),
        scope: row.name("scope", Scope::parse)?,
        kind: row.name("kind", Kind::parse)?,
        layer: row.name("layer", Layer::parse)?,
        state: row.name("state", State::parse)?,
        trust: row.name("trust", Trust::parse)?,
        importance: row.number("importance")?,
        pinned: row.get("pinned")?,
        confidence: row.get("confidence")?,
        access_count: row.get("access_count")?,
        last_access: row.time("last_access")?,
        created_at: row.time("created_at")?,
        valid_from: row.time("valid_from")?,
        valid_to: row.time_or_none("valid_to")?,
        expires_at: row.time_or_none("expires_at")?,
        session_id: row.get::<Option<Uuid>>("session_id")?.map(SessionId),
        sources: row.sources("sources")?.into(),
        speaker: row.get::<Option<String>>("speaker")?.map(Into::into),
    };
    let document = Document::parse(row.get("terms")?).map_err(|e| StoreError::Corrupt {
        what: "memories.terms".to_owned(),
        source: Some(Box::new(e)),
    })?;
    Ok((row.get("change")?, Upsert { entry, document }))
}
