//! A server that asks for keys is judged with the one in the environment.

use std::collections::BTreeMap;
use std::fs;

use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::keys::{ALL_SCOPES, create, keyed};

use crate::{said, tidemark, tidemark_in};

each_store!(a_server_that_asks_for_keys_gets_the_one_of_the_environment_which_is_shown_nowhere);

const SCENARIO: &str = "
class: cleanliness
language: en
scenarios:
  - name: own
    about: What was said is recalled.
    steps:
      - say: The lighthouse keeper is called Morwenna.
      - settle: true
      - recall: Who keeps the lighthouse?
        expect: { recalled: { has: [Morwenna] } }
";

const CONVERSATION: &str = r#"{"id":"c","lang":"en","speakers":["Ada","Bob"],"sessions":[{"id":"D1","start":"2025-01-01T00:00:00Z","turns":[{"id":"D1:1","speaker":"Ada","text":"The lighthouse keeper is called Morwenna."}]}]}"#;

const QUESTION: &str = r#"{"id":"q","conversation_id":"c","question":"Who keeps the lighthouse?","category":"one","evidence":["D1:1"]}"#;

async fn a_server_that_asks_for_keys_gets_the_one_of_the_environment_which_is_shown_nowhere(
    store: Store,
) {
    let server = keyed(store).start().await;
    let key = create(&server, &["--scopes", ALL_SCOPES]).await;
    let (url, dir) = (server.base_url(), tempfile::tempdir().unwrap());
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for (name, text) in [
        ("own.yaml", SCENARIO),
        ("conversation.jsonl", CONVERSATION),
        ("question.jsonl", QUESTION),
    ] {
        fs::write(path(name), text).unwrap();
    }
    let (folder, conversation, question) =
        (path(""), path("conversation.jsonl"), path("question.jsonl"));
    let eval = ["eval", "--scenarios", &folder, "--url", &url];
    let recall = [
        "bench",
        "recall",
        "--conversations",
        &conversation,
        "--questions",
        &question,
        "--url",
        &url,
    ];
    let memory = [
        "bench",
        "memory",
        "--memories",
        "20",
        "--clients",
        "1",
        "--add-clients",
        "1",
        "--seconds",
        "1",
        "--rounds",
        "1",
        "--url",
        &url,
    ];
    let with = BTreeMap::from([("TIDEMARK_API_KEY".to_owned(), key.clone())]);
    for arguments in [&eval[..], &recall, &memory] {
        let refused = tidemark(arguments).await;
        assert!(!refused.status.success(), "{}", said(&refused));
        assert!(said(&refused).contains("401"), "{}", said(&refused));
        let output = tidemark_in(&with, arguments).await;
        assert!(output.status.success(), "{}", said(&output));
        assert!(!said(&output).contains(&key[37..]), "the key is printed");
    }
    let forged = BTreeMap::from([("TIDEMARK_API_KEY".to_owned(), format!("{key}x"))]);
    let refused = tidemark_in(&forged, &eval).await;
    assert!(said(&refused).contains("401"), "{}", said(&refused));
    assert!(!said(&refused).contains(&key[37..]), "the key is printed");
}
