//! Editing: a new version of a memory, as a person wants it.

use std::sync::Arc;

use tidemark_domain::ids::{MemoryId, MessageId, Owner};
use tidemark_domain::memory::change::{
    Item, Op, Revision, Standing, echoed, former, leaves_its_key, revise,
};
use tidemark_domain::memory::{Memory, State, consolidation, gate};

use super::forget::{burials, echoes};
use super::{CONFLICT_TRIES, remember};
use crate::learning::embed::embed_job;
use crate::ports::changes::Edit;
use crate::ports::clock::Clock;
use crate::ports::ids::Ids;
use crate::ports::sessions::Updated;
use crate::ports::store::{Store, StoreResult};

/// Edits.
pub struct EditMemory {
    store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    embeds: bool,
}

impl std::fmt::Debug for EditMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EditMemory").finish_non_exhaustive()
    }
}

/// The outcome of an edit.
#[derive(Clone, Debug, PartialEq)]
pub enum Edited {
    /// The memory as it is now.
    Done(Box<Memory>),
    /// There is no such memory of this owner.
    NotFound,
    /// It has changed since the caller saw it.
    Stale,
    /// It is superseded: whether it holds is decided by what is said of its key.
    Superseded,
    /// It waits for confirmation and cannot be archived: from the archive it could be told.
    Quarantined,
}

impl EditMemory {
    /// In this store.
    pub fn new(store: Arc<dyn Store>, ids: Arc<dyn Ids>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            ids,
            clock,
            embeds: false,
        }
    }

    /// Has what is stored embedded, where there is an embedder.
    #[must_use]
    pub fn with_embedding(mut self, embeds: bool) -> Self {
        self.embeds = embeds;
        self
    }

    /// Makes a new version of a memory, without credentials. What said the same as the old content, from the same messages in another layer,
    /// stands no longer: whoever corrects a statement does not want its verbatim told beside it. Nor do these messages teach the old content
    /// later; what they say of a key is left to the key. A statement about a key that comes to say something else stays on record as what was
    /// believed until then; one that is taken off its key leaves ended what it had ended. What looks like an instruction to the model waits
    /// for confirmation, unless it is confirmed with the edit.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn run(
        &self,
        owner: Owner,
        id: MemoryId,
        expected: Option<i64>,
        mut revision: Revision,
    ) -> StoreResult<Edited> {
        revision.content = (revision.content).map(|content| gate::redact(content.trim()).text);
        for _ in 0..CONFLICT_TRIES {
            let Some(before) = self.store.memories(owner, &[id]).await?.pop() else {
                return Ok(Edited::NotFound);
            };
            if expected.is_some_and(|version| version != before.version) {
                break;
            }
            let asked = revision.state;
            if asked == Some(Standing::Current) && before.state == State::Superseded {
                return Ok(Edited::Superseded);
            }
            let now = self.clock.now();
            let after = revise(&before, revision.clone(), now);
            if asked == Some(Standing::Archived) && after.state == State::Quarantined {
                return Ok(Edited::Quarantined);
            }
            if same(&before, &after) {
                return Ok(Edited::Done(Box::new(before)));
            }
            let mut items = vec![Item::changed(&before, &after, Op::Updated)];
            let mut ended = Vec::new();
            for echo in self.echoes(owner, &before, &after).await? {
                if let Some((as_ended, item)) = echoed(&echo, &after, now) {
                    ended.push((echo, as_ended));
                    items.push(item);
                }
            }
            let former = former(&before, &after, self.ids.memory());
            let reworded = before.content != after.content;
            let buried = if reworded && before.key.is_none() {
                self.buried(owner, &before).await?
            } else {
                Vec::new()
            };
            let edit = Edit {
                releases: leaves_its_key(&before, &revision, &after),
                jobs: embed_job(self.ids.as_ref(), self.embeds && reworded),
                buried,
                before,
                after: remember::index(after),
                former: former.map(remember::index),
                echoes: ended,
                items,
                change: self.ids.change(),
                now,
            };
            match self.store.edit_memory(owner, edit).await? {
                Updated::Done(memory) => return Ok(Edited::Done(Box::new(memory))),
                Updated::NotFound => return Ok(Edited::NotFound),
                Updated::Stale => {}
            }
        }
        Ok(Edited::Stale)
    }

    /// What the old content said, so that the messages behind it do not say it anew.
    async fn buried(&self, owner: Owner, before: &Memory) -> StoreResult<Vec<(MessageId, String)>> {
        let mut buried = burials(self.store.as_ref(), owner, before, self.clock.now()).await?;
        let identity = consolidation::identity(before);
        let sources = before.sources.iter();
        buried.extend(sources.map(|source| (source.message_id, identity.clone())));
        Ok(buried)
    }

    async fn echoes(
        &self,
        owner: Owner,
        before: &Memory,
        after: &Memory,
    ) -> StoreResult<Vec<Memory>> {
        if before.content == after.content {
            return Ok(Vec::new());
        }
        let mut found = echoes(self.store.as_ref(), owner, before).await?;
        found.retain(|memory| matches!(memory.state, State::Current | State::Archived));
        Ok(found)
    }
}

/// Whether two versions differ in nothing but their number.
fn same(before: &Memory, after: &Memory) -> bool {
    let mut after = after.clone();
    after.version = before.version;
    *before == after
}
