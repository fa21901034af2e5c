//! `tidemark bench recall`: from the data to the table.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;

use super::RecallArgs;
use super::data::Data;
use super::report::Report;
use super::requirement::judged;
use super::run::{Asked, Plan, World};
use crate::cli::api::Api;
use crate::cli::embedded::{self, Embedded};
use crate::cli::{print, tell};
use crate::config::Loaded;
use crate::wiring;

pub(super) fn run(args: &RecallArgs, loaded: &Loaded) -> Result<ExitCode, Box<dyn Error>> {
    let data = Data::read(&args.conversations, &args.questions, args.split.as_deref())?;
    let runtime = crate::cli::runtime()?;
    let report = runtime.block_on(async {
        if let Some(url) = &args.url {
            return measure(args, &data, &Api::of_others(url)?, true).await;
        }
        crate::cli::warn(loaded);
        let settings = embedded::quiet(loaded);
        let telemetry = wiring::telemetry(&settings)?;
        let store = embedded::store(args.store.as_deref())?;
        let server = Embedded::start(&settings, store).await?;
        let clean = !server.is_temporary();
        let outcome = async { measure(args, &data, &Api::new(&server.url())?, clean).await }.await;
        server.end().await;
        // It waits for a thread of its own.
        tokio::task::spawn_blocking(move || drop(telemetry)).await?;
        outcome
    });
    runtime.shutdown_background();
    let report = report?;
    if args.json {
        print::text(&format!(
            "{}\n",
            serde_json::to_string_pretty(&report.json())?
        ))?;
    } else {
        print::text(&report.table())?;
    }
    judged(&args.require, &report)
}

async fn measure(
    args: &RecallArgs,
    data: &Data,
    api: &Api,
    clean: bool,
) -> Result<Report, Box<dyn Error>> {
    let plan = Plan {
        top_k: args.top_k,
        roles: args.roles,
    };
    let mut world = World::new(api, plan);
    let outcome = asked(data, &mut world).await;
    if clean && !args.keep {
        world.remove().await?;
    }
    let asked = outcome?;
    if let Some(path) = &args.run {
        write_run(path, &asked)?;
    }
    Ok(Report::of(data, &asked, args.sessions))
}

async fn asked(data: &Data, world: &mut World<'_>) -> Result<Asked, Box<dyn Error>> {
    let begun = Instant::now();
    let messages = world.import(data).await?;
    tell(&format!(
        "imported {} conversations with {messages} messages in {:.1} s, the first as the user {}",
        data.conversations.len(),
        begun.elapsed().as_secs_f64(),
        world.user(0)
    ));
    let begun = Instant::now();
    world.settle().await?;
    tell(&format!(
        "their derived work was done {:.1} s later",
        begun.elapsed().as_secs_f64()
    ));
    world.ask(data).await
}

/// A line a question: its id, the turns best first, their scores, and how sure recall was of the best.
fn write_run(path: &Path, asked: &Asked) -> Result<(), Box<dyn Error>> {
    let mut file = BufWriter::new(File::create(path)?);
    for (question, answer) in &asked.questions {
        let (ranked, scores): (Vec<String>, Vec<f64>) = answer.ranked.iter().cloned().unzip();
        let line = json!({ "question_id": question, "ranked": ranked, "scores": scores, "sureness": answer.sureness });
        writeln!(file, "{line}")?;
    }
    Ok(file.flush()?)
}
