//! From a presented key to whom it belongs, without asking the store each time.
//!
//! A key that was read is trusted for [`FRESH`]. Whoever presents it after that is still answered at once, while one task reads it again; after
//! [`STALE`] nobody is answered before it was read. So what happens to a key is heeded within [`STALE`] by every process, a busy server reads
//! each key once in [`FRESH`], and a store that is away for a moment turns nobody away. That a key expires needs no reading.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tidemark_domain::identity::{Principal, Standing};
use tidemark_domain::ids::KeyId;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::key::Presented;
use crate::ports::clock::Clock;
use crate::ports::keys::{KeyRepository, StoredKey};
use crate::ports::store::{StoreError, StoreResult};

/// How long a key that was read is not read again.
pub const FRESH: Duration = Duration::from_secs(2);

/// The longest that a key is trusted without having been read.
pub const STALE: Duration = Duration::from_secs(5);

/// More keys than this are not held: some 30 MiB.
const MOST: usize = 100_000;

/// So many keys that nobody has asked for yet are read at once.
const READING: usize = 16;

/// A key is not good.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticationError {
    /// It cannot be a key, or is none of this installation.
    #[error("the key is not valid")]
    Unknown,
    /// Its time is over.
    #[error("the key has expired")]
    Expired,
    /// It was taken back.
    #[error("the key was revoked")]
    Revoked,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A key that was read.
#[derive(Debug)]
pub struct KnownKey {
    /// The key.
    pub stored: StoredKey,
    /// Whom whoever has it is.
    pub principal: Arc<Principal>,
    read_at: Instant,
    /// A task reads it again.
    refreshing: AtomicBool,
}

/// Authenticates. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Authenticator {
    store: Arc<dyn KeyRepository>,
    clock: Arc<dyn Clock>,
    known: Arc<RwLock<HashMap<KeyId, Arc<KnownKey>>>>,
    /// Of many that present the same key at first, one reads it.
    reading: Arc<[Mutex<()>; READING]>,
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authenticator").finish_non_exhaustive()
    }
}

