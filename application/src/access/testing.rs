//! A store of one key and one tenant beside the default one, and a clock that goes with the paused one of the runtime.
#![allow(clippy::unwrap_used)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use tidemark_domain::identity::{ApiKey, PassSecret};
use tidemark_domain::ids::{KeyId, TenantId, TenantName, Timestamp};
use tokio::time::Instant;
use uuid::Uuid;

use crate::ports::clock::Clock;
use crate::ports::keys::{KeyRepository, StoredKey, Tenant};
use crate::ports::store::{StoreError, StoreResult};

/// The other tenant, whose name is `acme`.
pub(super) const ACME: TenantId = TenantId(Uuid::from_u128(9));

#[derive(Default)]
pub(super) struct One {
    pub(super) key: Mutex<Option<StoredKey>>,
    pub(super) secret: Mutex<Option<PassSecret>>,
    pub(super) away: AtomicBool,
    /// How often it was asked for something.
    pub(super) reads: AtomicUsize,
}

impl One {
    async fn read(&self) -> StoreResult<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        if self.away.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("away".into()));
        }
        Ok(())
    }
}

#[async_trait]
impl KeyRepository for One {
    async fn make_tenant(&self, _: &TenantName, _: TenantId, _: Timestamp) -> StoreResult<Tenant> {
        unreachable!()
    }

    async fn find_tenant(&self, name: &TenantName) -> StoreResult<Option<TenantId>> {
        self.read().await?;
        Ok((name.as_str() == "acme").then_some(ACME))
    }

    async fn tenants(&self) -> StoreResult<Vec<Tenant>> {
        unreachable!()
    }

    async fn add_key(&self, _: StoredKey) -> StoreResult<()> {
        unreachable!()
    }

    async fn key(&self, id: KeyId) -> StoreResult<Option<StoredKey>> {
        self.read().await?;
        let key = self.key.lock().unwrap().clone();
        Ok(key.filter(|stored| stored.key.id == id))
    }

    async fn keys(&self, _: TenantId) -> StoreResult<Vec<ApiKey>> {
        unreachable!()
    }

    async fn rotate_key(
        &self,
        _: TenantId,
        _: KeyId,
        _: Timestamp,
        _: StoredKey,
    ) -> StoreResult<bool> {
        unreachable!()
    }

    async fn revoke_key(&self, _: TenantId, _: KeyId, _: Timestamp) -> StoreResult<bool> {
        unreachable!()
    }

    async fn pass_secret(&self, _: TenantId) -> StoreResult<Option<PassSecret>> {
        self.read().await?;
        Ok(*self.secret.lock().unwrap())
    }

    async fn make_pass_secret(
        &self,
        _: TenantId,
        fresh: PassSecret,
        _: Timestamp,
    ) -> StoreResult<PassSecret> {
        self.read().await?;
        Ok(*self.secret.lock().unwrap().get_or_insert(fresh))
    }
}

pub(super) struct Paused(Instant);

impl Default for Paused {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        start() + self.0.elapsed()
    }
}

/// The time at which the clock begins.
pub(super) fn start() -> Timestamp {
    Timestamp::from_timestamp(1_800_000_000, 0).unwrap()
}
