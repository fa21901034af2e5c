//! Limits of what each tenant, key and user may do: hit exactly, apart from one another, and told.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tidemark_tests::answer::Answer;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::keys::{client_of, keyed};
use tidemark_tests::model::Model;
use tidemark_tests::paths::{chat_stream, events_of, is_event, turns_of};
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::wait::until;

each_store!(
    requests_beyond_the_limit_of_a_user_are_refused_until_they_are_due,
    keys_and_tenants_have_limits_of_their_own,
    a_turn_that_is_there_is_followed_and_stopped_whatever_was_asked_before,
    open_turns_of_a_key_and_a_tenant_are_bounded_at_all_servers_together,
);

const SESSIONS: &str = "/v1/sessions";

/// A policy's name with its parameters, as structured fields have them (RFC 9651): `"user";q=6;w=60`.
fn parsed(item: &str) -> (String, Vec<(String, u64)>) {
    let mut parts = item.trim().split(';');
    let name = parts.next().unwrap();
    let name = name.strip_prefix('"').and_then(|n| n.strip_suffix('"'));
    let parameters = parts.map(|part| {
        let (key, value) = part.split_once('=').expect("a parameter");
        (key.to_owned(), value.parse().expect("a whole number"))
    });
    (name.expect("a string").to_owned(), parameters.collect())
}

/// The policies that an answer names, with how many they allow in a minute.
fn policies(answer: &Answer) -> Vec<(String, u64)> {
    let all = answer.header("ratelimit-policy").split(',').map(parsed);
    all.map(|(name, parameters)| match parameters.as_slice() {
        [(q, quota), (w, 60)] if q == "q" && w == "w" => (name, *quota),
        other => panic!("{other:?}"),
    })
    .collect()
}

/// The policy nearest to its end, what is left of it, and in how many seconds it is whole.
fn standing(answer: &Answer) -> (String, u64, u64) {
    let (name, parameters) = parsed(answer.header("ratelimit"));
    match parameters.as_slice() {
        [(r, left), (t, seconds)] if r == "r" && t == "t" => (name, *left, *seconds),
        other => panic!("{other:?}"),
    }
}

/// Fails unless the answer refuses by this policy; how long is to be waited.
fn refused(answer: &Answer, by: &str) -> Duration {
    assert_eq!(answer.expect_problem(429), "too_many_requests");
    let (name, left, seconds) = standing(answer);
    assert_eq!((name.as_str(), left), (by, 0));
    let wait: u64 = answer.header("retry-after").parse().expect("whole seconds");
    let exactly: u64 = answer.header("retry-after-ms").parse().expect("a number");
    assert_eq!((wait, wait), (seconds, exactly.div_ceil(1_000)));
    assert!(wait >= 1, "Retry-After: {wait}");
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("this {by} ")), "{detail}");
    Duration::from_millis(exactly)
}

/// Asks until it is refused; that has to be at once after so many.
async fn use_up(client: &Client, admitted: usize) -> Answer {
    for n in 0..admitted {
        let answer = client.get(SESSIONS).await;
        assert_eq!(answer.status, 200, "request {n}: {}", answer.text);
    }
    client.get(SESSIONS).await
}

