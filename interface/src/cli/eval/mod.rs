//! `tidemark eval`: scenarios that hold memory to its promises, played over the public API (B15).

mod judgement;
mod play;
mod report;
mod scenario;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use self::play::Stage;
use self::report::Outcome;
use self::scenario::Scenario;
use super::api::Api;
use super::embedded::{self, Embedded};
use super::print;
use crate::config::{Loaded, Settings};
use crate::wiring;

#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    /// Only scenarios whose name, class or language holds this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Scenarios of your own: every .yaml file of this folder, instead of those that come with the product
    #[arg(long, value_name = "DIR")]
    scenarios: Option<PathBuf>,
    /// Who answers
    #[arg(long, value_enum, default_value_t = Model::Configured)]
    model: Model,
    /// A server that runs already, such as <http://127.0.0.1:8080>; what is told there is removed in the end. The variable
    /// `TIDEMARK_API_KEY` holds the key that it asks for, if it does
    #[arg(long, value_name = "URL", conflicts_with_all = ["store", "model"])]
    url: Option<String>,
    /// Another store for the server of this process; what is told there is removed in the end
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Print the names of the scenarios and what they promise, and end
    #[arg(long)]
    list: bool,
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Model {
    /// The model of the configuration
    Configured,
    /// The built-in model, which answers with what was recalled: the same every time, without a network
    Scripted,
}

/// Plays the scenarios.
pub(super) fn run(args: &EvalArgs, loaded: &Loaded) -> Result<ExitCode, Box<dyn Error>> {
    let mut scenarios = match &args.scenarios {
        Some(folder) => scenario::of_folder(folder)?,
        None => scenario::built_in()?,
    };
    if let Some(text) = &args.filter {
        scenarios.retain(|s| s.is_meant_by(text));
    }
    if scenarios.is_empty() {
        return Err("no scenario is left to play".into());
    }
    if args.list {
        print::text(&report::list(&scenarios))?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = super::runtime()?;
    let outcomes = runtime.block_on(async {
        if let Some(url) = &args.url {
            return play(args, &scenarios, &Api::of_others(url)?, true).await;
        }
        super::warn(loaded);
        let settings = settings(args, loaded);
        let telemetry = wiring::telemetry(&settings)?;
        let store = embedded::store(args.store.as_deref())?;
        let server = Embedded::start(&settings, store).await?;
        let clean = !server.is_temporary();
        let outcome =
            async { play(args, &scenarios, &Api::new(&server.url())?, clean).await }.await;
        server.end().await;
        // It waits for a thread of its own.
        tokio::task::spawn_blocking(move || drop(telemetry)).await?;
        outcome
    });
    runtime.shutdown_background();
    let outcomes = outcomes?;
    if args.json {
        let json = serde_json::to_string_pretty(&report::json(&outcomes))?;
        print::text(&format!("{json}\n"))?;
    } else {
        print::text(&report::summary(&outcomes))?;
    }
    Ok(if outcomes.iter().all(Outcome::passed) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The user's own, but that nothing is put off for longer than a scenario lasts.
fn settings(args: &EvalArgs, loaded: &Loaded) -> Settings {
    let mut settings = embedded::quiet(loaded);
    settings.learning.interval_seconds = 1;
    if args.model == Model::Scripted {
        settings.model.base_url = None;
        settings.model.name = None;
    }
    settings
}

async fn play(
    args: &EvalArgs,
    scenarios: &[Scenario],
    api: &Api,
    clean: bool,
) -> Result<Vec<Outcome>, Box<dyn Error>> {
    let mut outcomes = Vec::new();
    if !args.json {
        print::text(&report::heading())?;
    }
    for (number, scenario) in scenarios.iter().enumerate() {
        let mut stage = Stage::new(api, number);
        let outcome = stage.play(scenario).await;
        if clean {
            stage.clear().await?;
        }
        if !args.json {
            print::text(&report::row(&outcome))?;
        }
        outcomes.push(outcome);
    }
    Ok(outcomes)
}
