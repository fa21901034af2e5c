//! What every answer tells a browser, whatever it is an answer to.

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::json;
use tidemark_tests::database::Store;
use tidemark_tests::keys::{ALL_SCOPES, client_of, keyed};
use tidemark_tests::model::Model;
use tidemark_tests::paths::events_of;

use super::operation::{Things, operations};

/// What an answer is, to a browser.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Data,
    Page,
    /// A file that pages load, which loads nothing itself.
    File,
}

fn expect_hardened(headers: &HeaderMap, of: &str, kind: Kind) {
    let said = |name: &str| {
        let all: Vec<_> = headers.get_all(name).iter().collect();
        assert!(all.len() < 2, "{of}: {name} is said twice");
        all.first().map_or("", |value| value.to_str().unwrap())
    };
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(said(name), value, "{of}: {name}");
    }
    let policy = said("content-security-policy");
    for part in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(part), "{of}: {policy}");
    }
    assert!(
        !policy.contains("unsafe") && !policy.contains('*'),
        "{of}: {policy}"
    );
    assert_eq!(
        policy.contains("script-src 'self'"),
        kind == Kind::Page,
        "{of}: {policy}"
    );
    let kept = said("cache-control");
    if kind == Kind::Data {
        assert!(kept.contains("no-store"), "{of}: {kept}");
    } else {
        assert_eq!(kept, "no-cache", "{of}");
    }
    // Over plain HTTP it would be a promise of somebody else's.
    assert_eq!(said("strict-transport-security"), "", "{of}");
}

#[tokio::test]
async fn every_answer_is_hardened() {
    let model = Model::start().await;
    let server = keyed(Store::Sqlite).model(&model).start().await;
    let client = client_of(&server, "default", ALL_SCOPES).await;
    let nobody = server.client();
    let session = client.create_session().await;
    let turn = client.post_turn(&session, "What is new?").await;
    client.finished(&turn).await;
    let events = events_of(&turn);
    let events = client.send(client.request(Method::GET, &events)).await;
    assert_eq!(events.header("content-type"), "text/event-stream");
    expect_hardened(&events.headers, "events", Kind::Data);
    let things = Things {
        session,
        turn,
        ..Things::nowhere()
    };
    let mut all = operations();
    // What ends what others ask for comes last.
    all.sort_by_key(|operation| operation.method == Method::DELETE);
    let mut seen = std::collections::BTreeSet::new();
    for operation in all {
        for (who, things) in [
            (&client, things.clone()),
            (&client, Things::nowhere()),
            (&nobody, things.clone()),
        ] {
            let answer = who.send(operation.request(who, &things)).await;
            let of = format!("{} ({})", operation.id, answer.status);
            expect_hardened(&answer.headers, &of, Kind::Data);
            seen.insert(answer.status);
        }
    }
    for status in [200, 201, 202, 204, 401, 404] {
        assert!(seen.contains(&status), "no {status} was seen: {seen:?}");
    }
    for (page, kind) in [
        ("/", Kind::Page),
        ("/docs", Kind::Page),
        ("/assets/app.js", Kind::File),
        ("/assets/icons.svg", Kind::File),
        ("/assets/nothing.js", Kind::File),
    ] {
        let whole = nobody.get(page).await;
        expect_hardened(&whole.headers, page, kind);
        let tag = whole.header("etag").to_owned();
        if !tag.is_empty() {
            let again = nobody
                .request(Method::GET, page)
                .header("if-none-match", tag);
            let again = nobody.send(again).await;
            assert_eq!(again.status, 304, "{page}");
            expect_hardened(&again.headers, page, kind);
        }
    }
    let head = nobody.send(nobody.request(Method::HEAD, "/")).await;
    expect_hardened(&head.headers, "HEAD", Kind::Page);
    for (of, answer) in [
        ("document", nobody.get("/openapi.json").await),
        ("nothing", nobody.get("/nothing").await),
        (
            "method",
            nobody
                .send(nobody.request(Method::PUT, "/v1/sessions"))
                .await,
        ),
        ("body", client.post_bytes("/v1/sessions", "{").await),
        (
            "large",
            client.post_bytes("/v1/sessions", "x".repeat(2 << 20)).await,
        ),
        (
            "login",
            nobody.post("/v1/login", &json!({"key": "x"})).await,
        ),
    ] {
        expect_hardened(&answer.headers, of, Kind::Data);
    }
}
