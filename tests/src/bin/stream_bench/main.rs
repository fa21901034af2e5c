//! The benchmark of streaming: a scripted model, the server, and beside it a bare relay that does nothing else, under the same load.
//!
//! Each part is a process of its own, so that its processor time and its memory can be told apart: `model`, `relay` and `load` are those parts,
//! `run` starts them and the server, and prints a table. Linux alone: the figures of processes come from `/proc`.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a program of the tests: whatever is unexpected here ends the measurement with its message"
)]

mod api;
mod bench;
mod client;
mod clock;
mod http;
mod load;
mod model;
mod process;
mod reference;
mod relay;
mod report;
mod requirement;
mod run;
mod texts;
mod token;
mod turns;
mod verdict;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "stream_bench",
    about = "Measures streaming beside a bare relay"
)]
struct Command {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// A model that streams stamped tokens at a rate
    Model(model::ModelArgs),
    /// A relay of the model's stream that stores nothing
    Relay(relay::RelayArgs),
    /// Clients that read streams, and what they saw as JSON
    Load(load::LoadArgs),
    /// All of it, and the server: streams at once, and full speed
    Run(run::RunArgs),
    /// The model, the relay and the server: single turns with many memories, and in long sessions
    Turns(turns::TurnsArgs),
}

fn main() -> ExitCode {
    let part = Command::parse().part;
    // Where what is measured is the other processes, one thread takes the least from them.
    let mut runtime = match part {
        Part::Relay(_) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = runtime.enable_all().build().expect("a runtime");
    runtime.block_on(async {
        match part {
            Part::Model(args) => model::serve(args).await,
            Part::Relay(args) => relay::serve(args).await,
            Part::Load(args) => load::run(args).await,
            Part::Run(args) => return run::run(args).await,
            Part::Turns(args) => return turns::run(args).await,
        }
        ExitCode::SUCCESS
    })
}
