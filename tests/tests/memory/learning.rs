//! A statement is found in another session by the very next request, and for good.

use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::paths::{id_of, messages_of};
use tidemark_tests::server::with_model;

each_store!(
    a_statement_is_known_in_another_session_at_once,
    what_was_learned_names_the_message_it_came_from,
    imported_messages_are_found,
    a_long_message_is_remembered_in_pieces_and_whole,
    small_talk_is_not_remembered,
);

const TOLD: [(&str, &str, &str); 2] = [
    (
        "The launch code name of our spring project is Kingfisher.",
        "What is the code name of the spring project?",
        "Kingfisher",
    ),
    (
        "我们春季项目的代号是翠鸟。",
        "春季项目的代号是什么？",
        "翠鸟",
    ),
];

fn contents(memories: &[Value]) -> Vec<&str> {
    memories
        .iter()
        .filter_map(|memory| memory["content"].as_str())
        .collect()
}

async fn told(client: &Client, message: &str) -> String {
    let session = client.create_session().await;
    assert_eq!(client.ask(&session, message).await["status"], "completed");
    session
}

async fn a_statement_is_known_in_another_session_at_once(store: Store) {
    let (_server, model, client) = with_model(store).await;
    for (message, question, part) in TOLD {
        told(&client, message).await;
        let session = client.create_session().await;
        let turn = client.post_turn(&session, question).await;
        let reading = client.read_turn(&turn).await;
        let recalled = reading.recalled();
        let memory = recalled
            .iter()
            .find(|memory| memory["content"].as_str().unwrap().contains(part));
        let memory = memory.unwrap_or_else(|| panic!("{part:?} was not recalled: {recalled:?}"));
        assert_eq!(memory["via"], "relevance");
        assert!(
            memory["score"].as_f64().is_some_and(|score| score > 0.0),
            "{memory}"
        );
        let recall = &reading.of_kind("recall")[0].data;
        assert_eq!(
            (&recall["abstained"], &recall["degraded"]),
            (&json!(false), &json!([]))
        );
        assert!(
            model.prompt_about(question).contains(part),
            "it is in the prompt"
        );
        assert!(
            contents(&client.recall(question).await)
                .iter()
                .any(|content| content.contains(part)),
            "recall finds it too"
        );
    }
    client.until_no_jobs().await;
    for (_, question, part) in TOLD {
        let found = client.recall(question).await;
        assert_eq!(
            contents(&found)
                .iter()
                .filter(|content| content.contains(part)
                    && !content.contains('?')
                    && !content.contains('？'))
                .count(),
            1,
            "once, indexed: {found:?}"
        );
    }
}

async fn what_was_learned_names_the_message_it_came_from(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = told(&client, TOLD[0].0).await;
    client.until_no_jobs().await;
    let learned = client
        .all(&format!("/v1/memories?session={session}&layer=episodic"))
        .await;
    let memory = learned
        .iter()
        .find(|memory| memory["content"].as_str().unwrap().contains("Kingfisher"))
        .expect("learned");
    let message = &client.history(&session).await[0];
    let source = &memory["sources"][0];
    assert_eq!(
        (&source["message_id"], &source["session_id"], &source["seq"]),
        (&message["id"], &json!(session), &message["seq"])
    );
    assert_eq!(
        client
            .get(&format!("/v1/memories/{}", id_of(memory)))
            .await
            .expect(200)["sources"],
        memory["sources"]
    );
}

async fn imported_messages_are_found(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let session = client.create_session().await;
    let messages = json!({"messages": [
        {"role": "user", "content": "The piano was tuned by Mr Halvorsen.", "name": "Ada", "created_at": "2024-05-01T09:00:00Z"},
        {"role": "assistant", "content": "I will remember the tuner.", "created_at": "2024-05-01T09:00:02Z"},
        {"role": "user", "content": "ok", "created_at": "2024-05-01T09:00:09Z"},
    ]});
    client
        .post(&messages_of(&session), &messages)
        .await
        .expect(201);
    let question = "Who tuned the piano?";
    assert!(
        contents(&client.recall(question).await)
            .iter()
            .any(|content| content.contains("Halvorsen")),
        "at once"
    );
    client.until_no_jobs().await;
    assert!(
        contents(&client.recall(question).await)
            .iter()
            .any(|content| content.contains("Halvorsen")),
        "once indexed"
    );
    told(&client, question).await;
    assert!(model.prompt_about(question).contains("Halvorsen"));
}

async fn a_long_message_is_remembered_in_pieces_and_whole(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let paragraph = |n: usize| {
        format!(
            "Chapter {n} tells of the lighthouse keeper number {n} and how the lamp of tower {n} was lit with oil from the valley. {}",
            "The wind was strong and the night was long. ".repeat(4)
        )
    };
    let message = (1..=6).map(paragraph).collect::<Vec<_>>().join("\n\n");
    let session = told(&client, &message).await;
    client.until_no_jobs().await;
    let learned = client
        .all(&format!("/v1/memories?session={session}&layer=episodic"))
        .await;
    let pieces: Vec<&str> = contents(&learned)
        .into_iter()
        .filter(|content| !content.starts_with("word1"))
        .collect();
    assert!(pieces.len() >= 4, "{} pieces", pieces.len());
    for n in 1..=6 {
        let part = format!("keeper number {n} ");
        assert!(
            pieces.iter().any(|piece| piece.contains(&part)),
            "{part} is lost"
        );
    }
    assert!(
        pieces.iter().all(|piece| piece.chars().count() <= 520),
        "a piece is a paragraph, not a page"
    );
}

async fn small_talk_is_not_remembered(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    for talk in ["hi", "thanks!", "ok, great", "你好", "谢谢"] {
        let session = told(&client, talk).await;
        client.until_no_jobs().await;
        let learned = client.all(&format!("/v1/memories?session={session}")).await;
        assert!(!contents(&learned).contains(&talk), "{talk}: {learned:?}");
    }
}
