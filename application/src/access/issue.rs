//! Making, rotating and taking back API keys.

use std::sync::Arc;
use std::time::Duration;

use tidemark_domain::identity::{ApiKey, Expiry, InvalidKey, NotRotatable, Scopes};
use tidemark_domain::ids::{KeyId, TenantId, TenantName, Timestamp, UserName};

use super::key::{KeyText, SECRET_BYTES};
use crate::ports::clock::Clock;
use crate::ports::entropy::{Entropy, NoEntropy};
use crate::ports::ids::Ids;
use crate::ports::keys::{StoredKey, Tenant};
use crate::ports::store::{Store, StoreError, StoreResult};

/// Issues API keys.
pub struct Keys {
    store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

/// What a key is to be.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Whose; the tenant is made if there is none of that name.
    pub tenant: TenantName,
    /// The operator's note.
    pub name: Option<String>,
    /// What it may be used for.
    pub scopes: Scopes,
    /// The one user it is to be good for.
    pub user: Option<UserName>,
    /// When it is to expire.
    pub expires: Expiry,
}

/// A key that was made. Its text is nowhere else.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The key.
    pub key: ApiKey,
    /// Its text.
    pub text: KeyText,
}

/// A key that was rotated.
#[derive(Clone, Debug)]
pub struct Rotated {
    /// The key that is to be used from now on.
    pub next: Issued,
    /// Until when the former one is good.
    pub former_until: Timestamp,
}

/// A key was not made.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// It would be none.
    #[error(transparent)]
    Invalid(#[from] InvalidKey),
    /// There is no key of that id.
    #[error("there is no key {0}")]
    NoSuchKey(KeyId),
    /// The key cannot be followed by another.
    #[error(transparent)]
    NotRotatable(#[from] NotRotatable),
    /// It was changed by somebody else at the same moment.
    #[error("the key was changed meanwhile; look at it again")]
    Changed,
    /// No secret can be made.
    #[error(transparent)]
    NoEntropy(#[from] NoEntropy),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Keys {
    /// Over this store.
    pub fn new(
        store: Arc<dyn Store>,
        ids: Arc<dyn Ids>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        Self {
            store,
            ids,
            clock,
            entropy,
        }
    }

    /// Makes a key, and its tenant if there is none of that name.
    ///
    /// # Errors
    /// When the key would be none, or cannot be made.
    pub async fn create(&self, new: NewKey) -> Result<Issued, IssueError> {
        let now = self.clock.now();
        let key = ApiKey {
            id: self.ids.key(),
            tenant: TenantId::DEFAULT,
            name: new.name,
            scopes: new.scopes,
            user: new.user,
            created_at: now,
            expires_at: new.expires.of(now),
            revoked_at: None,
            successor: None,
        };
        // Before a tenant is made for it.
        let mut key = key.checked()?;
        let fresh = TenantId(self.ids.uuid());
        let tenant = self.store.make_tenant(&new.tenant, fresh, now).await?;
        key.tenant = tenant.id;
        let issued = self.issue(key)?;
        self.store.add_key(stored(&issued)).await?;
        Ok(issued)
    }

    /// Makes a key that follows another, which stays good for `grace`. Gives it the lifetime of the former one.
    ///
    /// # Errors
    /// When there is no such key, or it cannot be followed.
    pub async fn rotate(&self, id: KeyId, grace: Duration) -> Result<Rotated, IssueError> {
        let former = self.find(id).await?;
        let now = self.clock.now();
        let next = self.issue(former.successor(self.ids.key(), now)?)?;
        let former_until = former.rotated_until(now, grace);
        let rotated = self
            .store
            .rotate_key(former.tenant, id, former_until, stored(&next))
            .await?;
        if rotated {
            Ok(Rotated { next, former_until })
        } else {
            Err(IssueError::Changed)
        }
    }

    /// Takes a key back.
    ///
    /// # Errors
    /// When there is no such key.
    pub async fn revoke(&self, id: KeyId) -> Result<(), IssueError> {
        let key = self.find(id).await?;
        let now = self.clock.now();
        if self.store.revoke_key(key.tenant, id, now).await? {
            Ok(())
        } else {
            Err(IssueError::NoSuchKey(id))
        }
    }

    /// The keys of a tenant, or of every one, each with its tenant, the newest first.
    ///
    /// # Errors
    /// When the store fails. An unknown tenant has none.
    pub async fn list(&self, tenant: Option<&TenantName>) -> StoreResult<Vec<(Tenant, ApiKey)>> {
        let mut all = Vec::new();
        for one in self.store.tenants().await? {
            if tenant.is_none_or(|name| *name == one.name) {
                let keys = self.store.keys(one.id).await?;
                all.extend(keys.into_iter().map(|key| (one.clone(), key)));
            }
        }
        Ok(all)
    }

    async fn find(&self, id: KeyId) -> Result<ApiKey, IssueError> {
        let found = self.store.key(id).await?;
        Ok(found.ok_or(IssueError::NoSuchKey(id))?.key)
    }

    fn issue(&self, key: ApiKey) -> Result<Issued, NoEntropy> {
        let mut secret = [0; SECRET_BYTES];
        self.entropy.fill(&mut secret)?;
        Ok(Issued {
            text: KeyText::new(key.id, &secret),
            key,
        })
    }
}

fn stored(issued: &Issued) -> StoredKey {
    StoredKey {
        key: issued.key.clone(),
        hash: issued.text.hash(),
    }
}
