//! What all persistence ports share.

use std::error::Error;
use std::sync::Arc;

use tidemark_domain::ids::Timestamp;

use super::changes::ChangeRepository;
use super::context::ContextRepository;
use super::embeddings::EmbeddingRepository;
use super::fading::FadingRepository;
use super::jobs::JobRepository;
use super::keys::KeyRepository;
use super::learning::LearningRepository;
use super::memories::MemoryRepository;
use super::owners::OwnerRepository;
use super::sessions::SessionRepository;
use super::turns::TurnRepository;
use super::users::UserRepository;

/// The store did not do what it was asked to do, and this is nobody's decision.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, or refused for load; nothing was changed.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// The owner was erased meanwhile: nothing was changed, and nothing is stored for them any more. Whoever asks again under the name is
    /// somebody new.
    #[error("the owner is gone")]
    OwnerGone,
    /// The connection broke while a transaction was being committed: it may or may not have happened. Read again before repeating.
    #[error("the outcome of the transaction is unknown")]
    OutcomeUnknown(#[source] Box<dyn Error + Send + Sync>),
    /// A row that this program cannot have written, or a statement it should not have sent.
    #[error("the store holds or refused something unexpected: {what}")]
    Corrupt {
        /// Table, column or statement; no user's data.
        what: String,
        /// The adapter's error, where there is one.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
}

impl StoreError {
    /// The same error, for each of those whom one failure concerns.
    #[must_use]
    pub fn shared(self: &Arc<Self>) -> Self {
        let cause = Box::new(Arc::clone(self));
        match &**self {
            Self::Unavailable(_) => Self::Unavailable(cause),
            Self::OwnerGone => Self::OwnerGone,
            Self::OutcomeUnknown(_) => Self::OutcomeUnknown(cause),
            Self::Corrupt { what, .. } => Self::Corrupt {
                what: what.clone(),
                source: Some(cause),
            },
        }
    }
}

/// Shorthand of the persistence ports.
pub type StoreResult<T> = Result<T, StoreError>;

/// Makes a creation repeatable: the same key of the same user on the same operation yields the same resource for 24 hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The caller's key, 1–255 visible ASCII characters.
    pub key: String,
    /// Method and full path.
    pub operation: String,
    /// SHA-256 of the body.
    pub body_hash: [u8; 32],
}

/// The outcome of a creation that may have happened before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created<T> {
    /// The resource, as it is now.
    pub value: T,
    /// It had been created by an earlier request with the same key.
    pub replayed: bool,
}

/// How long an idempotency key is kept: 24 hours, the contract's number.
pub const IDEMPOTENCY_HOURS: i64 = 24;

/// A place in a list ordered by time and id, newest first: stable under insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Time of the last item given.
    pub at: Timestamp,
    /// Its id.
    pub id: uuid::Uuid,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The items, in order.
    pub items: Vec<T>,
    /// There are more behind the last one.
    pub more: bool,
}

/// All persistence ports in one object: a store implements each, and is plugged in as a whole (B22).
pub trait Store:
    OwnerRepository
    + SessionRepository
    + TurnRepository
    + MemoryRepository
    + ContextRepository
    + ChangeRepository
    + JobRepository
    + LearningRepository
    + FadingRepository
    + EmbeddingRepository
    + UserRepository
    + KeyRepository
{
}

impl<T> Store for T where
    T: OwnerRepository
        + SessionRepository
        + TurnRepository
        + MemoryRepository
        + ContextRepository
        + ChangeRepository
        + JobRepository
        + LearningRepository
        + FadingRepository
        + EmbeddingRepository
        + UserRepository
        + KeyRepository
{
}
