//! Programs that were installed for the tests, and how they are run.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tidemark_tests::server::repository;
use tidemark_tests::wait::within;
use tokio::process::Command;

pub(crate) fn variable(name: &str) -> PathBuf {
    let value = std::env::var_os(name)
        .unwrap_or_else(|| panic!("{name} is not set: scripts/test installs it and sets it"));
    PathBuf::from(value)
}

/// Runs to the end; fails with all that was said when it fails.
pub(crate) async fn run(what: &str, command: &mut Command) -> String {
    run_for(what, Duration::from_mins(4), command).await
}

pub(crate) async fn run_for(what: &str, limit: Duration, command: &mut Command) -> String {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = within(what, limit, command.output())
        .await
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{text}", output.status);
    text
}

/// The packages of `tests/sdk`.
pub(crate) fn node_modules() -> PathBuf {
    variable("TIDEMARK_TEST_NODE_MODULES_SDK")
}

/// A program of those packages.
pub(crate) fn node_tool(name: &str) -> Command {
    let modules = node_modules();
    let program = modules.join(".bin").join(name).canonicalize();
    let program = program.unwrap_or_else(|_| panic!("no {name} in {}", modules.display()));
    let mut command = Command::new("node");
    command
        .arg(program)
        .env("NO_COLOR", "1")
        .env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    command
}

/// Python with the libraries that were installed for the tests, and with `more` before them.
pub(crate) fn python(more: &[&Path]) -> Command {
    let libraries = variable("TIDEMARK_TEST_PYTHONPATH");
    let program = std::env::var_os("TIDEMARK_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(program);
    // The generator calls a formatter that was installed beside it.
    let path = format!(
        "{}:{}",
        libraries.join("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let places = more.iter().copied().chain([libraries.as_path()]);
    command
        .env("PYTHONPATH", std::env::join_paths(places).unwrap())
        .env("PATH", path)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A file or folder of the repository.
pub(crate) fn in_repository(path: &str) -> PathBuf {
    repository().join(path)
}
