//! Storing memories with their sources.

use sqlx::SqliteConnection;
use tidemark_application::ports::memories::IndexedMemory;
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{MemoryId, Owner};
use tidemark_domain::memory::Source;
use tidemark_domain::memory::forgetting::fades_at;
use uuid::Uuid;

use crate::store::sqlite::changes::Change;
use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::rows::{Row, fingerprint, hex_list, micros, owned, sources_json};
use crate::store::sqlite::statements::statements;

statements! {
    /// What is there or was forgotten is passed over.
    ADD = "INSERT INTO memories (tenant_id, owner_id, id, content, identity, fingerprint, scope, kind, layer, state, \
           importance, confidence, trust, pinned, fact_key, session_id, valid_from, valid_to, expires_at, created_at, \
           access_count, last_access, version, terms, speaker, superseded_by, fades_at, ended_at, change) \
           SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, \
               ?24, ?25, ?26, ?27, ?28, ?29 \
           WHERE NOT EXISTS (SELECT 1 FROM tombstones WHERE tenant_id = ?1 AND owner_id = ?2 AND memory_id = ?3) \
           ON CONFLICT (tenant_id, owner_id, id) DO NOTHING";
    ADD_SOURCES = "INSERT INTO memory_sources (tenant_id, owner_id, memory_id, message_id, session_id, seq) \
                   SELECT ?1, ?2, ?3, unhex(value ->> 0), unhex(value ->> 1), value ->> 2 \
                   FROM json_each(?4) WHERE true ON CONFLICT DO NOTHING";
    FORGOTTEN = "SELECT message_id FROM source_tombstones WHERE tenant_id = ?1 AND owner_id = ?2 \
                      AND message_id IN (SELECT unhex(value) FROM json_each(?3)) AND fingerprint = ?4";
}

/// Stores a memory; false if its id is there already, or has been forgotten.
pub(in crate::store::sqlite) async fn add(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Change,
    item: &IndexedMemory,
) -> StoreResult<bool> {
    let m = &item.memory;
    let added = owned(ADD, owner)
        .bind(m.id.0)
        .bind(&m.content)
        .bind(&item.identity)
        .bind(&fingerprint(&item.identity)[..])
        .bind(m.scope.as_str())
        .bind(m.kind.as_str())
        .bind(m.layer.as_str())
        .bind(m.state.as_str())
        .bind(m.importance)
        .bind(m.confidence)
        .bind(m.trust.as_str())
        .bind(m.pinned)
        .bind(m.key.as_deref())
        .bind(m.session_id.map(|s| s.0))
        .bind(micros(m.valid_from))
        .bind(m.valid_to.map(micros))
        .bind(m.expires_at.map(micros))
        .bind(micros(m.created_at))
        .bind(m.access_count)
        .bind(micros(m.last_access))
        .bind(m.version)
        .bind(item.document.as_bytes())
        .bind(m.speaker.as_deref())
        .bind(m.superseded_by.map(|id| id.0))
        .bind(fades_at(m).map(micros))
        .bind(m.ended_at.map(micros))
        .bind(change.number())
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    if added.rows_affected() == 0 {
        return Ok(false);
    }
    add_sources(connection, owner, m.id, &m.sources).await?;
    Ok(true)
}

/// Adds the messages behind a memory that the same change has written; one that is among them already stays as it is.
pub(in crate::store::sqlite) async fn add_sources(
    connection: &mut SqliteConnection,
    owner: Owner,
    memory: MemoryId,
    sources: &[Source],
) -> StoreResult<()> {
    if sources.is_empty() {
        return Ok(());
    }
    owned(ADD_SOURCES, owner)
        .bind(memory.0)
        .bind(sources_json(sources)?)
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// Those of the sources that have not been forgotten for what a memory with this fingerprint says.
pub(in crate::store::sqlite) async fn teaching(
    connection: &mut SqliteConnection,
    owner: Owner,
    fingerprint: &[u8],
    mut sources: Vec<Source>,
) -> StoreResult<Vec<Source>> {
    if sources.is_empty() {
        return Ok(sources);
    }
    let found = owned(FORGOTTEN, owner)
        .bind(hex_list(sources.iter().map(|s| s.message_id.0)))
        .bind(fingerprint)
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    let forgotten: Vec<Uuid> = found
        .iter()
        .map(|row| Row::of("source_tombstones", row).get("message_id"))
        .collect::<StoreResult<_>>()?;
    sources.retain(|s| !forgotten.contains(&s.message_id.0));
    Ok(sources)
}
