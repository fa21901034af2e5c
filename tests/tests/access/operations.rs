//! Each operation of the document asks for a key, for its scope, and tells nothing of others.

use serde_json::{Value, json};
use tidemark_tests::answer::Answer;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::keys::{ALL_SCOPES, client_of, create, keyed};
use tidemark_tests::model::Model;
use tidemark_tests::paths::id_of;
use tidemark_tests::server::Server;

use super::operation::{Things, operations};

each_store!(
    no_operation_is_served_without_a_key_but_those_that_tell_nothing,
    no_operation_is_served_without_its_scope_and_each_with_it_alone,
    nothing_of_another_tenant_or_user_is_there_for_any_operation,
);

/// `WWW-Authenticate` as RFC 6750 has it.
fn expect_unauthenticated(answer: &Answer, of: &str) {
    assert_eq!(answer.status, 401, "{of}: {}", answer.text);
    assert_eq!(answer.expect_problem(401), "unauthenticated", "{of}");
    let challenge = answer.header("www-authenticate");
    assert!(challenge.starts_with("Bearer realm="), "{of}: {challenge}");
}

async fn no_operation_is_served_without_a_key_but_those_that_tell_nothing(store: Store) {
    let server = keyed(store).start().await;
    let key = create(&server, &["--scopes", ALL_SCOPES]).await;
    let mut forged = key.clone();
    forged.pop();
    let another = format!("{}{}", &key[..37], "a".repeat(38));
    let nobody = server.client();
    let mut open = Vec::new();
    for operation in operations() {
        if operation.scope.is_none() {
            open.push(operation.template.clone());
        }
        for client in [
            nobody.clone(),
            nobody.with_key(&forged),
            nobody.with_key(&another),
            nobody.with_key("x"),
            nobody.as_user("ada"),
        ] {
            let request = operation.request(&client, &Things::nowhere());
            let answer = client.send(request).await;
            if operation.scope.is_none() {
                // Signing in is what a key is shown for.
                let expected = match operation.id.as_str() {
                    "login" => 401,
                    "logout" => 204,
                    _ => 200,
                };
                assert_eq!(answer.status, expected, "{}", operation.id);
            } else {
                expect_unauthenticated(&answer, &operation.id);
            }
        }
    }
    assert_eq!(open, ["/healthz", "/readyz", "/v1/login", "/v1/logout"]);
    for page in ["/", "/docs", "/openapi.json", "/assets/app.js"] {
        assert_eq!(nobody.get(page).await.status, 200, "{page}");
    }
    let log = server.log().text();
    for secret in [&key, &forged, &another] {
        assert!(!log.contains(&secret[37..]), "a key is in the log");
    }
}

async fn no_operation_is_served_without_its_scope_and_each_with_it_alone(store: Store) {
    let server = keyed(store).start().await;
    let scopes: Vec<&str> = ALL_SCOPES.split(',').collect();
    let mut with = Vec::new();
    for scope in &scopes {
        let others: Vec<&str> = scopes.iter().filter(|s| *s != scope).copied().collect();
        let alone = client_of(&server, "default", scope).await;
        let rest = client_of(&server, "default", &others.join(",")).await;
        with.push((*scope, alone, rest));
    }
    let mut seen = 0;
    for operation in operations() {
        let Some(needed) = &operation.scope else {
            continue;
        };
        let (_, alone, rest) = with.iter().find(|(scope, ..)| scope == needed).unwrap();
        let refused = rest.send(operation.request(rest, &Things::nowhere())).await;
        assert_eq!(refused.status, 403, "{}: {}", operation.id, refused.text);
        let code = refused.expect_problem_with(403, "scope");
        assert_eq!(code, "insufficient_scope", "{}", operation.id);
        let told = refused.body["errors"].to_string();
        assert!(told.contains(&format!("\"{needed} ")), "{told}");
        let challenge = refused.header("www-authenticate");
        assert!(
            challenge.contains(&format!("scope=\"{needed}\"")),
            "{challenge}"
        );
        let answer = alone
            .send(operation.request(alone, &Things::nowhere()))
            .await;
        let status = answer.status;
        assert!(
            [200, 201, 202, 204, 404].contains(&status),
            "{}: {status} {}",
            operation.id,
            answer.text
        );
        seen += 1;
    }
    assert!(seen > 25, "{seen}");
}

