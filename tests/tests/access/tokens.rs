//! Tokens of an identity provider: which are accepted, whom they are for, and what becomes of them while the provider is away.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tidemark_tests::answer::Answer;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::identity_provider::{
    IdentityProvider, Signer, claims, encoded, from_now, with,
};
use tidemark_tests::keys::{ALL_SCOPES, create, keyed};
use tidemark_tests::model::Model;
use tidemark_tests::paths::{events_of, turns_of};
use tidemark_tests::server::Server;
use tidemark_tests::wait::until;

use super::operation::{Things, operations};

each_store!(
    a_token_acts_for_the_user_that_it_names_and_an_administrators_for_any,
    a_token_names_a_tenant_that_is_there_and_a_user_that_can_be_one,
    no_operation_is_served_to_a_token_without_its_scope,
    a_ticket_that_a_token_got_is_good_at_every_server_and_as_long_as_its_turn_is_open,
    a_page_signs_in_with_a_token_for_as_long_as_that_is_good,
);

/// The server reads keys at nobody's wish within this of a reading, and a slow machine adds to it.
const READ_AGAIN: Duration = Duration::from_secs(10 + 20);

async fn ask(client: &Client) -> Answer {
    client.get("/v1/sessions").await
}

fn expect_refused(answer: &Answer, of: &str) {
    assert_eq!(answer.status, 401, "{of}: {}", answer.text);
    assert_eq!(answer.expect_problem(401), "unauthenticated", "{of}");
    let challenge = answer.header("www-authenticate");
    assert!(
        challenge.contains("error=\"invalid_token\""),
        "{of}: {challenge}"
    );
}

async fn a_token_acts_for_the_user_that_it_names_and_an_administrators_for_any(store: Store) {
    let provider = IdentityProvider::start().await;
    let server = provider.setup(store).start().await;
    let ada = provider.client(&server, "ada@example.org", "chat");
    let session = ada.create_session().await;
    let path = format!("/v1/sessions/{session}");
    ada.get(&path).await.expect(200);
    ada.as_user("ada@example.org").get(&path).await.expect(200);
    let refused = ada.as_user("bob").get(&path).await;
    let code = refused.expect_problem_with(403, "X-Tidemark-User");
    assert_eq!(code, "user_not_allowed");
    let bob = provider.client(&server, "bob", "chat");
    bob.get(&path).await.expect_problem(404);
    let root = provider.client(&server, "root", "chat admin");
    root.get(&path).await.expect_problem(404);
    root.as_user("ada@example.org").get(&path).await.expect(200);
    assert_eq!(root.get("/metrics").await.status, 200);
    // Keys are good beside tokens, for the same users.
    let key = create(&server, &["--scopes", "chat"]).await;
    let service = server.client().with_key(&key).as_user("ada@example.org");
    service.get(&path).await.expect(200);
}

async fn a_token_names_a_tenant_that_is_there_and_a_user_that_can_be_one(store: Store) {
    let provider = IdentityProvider::start().await;
    let server = provider.setup(store).start().await;
    let of = |claims: &Value| server.client().with_key(&provider.signer.token(claims));
    let acme = of(&with(claims("ada", "chat"), "tenant", json!("acme")));
    for _ in 0..2 {
        let refused = ask(&acme).await;
        let code = refused.expect_problem_with(403, "tenant");
        assert_eq!(code, "unknown_identity");
    }
    // The tenant is made by its first key, and by no token.
    let key = create(&server, &["--tenant", "acme", "--scopes", "chat"]).await;
    let session = acme.create_session().await;
    let path = format!("/v1/sessions/{session}");
    let service = server.client().with_key(&key).as_user("ada");
    service.get(&path).await.expect(200);
    let elsewhere = of(&claims("ada", "chat"));
    elsewhere.get(&path).await.expect_problem(404);
    let without = with(claims("ada", "chat"), "tenant", json!(null));
    let refused = ask(&of(&without)).await;
    assert_eq!(
        refused.expect_problem_with(403, "tenant"),
        "unknown_identity"
    );
    for user in [json!("auth0|7"), json!(""), json!(null), json!(7)] {
        let refused = ask(&of(&with(claims("ada", "chat"), "sub", user))).await;
        assert_eq!(refused.expect_problem_with(403, "sub"), "unknown_identity");
    }
    // An administrator of a tenant is none of the installation.
    let root = with(claims("root", "admin"), "tenant", json!("acme"));
    let refused = of(&root).get("/metrics").await;
    assert_eq!(refused.expect_problem(403), "insufficient_scope");
}

