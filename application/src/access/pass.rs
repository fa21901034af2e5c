//! Passes: what stands for a key or a token where these themselves must not be, in a URL or a cookie.
//!
//! A pass says what it stands for and for which user, and is signed with an HMAC-SHA-256. One that stands for a key is signed with what is kept of
//! that key: every replica knows that from the store, so each accepts what any has signed, and a pass is worth nothing once its key is revoked,
//! expired or gone. Of a token nothing is kept: its pass says what the token said, and is signed with a secret of the tenant's that the store keeps.
//! Nobody who has a pass learns the key, nor what it is signed with.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tidemark_domain::identity::Scopes;
use tidemark_domain::ids::{KeyId, TenantId, Timestamp, TurnId, UserName};
use uuid::Uuid;

/// What a pass is good for. A pass for one thing is none for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The events of one turn.
    Ticket(TurnId),
    /// The page in a browser.
    SignIn,
}

/// What a pass stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Nothing: nothing is asked for.
    Nothing,
    /// A key.
    Key(KeyId),
    /// A token of the identity provider.
    Token {
        /// Whose it was.
        tenant: TenantId,
        /// What it was good for.
        scopes: Scopes,
        /// It could name no other user.
        bound: bool,
    },
}

/// What a pass says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// What it stands for.
    pub of: Of,
    /// The user it is for; none leaves it to the request.
    pub user: Option<UserName>,
    /// From then on its time is over; never, where there is none.
    pub expires_at: Option<Timestamp>,
}

/// What a pass is signed with.
pub type Secret = [u8; 32];

/// Where no keys are asked for, anybody may ask for anybody: what a pass is signed with then protects nothing.
pub const NO_SECRET: Secret = [0; 32];

const KIND: usize = 2;
const ID: usize = 16;
const TIME: usize = 8;
const SIGNATURE: usize = 32;

/// No pass is longer: a user's name has at most 128 characters.
const MOST: usize = KIND + ID + TIME + 128 + SIGNATURE;

/// In the second byte, beside the scopes, of what stands for a token that could name no other user.
const BOUND: u8 = 0x80;

/// A pass whose signature was not looked at yet.
#[derive(Clone, Debug)]
pub struct Unverified {
    pass: Pass,
    said: Vec<u8>,
    signature: Vec<u8>,
}

impl Purpose {
    fn prefix(self) -> &'static str {
        match self {
            Self::Ticket(_) => "tmt_",
            Self::SignIn => "tms_",
        }
    }

    /// The signature over what a pass for this says.
    fn mac(self, said: &[u8], secret: &Secret) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
        match self {
            Self::Ticket(turn) => {
                mac.update(b"tidemark ticket\0");
                mac.update(turn.0.as_bytes());
            }
            Self::SignIn => mac.update(b"tidemark sign-in\0"),
        }
        mac.update(said);
        Some(mac)
    }
}

impl Of {
    /// Two bytes and an id.
    fn parts(self) -> ([u8; KIND], Uuid) {
        match self {
            Self::Nothing => ([0, 0], Uuid::nil()),
            Self::Key(key) => ([1, 0], key.0),
            Self::Token {
                tenant,
                scopes,
                bound,
            } => {
                let bound = if bound { BOUND } else { 0 };
                ([2, scopes.bits() | bound], tenant.0)
            }
        }
    }

    fn read(kind: [u8; KIND], id: Uuid) -> Option<Self> {
        match kind {
            [0, 0] => id.is_nil().then_some(Self::Nothing),
            [1, 0] => Some(Self::Key(KeyId(id))),
            [2, said] => Some(Self::Token {
                tenant: TenantId(id),
                scopes: Scopes::from_bits(said & !BOUND)?,
                bound: said & BOUND != 0,
            }),
            _ => None,
        }
    }
}

impl Pass {
    /// The pass as text, signed with the secret of what it stands for.
    pub fn seal(&self, purpose: Purpose, secret: &Secret) -> String {
        let (kind, id) = self.of.parts();
        let time = self.expires_at.map_or(0, |time| time.timestamp_micros());
        let user = self.user.as_ref().map_or("", |user| user.as_str());
        let mut said = Vec::with_capacity(MOST);
        said.extend(kind);
        said.extend(id.as_bytes());
        said.extend(time.to_be_bytes());
        said.extend(user.as_bytes());
        // An HMAC takes keys of any length.
        let mac = purpose.mac(&said, secret);
        said.extend(mac.into_iter().flat_map(|mac| mac.finalize().into_bytes()));
        format!("{}{}", purpose.prefix(), URL_SAFE_NO_PAD.encode(said))
    }
}