/// A failed job of a user's, behind the server's back.
pub(crate) async fn failed_job(store: Store, server: &Server, user: &str) -> String {
    let id = uuid::Uuid::now_v7();
    let statement = match store {
        Store::Sqlite => format!(
            "INSERT INTO jobs (tenant_id, owner_id, id, kind, state, run_at, created_at) \
             SELECT tenant_id, owner_id, X'{}', 'index', 'failed', 0, 0 FROM owners WHERE user_name = '{user}'",
            id.simple()
        ),
        _ => format!(
            "INSERT INTO jobs (tenant_id, owner_id, id, kind, state, run_at, created_at) \
             SELECT tenant_id, owner_id, '{id}', 'index', 'failed', now(), now() FROM owners WHERE name = '{user}'"
        ),
    };
    store.execute(server.store_url(), &statement).await;
    id.to_string()
}

/// Everything of `client`, for comparison.
async fn everything(client: &Client, things: &Things) -> Vec<Value> {
    let mut all = client.history(&things.session).await;
    for list in ["/v1/sessions", "/v1/memories", "/v1/changes", "/v1/jobs"] {
        all.extend(client.all(list).await);
    }
    all.push(client.turn(&things.turn).await);
    all
}

async fn nothing_of_another_tenant_or_user_is_there_for_any_operation(store: Store) {
    let model = Model::start().await;
    let server = keyed(store).model(&model).start().await;
    let acme = client_of(&server, "acme", ALL_SCOPES).await;
    let ada = acme.as_user("ada");
    let session = ada.create_session().await;
    let turn = ada.post_turn(&session, "The vault stands in Bern.").await;
    ada.finished(&turn).await;
    let memory = json!({"content": "The vault stands in Bern."});
    let memory = id_of(&ada.post("/v1/memories", &memory).await.expect(201));
    ada.until_no_jobs().await;
    let changes = ada.all("/v1/changes").await;
    let things = Things {
        change: id_of(&changes[0]),
        job: failed_job(store, &server, "ada").await,
        user: "ada".to_owned(),
        session,
        turn,
        memory,
    };
    let before = everything(&ada, &things).await;

    let bound = create(
        &server,
        &[
            "--tenant",
            "acme",
            "--user",
            "bob",
            "--scopes",
            "chat,memory:read,memory:write",
        ],
    )
    .await;
    let elsewhere = client_of(&server, "other", ALL_SCOPES).await;
    let strangers = [
        ("another tenant", elsewhere.clone()),
        ("the same name in another tenant", elsewhere.as_user("ada")),
        ("another user", acme.as_user("bob")),
        ("a key of another user", server.client().with_key(&bound)),
    ];
    let mut all = operations();
    // First: what strangers make later makes users of their tenant.
    all.sort_by_key(|operation| !operation.template.starts_with("/v1/users/"));
    for operation in all {
        let Some(scope) = &operation.scope else {
            continue;
        };
        for (who, stranger) in &strangers {
            let at = format!("{} as {who}", operation.id);
            let same_tenant = who.contains("user");
            if scope == "admin" && same_tenant {
                // The whole tenant is the administrator's.
                continue;
            }
            let answer = stranger.send(operation.request(stranger, &things)).await;
            if operation.id == "metrics" {
                // They are the installation's, whose operator is another.
                assert_eq!(answer.expect_problem(403), "insufficient_scope", "{at}");
            } else if operation.names_a_thing() || operation.id == "chat_stream" {
                assert_eq!(answer.status, 404, "{at}: {}", answer.text);
                answer.expect_problem(404);
            } else if operation.lists() {
                assert_eq!(answer.status, 200, "{at}: {}", answer.text);
                assert_eq!(answer.body["items"], json!([]), "{at}");
            } else {
                // It makes something, which is the stranger's own.
                assert_eq!(answer.status, 201, "{at}: {}", answer.text);
                let made = answer.body["id"].as_str().unwrap();
                let path = format!("{}/{made}", operation.template);
                ada.get(&path).await.expect_problem(404);
                stranger.delete(&path).await;
            }
        }
    }
    assert_eq!(everything(&ada, &things).await, before);
    // And who may, can.
    for operation in operations() {
        if operation.names_a_thing() && operation.method == reqwest::Method::GET {
            let answer = ada.send(operation.request(&ada, &things)).await;
            assert_eq!(answer.status, 200, "{}: {}", operation.id, answer.text);
        }
    }
}
