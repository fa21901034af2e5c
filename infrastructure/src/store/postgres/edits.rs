//! New versions of memories: edited, or put back when a change is undone.

use sqlx::PgConnection;
use tidemark_application::ports::changes::{Edit, Reversal, RevertError};
use tidemark_application::ports::memories::IndexedMemory;
use tidemark_application::ports::sessions::Updated;
use tidemark_domain::ids::{Owner, SessionId, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::{Change, ChangeKind, Item, Op, released};
use tidemark_domain::memory::conflict::Touched;
use tidemark_domain::memory::forgetting::fades_at;
use uuid::Uuid;

use super::changes::Change as Numbered;
use super::rows::owned;
use super::transaction::Abort;
use super::{forget, formers, history, jobs, lines, memories, owners, sessions};

const REWRITE: &str = "
UPDATE memories m SET content = $4, identity = $5, identity_hash = sha256(convert_to($5, 'UTF8')), scope = $6, kind = $7, layer = $8, state = $9,
    importance = $10, confidence = $11, trust = $12, pinned = $13, key = $14, valid_from = $15, valid_to = $16, superseded_by = $17,
    expires_at = $18, last_access = $19, version = $20, terms = $21, change = $22, fades_at = $23, ended_at = $24
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = $3";

const KEEP_SOURCES: &str = "
DELETE FROM memory_sources s WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.memory_id = $3 AND s.message_id <> ALL($4)";

/// They are of the old content.
const UNEMBED: &str =
    "DELETE FROM memory_vectors WHERE tenant_id = $1 AND owner_id = $2 AND memory_id = $3";

const UNTEACH: &str = "
UPDATE messages m SET learnable = false
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.session_id = $3 AND m.seq > $4 AND m.seq <= $5";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[REWRITE, KEEP_SOURCES, UNEMBED, UNTEACH];

/// Stores all that a memory is, but for its sources and uses. With another content than it was seen with it has no vectors any more.
async fn rewrite(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Numbered,
    seen: &Memory,
    item: &IndexedMemory,
) -> Result<(), sqlx::Error> {
    let memory = &item.memory;
    if memory.content != seen.content {
        owned(UNEMBED, owner)
            .bind(memory.id.0)
            .execute(&mut *tx)
            .await?;
    }
    owned(REWRITE, owner)
        .bind(memory.id.0)
        .bind(&memory.content)
        .bind(&item.identity)
        .bind(memory.scope.as_str())
        .bind(memory.kind.as_str())
        .bind(memory.layer.as_str())
        .bind(memory.state.as_str())
        .bind(i16::from(memory.importance))
        .bind(memory.confidence)
        .bind(memory.trust.as_str())
        .bind(memory.pinned)
        .bind(memory.key.as_deref())
        .bind(memory.valid_from)
        .bind(memory.valid_to)
        .bind(memory.superseded_by.map(|id| id.0))
        .bind(memory.expires_at)
        .bind(memory.last_access)
        .bind(memory.version)
        .bind(item.document.as_bytes())
        .bind(change.number())
        .bind(fades_at(memory))
        .bind(memory.ended_at)
        .execute(tx)
        .await?;
    Ok(())
}

/// Takes those sources of a memory away that it is not to have.
async fn keep_sources(
    tx: &mut PgConnection,
    owner: Owner,
    memory: &Memory,
) -> Result<(), sqlx::Error> {
    let sources = memory.sources.iter();
    owned(KEEP_SOURCES, owner)
        .bind(memory.id.0)
        .bind(sources.map(|s| s.message_id.0).collect::<Vec<_>>())
        .execute(tx)
        .await?;
    Ok(())
}

/// Whether memories are in the versions in which they were seen; none if one of them is gone.
async fn as_seen(
    tx: &mut PgConnection,
    owner: Owner,
    seen: &[&Memory],
    now: Timestamp,
) -> Result<Option<bool>, sqlx::Error> {
    let ids: Vec<Uuid> = seen.iter().map(|memory| memory.id.0).collect();
    let found = memories::by_id(tx, owner, &ids, Some(now)).await?;
    let version = |id| found.iter().find(|m| m.id == id).map(|m| m.version);
    if seen.iter().any(|memory| version(memory.id).is_none()) {
        return Ok(None);
    }
    Ok(Some(
        (seen.iter()).all(|memory| version(memory.id) == Some(memory.version)),
    ))
}

pub(super) async fn edit(
    tx: &mut PgConnection,
    owner: Owner,
    edit: &Edit,
) -> Result<Updated<Memory>, sqlx::Error> {
    let now = edit.now;
    let change = &Numbered::begin(tx, owner).await?;
    let echoes: Vec<&Memory> = edit.echoes.iter().map(|(seen, _)| seen).collect();
    match as_seen(tx, owner, &[&edit.before], now).await? {
        None => return Ok(Updated::NotFound),
        Some(false) => return Ok(Updated::Stale),
        Some(true) if as_seen(tx, owner, &echoes, now).await? != Some(true) => {
            return Ok(Updated::Stale);
        }
        Some(true) => {}
    }
    forget::expire(tx, owner, change, Some(now)).await?;
    rewrite(tx, owner, change, &edit.before, &edit.after).await?;
    formers::keep(tx, owner, change, &edit.after.memory, edit.former.as_ref()).await?;
    forget::bury_pairs(tx, owner, &edit.buried, now).await?;
    jobs::enqueue_for_owner(tx, owner, &edit.jobs, now).await?;
    let ended: Vec<Memory> = edit.echoes.iter().map(|(_, ended)| ended.clone()).collect();
    lines::stand(tx, owner, change, &ended).await?;
    let mut items = edit.items.clone();
    if edit.releases {
        let ended = lines::ended(tx, owner, edit.before.id).await?;
        let (released, kept): (Vec<Memory>, Vec<Item>) = ended.iter().map(released).unzip();
        lines::stand(tx, owner, change, &released).await?;
        items.extend(kept);
    }
    let touched = Touched::by([&edit.before, &edit.after.memory]);
    items.extend(lines::settle(tx, owner, change, touched, Some(now)).await?);
    let kept =
        Change::new(edit.change, ChangeKind::Edit, now, items).of_session(edit.before.session_id);
    history::record(tx, owner, kept).await?;
    let stored = memories::by_id(tx, owner, &[edit.before.id.0], Some(now)).await?;
    Ok(stored
        .into_iter()
        .next()
        .map_or(Updated::NotFound, Updated::Done))
}

pub(super) async fn revert(
    tx: &mut PgConnection,
    owner: Owner,
    reversal: &Reversal,
) -> Result<Change, Abort<RevertError>> {
    let now = reversal.now;
    if let Some((session, ..)) = reversal.untaught {
        // The session first, as everybody locks them.
        sessions::lock(tx, owner, session).await?;
        owners::raise_epoch(tx, owner).await?;
    }
    let change = &Numbered::begin(tx, owner).await?;
    let found = history::find(tx, owner, reversal.reverted).await?;
    let reverted = found.ok_or(Abort::Decided(RevertError::NotFound))?;
    if let Some(by) = reverted.reverted_by {
        return Err(Abort::Decided(RevertError::Already(by)));
    }
    let restored = reversal.restored.iter().map(|(seen, _)| seen);
    let seen: Vec<&Memory> = reversal.removed.iter().chain(restored).collect();
    if as_seen(tx, owner, &seen, now).await? != Some(true) {
        return Err(Abort::Decided(RevertError::Conflict));
    }
    forget::expire(tx, owner, change, Some(now)).await?;
    let mut items = Vec::new();
    if let Some(range) = reversal.untaught {
        items.extend(untaught(tx, owner, change, range).await?);
    }
    let removed: Vec<Uuid> = reversal.removed.iter().map(|memory| memory.id.0).collect();
    let mut touched = lines::ended_by(tx, owner, &removed).await?;
    forget::bury_all(tx, owner, change, &removed, now).await?;
    items.extend(reversal.removed.iter().map(|m| Item::removed(m.id)));
    for (seen, restored) in &reversal.restored {
        let again = formers::said_again(tx, owner, &restored.memory).await?;
        touched = Touched::joined(touched, lines::ended_by(tx, owner, &again).await?);
        formers::remove(tx, owner, change, &again).await?;
        rewrite(tx, owner, change, seen, restored).await?;
        keep_sources(tx, owner, &restored.memory).await?;
        formers::keep(tx, owner, change, &restored.memory, None).await?;
        items.push(Item::changed(seen, &restored.memory, Op::Updated));
        touched = Touched::joined(touched, Touched::by([seen, &restored.memory]));
    }
    items.extend(lines::settle(tx, owner, change, touched, Some(now)).await?);
    jobs::enqueue_for_owner(tx, owner, &reversal.jobs, now).await?;
    let mut kept = Change::new(reversal.change, ChangeKind::Revert, now, items)
        .of_session(reverted.session_id);
    kept.reverts = Some(reverted.id);
    history::mark(tx, owner, reverted.id, kept.id).await?;
    history::record(tx, owner, kept.clone()).await?;
    Ok(history::find(tx, owner, kept.id).await?.unwrap_or(kept))
}

/// Lets messages teach nothing any more, and withdraws what they taught.
async fn untaught(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Numbered,
    (session, from, to): (SessionId, i64, i64),
) -> Result<Vec<Item>, sqlx::Error> {
    owned(UNTEACH, owner)
        .bind(session.0)
        .bind(from)
        .bind(to)
        .execute(&mut *tx)
        .await?;
    forget::withdraw(tx, owner, change, session, from + 1..=to).await
}
