//! `tidemark bench`: measures a server over its public API.

mod data;
mod measures;
mod memory;
mod names;
mod recall;
mod report;
mod requirement;
mod run;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};

use self::requirement::Requirement;
use crate::config::Loaded;

#[derive(Debug, Subcommand)]
pub(super) enum Bench {
    /// How well recall finds the turns that hold the answers
    ///
    /// The conversations are imported over the public API, each as a user of its own, then the questions are asked. Without --url a server
    /// runs in this process with the configuration as it is (embedder, profile, …), on a file that is removed in the end.
    Recall(RecallArgs),
    /// How fast memories are recalled and added
    ///
    /// Made-up memories are stored over the public API, then recalled and added to by clients with one request at a time. Without --url the
    /// server runs in this process and shares its processors with the clients.
    Memory(memory::MemoryArgs),
}

#[derive(Debug, Args)]
pub(super) struct RecallArgs {
    /// Conversations, an object of JSON a line; may be named several times
    #[arg(long, value_name = "FILE", required = true)]
    conversations: Vec<PathBuf>,
    /// Questions about them, an object of JSON a line
    #[arg(long, value_name = "FILE")]
    questions: PathBuf,
    /// Only the questions of this split; all when not named
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// Score sessions instead of turns
    #[arg(long)]
    sessions: bool,
    /// How many memories are asked for, 20 to 100
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(20..=100))]
    top_k: u32,
    /// As whom the speakers are imported
    #[arg(long, value_enum, default_value_t = Roles::Users)]
    roles: Roles,
    /// A server that runs already, such as <http://127.0.0.1:8080>; what is imported there is removed in the end. The variable
    /// `TIDEMARK_API_KEY` holds the key that it asks for, if it does
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    url: Option<String>,
    /// Another store for the server of this process; what is imported there is removed in the end
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Leave what was imported where it is
    #[arg(long)]
    keep: bool,
    /// Write the ranking of each question, an object of JSON a line
    #[arg(long, value_name = "FILE")]
    run: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Fail unless it holds, as recall@10=0.70 (at least), multi-hop/all@10=0.45 (of a category), negatives<=0.2 (at most); may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    require: Vec<Requirement>,
}

/// As whom the speakers of a conversation are imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Roles {
    /// All as users, told apart by their names: each one's words count the same
    Users,
    /// The first speaker as the user, all others as the assistant
    UserAndAssistant,
}

/// Measures what is asked for.
pub(super) fn run(bench: &Bench, loaded: &Loaded) -> Result<ExitCode, Box<dyn Error>> {
    match bench {
        Bench::Recall(args) => recall::run(args, loaded),
        Bench::Memory(args) => memory::run(args, loaded),
    }
}
