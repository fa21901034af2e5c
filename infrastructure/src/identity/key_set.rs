//! The keys that a provider publishes (RFC 7517), as far as tokens may be signed with them.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use super::signature::RSA;

/// More keys than this are not looked at: a provider has a handful.
const MOST: usize = 100;

/// A key of the provider's.
#[derive(Clone, Debug)]
pub(super) struct Key {
    id: String,
    /// The ways of signing that it is for.
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) decoding: DecodingKey,
}

/// Its keys.
#[derive(Clone, Debug, Default)]
pub(super) struct KeySet(Vec<Key>);

/// The text is no set of keys.
#[derive(Debug, thiserror::Error)]
#[error("it is no set of keys")]
pub(super) struct NoKeySet;

#[derive(Deserialize)]
struct Published {
    /// What one provider publishes beside what others understand harms nobody: each key is read for itself.
    keys: Vec<Value>,
}

impl KeySet {
    /// Reads a set. Keys that tokens may not be signed with, or that are not understood, are passed over.
    pub(super) fn read(text: &[u8]) -> Result<Self, NoKeySet> {
        let published: Published = serde_json::from_slice(text).map_err(|_| NoKeySet)?;
        let keys = published.keys.into_iter().take(MOST);
        Ok(Self(keys.filter_map(key).collect()))
    }

    /// The key of that id.
    pub(super) fn find(&self, id: &str) -> Option<&Key> {
        self.0.iter().find(|key| key.id == id)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn key(published: Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(published).ok()?;
    let algorithms = algorithms(&jwk);
    if algorithms.is_empty() || !is_for_signatures(&jwk) {
        return None;
    }
    Some(Key {
        decoding: DecodingKey::from_jwk(&jwk).ok()?,
        id: jwk.common.key_id?,
        algorithms,
    })
}

/// The ways of signing that the key is for: those of its type, or the one of them that it names.
fn algorithms(jwk: &Jwk) -> Vec<Algorithm> {
    let of_type: &[Algorithm] = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => RSA,
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => &[Algorithm::ES256],
            EllipticCurve::P384 => &[Algorithm::ES384],
            _ => &[],
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            &[Algorithm::EdDSA]
        }
        // A shared secret, above all.
        _ => &[],
    };
    let named = jwk.common.key_algorithm;
    let all = of_type.iter().copied();
    all.filter(|algorithm| named.is_none_or(|named| named == (*algorithm).into()))
        .collect()
}

fn is_for_signatures(jwk: &Jwk) -> bool {
    let used = &jwk.common.public_key_use;
    let operations = &jwk.common.key_operations;
    matches!(used, None | Some(PublicKeyUse::Signature))
        && operations
            .as_ref()
            .is_none_or(|all| all.contains(&KeyOperations::Verify))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::super::testing::{Signer, rsa};
    use super::*;
    use serde_json::json;

    fn with(mut jwk: Value, field: &str, value: Value) -> Value {
        jwk[field] = value;
        jwk
    }

    fn read(keys: &[Value]) -> KeySet {
        KeySet::read(json!({"keys": keys}).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_key_is_for_the_ways_of_signing_of_its_type_or_the_one_it_names() {
        for (signer, algorithms) in [
            (rsa("a"), RSA),
            (Signer::p256("a"), &[Algorithm::ES256][..]),
            (Signer::p384("a"), &[Algorithm::ES384]),
            (Signer::ed25519("a"), &[Algorithm::EdDSA]),
        ] {
            let set = read(&[signer.jwk()]);
            assert_eq!(set.find("a").unwrap().algorithms, algorithms);
        }
        let named = with(rsa("a").jwk(), "alg", json!("PS256"));
        let set = read(&[with(named, "use", json!("sig"))]);
        assert_eq!(set.find("a").unwrap().algorithms, [Algorithm::PS256]);
    }

    #[test]
    fn what_is_for_something_else_or_not_understood_is_passed_over_alone() {
        let good = Signer::p256("good");
        let other = || Signer::p256("other").jwk();
        let mut without_id = other();
        without_id.as_object_mut().unwrap().remove("kid");
        for passed in [
            json!({"kty": "oct", "kid": "other", "k": "c2VjcmV0", "alg": "HS256"}),
            json!({"kty": "AKP", "kid": "other", "alg": "ML-DSA-44", "pub": "AAAA"}),
            json!({"kty": "EC", "kid": "other", "crv": "secp256k1", "x": "AA", "y": "AA"}),
            json!({"kty": "EC", "kid": "other", "crv": "P-521", "x": "AA", "y": "AA"}),
            json!({"kty": "RSA", "kid": "other", "n": "not base64 !", "e": "AQAB"}),
            json!("a key"),
            json!(null),
            with(other(), "use", json!("enc")),
            with(other(), "key_ops", json!(["sign"])),
            with(other(), "alg", json!("RS256")),
            with(other(), "alg", json!("ECDH-ES")),
            without_id,
        ] {
            let set = read(&[passed.clone(), good.jwk()]);
            assert!(set.find("other").is_none(), "{passed}");
            assert!(set.find("good").is_some() && set.len() == 1, "{passed}");
        }
    }

    #[test]
    fn what_is_no_set_is_told_from_an_empty_one() {
        for text in [
            "",
            "{}",
            "[]",
            "<html>",
            r#"{"keys": {}}"#,
            r#"{"keys": null}"#,
        ] {
            assert!(KeySet::read(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(read(&[]).len(), 0);
        let many: Vec<Value> = (0..150).map(|_| Signer::p256("a").jwk()).collect();
        assert_eq!(read(&many).len(), MOST);
    }
}
