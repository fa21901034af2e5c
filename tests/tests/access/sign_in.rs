//! Signing in: a page trades a key for a cookie.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::json;
use tidemark_tests::answer::Answer;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::keys::{create, id_in, keyed, keys};
use tidemark_tests::paths::chat_stream;
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::wait::until;

each_store!(
    a_page_that_has_signed_in_may_do_what_its_key_may,
    by_cookie_only_the_own_page_writes,
    a_cookie_ends_with_its_key_and_with_its_time,
);

/// The page's own Origin.
fn origin(server: &Server) -> String {
    server.base_url()
}

/// The cookie that an answer sets, as a browser sends it back.
fn cookie_in(answer: &Answer) -> String {
    let set = answer.header("set-cookie");
    for kept in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(set.contains(kept), "{set}");
    }
    set.split(';').next().unwrap().to_owned()
}

async fn sign_in(server: &Server, body: serde_json::Value) -> Answer {
    let client = server.client();
    let request = client.request(Method::POST, "/v1/login").json(&body);
    client.send(request.header("origin", origin(server))).await
}

/// A request of the page.
fn by(client: &Client, method: Method, path: &str, cookie: &str, from: &str) -> RequestBuilder {
    let request = client.request(method, path);
    request.header("cookie", cookie).header("origin", from)
}

async fn a_page_that_has_signed_in_may_do_what_its_key_may(store: Store) {
    let server = keyed(store).start().await;
    let client = server.client();
    let key = create(&server, &["--scopes", "chat,memory:read"]).await;
    let answer = sign_in(&server, json!({"key": key})).await;
    let cookie = cookie_in(&answer);
    assert!(!answer.header("set-cookie").contains("Secure"));
    assert!(
        !answer.header("set-cookie").contains(&key[37..]),
        "the key is not in it"
    );
    assert_eq!(answer.header("cache-control"), "no-store");
    let told = answer.expect(200);
    assert_eq!(told["user"], "default");
    assert_eq!(told["scopes"], json!(["chat", "memory:read"]));
    assert!(told["expires_at"].is_string());
    let own = origin(&server);
    let page = |method, path: &str| by(&client, method, path, &cookie, &own);
    client
        .send(page(Method::POST, "/v1/sessions").json(&json!({})))
        .await
        .expect(201);
    let listed = client
        .send(page(Method::GET, "/v1/sessions"))
        .await
        .expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    let refused = page(Method::POST, "/v1/memories").json(&json!({"content": "x"}));
    let refused = client.send(refused).await;
    assert_eq!(refused.expect_problem(403), "insufficient_scope");
    // A service's key may be for one user here.
    let ada = sign_in(&server, json!({"key": key, "user": "ada"})).await;
    let ada_cookie = cookie_in(&ada);
    assert_eq!(ada.expect(200)["user"], "ada");
    let ada = by(&client, Method::GET, "/v1/sessions", &ada_cookie, &own);
    assert_eq!(client.send(ada).await.expect(200)["items"], json!([]));
    let as_bob = by(&client, Method::GET, "/v1/sessions", &ada_cookie, &own);
    let refused = client.send(as_bob.header("x-tidemark-user", "bob")).await;
    assert_eq!(refused.expect_problem(403), "user_not_allowed");
    // A key that is bound stays so.
    let bound = create(&server, &["--scopes", "chat", "--user", "ada"]).await;
    let refused = sign_in(&server, json!({"key": bound, "user": "bob"})).await;
    assert_eq!(refused.expect_problem(403), "user_not_allowed");
    let request = page(Method::POST, "/v1/logout");
    let out = client.send(request).await;
    assert_eq!(out.status, 204);
    let cleared: Vec<_> = out.headers.get_all("set-cookie").iter().collect();
    assert!(
        cleared.len() == 2
            && cleared
                .iter()
                .all(|c| c.to_str().unwrap().contains("Max-Age=0"))
    );
    let log = server.log().text();
    assert!(!log.contains(&key[37..]) && !log.contains(&cookie));
}

