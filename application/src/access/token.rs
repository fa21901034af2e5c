//! From a token of an identity provider to whom it belongs, and the secrets of the passes that stand for such tokens.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tidemark_domain::identity::{PassSecret, Principal, Scope};
use tidemark_domain::ids::{TenantId, TenantName, Timestamp};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::claims::{ClaimNames, Nobody};
use crate::ports::clock::Clock;
use crate::ports::entropy::{Entropy, NoEntropy};
use crate::ports::identity_provider::{IdentityProvider, Reading, Token, Unverified};
use crate::ports::keys::KeyRepository;
use crate::ports::store::{StoreError, StoreResult};

/// By how much the provider's clock may differ from this one.
pub const LEEWAY: Duration = Duration::from_secs(30);

/// How long a secret that was read is trusted: whoever takes it out of the store has ended all passes of the tenant's tokens within this.
pub const TRUST: Duration = Duration::from_secs(5);

/// So many secrets are read at once: the tenant of a pass is known before the pass is. Ours.
const READING: usize = 16;

/// More tenants than this are not held: some 10 MiB.
const MOST: usize = 100_000;

/// A token is not good.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It is not the provider's, or that cannot be known.
    #[error(transparent)]
    Unverified(#[from] Unverified),
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// Its time has not come.
    #[error("the token is not valid yet")]
    NotYet,
    /// It means nobody here.
    #[error(transparent)]
    Nobody(#[from] Nobody),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No secret can be made.
    #[error(transparent)]
    NoEntropy(#[from] NoEntropy),
}

/// A token that is good.
#[derive(Clone, Debug)]
pub struct KnownToken {
    /// Whom whoever has it is.
    pub principal: Arc<Principal>,
    /// From then on it is refused.
    pub expires_at: Timestamp,
}

/// Knows tokens. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Tokens(Arc<Shared>);

struct Shared {
    parts: TokenParts,
    /// A tenant keeps its id.
    tenants: RwLock<HashMap<TenantName, TenantId>>,
    secrets: RwLock<HashMap<TenantId, (PassSecret, Instant)>>,
    /// Of many that present passes of one tenant at first, one reads its secret; what is forged reads no more at once than these.
    reading: [Mutex<()>; READING],
}

/// What [`Tokens`] are made of.
pub struct TokenParts {
    /// Whose tokens they are.
    pub provider: Arc<dyn IdentityProvider>,
    /// Knows tenants, and keeps the secrets of their passes.
    pub store: Arc<dyn KeyRepository>,
    /// By which they expire.
    pub clock: Arc<dyn Clock>,
    /// Secrets are made of it.
    pub entropy: Arc<dyn Entropy>,
    /// What is read of them.
    pub names: ClaimNames,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for TokenParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenParts").finish_non_exhaustive()
    }
}

impl Tokens {
    /// Of these parts.
    pub fn new(parts: TokenParts) -> Self {
        Self(Arc::new(Shared {
            parts,
            tenants: RwLock::default(),
            secrets: RwLock::default(),
            reading: std::array::from_fn(|_| Mutex::default()),
        }))
    }

    /// Whose this token is. One with the scope `admin` may name any user of its tenant, as a key with it may; any other is its own user's alone.
    ///
    /// # Errors
    /// When it is not good. No tenant is made for it.
    pub async fn by_token(&self, text: &str) -> Result<KnownToken, TokenError> {
        let parts = &self.0.parts;
        let token = parts.provider.verify(text).await?;
        in_its_time(&token, parts.clock.now())?;
        let named = parts.names.read(&token.claims)?;
        let tenant = self.tenant(&named.tenant).await?;
        let principal = Principal {
            tenant: tenant.ok_or_else(|| Nobody::UnknownTenant {
                claim: parts.names.tenant.clone(),
            })?,
            scopes: named.scopes,
            user: named.user,
            bound: !named.scopes.contains(Scope::Admin),
        };
        Ok(KnownToken {
            principal: Arc::new(principal),
            expires_at: token.expires_at,
        })
    }

    /// What is known of the provider's keys.
    pub fn reading(&self) -> Reading {
        self.0.parts.provider.reading()
    }

    /// What the passes of that tenant's tokens are signed with; none until the first is made.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn secret(&self, tenant: TenantId) -> StoreResult<Option<PassSecret>> {
        if let Some(secret) = self.trusted(tenant) {
            return Ok(Some(secret));
        }
        let (_, low) = tenant.0.as_u64_pair();
        let _one = self.0.reading[low as usize % READING].lock().await;
        if let Some(secret) = self.trusted(tenant) {
            return Ok(Some(secret));
        }
        let read_at = Instant::now();
        let secret = self.0.parts.store.pass_secret(tenant).await?;
        if let Some(secret) = secret {
            self.hold(tenant, secret, read_at);
        }
        Ok(secret)
    }

    /// The same, for the first too. One that was read some time ago will do while the store is away: whoever is shown what it signs looks anew.
    ///
    /// # Errors
    /// When the store fails, or no secret can be made.
    pub async fn secret_to_sign(&self, tenant: TenantId) -> Result<PassSecret, TokenError> {
        match (self.secret(tenant).await, self.held(tenant)) {
            (Ok(Some(secret)), _) | (Err(_), Some((secret, _))) => return Ok(secret),
            (Err(error), None) => return Err(error.into()),
            (Ok(None), _) => {}
        }
        let parts = &self.0.parts;
        let mut fresh = PassSecret([0; 32]);
        parts.entropy.fill(&mut fresh.0)?;
        let (read_at, now) = (Instant::now(), parts.clock.now());
        let secret = parts.store.make_pass_secret(tenant, fresh, now).await?;
        self.hold(tenant, secret, read_at);
        Ok(secret)
    }

    fn trusted(&self, tenant: TenantId) -> Option<PassSecret> {
        let (secret, read_at) = self.held(tenant)?;
        (read_at.elapsed() < TRUST).then_some(secret)
    }

    fn held(&self, tenant: TenantId) -> Option<(PassSecret, Instant)> {
        let secrets = &self.0.secrets;
        let secrets = secrets.read().unwrap_or_else(PoisonError::into_inner);
        secrets.get(&tenant).copied()
    }

    fn hold(&self, tenant: TenantId, secret: PassSecret, read_at: Instant) {
        let secrets = &self.0.secrets;
        let mut secrets = secrets.write().unwrap_or_else(PoisonError::into_inner);
        if secrets.len() >= MOST {
            secrets.clear();
        }
        secrets.insert(tenant, (secret, read_at));
    }

    /// A tenant that is not there is not remembered: it may be made at any moment.
    async fn tenant(&self, name: &TenantName) -> StoreResult<Option<TenantId>> {
        let known = {
            let tenants = &self.0.tenants;
            let tenants = tenants.read().unwrap_or_else(PoisonError::into_inner);
            tenants.get(name).copied()
        };
        if known.is_some() {
            return Ok(known);
        }
        let found = self.0.parts.store.find_tenant(name).await?;
        if let Some(id) = found {
            let tenants = &self.0.tenants;
            let mut tenants = tenants.write().unwrap_or_else(PoisonError::into_inner);
            if tenants.len() >= MOST {
                tenants.clear();
            }
            tenants.insert(name.clone(), id);
        }
        Ok(found)
    }
}

