//! The page in a real browser: each script of `tests/browser` against a server of its own.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::path::PathBuf;
use std::time::Duration;

use tidemark_tests::database::Store;
use tidemark_tests::server::{Setup, repository, with_model};
use tidemark_tests::wait::within;
use tokio::process::Command;

/// The scripts that run a test; the others are parts of them.
fn scripts() -> Vec<PathBuf> {
    let folder = repository().join("tests/browser");
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| {
        path.extension().is_some_and(|extension| extension == "mjs")
            && std::fs::read_to_string(path)
                .unwrap()
                .contains("await test(")
    });
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_does_in_a_browser_what_its_scripts_ask_of_it() {
    for variable in [
        "TIDEMARK_TEST_CHROMIUM",
        "TIDEMARK_TEST_NODE_MODULES_BROWSER",
    ] {
        assert!(
            std::env::var_os(variable).is_some(),
            "{variable} is not set: scripts/test installs it and sets it"
        );
    }
    let scripts = scripts();
    assert!(!scripts.is_empty(), "no browser script to run");
    let mut failed = Vec::new();
    for script in scripts {
        let (server, model, _client) = with_model(Store::Sqlite).await;
        let offline = Setup::on(Store::Sqlite).start().await;
        let mut node = Command::new("node");
        node.arg(&script)
            .env("BASE_URL", server.base_url())
            .env("OFFLINE_BASE_URL", offline.base_url());
        node.current_dir(script.parent().unwrap())
            .kill_on_drop(true);
        let output = within(
            &format!("{}", script.display()),
            Duration::from_mins(3),
            node.output(),
        )
        .await
        .expect("node runs");
        println!("--- {}: {}", script.display(), output.status);
        println!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        if !output.status.success() {
            println!("--- the server's log\n{}", server.log().text());
            failed.push(script);
        }
        model.assert_every_transcript_was_valid();
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
}
