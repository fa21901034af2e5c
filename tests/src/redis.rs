//! A Redis of a test's own, which the test may kill and start again, and a look at everything that is in it.

use std::fmt::Write as _;
use std::process::Stdio;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, Value};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::ports::free_port;
use crate::wait;

/// How long Redis may take to answer after its start.
const START_LIMIT: Duration = Duration::from_mins(1);

/// A server that keeps nothing on a disk; killed when dropped.
#[derive(Debug)]
pub struct Redis {
    port: u16,
    process: Option<Child>,
    dir: TempDir,
}

impl Redis {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        let mut redis = Self {
            port: free_port(),
            process: None,
            dir: TempDir::new().expect("a directory"),
        };
        redis.start_again().await;
        redis
    }

    /// The address for `TIDEMARK_EVENTS__REDIS_URL`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its port of 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// SIGKILL: what it held is gone.
    pub async fn kill(&mut self) {
        let mut process = self.process.take().expect("a running Redis");
        process.start_kill().expect("SIGKILL");
        process.wait().await.expect("an exit status");
    }

    /// SIGSTOP: it holds everything and answers nobody.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = self.process.as_ref().and_then(Child::id);
        let pid = Pid::from_raw(id.expect("a running Redis") as i32).expect("a process id");
        kill_process(pid, signal).expect("a signal");
    }

    /// Starts it at the same address, empty.
    pub async fn start_again(&mut self) {
        let binary =
            std::env::var_os("TIDEMARK_TEST_REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
        let port = self.port.to_string();
        let process = Command::new(&binary)
            .args(["--port", &port, "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{}: {error}; scripts/test installs it", binary.display())
            });
        self.process = Some(process);
        let client = Client::open(self.url()).expect("an address");
        wait::until("Redis to answer", START_LIMIT, || async {
            let mut connection = client.get_multiplexed_async_connection().await.ok()?;
            let pong: redis::RedisResult<String> =
                redis::cmd("PING").query_async(&mut connection).await;
            pong.ok()
        })
        .await;
    }

    /// A connection of the test's own.
    pub async fn connection(&self) -> MultiplexedConnection {
        Client::open(self.url())
            .expect("an address")
            .get_multiplexed_async_connection()
            .await
            .expect("Redis of the test answers")
    }

    /// Every key.
    pub async fn keys(&self) -> Vec<String> {
        let mut connection = self.connection().await;
        redis::cmd("KEYS")
            .arg("*")
            .query_async(&mut connection)
            .await
            .expect("the keys")
    }

    /// The keys of turns, with the number of their entries.
    pub async fn turns(&self) -> Vec<(String, usize)> {
        let mut connection = self.connection().await;
        let mut turns = Vec::new();
        for key in self.keys().await {
            if key.contains("turn:") {
                let length = redis::cmd("XLEN")
                    .arg(&key)
                    .query_async(&mut connection)
                    .await
                    .expect("a length");
                turns.push((key, length));
            }
        }
        turns
    }

    /// Milliseconds that a key still has; below 0 for one that has no end.
    pub async fn time_left(&self, key: &str) -> i64 {
        let mut connection = self.connection().await;
        redis::cmd("PTTL")
            .arg(key)
            .query_async(&mut connection)
            .await
            .expect("a time")
    }

    /// Everything that is stored, names and values, as Redis itself would dump it and as it can be read.
    pub async fn everything(&self) -> String {
        let mut connection = self.connection().await;
        let mut all = String::new();
        for key in self.keys().await {
            let dump: Value = redis::cmd("DUMP")
                .arg(&key)
                .query_async(&mut connection)
                .await
                .expect("a dump");
            if let Value::BulkString(bytes) = dump {
                all.push_str(&String::from_utf8_lossy(&bytes));
            }
            let entries = self.entries(&key).await;
            writeln!(all, "{key} {entries}").expect("a text grows");
        }
        all
    }

    /// What a stream holds, as it can be read.
    pub async fn entries(&self, key: &str) -> String {
        let entries: Value = redis::cmd("XRANGE")
            .arg(key)
            .arg("-")
            .arg("+")
            .query_async(&mut self.connection().await)
            .await
            .expect("entries");
        format!("{entries:?}")
    }

    /// Tells the server something, as its administrator.
    pub async fn administer(&self, command: &[&str]) {
        let mut told = redis::Cmd::new();
        told.arg(command);
        let done: redis::RedisResult<()> = told.query_async(&mut self.connection().await).await;
        done.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    }

    /// Removes a key, as if its time were over.
    pub async fn expire(&self, key: &str) {
        let mut connection = self.connection().await;
        let removed: i64 = redis::cmd("DEL")
            .arg(key)
            .query_async(&mut connection)
            .await
            .expect("an answer");
        assert_eq!(removed, 1, "{key} is there");
    }
}
