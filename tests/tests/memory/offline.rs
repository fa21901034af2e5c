//! Without a language model the server still remembers, and says what it lacks.

use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::server::Setup;

each_store!(
    the_offline_model_lists_what_it_recalled_and_names_the_two_settings,
    the_offline_model_does_not_learn_its_own_echo,
);

const SETTINGS: [&str; 2] = ["TIDEMARK_MODEL__BASE_URL", "TIDEMARK_MODEL__NAME"];

async fn the_offline_model_lists_what_it_recalled_and_names_the_two_settings(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    for told in [
        "I prefer answers as tables.",
        "The ferry to Staffa leaves at seven.",
        "去斯塔法岛的渡轮七点出发。",
    ] {
        client.ask(&client.create_session().await, told).await;
    }
    for (question, part) in [
        ("When does the ferry to Staffa leave?", "leaves at seven"),
        ("去斯塔法岛的渡轮几点出发？", "七点出发"),
    ] {
        let session = client.create_session().await;
        let turn = client.post_turn(&session, question).await;
        let text = client.read_turn(&turn).await.assert_complete();
        assert!(text.contains(part), "{text}");
        assert!(text.contains("tables"), "the preference is listed: {text}");
        assert!(
            SETTINGS.iter().all(|setting| text.contains(setting)),
            "{text}"
        );
        let chinese = text
            .chars()
            .filter(|c| ('\u{4e00}'..'\u{a000}').contains(c))
            .count();
        assert_eq!(
            chinese > 20,
            question.contains('渡'),
            "the answer is in the question's language: {text}"
        );
        assert_eq!(client.history(&session).await[1]["content"], text.as_str());
    }
}

async fn the_offline_model_does_not_learn_its_own_echo(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    client
        .ask(
            &client.create_session().await,
            "The ferry to Staffa leaves at seven.",
        )
        .await;
    for _ in 0..3 {
        client
            .ask(
                &client.create_session().await,
                "When does the ferry to Staffa leave?",
            )
            .await;
        client.until_no_jobs().await;
    }
    let memories = client.all("/v1/memories").await;
    let echoes = memories.iter().filter(|memory| {
        SETTINGS
            .iter()
            .any(|setting| memory["content"].as_str().unwrap().contains(setting))
    });
    assert_eq!(echoes.count(), 0, "{memories:?}");
    let told = memories.iter().filter(|memory| {
        memory["content"]
            .as_str()
            .unwrap()
            .contains("leaves at seven")
    });
    assert_eq!(told.count(), 1, "{memories:?}");
}
