//! Sessions and their messages.

use async_trait::async_trait;
use tidemark_domain::ids::{ChangeId, MessageId, Owner, SessionId, Timestamp, TurnId};
use tidemark_domain::session::{MemoryMode, Message, Role, Session};

use super::jobs::NewJob;
use super::store::{Created, Cursor, Idempotency, Page, StoreError, StoreResult};

/// A session to be made.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Its title.
    pub title: Option<String>,
    /// Its labels.
    pub labels: Vec<String>,
    /// The entry it comes through.
    pub channel: String,
    /// The mode of turns that name none.
    pub memory: MemoryMode,
    /// When.
    pub now: Timestamp,
}

/// What to change of a session; what is `None` stays.
#[derive(Clone, Debug, Default)]
pub struct SessionChange {
    /// A new title; `Some(None)` removes it.
    pub title: Option<Option<String>>,
    /// New labels.
    pub labels: Option<Vec<String>>,
    /// A new default mode.
    pub memory: Option<MemoryMode>,
}

/// A message of the past, to be imported.
#[derive(Clone, Debug)]
pub struct ImportedMessage {
    /// Its id.
    pub id: MessageId,
    /// Who speaks: user, assistant or system. Tool exchanges cannot be imported.
    pub role: Role,
    /// What is said.
    pub content: String,
    /// The speaker's name.
    pub name: Option<String>,
    /// May become memory.
    pub learnable: bool,
    /// When it was said.
    pub created_at: Timestamp,
}

/// An import.
#[derive(Clone, Debug)]
pub struct NewImport {
    /// The messages, in their order.
    pub messages: Vec<ImportedMessage>,
    /// Enqueued with them.
    pub jobs: Vec<NewJob>,
    /// The id of this change.
    pub change: ChangeId,
    /// When.
    pub now: Timestamp,
}

/// An import was not done.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// No such session of this owner.
    #[error("there is no such session")]
    SessionNotFound,
    /// A turn is running: its messages belong together.
    #[error("a turn is running in this session")]
    SessionBusy,
    /// The key was used with another body.
    #[error("the idempotency key was used with another body")]
    IdempotencyMismatch,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A creation with an idempotency key was not done.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The key was used with another body.
    #[error("the idempotency key was used with another body")]
    IdempotencyMismatch,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The outcome of a change that names the version it was decided on.
#[derive(Clone, Debug, PartialEq)]
pub enum Updated<T> {
    /// Done.
    Done(T),
    /// There is no such thing.
    NotFound,
    /// It has changed since.
    Stale,
}

/// Sessions and their messages.
#[async_trait]
pub trait SessionRepository: Send + Sync + 'static {
    /// Stores a session.
    async fn create_session(
        &self,
        owner: Owner,
        session: NewSession,
        idempotency: Option<Idempotency>,
    ) -> Result<Created<Session>, CreateError>;

    /// The session, if it is this owner's.
    async fn session(&self, owner: Owner, id: SessionId) -> StoreResult<Option<Session>>;

    /// Sessions by `updated_at`, newest first; `text` keeps those whose title holds it, ignoring the case of ASCII letters.
    async fn list_sessions(
        &self,
        owner: Owner,
        text: Option<&str>,
        after: Option<Cursor>,
        limit: u32,
    ) -> StoreResult<Page<Session>>;

    /// Changes a session; with `expected` only in that version.
    async fn update_session(
        &self,
        owner: Owner,
        id: SessionId,
        expected: Option<i64>,
        change: SessionChange,
        now: Timestamp,
    ) -> StoreResult<Updated<Session>>;

    /// Removes a session with its messages, turns and jobs; with `forget` also the memories learned from it alone, while a memory
    /// with other sources loses only these. The turns that went with it; `None` if there is no such session. A runner of one of its turns
    /// finds its fence gone.
    async fn delete_session(
        &self,
        owner: Owner,
        id: SessionId,
        forget: bool,
    ) -> StoreResult<Option<Vec<TurnId>>>;

    /// Messages after `after_seq`, ascending; `None` if there is no such session.
    async fn messages(
        &self,
        owner: Owner,
        id: SessionId,
        after_seq: i64,
        limit: u32,
    ) -> StoreResult<Option<Page<Message>>>;

    /// The newest `limit` messages before `before_seq` (or of all), ascending. What a window is built from.
    async fn history(
        &self,
        owner: Owner,
        id: SessionId,
        before_seq: Option<i64>,
        limit: u32,
    ) -> StoreResult<Vec<Message>>;

    /// Appends messages of the past in their order, and enqueues the jobs, in one transaction and as one change of what is remembered.
    async fn import_messages(
        &self,
        owner: Owner,
        id: SessionId,
        import: NewImport,
        idempotency: Option<Idempotency>,
    ) -> Result<Created<Vec<Message>>, ImportError>;
}
