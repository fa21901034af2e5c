//! What was said and is not indexed yet: a person's next request finds what the last one said.

use std::collections::HashSet;

use tidemark_domain::ids::{MessageId, Owner, Timestamp};
use tidemark_domain::memory::{Memory, consolidation, episodic};
use tidemark_domain::session::Message;

use crate::ports::store::{Store, StoreResult};

/// How much text of messages that are not yet indexed is looked through, in bytes. Ours: some milliseconds of work.
const UNINDEXED_BYTES: usize = 256 * 1024;

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
