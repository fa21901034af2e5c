//! What is left of a run that failed: the history, what was stored, and the logs, in a directory that is named with the failure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::checker::{Complaint, complaints};
use super::cluster::Cluster;
use super::history::{Entry, History, What};
use super::stored::Stored;

/// How many complaints are shown, and lines of the history with each; all of them lie in the directory.
const SHOWN: (usize, usize) = (12, 40);

/// Kept when the test fails, by whatever.
#[derive(Debug)]
pub(crate) struct Evidence {
    seed: u64,
    cluster: Arc<Cluster>,
    history: Arc<History>,
}

impl Evidence {
    pub(crate) fn of(seed: u64, cluster: &Arc<Cluster>, history: &Arc<History>) -> Self {
        Self {
            seed,
            cluster: Arc::clone(cluster),
            history: Arc::clone(history),
        }
    }

    /// Fails the test with every complaint about what was seen and is stored.
    pub(crate) fn judge(&self, stored: &Stored) {
        let history = self.history.entries();
        println!("{}", summary(&history, stored));
        assert_something_happened(&history, stored);
        let found = complaints(&history, stored);
        if found.is_empty() {
            return;
        }
        let dir = self.directory();
        write_lines(&dir.join("stored.jsonl"), &[stored]);
        panic!("{}", report(&found, &history));
    }

    fn directory(&self) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("tidemark-chaos-{}", self.seed));
        std::fs::create_dir_all(&dir).expect("a directory");
        dir
    }

    fn keep(&self) {
        let dir = self.directory();
        write_lines(&dir.join("history.jsonl"), &self.history.entries());
        for (at, replica) in self.cluster.replicas.iter().enumerate() {
            let file = dir.join(format!("replica-{at}.log"));
            std::fs::write(file, replica.log()).expect("a file");
        }
        if let Ok(postgres) = self.cluster.postgres.try_lock() {
            std::fs::write(dir.join("postgres.log"), postgres.log()).expect("a file");
        }
        eprintln!(
            "TIDEMARK_TEST_SEED={}: history and logs are in {}",
            self.seed,
            dir.display()
        );
    }
}

impl Drop for Evidence {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.keep();
        }
    }
}

fn write_lines(file: &Path, lines: &[impl Serialize]) {
    let lines: Vec<String> = lines
        .iter()
        .map(|line| serde_json::to_string(line).expect("JSON"))
        .collect();
    std::fs::write(file, lines.join("\n")).expect("a file");
}

fn report(found: &[Complaint], history: &[Entry]) -> String {
    let mut lines = vec![format!("{} broken promises", found.len())];
    let (first, more) = found.split_at(found.len().min(SHOWN.0));
    for Complaint { subject, text } in first {
        lines.push(format!("\n{subject}: {text}"));
        let about = history.iter().filter(|entry| entry.what.names(subject));
        let about = about.take(SHOWN.1);
        lines.extend(about.map(|entry| serde_json::to_string(entry).expect("JSON")));
    }
    lines.push(format!("\n{} more", more.len()));
    let more = more.iter();
    lines.extend(more.map(|Complaint { subject, text }| format!("{subject}: {text}")));
    lines.join("\n")
}

fn ends(stored: &Stored) -> BTreeMap<&str, usize> {
    let mut ends = BTreeMap::new();
    for turn in &stored.turns {
        *ends.entry(turn.status.as_str()).or_default() += 1;
    }
    ends
}

fn count(history: &[Entry], counts: impl Fn(&What) -> bool) -> usize {
    history.iter().filter(|entry| counts(&entry.what)).count()
}

fn resumed(what: &What) -> bool {
    matches!(what, What::Opened { after: Some(_), .. })
}

fn jumped(what: &What) -> bool {
    matches!(what, What::Told { kind, .. } if kind == "snapshot")
}

fn summary(history: &[Entry], stored: &Stored) -> String {
    format!(
        "turns {:?}, {} messages, {} memories, {} consolidations; {} tries of turns, {} streams resumed, {} snapshots, {} lines of history",
        ends(stored),
        stored.messages.len(),
        stored.memories.len(),
        stored.consolidations.len(),
        count(history, |what| matches!(what, What::Asked { .. })),
        count(history, resumed),
        count(history, jumped),
        history.len()
    )
}

/// A run in which nothing was at stake proves nothing.
fn assert_something_happened(history: &[Entry], stored: &Stored) {
    let ends = ends(stored);
    for end in ["completed", "cancelled", "interrupted"] {
        assert!(ends.contains_key(end), "no turn was {end}: {ends:?}");
    }
    let tries = count(history, |what| matches!(what, What::Asked { .. }));
    assert!(tries > stored.turns.len(), "nothing was ever tried again");
    assert!(count(history, resumed) > 0, "no stream was ever resumed");
    assert!(
        count(history, |what| matches!(what, What::Forgotten { .. })) > 0,
        "nothing was forgotten"
    );
    assert!(
        !stored.consolidations.is_empty(),
        "nothing was consolidated"
    );
}
