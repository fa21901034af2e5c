//! Memories: kept, and found by what they are. How an index follows them is in `changes`, how they are lost in `forget`.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use sqlx::PgConnection;
use sqlx::types::Json;
use tidemark_application::ports::jobs::NewJob;
use tidemark_application::ports::memories::{IndexedMemory, MemoryFilter};
use tidemark_application::ports::sessions::CreateError;
use tidemark_application::ports::store::{Created, Cursor, Idempotency, Page};
use tidemark_domain::ids::{ChangeId, MemoryId, Owner, Timestamp};
use tidemark_domain::memory::change::{Change, Item, Op};
use tidemark_domain::memory::conflict::{Touched, repeated, voiced};
use tidemark_domain::memory::consolidation::{can_be_repeated, identity};
use tidemark_domain::memory::forgetting::fades_at;
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, Source, State};
use uuid::Uuid;

use super::changes::Change as Numbered;
use super::idempotency::{self, Reservation};
use super::messages::page;
use super::rows::{MemoryRow, all, memory_columns, owned, owned_as};
use super::transaction::Abort;
use super::{fading, forget, history, jobs, lines};

/// Not expired at a time, or by the database's clock when none is given.
macro_rules! unexpired {
    ($at:literal) => {
        concat!(
            "(m.expires_at IS NULL OR m.expires_at > coalesce(",
            $at,
            ", statement_timestamp()))"
        )
    };
}

pub(super) use unexpired;

/// Passes over ids that exist or were forgotten.
const INSERT: &str = "
INSERT INTO memories (tenant_id, owner_id, id, content, speaker, scope, kind, layer, state, importance, confidence, trust, pinned, key,
    session_id, identity, identity_hash, terms, valid_from, valid_to, superseded_by, ended_at, expires_at, created_at, access_count,
    last_access, version, fades_at, change)
SELECT $1, $2, n.id, n.content, n.speaker, n.scope, n.kind, n.layer, n.state, n.importance, n.confidence, n.trust, n.pinned, n.key,
    n.session_id, n.identity, sha256(convert_to(n.identity, 'UTF8')), t.terms, n.valid_from, n.valid_to, n.superseded_by, n.ended_at,
    n.expires_at, n.created_at, n.access_count, n.last_access, n.version, n.fades_at, $6
FROM jsonb_to_recordset($3) AS n (id uuid, content text, speaker text, scope text, kind text, layer text, state text, importance smallint,
    confidence double precision, trust text, pinned boolean, key text, session_id uuid, identity text, valid_from timestamptz,
    valid_to timestamptz, superseded_by uuid, ended_at timestamptz, expires_at timestamptz, created_at timestamptz,
    access_count bigint, last_access timestamptz, version bigint, fades_at timestamptz)
JOIN unnest($4::uuid[], $5::bytea[]) AS t (id, terms) ON t.id = n.id
WHERE NOT EXISTS (
    SELECT FROM tombstones b
    WHERE b.tenant_id = $1 AND b.owner_id = $2 AND b.subject_id = n.id AND b.identity_hash = ''
)
ON CONFLICT (tenant_id, owner_id, id) DO NOTHING
RETURNING id";

const ADD_SOURCES: &str = "
INSERT INTO memory_sources (tenant_id, owner_id, memory_id, message_id, session_id, seq)
SELECT $1, $2, n.memory_id, n.message_id, n.session_id, n.seq
FROM unnest($3::uuid[], $4::uuid[], $5::uuid[], $6::bigint[]) AS n (memory_id, message_id, session_id, seq)
ON CONFLICT (tenant_id, owner_id, memory_id, message_id) DO NOTHING";

const BY_ID: &str = concat!(
    "SELECT ",
    memory_columns!(),
    " FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = ANY($3) AND ",
    unexpired!("$4")
);

const BY_IDENTITY: &str = concat!(
    "SELECT m.identity, ",
    memory_columns!(),
    " FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.state IN ('current', 'archived') AND m.layer = ANY($4)
        AND m.identity_hash = ANY (ARRAY(SELECT sha256(convert_to(i, 'UTF8')) FROM unnest($3::text[]) i)) AND ",
    unexpired!("$5"),
    " ORDER BY m.state DESC, m.created_at, m.id"
);

