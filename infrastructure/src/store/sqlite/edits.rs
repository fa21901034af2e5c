//! New versions of memories: edited, or put back when a change is undone.

use sqlx::SqliteConnection;
use tidemark_application::ports::changes::{Edit, Reversal, RevertError};
use tidemark_application::ports::memories::IndexedMemory;
use tidemark_application::ports::sessions::Updated;
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{MemoryId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::change::{Change, ChangeKind, Item, Op, released};
use tidemark_domain::memory::conflict::Touched;
use tidemark_domain::memory::forgetting::fades_at;
use tidemark_domain::memory::{Memory, Source};
use uuid::Uuid;

use super::changes::Change as Numbered;
use super::errors::store_error;
use super::memories::{formers, lines};
use super::rows::{fingerprint, hex_list, micros, owned};
use super::statements::statements;
use super::{history, jobs, memories, owners};

statements! {
    REWRITE = "UPDATE memories SET content = ?4, identity = ?5, fingerprint = ?6, scope = ?7, kind = ?8, layer = ?9, state = ?10, \
               importance = ?11, confidence = ?12, trust = ?13, pinned = ?14, fact_key = ?15, valid_from = ?16, valid_to = ?17, \
               superseded_by = ?18, expires_at = ?19, last_access = ?20, version = ?21, terms = ?22, change = ?23, fades_at = ?24, ended_at = ?25 \
               WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3";
    KEEP_SOURCES = "DELETE FROM memory_sources WHERE tenant_id = ?1 AND owner_id = ?2 AND memory_id = ?3 \
                    AND message_id NOT IN (SELECT unhex(value) FROM json_each(?4))";
    /// They are of the old content.
    UNEMBED = "DELETE FROM memory_vectors WHERE tenant_id = ?1 AND owner_id = ?2 AND memory_id = ?3";
    UNTEACH = "UPDATE messages SET learnable = 0 \
               WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND seq > ?4 AND seq <= ?5";
}

/// Stores all that a memory is, but for its sources and uses. With another content than it was seen with it has no vectors any more.
async fn rewrite(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Numbered,
    seen: &Memory,
    item: &IndexedMemory,
) -> StoreResult<()> {
    let m = &item.memory;
    if m.content != seen.content {
        owned(UNEMBED, owner)
            .bind(m.id.0)
            .execute(&mut *connection)
            .await
            .map_err(store_error)?;
    }
    owned(REWRITE, owner)
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
        .bind(micros(m.valid_from))
        .bind(m.valid_to.map(micros))
        .bind(m.superseded_by.map(|id| id.0))
        .bind(m.expires_at.map(micros))
        .bind(micros(m.last_access))
        .bind(m.version)
        .bind(item.document.as_bytes())
        .bind(change.number())
        .bind(fades_at(m).map(micros))
        .bind(m.ended_at.map(micros))
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// Takes those sources away that are not among these.
async fn keep_sources(
    connection: &mut SqliteConnection,
    owner: Owner,
    memory: MemoryId,
    sources: &[Source],
) -> StoreResult<()> {
    owned(KEEP_SOURCES, owner)
        .bind(memory.0)
        .bind(hex_list(sources.iter().map(|source| source.message_id.0)))
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// Whether memories are in the versions in which they were seen; none if one of them is gone.
async fn as_seen(
    connection: &mut SqliteConnection,
    owner: Owner,
    seen: &[&Memory],
    now: Timestamp,
) -> StoreResult<Option<bool>> {
    let ids: Vec<MemoryId> = seen.iter().map(|memory| memory.id).collect();
    let found = memories::by_ids(connection, owner, &ids, Some(now)).await?;
    let version = |id| found.iter().find(|m| m.id == id).map(|m| m.version);
    if seen.iter().any(|memory| version(memory.id).is_none()) {
        return Ok(None);
    }
    Ok(Some(
        (seen.iter()).all(|memory| version(memory.id) == Some(memory.version)),
    ))
}

pub(super) async fn edit(
    connection: &mut SqliteConnection,
    owner: Owner,
    edit: Edit,
) -> StoreResult<Updated<Memory>> {
    let now = edit.now;
    let echoes: Vec<&Memory> = edit.echoes.iter().map(|(seen, _)| seen).collect();
    match as_seen(connection, owner, &[&edit.before], now).await? {
        None => return Ok(Updated::NotFound),
        Some(false) => return Ok(Updated::Stale),
        Some(true) if as_seen(connection, owner, &echoes, now).await? != Some(true) => {
            return Ok(Updated::Stale);
        }
        Some(true) => {}
    }
    let change = &Numbered::begin(connection, owner).await?;
    memories::expire(connection, owner, change, Some(now)).await?;
    rewrite(connection, owner, change, &edit.before, &edit.after).await?;
    formers::keep(
        connection,
        owner,
        change,
        &edit.after.memory,
        edit.former.as_ref(),
    )
    .await?;
    memories::bury_pairs(connection, owner, &edit.buried, now).await?;
    jobs::enqueue_for_owner(connection, owner, &edit.jobs, now).await?;
    for (_, ended) in &edit.echoes {
        lines::stand(connection, owner, change, ended).await?;
    }
    let mut items = edit.items;
    if edit.releases {
        for ended in lines::ended(&mut *connection, owner, edit.before.id).await? {
            let (released, kept) = released(&ended);
            lines::stand(connection, owner, change, &released).await?;
            items.push(kept);
        }
    }
    let touched = Touched::by([&edit.before, &edit.after.memory]);
    items.extend(lines::settle(connection, owner, change, touched, Some(now)).await?);
    let kept =
        Change::new(edit.change, ChangeKind::Edit, now, items).of_session(edit.before.session_id);
    history::record(connection, owner, kept).await?;
    let id = edit.before.id;
    let stored = memories::by_ids(connection, owner, &[id], Some(now)).await?;
    Ok(stored
        .into_iter()
        .next()
        .map_or(Updated::NotFound, Updated::Done))
}

pub(super) async fn revert(
    connection: &mut SqliteConnection,
    owner: Owner,
    reversal: Reversal,
) -> Result<Change, RevertError> {
    let now = reversal.now;
    let Some(reverted) = history::find(connection, owner, reversal.reverted).await? else {
        return Err(RevertError::NotFound);
    };
    if let Some(by) = reverted.reverted_by {
        return Err(RevertError::Already(by));
    }
    let restored = reversal.restored.iter().map(|(seen, _)| seen);
    let seen: Vec<&Memory> = reversal.removed.iter().chain(restored).collect();
    if as_seen(connection, owner, &seen, now).await? != Some(true) {
        return Err(RevertError::Conflict);
    }
    let change = &Numbered::begin(connection, owner).await?;
    memories::expire(connection, owner, change, Some(now)).await?;
    let mut items = Vec::new();
    if let Some((session, from, to)) = reversal.untaught {
        items.extend(untaught(connection, owner, session, (from, to)).await?);
    }
    let removed: Vec<Uuid> = reversal.removed.iter().map(|memory| memory.id.0).collect();
    let mut touched = lines::ended_by(connection, owner, &removed).await?;
    memories::bury_all(connection, owner, change, &removed, now).await?;
    items.extend(reversal.removed.iter().map(|m| Item::removed(m.id)));
    for (seen, restored) in &reversal.restored {
        let memory = &restored.memory;
        let again = formers::said_again(connection, owner, memory).await?;
        touched = Touched::joined(touched, lines::ended_by(connection, owner, &again).await?);
        // The memory says it itself again: its changes keep it.
        formers::part(connection, owner, &hex_list(again.iter().copied())).await?;
        memories::remove(connection, owner, change, &again).await?;
        rewrite(connection, owner, change, seen, restored).await?;
        formers::keep(connection, owner, change, memory, None).await?;
        keep_sources(connection, owner, memory.id, &memory.sources).await?;
        items.push(Item::changed(seen, memory, Op::Updated));
        touched = Touched::joined(touched, Touched::by([seen, memory]));
    }
    items.extend(lines::settle(connection, owner, change, touched, Some(now)).await?);
    jobs::enqueue_for_owner(connection, owner, &reversal.jobs, now).await?;
    let mut kept = Change::new(reversal.change, ChangeKind::Revert, now, items)
        .of_session(reverted.session_id);
    kept.reverts = Some(reverted.id);
    history::mark(connection, owner, reverted.id, kept.id).await?;
    history::record(connection, owner, kept.clone()).await?;
    let stored = history::find(connection, owner, kept.id).await?;
    Ok(stored.unwrap_or(kept))
}

/// Lets messages teach nothing any more, and withdraws what they taught. Learning that has read them and not yet committed decides again.
async fn untaught(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    (from, to): (i64, i64),
) -> StoreResult<Vec<Item>> {
    owned(UNTEACH, owner)
        .bind(session.0)
        .bind(from)
        .bind(to)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    owners::raise_erase_epoch(connection, owner).await?;
    memories::withdraw(connection, owner, session, from + 1..=to).await
}
