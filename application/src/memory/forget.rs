//! Forgetting on request.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidemark_domain::ids::{MemoryId, MessageId, Owner, Timestamp};
use tidemark_domain::memory::analysis::fold;
use tidemark_domain::memory::extraction::{say_the_same, tells};
use tidemark_domain::memory::{Layer, Memory, Source, consolidation, episodic};
use tidemark_domain::session::Message;

use super::{CONFLICT_TRIES, fresh};
use crate::ports::clock::Clock;
use crate::ports::ids::Ids;
use crate::ports::memories::Forgetting;
use crate::ports::sessions::Updated;
use crate::ports::store::{Store, StoreResult};

/// Forgets.
pub struct Forget {
    store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    unindexed: u32,
}

impl std::fmt::Debug for Forget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forget").finish_non_exhaustive()
    }
}

impl Forget {
    /// From this store. Recall looks through so many messages that are not indexed yet, and what it tells of them can be forgotten.
    pub fn new(
        store: Arc<dyn Store>,
        ids: Arc<dyn Ids>,
        clock: Arc<dyn Clock>,
        unindexed: u32,
    ) -> Self {
        Self {
            store,
            ids,
            clock,
            unindexed,
        }
    }

    /// Forgets a memory, and what says the same from the same messages in another layer: whoever forgets a statement does not want
    /// its verbatim told instead, nor the other way round. What it said before it was edited goes with it. The same messages never teach it
    /// again.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn run(
        &self,
        owner: Owner,
        id: MemoryId,
        expected: Option<i64>,
    ) -> StoreResult<Forgotten> {
        for _ in 0..CONFLICT_TRIES {
            let stored = self.store.memories(owner, &[id]).await?.pop();
            let fresh = stored.is_none();
            let memory = match stored {
                Some(memory) => memory,
                None => match self.fresh(owner, id).await? {
                    Some(memory) => memory,
                    None => return Ok(Forgotten::NotFound),
                },
            };
            if expected.is_some_and(|version| version != memory.version) {
                break;
            }
            let store = self.store.as_ref();
            let mut said = store.formers(owner, id).await?;
            let mut gone: Vec<MemoryId> = said.iter().map(|former| former.id).collect();
            said.push(memory.clone());
            let mut buried = Vec::new();
            for memory in &said {
                let found = echoes(store, owner, memory).await?;
                gone.extend(found.into_iter().map(|echo| echo.id));
                buried.extend(burials(store, owner, memory, self.clock.now()).await?);
            }
            gone.retain(|other| *other != id);
            let what = Forgetting {
                id,
                // What goes with it was decided on this version.
                expected: if fresh {
                    expected
                } else {
                    Some(memory.version)
                },
                fresh,
                echoes: gone,
                buried,
                change: self.ids.change(),
                now: self.clock.now(),
            };
            match self.store.forget(owner, what).await? {
                Updated::Done(_) => return Ok(Forgotten::Done),
                Updated::NotFound => return Ok(Forgotten::NotFound),
                Updated::Stale => {}
            }
        }
        Ok(Forgotten::Stale)
    }

    /// A memory that recall has told before its message is indexed.
    async fn fresh(&self, owner: Owner, id: MemoryId) -> StoreResult<Option<Memory>> {
        let (store, now) = (self.store.as_ref(), self.clock.now());
        let made = fresh::memories(store, owner, self.unindexed, now).await?;
        if let Some(memory) = made.into_iter().find(|memory| memory.id == id) {
            return Ok(Some(memory));
        }
        // It may have been indexed between the two looks.
        Ok(self.store.memories(owner, &[id]).await?.pop())
    }
}

/// What the messages behind a memory could teach again later: chunks that hold what is forgotten, if they are indexed after this; statements
/// in a forgotten chunk, if they are consolidated after this. What else a message says is not forgotten with it.
pub(super) async fn burials(
    store: &dyn Store,
    owner: Owner,
    memory: &Memory,
    now: Timestamp,
) -> StoreResult<Vec<(MessageId, String)>> {
    let said = fold(&memory.content);
    let mut buried = Vec::new();
    for source in &memory.sources {
        let Some(message) = source_message(store, owner, source).await? else {
            continue;
        };
        let chunks = episodic::memories(&message, now);
        let contains = |c: &&Memory| fold(&c.content).contains(&said);
        let contained = chunks.iter().any(|c| contains(&c));
        let held = chunks
            .iter()
            .filter(|c| contains(c) || (!contained && tells(&c.content, &memory.content)));
        buried.extend(held.map(|c| (source.message_id, consolidation::identity(c))));
        if memory.made_in() == Layer::Episodic {
            let stated = consolidation::said(&message);
            let inside = stated.into_iter().filter(|(_, s)| said.contains(&fold(s)));
            buried.extend(inside.map(|(identity, _)| (source.message_id, identity)));
        }
    }
    Ok(buried)
}

/// The message behind a memory, if it is still there.
pub(super) async fn source_message(
    store: &dyn Store,
    owner: Owner,
    source: &Source,
) -> StoreResult<Option<Message>> {
    let page = store
        .messages(owner, source.session_id, source.seq - 1, 1)
        .await?;
    let found = page.and_then(|mut page| page.items.pop());
    Ok(found.filter(|message| message.id == source.message_id))
}

/// What says the same as a memory, from the same messages: a chunk that contains the statement, or tells it where none has its words; a statement that the
/// chunk contains or tells, or that says the same in other words, if it has no other source.
pub(super) async fn echoes(
    store: &dyn Store,
    owner: Owner,
    memory: &Memory,
) -> StoreResult<Vec<Memory>> {
    let messages: Vec<MessageId> = memory.sources.iter().map(|s| s.message_id).collect();
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let from: BTreeSet<MessageId> = messages.iter().copied().collect();
    let said = fold(&memory.content);
    let mut found = store.memories_from(owner, &messages).await?;
    let contains = |other: &Memory| fold(&other.content).contains(&said);
    let contained = found
        .iter()
        .any(|other| other.made_in() == Layer::Episodic && contains(other));
    found.retain(|other| {
        let echoes = match (memory.made_in(), other.made_in()) {
            (Layer::Episodic, Layer::Episodic) => false,
            (_, Layer::Episodic) => {
                contains(other) || (!contained && tells(&other.content, &memory.content))
            }
            (layer, _) => {
                let same = if layer == Layer::Episodic {
                    said.contains(&fold(&other.content)) || tells(&memory.content, &other.content)
                } else {
                    say_the_same(&memory.content, &other.content)
                };
                same && other.sources.iter().all(|s| from.contains(&s.message_id))
            }
        };
        echoes && other.id != memory.id
    });
    Ok(found)
}

/// The outcome of forgetting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// It is gone.
    Done,
    /// There is no such memory of this owner.
    NotFound,
    /// It has changed since the caller saw it.
    Stale,
}
