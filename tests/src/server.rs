//! The server under test: the real binary in a process of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};

use crate::client::Client;
use crate::clock::clean_up_after;
use crate::database::{Database, Store};
use crate::embeddings::Embeddings;
use crate::model::Model;

/// How long a start may take, migrations included; generous, because tests share two cores.
const START_LIMIT: Duration = Duration::from_mins(1);

/// What a server is started with.
#[derive(Debug, Clone)]
pub struct Setup {
    store: Store,
    settings: BTreeMap<String, String>,
}

impl Setup {
    /// The defaults on `store`, on a free port.
    pub fn on(store: Store) -> Self {
        let setup = Self {
            store,
            settings: BTreeMap::new(),
        };
        setup
            .with("TIDEMARK_LISTEN", "127.0.0.1:0")
            .with("TIDEMARK_LOG", "info")
    }

    /// Sets an environment variable of the server.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.insert(name.to_owned(), value.to_string());
        self
    }

    /// Lets the server talk to `model`.
    #[must_use]
    pub fn model(self, model: &Model) -> Self {
        self.model_at(model.base_url())
    }

    /// Lets the server talk to whatever is at `base_url`.
    #[must_use]
    pub fn model_at(self, base_url: &str) -> Self {
        self.with("TIDEMARK_MODEL__BASE_URL", base_url)
            .with("TIDEMARK_MODEL__NAME", "scripted")
    }

    /// Lets the server embed with `embeddings`.
    #[must_use]
    pub fn embedder(self, embeddings: &Embeddings) -> Self {
        self.with("TIDEMARK_EMBEDDER__KIND", "openai")
            .with("TIDEMARK_EMBEDDER__BASE_URL", embeddings.base_url())
            .with("TIDEMARK_EMBEDDER__NAME", "scripted")
    }

    /// Starts the binary and waits until it says where it listens.
    pub async fn start(self) -> Server {
        let dir = TempDir::new().expect("a temporary directory");
        let database = Database::create(self.store, dir.path()).await;
        let setup = self.with("TIDEMARK_STORE__URL", database.url());
        setup.start_in(dir, Some(database)).await
    }

    /// Starts the binary on the data at `url`, which is somebody else's to make and to drop.
    pub async fn start_at(self, url: &str) -> Server {
        let dir = TempDir::new().expect("a temporary directory");
        let setup = self.with("TIDEMARK_STORE__URL", url);
        setup.start_in(dir, None).await
    }

    async fn start_in(self, dir: TempDir, database: Option<Database>) -> Server {
        let settings = self.settings;
        let log = Log::default();
        let (process, address) = launch(&settings, &dir, &log)
            .await
            .unwrap_or_else(|failure| panic!("{failure}"));
        Server {
            process: Some(process),
            address,
            settings,
            log,
            dir,
            _database: database,
        }
    }
}

/// A server with the defaults and its scripted model, and a client of it.
pub async fn with_model(store: Store) -> (Server, Model, Client) {
    let model = Model::start().await;
    let server = Setup::on(store).model(&model).start().await;
    let client = server.client();
    (server, model, client)
}

/// The lines that a server wrote, over all its starts.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// All lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// All lines as one text.
    pub fn text(&self) -> String {
        self.lines().join("\n")
    }

    fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn follow(&self, pipe: impl AsyncRead + Unpin + Send + 'static) {
        let log = self.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(pipe).split(b'\n');
            while let Ok(Some(line)) = lines.next_segment().await {
                log.add(String::from_utf8_lossy(&line).into_owned());
            }
        });
    }
}

/// A running server; killed when dropped, its log shown when the test failed.
#[derive(Debug)]
pub struct Server {
    process: Option<Child>,
    address: String,
    settings: BTreeMap<String, String>,
    log: Log,
    // Dropped last, in this order: the data after the process, the database after its file's directory.
    dir: TempDir,
    // None for a server on another one's data.
    _database: Option<Database>,
}

impl Server {
    /// `http://127.0.0.1:PORT`, another port after each start.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A client without a user name.
    pub fn client(&self) -> Client {
        Client::new(&self.base_url())
    }

