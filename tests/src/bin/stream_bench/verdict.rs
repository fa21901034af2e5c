//! What is done with figures: they are kept, and judged.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::report::Report;
use crate::requirement::Requirement;

#[derive(Clone, Debug, Args)]
pub(crate) struct Verdict {
    /// Write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Fail unless it holds, as `postgres-1000/cpu_ratio<=3` (at most) or `postgres/turns_per_second=300` (at least); may be repeated
    #[arg(long, value_name = "ROW/NAME=VALUE")]
    require: Vec<Requirement>,
}

impl Verdict {
    /// Whether all that is required holds, and nothing failed.
    pub(crate) fn of(&self, report: &Report, failures: &[String]) -> ExitCode {
        if let Some(file) = &self.json {
            let json = serde_json::to_string_pretty(&report.json()).expect("JSON");
            std::fs::write(file, json + "\n").expect("to write the figures");
        }
        let mut met = failures.is_empty();
        for failure in failures {
            println!("FAIL {failure}");
        }
        for requirement in &self.require {
            let (holds, line) = requirement.judge(report);
            met &= holds;
            println!("{line}");
        }
        if met {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