impl Pass {
    /// Whether its time is over.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

impl Unverified {
    /// Reads a text; nothing, if it cannot be a pass for this.
    pub fn read(text: &str, purpose: Purpose) -> Option<Self> {
        let text = text.strip_prefix(purpose.prefix())?;
        if text.len() > MOST.div_ceil(3) * 4 {
            return None;
        }
        let mut said = URL_SAFE_NO_PAD.decode(text).ok()?;
        let signature = said.split_off(said.len().checked_sub(SIGNATURE)?);
        let (kind, rest) = said.split_first_chunk::<KIND>()?;
        let (id, rest) = rest.split_first_chunk::<ID>()?;
        let (time, user) = rest.split_first_chunk::<TIME>()?;
        let time = i64::from_be_bytes(*time);
        let user = std::str::from_utf8(user).ok()?;
        let pass = Pass {
            of: Of::read(*kind, Uuid::from_bytes(*id))?,
            user: match user {
                "" => None,
                name => Some(name.parse().ok()?),
            },
            expires_at: match time {
                0 => None,
                time => Some(Timestamp::from_timestamp_micros(time)?),
            },
        };
        Some(Self {
            pass,
            said,
            signature,
        })
    }

    /// What it says it stands for.
    pub fn of(&self) -> Of {
        self.pass.of
    }

    /// The pass, if it is for this and was signed with this secret.
    pub fn verified(self, purpose: Purpose, secret: &Secret) -> Option<Pass> {
        // Compared in constant time.
        let mac = purpose.mac(&self.said, secret)?;
        mac.verify_slice(&self.signature).ok()?;
        Some(self.pass)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const SECRET: Secret = [3; 32];
    const TURN: Purpose = Purpose::Ticket(TurnId(Uuid::from_u128(5)));

    fn at(second: i64) -> Timestamp {
        Timestamp::from_timestamp(second, 0).unwrap()
    }

    fn pass() -> Pass {
        Pass {
            of: Of::Key(KeyId(Uuid::from_u128(7))),
            user: Some("ada@example.org".parse().unwrap()),
            expires_at: Some(at(200)),
        }
    }

    fn opened(text: &str, purpose: Purpose, secret: &Secret) -> Option<Pass> {
        Unverified::read(text, purpose)?.verified(purpose, secret)
    }

    #[test]
    fn a_pass_says_what_it_was_made_to_say_and_when_it_is_over() {
        let without = Pass {
            of: Of::Nothing,
            user: None,
            expires_at: None,
        };
        let token = |bound| Pass {
            of: Of::Token {
                tenant: TenantId(Uuid::from_u128(8)),
                scopes: Scopes::all(),
                bound,
            },
            ..pass()
        };
        for pass in [pass(), without, token(true), token(false)] {
            for purpose in [TURN, Purpose::SignIn] {
                let text = pass.seal(purpose, &SECRET);
                assert_eq!(opened(&text, purpose, &SECRET), Some(pass.clone()));
                let read = Unverified::read(&text, purpose).unwrap();
                assert_eq!(read.of(), pass.of);
            }
        }
        assert!(!pass().is_over(at(199)) && pass().is_over(at(200)));
    }

    #[test]
    fn a_pass_is_none_for_another_turn_or_thing_or_of_another_key() {
        let text = pass().seal(TURN, &SECRET);
        let other = Purpose::Ticket(TurnId(Uuid::from_u128(6)));
        assert_eq!(opened(&text, other, &SECRET), None);
        assert_eq!(opened(&text, TURN, &NO_SECRET), None);
        let renamed = text.replacen("tmt_", "tms_", 1);
        assert_eq!(opened(&renamed, Purpose::SignIn, &SECRET), None);
        let signed_in = pass().seal(Purpose::SignIn, &SECRET);
        let renamed = signed_in.replacen("tms_", "tmt_", 1);
        assert_eq!(opened(&renamed, TURN, &SECRET), None);
    }

    #[test]
    fn a_pass_that_was_changed_anywhere_is_none() {
        let text = pass().seal(TURN, &SECRET);
        for at in 0..text.len() {
            for other in ["A", "z"] {
                let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                if changed != text {
                    assert_eq!(opened(&changed, TURN, &SECRET), None, "{changed}");
                }
            }
        }
        for cut in ["", "tmt_", &text[..text.len() - 4], &text[..40]] {
            assert_eq!(opened(cut, TURN, &SECRET), None, "{cut}");
        }
        let long = format!("{text}{}", "A".repeat(1_000));
        assert!(Unverified::read(&long, TURN).is_none());
    }
}
