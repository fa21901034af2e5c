//! The changes of an owner's memories, numbered: the key to every write of them, and how an index follows them.

use std::collections::HashMap;

use sqlx::PgConnection;
use tidemark_application::ports::memories::{ChangePosition, IndexDelta};
use tidemark_application::ports::store::StoreError;
use tidemark_domain::ids::{MemoryId, MessageId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::embedding::Embedding;
use tidemark_domain::memory::index::{Document, Embedded, Entry, Upsert};
use tidemark_domain::memory::{Kind, Layer, Scope, Source, State, Trust};
use uuid::Uuid;

use super::rows::{named, owned_as, unexpected};
use super::transaction::{Abort, owner_gone};
use crate::store::changes::{self, ReadChanges};

/// Writers of an owner's memories take turns, so that what they have checked holds until they commit, and numbers become visible in their
/// order.
const BEGIN: &str = "
UPDATE owners SET memory_change = memory_change + 1 WHERE tenant_id = $1 AND owner_id = $2
RETURNING memory_change, erase_epoch,
    (SELECT min(m.expires_at) FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.expires_at IS NOT NULL)";

const NEWEST: &str = "SELECT memory_change FROM owners WHERE tenant_id = $1 AND owner_id = $2";

const STATE: &str =
    "SELECT memory_change, memory_floor FROM owners WHERE tenant_id = $1 AND owner_id = $2";

const UPSERTS: &str = "
SELECT m.change, m.id, m.scope, m.kind, m.layer, m.state, m.trust, m.importance, m.pinned, m.confidence, m.access_count, m.last_access,
    m.created_at, m.valid_from, m.valid_to, m.expires_at, m.session_id, m.speaker, m.terms
FROM memories m
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND (m.change, m.id) > ($3, $4)
ORDER BY m.change, m.id LIMIT $5";

/// Of all of them at once: asked one by one, beside each memory, this took ten times as long as the memories.
const SOURCES_OF: &str = "
SELECT s.memory_id, string_agg(uuid_send(s.message_id) || uuid_send(s.session_id) || int8send(s.seq), ''::bytea ORDER BY s.session_id, s.seq)
FROM memory_sources s
WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.memory_id = ANY($3)
GROUP BY s.memory_id";

const REMOVED: &str = "
SELECT r.change, r.memory_id FROM memory_removals r
WHERE r.tenant_id = $1 AND r.owner_id = $2 AND (r.change, r.memory_id) > ($3, $4)
ORDER BY r.change, r.memory_id LIMIT $5";

/// Of memories that are known at the position: those of the others come with them.
const VECTORS: &str = "
SELECT v.change, v.memory_id, v.model, v.vec FROM memory_vectors v
JOIN memories m ON m.tenant_id = v.tenant_id AND m.owner_id = v.owner_id AND m.id = v.memory_id
WHERE v.tenant_id = $1 AND v.owner_id = $2 AND (v.change, v.memory_id) > ($3, $4) AND (m.change, m.id) <= ($3, $4)
    AND v.model = ANY($6) AND v.vec <> ''
ORDER BY v.change, v.memory_id LIMIT $5";

const VECTORS_OF: &str = "
SELECT v.change, v.memory_id, v.model, v.vec FROM memory_vectors v
WHERE v.tenant_id = $1 AND v.owner_id = $2 AND v.memory_id = ANY($3) AND v.model = ANY($4) AND v.vec <> ''";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    BEGIN, NEWEST, STATE, UPSERTS, SOURCES_OF, REMOVED, VECTORS, VECTORS_OF,
];

/// The right to change an owner's memories, under the owner's lock. Every statement that writes memories wants its number.
#[derive(Debug)]
pub(super) struct Change {
    number: i64,
    erase_epoch: i64,
    soonest_expiry: Option<Timestamp>,
}

impl Change {
    /// Locks the owner and raises the number of its changes.
    pub(super) async fn begin(tx: &mut PgConnection, owner: Owner) -> Result<Self, sqlx::Error> {
        let begun = owned_as(BEGIN, owner).fetch_optional(tx).await?;
        let (number, erase_epoch, soonest_expiry) = begun.ok_or_else(owner_gone)?;
        Ok(Self {
            number,
            erase_epoch,
            soonest_expiry,
        })
    }

    pub(super) fn number(&self) -> i64 {
        self.number
    }

    /// Whether anything may have expired by then. What was stored while the lock was waited for is not counted: it had not.
    pub(super) fn may_find_expired(&self, now: Option<Timestamp>) -> bool {
        self.soonest_expiry
            .is_some_and(|at| now.is_none_or(|now| at <= now))
    }

    /// The owner's epoch.
    pub(super) fn erase_epoch(&self) -> i64 {
        self.erase_epoch
    }
}

pub(super) async fn newest(tx: &mut PgConnection, owner: Owner) -> Result<i64, sqlx::Error> {
    let found: Option<(i64,)> = owned_as(NEWEST, owner).fetch_optional(tx).await?;
    Ok(found.map_or(0, |(change,)| change))
}

