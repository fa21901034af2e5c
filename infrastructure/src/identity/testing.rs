//! Those who sign for this folder's tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::{KeyPairComponents, PublicKeyComponents};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use serde_json::{Value, json};

enum Pair {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair, &'static str),
    Ed25519(Ed25519KeyPair),
}

/// Somebody with a key.
pub(super) struct Signer {
    pub(super) id: String,
    pair: Pair,
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The key of RFC 7515, A.2: ring makes no RSA keys.
const RSA: &str = include_str!("rfc7515_a2.json");

fn rsa_part(name: &str) -> String {
    let key: Value = serde_json::from_str(RSA).unwrap();
    key[name].as_str().unwrap().to_owned()
}

pub(super) fn rsa(id: &str) -> Signer {
    let part = |name: &str| URL_SAFE_NO_PAD.decode(rsa_part(name)).unwrap();
    let components = KeyPairComponents {
        public_key: PublicKeyComponents {
            n: part("n"),
            e: part("e"),
        },
        d: part("d"),
        p: part("p"),
        q: part("q"),
        dP: part("dp"),
        dQ: part("dq"),
        qInv: part("qi"),
    };
    let pair = RsaKeyPair::from_components(&components).unwrap();
    Signer {
        id: id.to_owned(),
        pair: Pair::Rsa(pair),
    }
}

impl Signer {
    pub(super) fn p256(id: &str) -> Self {
        Self::ecdsa(id, &ECDSA_P256_SHA256_FIXED_SIGNING, "P-256")
    }

    pub(super) fn p384(id: &str) -> Self {
        Self::ecdsa(id, &ECDSA_P384_SHA384_FIXED_SIGNING, "P-384")
    }

    fn ecdsa(id: &str, algorithm: &'static EcdsaSigningAlgorithm, curve: &'static str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Self {
            id: id.to_owned(),
            pair: Pair::Ecdsa(pair, curve),
        }
    }

    pub(super) fn ed25519(id: &str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self {
            id: id.to_owned(),
            pair: Pair::Ed25519(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap()),
        }
    }

    /// The key as it is published.
    pub(super) fn jwk(&self) -> Value {
        let id = &self.id;
        match &self.pair {
            Pair::Rsa(_) => {
                json!({"kty": "RSA", "kid": id, "n": rsa_part("n"), "e": rsa_part("e")})
            }
            Pair::Ecdsa(pair, curve) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                json!({"kty": "EC", "kid": id, "crv": curve, "x": encoded(x), "y": encoded(y)})
            }
            Pair::Ed25519(pair) => {
                json!({"kty": "OKP", "kid": id, "crv": "Ed25519", "x": encoded(pair.public_key())})
            }
        }
    }

    /// The ways of signing that it knows.
    pub(super) fn ways(&self) -> &'static [&'static str] {
        match &self.pair {
            Pair::Rsa(_) => &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
            Pair::Ecdsa(_, "P-256") => &["ES256"],
            Pair::Ecdsa(..) => &["ES384"],
            Pair::Ed25519(_) => &["EdDSA"],
        }
    }

    fn signature(&self, way: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let encoding: &dyn RsaEncoding = match way {
                    "RS256" => &RSA_PKCS1_SHA256,
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    other => panic!("{other} is no way of RSA"),
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(encoding, &random, message, &mut signature)
                    .unwrap();
                signature
            }
            Pair::Ecdsa(pair, _) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// A token with this header, signed in `way`.
    pub(super) fn token_with(&self, header: &Value, way: &str, claims: &Value) -> String {
        self.token_of(&header.to_string(), way, &claims.to_string())
    }

    /// The same of texts, which may be no JSON that others would write.
    pub(super) fn token_of(&self, header: &str, way: &str, claims: &str) -> String {
        let said = format!("{}.{}", encoded(header), encoded(claims));
        let signature = encoded(self.signature(way, said.as_bytes()));
        format!("{said}.{signature}")
    }

    /// A token signed in `way`.
    pub(super) fn token(&self, way: &str, claims: &Value) -> String {
        self.token_with(&json!({"alg": way, "kid": self.id}), way, claims)
    }
}

/// The parts of a token, joined again.
pub(super) fn joined(header: &Value, claims: &Value, signature: &[u8]) -> String {
    let (header, claims) = (encoded(header.to_string()), encoded(claims.to_string()));
    format!("{header}.{claims}.{}", encoded(signature))
}
