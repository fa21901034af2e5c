//! SDKs for TypeScript: generated, type-checked with their examples, used.

use std::os::unix::fs::symlink;

use tempfile::TempDir;
use tidemark_tests::database::Store;
use tidemark_tests::server::Setup;
use tokio::process::Command;

use crate::document;
use crate::story::play;
use crate::tools::{in_repository, node_modules, node_tool, run};

/// A project with everything that is generated, the examples and the smoke programs, compiled.
async fn project() -> TempDir {
    let dir = TempDir::new().unwrap();
    for folder in ["examples/typescript", "tests/sdk/typescript"] {
        for entry in std::fs::read_dir(in_repository(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                std::fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    symlink(node_modules(), dir.path().join("node_modules")).unwrap();
    std::fs::create_dir(dir.path().join("generated")).unwrap();
    let types = async {
        let mut generator = node_tool("openapi-typescript");
        generator
            .arg(document())
            .args(["-o", "generated/tidemark.ts"]);
        run("openapi-typescript", generator.current_dir(dir.path())).await
    };
    let sdk = async {
        let mut generator = node_tool("openapi-ts");
        generator.args(["-f", "openapi-ts.config.mjs", "--no-log-file"]);
        generator.env("TIDEMARK_DOCUMENT", document());
        run("openapi-ts", generator.current_dir(dir.path())).await
    };
    tokio::join!(types, sdk);
    run(
        "tsc",
        node_tool("tsc").args(["-p", "."]).current_dir(dir.path()),
    )
    .await;
    dir
}

fn program(project: &TempDir, name: &str) -> Command {
    let mut node = Command::new("node");
    node.arg(project.path().join("out").join(name));
    node
}

#[tokio::test]
async fn sdks_for_typescript_hold_a_conversation_and_resume_what_is_cut() {
    let project = project().await;
    for name in ["fetch.js", "hey.js"] {
        play(name, &mut program(&project, name)).await;
    }
    // The examples, on the server as it comes.
    let server = Setup::on(Store::Sqlite).start().await;
    for name in ["chat.js", "sdk.js"] {
        let mut example = program(&project, name);
        let said = run(name, example.env("TIDEMARK_URL", server.base_url())).await;
        assert!(
            said.contains("400k") && said.ends_with("[completed]\n"),
            "{name}: {said}"
        );
    }
}