    /// What the server wrote.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The directory that it runs in.
    pub fn dir(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    /// Starts a second server with the same settings on the same data, which stays this one's to drop.
    pub async fn start_another(&self) -> Self {
        let (log, dir) = (Log::default(), TempDir::new().expect("a directory"));
        let (process, address) = launch(&self.settings, &dir, &log)
            .await
            .unwrap_or_else(|failure| panic!("{failure}"));
        Self {
            process: Some(process),
            address,
            settings: self.settings.clone(),
            log,
            dir,
            _database: None,
        }
    }

    /// Where it keeps its state.
    pub fn store_url(&self) -> &str {
        &self.settings["TIDEMARK_STORE__URL"]
    }

    /// The settings it was started with.
    pub fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    /// Changes a setting for the next start.
    pub fn set(&mut self, name: &str, value: &str) {
        self.settings.insert(name.to_owned(), value.to_string());
    }

    /// SIGKILL, and waits until the process is gone.
    pub async fn kill(&mut self) {
        let mut process = self.process.take().expect("a running server");
        let id = process.id();
        process.start_kill().expect("SIGKILL");
        process.wait().await.expect("an exit status");
        id.into_iter().for_each(clean_up_after);
    }

    /// SIGTERM; gives the exit status and how long it took, at most `limit`.
    pub async fn terminate(&mut self, limit: Duration) -> (ExitStatus, Duration) {
        self.send_sigterm();
        let asked = Instant::now();
        let mut process = self.process.take().expect("a running server");
        let status =
            crate::wait::within("the server to exit after SIGTERM", limit, process.wait()).await;
        (status.expect("an exit status"), asked.elapsed())
    }

    /// SIGTERM without waiting.
    pub fn send_sigterm(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGSTOP: it does nothing, and its connections stay open.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = self
            .process
            .as_ref()
            .and_then(Child::id)
            .expect("a running server");
        let pid = Pid::from_raw(id as i32).expect("a process id");
        kill_process(pid, signal).expect("a signal");
    }

    /// Starts again on the same data; the old process must have ended.
    pub async fn start_again(&mut self) {
        if let Err(failure) = self.try_start_again().await {
            panic!("{failure}");
        }
    }

    /// As [`Self::start_again`], where what it needs may be away, so that it may end again.
    ///
    /// # Errors
    /// When it has not come to listen, with what it wrote.
    pub async fn try_start_again(&mut self) -> Result<(), String> {
        assert!(self.process.is_none(), "the server still runs");
        let (process, address) = launch(&self.settings, &self.dir, &self.log).await?;
        self.process = Some(process);
        self.address = address;
        Ok(())
    }

    /// SIGTERM and a new start on the same data.
    pub async fn restart(&mut self) {
        let (status, _) = self.terminate(Duration::from_secs(15)).await;
        assert!(status.success(), "exit after SIGTERM: {status}");
        self.start_again().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let id = process.id();
            drop(process.start_kill());
            while matches!(process.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(5));
            }
            id.into_iter().for_each(clean_up_after);
        }
        if std::thread::panicking() {
            let lines = self.log.lines();
            eprintln!(
                "--- the server's last lines ---\n{}",
                lines[lines.len().saturating_sub(60)..].join("\n")
            );
        }
    }
}

/// The binary under test; that it is missing is a failure, since a skipped suite proves nothing.
pub fn binary() -> PathBuf {
    let path = std::env::var_os("TIDEMARK_BIN").map_or_else(built_binary, PathBuf::from);
    assert!(
        path.is_file(),
        "the binary under test is not there: {} (build it with `cargo build -p tidemark-interface`, or set TIDEMARK_BIN)",
        path.display()
    );
    path
}

/// Test executables lie in `<target>/<profile>/deps`, the binary one level above.
fn built_binary() -> PathBuf {
    let own = std::env::current_exe().expect("the path of this test");
    let profile = own
        .parent()
        .and_then(std::path::Path::parent)
        .expect("a target directory");
    profile.join("tidemark")
}

/// The repository's root.
pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a workspace")
        .to_owned()
}

/// A command of the binary in an environment without the settings of whoever runs the tests.
pub fn command(settings: &BTreeMap<String, String>) -> Command {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("TIDEMARK_") || text.starts_with("OTEL_") || text == "RUST_LOG" {
            command.env_remove(&name);
        }
    }
    command
        .envs(settings)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

async fn launch(
    settings: &BTreeMap<String, String>,
    dir: &TempDir,
    log: &Log,
) -> Result<(Child, String), String> {
    let before = log.lines().len();
    let mut process = command(settings)
        .current_dir(dir.path())
        .spawn()
        .expect("the binary starts");
    log.follow(process.stdout.take().expect("stdout"));
    log.follow(process.stderr.take().expect("stderr"));
    let started = Instant::now();
    loop {
        if let Some(address) = log.lines()[before..]
            .iter()
            .find_map(|line| address_in(line))
        {
            return Ok((process, address));
        }
        if let Some(status) = process.try_wait().expect("a status") {
            tokio::time::sleep(Duration::from_millis(100)).await;
            return Err(format!(
                "the server ended at start with {status}:\n{}",
                log.text()
            ));
        }
        if started.elapsed() > START_LIMIT {
            return Err(format!(
                "the server did not say where it listens:\n{}",
                log.text()
            ));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn address_in(line: &str) -> Option<String> {
    let (_, after) = line.split_once("listening on http")?;
    let (_, after) = after.split_once("://")?;
    let end = after
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '[' | ']')))
        .unwrap_or(after.len());
    Some(after[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_plain_and_json_lines() {
        for line in [
            "listening on http://127.0.0.1:4711",
            "listening on https://127.0.0.1:4711",
            "2026-01-01T00:00:00Z  INFO tidemark: listening on http://127.0.0.1:4711/ page at /",
            r#"{"message":"listening on http://127.0.0.1:4711"}"#,
        ] {
            assert_eq!(address_in(line).as_deref(), Some("127.0.0.1:4711"));
        }
        assert_eq!(address_in("something else"), None);
    }
}
