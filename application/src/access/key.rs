//! An API key as text, and what is kept of it.
//!
//! `tmk_<id>_<secret>`: the id in hexadecimal digits, then 160 random bits and a checksum of 30 in base 32. The checksum tells a key that was
//! copied badly from one that is not good, without the store, and lets programs that look for leaked secrets know one for certain.
//!
//! What is kept is the SHA-256 of the whole text. A password needs a slow hash because people choose it; 160 random bits cannot be guessed
//! however fast each guess is, and a slow hash would have to be paid with each request.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tidemark_domain::identity::KeyHash;
use tidemark_domain::ids::KeyId;
use uuid::Uuid;

use super::base32;

/// What every key begins with, so that it is known wherever it turns up.
const PREFIX: &str = "tmk_";

/// How many random bytes a secret has.
pub const SECRET_BYTES: usize = 20;

/// Their digits.
const SECRET_DIGITS: usize = SECRET_BYTES * 8 / 5;

/// The digits of the checksum.
const CHECK_DIGITS: usize = 6;

/// The digits of an id.
const ID_DIGITS: usize = 32;

/// A key as text: shown once, to whom it is made for. `Debug` shows its id alone.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText(String);

impl KeyText {
    /// The key of that id with that secret.
    pub fn new(id: KeyId, secret: &[u8; SECRET_BYTES]) -> Self {
        let mut text = format!("{PREFIX}{}_", id.0.simple());
        text.push_str(&base32::encode(secret, SECRET_DIGITS));
        let check = checksum(&text);
        text.push_str(&check);
        Self(text)
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    pub fn hash(&self) -> KeyHash {
        hash(&self.0)
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.get(..PREFIX.len() + ID_DIGITS).unwrap_or_default();
        write!(f, "KeyText({shown}_***)")
    }
}

/// A key that somebody presents. Holds nothing that would have to be hidden.
#[derive(Clone, Copy, Debug)]
pub struct Presented {
    /// The id that it gives.
    pub id: KeyId,
    hash: KeyHash,
}

impl Presented {
    /// Reads a text; nothing, if it cannot be a key.
    pub fn read(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let (id, secret) = rest.split_once('_')?;
        let simple = id.len() == ID_DIGITS
            && id
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if !simple || secret.len() != SECRET_DIGITS + CHECK_DIGITS || !base32::is_digits(secret) {
            return None;
        }
        let (body, check) = text.split_at(text.len() - CHECK_DIGITS);
        (checksum(body) == check).then_some(())?;
        Some(Self {
            id: KeyId(Uuid::try_parse(id).ok()?),
            hash: hash(text),
        })
    }

    /// Whether it is the key of which `kept` is kept; takes the same time whether it is nearly that or not at all.
    pub fn is(&self, kept: &KeyHash) -> bool {
        self.hash.0.ct_eq(&kept.0).into()
    }
}

/// Whether a text is to be taken for a key, good or not.
pub fn is_key(text: &str) -> bool {
    text.starts_with(PREFIX)
}

fn hash(text: &str) -> KeyHash {
    KeyHash(Sha256::digest(text.as_bytes()).into())
}

/// The first 30 bits of a hash of what stands before.
fn checksum(body: &str) -> String {
    base32::encode(&Sha256::digest(body.as_bytes()), CHECK_DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: KeyId = KeyId(Uuid::from_u128(0x0192_f0c1_2b5e_7c3a_9d1e_4f5a_6b7c_8d9e));

    #[test]
    fn a_key_is_read_back_and_known_by_its_hash() {
        let text = KeyText::new(ID, &[0xA5; SECRET_BYTES]);
        assert!(
            text.expose()
                .starts_with("tmk_0192f0c12b5e7c3a9d1e4f5a6b7c8d9e_")
        );
        assert_eq!(text.expose().len(), 75);
        let presented = Presented::read(text.expose()).unwrap();
        assert_eq!(presented.id, ID);
        assert!(presented.is(&text.hash()));
        let other = KeyText::new(ID, &[0xA4; SECRET_BYTES]);
        assert!(!presented.is(&other.hash()));
    }

    #[test]
    fn a_key_that_was_copied_badly_is_none() {
        let text = KeyText::new(ID, &[0xA5; SECRET_BYTES]);
        let text = text.expose();
        let mut bad = vec![
            String::new(),
            "tmk_".to_owned(),
            text[1..].to_owned(),
            text[..74].to_owned(),
            format!("{text}a"),
            format!(" {text}"),
            text.to_ascii_uppercase(),
            text.replacen("tmk_", "tmt_", 1),
            text.replace('_', "-"),
            text.replacen("tmk_0192", "tmk_é19", 1),
        ];
        for at in 4..text.len() {
            let other = if &text[at..=at] == "a" { "b" } else { "a" };
            bad.push(format!("{}{other}{}", &text[..at], &text[at + 1..]));
        }
        for text in bad {
            assert!(Presented::read(&text).is_none(), "{text}");
        }
    }

    #[test]
    fn nothing_of_a_secret_is_shown() {
        let text = KeyText::new(ID, &[0xA5; SECRET_BYTES]);
        let shown = format!("{text:?} {:?}", Presented::read(text.expose()).unwrap());
        assert!(!shown.contains(&text.expose()[37..45]), "{shown}");
        assert!(shown.contains("tmk_0192f0c12b5e7c3a9d1e4f5a6b7c8d9e_***"));
    }
}