fn in_its_time(token: &Token, now: Timestamp) -> Result<(), TokenError> {
    if token.not_before.is_some_and(|start| now + LEEWAY < start) {
        return Err(TokenError::NotYet);
    }
    if token.expires_at <= now - LEEWAY {
        return Err(TokenError::Expired);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;
    use crate::access::testing::{ACME, One, Paused, start};
    use async_trait::async_trait;
    use serde_json::{Value, json};
    use std::sync::atomic::{AtomicU8, Ordering};

    /// Takes a token's claims for the token.
    struct Trusting;

    #[async_trait]
    impl IdentityProvider for Trusting {
        async fn verify(&self, token: &str) -> Result<Token, Unverified> {
            let claims = serde_json::from_str::<Value>(token).map_err(|_| Unverified::Malformed)?;
            let time = |name: &str| claims[name].as_i64().map(after);
            Ok(Token {
                expires_at: time("exp").ok_or(Unverified::Expiry)?,
                not_before: time("nbf"),
                claims: claims.as_object().unwrap().clone(),
            })
        }

        fn reading(&self) -> Reading {
            Reading::Well
        }
    }

    /// Never the same.
    #[derive(Default)]
    struct Counting(AtomicU8);

    impl Entropy for Counting {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
            bytes.fill(self.0.fetch_add(1, Ordering::Relaxed) + 1);
            Ok(())
        }
    }

    /// So many seconds after the start.
    fn after(seconds: i64) -> Timestamp {
        Timestamp::from_timestamp(start().timestamp() + seconds, 0).unwrap()
    }

    fn on(store: &Arc<One>) -> Tokens {
        Tokens::new(TokenParts {
            provider: Arc::new(Trusting),
            store: Arc::clone(store) as _,
            clock: Arc::new(Paused::default()),
            entropy: Arc::new(Counting::default()),
            names: ClaimNames {
                tenant: "tenant".to_owned(),
                tenant_otherwise: None,
                user: "sub".to_owned(),
                scopes: "scope".to_owned(),
            },
        })
    }

    async fn known(tokens: &Tokens, claims: Value) -> Result<KnownToken, TokenError> {
        tokens.by_token(&claims.to_string()).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_its_users_alone_unless_it_is_an_administrators() {
        let tokens = on(&Arc::default());
        for (scope, bound) in [("chat", true), ("chat admin", false), ("", true)] {
            let claims = json!({"tenant": "acme", "sub": "ada", "scope": scope, "exp": 60});
            let known = known(&tokens, claims).await.unwrap();
            assert_eq!(known.principal.tenant, ACME);
            assert_eq!(known.principal.user.as_str(), "ada");
            assert_eq!(known.principal.scopes.to_string(), scope);
            assert_eq!(known.principal.bound, bound, "{scope}");
            assert_eq!(known.expires_at, after(60));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_good_in_its_time_and_for_what_clocks_differ_by() {
        let tokens = on(&Arc::default());
        let at =
            |nbf: i64, exp: i64| json!({"tenant": "acme", "sub": "ada", "nbf": nbf, "exp": exp});
        let leeway = LEEWAY.as_secs() as i64;
        for (nbf, exp) in [(0, 1), (leeway, 100), (-100, 1 - leeway)] {
            known(&tokens, at(nbf, exp)).await.unwrap();
        }
        for exp in [-leeway, -1_000] {
            let refused = known(&tokens, at(-2_000, exp)).await;
            assert!(matches!(refused, Err(TokenError::Expired)), "{exp}");
        }
        let refused = known(&tokens, at(leeway + 1, 100)).await;
        assert!(matches!(refused, Err(TokenError::NotYet)));
    }

    #[tokio::test(start_paused = true)]
    async fn no_tenant_is_made_for_a_token_and_one_that_is_there_is_looked_up_once() {
        let store = Arc::new(One::default());
        let tokens = on(&store);
        let of = |tenant: &str| json!({"tenant": tenant, "sub": "ada", "exp": 60});
        for _ in 0..2 {
            let refused = known(&tokens, of("other")).await;
            let unknown = Nobody::UnknownTenant {
                claim: "tenant".to_owned(),
            };
            assert!(matches!(refused, Err(TokenError::Nobody(nobody)) if nobody == unknown));
        }
        assert_eq!(store.reads.load(Ordering::Relaxed), 2);
        for _ in 0..2 {
            known(&tokens, of("acme")).await.unwrap();
        }
        assert_eq!(store.reads.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_secret_is_made_once_for_all_and_one_that_is_gone_is_trusted_for_seconds() {
        let store = Arc::new(One::default());
        let (here, there) = (on(&store), on(&store));
        assert_eq!(here.secret(ACME).await.unwrap(), None);
        let secret = here.secret_to_sign(ACME).await.unwrap();
        assert_ne!(secret.0, [0; 32]);
        assert_eq!(there.secret(ACME).await.unwrap(), Some(secret));
        assert_eq!(there.secret_to_sign(ACME).await.unwrap(), secret);
        *store.secret.lock().unwrap() = None;
        assert_eq!(here.secret(ACME).await.unwrap(), Some(secret));
        tokio::time::advance(TRUST).await;
        store.away.store(true, Ordering::Relaxed);
        assert!(here.secret(ACME).await.is_err());
        assert_eq!(here.secret_to_sign(ACME).await.unwrap(), secret);
        store.away.store(false, Ordering::Relaxed);
        assert_eq!(here.secret(ACME).await.unwrap(), None);
        assert_ne!(here.secret_to_sign(ACME).await.unwrap(), secret);
    }
}
