//! Leaves out chunks that say nothing but facts that have ended: they have no key by which they would have ended with them.

use std::collections::{BTreeSet, HashMap};

use tidemark_domain::ids::{MemoryId, MessageId, Owner};
use tidemark_domain::memory::index::search::{Query, Search};
use tidemark_domain::memory::outdated::outdated;
use tidemark_domain::memory::recall::{Moment, Standing};
use tidemark_domain::memory::{Layer, Memory};

use super::fresh::Fresh;
use super::indexes::Indexes;
use crate::ports::memories::MemoryRepository;
use crate::ports::store::StoreResult;

/// How often it is searched anew, each time without what was found to be over. Ours: each time as many candidates as are looked at are judged, so that only
/// somebody with thousands of such chunks of one subject sees fewer candidates than there are.
const ROUNDS: usize = 8;

/// Searches as if what is over had ended when its facts did: it counts for nothing, and others take its place. Without an ended fact behind any candidate
/// this is one search.
pub(super) async fn search(
    store: &dyn MemoryRepository,
    indexes: &Indexes,
    (owner, newest): (Owner, i64),
    fresh: &Fresh,
    mut query: Query,
) -> StoreResult<Search> {
    let mut judged = BTreeSet::new();
    let mut rounds = 1;
    loop {
        let beside = fresh.upserts();
        let mut search = indexes.search(owner, newest, beside, query.clone()).await?;
        let new: Vec<MessageId> = search.doubtful.difference(&judged).copied().collect();
        let over = standings(store, owner, fresh, &new, &query.moment).await?;
        if over.is_empty() || rounds == ROUNDS {
            search.found.retain(|scored| !over.contains_key(&scored.id));
            return Ok(search);
        }
        judged.extend(new);
        query.filter.standings.extend(over);
        rounds += 1;
    }
}

/// How the chunks of these messages stand that are over.
async fn standings(
    store: &dyn MemoryRepository,
    owner: Owner,
    fresh: &Fresh,
    messages: &[MessageId],
    moment: &Moment,
) -> StoreResult<HashMap<MemoryId, Standing>> {
    if messages.is_empty() {
        return Ok(HashMap::new());
    }
    let mut learned = store.memories_from(owner, messages).await?;
    for turned in &fresh.turned {
        if let Some(memory) = learned.iter_mut().find(|memory| memory.id == turned.id) {
            memory.clone_from(turned);
        }
    }
    let stored: BTreeSet<MemoryId> = learned.iter().map(|memory| memory.id).collect();
    let unstored = fresh.made.iter().filter(|memory| {
        !stored.contains(&memory.id)
            && (memory.sources.iter()).any(|source| messages.contains(&source.message_id))
    });
    Ok(outdated(learned.iter().chain(unstored), moment))
}

/// Takes those out of some preferences that are over.
pub(super) async fn leave_out(
    store: &dyn MemoryRepository,
    (indexes, owner, newest): (&Indexes, Owner, i64),
    fresh: &Fresh,
    preferences: &mut Vec<Memory>,
    moment: &Moment,
) -> StoreResult<()> {
    let unkeyed = (preferences.iter()).filter(|m| m.layer == Layer::Episodic && m.key.is_none());
    let messages: BTreeSet<MessageId> = unkeyed
        .flat_map(|memory| memory.sources.iter().map(|source| source.message_id))
        .collect();
    if messages.is_empty() {
        return Ok(());
    }
    let turned = fresh
        .turned
        .iter()
        .filter(|m| Standing::from(*m).has_ended());
    let turned: BTreeSet<MessageId> = turned
        .flat_map(|memory| memory.sources.iter().map(|source| source.message_id))
        .filter(|message| messages.contains(message))
        .collect();
    let mut ended = indexes.ended(owner, newest, messages).await?;
    ended.extend(turned);
    let ended: Vec<MessageId> = ended.into_iter().collect();
    let over = standings(store, owner, fresh, &ended, moment).await?;
    preferences.retain(|memory| !over.contains_key(&memory.id));
    Ok(())
}

#[cfg(test)]
mod tests;
