//! API keys: whom they are for, how long they are good, and how soon it is heeded that they are not.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use tidemark_tests::answer::Answer;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::keys::{ALL_SCOPES, create, id_in, keyed, keys};
use tidemark_tests::wait::until;

each_store!(
    a_key_acts_for_the_user_that_the_request_names,
    a_bound_key_acts_for_its_user_alone,
    a_revoked_key_is_refused_within_seconds,
    a_rotated_key_is_good_for_its_grace_period_and_the_next_at_once,
    a_key_expires_when_it_was_to,
    an_erased_users_key_is_gone,
);

/// How soon every server heeds what happens to a key, with what a slow machine adds.
const HEEDED: Duration = Duration::from_secs(5 + 5);

async fn ask(client: &Client) -> Answer {
    client.get("/v1/sessions").await
}

/// Waits until the key is refused; it has to be within the time that is stated.
async fn until_refused(client: &Client) {
    let asked = Instant::now();
    until("the key to be refused", HEEDED, || async {
        let answer = ask(client).await;
        (answer.status == 401).then(|| answer.expect_problem(401))
    })
    .await;
    println!("refused after {:?}", asked.elapsed());
}

async fn a_key_acts_for_the_user_that_the_request_names(store: Store) {
    let server = keyed(store).start().await;
    let key = create(&server, &["--scopes", "chat"]).await;
    let service = server.client().with_key(&key);
    let session = service.as_user("ada").create_session().await;
    let path = format!("/v1/sessions/{session}");
    service.as_user("ada").get(&path).await.expect(200);
    for other in [service.as_user("bob"), service.clone()] {
        other.get(&path).await.expect_problem(404);
    }
    // Without a user it is the default one.
    let session = service.create_session().await;
    let path = format!("/v1/sessions/{session}");
    service.as_user("default").get(&path).await.expect(200);
    let bad = service.as_user("a b").get(&path).await;
    assert_eq!(
        bad.expect_problem_with(400, "X-Tidemark-User"),
        "invalid_header"
    );
}

async fn a_bound_key_acts_for_its_user_alone(store: Store) {
    let server = keyed(store).start().await;
    let bound = create(&server, &["--scopes", "chat", "--user", "ada"]).await;
    let bound = server.client().with_key(&bound);
    let service = create(&server, &["--scopes", "chat"]).await;
    let service = server.client().with_key(&service);
    let session = bound.create_session().await;
    let path = format!("/v1/sessions/{session}");
    for same in [bound.clone(), bound.as_user("ada"), service.as_user("ada")] {
        same.get(&path).await.expect(200);
    }
    for other in ["bob", "Ada", "default"] {
        let refused = bound.as_user(other).get(&path).await;
        let code = refused.expect_problem_with(403, "X-Tidemark-User");
        assert_eq!(code, "user_not_allowed");
    }
}

async fn a_revoked_key_is_refused_within_seconds(store: Store) {
    let server = keyed(store).start().await;
    let key = create(&server, &["--scopes", "chat"]).await;
    let here = server.client().with_key(&key);
    let mut servers = vec![here.clone()];
    let another = match store {
        Store::Sqlite => None,
        _ => Some(server.start_another().await),
    };
    servers.extend(another.iter().map(|server| server.client().with_key(&key)));
    for client in &servers {
        assert_eq!(ask(client).await.status, 200);
    }
    let said = keys(&server, &["revoke", &id_in(&key)]).await;
    assert!(said.success && said.err.contains("within 5 s"), "{said:?}");
    for client in &servers {
        until_refused(client).await;
        let refused = ask(client).await;
        assert!(
            refused.text.contains("the key was revoked"),
            "{}",
            refused.text
        );
        let challenge = refused.header("www-authenticate");
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    }
    // A new one is taken at once, everywhere.
    let key = create(&server, &["--scopes", "chat"]).await;
    for client in &servers {
        assert_eq!(ask(&client.with_key(&key)).await.status, 200);
    }
}

