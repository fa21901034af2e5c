//! Typed identifiers. All but [`OwnerId`] are UUIDv7, so that they sort by the time they were made.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A point in time: UTC, truncated to microseconds by the clock port, so that both stores keep it unchanged.
pub type Timestamp = chrono::DateTime<chrono::Utc>;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

id!(
    /// The customer of an installation. Comes first in every key.
    TenantId
);
id!(
    /// A conversation of one owner.
    SessionId
);
id!(
    /// One request and its answer.
    TurnId
);
id!(
    /// One message of a session.
    MessageId
);
id!(
    /// One remembered item.
    MemoryId
);
id!(
    /// One change of what is remembered.
    ChangeId
);
id!(
    /// One piece of derived work.
    JobId
);
id!(
    /// One API key: the part of it that is no secret.
    KeyId
);

impl TenantId {
    /// The tenant of an installation that has no other: the nil UUID.
    pub const DEFAULT: Self = Self(Uuid::nil());
}

/// The number of an end user within the installation, handed out by the store on first sight of a tenant's user name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OwnerId(pub i64);

/// Whom data belongs to: the first two columns of every key. Nothing is read or written without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The tenant.
    pub tenant: TenantId,
    /// The user within it.
    pub id: OwnerId,
}

impl Owner {
    /// An owner that no store has ever handed out, and who has nothing: in the place of a user who is not known. Stores count from 1.
    pub fn nobody(tenant: TenantId) -> Self {
        Self {
            tenant,
            id: OwnerId(0),
        }
    }
}

/// The tenant's own name for a user: 1–128 of `A–Z a–z 0–9 . _ : @ -`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserName(String);

/// The text is no valid user name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a user is named by 1 to 128 of the characters A-Z a-z 0-9 . _ : @ -")]
pub struct InvalidUserName;

impl UserName {
    /// The user of requests that name none.
    pub fn default_user() -> Self {
        Self("default".to_owned())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserName {
    type Err = InvalidUserName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=128).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._:@-".contains(&b));
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidUserName)
        }
    }
}

/// The operator's own name for a tenant: 1–64 of `A–Z a–z 0–9 . _ -`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantName(String);

/// The text is no valid name of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tenant is named by 1 to 64 of the characters A-Z a-z 0-9 . _ -")]
pub struct InvalidTenantName;

impl TenantName {
    /// The name of [`TenantId::DEFAULT`].
    pub fn default_tenant() -> Self {
        Self("default".to_owned())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TenantName {
    type Err = InvalidTenantName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=64).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidTenantName)
        }
    }
}
