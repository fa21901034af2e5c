//! What a start refuses, and how it says so.

use std::collections::BTreeMap;
use std::time::Duration;

use tidemark_tests::database::Store;
use tidemark_tests::server::{Setup, command};
use tidemark_tests::wait::within;

/// Runs the binary until it ends by itself; gives whether it succeeded and what it wrote.
async fn outcome(settings: &[(&str, &str)], arguments: &[&str]) -> (bool, String) {
    let dir = tempfile::TempDir::new().unwrap();
    let store = format!("sqlite://{}", dir.path().join("tidemark.db").display());
    let mut all = BTreeMap::from([
        ("TIDEMARK_LISTEN".to_owned(), "127.0.0.1:0".to_owned()),
        ("TIDEMARK_STORE__URL".to_owned(), store),
    ]);
    all.extend(
        settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    let mut process = command(&all);
    process.args(arguments).current_dir(dir.path());
    let output = within(
        "the binary to end by itself",
        Duration::from_secs(30),
        process.output(),
    )
    .await
    .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

#[tokio::test]
async fn without_keys_only_a_loopback_address_is_served() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let (success, text) = outcome(&[("TIDEMARK_LISTEN", address)], &[]).await;
        assert!(!success, "served {address}: {text}");
        assert!(text.to_lowercase().contains("loopback"), "{text}");
    }
}

#[tokio::test]
async fn a_bad_value_is_refused_with_its_name_and_what_was_given() {
    for (name, key, value) in [
        ("TIDEMARK_LISTEN", "listen", "nowhere"),
        (
            "TIDEMARK_STREAM__HEARTBEAT_SECONDS",
            "heartbeat_seconds",
            "often",
        ),
        (
            "TIDEMARK_STREAM__HEARTBEAT_SECONDS",
            "heartbeat_seconds",
            "0",
        ),
        ("TIDEMARK_LEARNING__THRESHOLD", "threshold", "-1"),
        ("TIDEMARK_TURN__LEASE_SECONDS", "lease_seconds", "0"),
        ("TIDEMARK_AUTH__MODE", "mode", "maybe"),
        ("TIDEMARK_LOG", "log", "loud"),
        ("TIDEMARK_STORE__URL", "url", "mysql://127.0.0.1/x"),
    ] {
        let (success, text) = outcome(&[(name, value)], &[]).await;
        assert!(!success, "{name}={value} was taken: {text}");
        assert!(
            text.to_lowercase().contains(key) && text.contains(value),
            "{name}={value}: {text}"
        );
    }
}

#[tokio::test]
async fn an_address_of_redis_that_is_none_is_refused_and_its_login_not_shown() {
    for address in [
        "127.0.0.1:6379",
        "redis://me:xylophone@:no:port",
        "redis://",
    ] {
        let (success, text) = outcome(&[("TIDEMARK_EVENTS__REDIS_URL", address)], &[]).await;
        assert!(!success, "{address} was taken: {text}");
        assert!(text.contains("events.redis_url"), "{text}");
        assert!(!text.contains("xylophone"), "{text}");
    }
    let settings = [("TIDEMARK_EVENTS__REDIS_URL", "redis://me:xylo/phone@cache")];
    let (success, text) = outcome(&settings, &["config"]).await;
    assert!(success && text.contains("redis://***@cache"), "{text}");
    assert!(!text.contains("phone"), "{text}");
}

#[tokio::test]
async fn an_unknown_key_of_the_file_is_refused_and_an_unknown_variable_is_a_warning() {
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("tidemark.toml");
    std::fs::write(&file, "[stream]\nheartbeat_secons = 3\n").unwrap();
    let (success, text) = outcome(&[], &["--config", file.to_str().unwrap()]).await;
    assert!(!success && text.contains("heartbeat_secons"), "{text}");
    let server = Setup::on(Store::Sqlite)
        .with("TIDEMARK_PORT", "tcp://10.0.0.1:80")
        .start()
        .await;
    assert!(
        server.log().text().contains("TIDEMARK_PORT"),
        "{}",
        server.log().text()
    );
}

#[tokio::test]
async fn the_effective_settings_are_printed_with_secrets_hidden() {
    let (success, text) = outcome(
        &[
            ("TIDEMARK_MODEL__API_KEY", "sk-very-secret"),
            ("TIDEMARK_STREAM__HEARTBEAT_SECONDS", "7"),
        ],
        &["config"],
    )
    .await;
    assert!(success, "{text}");
    assert!(text.contains("heartbeat_seconds = 7"), "{text}");
    assert!(!text.contains("sk-very-secret"), "{text}");
}

#[tokio::test]
async fn a_second_process_on_the_same_file_is_refused() {
    let server = Setup::on(Store::Sqlite).start().await;
    let store = format!("sqlite://{}", server.dir().join("tidemark.db").display());
    let (success, text) = outcome(&[("TIDEMARK_STORE__URL", &store)], &[]).await;
    assert!(!success, "two processes write one file: {text}");
    server.client().get("/readyz").await.expect(200);
}
