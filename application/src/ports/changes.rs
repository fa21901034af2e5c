//! Changes of what is remembered: edits, and what lists and undoes changes.

use async_trait::async_trait;
use tidemark_domain::ids::{ChangeId, MemoryId, MessageId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::{Change, Item};

use super::jobs::NewJob;
use super::memories::IndexedMemory;
use super::sessions::Updated;
use super::store::{Cursor, Page, StoreError, StoreResult};

/// A new version of a memory.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The memory as it was decided on.
    pub before: Memory,
    /// As it is to be; its version is one more.
    pub after: IndexedMemory,
    /// What the memory said until now, to be kept as one of its own beside the edited one. It goes when that goes, whatever the way, and
    /// expires with it.
    pub former: Option<IndexedMemory>,
    /// Others that said the same from the same messages, as they were decided on and as they are to be: they stand no longer.
    pub echoes: Vec<(Memory, Memory)>,
    /// What the memory had ended stays ended, as when it is forgotten: it speaks of its key no more. The change names that too.
    pub releases: bool,
    /// What is kept of it: what became of the memory and the echoes.
    pub items: Vec<Item>,
    /// (Message, identity) pairs that must never be learned again: what the old content said.
    pub buried: Vec<(MessageId, String)>,
    /// Of the owner, enqueued with it.
    pub jobs: Vec<NewJob>,
    /// The id of this change.
    pub change: ChangeId,
    /// When.
    pub now: Timestamp,
}

/// How a change is undone.
#[derive(Clone, Debug)]
pub struct Reversal {
    /// The change.
    pub reverted: ChangeId,
    /// The id of the change that undoes it.
    pub change: ChangeId,
    /// Memories to be removed, in the version that was seen, and never to be learned again from the same messages.
    pub removed: Vec<Memory>,
    /// Memories to be put back: as they were seen, and as they are to be.
    pub restored: Vec<(Memory, IndexedMemory)>,
    /// Messages of a session, behind the first number up to the second, that are to teach nothing any more; what they taught is withdrawn.
    pub untaught: Option<(SessionId, i64, i64)>,
    /// Of the owner, enqueued with it.
    pub jobs: Vec<NewJob>,
    /// When.
    pub now: Timestamp,
}

/// Why a change was not undone.
#[derive(Debug, thiserror::Error)]
pub enum RevertError {
    /// There is no such change of this owner.
    #[error("there is no such change")]
    NotFound,
    /// It has been undone already, by this change.
    #[error("the change has been reverted already")]
    Already(ChangeId),
    /// Something that the decision was made on has moved. Nothing was undone; decide again.
    #[error("the reversal was decided on a state that has moved")]
    Conflict,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The changes of an owner's memories. Each commit that changes memories keeps one, with the id that it is given, but for those that withdraw
/// messages (a turn that is replaced, a session that is deleted) and for indexing that changes nothing that was known.
///
/// Of a memory that is gone, whatever the way, no values are kept. An import's items are what its messages have taught by now.
#[async_trait]
pub trait ChangeRepository: Send + Sync + 'static {
    /// The memories that this one has ended.
    async fn ended_by(&self, owner: Owner, memory: MemoryId) -> StoreResult<Vec<Memory>>;

    /// What a memory said before it was edited, in the order of time.
    async fn formers(&self, owner: Owner, memory: MemoryId) -> StoreResult<Vec<Memory>>;

    /// Changes, newest first; of one session, if one is named.
    async fn list_changes(
        &self,
        owner: Owner,
        session: Option<SessionId>,
        after: Option<Cursor>,
        limit: u32,
    ) -> StoreResult<Page<Change>>;

    /// A change.
    async fn change(&self, owner: Owner, id: ChangeId) -> StoreResult<Option<Change>>;

    /// What changes did to one memory, oldest first: each change with that one item. Those that were reverted, and their reversals, among them.
    async fn changes_of(&self, owner: Owner, memory: MemoryId) -> StoreResult<Vec<Change>>;

    /// The items about these memories of changes that are later than this one, have not been reverted, and revert nothing themselves.
    async fn later_items(
        &self,
        owner: Owner,
        than: ChangeId,
        memories: &[MemoryId],
    ) -> StoreResult<Vec<Item>>;

    /// Stores a new version of a memory, as one change. With another content it loses its vectors. `Stale` and nothing stored when it, or an echo, is not as it was decided on.
    async fn edit_memory(&self, owner: Owner, edit: Edit) -> StoreResult<Updated<Memory>>;

    /// Undoes a change as a whole, or not at all. The change that does it.
    async fn revert(&self, owner: Owner, reversal: Reversal) -> Result<Change, RevertError>;
}
