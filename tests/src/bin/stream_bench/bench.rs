//! What every measurement starts: the scripted model, the bare relay, and the server on a store.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use clap::Args;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::api::{is_ready, settle};
use crate::load::Outcome;
use crate::process::{self, Server};

/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How long the derived work of a load is waited for.
const SETTLE_LIMIT: Duration = Duration::from_mins(2);

#[derive(Clone, Debug, Args)]
pub(crate) struct Parts {
    /// The server's binary
    #[arg(long, value_name = "FILE")]
    pub(crate) server: PathBuf,
    /// `sqlite`, a file that is removed in the end, or the address of an empty `PostgreSQL` database; may be named several times
    #[arg(long, value_name = "STORE", default_value = "sqlite")]
    pub(crate) store: Vec<String>,
    /// Tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) tokens: u16,
    /// Tokens a second of a stream
    #[arg(long, value_name = "N", default_value_t = 20.0)]
    pub(crate) rate: f64,
    /// How long the model's first token takes
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 200)]
    pub(crate) delay_ms: u64,
    /// Streams that are of one user; each is a session of its own
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) per_user: u32,
}

/// The parts that run.
pub(crate) struct Bench {
    parts: Parts,
    dir: TempDir,
    model: Server,
    loads: u32,
}

/// Who is asked.
pub(crate) struct Asked {
    pub(crate) server: Server,
    is_product: bool,
}

impl Asked {
    /// Waits until the work that turns left behind is done; a relay has none.
    ///
    /// # Errors
    /// It was not done in time.
    pub(crate) async fn settle(&self) -> Result<(), String> {
        self.settle_within(SETTLE_LIMIT).await
    }

    /// The same with another limit, where more was left behind than by a load.
    pub(crate) async fn settle_within(&self, limit: Duration) -> Result<(), String> {
        if self.is_product {
            settle(&self.server, limit).await?;
        }
        Ok(())
    }
}

impl Bench {
    /// Starts the model.
    pub(crate) async fn start(parts: Parts) -> Self {
        let dir = TempDir::new().expect("a directory");
        let mut model = process::command(&this_program());
        model
            .args(["model", "--tokens", &parts.tokens.to_string()])
            .args(["--rate", &parts.rate.to_string()])
            .args(["--delay-ms", &parts.delay_ms.to_string()]);
        let model = Server::start(model, &dir.path().join("model.log")).await;
        Self {
            parts,
            dir,
            model,
            loads: 0,
        }
    }

    /// Ends the model.
    pub(crate) async fn end(self) {
        self.model.end().await;
    }

    /// Where files of a measurement may lie.
    pub(crate) fn directory(&self) -> &std::path::Path {
        self.dir.path()
    }

    /// A fresh relay.
    pub(crate) async fn relay(&self) -> Asked {
        let mut relay = process::command(&this_program());
        relay.args(["relay", "--model", &self.model_url()]);
        Asked {
            server: Server::start(relay, &self.dir.path().join("relay.log")).await,
            is_product: false,
        }
    }

    /// A fresh process on the store, with settings beyond the usual, and how long it took until it was ready.
    pub(crate) async fn product(
        &self,
        store: &str,
        settings: &[(&str, &str)],
    ) -> (Asked, Duration) {
        let file = self.dir.path().join("tidemark.db");
        let url = match store {
            "sqlite" => format!("sqlite://{}", file.display()),
            url => url.to_owned(),
        };
        let mut command = process::command(&self.parts.server);
        command
            .arg("serve")
            .env("TIDEMARK_LISTEN", "127.0.0.1:0")
            .env("TIDEMARK_STORE__URL", url)
            .env("TIDEMARK_MODEL__BASE_URL", self.model_url())
            .env("TIDEMARK_MODEL__NAME", "scripted")
            .envs(settings.iter().copied())
            .current_dir(self.dir.path());
        let begun = Instant::now();
        let log = self.dir.path().join("server.log");
        let server = Server::start(command, &log).await;
        while !is_ready(&server).await {
            sleep(Duration::from_millis(2)).await;
        }
        let start = begun.elapsed();
        let asked = Asked {
            server,
            is_product: true,
        };
        (asked, start)
    }

    /// Where the scripted model is.
    pub(crate) fn model_url(&self) -> String {
        format!("http://{}/v1", self.model.address)
    }

    /// Runs a load, and gives what it saw and the most memory that the server had meanwhile, in KiB.
    pub(crate) async fn load(&mut self, asked: &Asked, load: &str) -> (Outcome, u64) {
        self.loads += 1;
        let mark = format!("{}-{}", std::process::id(), self.loads);
        let mut command = process::command(&this_program());
        command
            .args(["load", "--address", &asked.server.address, "--mark", &mark])
            .args(["--tokens", &self.parts.tokens.to_string()])
            .args(["--per-user", &self.parts.per_user.to_string()])
            .args(load.split(' '))
            .stdout(Stdio::piped());
        let running = command.spawn().expect("a load").wait_with_output();
        let mut running = std::pin::pin!(running);
        let mut most = 0;
        loop {
            tokio::select! {
                output = &mut running => {
                    let output = output.expect("a load's end").stdout;
                    return (serde_json::from_slice(&output).expect("a load's outcome"), most);
                }
                () = sleep(LOOK) => most = most.max(asked.server.resident()),
            }
        }
    }
}

fn this_program() -> PathBuf {
    std::env::current_exe().expect("the path of this program")
}

/// What rows of a store are named by.
pub(crate) fn name_of(store: &str) -> &str {
    store.split_once("://").map_or(store, |(scheme, _)| scheme)
}