async fn no_operation_is_served_to_a_token_without_its_scope(store: Store) {
    let provider = IdentityProvider::start().await;
    let server = provider.setup(store).start().await;
    let scopes: Vec<&str> = ALL_SCOPES.split(',').collect();
    let mut seen = 0;
    for operation in operations() {
        let Some(needed) = &operation.scope else {
            continue;
        };
        let others: Vec<&str> = scopes.iter().filter(|s| *s != needed).copied().collect();
        for lacking in [others.join(" "), String::new()] {
            let rest = provider.client(&server, "ada", &lacking);
            let request = operation.request(&rest, &Things::nowhere());
            let refused = rest.send(request).await;
            assert_eq!(refused.status, 403, "{}: {}", operation.id, refused.text);
            let code = refused.expect_problem_with(403, "scope");
            assert_eq!(code, "insufficient_scope", "{}", operation.id);
        }
        let alone = provider.client(&server, "ada", needed);
        let request = operation.request(&alone, &Things::nowhere());
        let status = alone.send(request).await.status;
        assert!(
            [200, 201, 202, 204, 404].contains(&status),
            "{}: {status}",
            operation.id
        );
        let stale = server.client().with_key("a.b.c");
        let request = operation.request(&stale, &Things::nowhere());
        expect_refused(&stale.send(request).await, &operation.id);
        seen += 1;
    }
    assert!(seen > 25, "{seen}");
}

async fn a_ticket_that_a_token_got_is_good_at_every_server_and_as_long_as_its_turn_is_open(
    store: Store,
) {
    let (provider, model) = (IdentityProvider::start().await, Model::start().await);
    let server = provider.setup(store).model(&model).start().await;
    // Within what clocks may differ by it is good; what stands for it is over by its own time.
    let late = with(claims("ada", "chat"), "exp", json!(from_now(-5)));
    let ada = server.client().with_key(&provider.signer.token(&late));
    let session = ada.create_session().await;
    let body = json!({"message": "Tell me more. [[tokens=30 delay_ms=100]]"});
    let accepted = ada.post(&turns_of(&session), &body).await.expect(202);
    let text = |field: &str| accepted[field].as_str().unwrap();
    let (turn, ticket) = (text("turn_id"), text("ticket"));
    let path = format!("{}?ticket={ticket}", events_of(turn));
    let another = match store {
        Store::Sqlite => None,
        _ => Some(server.start_another().await),
    };
    let elsewhere = another.as_ref().unwrap_or(&server).client();
    // Whatever else the request says, the ticket names the user.
    let reading = elsewhere.as_user("bob").read_to_end(&path).await;
    assert_eq!(reading.assert_one_done_last().data["status"], "completed");
    // Reconnects shortly after the end.
    elsewhere.read_to_end(&path).await;
    let bob = provider.client(&server, "bob", "chat");
    let asked = format!("/v1/turns/{turn}/ticket");
    bob.post(&asked, &json!({})).await.expect_problem(404);
    let other = bob.create_session().await;
    let other = bob.post_turn(&other, "What is new?").await;
    let mut forged = ticket.to_owned();
    let last = if forged.ends_with('A') { "B" } else { "A" };
    forged.replace_range(forged.len() - 9..forged.len() - 8, last);
    for path in [
        format!("{}?ticket={ticket}", events_of(&other)),
        format!("{}?ticket={forged}", events_of(turn)),
        format!("/v1/sessions?ticket={ticket}"),
    ] {
        let refused = server.client().get(&path).await;
        assert_eq!(refused.expect_problem(401), "unauthenticated", "{path}");
    }
}