pub(super) async fn delta(
    tx: &mut PgConnection,
    owner: Owner,
    after: ChangePosition,
    limit: u32,
    models: &[String],
) -> Result<IndexDelta, Abort<StoreError>> {
    let state: Option<(i64, i64)> = owned_as(STATE, owner).fetch_optional(&mut *tx).await?;
    let (change, floor) = state.unwrap_or_default();
    let (from, reset) = changes::begin(after, change, floor);
    let rows: Vec<EntryRow> = owned_as(UPSERTS, owner)
        .bind(from.change)
        .bind(from.id.0)
        .bind(i64::from(limit))
        .fetch_all(&mut *tx)
        .await?;
    let mut removed: Vec<(i64, Uuid)> = Vec::new();
    let mut vectors: Vec<VectorRow> = Vec::new();
    // An index that holds nothing has nothing to remove, and knows no memory yet.
    if from != ChangePosition::START {
        removed = owned_as(REMOVED, owner)
            .bind(from.change)
            .bind(from.id.0)
            .bind(i64::from(limit))
            .fetch_all(&mut *tx)
            .await?;
        if !models.is_empty() {
            vectors = owned_as(VECTORS, owner)
                .bind(from.change)
                .bind(from.id.0)
                .bind(i64::from(limit))
                .bind(models)
                .fetch_all(&mut *tx)
                .await?;
        }
    }
    let mut sources = sources_of(tx, owner, &rows).await?;
    let upserts: Result<Vec<_>, sqlx::Error> = rows
        .into_iter()
        .map(|row| {
            let sources = sources.remove(&row.id).unwrap_or_default();
            Ok((row.change, row.into_upsert(sources)?))
        })
        .collect();
    let read = ReadChanges {
        change,
        reset,
        limit: limit as usize,
        upserts: upserts?,
        removed: (removed.into_iter())
            .map(|(change, id)| (change, MemoryId(id)))
            .collect(),
        vectors: vectors
            .into_iter()
            .map(|row| Ok((row.change, row.try_into()?)))
            .collect::<Result<_, sqlx::Error>>()?,
    };
    let mut part = read.into_delta();
    if !models.is_empty() && !part.delta.upserts.is_empty() {
        let upserts = part.delta.upserts.iter();
        let rows: Vec<VectorRow> = owned_as(VECTORS_OF, owner)
            .bind(upserts.map(|u| u.entry.id.0).collect::<Vec<_>>())
            .bind(models)
            .fetch_all(tx)
            .await?;
        for row in rows {
            part.delta.vectors.push(row.try_into()?);
        }
    }
    Ok(part)
}

async fn sources_of(
    tx: &mut PgConnection,
    owner: Owner,
    rows: &[EntryRow],
) -> Result<HashMap<Uuid, Box<[Source]>>, sqlx::Error> {
    if rows.is_empty() {
        return Ok(HashMap::new());
    }
    let found: Vec<(Uuid, Vec<u8>)> = owned_as(SOURCES_OF, owner)
        .bind(rows.iter().map(|row| row.id).collect::<Vec<_>>())
        .fetch_all(tx)
        .await?;
    let found = found.into_iter().map(|(id, joined)| (id, sources(&joined)));
    Ok(found.collect())
}

#[derive(sqlx::FromRow)]
struct VectorRow {
    change: i64,
    memory_id: Uuid,
    model: String,
    vec: Vec<u8>,
}

impl TryFrom<VectorRow> for Embedded {
    type Error = sqlx::Error;

    fn try_from(row: VectorRow) -> Result<Self, sqlx::Error> {
        let vector = Embedding::from_bytes(&row.vec);
        Ok(Self {
            memory: MemoryId(row.memory_id),
            model: row.model,
            vector: vector
                .ok_or_else(|| unexpected("memory_vectors.vec"))?
                .into(),
        })
    }
}

#[derive(sqlx::FromRow)]
struct EntryRow {
    change: i64,
    id: Uuid,
    scope: String,
    kind: String,
    layer: String,
    state: String,
    trust: String,
    importance: i16,
    pinned: bool,
    confidence: f64,
    access_count: i64,
    last_access: Timestamp,
    created_at: Timestamp,
    valid_from: Timestamp,
    valid_to: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    session_id: Option<Uuid>,
    speaker: Option<String>,
    terms: Vec<u8>,
}

impl EntryRow {
    fn into_upsert(self, sources: Box<[Source]>) -> Result<Upsert, sqlx::Error> {
        let row = self;
        let entry = Entry {
            id: MemoryId(row.id),
            scope: named("memories.scope", &row.scope, Scope::parse)?,
            kind: named("memories.kind", &row.kind, Kind::parse)?,
            layer: named("memories.layer", &row.layer, Layer::parse)?,
            state: named("memories.state", &row.state, State::parse)?,
            trust: named("memories.trust", &row.trust, Trust::parse)?,
            importance: u8::try_from(row.importance)
                .map_err(|_| unexpected("memories.importance"))?,
            pinned: row.pinned,
            confidence: row.confidence,
            access_count: row.access_count,
            last_access: row.last_access,
            created_at: row.created_at,
            valid_from: row.valid_from,
            valid_to: row.valid_to,
            expires_at: row.expires_at,
            session_id: row.session_id.map(SessionId),
            sources,
            speaker: row.speaker.map(Into::into),
        };
        let document = Document::parse(row.terms).map_err(|_| unexpected("memories.terms"))?;
        Ok(Upsert { entry, document })
    }
}

/// Message, session and number one behind the other, as `SOURCES_OF` joins them.
fn sources(joined: &[u8]) -> Box<[Source]> {
    let (joined, _) = joined.as_chunks::<40>();
    let id = |bytes: &[u8]| {
        let mut id = [0; 16];
        id.copy_from_slice(bytes);
        Uuid::from_bytes(id)
    };
    joined
        .iter()
        .map(|source| {
            let mut seq = [0; 8];
            seq.copy_from_slice(&source[32..]);
            Source {
                message_id: MessageId(id(&source[..16])),
                session_id: SessionId(id(&source[16..32])),
                seq: i64::from_be_bytes(seq),
            }
        })
        .collect()
}
