//! The figures, by row and name: a table for people, JSON for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::process::busy_processors;

/// A table of rows that have figures in common.
struct Table {
    /// What its rows are.
    name: &'static str,
    /// The figure that its rows have, and no others.
    mark: &'static str,
    /// What stands above the columns: how many, and of what.
    groups: &'static [(usize, &'static str)],
    /// The figure, its heading, and its decimals.
    columns: &'static [(&'static str, &'static str, usize)],
}

const TABLES: [Table; 2] = [
    Table {
        name: "streams",
        mark: "added_p99",
        groups: &[
            (1, ""),
            (5, "first token beyond the model's, ms"),
            (2, "each token, ms"),
            (4, "processor, µs a token"),
            (3, "memory, KiB a stream"),
        ],
        columns: &[
            ("errors", "errors", 0),
            ("relay_first_p50", "relay p50", 1),
            ("relay_first_p99", "relay p99", 1),
            ("first_p50", "own p50", 1),
            ("first_p99", "own p99", 1),
            ("added_p99", "more p99", 1),
            ("relay_token_p99", "relay p99", 1),
            ("token_p99", "own p99", 1),
            ("relay_cpu", "relay", 1),
            ("cpu", "own", 1),
            ("cpu_ratio", "ratio", 2),
            ("cpu_derived", "+ jobs", 1),
            ("relay_kib", "relay", 1),
            ("kib", "own", 1),
            ("memory_ratio", "ratio", 2),
        ],
    },
    Table {
        name: "single turns",
        mark: "beyond_p99",
        groups: &[
            (1, ""),
            (4, "first token beyond the model's, ms"),
            (2, "a commit, ms"),
            (2, "less two, ms"),
            (2, "recalled"),
            (2, "processor, ms a turn"),
        ],
        columns: &[
            ("errors", "errors", 0),
            ("relay_first_p50", "relay p50", 2),
            ("first_p50", "own p50", 2),
            ("first_p99", "own p99", 2),
            ("cold_p50", "at first", 2),
            ("commit_p50", "p50", 2),
            ("commit_p99", "p99", 2),
            ("beyond_p50", "p50", 2),
            ("beyond_p99", "p99", 2),
            ("recalled", "memories", 1),
            ("degraded", "degraded", 0),
            ("server_cpu", "server", 2),
            ("database_cpu", "database", 2),
        ],
    },
];

/// What was measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: BTreeMap<String, BTreeMap<&'static str, f64>>,
    /// In the order in which they were measured.
    names: Vec<String>,
}

impl Report {
    /// Begins with how busy the machine is.
    pub(crate) async fn of_this_machine() -> Self {
        let busy = busy_processors().await;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        println!("before the run {busy:.1} of {processors} processors were busy");
        let mut report = Self::default();
        report.add("machine", "busy_before", busy);
        report
    }

    /// Takes a figure.
    pub(crate) fn add(&mut self, row: &str, name: &'static str, value: f64) {
        if !self.rows.contains_key(row) {
            self.names.push(row.to_owned());
        }
        let figures = self.rows.entry(row.to_owned()).or_default();
        figures.insert(name, value);
    }

    /// A figure.
    pub(crate) fn figure(&self, row: &str, name: &str) -> Option<f64> {
        self.rows.get(row)?.get(name).copied()
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        json!(self.rows)
    }

    /// For people.
    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        for table in &TABLES {
            self.write_table(&mut out, table);
        }
        for name in &self.names {
            self.write_rest(&mut out, name);
        }
        out
    }

    fn write_table(&self, out: &mut String, table: &Table) {
        let mut rows = self
            .names
            .iter()
            .filter(|name| self.figure(name, table.mark).is_some())
            .peekable();
        if rows.peek().is_none() {
            return;
        }
        let _ = write!(out, "{:24}", "");
        for (columns, heading) in table.groups {
            let _ = write!(out, "{heading:>width$}", width = 10 * columns);
        }
        let _ = write!(out, "\n{:<24}", table.name);
        for (_, heading, _) in table.columns {
            let _ = write!(out, "{heading:>10}");
        }
        out.push('\n');
        for name in rows {
            let _ = write!(out, "{name:<24}");
            for (figure, _, decimals) in table.columns {
                let _ = match self.figure(name, figure) {
                    Some(value) => write!(out, "{value:>10.decimals$}"),
                    None => write!(out, "{:>10}", "-"),
                };
            }
            out.push('\n');
        }
        out.push('\n');
    }

    /// Speed, idle memory and start, of a server as a whole.
    fn write_rest(&self, out: &mut String, name: &str) {
        let figure = |figure: &str| self.figure(name, figure);
        if let (Some(own), Some(relay)) = (figure("turns_per_second"), figure("relay_per_second")) {
            let _ = writeln!(
                out,
                "{name}: at full speed {own:.0} turns a second, the relay {relay:.0} ({:.0} %), {} errors, derived work done {:.1} s later",
                100.0 * own / relay,
                figure("errors").unwrap_or_default(),
                figure("drained_seconds").unwrap_or_default()
            );
        }
        if let (Some(reached), Some(ratio)) =
            (figure("pgbench_per_second"), figure("pgbench_ratio"))
        {
            let _ = writeln!(
                out,
                "{name}: that is {:.0} % of the {reached:.0} that pgbench reaches with a turn's {:.0} statements in {:.0} transactions",
                100.0 * ratio,
                figure("turn_statements").unwrap_or_default(),
                figure("turn_transactions").unwrap_or_default()
            );
        }
        if let (Some(all), Some(cpu)) = (figure("all_transactions"), figure("turn_cpu")) {
            let _ = writeln!(
                out,
                "{name}: {all:.1} transactions and {cpu:.2} ms of the server's processor time a turn, derived work included"
            );
        }
        if let (Some(idle), Some(start)) = (figure("idle_mib"), figure("start_seconds")) {
            let _ = writeln!(
                out,
                "{name}: {idle:.1} MiB idle, {start:.3} s from start to ready"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_wave_and_for_each_store() {
        let mut report = Report::default();
        report.add("sqlite-1000", "added_p99", 12.34);
        report.add("sqlite-1000", "cpu_ratio", 2.5);
        report.add("sqlite", "idle_mib", 30.0);
        report.add("sqlite", "start_seconds", 0.25);
        let table = report.table();
        let wave = table
            .lines()
            .find(|line| line.starts_with("sqlite-1000"))
            .unwrap();
        assert!(wave.contains("12.3") && wave.contains("2.50"), "{table}");
        assert!(!table.contains("single turns"), "{table}");
        assert!(
            table.contains("sqlite: 30.0 MiB idle, 0.250 s from start to ready"),
            "{table}"
        );
        assert_eq!(report.json()["sqlite"]["idle_mib"], 30.0);
    }
}
