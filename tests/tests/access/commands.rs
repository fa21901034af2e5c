//! `tidemark keys`, while the server runs.

use serde_json::json;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::keys::{create, id_in, keyed, keys};
use tidemark_tests::server::{Server, command};

each_store!(
    a_key_is_shown_once_and_kept_as_a_hash_alone,
    what_cannot_be_a_key_is_refused_and_makes_nothing,
    users_of_any_tenant_are_exported_and_erased,
);

async fn a_key_is_shown_once_and_kept_as_a_hash_alone(store: Store) {
    let server = keyed(store).start().await;
    let arguments = [
        "create",
        "--tenant",
        "acme",
        "--scopes",
        "memory:read,chat",
        "--user",
        "ada",
        "--expires",
        "90d",
        "--name",
        "the page",
    ];
    let said = keys(&server, &arguments).await;
    assert!(said.success, "{}", said.err);
    let key = said.out.trim();
    assert!(
        key.starts_with("tmk_") && said.out.lines().count() == 1,
        "{}",
        said.out
    );
    assert!(!said.err.contains(&key[37..]), "{}", said.err);
    let listed = keys(&server, &["list", "--tenant", "acme"]).await.out;
    let line = listed.lines().nth(1).unwrap();
    for told in [
        &id_in(key),
        "acme",
        "ada",
        "chat,memory:read",
        "good",
        "the page",
    ] {
        assert!(line.contains(told), "{told}: {line}");
    }
    assert!(!listed.contains(&key[37..]));
    let others = keys(&server, &["list", "--tenant", "default"]).await.out;
    assert_eq!(others.lines().count(), 1, "{others}");
    if store == Store::Sqlite {
        for file in ["tidemark.db", "tidemark.db-wal"] {
            let bytes = std::fs::read(server.dir().join(file)).unwrap_or_default();
            let held = bytes.windows(38).any(|part| part == &key.as_bytes()[37..]);
            assert!(!held, "{file} holds the secret");
        }
    }
}

async fn what_cannot_be_a_key_is_refused_and_makes_nothing(store: Store) {
    let server = keyed(store).start().await;
    let unknown = uuid::Uuid::now_v7().to_string();
    for (arguments, told) in [
        (vec!["create"], "--scopes"),
        (vec!["create", "--scopes", ""], "at least one scope"),
        (
            vec!["create", "--scopes", "chat,root"],
            "\"root\" is no scope",
        ),
        (
            vec!["create", "--scopes", "admin", "--user", "ada"],
            "cannot be bound",
        ),
        (
            vec!["create", "--scopes", "chat", "--user", "a b"],
            "names no user",
        ),
        (
            vec!["create", "--scopes", "chat", "--tenant", "a b"],
            "names no tenant",
        ),
        (
            vec!["create", "--scopes", "chat", "--expires", "soon"],
            "such as 90d",
        ),
        (
            vec![
                "create",
                "--scopes",
                "chat",
                "--expires",
                "2020-01-01T00:00:00Z",
            ],
            "cannot expire",
        ),
        (vec!["revoke", "x"], "no id of a key"),
        (vec!["revoke", &unknown], "there is no key"),
        (vec!["rotate", &unknown], "there is no key"),
    ] {
        let said = keys(&server, &arguments).await;
        assert!(!said.success && said.out.is_empty(), "{arguments:?}");
        assert!(said.err.contains(told), "{arguments:?}: {}", said.err);
    }
    let listed = keys(&server, &["list"]).await.out;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let key = create(&server, &["--scopes", "chat"]).await;
    assert!(keys(&server, &["revoke", &id_in(&key)]).await.success);
    let said = keys(&server, &["rotate", &id_in(&key)]).await;
    assert!(
        !said.success && said.err.contains("was revoked"),
        "{}",
        said.err
    );
}

async fn run(server: &Server, arguments: &[&str]) -> (bool, String) {
    let mut process = command(server.settings());
    let process = process.args(arguments).current_dir(server.dir());
    let output = process.output().await.unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), out)
}

async fn users_of_any_tenant_are_exported_and_erased(store: Store) {
    let mut server = keyed(store).start().await;
    let key = create(
        &server,
        &["--tenant", "acme", "--scopes", "chat,memory:write"],
    )
    .await;
    let ada = server.client().with_key(&key).as_user("ada");
    let content = json!({"content": "The vault stands in Bern."});
    ada.post("/v1/memories", &content).await.expect(201);
    let (ended, _) = server.terminate(std::time::Duration::from_secs(15)).await;
    assert!(ended.success());
    let (done, told) = run(&server, &["export", "ada", "--tenant", "acme"]).await;
    assert!(done && told.contains("Bern"), "{told}");
    for tenant in ["default", "nobody", "a b"] {
        for what in ["export", "erase"] {
            let (done, told) = run(&server, &[what, "ada", "--tenant", tenant]).await;
            assert!(!done && told.is_empty(), "{what} {tenant}: {told}");
        }
    }
    let (done, receipt) = run(&server, &["erase", "ada", "--tenant", "acme"]).await;
    assert!(done && receipt.contains("\"memories\": 1"), "{receipt}");
    assert!(!run(&server, &["export", "ada", "--tenant", "acme"]).await.0);
}
