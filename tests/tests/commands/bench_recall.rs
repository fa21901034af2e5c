//! `tidemark bench recall`, on a small conversation written for this test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidemark_tests::database::{Database, Store};
use tidemark_tests::each_store;
use tidemark_tests::server::{Server, Setup};

use crate::{said, tidemark};

each_store!(
    a_server_of_the_command_finds_the_turns_that_hold_the_answers,
    what_was_imported_into_a_running_server_is_gone_in_the_end,
);

struct Files {
    dir: TempDir,
}

impl Files {
    fn write() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let turn = |id: &str, speaker: &str, text: &str| json!({ "id": id, "speaker": speaker, "text": text });
        let harbour = json!({
            "id": "made/harbour", "dataset": "made", "lang": "en", "split": "dev", "speakers": ["Clara", "Tomas"],
            "sessions": [
                { "id": "D1", "start": "2026-02-03T09:00:00Z", "turns": [
                    turn("D1:1", "Clara", "I finally repaired the wooden rudder of my sailing boat."),
                    turn("D1:2", "Tomas", "Great! My greenhouse got new glass panes on Sunday."),
                    { "id": "D1:3", "speaker": "Clara", "text": "Look what I found in the shed.", "caption": "a brass telescope on a blanket" },
                ] },
                { "id": "D2", "start": "2026-03-10T18:30:00Z", "turns": [
                    turn("D2:1", "Tomas", "The tomatoes in there are ripe already."),
                    turn("D2:2", "Clara", "My sister Paula starts a bakery in Lisbon in May."),
                ] },
            ],
        });
        let orchard = json!({
            "id": "made/orchard", "dataset": "made", "lang": "en", "split": "dev", "speakers": ["Ravi", "Lena"],
            "sessions": [{ "id": "D1", "start": "2026-01-15T12:00:00Z", "turns": [
                turn("D1:1", "Ravi", "The chess club elected me as its treasurer."),
                turn("D1:2", "Lena", "I adopted a grey parrot called Basil."),
            ] }],
        });
        let question = |id: &str,
                        conversation: &str,
                        split: &str,
                        text: &str,
                        evidence: &[&str]| {
            json!({
                "id": id, "conversation_id": conversation, "split": split, "question": text, "answer": null, "evidence": evidence,
                "category": if evidence.len() > 1 { "multi-hop" } else { "single-hop" }, "abstain": evidence.is_empty(),
            })
        };
        let questions = [
            question(
                "q1",
                "made/harbour",
                "dev",
                "Which part of the sailing boat did Clara repair?",
                &["D1:1"],
            ),
            question(
                "q2",
                "made/harbour",
                "dev",
                "What brass thing did Clara find in the shed?",
                &["D1:3"],
            ),
            question(
                "q3",
                "made/harbour",
                "dev",
                "What about the greenhouse and the tomatoes of Tomas?",
                &["D1:2", "D2:1"],
            ),
            question(
                "q4",
                "made/orchard",
                "dev",
                "What is the name of the grey parrot?",
                &["D1:2"],
            ),
            question(
                "q5",
                "made/orchard",
                "dev",
                "Which violin does Lena play?",
                &[],
            ),
            question(
                "q6",
                "made/orchard",
                "held-out",
                "Who is the treasurer of the chess club?",
                &["D1:1"],
            ),
        ];
        fs::write(
            dir.path().join("c.jsonl"),
            format!("{harbour}\n{orchard}\n"),
        )
        .unwrap();
        let questions: Vec<String> = questions.iter().map(ToString::to_string).collect();
        fs::write(dir.path().join("q.jsonl"), questions.join("\n")).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

async fn bench(files: &Files, more: &[&str]) -> Output {
    let (conversations, questions) = (files.path("c.jsonl"), files.path("q.jsonl"));
    let mut arguments = vec!["bench", "recall"];
    arguments.extend(["--conversations", text(&conversations)]);
    arguments.extend(["--questions", text(&questions), "--split", "dev", "--json"]);
    arguments.extend(more);
    tidemark(&arguments).await
}

async fn a_server_of_the_command_finds_the_turns_that_hold_the_answers(store: Store) {
    let files = Files::write();
    let database = Database::create(store, files.dir.path()).await;
    let run = files.path("run.jsonl");
    let more = ["--store", database.url(), "--run", text(&run)];
    let required = [
        "--require",
        "recall@5=1",
        "--require",
        "multi-hop/all@5=1",
        "--require",
        "auroc=0.5",
    ];
    let output = bench(&files, &[&more[..], &required[..]].concat()).await;
    assert!(output.status.success(), "{}", said(&output));

    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["retrieval"]["overall"]["n"], 4, "{report}");
    assert_eq!(report["retrieval"]["multi-hop"]["n"], 1, "{report}");
    assert_eq!(report["abstention"]["negatives"]["n"], 4, "{report}");
    assert_eq!(report["abstention"]["unanswerable"]["n"], 1, "{report}");
    assert!(
        report["latency_ms"]["p95"].as_f64().unwrap() > 0.0,
        "{report}"
    );

    let lines = fs::read_to_string(&run).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0]["question_id"], "q1");
    assert_eq!(lines[0]["ranked"][0], "D1:1", "{}", lines[0]);
    assert_eq!(
        lines[0]["ranked"].as_array().unwrap().len(),
        lines[0]["scores"].as_array().unwrap().len()
    );
}

/// Sessions and memories of the first conversation's user.
async fn left_behind(server: &Server, output: &Output) -> (usize, usize) {
    let told = said(output);
    let (_, user) = told.split_once("as the user ").expect("the user is named");
    let user = user.split_whitespace().next().unwrap();
    let client = server.client().as_user(user);
    let sessions = client.all("/v1/sessions").await.len();
    (sessions, client.all("/v1/memories").await.len())
}

async fn what_was_imported_into_a_running_server_is_gone_in_the_end(store: Store) {
    let server = Setup::on(store).start().await;
    let files = Files::write();
    for keep in [true, false] {
        let url = server.base_url();
        let more: &[&str] = if keep { &["--keep"] } else { &[] };
        let output = bench(&files, &[&["--url", url.as_str()], more].concat()).await;
        assert!(output.status.success(), "{}", said(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["retrieval"]["overall"]["recall@5"], 1.0, "{report}");
        let (sessions, memories) = left_behind(&server, &output).await;
        if keep {
            assert!(sessions == 2 && memories >= 5, "{sessions} {memories}");
        } else {
            assert_eq!((sessions, memories), (0, 0));
        }
    }
}

#[tokio::test]
async fn a_figure_below_what_is_required_fails_the_command_and_says_so() {
    let files = Files::write();
    let output = bench(&files, &["--require", "recall@10=1.5"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("FAIL recall@10 is"),
        "{}",
        said(&output)
    );

    let output = bench(&files, &["--require", "recal@10=0.5"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("was not measured"),
        "{}",
        said(&output)
    );
}

#[tokio::test]
async fn questions_about_nothing_that_is_there_are_refused_before_anything_is_done() {
    let files = Files::write();
    fs::write(files.path("c.jsonl"), "").unwrap();
    let output = bench(&files, &[]).await;
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("made/harbour"), "{}", said(&output));
}