async fn a_rotated_key_is_good_for_its_grace_period_and_the_next_at_once(store: Store) {
    let server = keyed(store).start().await;
    let former = create(
        &server,
        &["--tenant", "acme", "--scopes", "chat", "--user", "ada"],
    )
    .await;
    let client = server.client().with_key(&former);
    let session = client.create_session().await;
    let said = keys(&server, &["rotate", &id_in(&former), "--grace", "12s"]).await;
    assert!(said.success, "{}", said.err);
    let next = server.client().with_key(said.out.trim());
    let path = format!("/v1/sessions/{session}");
    // Of the same tenant, user and scopes.
    next.get(&path).await.expect(200);
    assert_eq!(
        next.get("/v1/memories").await.expect_problem(403),
        "insufficient_scope"
    );
    assert_eq!(ask(&client).await.status, 200);
    let listed = keys(&server, &["list"]).await.out;
    let followed = format!("good, followed by {}", id_in(said.out.trim()));
    assert!(listed.contains(&followed), "{listed}");
    until(
        "the former key to end",
        Duration::from_secs(12) + HEEDED,
        || async {
            let answer = ask(&client).await;
            (answer.status == 401).then_some(())
        },
    )
    .await;
    let refused = ask(&client).await;
    assert!(
        refused.text.contains("the key has expired"),
        "{}",
        refused.text
    );
    next.get(&path).await.expect(200);
    let again = keys(&server, &["rotate", &id_in(&former)]).await;
    assert!(
        !again.success && again.err.contains("rotated already"),
        "{}",
        again.err
    );
}

async fn a_key_expires_when_it_was_to(store: Store) {
    let server = keyed(store).start().await;
    let made = Instant::now();
    let key = create(&server, &["--scopes", "chat", "--expires", "10s"]).await;
    let client = server.client().with_key(&key);
    assert_eq!(ask(&client).await.status, 200);
    let limit = Duration::from_secs(30);
    until("the key to expire", limit, || async {
        (ask(&client).await.status == 401).then_some(())
    })
    .await;
    assert!(made.elapsed() >= Duration::from_secs(10));
}

async fn an_erased_users_key_is_gone(store: Store) {
    let server = keyed(store).start().await;
    let admin = create(&server, &["--scopes", ALL_SCOPES]).await;
    let admin = server.client().with_key(&admin);
    let bound = create(&server, &["--scopes", "chat", "--user", "ada"]).await;
    let ada = server.client().with_key(&bound);
    ada.create_session().await;
    let receipt = admin.delete("/v1/users/ada").await.expect(200);
    assert_eq!(receipt["removed"]["api_keys"], 1);
    until_refused(&ada).await;
    let listed = keys(&server, &["list"]).await.out;
    assert!(!listed.contains("ada"), "{listed}");
}

#[tokio::test]
async fn a_server_that_asks_for_keys_listens_anywhere_and_serves_any_host() {
    let server = keyed(Store::Sqlite)
        .with("TIDEMARK_LISTEN", "0.0.0.0:0")
        .start()
        .await;
    let key = create(&server, &["--scopes", "chat"]).await;
    let port = server.address().rsplit_once(':').unwrap().1;
    let client = Client::new(&format!("http://127.0.0.1:{port}")).with_key(&key);
    let request = client
        .request(Method::POST, "/v1/sessions")
        .header("host", "chat.example.org")
        .json(&json!({}));
    client.send(request).await.expect(201);
    let warned = server.log().text().contains("plain HTTP");
    assert!(warned, "{}", server.log().text());
}

#[tokio::test]
async fn two_keys_in_one_request_are_none() {
    let server = keyed(Store::Sqlite).start().await;
    let key = create(&server, &["--scopes", "chat"]).await;
    let client = server.client().with_key(&key);
    let twice = client
        .request(Method::GET, "/v1/sessions")
        .bearer_auth(&key);
    let refused = client.send(twice).await;
    assert_eq!(
        refused.expect_problem_with(400, "Authorization"),
        "invalid_header"
    );
}
