//! An API key without its secret: whose it is, how long it is good, and what follows it.

use std::fmt;
use std::time::Duration;

use chrono::TimeDelta;

use super::principal::Principal;
use super::scope::{Scope, Scopes};
use crate::ids::{KeyId, TenantId, Timestamp, UserName};

/// What is stored of a key's secret: the SHA-256 of the whole key as text. `Debug` shows nothing of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHash(pub [u8; 32]);

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(***)")
    }
}

/// What a tenant's passes are signed with that stand for no key. `Debug` shows nothing of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PassSecret(pub [u8; 32]);

impl fmt::Debug for PassSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PassSecret(***)")
    }
}

/// An API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id, which is part of it and no secret.
    pub id: KeyId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The operator's note of what it is for.
    pub name: Option<String>,
    /// What it may be used for; at least one.
    pub scopes: Scopes,
    /// The one user it is good for; with none, the request names the user.
    pub user: Option<UserName>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From then on it is refused.
    pub expires_at: Option<Timestamp>,
    /// It was taken back then.
    pub revoked_at: Option<Timestamp>,
    /// The key that is to be used instead, once it was rotated.
    pub successor: Option<KeyId>,
}

/// When a key is to expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Never.
    Never,
    /// At that time.
    At(Timestamp),
    /// So long after it is made.
    After(Duration),
}

impl Expiry {
    /// The time, of a key that is made at `now`; none where there is no such time.
    pub fn of(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Never => None,
            Self::At(time) => Some(time),
            Self::After(lifetime) => later(now, lifetime),
        }
    }
}

fn later(now: Timestamp, by: Duration) -> Option<Timestamp> {
    now.checked_add_signed(TimeDelta::from_std(by).ok()?)
}

/// Whether a key is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Good,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
}

/// A key of which something does not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// It would be good for nothing.
    #[error("a key needs at least one scope")]
    NoScope,
    /// `admin` reaches every user of the tenant.
    #[error("the scope admin is for the whole tenant: a key with it cannot be bound to a user")]
    BoundAdmin,
    /// It would never be good.
    #[error("a key cannot expire before it is made")]
    BornExpired,
}

/// A key that cannot be followed by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRotatable {
    /// It was taken back.
    #[error("the key was revoked")]
    Revoked,
    /// It was rotated already.
    #[error("the key was rotated already; rotate {0}, which followed it")]
    Rotated(KeyId),
}

impl ApiKey {
    /// The key itself, if it is one.
    ///
    /// # Errors
    /// [`InvalidKey`].
    pub fn checked(self) -> Result<Self, InvalidKey> {
        if self.scopes.is_empty() {
            return Err(InvalidKey::NoScope);
        }
        if self.user.is_some() && self.scopes.contains(Scope::Admin) {
            return Err(InvalidKey::BoundAdmin);
        }
        if self
            .expires_at
            .is_some_and(|expires| expires <= self.created_at)
        {
            return Err(InvalidKey::BornExpired);
        }
        Ok(self)
    }

    /// How it stands at `now`.
    pub fn standing(&self, now: Timestamp) -> Standing {
        if self.revoked_at.is_some_and(|revoked| revoked <= now) {
            Standing::Revoked
        } else if self.expires_at.is_some_and(|expires| expires <= now) {
            Standing::Expired
        } else {
            Standing::Good
        }
    }

    /// Whom whoever has it is.
    pub fn principal(&self) -> Principal {
        Principal {
            tenant: self.tenant,
            scopes: self.scopes,
            user: self.user.clone().unwrap_or_else(UserName::default_user),
            bound: self.user.is_some(),
        }
    }

    /// The key of this id that follows it, good for as long as it was made to be, counted from `now`.
    ///
    /// # Errors
    /// [`NotRotatable`].
    pub fn successor(&self, id: KeyId, now: Timestamp) -> Result<Self, NotRotatable> {
        if self.revoked_at.is_some() {
            return Err(NotRotatable::Revoked);
        }
        if let Some(successor) = self.successor {
            return Err(NotRotatable::Rotated(successor));
        }
        let lifetime = self.expires_at.map(|expires| expires - self.created_at);
        Ok(Self {
            id,
            created_at: now,
            expires_at: lifetime.and_then(|lifetime| now.checked_add_signed(lifetime)),
            ..self.clone()
        })
    }