impl Authenticator {
    /// Over this store.
    pub fn new(store: Arc<dyn KeyRepository>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            known: Arc::default(),
            reading: Arc::new(std::array::from_fn(|_| Mutex::default())),
        }
    }

    /// Whose this key is.
    ///
    /// # Errors
    /// When it is not good. That it was good once is told only to whoever has it.
    pub async fn by_key(&self, text: &str) -> Result<Arc<KnownKey>, AuthenticationError> {
        let presented = Presented::read(text).ok_or(AuthenticationError::Unknown)?;
        let known = self.known(presented.id).await?;
        let known = known
            .filter(|known| presented.is(&known.stored.hash))
            .ok_or(AuthenticationError::Unknown)?;
        self.if_good(known)
    }

    /// The key of that id, for whoever has proven in another way to be allowed to ask.
    ///
    /// # Errors
    /// When it is not good.
    pub async fn by_id(&self, id: KeyId) -> Result<Arc<KnownKey>, AuthenticationError> {
        let known = self.known(id).await?;
        self.if_good(known.ok_or(AuthenticationError::Unknown)?)
    }

    fn if_good(&self, known: Arc<KnownKey>) -> Result<Arc<KnownKey>, AuthenticationError> {
        match known.stored.key.standing(self.clock.now()) {
            Standing::Good => Ok(known),
            Standing::Expired => Err(AuthenticationError::Expired),
            Standing::Revoked => Err(AuthenticationError::Revoked),
        }
    }

    async fn known(&self, id: KeyId) -> StoreResult<Option<Arc<KnownKey>>> {
        if let Some(known) = self.held(id) {
            return Ok(Some(known));
        }
        let (_, low) = id.0.as_u64_pair();
        let _one = self.reading[low as usize % READING].lock().await;
        if let Some(known) = self.held(id) {
            return Ok(Some(known));
        }
        self.read(id).await
    }

    /// What is known and may be trusted. Has it read again if it is time.
    fn held(&self, id: KeyId) -> Option<Arc<KnownKey>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let known = Arc::clone(known.get(&id)?);
        let age = known.read_at.elapsed();
        if age >= STALE {
            return None;
        }
        if age >= FRESH && !known.refreshing.swap(true, Ordering::Relaxed) {
            let (this, former) = (self.clone(), Arc::clone(&known));
            tokio::spawn(async move {
                if let Err(error) = this.read(id).await {
                    tracing::warn!(%error, "an API key could not be read again");
                    former.refreshing.store(false, Ordering::Relaxed);
                }
            });
        }
        Some(known)
    }

    /// What is not there is not remembered: it may be made at any moment.
    async fn read(&self, id: KeyId) -> StoreResult<Option<Arc<KnownKey>>> {
        // Before the store is asked: what changes while it answers is seen by the next reading.
        let read_at = Instant::now();
        let stored = self.store.key(id).await?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let Some(stored) = stored else {
            known.remove(&id);
            return Ok(None);
        };
        if known.len() >= MOST {
            known.clear();
        }
        let key = Arc::new(KnownKey {
            principal: Arc::new(stored.key.principal()),
            stored,
            read_at,
            refreshing: AtomicBool::new(false),
        });
        known.insert(id, Arc::clone(&key));
        Ok(Some(key))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;
    use crate::access::key::KeyText;
    use crate::access::testing::{One, Paused, start};
    use futures::future::join_all;
    use tidemark_domain::identity::{ApiKey, Scopes};
    use tidemark_domain::ids::TenantId;
    use uuid::Uuid;

    fn with_key() -> (Arc<One>, Authenticator, KeyText) {
        let id = KeyId(Uuid::from_u128(7));
        let text = KeyText::new(id, &[9; 20]);
        let key = ApiKey {
            id,
            tenant: TenantId::DEFAULT,
            name: None,
            scopes: Scopes::all(),
            user: None,
            created_at: start(),
            expires_at: Some(start() + Duration::from_hours(1)),
            revoked_at: None,
            successor: None,
        };
        let store = Arc::new(One::default());
        *store.key.lock().unwrap() = Some(StoredKey {
            key,
            hash: text.hash(),
        });
        let clock = Arc::new(Paused::default());
        let authenticator = Authenticator::new(Arc::clone(&store) as _, clock);
        (store, authenticator, text)
    }

    fn revoke(store: &One) {
        let mut key = store.key.lock().unwrap();
        key.as_mut().unwrap().key.revoked_at = Some(start());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_many_present_at_once_is_read_once() {
        let (store, authenticator, text) = with_key();
        let all = join_all((0..100).map(|_| authenticator.by_key(text.expose()))).await;
        assert!(all.iter().all(Result::is_ok));
        assert_eq!(store.reads.load(Ordering::Relaxed), 1);
        tokio::time::advance(FRESH).await;
        for _ in 0..100 {
            authenticator.by_key(text.expose()).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(store.reads.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn another_secret_under_the_same_id_is_refused_without_reading_again() {
        let (store, authenticator, text) = with_key();
        authenticator.by_key(text.expose()).await.unwrap();
        let forged = KeyText::new(KeyId(Uuid::from_u128(7)), &[8; 20]);
        for text in [forged.expose(), "tmk_x", ""] {
            let refused = authenticator.by_key(text).await;
            assert!(matches!(refused, Err(AuthenticationError::Unknown)));
        }
        assert_eq!(store.reads.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_revoked_key_is_refused_within_the_time_that_is_stated() {
        let (store, authenticator, text) = with_key();
        authenticator.by_key(text.expose()).await.unwrap();
        revoke(&store);
        authenticator.by_key(text.expose()).await.unwrap();
        tokio::time::advance(STALE).await;
        let refused = authenticator.by_key(text.expose()).await;
        assert!(matches!(refused, Err(AuthenticationError::Revoked)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_revoked_key_in_use_is_refused_as_soon_as_it_was_read_again() {
        let (store, authenticator, text) = with_key();
        authenticator.by_key(text.expose()).await.unwrap();
        revoke(&store);
        tokio::time::advance(FRESH).await;
        authenticator.by_key(text.expose()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        let refused = authenticator.by_key(text.expose()).await;
        assert!(matches!(refused, Err(AuthenticationError::Revoked)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_expires_to_the_moment() {
        let (_store, authenticator, text) = with_key();
        tokio::time::advance(Duration::from_secs(3_599)).await;
        authenticator.by_key(text.expose()).await.unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        let refused = authenticator.by_key(text.expose()).await;
        assert!(matches!(refused, Err(AuthenticationError::Expired)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_away_for_a_moment_turns_no_known_key_away_and_later_every_one() {
        let (store, authenticator, text) = with_key();
        authenticator.by_key(text.expose()).await.unwrap();
        store.away.store(true, Ordering::Relaxed);
        tokio::time::advance(FRESH).await;
        for _ in 0..3 {
            authenticator.by_key(text.expose()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::advance(STALE).await;
        let refused = authenticator.by_key(text.expose()).await;
        assert!(matches!(refused, Err(AuthenticationError::Store(_))));
        store.away.store(false, Ordering::Relaxed);
        authenticator.by_key(text.expose()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_gone_is_refused_and_one_that_comes_is_taken_at_once() {
        let (store, authenticator, text) = with_key();
        let key = store.key.lock().unwrap().take();
        let refused = authenticator.by_key(text.expose()).await;
        assert!(matches!(refused, Err(AuthenticationError::Unknown)));
        *store.key.lock().unwrap() = key;
        authenticator.by_key(text.expose()).await.unwrap();
    }
}
