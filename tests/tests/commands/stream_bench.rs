//! The benchmark of streaming, small: that it measures what it says, not how fast this machine is.

use std::collections::BTreeMap;
use std::process::Stdio;

use serde_json::Value;
use tidemark_tests::database::{Database, Store};
use tidemark_tests::server;
use tidemark_tests::wait::within;
use tokio::process::Command;

use crate::{COMMAND_LIMIT, said};

#[tokio::test]
async fn a_few_streams_are_whole_through_the_relay_and_through_the_server_on_both_stores() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::create(Store::Postgres, dir.path()).await;
    let figures = dir.path().join("figures.json");
    let running = Command::new(env!("CARGO_BIN_EXE_stream_bench"))
        .args(["run", "--store", "sqlite", "--store", database.url()])
        .args(["--streams", "5", "--tokens", "8", "--rate", "40"])
        .args(["--delay-ms", "50", "--clients", "2", "--seconds", "1"])
        .args(["--require", "sqlite-5/errors<=0"])
        .args(["--require", "postgres-5/errors<=0"])
        .args(["--require", "postgres/turns_per_second=1"])
        .arg("--server")
        .arg(server::binary())
        .arg("--json")
        .arg(&figures)
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = within("the benchmark to end", COMMAND_LIMIT, running).await;
    let output = output.expect("the benchmark runs");
    assert!(output.status.success(), "{}", said(&output));
    let figures = std::fs::read_to_string(figures).unwrap();
    let figures: BTreeMap<String, Value> = serde_json::from_str(&figures).unwrap();
    for store in ["sqlite", "postgres"] {
        let wave = &figures[&format!("{store}-5")];
        // Fifty turns at least would be ten rounds of five streams; no wave has more than five.
        assert_eq!(wave["turns"], 25.0, "{figures:?}");
        assert!(
            wave["first_p50"].as_f64() <= wave["first_p99"].as_f64(),
            "{figures:?}"
        );
        let whole = &figures[store];
        assert_eq!(whole["errors"], 0.0, "{figures:?}");
        for name in ["idle_mib", "start_seconds", "relay_per_second"] {
            assert!(whole[name].as_f64().unwrap() > 0.0, "{name}: {figures:?}");
        }
    }
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("postgres-5"), "{table}");
}

#[tokio::test]
async fn a_requirement_that_is_missed_fails_the_benchmark() {
    let dir = tempfile::tempdir().unwrap();
    let running = Command::new(env!("CARGO_BIN_EXE_stream_bench"))
        .args(["run", "--streams", "1", "--tokens", "2", "--rate", "0"])
        .args(["--seconds", "0", "--require", "sqlite-1/cpu<=0.000001"])
        .args(["--require", "sqlite-1/errors<=0"])
        .arg("--server")
        .arg(server::binary())
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = within("the benchmark to end", COMMAND_LIMIT, running).await;
    let output = output.expect("the benchmark runs");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("ok   sqlite-1/errors"), "{table}");
    assert!(table.contains("FAIL sqlite-1/cpu"), "{table}");
}

#[tokio::test]
async fn single_turns_with_memories_and_in_long_sessions_are_measured_on_both_stores() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::create(Store::Postgres, dir.path()).await;
    let figures = dir.path().join("figures.json");
    let running = Command::new(env!("CARGO_BIN_EXE_stream_bench"))
        .args(["turns", "--store", "sqlite", "--store", database.url()])
        .args(["--tokens", "4", "--turns", "3"])
        .args(["--memories", "30,10x3", "--embedded", "30"])
        .args(["--messages", "20"])
        .args(["--require", "postgres-vectors-30/errors<=0"])
        .arg("--server")
        .arg(server::binary())
        .arg("--json")
        .arg(&figures)
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = within("the benchmark to end", COMMAND_LIMIT, running).await;
    let output = output.expect("the benchmark runs");
    assert!(output.status.success(), "{}", said(&output));
    let figures = std::fs::read_to_string(figures).unwrap();
    let figures: BTreeMap<String, Value> = serde_json::from_str(&figures).unwrap();
    for store in ["sqlite", "postgres"] {
        for row in ["vectors-30", "vectors-10x3", "session-20"] {
            let row = &figures[&format!("{store}-{row}")];
            let figure = |name: &str| row[name].as_f64().unwrap();
            assert_eq!(row["errors"], 0.0, "{figures:?}");
            assert!(
                figure("commit_p50") > 0.0 && figure("server_cpu") > 0.0,
                "{figures:?}"
            );
            let beyond =
                figure("first_p50") - figure("relay_first_p50") - 2.0 * figure("commit_p50");
            assert!((figure("beyond_p50") - beyond).abs() < 1e-9, "{figures:?}");
        }
        let many = &figures[&format!("{store}-vectors-30")];
        assert!(many["recalled"].as_f64() > Some(0.0), "{figures:?}");
        assert_eq!(many["degraded"], 0.0, "{figures:?}");
    }
}
