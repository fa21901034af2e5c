//! The history of a memory: its versions, what it superseded and what superseded it, the messages behind it.

use tidemark_domain::ids::{ChangeId, MemoryId, Owner, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::{Change, ChangeKind, Op, before};
use tidemark_domain::session::Message;

use super::forget::source_message;
use crate::ports::store::{Store, StoreResult};

/// A statement that is repeated for years has thousands of messages behind it; so many of them are read, each by itself. Ours.
const MOST_MESSAGES: usize = 100;

/// One version of a memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// The memory as it was.
    pub memory: Memory,
    /// What made it so; none for what was learned before changes were kept, or by indexing.
    pub made: Option<Made>,
}

/// What made a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// The change.
    pub change: ChangeId,
    /// Its kind.
    pub kind: ChangeKind,
    /// What it did to the memory.
    pub op: Op,
    /// When.
    pub at: Timestamp,
}

/// A memory's history.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Its versions, newest first; the first is the memory as it is.
    pub versions: Vec<Version>,
    /// What took its place or ended it, as it is now.
    pub superseded_by: Option<Memory>,
    /// What it took the place of or ended, newest first.
    pub supersedes: Vec<Memory>,
    /// The messages behind it that are there, oldest first; of very many some of the newest.
    pub messages: Vec<Message>,
}

/// Reads a memory's history; none if there is no such memory of this owner.
///
/// # Errors
/// When the store fails.
pub async fn history(
    store: &dyn Store,
    owner: Owner,
    id: MemoryId,
) -> StoreResult<Option<History>> {
    let Some(memory) = store.memories(owner, &[id]).await?.pop() else {
        return Ok(None);
    };
    let superseded_by = match memory.superseded_by {
        Some(by) => store.memories(owner, &[by]).await?.pop(),
        None => None,
    };
    // What it said itself is among its versions; what that had ended, it has.
    let formers = store.formers(owner, id).await?;
    let mut supersedes = store.ended_by(owner, id).await?;
    for former in &formers {
        supersedes.extend(store.ended_by(owner, former.id).await?);
    }
    supersedes.retain(|ended| formers.iter().all(|former| former.id != ended.id));
    supersedes.sort_by_key(|m| std::cmp::Reverse((m.valid_from, m.id)));
    let newest = memory.sources.iter().rev().take(MOST_MESSAGES);
    let mut messages = Vec::with_capacity(newest.len());
    for source in newest {
        messages.extend(source_message(store, owner, source).await?);
    }
    messages.sort_by_key(|message| (message.created_at, message.seq));
    Ok(Some(History {
        versions: versions(memory, &store.changes_of(owner, id).await?),
        superseded_by,
        supersedes,
        messages,
    }))
}

/// The versions of a memory, from what it is now back over what each change did to it.
fn versions(memory: Memory, changes: &[Change]) -> Vec<Version> {
    let mut out = Vec::with_capacity(changes.len() + 1);
    let mut now = memory;
    for change in changes.iter().rev() {
        for item in change.items.iter().rev() {
            let earlier = before(&now, item);
            now.version = now.version.max(item.version);
            let last = item.op == Op::Created;
            out.push(Version {
                memory: now,
                made: Some(Made {
                    change: change.id,
                    kind: change.kind,
                    op: item.op,
                    at: change.created_at,
                }),
            });
            now = earlier;
            if last {
                return out;
            }
        }
    }
    out.push(Version {
        memory: now,
        made: None,
    });
    out
}

#[cfg(test)]
mod tests;