async fn requests_beyond_the_limit_of_a_user_are_refused_until_they_are_due(store: Store) {
    let server = Setup::on(store)
        .with("TIDEMARK_LIMITS__USER_REQUESTS_PER_MINUTE", "6")
        .start()
        .await;
    let (ada, bob) = (
        server.client().as_user("ada"),
        server.client().as_user("bob"),
    );
    for left in (0..6).rev() {
        let answer = ada.get(SESSIONS).await;
        assert_eq!(policies(&answer), [("user".to_owned(), 6)]);
        let (name, told, seconds) = standing(&answer);
        assert_eq!(
            (name.as_str(), told, seconds),
            ("user", left, (6 - left) * 10)
        );
        answer.expect(200);
    }
    let answer = ada.post(SESSIONS, &json!({"title": "Refused"})).await;
    let wait = refused(&answer, "user");
    assert!(wait <= Duration::from_secs(10), "{wait:?}");
    // Nothing of the body is read: neither what is wrong with it, nor what it wants.
    refused(&ada.post_bytes(SESSIONS, "{").await, "user");
    assert_eq!(bob.get(SESSIONS).await.status, 200);
    for path in ["/healthz", "/metrics"] {
        let answer = ada.get(path).await;
        assert_eq!((answer.status, answer.header("ratelimit")), (200, ""));
    }
    let counted = "tidemark_limited_total{limit=\"user_requests_per_minute\"} 2";
    let metrics = ada.get("/metrics").await.text;
    assert!(metrics.contains(counted), "{metrics}");
    assert!(!metrics.contains("ada"), "{metrics}");
    tokio::time::sleep(wait).await;
    let answer = ada.get(SESSIONS).await;
    assert_eq!(answer.header("ratelimit-policy"), "\"user\";q=6;w=60");
    assert_eq!(answer.expect(200)["items"], json!([]), "what was refused");
}

async fn keys_and_tenants_have_limits_of_their_own(store: Store) {
    let server = keyed(store)
        .with("TIDEMARK_LIMITS__KEY_REQUESTS_PER_MINUTE", "4")
        .with("TIDEMARK_LIMITS__TENANT_REQUESTS_PER_MINUTE", "6")
        .start()
        .await;
    let first = client_of(&server, "acme", "chat").await;
    let second = client_of(&server, "acme", "chat").await;
    let other = client_of(&server, "globex", "chat").await;
    let answer = use_up(&first, 4).await;
    refused(&answer, "key");
    let named = [("key".to_owned(), 4), ("tenant".to_owned(), 6)];
    assert_eq!(policies(&answer), named);
    // Whatever it asks beyond its own takes nothing from the tenant's other keys.
    refused(&first.as_user("eve").get(SESSIONS).await, "key");
    let answer = second.get(SESSIONS).await;
    assert_eq!(
        standing(&answer).0,
        "tenant",
        "one is left of it, of the key three"
    );
    answer.expect(200);
    refused(&use_up(&second, 1).await, "tenant");
    refused(&use_up(&other, 4).await, "key");
    // What may be a turn that is there is looked for, but nobody is made for it.
    let path = chat_stream("New", None, Some("r-9"));
    refused(&first.as_user("invented").get(&path).await, "key");
    expect_no_user(store, &server, "acme", "invented").await;
    // A key that is none is told so, however often.
    let nobody = server.client().with_key("tmk_x");
    for _ in 0..10 {
        let answer = nobody.get(SESSIONS).await;
        answer.expect_problem(401);
        assert_eq!(answer.header("ratelimit"), "");
    }
}

/// A name is there once: it could not be made if it were there.
async fn expect_no_user(store: Store, server: &Server, tenant: &str, user: &str) {
    let statement = match store {
        Store::Sqlite => format!(
            "INSERT INTO owners (tenant_id, owner_id, user_name, created_at) \
             SELECT tenant_id, 1000000, '{user}', 0 FROM tenants WHERE name = '{tenant}'"
        ),
        _ => format!(
            "INSERT INTO owners (tenant_id, name) SELECT tenant_id, '{user}' FROM tenants WHERE name = '{tenant}'"
        ),
    };
    store.execute(server.store_url(), &statement).await;
}

