//! One model follows another: memories are embedded anew in the background, and both are searched until it is done (B21).

use std::time::Duration;

use serde_json::json;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::embeddings::Embeddings;
use tidemark_tests::server::Setup;
use tidemark_tests::wait::{until, within};

use super::meaning::{OTHERS, recalled, remember};

each_store!(
    memories_from_before_there_was_an_embedder_are_embedded,
    both_models_are_searched_until_everything_is_embedded_anew,
    another_dimension_under_the_same_name_ends_the_start_and_says_what_to_do,
);

const SAID: &str = "My sister purchased an automobile.";
const QUESTION: &str = "Who bought a vehicle?";

async fn memories_from_before_there_was_an_embedder_are_embedded(store: Store) {
    let embeddings = Embeddings::start().await;
    let mut server = Setup::on(store).start().await;
    let client = server.client();
    remember(&client, &OTHERS).await;
    remember(&client, &[SAID]).await;
    let (found, degraded) = recalled(&client, QUESTION).await;
    assert!(!found.contains(&SAID.to_owned()), "{found:?}");
    assert_eq!(degraded, json!([]), "what is not set does not fail");
    server.set("TIDEMARK_EMBEDDER__KIND", "openai");
    server.set("TIDEMARK_EMBEDDER__BASE_URL", embeddings.base_url());
    server.set("TIDEMARK_EMBEDDER__NAME", "scripted");
    server.restart().await;
    let client = server.client();
    until(
        "the memories to be embedded",
        Duration::from_mins(1),
        || async {
            let (found, _) = recalled(&client, QUESTION).await;
            (found.first()? == SAID).then_some(())
        },
    )
    .await;
    // Once each: the start and the job do not double the work.
    client.until_no_jobs().await;
    let texts = embeddings.texts();
    assert_eq!(texts.iter().filter(|text| *text == SAID).count(), 1);
}

async fn both_models_are_searched_until_everything_is_embedded_anew(store: Store) {
    let (old, new) = (Embeddings::start().await, Embeddings::start().await);
    let mut server = Setup::on(store).embedder(&old).start().await;
    let client = server.client();
    remember(&client, &OTHERS).await;
    remember(&client, &[SAID]).await;
    client.until_no_jobs().await;
    // The new model answers questions and refuses memories for the time being.
    new.set_dimension(96);
    new.refuse("sister");
    new.set_status(Some(503));
    for (name, value) in [
        ("KIND", "openai"),
        ("BASE_URL", old.base_url()),
        ("NAME", "scripted"),
    ] {
        server.set(&format!("TIDEMARK_PREVIOUS_EMBEDDER__{name}"), value);
    }
    server.set("TIDEMARK_EMBEDDER__BASE_URL", new.base_url());
    server.set("TIDEMARK_EMBEDDER__NAME", "scripted-2");
    server.restart().await;
    let client = server.client();
    let (found, degraded) = recalled(&client, QUESTION).await;
    assert_eq!(
        found.first().map(String::as_str),
        Some(SAID),
        "by the old model"
    );
    assert_eq!(degraded, json!(["dense"]), "the new one is away");
    let job = until("the job", Duration::from_mins(1), || async {
        let jobs = client.all("/v1/jobs").await;
        jobs.into_iter().find(|job| job["kind"] == "embed")
    })
    .await;
    assert_eq!(job["progress"], json!({"done": 0, "total": 10}), "{job}");
    assert!(job.get("session_id").is_none());

    new.set_status(None);
    client.until_no_jobs().await;
    let (found, degraded) = recalled(&client, "Which terrier plays every Sunday?").await;
    assert!(found[0].contains("orchestra"), "{found:?}");
    assert_eq!(degraded, json!([]));
    assert!(new.texts().iter().any(|text| text == OTHERS[0]));
    // What the new one refused was embedded by the old one alone, whose vectors have gone.
    old.set_status(Some(503));
    let (found, _) = recalled(&client, "What was purchased?").await;
    assert!(found.contains(&SAID.to_owned()), "{found:?}");
}

async fn another_dimension_under_the_same_name_ends_the_start_and_says_what_to_do(store: Store) {
    let embeddings = Embeddings::start().await;
    let mut server = Setup::on(store).embedder(&embeddings).start().await;
    let client = server.client();
    remember(&client, &OTHERS).await;
    remember(&client, &[SAID]).await;
    client.until_no_jobs().await;
    embeddings.set_dimension(96);
    server.terminate(Duration::from_secs(15)).await;
    let mut process = tidemark_tests::server::command(server.settings());
    let output = process.current_dir(server.dir()).output();
    let output = within("the start to end", Duration::from_mins(1), output)
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{text}");
    for part in ["96", "64", "embedder.name", "openai:scripted"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    server.set("TIDEMARK_EMBEDDER__NAME", "scripted-96");
    server.start_again().await;
    let client = server.client();
    until("the new vectors", Duration::from_mins(1), || async {
        let (found, _) = recalled(&client, "Who bought a vehicle for a sister?").await;
        (found.first()? == SAID).then_some(())
    })
    .await;
}
