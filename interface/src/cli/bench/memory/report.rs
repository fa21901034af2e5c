//! The table of figures; each the median of its rounds.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::measure::Round;
use crate::cli::bench::measures::percentile;
use crate::cli::bench::requirement::Figures;

/// What was measured.
#[derive(Debug)]
pub(super) struct Report {
    owners: u64,
    memories: u64,
    /// How long storing everything took.
    pub(super) loaded: Duration,
    /// The first recall of owners.
    pub(super) firsts: Round,
    recalls: BTreeMap<u32, Vec<Round>>,
    additions: BTreeMap<u32, Vec<Round>>,
}

/// One row; milliseconds and requests a second.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    name: String,
    clients: u32,
    n: usize,
    figures: [(&'static str, f64); 4],
}

impl Report {
    /// Nothing is measured yet.
    pub(super) fn new(owners: u64, memories: u64) -> Self {
        Self {
            owners,
            memories,
            loaded: Duration::ZERO,
            firsts: Round::default(),
            recalls: BTreeMap::new(),
            additions: BTreeMap::new(),
        }
    }

    /// A round of recalls by so many clients.
    pub(super) fn recalled(&mut self, clients: u32, round: Round) {
        self.recalls.entry(clients).or_default().push(round);
    }

    /// A round of additions by so many clients.
    pub(super) fn added(&mut self, clients: u32, round: Round) {
        self.additions.entry(clients).or_default().push(round);
    }

    fn rows(&self) -> Vec<Row> {
        let of = |name: &'static str, all: &BTreeMap<u32, Vec<Round>>| -> Vec<Row> {
            all.iter()
                .map(|(clients, rounds)| Row::of(format!("{name}-{clients}"), *clients, rounds))
                .collect()
        };
        let first = Row::of("first".to_owned(), 1, std::slice::from_ref(&self.firsts));
        let mut rows = vec![first];
        rows.extend(of("recall", &self.recalls));
        rows.extend(of("add", &self.additions));
        rows
    }

    /// Looks of that kind that found what they looked for, and all of them.
    fn found(all: &BTreeMap<u32, Vec<Round>>) -> (u64, u64) {
        all.values().flatten().fold((0, 0), |(found, looks), r| {
            (found + r.found, looks + r.looks)
        })
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let rows: Map<String, Value> = self
            .rows()
            .into_iter()
            .map(|row| {
                let mut json: Map<String, Value> = row
                    .figures
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), json!(value)))
                    .collect();
                json.insert("n".to_owned(), json!(row.n));
                (row.name, Value::Object(json))
            })
            .collect();
        let share = |(found, looks): (u64, u64)| json!({ "found": found, "looks": looks });
        json!({
            "owners": self.owners,
            "memories_each": self.memories,
            "load_seconds": self.loaded.as_secs_f64(),
            "measurements": rows,
            "recalled_what_was_asked": share(Self::found(&self.recalls)),
            "found_by_the_next_request": share(Self::found(&self.additions)),
        })
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        let mut out = format!(
            "{} owners with {} memories each\n\n{:<12}{:>8}{:>9}{:>12}{:>9}{:>9}{:>9}\n",
            self.owners,
            self.memories,
            "",
            "clients",
            "n",
            "per second",
            "p50 ms",
            "p95 ms",
            "p99 ms"
        );
        for row in self.rows() {
            let _ = write!(out, "{:<12}{:>8}{:>9}", row.name, row.clients, row.n);
            let [(_, per_second), times @ ..] = row.figures;
            let _ = write!(out, "{per_second:>12.1}");
            for (_, time) in times {
                let _ = write!(out, "{time:>9.2}");
            }
            out.push('\n');
        }
        for (what, (found, looks)) in [
            ("recalled what was asked for", Self::found(&self.recalls)),
            ("found by the next request", Self::found(&self.additions)),
        ] {
            let _ = writeln!(out, "{what}: {found} of {looks}");
        }
        out
    }
}

impl Figures for Report {
    fn figure(&self, category: Option<&str>, name: &str) -> Option<f64> {
        let share = |(found, looks): (u64, u64)| (looks > 0).then(|| found as f64 / looks as f64);
        match (category, name) {
            (None, "recalled") => share(Self::found(&self.recalls)),
            (None, "found") => share(Self::found(&self.additions)),
            (None, _) => None,
            (Some(category), _) => {
                let row = self.rows().into_iter().find(|row| row.name == category)?;
                let figure = row.figures.into_iter().find(|(n, _)| *n == name)?;
                Some(figure.1)
            }
        }
    }
}

impl Row {
    fn of(name: String, clients: u32, rounds: &[Round]) -> Self {
        let median = |of: &dyn Fn(&Round) -> f64| {
            let values: Vec<f64> = rounds.iter().map(of).collect();
            percentile(&values, 0.5).unwrap_or_default()
        };
        let time = |share: f64| {
            median(&move |round| {
                let all: Vec<f64> = round
                    .latencies
                    .iter()
                    .map(|l| l.as_secs_f64() * 1_000.0)
                    .collect();
                percentile(&all, share).unwrap_or_default()
            })
        };
        Self {
            name,
            clients,
            n: rounds.iter().map(|r| r.latencies.len()).sum(),
            figures: [
                (
                    "per_second",
                    median(&|r| r.latencies.len() as f64 / r.took.as_secs_f64().max(1e-9)),
                ),
                ("p50", time(0.5)),
                ("p95", time(0.95)),
                ("p99", time(0.99)),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn round(milliseconds: &[u64], took: u64, found: u64) -> Round {
        Round {
            latencies: milliseconds
                .iter()
                .copied()
                .map(Duration::from_millis)
                .collect(),
            took: Duration::from_millis(took),
            found,
            looks: milliseconds.len() as u64,
        }
    }

    #[test]
    fn each_figure_is_the_median_of_its_rounds() {
        let mut report = Report::new(2, 100);
        report.recalled(8, round(&[1, 2, 3], 1_000, 3));
        report.recalled(8, round(&[10, 20, 30], 500, 3));
        report.recalled(8, round(&[4, 5, 6], 1_500, 2));
        report.added(4, round(&[7], 100, 1));
        assert_eq!(report.figure(Some("recall-8"), "p50"), Some(5.0));
        assert_eq!(report.figure(Some("recall-8"), "p95"), Some(6.0));
        assert_eq!(report.figure(Some("recall-8"), "per_second"), Some(3.0));
        assert_eq!(report.figure(Some("add-4"), "per_second"), Some(10.0));
        assert_eq!(report.figure(None, "found"), Some(1.0));
        assert_eq!(report.figure(None, "recalled"), Some(8.0 / 9.0));
        assert_eq!(report.figure(Some("recall-9"), "p50"), None);
        assert_eq!(report.json()["measurements"]["recall-8"]["n"], 9);
        let table = report.table();
        assert!(
            table.contains("found by the next request: 1 of 1"),
            "{table}"
        );
    }
}
