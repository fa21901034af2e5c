//! `tidemark bench memory`: how fast memories are recalled and added, over HTTP.

mod measure;
mod report;
mod text;

use std::error::Error;
use std::process::ExitCode;

use clap::Args;

use self::measure::Yard;
use self::report::Report;
use super::requirement::{Requirement, judged};
use crate::cli::api::Api;
use crate::cli::embedded::{self, Embedded};
use crate::cli::{print, tell};
use crate::config::Loaded;
use crate::wiring;

#[derive(Debug, Args)]
pub(in crate::cli) struct MemoryArgs {
    /// How many memories each owner has
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    memories: u64,
    /// How many owners there are
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    owners: u64,
    /// How many clients recall at once, one measurement each
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 8], value_parser = clap::value_parser!(u32).range(1..=1_000))]
    clients: Vec<u32>,
    /// How many clients add at once, one measurement each
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 4], value_parser = clap::value_parser!(u32).range(1..=1_000))]
    add_clients: Vec<u32>,
    /// How long each round lasts
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// How many rounds; each figure is the median of theirs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// A server that runs already, such as <http://127.0.0.1:8080>. The variable
    /// `TIDEMARK_API_KEY` holds the key that it asks for, if it does
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    url: Option<String>,
    /// Another store for the server of this process
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Remove in the end what was stored at --url or --store; it is left there otherwise, since removing takes about as long as storing
    #[arg(long)]
    clean: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Fail unless it holds, as recall-8/p95<=40 (milliseconds, at most) or add-4/per_second=500 (at least); may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    require: Vec<Requirement>,
}

pub(super) fn run(args: &MemoryArgs, loaded: &Loaded) -> Result<ExitCode, Box<dyn Error>> {
    let runtime = crate::cli::runtime()?;
    let report = runtime.block_on(async {
        if let Some(url) = &args.url {
            return measured(args, Api::of_others(url)?, args.clean).await;
        }
        crate::cli::warn(loaded);
        let settings = embedded::quiet(loaded);
        let telemetry = wiring::telemetry(&settings)?;
        let store = embedded::store(args.store.as_deref())?;
        let server = Embedded::start(&settings, store).await?;
        let clean = args.clean && !server.is_temporary();
        let outcome = async { measured(args, Api::new(&server.url())?, clean).await }.await;
        server.end().await;
        // It waits for a thread of its own.
        tokio::task::spawn_blocking(move || drop(telemetry)).await?;
        outcome
    });
    runtime.shutdown_background();
    let report = report?;
    if args.json {
        let json = serde_json::to_string_pretty(&report.json())?;
        print::text(&format!("{json}\n"))?;
    } else {
        print::text(&report.table())?;
    }
    judged(&args.require, &report)
}

async fn measured(args: &MemoryArgs, api: Api, clean: bool) -> Result<Report, Box<dyn Error>> {
    let yard = Yard::new(api, args.owners, args.memories);
    let mut report = Report::new(args.owners, args.memories);
    report.loaded = yard.load().await?;
    tell(&format!(
        "{} memories are stored, {:.0} a second",
        args.owners * args.memories,
        (args.owners * args.memories) as f64 / report.loaded.as_secs_f64()
    ));
    report.firsts = yard.first_recalls().await?;
    for clients in &args.clients {
        for round in 0..args.rounds {
            let seed = u64::from(round);
            report.recalled(*clients, yard.recall(*clients, args.seconds, seed).await?);
        }
    }
    let mut added = 0;
    for clients in &args.add_clients {
        for _ in 0..args.rounds {
            let round = yard.add(*clients, args.seconds, added).await?;
            added += round.latencies.len() as u64;
            report.added(*clients, round);
        }
    }
    if clean {
        yard.clear().await?;
    }
    Ok(report)
}
