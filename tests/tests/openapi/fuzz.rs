//! Random requests after the document, valid and invalid, alone and in sequences: no failure of the server, no status that the document does not
//! tell of, no answer that breaks its schema, nothing refused that it allows, nothing taken that it forbids.
//!
//! `TIDEMARK_TEST_FUZZ_SECONDS` is how long on each store, `TIDEMARK_TEST_SEED` repeats a run.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidemark_tests::database::Store;
use tidemark_tests::keys::{ALL_SCOPES, create, keyed};
use tidemark_tests::model::Model;

use crate::document;
use crate::tools::{in_repository, python, run_for};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_requests_find_nothing_that_the_document_does_not_tell_on_sqlite() {
    fuzz(Store::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_requests_find_nothing_that_the_document_does_not_tell_on_postgres() {
    fuzz(Store::Postgres).await;
}

async fn fuzz(store: Store) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seconds: u64 = number("TIDEMARK_TEST_FUZZ_SECONDS").unwrap_or(35);
    let seed = number("TIDEMARK_TEST_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("TIDEMARK_TEST_SEED={seed}");
    let model = Model::start().await;
    let server = keyed(store).model(&model).start().await;
    let key = create(&server, &["--tenant", "acme", "--scopes", ALL_SCOPES]).await;
    let dir = TempDir::new().unwrap();
    let asked = dir.path().join("document.json");
    let text = std::fs::read_to_string(document()).unwrap();
    let mut told: Value = serde_json::from_str(&text).unwrap();
    as_it_is_meant(&mut told);
    std::fs::write(&asked, told.to_string()).unwrap();
    let mut schemathesis = python(&[]);
    schemathesis
        .args(["-m", "schemathesis.cli", "--config-file"])
        .arg(in_repository("tests/fuzz/schemathesis.toml"))
        .arg("run")
        .arg(&asked)
        .args(["--url", &server.base_url(), "--workers", "1", "--no-color"])
        .args([
            "--header",
            "X-Tidemark-User: ada",
            "--header",
            &format!("Authorization: Bearer {key}"),
            "--continue-on-failure",
            "--request-timeout",
            "30",
        ])
        .args([
            "--max-time",
            &seconds.to_string(),
            "--seed",
            &seed.to_string(),
        ])
        .current_dir(dir.path());
    let limit = Duration::from_secs(seconds * 2 + 120);
    let said = run_for(
        &format!("schemathesis --seed {seed}"),
        limit,
        &mut schemathesis,
    )
    .await;
    println!("{said}");
    assert!(
        !server.log().text().contains("panicked"),
        "{}",
        server.log().text()
    );
}

/// Says what the document leaves out for the sake of the types that are generated from it: that fields which need not be given may be `null`,
/// and that the schema of a stream is the one of its events' data.
fn as_it_is_meant(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object_mut().unwrap();
    // Requests alone refuse other fields.
    for schema in schemas
        .values_mut()
        .filter(|s| s["additionalProperties"] == false)
    {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let properties = schema["properties"].as_object_mut().into_iter().flatten();
        for (name, property) in properties {
            if !required.contains(&Value::from(name.as_str())) {
                *property = json!({"anyOf": [property.take(), {"type": "null"}]});
            }
        }
    }
    let operations = document["paths"].as_object_mut().unwrap().values_mut();
    for operation in operations.flat_map(|methods| methods.as_object_mut().unwrap().values_mut()) {
        // One user asks for everything: what another has made would not be found.
        if let Some(parameters) = operation
            .get_mut("parameters")
            .and_then(Value::as_array_mut)
        {
            parameters.retain(|parameter| parameter["$ref"] != "#/components/parameters/User");
        }
        let Some(stream) = operation.pointer_mut("/responses/200/content/text~1event-stream")
        else {
            continue;
        };
        let data = json!({
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": stream["schema"].take(),
        });
        *stream = json!({"schema": {"type": "object", "required": ["data"], "properties": {"data": data}}});
    }
}