/// Of any layer, what waits for confirmation among them, behind the others.
const SAID: &str = concat!(
    "SELECT m.identity, ",
    memory_columns!(),
    " FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.state IN ('current', 'archived')
        AND m.identity_hash = ANY (ARRAY(SELECT sha256(convert_to(i, 'UTF8')) FROM unnest($3::text[]) i))
      UNION ALL SELECT m.identity, ",
    memory_columns!(),
    " FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.state = 'quarantined'
        AND m.identity_hash = ANY (ARRAY(SELECT sha256(convert_to(i, 'UTF8')) FROM unnest($3::text[]) i))"
);

const FROM_MESSAGES: &str = concat!(
    "SELECT ",
    memory_columns!(),
    " FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id IN (
        SELECT f.memory_id FROM memory_sources f WHERE f.tenant_id = $1 AND f.owner_id = $2 AND f.message_id = ANY($3)
      ) AND ",
    unexpired!("NULL")
);

const LIST: &str = concat!(
    "SELECT ",
    memory_columns!(),
    " FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2
        AND ($3::text IS NULL OR m.scope = $3) AND ($4::text IS NULL OR m.kind = $4)
        AND ($5::text IS NULL OR m.layer = $5) AND ($6::text IS NULL OR m.state = $6)
        AND ($7::uuid IS NULL OR m.session_id = $7 OR EXISTS (
            SELECT FROM memory_sources l WHERE l.tenant_id = $1 AND l.owner_id = $2 AND l.memory_id = m.id AND l.session_id = $7
        ))
        AND ($8::text IS NULL OR strpos(lower(m.content COLLATE \"C\"), lower($8 COLLATE \"C\")) > 0)
        AND ($9::timestamptz IS NULL OR m.created_at >= $9) AND ($10::timestamptz IS NULL OR m.created_at < $10)
        AND ($11::timestamptz IS NULL OR (m.created_at, m.id) < ($11, $12::uuid))
        AND ($14::text IS NULL OR m.key = $14)
        AND ($15::timestamptz IS NULL OR (m.state <> 'quarantined' AND m.valid_from <= $15 AND coalesce(m.valid_to, 'infinity') > $15))
        AND ",
    unexpired!("NULL"),
    " ORDER BY m.created_at DESC, m.id DESC LIMIT $13"
);

const KEYS_IN_USE: &str = concat!(
    "SELECT m.key FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2
        AND m.key IS NOT NULL AND m.state = 'current' AND m.layer = 'semantic' AND ",
    unexpired!("NULL"),
    " ORDER BY m.created_at DESC, m.id DESC LIMIT $3"
);

const PREFERENCES: &str = concat!(
    "SELECT ",
    memory_columns!(),
    " FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2
        AND m.state = 'current' AND m.scope = 'user_profile' AND m.kind = 'preference'
        AND (m.expires_at IS NULL OR m.expires_at > $3)
      ORDER BY m.valid_from DESC, m.id DESC LIMIT $4"
);

/// Planned with the filters and the limit that are given.
#[cfg(test)]
pub(super) const WALKS: &[&str] = &[LIST];

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    INSERT,
    ADD_SOURCES,
    BY_ID,
    BY_IDENTITY,
    SAID,
    FROM_MESSAGES,
    LIST,
    KEYS_IN_USE,
    PREFERENCES,
];

/// A memory as `INSERT` takes it.
#[derive(Serialize)]
struct NewRow<'a> {
    id: Uuid,
    content: &'a str,
    speaker: Option<&'a str>,
    scope: &'static str,
    kind: &'static str,
    layer: &'static str,
    state: &'static str,
    importance: u8,
    confidence: f64,
    trust: &'static str,
    pinned: bool,
    key: Option<&'a str>,
    session_id: Option<Uuid>,
    identity: &'a str,
    valid_from: Timestamp,
    valid_to: Option<Timestamp>,
    superseded_by: Option<Uuid>,
    ended_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    created_at: Timestamp,
    access_count: i64,
    last_access: Timestamp,
    version: i64,
    fades_at: Option<Timestamp>,
}

impl<'a> From<&'a IndexedMemory> for NewRow<'a> {
    fn from(item: &'a IndexedMemory) -> Self {
        let memory = &item.memory;
        Self {
            id: memory.id.0,
            content: &memory.content,
            speaker: memory.speaker.as_deref(),
            scope: memory.scope.as_str(),
            kind: memory.kind.as_str(),
            layer: memory.layer.as_str(),
            state: memory.state.as_str(),
            importance: memory.importance,
            confidence: memory.confidence,
            trust: memory.trust.as_str(),
            pinned: memory.pinned,
            key: memory.key.as_deref(),
            session_id: memory.session_id.map(|session| session.0),
            identity: &item.identity,
            valid_from: memory.valid_from,
            valid_to: memory.valid_to,
            superseded_by: memory.superseded_by.map(|id| id.0),
            ended_at: memory.ended_at,
            expires_at: memory.expires_at,
            created_at: memory.created_at,
            access_count: memory.access_count,
            last_access: memory.last_access,
            version: memory.version,
            fades_at: fades_at(memory),
        }
    }
}

