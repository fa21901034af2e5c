//! The document itself.

use serde_json::Value;
use tidemark_tests::database::Store;
use tidemark_tests::server::{Setup, repository};

use crate::document;
use crate::tools::{node_tool, run};

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

#[test]
fn every_operation_has_an_id_and_every_refusal_a_problem_document() {
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
                let reference = response["$ref"].as_str();
                let response = match reference.and_then(|r| kept.pointer(&r[1..])) {
                    Some(shared) => shared,
                    None => response,
                };
                assert!(
                    response["description"]
                        .as_str()
                        .is_some_and(|text| !text.is_empty()),
                    "{method} {path} {status} is not described"
                );
                let refused = status.starts_with(['4', '5']);
                let problem = ["414", "431"].contains(&status.as_str())
                    || response["content"]
                        .get("application/problem+json")
                        .is_some();
                assert!(
                    refused == problem,
                    "{method} {path} {status}: a refusal is a problem document, and nothing else is"
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
async fn other_peoples_rules_find_nothing_to_mend() {
    let spectral = async {
        let mut lint = node_tool("spectral");
        lint.args([
            "lint",
            "--quiet",
            "--fail-severity",
            "hint",
            "-r",
            ".spectral.yaml",
        ]);
        run("spectral", lint.arg(document()).current_dir(repository())).await
    };
    let redocly = async {
        let mut lint = node_tool("redocly");
        lint.args(["lint", "--config", "redocly.yaml", "--format", "stylish"]);
        run("redocly", lint.arg(document()).current_dir(repository())).await
    };
    tokio::join!(spectral, redocly);
}
