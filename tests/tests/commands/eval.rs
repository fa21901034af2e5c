//! `tidemark eval`: the scenarios of the product, and those of somebody else (B15).

use std::fs;

use serde_json::Value;
use tidemark_tests::database::{Database, Store};
use tidemark_tests::each_store;
use tidemark_tests::model::Model;
use tidemark_tests::server::{Server, Setup};

use crate::{said, tidemark};

each_store!(
    every_scenario_of_the_product_passes_with_the_scripted_model,
    what_a_running_server_was_told_is_gone_in_the_end,
);

async fn every_scenario_of_the_product_passes_with_the_scripted_model(store: Store) {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::create(store, dir.path()).await;
    let output = tidemark(&["eval", "--model", "scripted", "--store", database.url()]).await;
    assert!(output.status.success(), "{}", said(&output));
    assert!(!said(&output).contains("FAILED"), "{}", said(&output));
}

async fn what_a_running_server_was_told_is_gone_in_the_end(store: Store) {
    let model = Model::start().await;
    let server: Server = Setup::on(store).model(&model).start().await;
    let folder = tempfile::tempdir().unwrap();
    let scenario = "
class: cleanliness
language: en
scenarios:
  - name: own
    about: What was said is recalled.
    steps:
      - say: The lighthouse keeper is called Morwenna.
      - settle: true
        expect: { memories: [{ with: Morwenna, current: 1 }] }
      - recall: Who keeps the lighthouse?
        expect: { recalled: { has: [Morwenna] } }
";
    fs::write(folder.path().join("own.yaml"), scenario).unwrap();
    let own = folder.path().to_str().unwrap();
    let output = tidemark(&[
        "eval",
        "--scenarios",
        own,
        "--url",
        &server.base_url(),
        "--json",
    ])
    .await;
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["passed"], 1, "{report}");
    assert_eq!(report["scenarios"][0]["name"], "own", "{report}");
    assert!(!model.requests().is_empty(), "the configured model answers");
}

#[tokio::test]
async fn a_promise_that_is_not_kept_fails_the_command_and_says_which_step_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "
class: changed_fact
language: en
scenarios:
  - name: too_much
    about: Something impossible.
    steps:
      - remember: The kiosk sells stamps
      - recall: What does the kiosk sell?
        expect: { recalled: { has: [newspapers], lacks: [stamps] } }
  - name: fine
    about: Something possible.
    steps:
      - remember: The kiosk sells stamps
      - recall: What does the kiosk sell?
        expect: { recalled: { has: [stamps] } }
";
    fs::write(folder.path().join("own.yaml"), scenario).unwrap();
    let own = folder.path().to_str().unwrap();
    let output = tidemark(&["eval", "--scenarios", own, "--model", "scripted"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let told = said(&output);
    for part in [
        "step 2, recall \"What does the kiosk sell?\": what was recalled lacks \"newspapers\"",
        "what was recalled has \"stamps\"",
        "1 of 2",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let output = tidemark(&[
        "eval",
        "--scenarios",
        own,
        "--model",
        "scripted",
        "--filter",
        "fine",
    ])
    .await;
    assert!(output.status.success(), "{}", said(&output));
}
