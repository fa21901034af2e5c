//! The commands. Without one, the server is run.

mod api;
mod bench;
mod embedded;
mod erase;
mod eval;
mod export;
mod keys;
mod migrate;
mod print;
mod serve;

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tidemark_application::ports::store::Store;
use tidemark_domain::ids::{TenantId, TenantName, UserName};

use crate::config;

/// Tidemark, a chat server that remembers.
#[derive(Debug, Parser)]
#[command(name = "tidemark", version)]
struct Cli {
    /// The configuration file; tidemark.toml in the working directory when it is there and none is named.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server; the command when none is named
    Serve,
    /// Bring the store's schema to this version, and end
    Migrate,
    /// Print everything that is kept of a user, as JSON Lines
    Export {
        /// The tenant's own name for the user
        user: String,
        /// The user's tenant
        #[arg(long, value_name = "NAME", default_value = "default")]
        tenant: String,
    },
    /// Remove everything that is kept of a user, and print the receipt
    Erase {
        /// The tenant's own name for the user
        user: String,
        /// The user's tenant
        #[arg(long, value_name = "NAME", default_value = "default")]
        tenant: String,
    },
    /// Make, list, rotate and revoke API keys
    ///
    /// They can be used at once and while the server runs.
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Print the effective settings with their documentation; secrets are hidden
    Config {
        /// Print the documented defaults instead, as a file to begin with
        #[arg(long)]
        example: bool,
    },
    /// Print the OpenAPI document
    Openapi,
    /// Play scenarios that hold memory to its promises
    ///
    /// Each is told and asked over the public API, as users of its own. Without --url a server runs in this process with the configuration
    /// as it is (model, embedder, profile, …), on a file that is removed in the end. Fails when a promise is not kept.
    Eval(eval::EvalArgs),
    /// Measure a server
    #[command(subcommand)]
    Bench(bench::Bench),
}

/// Does what the command line says.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    match dispatch(&cli) {
        Ok(code) => code,
        Err(error) => {
            tell(&format!("tidemark: {}", whole(error.as_ref())));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(cli: &Cli) -> Result<ExitCode, Box<dyn Error>> {
    let load = || config::load(cli.config.as_deref());
    match &cli.command {
        None | Some(Command::Serve) => serve::run(load()?)?,
        Some(Command::Export { user, tenant }) => export::run(&load()?, user, tenant)?,
        Some(Command::Erase { user, tenant }) => erase::run(&load()?, user, tenant)?,
        Some(Command::Keys(command)) => keys::run(command, &load()?)?,
        Some(Command::Migrate) => migrate::run(&load()?)?,
        Some(Command::Config { example: true }) => print::example()?,
        Some(Command::Config { example: false }) => print::effective(&load()?)?,
        Some(Command::Openapi) => print::openapi()?,
        Some(Command::Eval(args)) => return eval::run(args, &load()?),
        Some(Command::Bench(bench)) => return bench::run(bench, &load()?),
    }
    Ok(ExitCode::SUCCESS)
}

/// The error with everything behind it, on one line.
fn whole(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        // Some errors repeat their source's text in their own.
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}

/// The user that an argument names.
fn user(name: &str) -> Result<UserName, String> {
    name.parse().map_err(|_| {
        format!("{name:?} names no user: 1 to 128 of the characters A-Z a-z 0-9 . _ : @ -")
    })
}

/// The tenant that an argument names.
fn tenant_name(name: &str) -> Result<TenantName, String> {
    name.parse().map_err(|_| {
        format!("{name:?} names no tenant: 1 to 64 of the characters A-Z a-z 0-9 . _ -")
    })
}

/// The tenant of that name that is there.
async fn tenant(store: &dyn Store, name: &TenantName) -> Result<TenantId, Box<dyn Error>> {
    let found = store.find_tenant(name).await?;
    Ok(found.ok_or_else(|| format!("there is no tenant {}", name.as_str()))?)
}

fn unknown(user: &UserName) -> String {
    format!("there is no user {}", user.as_str())
}

/// Writes a line to standard error. Nobody is there to be told when that fails.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn warn(loaded: &config::Loaded) {
    for warning in &loaded.warnings {
        tell(&format!("tidemark: warning: {warning}"));
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_command_is_serve_and_the_file_may_stand_anywhere() {
        let cli = Cli::parse_from(["tidemark", "--config", "a.toml"]);
        assert!(cli.command.is_none() && cli.config == Some("a.toml".into()));
        let cli = Cli::parse_from(["tidemark", "config", "--config", "a.toml"]);
        assert!(
            matches!(cli.command, Some(Command::Config { example: false }))
                && cli.config == Some("a.toml".into())
        );
    }

    #[test]
    fn an_error_is_told_with_its_sources_once() {
        let inner = std::io::Error::other("no route");
        let outer = config::ConfigError::Unreadable {
            path: "t.toml".into(),
            source: inner,
        };
        assert_eq!(
            whole(&outer),
            "the configuration file t.toml cannot be read: no route"
        );
    }
}
