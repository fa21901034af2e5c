//! Connections that are cut in the middle of a request: whatever the request was about, and wherever it stood, what it leaves behind is a
//! server that serves.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::model::Model;
use tidemark_tests::paths::{chat_stream, id_of, is_over, messages_of, turns_of};
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::wait::{until, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

each_store!(
    connections_that_are_cut_leave_the_only_database_connection_free,
    a_turn_whose_asker_is_cut_off_runs_all_the_same,
);

/// How long a connection lives, in microseconds: from before the request has been read to after it was answered.
const LIVES: [u64; 14] = [
    0, 100, 200, 400, 700, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 9_000, 14_000, 30_000,
];

const LIMIT: Duration = Duration::from_secs(10);

/// Whatever is not idle now: in a transaction, or about to be.
const BUSY: &str = "
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'tidemark' AND state <> 'idle'";

/// Sends a request, whole or not, and goes away, with the answer at most begun.
async fn cut(server: &Server, method: &str, path: &str, body: &Value, life: u64) {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let text = format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.address(),
        body.len()
    );
    let mut connection = TcpStream::connect(server.address()).await.unwrap();
    // What has not come whole is not even begun.
    let sent = if life == LIVES[0] {
        text.len() - 1
    } else {
        text.len()
    };
    connection
        .write_all(&text.as_bytes()[..sent])
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_micros(life)).await;
    if life == LIVES[LIVES.len() - 1] {
        // It is the request that it is taken for.
        let mut status = [0; "HTTP/1.1 200".len()];
        connection.read_exact(&mut status).await.unwrap();
        let status = String::from_utf8_lossy(&status).into_owned();
        assert!(
            status.contains(" 20") || status.ends_with(" 404"),
            "{method} {path}: {status}"
        );
    }
}

/// A server with a single connection to its database.
async fn narrow(store: Store) -> (Server, Model, Client) {
    let model = Model::start().await;
    let server = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_STORE__MAX_CONNECTIONS", "1")
        .with("TIDEMARK_LIMITS__QUEUE_PER_SESSION", "100")
        .start()
        .await;
    let client = server.client();
    (server, model, client)
}

/// No transaction stays open.
async fn until_idle(server: &Server) {
    if server.store_url().starts_with("sqlite:") {
        return;
    }
    let mut observer = PgConnection::connect(server.store_url()).await.unwrap();
    let mut quiet = 0;
    while quiet < 2 {
        let busy: i64 = sqlx::query_scalar(BUSY)
            .fetch_one(&mut observer)
            .await
            .unwrap();
        quiet = if busy == 0 { quiet + 1 } else { 0 };
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn connections_that_are_cut_leave_the_only_database_connection_free(store: Store) {
    let (server, _model, client) = narrow(store).await;
    let session = client.create_session().await;
    let said = json!({
        "messages": [{"role": "user", "content": "The budget is 400k.", "created_at": "2026-01-05T10:00:00Z"}],
    });
    let asked = json!({"query": "budget"});
    let memory = client
        .post("/v1/memories", &json!({"content": "Tea is green."}))
        .await
        .expect(201);
    let memory = format!("/v1/memories/{}", id_of(&memory));
    for (method, path, body) in [
        ("POST", "/v1/sessions".to_owned(), json!({})),
        ("GET", "/v1/sessions".to_owned(), Value::Null),
        ("GET", messages_of(&session), Value::Null),
        ("POST", messages_of(&session), said),
        ("POST", turns_of(&session), json!({"message": "Short"})),
        ("GET", chat_stream("Short", None, None), Value::Null),
        ("POST", "/v1/memories/recall".to_owned(), asked),
        (
            "POST",
            "/v1/memories".to_owned(),
            json!({"content": "The sea is green."}),
        ),
        ("GET", "/v1/memories".to_owned(), Value::Null),
        ("PATCH", memory.clone(), json!({"content": "Tea is black."})),
        ("GET", format!("{memory}/history"), Value::Null),
        ("GET", "/v1/changes".to_owned(), Value::Null),
        ("DELETE", memory, Value::Null),
        ("DELETE", format!("/v1/sessions/{session}"), Value::Null),
        ("DELETE", "/v1/users/nobody".to_owned(), Value::Null),
    ] {
        for life in LIVES {
            cut(&server, method, &path, &body, life).await;
        }
        let what = format!("after {method} {path}");
        within(
            &format!("no open transaction {what}"),
            LIMIT,
            until_idle(&server),
        )
        .await;
        let written = within(&format!("a write {what}"), LIMIT, client.create_session()).await;
        let seen = client.get(&format!("/v1/sessions/{written}")).await;
        seen.expect(200);
    }
    let session = client.create_session().await;
    assert_eq!(client.ask(&session, "Whole").await["status"], "completed");
    client.until_no_jobs().await;
}

async fn a_turn_whose_asker_is_cut_off_runs_all_the_same(store: Store) {
    let (server, _model, client) = narrow(store).await;
    for life in LIVES {
        let session = client.create_session().await;
        let body = json!({"message": "Short"});
        cut(&server, "POST", &turns_of(&session), &body, life).await;
    }
    // Each is either as if it had never been asked, or answered as soon as any other: nothing waits until somebody looks for what was left.
    let soon = Duration::from_secs(5);
    let ended = until("every turn to end", soon, || async {
        let turns = turns(&client).await;
        turns.iter().all(is_over).then_some(turns.len())
    });
    assert!(ended.await > 0, "none was accepted");
}

/// Every turn of the user.
async fn turns(client: &Client) -> Vec<Value> {
    let export = client
        .post("/v1/users/default/export", &json!({}))
        .await
        .text;
    let lines = export
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &Value| line["type"] == "turn")
        .collect()
}
