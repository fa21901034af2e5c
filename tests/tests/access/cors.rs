//! Pages of other origins: those that are listed may ask, by what they hold themselves.

use reqwest::{Method, RequestBuilder};
use serde_json::json;
use tidemark_tests::answer::Answer;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::keys::{create, keyed};
use tidemark_tests::server::Setup;

const PAGE: &str = "http://localhost:3000";
const LISTED: &str = "https://app.example.org,http://localhost:3000";

/// What a browser asks before it sends a request of another page.
fn preflight(client: &Client, path: &str, origin: &str) -> RequestBuilder {
    client
        .request(Method::OPTIONS, path)
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type,x-tidemark-user",
        )
}

fn allowed(answer: &Answer) -> &str {
    answer.header("access-control-allow-origin")
}

#[tokio::test]
async fn a_listed_page_is_allowed_and_told_what_it_goes_by() {
    let setup = keyed(Store::Sqlite).with("TIDEMARK_CORS__ORIGINS", LISTED);
    let server = setup.start().await;
    let nobody = server.client();
    let asked = nobody.send(preflight(&nobody, "/v1/sessions", PAGE)).await;
    assert_eq!((asked.status, allowed(&asked)), (200, PAGE));
    for method in ["GET", "POST", "PATCH", "DELETE"] {
        let methods = asked.header("access-control-allow-methods");
        assert!(methods.contains(method), "{methods}");
    }
    assert_eq!(
        asked.header("access-control-allow-headers"),
        "authorization,content-type,x-tidemark-user"
    );
    assert_eq!(asked.header("access-control-max-age"), "3600");
    let key = create(&server, &["--scopes", "chat"]).await;
    let page = server.client().with_key(&key);
    let post = |origin: &str| {
        let request = page.request(Method::POST, "/v1/sessions");
        request.header("origin", origin).json(&json!({}))
    };
    let made = page.send(post(PAGE)).await;
    assert_eq!((made.status, allowed(&made)), (201, PAGE));
    let exposed = made.header("access-control-expose-headers").to_owned();
    for header in [
        "etag",
        "location",
        "x-request-id",
        "retry-after",
        "ratelimit",
        "ratelimit-policy",
    ] {
        assert!(
            exposed.split(',').any(|e| e == header),
            "{header}: {exposed}"
        );
    }
    let vary = made.headers.get_all("vary").iter();
    assert!(
        vary.into_iter()
            .any(|v| v.to_str().unwrap().contains("origin"))
    );
    // What goes wrong is told to it too.
    for refused in [
        nobody
            .send(
                nobody
                    .request(Method::GET, "/v1/sessions")
                    .header("origin", PAGE),
            )
            .await,
        page.send(
            page.request(Method::GET, "/v1/nothing")
                .header("origin", PAGE),
        )
        .await,
        page.send(post(PAGE).header("origin", PAGE)).await,
        page.send(
            page.request(Method::POST, "/v1/sessions")
                .header("origin", PAGE)
                .body("x".repeat(2 << 20)),
        )
        .await,
    ] {
        assert!(
            [401, 404, 400, 413].contains(&refused.status),
            "{}",
            refused.text
        );
        assert_eq!(allowed(&refused), PAGE, "{}", refused.text);
    }
    // With a key of its own another page may ask, but its browser shows it nothing.
    for origin in [
        "http://localhost:3001",
        "https://app.example.org.evil.example",
        "null",
    ] {
        let made = page.send(post(origin)).await;
        assert_eq!((made.status, allowed(&made)), (201, ""), "{origin}");
        let asked = nobody
            .send(preflight(&nobody, "/v1/sessions", origin))
            .await;
        assert_eq!(allowed(&asked), "", "{origin}");
    }
}

#[tokio::test]
async fn no_page_of_another_origin_acts_by_the_cookie_of_the_own_one() {
    let setup = keyed(Store::Sqlite).with("TIDEMARK_CORS__ORIGINS", LISTED);
    let server = setup.start().await;
    let client = server.client();
    let key = create(&server, &["--scopes", "chat"]).await;
    let login = |origin: &str| {
        let request = client.request(Method::POST, "/v1/login");
        request.header("origin", origin).json(&json!({"key": key}))
    };
    let refused = client.send(login(PAGE)).await;
    assert_eq!(refused.expect_problem(403), "forbidden_origin");
    let own = client.send(login(&server.base_url())).await;
    let cookie = own
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    for method in [Method::GET, Method::POST] {
        let request = client.request(method, "/v1/sessions");
        let request = request.header("cookie", &cookie).header("origin", PAGE);
        let refused = client.send(request.json(&json!({}))).await;
        assert_eq!(refused.expect_problem(403), "forbidden_origin");
        assert_eq!(refused.header("access-control-allow-credentials"), "");
    }
    let asked = client.send(preflight(&client, "/v1/sessions", PAGE)).await;
    assert_eq!(asked.header("access-control-allow-credentials"), "");
}

#[tokio::test]
async fn without_authentication_a_listed_page_is_let_through_and_no_other() {
    let setup = Setup::on(Store::Sqlite).with("TIDEMARK_CORS__ORIGINS", LISTED);
    let server = setup.start().await;
    let client = server.client();
    let post = |origin: &str| {
        let request = client.request(Method::POST, "/v1/sessions");
        request
            .header("origin", origin)
            .header("sec-fetch-site", "same-site")
    };
    let made = client.send(post(PAGE).json(&json!({}))).await;
    assert_eq!((made.status, allowed(&made)), (201, PAGE));
    // What a form could send is refused to it as to any.
    let refused = client.send(post(PAGE).body("{}")).await;
    assert_eq!(refused.expect_problem(415), "unsupported_media_type");
    let refused = client
        .send(post("http://localhost:3001").json(&json!({})))
        .await;
    assert_eq!(refused.expect_problem(403), "forbidden_origin");
    assert_eq!(allowed(&refused), "");
}

#[tokio::test]
async fn where_none_is_listed_no_page_is_told_anything() {
    let server = keyed(Store::Sqlite).start().await;
    let client = server.client();
    let asked = client.send(preflight(&client, "/v1/sessions", PAGE)).await;
    assert_eq!(asked.expect_problem(405), "method_not_allowed");
    let read = client
        .request(Method::GET, "/v1/sessions")
        .header("origin", PAGE);
    let read = client.send(read).await;
    for answer in [asked, read] {
        let told = answer
            .headers
            .keys()
            .any(|n| n.as_str().starts_with("access-control-"));
        assert!(!told, "{:?}", answer.headers);
    }
}
