//! The page in a real browser: each script of `tests/browser` against a server of its own.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tidemark_tests::database::Store;
use tidemark_tests::directives::Behaviour;
use tidemark_tests::model::Model;
use tidemark_tests::server::{Server, Setup, repository, with_model};
use tidemark_tests::wait::within;
use tokio::process::Command;

/// Questions of the story that `screenshots.mjs` tells, and what the model answers; a directive would show in the picture.
const STORY: [(&str, &str); 2] = [
    (
        "What about the flat, the movers and the budget?",
        "Here is what I know, with what follows from it:\n\n\
         | What | When | Note |\n|---|---|---|\n\
         | Flat in Graça | settled | have it cleaned, because of the cats |\n\
         | Movers | 12 June, 8:00 | half of the money in advance |\n\
         | Car | before you leave | to be sold |\n\
         | Budget | now | 4,500 euros, it was 4,000 |\n\n\
         The piano is **not** on the list: it stays with Nora.",
    ),
    ("Who takes the piano?", "Your sister Nora keeps it."),
];

fn teach(model: &Model) {
    for (question, answer) in STORY {
        let behaviour = Behaviour {
            text: Some(answer.to_owned()),
            ..Behaviour::default()
        };
        model.rule(question, behaviour);
    }
}

/// The same over TLS, with a certificate that nobody has signed.
async fn secured(folder: &Path, model: &Model) -> Server {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let certificate = file("certificate.pem", made.cert.pem());
    let key = file("key.pem", made.signing_key.serialize_pem());
    Setup::on(Store::Sqlite)
        .model(model)
        .with("TIDEMARK_TLS__CERT", &certificate)
        .with("TIDEMARK_TLS__KEY", &key)
        .start()
        .await
}

/// The scripts that run a test; the others are parts of them.
fn scripts() -> Vec<PathBuf> {
    let folder = repository().join("tests/browser");
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| {
        path.extension().is_some_and(|extension| extension == "mjs")
            && asks_for(path, "await test(")
    });
    found.sort();
    found
}

fn asks_for(script: &Path, part: &str) -> bool {
    std::fs::read_to_string(script).unwrap().contains(part)
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
        teach(&model);
        let folder = TempDir::new().unwrap();
        let mut node = Command::new("node");
        node.arg(&script).env("BASE_URL", server.base_url());
        let over_tls = if asks_for(&script, "TLS_BASE_URL") {
            let server = secured(folder.path(), &model).await;
            let url = format!("https://{}", server.address());
            node.env("TLS_BASE_URL", url);
            Some(server)
        } else {
            None
        };
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
            for server in [Some(&server), over_tls.as_ref()].into_iter().flatten() {
                println!("--- the server's log\n{}", server.log().text());
            }
            failed.push(script);
        }
        model.assert_every_transcript_was_valid();
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
}