async fn a_page_signs_in_with_a_token_for_as_long_as_that_is_good(store: Store) {
    let provider = IdentityProvider::start().await;
    let server = provider.setup(store).start().await;
    let client = server.client();
    let sign_in = async |claims: &Value, user: Option<&str>| {
        let mut body = json!({"key": provider.signer.token(claims)});
        if let Some(user) = user {
            body["user"] = json!(user);
        }
        client.post("/v1/login", &body).await
    };
    let soon = with(claims("ada", "chat"), "exp", json!(from_now(100)));
    let answer = sign_in(&soon, None).await;
    let said = answer.header("set-cookie").to_owned();
    let cookie = said.split(';').next().unwrap();
    let age = said.split("Max-Age=").nth(1).unwrap();
    let age: u64 = age.split(';').next().unwrap().parse().unwrap();
    assert!(age <= 100, "{said}");
    let told = answer.expect(200);
    assert_eq!(
        (&told["user"], &told["scopes"]),
        (&json!("ada"), &json!(["chat"]))
    );
    let by = |cookie: &str, path: &str| {
        let request = client.request(Method::GET, path);
        request.header("cookie", cookie)
    };
    let ada = provider.client(&server, "ada", "chat");
    let session = format!("/v1/sessions/{}", ada.create_session().await);
    client.send(by(cookie, &session)).await.expect(200);
    let refused = client.send(by(cookie, "/v1/memories")).await;
    assert_eq!(refused.expect_problem(403), "insufficient_scope");
    let as_bob = by(cookie, &session).header("x-tidemark-user", "bob");
    let refused = client.send(as_bob).await;
    assert_eq!(refused.expect_problem(403), "user_not_allowed");
    // Only an administrator signs in as somebody else, and then is that one alone.
    let refused = sign_in(&soon, Some("bob")).await;
    assert_eq!(refused.expect_problem(403), "user_not_allowed");
    let root = claims("root", "chat admin");
    let answer = sign_in(&root, None).await;
    let whole = answer
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let as_ada = by(&whole, &session).header("x-tidemark-user", "ada");
    client.send(as_ada).await.expect(200);
    client.send(by(&whole, &session)).await.expect_problem(404);
    let answer = sign_in(&root, Some("bob")).await;
    let bobs = answer
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let as_ada = by(&bobs, &session).header("x-tidemark-user", "ada");
    let refused = client.send(as_ada).await;
    assert_eq!(refused.expect_problem(403), "user_not_allowed");
    // Within what clocks may differ by a token is good for a request, but for no cookie, which would be over already.
    for ago in [5, 60] {
        let expired = with(claims("ada", "chat"), "exp", json!(from_now(-ago)));
        let refused = sign_in(&expired, None).await;
        assert_eq!(refused.expect_problem(401), "unauthenticated");
        assert_eq!(refused.header("set-cookie"), "");
    }
}

#[tokio::test]
async fn a_token_that_is_not_good_is_refused_and_none_is_ever_logged() {
    let (provider, model) = (IdentityProvider::start().await, Model::start().await);
    let setup = provider.setup(Store::Sqlite).model(&model);
    let server = setup.with("TIDEMARK_LOG", "trace").start().await;
    let good = provider.signer.token(&claims("zelda", "chat"));
    let (said, signature) = good.rsplit_once('.').unwrap();
    let head = said.split('.').next().unwrap();
    let bob = encoded(claims("bob", "chat admin").to_string());
    let headed = |header: Value, end: &str| {
        let claims = encoded(claims("zelda", "chat").to_string());
        format!("{}.{claims}.{end}", encoded(header.to_string()))
    };
    // Signed with what everybody may read, as if that were a secret.
    let shared = {
        let said = headed(json!({"alg": "HS256", "kid": "first"}), "");
        let said = said.trim_end_matches('.');
        let secret = provider.signer.jwk().to_string();
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
        let tag = ring::hmac::sign(&key, said.as_bytes());
        format!("{said}.{}", encoded(tag))
    };
    let changed = |claim: &str, says: Value| {
        let claims = with(claims("zelda", "chat"), claim, says);
        provider.signer.token(&claims)
    };
    let bad = [
        ("expired", changed("exp", json!(from_now(-60)))),
        ("not yet", changed("nbf", json!(from_now(90)))),
        ("endless", changed("exp", json!(null))),
        ("issuer", changed("iss", json!("https://evil.example/"))),
        ("audience", changed("aud", json!(["account"]))),
        ("tampered", format!("{head}.{bob}.{signature}")),
        (
            "unsigned",
            headed(json!({"alg": "none", "kid": "first"}), ""),
        ),
        ("shared secret", shared),
        (
            "other key",
            Signer::new("first").token(&claims("zelda", "chat")),
        ),
        (
            "unknown key",
            Signer::new("else").token(&claims("zelda", "chat")),
        ),
        (
            "key in header",
            headed(
                json!({"alg": "ES256", "jwk": provider.signer.jwk()}),
                signature,
            ),
        ),
        (
            "critical",
            headed(
                json!({"alg": "ES256", "kid": "first", "crit": ["exp"]}),
                signature,
            ),
        ),
        ("cut", said.to_owned()),
        ("long", changed("x", json!("x".repeat(8_192)))),
        ("nothing", "x".to_owned()),
    ];
    for (what, token) in &bad {
        let refused = ask(&server.client().with_key(token)).await;
        expect_refused(&refused, what);
    }
    let zelda = server.client().with_key(&good);
    let session = zelda.create_session().await;
    let turn = zelda.post_turn(&session, "What is new?").await;
    zelda.finished(&turn).await;
    let login = json!({"key": good});
    let answer = server.client().post("/v1/login", &login).await;
    let cookie = answer.header("set-cookie").to_owned();
    let cookie = cookie.split(['=', ';']).nth(1).unwrap();
    assert!(!cookie.contains(signature));
    let log = server.log().text();
    assert!(log.contains(&turn), "the log tells of the turn");
    for secret in [
        signature,
        &bob,
        cookie,
        "zelda",
        "at+jwt",
        bad[0].1.rsplit('.').next().unwrap(),
    ] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None);
    }
}

