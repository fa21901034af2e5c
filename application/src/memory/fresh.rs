//! What was said and is not indexed yet: a person's next request finds what the last one said.

use std::collections::{HashMap, HashSet};

use tidemark_domain::ids::{MemoryId, MessageId, Owner, Timestamp};
use tidemark_domain::memory::conflict::{Touched, verdicts};
use tidemark_domain::memory::recall::Standing;
use tidemark_domain::memory::{Memory, consolidation, episodic};
use tidemark_domain::session::Message;

use crate::ports::store::{Store, StoreResult};

/// How much text of messages that are not yet indexed is looked through, in bytes. Ours: some milliseconds of work.
const UNINDEXED_BYTES: usize = 256 * 1024;

/// What was said and is not indexed yet, and what it changes.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    /// What the index will make of it, as it will stand.
    pub made: Vec<Memory>,
    /// Stored memories that will stand otherwise because of it, as they will.
    pub turned: Vec<Memory>,
}

impl Fresh {
    /// How the stored memories will stand that will stand otherwise.
    pub fn standings(&self) -> HashMap<MemoryId, Standing> {
        let turned = self.turned.iter();
        turned.map(|m| (m.id, Standing::from(m))).collect()
    }
}

/// What the newest `limit` messages that are not indexed yet say, settled with what is stored of the same keys: what they change is
/// changed for whoever asks next.
///
/// # Errors
/// When the store fails.
pub async fn settled(
    store: &dyn Store,
    owner: Owner,
    limit: u32,
    now: Timestamp,
) -> StoreResult<Fresh> {
    let mut made = memories(store, owner, limit, now).await?;
    let Some(touched) = Touched::by(&made) else {
        return Ok(Fresh {
            made,
            turned: Vec::new(),
        });
    };
    let stored = store.memories_by_key(owner, &touched).await?;
    // What has been indexed since the messages were read.
    made.retain(|memory| stored.iter().all(|known| known.id != memory.id));
    let mut turned = Vec::new();
    for verdict in verdicts(stored.iter().chain(&made)) {
        if let Some(memory) = made.iter_mut().find(|memory| memory.id == verdict.id) {
            verdict.apply(memory);
        } else if let Some(memory) = stored.iter().find(|memory| memory.id == verdict.id) {
            let mut memory = memory.clone();
            verdict.apply(&mut memory);
            turned.push(memory);
        }
    }
    Ok(Fresh { made, turned })
}

/// What the index will make of the newest `limit` messages it has not come to yet, without what was forgotten of it.
///
/// # Errors
/// When the store fails.
pub async fn memories(
    store: &dyn Store,
    owner: Owner,
    limit: u32,
    now: Timestamp,
) -> StoreResult<Vec<Memory>> {
    let messages = store.unindexed(owner, limit).await?;
    // The newest first, and no more text than can be looked through without being felt.
    let mut left = UNINDEXED_BYTES;
    let mut newest: Vec<&Message> = messages.iter().collect();
    newest.sort_by_key(|m| std::cmp::Reverse(m.created_at));
    let made: Vec<Memory> = newest
        .into_iter()
        .take_while(|m| {
            let fits = left > 0;
            left = left.saturating_sub(m.content.len());
            fits
        })
        .flat_map(|m| episodic::memories(m, now))
        .collect();
    unforgotten(store, owner, made).await
}

async fn unforgotten(
    store: &dyn Store,
    owner: Owner,
    made: Vec<Memory>,
) -> StoreResult<Vec<Memory>> {
    if made.is_empty() {
        return Ok(made);
    }
    let taught = |memory: &Memory| -> Vec<(MessageId, String)> {
        let identity = consolidation::identity(memory);
        let sources = memory.sources.iter();
        sources.map(|s| (s.message_id, identity.clone())).collect()
    };
    let pairs: Vec<_> = made.iter().flat_map(taught).collect();
    let buried: HashSet<_> = store.buried(owner, &pairs).await?.into_iter().collect();
    Ok(made
        .into_iter()
        .filter(|memory| !taught(memory).iter().any(|pair| buried.contains(pair)))
        .collect())
}
