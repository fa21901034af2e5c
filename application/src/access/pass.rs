//! Passes: what stands for a key where the key itself must not be, in a URL or a cookie.
//!
//! A pass says which key it stands for and for which user, and is signed with an HMAC-SHA-256 under what is kept of that key. Every replica knows
//! that from the store, so each accepts what any has signed, without a secret of its own; and a pass is worth nothing once its key is
//! revoked, expired or gone. Nobody who has a pass learns the key, nor what is kept of it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tidemark_domain::identity::KeyHash;
use tidemark_domain::ids::{KeyId, Timestamp, TurnId, UserName};
use uuid::Uuid;

/// What a pass is good for. A pass for one thing is none for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The events of one turn.
    Ticket(TurnId),
    /// The page in a browser.
    SignIn,
}

/// What a pass says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The key it stands for; none where no keys are asked for.
    pub key: Option<KeyId>,
    /// The user it is for; none leaves it to the request.
    pub user: Option<UserName>,
    /// From then on its time is over; never, where there is none.
    pub expires_at: Option<Timestamp>,
}

/// Where no keys are asked for, anybody may ask for anybody: what a pass is signed with then protects nothing.
pub const NO_KEY: KeyHash = KeyHash([0; 32]);

const ID: usize = 16;
const TIME: usize = 8;
const SIGNATURE: usize = 32;

/// No pass is longer: a user's name has at most 128 characters.
const MOST: usize = ID + TIME + 128 + SIGNATURE;

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
    fn mac(self, said: &[u8], hash: &KeyHash) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&hash.0).ok()?;
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

impl Pass {
    /// The pass as text, signed with what is kept of its key.
    pub fn seal(&self, purpose: Purpose, hash: &KeyHash) -> String {
        let key = self.key.map_or(Uuid::nil(), |key| key.0);
        let time = self.expires_at.map_or(0, |time| time.timestamp_micros());
        let user = self.user.as_ref().map_or("", |user| user.as_str());
        let mut said = Vec::with_capacity(MOST);
        said.extend(key.as_bytes());
        said.extend(time.to_be_bytes());
        said.extend(user.as_bytes());
        // An HMAC takes keys of any length.
        let mac = purpose.mac(&said, hash);
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
        let (key, rest) = said.split_first_chunk::<ID>()?;
        let (time, user) = rest.split_first_chunk::<TIME>()?;
        let key = Uuid::from_bytes(*key);
        let time = i64::from_be_bytes(*time);
        let user = std::str::from_utf8(user).ok()?;
        let pass = Pass {
            key: (!key.is_nil()).then_some(KeyId(key)),
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

    /// The key that it says it stands for.
    pub fn key(&self) -> Option<KeyId> {
        self.pass.key
    }

    /// The pass, if it is for this and was signed with this key.
    pub fn verified(self, purpose: Purpose, hash: &KeyHash) -> Option<Pass> {
        // Compared in constant time.
        let mac = purpose.mac(&self.said, hash)?;
        mac.verify_slice(&self.signature).ok()?;
        Some(self.pass)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const HASH: KeyHash = KeyHash([3; 32]);
    const TURN: Purpose = Purpose::Ticket(TurnId(Uuid::from_u128(5)));

    fn at(second: i64) -> Timestamp {
        Timestamp::from_timestamp(second, 0).unwrap()
    }

    fn pass() -> Pass {
        Pass {
            key: Some(KeyId(Uuid::from_u128(7))),
            user: Some("ada@example.org".parse().unwrap()),
            expires_at: Some(at(200)),
        }
    }

    fn opened(text: &str, purpose: Purpose, hash: &KeyHash) -> Option<Pass> {
        Unverified::read(text, purpose)?.verified(purpose, hash)
    }

    #[test]
    fn a_pass_says_what_it_was_made_to_say_and_when_it_is_over() {
        let without = Pass {
            key: None,
            user: None,
            expires_at: None,
        };
        for pass in [pass(), without] {
            for purpose in [TURN, Purpose::SignIn] {
                let text = pass.seal(purpose, &HASH);
                assert_eq!(opened(&text, purpose, &HASH), Some(pass.clone()));
                let read = Unverified::read(&text, purpose).unwrap();
                assert_eq!(read.key(), pass.key);
            }
        }
        assert!(!pass().is_over(at(199)) && pass().is_over(at(200)));
    }

    #[test]
    fn a_pass_is_none_for_another_turn_or_thing_or_of_another_key() {
        let text = pass().seal(TURN, &HASH);
        let other = Purpose::Ticket(TurnId(Uuid::from_u128(6)));
        assert_eq!(opened(&text, other, &HASH), None);
        assert_eq!(opened(&text, TURN, &NO_KEY), None);
        let renamed = text.replacen("tmt_", "tms_", 1);
        assert_eq!(opened(&renamed, Purpose::SignIn, &HASH), None);
        let signed_in = pass().seal(Purpose::SignIn, &HASH);
        let renamed = signed_in.replacen("tms_", "tmt_", 1);
        assert_eq!(opened(&renamed, TURN, &HASH), None);
    }

    #[test]
    fn a_pass_that_was_changed_anywhere_is_none() {
        let text = pass().seal(TURN, &HASH);
        for at in 0..text.len() {
            for other in ["A", "z"] {
                let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                if changed != text {
                    assert_eq!(opened(&changed, TURN, &HASH), None, "{changed}");
                }
            }
        }
        for cut in ["", "tmt_", &text[..text.len() - 4], &text[..40]] {
            assert_eq!(opened(cut, TURN, &HASH), None, "{cut}");
        }
        let long = format!("{text}{}", "A".repeat(1_000));
        assert!(Unverified::read(&long, TURN).is_none());
    }
}
