//! Runs `pgbench`.

use std::path::Path;
use std::process::Stdio;

use crate::process;

/// What it asks, and of which database.
#[derive(Debug)]
pub(super) struct Load<'a> {
    pub(super) pgbench: &'a Path,
    pub(super) database: &'a str,
    pub(super) script: &'a Path,
    pub(super) constants: &'a [(String, String)],
    pub(super) clients: u32,
}

/// What it reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reached {
    /// Turns in all.
    pub(super) turns: f64,
    /// Turns a second, once it was warm.
    pub(super) per_second: f64,
}

impl Load<'_> {
    /// Asks for `warm` seconds, in which connections are made and each of them prepares and plans, and for `seconds` that count.
    ///
    /// # Errors
    /// It did not end well, or one of its clients did not.
    pub(super) async fn run(&self, warm: u64, seconds: u64) -> Result<Reached, String> {
        let mut command = process::command(self.pgbench);
        let time = (warm + seconds).to_string();
        // As the server's role, whom row-level security binds; prepared, as the server prepares.
        command
            .env("PGOPTIONS", "-c role=tidemark_app")
            .args(["--no-vacuum", "--protocol", "prepared", "--jobs", "2"])
            .args(["--client", &self.clients.to_string(), "--progress", "1"])
            .args(["--time", &time, "--file"])
            .arg(self.script);
        for (name, value) in self.constants {
            command.arg("--define").arg(format!("{name}={value}"));
        }
        command.arg(self.database).stdout(Stdio::piped());
        let output = command.stderr(Stdio::piped()).output().await;
        let output = output.map_err(|error| format!("pgbench: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        let failed = || format!("pgbench: {}\n{error}\n{said}", output.status);
        if !output.status.success() {
            return Err(failed());
        }
        reached(&said, &error, warm).ok_or_else(failed)
    }
}

fn reached(said: &str, progress: &str, warm: u64) -> Option<Reached> {
    let failed = number_after(said, "number of failed transactions: ")?;
    let mut counting = Vec::new();
    for line in progress.lines() {
        // Whatever else it says is a complaint.
        let (at, rest) = line.strip_prefix("progress: ")?.split_once(" s, ")?;
        let (per_second, _) = rest.split_once(" tps")?;
        if at.parse::<f64>().ok()? > warm as f64 + 0.5 {
            counting.push(per_second.parse::<f64>().ok()?);
        }
    }
    (failed == 0.0 && !counting.is_empty()).then_some(Reached {
        turns: number_after(said, "number of transactions actually processed: ")?,
        per_second: counting.iter().sum::<f64>() / counting.len() as f64,
    })
}

fn number_after(said: &str, before: &str) -> Option<f64> {
    let rest = said.lines().find_map(|line| line.strip_prefix(before))?;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seconds_count_in_which_it_is_warm_and_none_if_a_turn_failed() {
        let said = "number of clients: 64
number of transactions actually processed: 3671
number of failed transactions: 0 (0.000%)
";
        let progress = "progress: 1.0 s, 12.0 tps, lat 34.8 ms stddev 1.2, 0 failed
progress: 2.0 s, 900.0 tps, lat 34.8 ms stddev 1.2, 0 failed
progress: 3.0 s, 1000.0 tps, lat 34.8 ms stddev 1.2, 0 failed
";
        let wanted = Reached {
            turns: 3_671.0,
            per_second: 950.0,
        };
        assert_eq!(reached(said, progress, 1), Some(wanted));
        assert_eq!(reached(&said.replace(": 0 (", ": 3 ("), progress, 1), None);
        assert_eq!(reached(said, "pgbench: error: x", 1), None);
        assert_eq!(reached(said, progress, 3), None);
    }
}