async fn a_turn_that_is_there_is_followed_and_stopped_whatever_was_asked_before(store: Store) {
    let model = Model::start().await;
    let server = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_LIMITS__USER_REQUESTS_PER_MINUTE", "3")
        .start()
        .await;
    let client = server.client();
    let path = chat_stream("Long [[tokens=400 delay_ms=50]]", None, Some("r-1"));
    let mut stream = client.open(&path).await;
    let frames = stream
        .collect_until(Duration::from_secs(20), |frame| is_event(frame, "message"))
        .await;
    let read = tidemark_tests::events::Reading::of(&frames);
    let turn = read.events[0].data["turn_id"].as_str().unwrap().to_owned();
    let seen = read.events[0].id.clone();
    refused(&use_up(&client, 2).await, "user");

    // As its own request again, by the id of an event, and by the turn's own address.
    let mut again = vec![client.open(&path).await];
    again.push(client.open_after(&path, Some(&seen)).await);
    again.push(client.open(&events_of(&turn)).await);
    let ticket = client
        .post(&format!("/v1/turns/{turn}/ticket"), &json!({}))
        .await
        .expect(200);
    let url = ticket["events_url"].as_str().unwrap().to_owned();
    again.push(client.open(&url).await);
    for (query, key) in [("Long", None), ("New", Some("r-2"))] {
        let answer = client.get(&chat_stream(query, None, key)).await;
        refused(&answer, "user");
    }
    let mismatch = client.get(&chat_stream("Other", None, Some("r-1"))).await;
    assert_eq!(mismatch.expect_problem(422), "idempotency_mismatch");
    let head = client.request(Method::HEAD, SESSIONS);
    assert_eq!(client.send(head).await.status, 429);
    client
        .post(&format!("/v1/turns/{turn}/cancel"), &json!({}))
        .await
        .expect(200);
    again.push(stream);
    for mut stream in again {
        let rest = stream
            .collect_until(Duration::from_secs(20), |frame| is_event(frame, "done"))
            .await;
        assert!(rest.iter().any(|arrived| is_event(&arrived.frame, "done")));
    }
    assert!(model.requests_about("New").is_empty());
}

async fn open_turns_of_a_key_and_a_tenant_are_bounded_at_all_servers_together(store: Store) {
    let model = Model::start().await;
    let server = keyed(store)
        .model(&model)
        .with("TIDEMARK_LIMITS__TURNS_PER_KEY", "2")
        .with("TIDEMARK_LIMITS__TURNS_PER_TENANT", "3")
        .start()
        .await;
    let replica = match store {
        Store::Sqlite => None,
        _ => Some(server.start_another().await),
    };
    let first = client_of(&server, "acme", "chat").await;
    let second = client_of(&server, "acme", "chat").await;
    let other = client_of(&server, "globex", "chat").await;
    let long = json!({"message": "Long [[tokens=4000 delay_ms=50]]"});
    let mut open = Vec::new();
    for user in ["ada", "bob"] {
        let client = first.as_user(user);
        let session = client.create_session().await;
        let turn = client.post_once("k", &turns_of(&session), &long).await;
        open.push((client, session, turn.expect(202)["turn_id"].clone()));
    }
    let eve = first.as_user("eve");
    let session = eve.create_session().await;
    let refused = eve.post(&turns_of(&session), &long).await;
    assert_eq!(refused.expect_problem(429), "too_many_turns");
    assert_eq!(refused.header("retry-after"), "1");
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("this key"), "{detail}");

    // The tenant's third, with another key; a fourth is refused, at whichever server.
    let (ada, ada_session, _) = &open[0];
    let by_second = second.as_user("ada");
    by_second
        .post(&turns_of(ada_session), &long)
        .await
        .expect(202);
    let session = by_second.create_session().await;
    let mut servers = vec![by_second.clone()];
    servers.extend(
        replica
            .iter()
            .map(|server| by_second.at(&server.base_url())),
    );
    for client in servers {
        let refused = client.post(&turns_of(&session), &long).await;
        assert_eq!(refused.expect_problem(429), "too_many_turns");
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains("this tenant"), "{detail}");
    }
    // What was accepted is found again by its key, and another tenant has limits of its own.
    let again = ada.post_once("k", &turns_of(ada_session), &long).await;
    assert_eq!(again.expect(202)["turn_id"], open[0].2);
    let theirs = other.create_session().await;
    other.post(&turns_of(&theirs), &long).await.expect(202);

    let (bob, _, turn) = &open[1];
    let cancel = format!("/v1/turns/{}/cancel", turn.as_str().unwrap());
    bob.post(&cancel, &json!({})).await.expect(200);
    until("room for a turn", Duration::from_secs(20), || async {
        let answer = by_second.post(&turns_of(&session), &long).await;
        (answer.status == 202).then_some(())
    })
    .await;
}
