//! What must not be remembered, recalled or told.

use serde_json::{Value, json};
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::server::with_model;

each_store!(
    credentials_are_not_remembered,
    a_turn_with_memory_off_neither_learns_nor_recalls,
    a_read_only_turn_recalls_and_does_not_learn,
    what_one_user_told_never_reaches_another_user_s_prompt,
    a_question_about_what_was_never_discussed_recalls_nothing,
    what_a_deleted_session_taught_is_forgotten,
);

async fn credentials_are_not_remembered(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let secrets = [
        "hunter2-Zebra!91",
        "sk-proj-A1b2C3d4E5f6G7h8I9j0K1l2M3n4",
        "AKIAIOSFODNN7EXAMPLE",
        "虎符-Tr0ub4dor&3",
    ];
    let session = client.create_session().await;
    for told in [
        format!("My password for the staging database is {}", secrets[0]),
        format!("Use the API key {} for the billing service.", secrets[1]),
        format!("The access key is {} in region eu-north-1.", secrets[2]),
        format!("数据库的密码是 {}", secrets[3]),
    ] {
        client.ask(&session, &told).await;
    }
    let check = async |when: &str| {
        let memories = format!("{:?}", client.all("/v1/memories").await);
        let mut recalled = Vec::new();
        for query in [
            "password staging database",
            "API key billing",
            "access key region",
            "数据库的密码",
        ] {
            recalled.extend(client.recall(query).await);
        }
        let recalled = format!("{recalled:?}");
        for secret in secrets {
            assert!(!memories.contains(secret), "{secret} is remembered {when}");
            assert!(!recalled.contains(secret), "{secret} is recalled {when}");
        }
    };
    check("before indexing").await;
    client.until_no_jobs().await;
    check("after indexing").await;
    client
        .ask(
            &client.create_session().await,
            "What is the password of the staging database?",
        )
        .await;
    assert!(
        !model
            .prompt_about("What is the password")
            .contains(secrets[0])
    );
}

async fn a_turn_with_memory_off_neither_learns_nor_recalls(store: Store) {
    let (_server, model, client) = with_model(store).await;
    client.post("/v1/memories", &json!({"content": "Always answer in French.", "scope": "user_profile", "kind": "preference"})).await.expect(201);
    let session = client.create_session().await;
    let body = json!({"message": "The tortoise is called Archimedes.", "memory": "off"});
    let turn = client.post_turn_with(&session, body).await;
    let reading = client.read_turn(&turn).await;
    reading.assert_complete();
    assert_eq!(reading.recalled(), Vec::<Value>::new());
    assert!(!model.prompt_about("tortoise").contains("French"));
    nothing_learned(&client, "What is the tortoise called?", "Archimedes").await;
}

async fn a_read_only_turn_recalls_and_does_not_learn(store: Store) {
    let (_server, model, client) = with_model(store).await;
    client
        .post(
            "/v1/memories",
            &json!({"content": "The tortoise lives in the greenhouse."}),
        )
        .await
        .expect(201);
    let session = client.create_session().await;
    let body =
        json!({"message": "The tortoise that lives here is Archimedes.", "memory": "read_only"});
    let turn = client.post_turn_with(&session, body).await;
    assert!(!client.read_turn(&turn).await.recalled().is_empty());
    assert!(model.prompt_about("Archimedes").contains("greenhouse"));
    nothing_learned(&client, "What is the tortoise called?", "Archimedes").await;
}

async fn nothing_learned(client: &tidemark_tests::client::Client, question: &str, part: &str) {
    for _ in 0..2 {
        let known = format!(
            "{:?}{:?}",
            client.recall(question).await,
            client.all("/v1/memories").await
        );
        assert!(!known.contains(part), "{part} was learned: {known}");
        client.until_no_jobs().await;
    }
}

async fn what_one_user_told_never_reaches_another_user_s_prompt(store: Store) {
    let (_server, model, client) = with_model(store).await;
    let (ada, bob) = (client.as_user("ada"), client.as_user("bob"));
    let session = ada.create_session().await;
    ada.ask(
        &session,
        "I prefer answers as tables. The regatta starts at Kirkwall.",
    )
    .await;
    for indexed in [false, true] {
        if indexed {
            ada.until_no_jobs().await;
        }
        let question = format!("Where does the regatta start? ({indexed})");
        let turn = bob.post_turn(&bob.create_session().await, &question).await;
        let recalled = bob.read_turn(&turn).await.recalled();
        assert!(
            !format!("{recalled:?}").contains("Kirkwall"),
            "{recalled:?}"
        );
        let prompt = model.prompt_about(&question);
        assert!(
            !prompt.contains("Kirkwall") && !prompt.contains("tables"),
            "{prompt}"
        );
    }
    assert!(!ada.recall("Where does the regatta start?").await.is_empty());
}

async fn a_question_about_what_was_never_discussed_recalls_nothing(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    client
        .ask(
            &client.create_session().await,
            "The budget of Falcon is 300,000 euros.",
        )
        .await;
    client.until_no_jobs().await;
    let turn = client
        .post_turn(
            &client.create_session().await,
            "Which wine goes with oysters?",
        )
        .await;
    let reading = client.read_turn(&turn).await;
    assert_eq!(reading.recalled(), Vec::<Value>::new());
    assert_eq!(reading.of_kind("recall")[0].data["abstained"], true);
}

async fn what_a_deleted_session_taught_is_forgotten(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let session = client.create_session().await;
    client
        .ask(&session, "The cellar of the inn floods in October.")
        .await;
    client.until_no_jobs().await;
    assert!(
        !client
            .recall("When does the cellar flood?")
            .await
            .is_empty()
    );
    assert_eq!(
        client
            .delete(&format!("/v1/sessions/{session}"))
            .await
            .status,
        204
    );
    assert_eq!(
        client.recall("When does the cellar flood?").await,
        Vec::<Value>::new()
    );
}