/// Stores memories with their sources and terms; the ids of those that were.
pub(super) async fn insert(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Numbered,
    items: &[&IndexedMemory],
) -> Result<HashSet<Uuid>, sqlx::Error> {
    if items.is_empty() {
        return Ok(HashSet::new());
    }
    let rows: Vec<NewRow<'_>> = items.iter().map(|item| NewRow::from(*item)).collect();
    let stored: Vec<(Uuid,)> = owned_as(INSERT, owner)
        .bind(Json(rows))
        .bind(items.iter().map(|i| i.memory.id.0).collect::<Vec<_>>())
        .bind(
            items
                .iter()
                .map(|i| i.document.as_bytes())
                .collect::<Vec<_>>(),
        )
        .bind(change.number())
        .fetch_all(&mut *tx)
        .await?;
    let stored: HashSet<Uuid> = stored.into_iter().map(|(id,)| id).collect();
    let sources = items
        .iter()
        .filter(|item| stored.contains(&item.memory.id.0))
        .flat_map(|item| item.memory.sources.iter().map(|s| (item.memory.id, *s)));
    add_sources(tx, owner, sources.collect()).await?;
    Ok(stored)
}

/// Adds sources to memories that the same change has written.
pub(super) async fn add_sources(
    tx: &mut PgConnection,
    owner: Owner,
    sources: Vec<(MemoryId, Source)>,
) -> Result<(), sqlx::Error> {
    if sources.is_empty() {
        return Ok(());
    }
    let column =
        |of: fn(&(MemoryId, Source)) -> Uuid| -> Vec<Uuid> { sources.iter().map(of).collect() };
    owned(ADD_SOURCES, owner)
        .bind(column(|(memory, _)| memory.0))
        .bind(column(|(_, source)| source.message_id.0))
        .bind(column(|(_, source)| source.session_id.0))
        .bind(
            sources
                .iter()
                .map(|(_, source)| source.seq)
                .collect::<Vec<_>>(),
        )
        .execute(tx)
        .await?;
    Ok(())
}

pub(super) async fn by_id(
    tx: &mut PgConnection,
    owner: Owner,
    ids: &[Uuid],
    at: Option<Timestamp>,
) -> Result<Vec<Memory>, sqlx::Error> {
    let rows: Vec<MemoryRow> = owned_as(BY_ID, owner)
        .bind(ids)
        .bind(at)
        .fetch_all(tx)
        .await?;
    all(rows)
}

#[derive(sqlx::FromRow)]
struct IdentifiedRow {
    identity: String,
    #[sqlx(flatten)]
    memory: MemoryRow,
}

