//! Everything that belongs to one user: read part by part, removed as a whole.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tidemark_domain::ids::{Owner, TenantId, Timestamp, TurnId, UserName};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::Change;
use tidemark_domain::session::{Message, Session};
use tidemark_domain::turn::Turn;
use uuid::Uuid;

use super::jobs::Job;
use super::store::StoreResult;

/// A user of whom the store knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownUser {
    /// Whose data it is.
    pub owner: Owner,
    /// When the user was seen first.
    pub since: Timestamp,
}

/// A kind of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Sessions, by id.
    Sessions,
    /// Messages of all sessions, by session and number.
    Messages,
    /// Turns, by id.
    Turns,
    /// Memories in every state, with their sources, by id.
    Memories,
    /// What was done to memories, by id.
    Changes,
    /// What must not be learned again, by what it is about.
    Tombstones,
    /// Derived work that is not done, by id.
    Jobs,
    /// What was made under an idempotency key, by operation and key.
    IdempotencyKeys,
}

impl Part {
    /// Every part, in the order in which an export tells them.
    pub const ALL: [Self; 8] = [
        Self::Sessions,
        Self::Messages,
        Self::Turns,
        Self::Memories,
        Self::Changes,
        Self::Tombstones,
        Self::Jobs,
        Self::IdempotencyKeys,
    ];
}

/// Something that was forgotten. Of what it said nothing is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The memory that was forgotten, or the message that must not teach it again.
    pub subject: Uuid,
    /// When; the first time, where one message had several things forgotten.
    pub forgotten_at: Timestamp,
}

/// What was made under an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedKey {
    /// Method and path.
    pub operation: String,
    /// The caller's key.
    pub key: String,
    /// What was made.
    pub resources: Vec<Uuid>,
    /// When.
    pub created_at: Timestamp,
}

/// One record of a user.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Of [`Part::Sessions`].
    Session(Session),
    /// Of [`Part::Messages`].
    Message(Message),
    /// Of [`Part::Turns`].
    Turn(Box<Turn>),
    /// Of [`Part::Memories`].
    Memory(Box<Memory>),
    /// Of [`Part::Changes`].
    Change(Box<Change>),
    /// Of [`Part::Tombstones`].
    Tombstone(Tombstone),
    /// Of [`Part::Jobs`].
    Job(Job),
    /// Of [`Part::IdempotencyKeys`].
    UsedKey(UsedKey),
}

/// A place in a part, behind a record. The default is before them all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The record's id, or what it is sorted by first.
    pub id: Uuid,
    /// Its number, where it has one.
    pub seq: i64,
    /// Its names, where it has no id.
    pub names: (String, String),
}

impl Record {
    /// Where it stands in its part.
    pub fn place(&self) -> Place {
        let at = |id| Place {
            id,
            ..Place::default()
        };
        match self {
            Self::Session(session) => at(session.id.0),
            Self::Message(message) => Place {
                seq: message.seq,
                ..at(message.session_id.0)
            },
            Self::Turn(turn) => at(turn.id.0),
            Self::Memory(memory) => at(memory.id.0),
            Self::Change(change) => at(change.id.0),
            Self::Tombstone(tombstone) => at(tombstone.subject),
            Self::Job(job) => at(job.id.0),
            Self::UsedKey(used) => Place {
                names: (used.operation.clone(), used.key.clone()),
                ..Place::default()
            },
        }
    }
}

/// What is kept of an erasure: nothing that the user said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its id.
    pub id: Uuid,
    /// When it was done.
    pub erased_at: Timestamp,
    /// How many rows of each table were removed.
    pub removed: BTreeMap<String, u64>,
}

/// An erasure that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erased {
    /// What is told of it.
    pub receipt: Receipt,
    /// The turns that are gone, whose live logs are to go too.
    pub turns: Vec<TurnId>,
}

/// All that belongs to a user.
#[async_trait]
pub trait UserRepository: Send + Sync + 'static {
    /// The user of that name, if there is one. Makes none.
    async fn find_user(&self, tenant: TenantId, user: &UserName) -> StoreResult<Option<KnownUser>>;

    /// Records of a part behind a place, in their order; fewer than `limit` only at the end. What is written meanwhile may be among them.
    async fn records(
        &self,
        owner: Owner,
        part: Part,
        after: &Place,
        limit: u32,
    ) -> StoreResult<Vec<Record>>;

    /// Removes everything that belongs to the owner, and the owner, in one transaction, and leaves the receipt. What somebody else decided
    /// on before is not applied after it: there is nothing left to hang it on ([`OwnerGone`](super::store::StoreError::OwnerGone)), and the
    /// owner's number is never given again. `None` if there is no such owner.
    async fn erase(
        &self,
        owner: Owner,
        receipt: Uuid,
        now: Timestamp,
    ) -> StoreResult<Option<Erased>>;

    /// Returns once the store's own files hold no text of those who were erased, as far as that is in this program's hands. Belongs to each
    /// erasure; one that is cut before it is finished at the next start. Other writes may have to wait meanwhile.
    async fn overwrite_erased(&self) -> StoreResult<()>;
}