async fn by_cookie_only_the_own_page_writes(store: Store) {
    let server = keyed(store).start().await;
    let client = server.client();
    let key = create(&server, &["--scopes", "chat"]).await;
    let cookie = cookie_in(&sign_in(&server, json!({"key": key})).await);
    let post = || {
        client
            .request(Method::POST, "/v1/sessions")
            .header("cookie", &cookie)
            .json(&json!({}))
    };
    for from in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        let refused = client.send(post().header("origin", from)).await;
        assert_eq!(refused.expect_problem(403), "forbidden_origin");
        let read = by(&client, Method::GET, "/v1/sessions", &cookie, from);
        assert_eq!(
            client.send(read).await.expect_problem(403),
            "forbidden_origin"
        );
    }
    for site in ["same-site", "cross-site"] {
        let refused = client.send(post().header("sec-fetch-site", site)).await;
        assert_eq!(refused.expect_problem(403), "forbidden_origin");
    }
    assert_eq!(
        client.send(post()).await.expect_problem(403),
        "forbidden_origin"
    );
    // A question is asked by GET.
    let ask = || {
        let request = client.request(Method::GET, &chat_stream("What is new?", None, None));
        request.header("cookie", &cookie)
    };
    assert_eq!(
        client.send(ask()).await.expect_problem(403),
        "forbidden_origin"
    );
    let own = client
        .send(ask().header("sec-fetch-site", "same-origin"))
        .await;
    assert!(
        own.status == 200 && own.text.contains("event: done"),
        "{}",
        own.text
    );
    // What only reads may come without an Origin, as browsers send it.
    let read = client
        .request(Method::GET, "/v1/sessions")
        .header("cookie", &cookie);
    let listed = client.send(read).await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    // Another page signs nobody in.
    let request = client
        .request(Method::POST, "/v1/login")
        .json(&json!({"key": key}));
    let refused = client
        .send(request.header("origin", "http://evil.example"))
        .await;
    assert_eq!(refused.expect_problem(403), "forbidden_origin");
    // A key needs no Origin: no browser sends it by itself.
    let request = post()
        .header("origin", "http://evil.example")
        .bearer_auth(&key);
    client.send(request).await.expect(201);
}

async fn a_cookie_ends_with_its_key_and_with_its_time(store: Store) {
    let server = keyed(store).start().await;
    let client = server.client();
    let (key, short) = (
        create(&server, &["--scopes", "chat"]).await,
        create(&server, &["--scopes", "chat", "--expires", "20s"]).await,
    );
    let cookie = cookie_in(&sign_in(&server, json!({"key": key})).await);
    let answer = sign_in(&server, json!({"key": short})).await;
    let brief = cookie_in(&answer);
    let own = origin(&server);
    let status = async |cookie: &str| {
        let request = by(&client, Method::GET, "/v1/sessions", cookie, &own);
        client.send(request).await.status
    };
    assert_eq!(status(&cookie).await, 200);
    assert!(keys(&server, &["revoke", &id_in(&key)]).await.success);
    for over in [&cookie, &brief] {
        until(
            "the cookie to be refused",
            Duration::from_secs(40),
            || async { (status(over).await == 401).then_some(()) },
        )
        .await;
    }
    for key in [key.as_str(), short.as_str(), "tmk_x"] {
        let refused = sign_in(&server, json!({"key": key})).await;
        assert_eq!(refused.expect_problem(401), "unauthenticated");
        assert_eq!(refused.header("set-cookie"), "");
    }
}

#[tokio::test]
async fn a_page_that_comes_over_tls_gets_a_cookie_for_tls_alone() {
    let server = keyed(Store::Sqlite).start().await;
    let client = server.client();
    let key = create(&server, &["--scopes", "chat"]).await;
    let request = client
        .request(Method::POST, "/v1/login")
        .json(&json!({"key": key}));
    let request = request
        .header("host", "chat.example.org")
        .header("origin", "https://chat.example.org");
    let answer = client.send(request).await;
    let cookie = cookie_in(&answer);
    assert!(
        cookie.starts_with("__Host-tidemark=") && answer.header("set-cookie").contains("; Secure")
    );
    let read = client
        .request(Method::GET, "/v1/sessions")
        .header("cookie", cookie);
    client.send(read).await.expect(200);
}

#[tokio::test]
async fn there_is_nothing_to_sign_in_to_where_no_keys_are_asked_for() {
    let server = Setup::on(Store::Sqlite).start().await;
    let refused = sign_in(&server, json!({"key": "x"})).await;
    assert_eq!(refused.expect_problem(404), "not_found");
}
