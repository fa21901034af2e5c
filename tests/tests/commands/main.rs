//! The commands beside the server: they judge it over its public API, and what they find decides their exit code.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod bench_memory;
mod bench_recall;
mod eval;
mod keys;
mod stream_bench;

use std::collections::BTreeMap;
use std::process::Output;
use std::time::Duration;

use tidemark_tests::server::command;
use tidemark_tests::wait::within;

/// How long a command may take.
const COMMAND_LIMIT: Duration = Duration::from_mins(3);

/// Runs the binary with these arguments in an empty directory, and waits for its end.
pub(crate) async fn tidemark(arguments: &[&str]) -> Output {
    tidemark_in(&BTreeMap::new(), arguments).await
}

/// The same with these variables in its environment.
pub(crate) async fn tidemark_in(
    environment: &BTreeMap<String, String>,
    arguments: &[&str],
) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let running = command(environment)
        .args(arguments)
        .current_dir(dir.path())
        .output();
    let output = within("the command to end", COMMAND_LIMIT, running).await;
    output.expect("the command runs")
}

/// Both outputs, for messages.
pub(crate) fn said(output: &Output) -> String {
    format!(
        "{}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
