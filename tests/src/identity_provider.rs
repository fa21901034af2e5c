//! An identity provider in this process: it publishes keys, and tokens are signed with them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::database::Store;
use crate::server::{Server, Setup};

/// Who issues the tokens, and whom they are for.
pub const ISSUER: &str = "https://id.example.org/";
const AUDIENCE: &str = "tidemark";

/// A key that signs tokens.
#[derive(Debug)]
pub struct Signer {
    id: String,
    pair: EcdsaKeyPair,
}

/// A part of a token.
pub fn encoded(part: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(part)
}

impl Signer {
    /// A new key of that id.
    pub fn new(id: &str) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random);
        Self {
            id: id.to_owned(),
            pair: pair.expect("a key"),
        }
    }

    /// The key as it is published.
    pub fn jwk(&self) -> Value {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        json!({"kty": "EC", "kid": self.id, "use": "sig", "crv": "P-256", "x": encoded(x), "y": encoded(y)})
    }

    /// A token that says `claims`.
    pub fn token(&self, claims: &Value) -> String {
        let header = json!({"alg": "ES256", "typ": "at+jwt", "kid": self.id});
        let said = format!(
            "{}.{}",
            encoded(header.to_string()),
            encoded(claims.to_string())
        );
        let signature = self.pair.sign(&SystemRandom::new(), said.as_bytes());
        format!("{said}.{}", encoded(signature.expect("a signature")))
    }
}

/// So many seconds from now, as tokens say it.
pub fn from_now(seconds: i64) -> i64 {
    chrono::Utc::now().timestamp() + seconds
}

/// What a good token of a user of the tenant `default` says, for an hour.
pub fn claims(user: &str, scopes: &str) -> Value {
    json!({
        "iss": ISSUER,
        "aud": [AUDIENCE, "account"],
        "exp": from_now(3_600),
        "nbf": from_now(-5),
        "sub": user,
        "scope": format!("openid {scopes}"),
        "tenant": "default",
    })
}

/// The same but for one claim.
pub fn with(mut claims: Value, claim: &str, says: Value) -> Value {
    claims[claim] = says;
    claims
}

#[derive(Debug, Default)]
struct Shared {
    keys: Mutex<Vec<Value>>,
    away: AtomicBool,
    asked: AtomicUsize,
}

/// The running provider; it stops when dropped.
#[derive(Debug)]
pub struct IdentityProvider {
    /// Signs what it publishes a key for.
    pub signer: Signer,
    url: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl IdentityProvider {
    /// Starts on a free port of the loopback address.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        let router = Router::new()
            .route("/jwks.json", get(keys))
            .with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the provider serves");
        });
        let provider = Self {
            signer: Signer::new("first"),
            url: format!("http://{address}/jwks.json"),
            shared,
            serving,
        };
        provider.publish(&[&provider.signer]);
        provider
    }

    /// Publishes these keys from now on, and no others.
    pub fn publish(&self, signers: &[&Signer]) {
        *self.shared.keys.lock().unwrap() = signers.iter().map(|signer| signer.jwk()).collect();
    }

    /// Answers or not.
    pub fn be_away(&self, away: bool) {
        self.shared.away.store(away, Ordering::Relaxed);
    }

    /// How often its keys were asked for.
    pub fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// A setup whose server accepts its tokens.
    pub fn setup(&self, store: Store) -> Setup {
        Setup::on(store)
            .with("TIDEMARK_AUTH__MODE", "jwt")
            .with("TIDEMARK_AUTH__JWT__JWKS_URL", &self.url)
            .with("TIDEMARK_AUTH__JWT__ISSUER", ISSUER)
            .with("TIDEMARK_AUTH__JWT__AUDIENCE", AUDIENCE)
    }

    /// A client of `server` with a token of this user of the tenant `default`.
    pub fn client(&self, server: &Server, user: &str, scopes: &str) -> Client {
        let token = self.signer.token(&claims(user, scopes));
        server.client().with_key(&token)
    }
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn keys(State(shared): State<Arc<Shared>>) -> Response {
    shared.asked.fetch_add(1, Ordering::Relaxed);
    if shared.away.load(Ordering::Relaxed) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let keys = shared.keys.lock().unwrap().clone();
    Json(json!({ "keys": keys })).into_response()
}
