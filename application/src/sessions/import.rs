//! Importing the past: messages that were said elsewhere.

use std::sync::Arc;

use tidemark_domain::ids::{Owner, SessionId, Timestamp};
use tidemark_domain::session::{Message, Role};
use tokio::sync::Notify;

use crate::ports::clock::Clock;
use crate::ports::ids::Ids;
use crate::ports::jobs::{JobKind, NewJob};
use crate::ports::sessions::{ImportError, ImportedMessage, NewImport};
use crate::ports::store::{Created, Idempotency, Store};

/// A message of the past.
#[derive(Clone, Debug)]
pub struct PastMessage {
    /// Who spoke: user, assistant or system.
    pub role: Role,
    /// What was said.
    pub content: String,
    /// The speaker's name.
    pub name: Option<String>,
    /// When it was said.
    pub created_at: Timestamp,
}

/// Imports.
pub struct Import {
    store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    work: Arc<Notify>,
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import").finish_non_exhaustive()
    }
}

impl Import {
    /// Into this store; `work` wakes the workers.
    pub fn new(
        store: Arc<dyn Store>,
        ids: Arc<dyn Ids>,
        clock: Arc<dyn Clock>,
        work: Arc<Notify>,
    ) -> Self {
        Self {
            store,
            ids,
            clock,
            work,
        }
    }

    /// Appends messages to a session in their order. In a session that learns they are indexed without the importance gate, and taken
    /// behind the boundary when that makes the session due: the worker judges it on the session as it then is.
    ///
    /// # Errors
    /// When there is no such session, a turn is running in it, or the store fails.
    pub async fn run(
        &self,
        owner: Owner,
        session: SessionId,
        messages: Vec<PastMessage>,
        idempotency: Option<Idempotency>,
    ) -> Result<Created<Vec<Message>>, ImportError> {
        let learnable = match self.store.session(owner, session).await? {
            None => return Err(ImportError::SessionNotFound),
            Some(session) => session.memory.learns(),
        };
        let messages = messages
            .into_iter()
            .map(|m| ImportedMessage {
                id: self.ids.message(),
                role: m.role,
                content: m.content,
                name: m.name,
                learnable,
                created_at: m.created_at,
            })
            .collect();
        let kinds: &[JobKind] = if learnable {
            &[JobKind::Index, JobKind::Consolidate]
        } else {
            &[]
        };
        let jobs = kinds
            .iter()
            .map(|kind| NewJob {
                id: self.ids.job(),
                kind: *kind,
            })
            .collect();
        let import = NewImport {
            messages,
            jobs,
            change: self.ids.change(),
            now: self.clock.now(),
        };
        let imported = self
            .store
            .import_messages(owner, session, import, idempotency)
            .await?;
        self.work.notify_one();
        Ok(imported)
    }
}
