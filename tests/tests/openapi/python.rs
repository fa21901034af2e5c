//! The SDK for Python: generated, type-checked with its helper and its example, used.

use std::path::Path;

use tempfile::TempDir;
use tidemark_tests::database::Store;
use tidemark_tests::server::Setup;

use crate::document;
use crate::story::play;
use crate::tools::{in_repository, python, run};

/// What is of this repository, beside the generated package.
const PROGRAMS: [&str; 3] = [
    "examples/python/tidemark_stream.py",
    "examples/python/chat.py",
    "tests/sdk/python/smoke.py",
];

const IMPORT_ALL: &str = "
import importlib, pkgutil, tidemark_client
names = [module.name for module in pkgutil.walk_packages(tidemark_client.__path__, 'tidemark_client.')]
assert any(name.startswith('tidemark_client.api.turns.') for name in names), names
for name in names: importlib.import_module(name)
";

async fn project() -> TempDir {
    let dir = TempDir::new().unwrap();
    for program in PROGRAMS {
        let name = Path::new(program).file_name().unwrap();
        std::fs::copy(in_repository(program), dir.path().join(name)).unwrap();
    }
    let mut generator = python(&[]);
    generator.args([
        "-m",
        "openapi_python_client",
        "generate",
        "--meta",
        "none",
        "--fail-on-warning",
    ]);
    generator.arg("--path").arg(document());
    generator.args(["--output-path", "tidemark_client"]);
    run("openapi-python-client", generator.current_dir(dir.path())).await;
    dir
}

#[tokio::test]
async fn the_sdk_for_python_holds_a_conversation_and_resumes_what_is_cut() {
    let project = project().await;
    let program = |name: &str| {
        let mut program = python(&[project.path()]);
        program.arg(name).current_dir(project.path());
        program
    };
    let mut imports = program("-c");
    run("every module to import", imports.arg(IMPORT_ALL)).await;
    let check = async {
        let mut types = python(&[]);
        // The generated package has type errors of its own.
        types.args([
            "-m",
            "mypy",
            "--strict",
            "--follow-imports",
            "silent",
            "--no-incremental",
        ]);
        types.args([
            "--cache-dir",
            "/dev/null",
            "tidemark_stream.py",
            "chat.py",
            "smoke.py",
        ]);
        run("mypy", types.current_dir(project.path())).await;
    };
    let using = async { play("smoke.py", &mut program("smoke.py")).await };
    tokio::join!(check, using);
    let server = Setup::on(Store::Sqlite).start().await;
    let mut example = program("chat.py");
    let said = run("chat.py", example.env("TIDEMARK_URL", server.base_url())).await;
    assert!(
        said.contains("400k") && said.ends_with("[completed]\n"),
        "{said}"
    );
}
