//! Everything that is kept of a user, record by record.

use std::sync::Arc;

use tidemark_domain::ids::{Owner, TenantId, UserName};

use crate::ports::store::{Store, StoreResult};
use crate::ports::users::{KnownUser, Part, Place, Record};

/// How many records are read at a time: what a slow reader costs.
const PAGE: u32 = 50;

/// An export that goes on as it is read.
pub struct Export {
    store: Arc<dyn Store>,
    user: KnownUser,
    /// The part that is read, and those behind it.
    parts: std::iter::Peekable<std::array::IntoIter<Part, { Part::ALL.len() }>>,
    after: Place,
}

impl std::fmt::Debug for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Export")
            .field("user", &self.user)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

impl Export {
    /// Of that user, if there is one.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn of(
        store: Arc<dyn Store>,
        tenant: TenantId,
        user: &UserName,
    ) -> StoreResult<Option<Self>> {
        let found = store.find_user(tenant, user).await?;
        Ok(found.map(|user| Self {
            store,
            user,
            parts: Part::ALL.into_iter().peekable(),
            after: Place::default(),
        }))
    }

    /// The user.
    pub fn user(&self) -> KnownUser {
        self.user
    }

    /// The next records; none at the end.
    ///
    /// # Errors
    /// When the store fails. The export may be gone on with.
    pub async fn next(&mut self) -> StoreResult<Option<Vec<Record>>> {
        while let Some(part) = self.parts.peek().copied() {
            let records = self.read(self.user.owner, part).await?;
            if records.len() < PAGE as usize {
                self.parts.next();
                self.after = Place::default();
            } else if let Some(last) = records.last() {
                self.after = last.place();
            }
            if !records.is_empty() {
                return Ok(Some(records));
            }
        }
        Ok(None)
    }

    async fn read(&self, owner: Owner, part: Part) -> StoreResult<Vec<Record>> {
        self.store.records(owner, part, &self.after, PAGE).await
    }
}
