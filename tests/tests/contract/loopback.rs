//! The server without keys trusts this machine, and therefore no web page that a browser on it may show.

use reqwest::Method;
use serde_json::{Value, json};
use tidemark_tests::database::Store;
use tidemark_tests::server::Setup;

#[tokio::test]
async fn a_foreign_host_origin_or_site_is_refused_on_every_call() {
    let server = Setup::on(Store::Sqlite).start().await;
    let client = server.client();
    let port = server.address().rsplit_once(':').unwrap().1;
    let foreign = [
        ("host", "evil.example".to_owned()),
        ("host", format!("evil.example:{port}")),
        ("host", format!("127.0.0.1.evil.example:{port}")),
        ("origin", "http://evil.example".to_owned()),
        ("origin", "null".to_owned()),
        ("origin", format!("http://localhost.evil.example:{port}")),
        ("origin", "http://127.0.0.1:1".to_owned()),
        ("sec-fetch-site", "cross-site".to_owned()),
    ];
    for (name, value) in &foreign {
        for path in [
            "/v1/memories",
            "/v1/sessions",
            "/v1/chat/stream?query=x",
            "/openapi.json",
            "/",
        ] {
            let answer = client
                .send(client.request(Method::GET, path).header(*name, value))
                .await;
            answer.expect_problem(403);
        }
        let planted = client
            .request(Method::POST, "/v1/memories")
            .header(*name, value)
            .json(&json!({"content": "planted"}));
        client.send(planted).await.expect_problem(403);
        let preflight = client
            .request(Method::OPTIONS, "/v1/memories")
            .header(*name, value);
        let preflight = client
            .send(preflight.header("access-control-request-method", "POST"))
            .await;
        assert!(
            preflight.status >= 400,
            "a preflight passed with {name}: {value}"
        );
    }
    assert_eq!(client.all("/v1/memories").await, Vec::<Value>::new());
    assert_eq!(client.all("/v1/sessions").await, Vec::<Value>::new());
}

#[tokio::test]
async fn the_own_page_and_plain_clients_are_served() {
    let server = Setup::on(Store::Sqlite).start().await;
    let client = server.client();
    let port = server.address().rsplit_once(':').unwrap().1;
    let own = [
        vec![],
        vec![
            ("host", format!("localhost:{port}")),
            ("origin", format!("http://localhost:{port}")),
            ("sec-fetch-site", "same-origin".to_owned()),
        ],
        vec![
            ("host", format!("127.0.0.1:{port}")),
            ("origin", format!("http://127.0.0.1:{port}")),
        ],
        vec![("host", format!("[::1]:{port}"))],
        vec![("sec-fetch-site", "none".to_owned())],
    ];
    for headers in own {
        let request = client
            .request(Method::POST, "/v1/sessions")
            .json(&json!({}));
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, value)
        });
        let answer = client.send(request).await;
        assert_eq!(answer.status, 201, "{headers:?}: {}", answer.text);
        assert_eq!(
            answer.header("access-control-allow-origin"),
            "",
            "no page may read this"
        );
    }
}