#[tokio::test]
async fn a_key_that_the_provider_adds_is_found_and_strangers_cost_it_nothing() {
    let provider = IdentityProvider::start().await;
    let server = provider.setup(Store::Sqlite).start().await;
    ask(&provider.client(&server, "ada", "chat"))
        .await
        .expect(200);
    let next = Signer::new("next");
    provider.publish(&[&provider.signer, &next]);
    let rotated = server
        .client()
        .with_key(&next.token(&claims("ada", "chat")));
    until("the next key to be known", READ_AGAIN, || async {
        for stranger in 0..20 {
            let token = Signer::new(&format!("stranger-{stranger}")).token(&claims("ada", "chat"));
            expect_refused(&ask(&server.client().with_key(&token)).await, "a stranger");
        }
        (ask(&rotated).await.status == 200).then_some(())
    })
    .await;
    let most = 2 + READ_AGAIN.as_secs() as usize / 10;
    assert!(provider.asked() <= most, "{}", provider.asked());
    // One that is published no more is good until the keys are read again.
    ask(&provider.client(&server, "ada", "chat"))
        .await
        .expect(200);
}

async fn standing(server: &Server) -> Value {
    server.client().get("/readyz").await.expect(200)["identity_provider"].clone()
}

#[tokio::test]
async fn a_server_starts_without_the_provider_and_says_so() {
    let provider = IdentityProvider::start().await;
    provider.be_away(true);
    let server = provider.setup(Store::Sqlite).start().await;
    let ada = provider.client(&server, "ada", "chat");
    let refused = ask(&ada).await;
    assert_eq!(refused.expect_problem(503), "identity_provider_unavailable");
    assert_eq!(refused.header("retry-after"), "10");
    assert_eq!(standing(&server).await, "unavailable");
    let key = create(&server, &["--scopes", "chat"]).await;
    ask(&server.client().with_key(&key)).await.expect(200);
    provider.be_away(false);
    until("tokens to be accepted", READ_AGAIN, || async {
        (ask(&ada).await.status == 200).then_some(())
    })
    .await;
    assert_eq!(standing(&server).await, "ok");
}

#[tokio::test]
async fn what_was_read_of_a_provider_holds_while_it_is_away() {
    let provider = IdentityProvider::start().await;
    let setup = provider.setup(Store::Sqlite);
    let setup = setup.with("TIDEMARK_AUTH__JWT__REFRESH_SECONDS", "10");
    let server = setup.start().await;
    let ada = provider.client(&server, "ada", "chat");
    ask(&ada).await.expect(200);
    provider.be_away(true);
    until("the provider to be missed", READ_AGAIN, || async {
        (standing(&server).await == "stale").then_some(())
    })
    .await;
    ask(&ada).await.expect(200);
    // Nobody knows whether it is the provider's.
    let unknown = Signer::new("else").token(&claims("ada", "chat"));
    let refused = ask(&server.client().with_key(&unknown)).await;
    assert_eq!(refused.expect_problem(503), "identity_provider_unavailable");
}

#[tokio::test]
async fn a_server_that_asks_for_keys_accepts_no_token() {
    let provider = IdentityProvider::start().await;
    let server = keyed(Store::Sqlite).start().await;
    let ada = provider.client(&server, "ada", "chat");
    expect_refused(&ask(&ada).await, "a token");
    assert_eq!(standing(&server).await, "none");
    assert_eq!(provider.asked(), 0);
}

#[tokio::test]
async fn claims_are_read_by_the_names_that_are_set() {
    let provider = IdentityProvider::start().await;
    let setup = provider
        .setup(Store::Sqlite)
        .with("TIDEMARK_AUTH__JWT__USER_CLAIM", "email")
        .with("TIDEMARK_AUTH__JWT__SCOPE_CLAIM", "permissions")
        .with("TIDEMARK_AUTH__JWT__TENANT_CLAIM", "org")
        .with("TIDEMARK_AUTH__JWT__TENANT", "default");
    let server = setup.start().await;
    let said = with(claims("auth0|7", ""), "email", json!("ada@example.org"));
    let said = with(said, "permissions", json!(["chat", "memory:read"]));
    let token = provider.signer.token(&said);
    let signed_in = json!({"key": token});
    let told = server.client().post("/v1/login", &signed_in).await;
    let told = told.expect(200);
    assert_eq!(told["user"], "ada@example.org");
    assert_eq!(told["scopes"], json!(["chat", "memory:read"]));
}