    /// Until when it is good once it is rotated at `now`: the grace period, but no longer than it was.
    pub fn rotated_until(&self, now: Timestamp, grace: Duration) -> Timestamp {
        let until = later(now, grace).unwrap_or(now);
        self.expires_at.map_or(until, |expires| expires.min(until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use uuid::Uuid;

    fn at(second: i64) -> Timestamp {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn key() -> ApiKey {
        ApiKey {
            id: KeyId(Uuid::from_u128(1)),
            tenant: TenantId::DEFAULT,
            name: None,
            scopes: [Scope::Chat].into_iter().collect(),
            user: None,
            created_at: at(100),
            expires_at: Some(at(200)),
            revoked_at: None,
            successor: None,
        }
    }

    #[test]
    fn a_key_is_good_until_it_expires_or_is_taken_back() {
        let key = key();
        assert_eq!(key.standing(at(100)), Standing::Good);
        assert_eq!(key.standing(at(199)), Standing::Good);
        assert_eq!(key.standing(at(200)), Standing::Expired);
        let revoked = ApiKey {
            revoked_at: Some(at(150)),
            ..key
        };
        assert_eq!(revoked.standing(at(149)), Standing::Good);
        assert_eq!(revoked.standing(at(150)), Standing::Revoked);
        assert_eq!(revoked.standing(at(300)), Standing::Revoked);
    }

    #[test]
    fn a_key_needs_a_scope_a_future_and_no_user_where_it_is_for_all() {
        assert!(key().checked().is_ok());
        let without = ApiKey {
            scopes: Scopes::default(),
            ..key()
        };
        assert_eq!(without.checked(), Err(InvalidKey::NoScope));
        let bound = ApiKey {
            scopes: Scopes::all(),
            user: Some(UserName::default_user()),
            ..key()
        };
        assert_eq!(bound.checked(), Err(InvalidKey::BoundAdmin));
        let past = ApiKey {
            expires_at: Some(at(100)),
            ..key()
        };
        assert_eq!(past.checked(), Err(InvalidKey::BornExpired));
    }

    #[test]
    fn a_rotated_key_ends_after_the_grace_period_and_its_successor_lives_as_long_as_it_did() {
        let key = key();
        let next = key.successor(KeyId(Uuid::from_u128(2)), at(150)).unwrap();
        assert_eq!(next.expires_at, Some(at(250)));
        assert_eq!((next.scopes, next.tenant), (key.scopes, key.tenant));
        assert_eq!(key.rotated_until(at(150), Duration::from_secs(10)), at(160));
        assert_eq!(
            key.rotated_until(at(150), Duration::from_hours(24)),
            at(200)
        );
        let endless = ApiKey {
            expires_at: None,
            ..key
        };
        let next = endless.successor(next.id, at(150)).unwrap();
        assert_eq!(next.expires_at, None);
    }

    #[test]
    fn a_key_is_followed_by_one_key_and_never_after_it_was_taken_back() {
        let revoked = ApiKey {
            revoked_at: Some(at(120)),
            ..key()
        };
        let next = KeyId(Uuid::from_u128(2));
        assert_eq!(revoked.successor(next, at(150)), Err(NotRotatable::Revoked));
        let rotated = ApiKey {
            successor: Some(next),
            ..key()
        };
        assert_eq!(
            rotated.successor(next, at(150)),
            Err(NotRotatable::Rotated(next))
        );
    }

    #[test]
    fn nothing_of_a_hash_or_a_secret_is_shown() {
        let shown = format!("{:?} {:?}", KeyHash([7; 32]), PassSecret([7; 32]));
        assert_eq!(shown, "KeyHash(***) PassSecret(***)");
    }
}