/// Memories of these identities in some layers, current or archived: the current ones first, the oldest of each before the others.
pub(super) async fn by_identity(
    tx: &mut PgConnection,
    owner: Owner,
    identities: &[String],
    layers: &[Layer],
    at: Option<Timestamp>,
) -> Result<Vec<(String, Memory)>, sqlx::Error> {
    let rows: Vec<IdentifiedRow> = owned_as(BY_IDENTITY, owner)
        .bind(identities)
        .bind(
            layers
                .iter()
                .map(|layer| layer.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(at)
        .fetch_all(tx)
        .await?;
    rows.into_iter()
        .map(|row| Ok((row.identity, row.memory.try_into()?)))
        .collect()
}

/// What says the same as those of these that wait for confirmation, and is confirmed, archived or waits itself: in this order.
async fn said(
    tx: &mut PgConnection,
    owner: Owner,
    items: &[IndexedMemory],
) -> Result<Vec<(String, Memory)>, sqlx::Error> {
    let waiting = items.iter().filter(|item| waits(item));
    let identities: Vec<&str> = waiting.map(|item| item.identity.as_str()).collect();
    if identities.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<IdentifiedRow> = owned_as(SAID, owner).bind(identities).fetch_all(tx).await?;
    let mut said = Vec::with_capacity(rows.len());
    for row in rows {
        said.push((row.identity, Memory::try_from(row.memory)?));
    }
    said.sort_by_key(|(_, memory)| memory.state);
    Ok(said)
}

/// Whether something new waits for confirmation.
pub(super) fn waits(item: &IndexedMemory) -> bool {
    item.memory.state == State::Quarantined
}

/// New memories without those that wait for confirmation and say nothing new, beside the others or beside what is stored, in whatever order they come.
pub(super) async fn unsaid(
    tx: &mut PgConnection,
    owner: Owner,
    mut new: Vec<IndexedMemory>,
) -> Result<Vec<IndexedMemory>, sqlx::Error> {
    let said = said(tx, owner, &new).await?;
    let mut known: HashSet<String> = said.into_iter().map(|(identity, _)| identity).collect();
    let told = new.iter().filter(|item| !waits(item));
    known.extend(told.map(|item| item.identity.clone()));
    new.retain(|item| !waits(item) || known.insert(item.identity.clone()));
    Ok(new)
}

/// Statements of these identities that are known.
pub(super) async fn known(
    tx: &mut PgConnection,
    owner: Owner,
    identities: &[String],
    at: Option<Timestamp>,
) -> Result<Vec<(String, Memory)>, sqlx::Error> {
    let layers = [Layer::Semantic, Layer::Archival];
    let mut known = by_identity(tx, owner, identities, &layers, at).await?;
    known.retain(|(_, memory)| can_be_repeated(memory));
    Ok(known)
}

pub(super) async fn from_messages(
    tx: &mut PgConnection,
    owner: Owner,
    messages: &[Uuid],
) -> Result<Vec<Memory>, sqlx::Error> {
    let rows: Vec<MemoryRow> = owned_as(FROM_MESSAGES, owner)
        .bind(messages)
        .fetch_all(tx)
        .await?;
    all(rows)
}

pub(super) async fn list(
    tx: &mut PgConnection,
    owner: Owner,
    filter: &MemoryFilter,
    after: Option<Cursor>,
    limit: u32,
) -> Result<Page<Memory>, sqlx::Error> {
    let rows: Vec<MemoryRow> = owned_as(LIST, owner)
        .bind(filter.scope.map(Scope::as_str))
        .bind(filter.kind.map(Kind::as_str))
        .bind(filter.layer.map(Layer::as_str))
        .bind(filter.state.map(State::as_str))
        .bind(filter.session_id.map(|session| session.0))
        .bind(filter.text.as_deref())
        .bind(filter.created_from)
        .bind(filter.created_to)
        .bind(after.map(|cursor| cursor.at))
        .bind(after.map(|cursor| cursor.id))
        .bind(i64::from(limit) + 1)
        .bind(filter.key.as_deref())
        .bind(filter.as_of)
        .fetch_all(tx)
        .await?;
    Ok(page(all(rows)?, limit))
}

pub(super) async fn keys_in_use(
    tx: &mut PgConnection,
    owner: Owner,
    limit: u32,
) -> Result<Vec<String>, sqlx::Error> {
    let rows: Vec<(String,)> = owned_as(KEYS_IN_USE, owner)
        .bind(i64::from(limit))
        .fetch_all(tx)
        .await?;
    Ok(rows.into_iter().map(|(key,)| key).collect())
}

pub(super) async fn preferences(
    tx: &mut PgConnection,
    owner: Owner,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Memory>, sqlx::Error> {
    let rows: Vec<MemoryRow> = owned_as(PREFERENCES, owner)
        .bind(now)
        .bind(i64::from(limit))
        .fetch_all(tx)
        .await?;
    all(rows)
}

/// What a caller gives, as one change.
pub(super) struct Given {
    pub(super) items: Vec<IndexedMemory>,
    pub(super) jobs: Vec<NewJob>,
    pub(super) change: ChangeId,
    pub(super) idempotency: Option<Idempotency>,
    pub(super) now: Timestamp,
}

/// Stores what a caller gives, but nothing that is remembered already.
pub(super) async fn remember(
    tx: &mut PgConnection,
    owner: Owner,
    given: &Given,
) -> Result<Created<Vec<Memory>>, Abort<CreateError>> {
    let (key, now) = (given.idempotency.as_ref(), given.now);
    let wanted: Vec<Uuid> = given.items.iter().map(|item| item.memory.id.0).collect();
    match idempotency::reserve(tx, owner, key, &wanted, now).await? {
        Reservation::Made => {}
        Reservation::Mismatch => return Err(Abort::Decided(CreateError::IdempotencyMismatch)),
        Reservation::Earlier(ids) => {
            return Ok(Created {
                value: in_order(by_id(tx, owner, &ids, Some(now)).await?, &ids),
                replayed: true,
            });
        }
    }
    let change = Numbered::begin(tx, owner).await?;
    forget::expire(tx, owner, &change, Some(now)).await?;
    let Kept { ids, as_given } = keep(tx, owner, &change, given).await?;
    jobs::enqueue_for_owner(tx, owner, &given.jobs, now).await?;
    if ids != wanted {
        idempotency::rename(tx, owner, key, &ids, now).await?;
    }
    let value = if as_given {
        given.items.iter().map(|item| item.memory.clone()).collect()
    } else {
        in_order(by_id(tx, owner, &ids, Some(now)).await?, &ids)
    };
    Ok(Created {
        value,
        replayed: false,
    })
}

/// What became of what was given.
struct Kept {
    /// Its ids, or those of what is there in its place.
    ids: Vec<Uuid>,
    /// All of it is new, and stands as it was given.
    as_given: bool,
}

/// Stores what is new, settles the keys, and keeps the change if there is one.
async fn keep(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Numbered,
    given: &Given,
) -> Result<Kept, sqlx::Error> {
    let now = Some(given.now);
    let touched = Touched::by(given.items.iter().map(|item| &item.memory));
    let mut known = match &touched {
        Some(touched) => lines::of(tx, owner, touched, now).await?,
        None => Vec::new(),
    };
    // What was said in a conversation with the same words is not what the caller gave: only the same layer is the same memory.
    let unkeyed = given.items.iter().filter(|item| item.memory.key.is_none());
    let identities: Vec<String> = unkeyed.map(|item| item.identity.clone()).collect();
    if !identities.is_empty() {
        let found = by_identity(tx, owner, &identities, Layer::ALL, now).await?;
        known.extend(found.into_iter().map(|(_, memory)| memory));
    }
    let mut said = said(tx, owner, &given.items).await?;
    let mut new = Vec::new();
    let mut voices: Vec<(Memory, Memory)> = Vec::new();
    let mut ids = Vec::with_capacity(given.items.len());
    for item in &given.items {
        let present = if waits(item) {
            let said = said
                .iter()
                .filter(|(identity, _)| *identity == item.identity);
            let mut said = said.map(|(_, memory)| memory);
            said.find(|memory| memory.made_in() == item.memory.layer)
        } else if item.memory.key.is_some() {
            repeated(&known, &item.memory)
        } else {
            known.iter().find(|memory| {
                memory.made_in() == item.memory.layer && identity(memory) == item.identity
            })
        };
        let Some(present) = present.cloned() else {
            if waits(item) {
                said.push((item.identity.clone(), item.memory.clone()));
            } else {
                known.push(item.memory.clone());
            }
            ids.push(item.memory.id.0);
            new.push(item);
            continue;
        };
        ids.push(present.id.0);
        if let Some(voiced) = voiced(&present, &item.memory) {
            known.retain(|memory| memory.id != present.id);
            known.push(voiced.clone());
            voices.push((present, voiced));
        }
    }
    let stored = insert(tx, owner, change, &new).await?;
    let made = new.iter().map(|item| &item.memory);
    let made = made.filter(|memory| stored.contains(&memory.id.0));
    let mut done: Vec<Item> = made.map(Item::created).collect();
    for (before, after) in voices {
        fading::put(tx, owner, change, std::slice::from_ref(&after)).await?;
        done.push(Item::changed(&before, &after, Op::Strengthened));
    }
    let settled = lines::settle(tx, owner, change, touched, now).await?;
    let as_given = done.len() == given.items.len()
        && done.iter().all(|item| item.op == Op::Created)
        && settled.is_empty();
    done.extend(settled);
    if !done.is_empty() {
        let memories = given.items.iter().map(|item| &item.memory);
        let kept = Change::adding(given.change, memories, given.now, done);
        history::record(tx, owner, kept).await?;
    }
    Ok(Kept { ids, as_given })
}

/// The memories in the order of the ids, as often as these name them.
fn in_order(memories: Vec<Memory>, ids: &[Uuid]) -> Vec<Memory> {
    let found: HashMap<Uuid, Memory> = memories.into_iter().map(|m| (m.id.0, m)).collect();
    ids.iter().filter_map(|id| found.get(id).cloned()).collect()
}
