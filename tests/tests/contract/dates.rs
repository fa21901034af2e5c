//! Dates that not every store can keep are refused by name: the years are 1 to 9999, in UTC.

use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::paths::messages_of;
use tidemark_tests::server::Setup;

each_store!(
    a_year_that_is_none_is_refused_by_name,
    the_first_and_the_last_year_are_kept,
);

/// Two lie outside only once they are in UTC.
const OUTSIDE: [&str; 4] = [
    "0000-01-01T00:00:00Z",
    "0000-12-31T23:59:59.999999Z",
    "0001-01-01T00:30:00+01:00",
    "9999-12-31T23:30:00-01:00",
];

fn said_at(created_at: &str) -> Value {
    json!({"messages": [{"role": "user", "content": "The clock stood still.", "created_at": created_at}]})
}

async fn assert_nothing_stored(client: &Client, session: &str) {
    assert_eq!(client.history(session).await, Vec::<Value>::new());
    assert_eq!(client.all("/v1/memories").await, Vec::<Value>::new());
}

async fn a_year_that_is_none_is_refused_by_name(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    let session = client.create_session().await;
    for date in OUTSIDE {
        client
            .post(&messages_of(&session), &said_at(date))
            .await
            .expect_problem_with(422, "created_at");
        for field in ["valid_from", "expires_at"] {
            let mut memory = json!({"content": "The clock stood still."});
            memory[field] = json!(date);
            for body in [memory.clone(), json!({"items": [memory]})] {
                client
                    .post("/v1/memories", &body)
                    .await
                    .expect_problem_with(422, field);
            }
        }
    }
    assert_nothing_stored(&client, &session).await;
}

async fn the_first_and_the_last_year_are_kept(store: Store) {
    let server = Setup::on(store).start().await;
    let client = server.client();
    let session = client.create_session().await;
    let (first, last) = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z");
    for date in [first, last] {
        client
            .post(&messages_of(&session), &said_at(date))
            .await
            .expect(201);
    }
    let history = client.history(&session).await;
    let dates: Vec<&Value> = history
        .iter()
        .map(|message| &message["created_at"])
        .collect();
    assert_eq!(dates, [first, last]);
    let memory =
        json!({"content": "The clock stood still.", "valid_from": first, "expires_at": last});
    let kept = client.post("/v1/memories", &memory).await.expect(201);
    assert_eq!(
        (&kept["valid_from"], &kept["expires_at"]),
        (&json!(first), &json!(last))
    );
    assert!(!client.all("/v1/memories").await.is_empty());
    client.until_no_jobs().await;
}
