//! The API document: what the server serves is what the repository holds, and SDKs can be generated from it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tidemark_tests::database::Store;
use tidemark_tests::server::{Setup, repository};
use tidemark_tests::wait::within;
use tokio::process::Command;

fn document() -> PathBuf {
    repository().join("openapi/tidemark.json")
}

fn variable(name: &str) -> PathBuf {
    let value = std::env::var_os(name)
        .unwrap_or_else(|| panic!("{name} is not set: scripts/test installs it and sets it"));
    PathBuf::from(value)
}

async fn run(what: &str, command: &mut Command) -> String {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = within(what, Duration::from_mins(4), command.output())
        .await
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{text}", output.status);
    text
}

#[tokio::test]
async fn the_document_in_the_repository_is_the_one_that_is_served() {
    let server = Setup::on(Store::Sqlite).start().await;
    let given = server.client().get("/openapi.json").await.expect(200);
    if std::env::var_os("TIDEMARK_UPDATE").is_some() {
        let text = serde_json::to_string_pretty(&given).unwrap() + "\n";
        std::fs::write(document(), text).unwrap();
    }
    let text = std::fs::read_to_string(document()).expect("openapi/tidemark.json");
    let kept: Value = serde_json::from_str(&text).expect("openapi/tidemark.json is JSON");
    for (path, operations) in given["paths"].as_object().unwrap() {
        assert_eq!(
            &kept["paths"][path], operations,
            "{path} has changed: run this test with TIDEMARK_UPDATE=1"
        );
    }
    assert!(
        kept == given,
        "the document has changed: run this test with TIDEMARK_UPDATE=1"
    );
}

#[tokio::test]
async fn every_operation_has_an_id_and_every_refusal_a_problem_document() {
    let text = std::fs::read_to_string(document()).expect("openapi/tidemark.json");
    let kept: Value = serde_json::from_str(&text).unwrap();
    let mut ids = Vec::new();
    for (path, operations) in kept["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            ids.push(
                operation["operationId"]
                    .as_str()
                    .unwrap_or_else(|| panic!("{method} {path} has no id")),
            );
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert!(
                    response["description"]
                        .as_str()
                        .is_some_and(|text| !text.is_empty()),
                    "{method} {path} {status} is not described"
                );
                let plain = response["content"].get("application/json").is_some();
                assert!(
                    !(status.starts_with('4') && plain),
                    "{method} {path} {status} is no problem document"
                );
            }
        }
    }
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "operation ids are unique");
}

#[tokio::test]
async fn types_for_typescript_are_generated_and_check() {
    let modules = variable("TIDEMARK_TEST_NODE_MODULES_SDK");
    let dir = TempDir::new().unwrap();
    let types = dir.path().join("tidemark.ts");
    let tool = |name: &str| {
        let mut command = Command::new("node");
        command.arg(
            modules
                .join(".bin")
                .join(name)
                .canonicalize()
                .unwrap_or_else(|_| panic!("no {name} in {}", modules.display())),
        );
        command
    };
    run(
        "openapi-typescript",
        tool("openapi-typescript")
            .arg(document())
            .arg("-o")
            .arg(&types),
    )
    .await;
    let usage = dir.path().join("usage.ts");
    std::fs::write(&usage, USAGE).unwrap();
    let mut check = tool("tsc");
    check.args([
        "--noEmit",
        "--strict",
        "--target",
        "es2022",
        "--module",
        "esnext",
        "--moduleResolution",
        "bundler",
    ]);
    run("tsc", check.arg(&types).arg(&usage).current_dir(dir.path())).await;
}

/// A client's use of the generated types: the compiler finds out whether they say what the API takes and gives.
const USAGE: &str = r#"
import type { paths } from "./tidemark";
type Body<P extends keyof paths> = paths[P] extends { post: { requestBody: { content: { "application/json": infer B } } } } ? B : never;
type Created<P extends keyof paths> = paths[P] extends { post: { responses: { 201: { content: { "application/json": infer B } } } } } ? B : never;
export const session: Body<"/v1/sessions"> = { title: "Travel" };
export function idOf(created: Created<"/v1/sessions">): string { return created.id; }
// @ts-expect-error a title is a string
export const wrong: Body<"/v1/sessions"> = { title: 17 };
"#;

#[tokio::test]
async fn a_client_for_python_is_generated_and_imports() {
    let libraries = variable("TIDEMARK_TEST_PYTHONPATH");
    let dir = TempDir::new().unwrap();
    let package = dir.path().join("tidemark_client");
    let python = || {
        let mut command = Command::new(
            std::env::var_os("TIDEMARK_TEST_PYTHON").unwrap_or_else(|| "python3".into()),
        );
        // The generator calls a formatter that was installed beside it.
        let path = format!(
            "{}:{}",
            libraries.join("bin").display(),
            std::env::var("PATH").unwrap()
        );
        command
            .env("PYTHONPATH", &libraries)
            .env("PATH", path)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command.current_dir(dir.path());
        command
    };
    let generated = run(
        "openapi-python-client",
        python()
            .args([
                "-m",
                "openapi_python_client",
                "generate",
                "--meta",
                "none",
                "--fail-on-warning",
                "--path",
            ])
            .arg(document())
            .arg("--output-path")
            .arg(&package),
    )
    .await;
    println!("{generated}");
    let modules = modules_of(&package);
    assert!(
        modules
            .iter()
            .any(|name| name.starts_with("tidemark_client.api.")),
        "no operations in {modules:?}"
    );
    let imports = modules
        .iter()
        .map(|name| format!("import {name}"))
        .collect::<Vec<_>>()
        .join("\n");
    run(
        "the generated package to import",
        python().arg("-c").arg(imports),
    )
    .await;
}

fn modules_of(package: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![package.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "py") {
                let place = path
                    .strip_prefix(package.parent().unwrap())
                    .unwrap()
                    .with_extension("");
                let name = place
                    .iter()
                    .map(|part| part.to_string_lossy())
                    .collect::<Vec<_>>()
                    .join(".");
                found.push(name.trim_end_matches(".__init__").to_owned());
            }
        }
    }
    found.sort();
    found
}
