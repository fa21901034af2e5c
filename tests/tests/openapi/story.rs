//! A smoke program of an SDK, run against a server behind a way that is cut in the middle of an answer.

use std::process::Stdio;
use std::time::Duration;

use tidemark_tests::database::Store;
use tidemark_tests::proxy::Proxy;
use tidemark_tests::server::with_model;
use tidemark_tests::wait::within;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

/// Runs the program, cuts its connections when it says `cut`, and wants `whole` as its last word.
pub(crate) async fn play(what: &str, program: &mut Command) {
    let (server, _model, _client) = with_model(Store::Sqlite).await;
    let port = server
        .address()
        .rsplit(':')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let proxy = Proxy::to(port).await;
    program
        .env("TIDEMARK_URL", format!("http://127.0.0.1:{}", proxy.port()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut running = program
        .spawn()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut said = BufReader::new(running.stdout.take().unwrap()).lines();
    let mut complaints = running.stderr.take().unwrap();
    let listening = async {
        let mut lines = Vec::new();
        while let Some(line) = said.next_line().await.unwrap() {
            if line == "cut" {
                proxy.cut();
            }
            lines.push(line);
        }
        lines
    };
    let complaining = async {
        let mut text = String::new();
        complaints.read_to_string(&mut text).await.unwrap();
        text
    };
    let all = async { tokio::join!(listening, complaining, running.wait()) };
    let (lines, complaints, status) = within(what, Duration::from_mins(1), all).await;
    assert_eq!(
        (lines.join(" ").as_str(), status.unwrap().success()),
        ("cut whole", true),
        "{what}: {complaints}\n{}",
        server.log().text()
    );
}
