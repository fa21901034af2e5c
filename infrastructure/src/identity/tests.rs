//! Tokens, good and bad, against a provider in this process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::held::REST;
use super::source::LIMIT;
use super::testing::{Signer, joined, rsa};
use super::*;

/// Answers each request with a whole response.
struct Provider {
    url: String,
    response: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn response(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

impl Provider {
    async fn start(keys: &[&Signer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
        let response = Arc::new(Mutex::new(String::new()));
        let asked = Arc::new(AtomicUsize::new(0));
        let (answer, count) = (Arc::clone(&response), Arc::clone(&asked));
        let serving = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                // The head of a request for keys fits into one piece.
                let mut head = [0; 4_096];
                let _ = stream.read(&mut head).await;
                count.fetch_add(1, Ordering::Relaxed);
                let answer = answer.lock().unwrap().clone();
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let provider = Self {
            url,
            response,
            asked,
            serving,
        };
        provider.publish(keys);
        provider
    }

    fn publish(&self, keys: &[&Signer]) {
        let keys: Vec<Value> = keys.iter().map(|signer| signer.jwk()).collect();
        self.answer(&response("200 OK", &json!({ "keys": keys }).to_string()));
    }

    fn answer(&self, whole: &str) {
        whole.clone_into(&mut self.response.lock().unwrap());
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn client(&self) -> JwksProvider {
        client(&self.url)
    }
}

const INTERVAL: Duration = Duration::from_mins(5);
const PATIENCE: Duration = Duration::from_hours(1);

fn client(url: &str) -> JwksProvider {
    JwksProvider::start(ProviderOptions {
        jwks_url: url.to_owned(),
        issuer: "https://id.example.org/".to_owned(),
        audience: "tidemark".to_owned(),
        interval: INTERVAL,
        patience: PATIENCE,
    })
    .unwrap()
}

const EXPIRES: i64 = 1_800_000_000;

fn claims() -> Value {
    json!({"iss": "https://id.example.org/", "aud": "tidemark", "exp": EXPIRES, "sub": "ada"})
}

fn with(mut object: Value, field: &str, value: Value) -> Value {
    object[field] = value;
    object
}

fn without(mut object: Value, field: &str) -> Value {
    object.as_object_mut().unwrap().remove(field);
    object
}

#[tokio::test]
async fn a_token_is_verified_in_every_way_that_its_key_is_for() {
    let signers = [
        rsa("rsa"),
        Signer::p256("p256"),
        Signer::p384("p384"),
        Signer::ed25519("ed25519"),
    ];
    let provider = Provider::start(&signers.each_ref()).await;
    let client = provider.client();
    let mut seen = 0;
    for signer in &signers {
        for way in signer.ways() {
            let token = client.verify(&signer.token(way, &claims())).await.unwrap();
            assert_eq!(token.claims["sub"], "ada", "{way}");
            assert_eq!(token.expires_at.timestamp(), EXPIRES);
            assert_eq!(token.not_before, None);
            seen += 1;
        }
    }
    assert_eq!(seen, 9);
    assert_eq!(client.reading(), Reading::Well);
    assert_eq!(provider.asked(), 1);
}

#[tokio::test]
async fn a_token_that_is_not_signed_by_its_key_in_a_way_it_is_for_is_refused() {
    let (rsa, p256, other) = (rsa("rsa"), Signer::p256("p256"), Signer::p256("p256"));
    let provider = Provider::start(&[&rsa, &p256]).await;
    let client = provider.client();
    let good = p256.token("ES256", &claims());
    let (said, signature) = good.rsplit_once('.').unwrap();
    let tampered = with(claims(), "sub", json!("bob")).to_string();
    let tampered = {
        use base64::Engine as _;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(tampered)
    };
    let (head, _) = said.split_once('.').unwrap();
    // The public key taken for a shared secret, as a careless verifier would.
    let shared = {
        use ring::hmac;
        let header = json!({"alg": "HS256", "kid": "p256"});
        let unsigned = joined(&header, &claims(), b"");
        let unsigned = unsigned.trim_end_matches('.');
        let secret = p256.jwk().to_string();
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let tag = hmac::sign(&secret, unsigned.as_bytes());
        joined(&header, &claims(), tag.as_ref())
    };
    let named = |way: &str| json!({"alg": way, "kid": "p256"});
    for (token, refused) in [
        (
            format!("{head}.{tampered}.{signature}"),
            Unverified::Signature,
        ),
        (other.token("ES256", &claims()), Unverified::Signature),
        (format!("{said}."), Unverified::Signature),
        (format!("{said}.AAAA"), Unverified::Signature),
        (shared, Unverified::Algorithm),
        (
            joined(&named("none"), &claims(), b""),
            Unverified::Malformed,
        ),
        (
            joined(&named("None"), &claims(), b""),
            Unverified::Malformed,
        ),
        // Signed by a key of the set, under the name of one of another type.
        (
            rsa.token_with(&named("RS256"), "RS256", &claims()),
            Unverified::Algorithm,
        ),
        (
            p256.token_with(&named("EdDSA"), "ES256", &claims()),
            Unverified::Algorithm,
        ),
        (
            p256.token_with(&named("ES384"), "ES256", &claims()),
            Unverified::Algorithm,
        ),
        // Something that has to be understood and is not.
        (
            p256.token_with(
                &with(named("ES256"), "crit", json!(["x"])),
                "ES256",
                &claims(),
            ),
            Unverified::Malformed,
        ),
        (
            p256.token_with(&json!({"alg": "ES256"}), "ES256", &claims()),
            Unverified::UnknownKey,
        ),
        (said.to_owned(), Unverified::Malformed),
        (format!("{good}.x"), Unverified::Malformed),
        (String::new(), Unverified::Malformed),
        ("..".to_owned(), Unverified::Malformed),
        (p256.token("ES256", &json!("ada")), Unverified::Malformed),
        (
            p256.token(
                "ES256",
                &with(claims(), "x", json!("x".repeat(MAX_TOKEN_BYTES))),
            ),
            Unverified::Malformed,
        ),
    ] {
        assert_eq!(client.verify(&token).await, Err(refused), "{token}");
    }
    client.verify(&good).await.unwrap();
}

#[tokio::test]
async fn a_token_is_of_the_issuer_for_the_audience_and_says_when_it_ends() {
    let signer = Signer::p256("a");
    let provider = Provider::start(&[&signer]).await;
    let client = provider.client();
    let several = with(claims(), "aud", json!(["else", "tidemark"]));
    let times = with(claims(), "exp", json!(1_800_000_000.7));
    let times = with(times, "nbf", json!(5));
    client
        .verify(&signer.token("ES256", &several))
        .await
        .unwrap();
    let token = client.verify(&signer.token("ES256", &times)).await.unwrap();
    assert_eq!(token.expires_at.timestamp(), EXPIRES);
    assert_eq!(token.not_before.unwrap().timestamp(), 5);
    for (claims, refused) in [
        (
            with(claims(), "iss", json!("https://id.example.org")),
            Unverified::Issuer,
        ),
        (with(claims(), "iss", json!(7)), Unverified::Issuer),
        (
            with(
                claims(),
                "iss",
                json!(["https://id.example.org/", "https://evil.example/"]),
            ),
            Unverified::Issuer,
        ),
        (without(claims(), "iss"), Unverified::Issuer),
        (
            with(claims(), "aud", json!("tidemark2")),
            Unverified::Audience,
        ),
        (with(claims(), "aud", json!(["else"])), Unverified::Audience),
        (with(claims(), "aud", json!([])), Unverified::Audience),
        (without(claims(), "aud"), Unverified::Audience),
        (without(claims(), "exp"), Unverified::Expiry),
        (
            with(claims(), "exp", json!("2100-01-01")),
            Unverified::Expiry,
        ),
        (with(claims(), "exp", json!(1e300)), Unverified::Expiry),
        (with(claims(), "nbf", json!("soon")), Unverified::Malformed),
    ] {
        let verified = client.verify(&signer.token("ES256", &claims)).await;
        assert_eq!(verified, Err(refused), "{claims}");
    }
}

#[tokio::test]
async fn a_token_that_can_be_read_in_two_ways_is_read_in_none() {
    let signer = Signer::p256("a");
    let provider = Provider::start(&[&signer]).await;
    let client = provider.client();
    let (header, said) = (r#"{"alg":"ES256","kid":"a"}"#, claims().to_string());
    let also = |text: &str, more: &str| format!("{},{more}}}", text.trim_end_matches('}'));
    let good = signer.token_of(header, "ES256", &also(&said, r#""tenant":"acme""#));
    client.verify(&good).await.unwrap();
    for (header, said) in [
        (header.to_owned(), also(&said, r#""sub":"bob""#)),
        (
            header.to_owned(),
            also(&said, r#""iss":"https://id.example.org/""#),
        ),
        (
            header.to_owned(),
            also(&said, r#""tenant":"a","tenant":"b""#),
        ),
        (header.to_owned(), format!("{said} {said}")),
        (also(header, r#""kid":"a""#), said.clone()),
        (also(header, r#""alg":"ES256""#), said.clone()),
        (also(header, r#""b64":false,"crit":["b64"]"#), said.clone()),
        (also(header, r#""b64":false"#), said.clone()),
        (also(header, r#""crit":[]"#), said.clone()),
        (also(header, r#""crit":["exp"],"exp":1"#), said.clone()),
    ] {
        let token = signer.token_of(&header, "ES256", &said);
        let verified = client.verify(&token).await;
        assert_eq!(verified, Err(Unverified::Malformed), "{header} {said}");
    }
}

#[tokio::test]
async fn what_a_token_says_of_where_its_key_is_is_not_asked() {
    let (signer, evil) = (Signer::p256("a"), Signer::p256("evil"));
    let (provider, its) = (
        Provider::start(&[&signer]).await,
        Provider::start(&[&evil]).await,
    );
    let client = provider.client();
    client
        .verify(&signer.token("ES256", &claims()))
        .await
        .unwrap();
    for id in ["a", "evil"] {
        let header =
            json!({"alg": "ES256", "kid": id, "jku": its.url, "x5u": its.url, "jwk": evil.jwk()});
        let token = evil.token_with(&header, "ES256", &claims());
        let expected = if id == "a" {
            Unverified::Signature
        } else {
            Unverified::UnknownKey
        };
        assert_eq!(client.verify(&token).await, Err(expected), "{id}");
    }
    assert_eq!((provider.asked(), its.asked()), (1, 0));
}

/// Lets the time pass in which no wish is heard.
async fn rested() {
    passed(REST + Duration::from_secs(1)).await;
}

async fn passed(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn many_unknown_keys_cause_one_reading_in_a_while_and_a_new_one_is_found_by_it() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let provider = Provider::start(&[&old]).await;
    let client = provider.client();
    client.verify(&old.token("ES256", &claims())).await.unwrap();
    provider.publish(&[&old, &new]);
    let token = new.token("ES256", &claims());
    // Just read: nobody's wish is heard.
    let strangers: Vec<_> = (0..50)
        .map(|i| Signer::p256(&format!("stranger-{i}")).token("ES256", &claims()))
        .collect();
    let all = || join_all(strangers.iter().map(|token| client.verify(token)));
    for refused in all().await {
        assert_eq!(refused, Err(Unverified::UnknownKey));
    }
    assert_eq!(client.verify(&token).await, Err(Unverified::UnknownKey));
    assert_eq!(provider.asked(), 1);
    rested().await;
    let (found, refused) = tokio::join!(client.verify(&token), all());
    found.unwrap();
    assert!(refused.iter().all(|r| *r == Err(Unverified::UnknownKey)));
    all().await;
    assert_eq!(provider.asked(), 2);
}

#[tokio::test]
async fn what_was_read_holds_while_the_provider_is_away_and_it_is_tried_again() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let provider = Provider::start(&[&old]).await;
    let client = provider.client();
    let token = old.token("ES256", &claims());
    client.verify(&token).await.unwrap();
    let unknown = new.token("ES256", &claims());
    for (asked, away) in [
        response("503 Service Unavailable", ""),
        response("200 OK", "<html>"),
        response("200 OK", &"x".repeat(600 * 1024)),
        format!(
            "HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
            provider.url
        ),
        String::new(),
    ]
    .into_iter()
    .enumerate()
    {
        provider.answer(&away);
        rested().await;
        let refused = client.verify(&unknown).await;
        assert_eq!(refused, Err(Unverified::Unavailable), "{asked}");
        assert_eq!(client.reading(), Reading::Stale);
        client.verify(&token).await.unwrap();
        while provider.asked() < asked + 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(provider.asked(), asked + 2);
    }
    provider.publish(&[&new]);
    rested().await;
    client.verify(&unknown).await.unwrap();
    assert_eq!(client.reading(), Reading::Well);
    // And one that is published no more is not known any more.
    assert_eq!(client.verify(&token).await, Err(Unverified::UnknownKey));
}

#[tokio::test]
async fn what_was_read_does_not_hold_for_ever() {
    let signer = Signer::p256("a");
    let provider = Provider::start(&[&signer]).await;
    let client = provider.client();
    let token = signer.token("ES256", &claims());
    client.verify(&token).await.unwrap();
    provider.answer(&response("503 Service Unavailable", ""));
    passed(PATIENCE).await;
    client.verify(&token).await.unwrap();
    passed(INTERVAL).await;
    assert_eq!(client.verify(&token).await, Err(Unverified::Unavailable));
    assert_eq!(client.reading(), Reading::Missing);
    provider.publish(&[&signer]);
    for _ in 0..2 {
        // A reading may have been under way, and failed.
        rested().await;
        let _ = client.verify(&token).await;
    }
    client.verify(&token).await.unwrap();
    assert_eq!(client.reading(), Reading::Well);
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_waited_for_for_seconds() {
    let signer = Signer::p256("a");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (arrived, came) = tokio::sync::oneshot::channel();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{";
        stream.write_all(head).await.unwrap();
        arrived.send(()).unwrap();
        loop {
            // A little again and again, so that no pause is a long one.
            tokio::time::sleep(Duration::from_secs(1)).await;
            if stream.write_all(b" ").await.is_err() {
                break;
            }
        }
    });
    let client = client(&url);
    came.await.unwrap();
    tokio::time::pause();
    let asked = Instant::now();
    let refused = client.verify(&signer.token("ES256", &claims())).await;
    assert_eq!(refused, Err(Unverified::Unavailable));
    assert!(asked.elapsed() <= LIMIT + Duration::from_secs(1));
    serving.abort();
}

#[tokio::test]
async fn a_provider_that_never_answered_is_told_from_one_that_does_not_know_a_key() {
    let signer = Signer::p256("a");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let client = client(&url);
    let asked = Instant::now();
    let refused = client.verify(&signer.token("ES256", &claims())).await;
    assert_eq!(refused, Err(Unverified::Unavailable));
    assert!(asked.elapsed() < Duration::from_secs(20));
    assert_eq!(client.reading(), Reading::Missing);
}

#[test]
fn an_address_that_keys_cannot_be_taken_from_is_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let _entered = runtime.as_ref().unwrap().enter();
    let refused = JwksProvider::start(ProviderOptions {
        jwks_url: "http://id.example.org/".to_owned(),
        issuer: "i".to_owned(),
        audience: "a".to_owned(),
        interval: INTERVAL,
        patience: PATIENCE,
    });
    assert!(matches!(refused, Err(SourceError::Address(_))));
}
