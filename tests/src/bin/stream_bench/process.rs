//! The processes of the benchmark, and what each has used.

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use tokio::net::{TcpListener, TcpSocket};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// What a server says when it listens, before its address.
const LISTENING: &str = "listening on http://";

/// How long a start and an end may take.
const START_LIMIT: Duration = Duration::from_mins(1);
const END_LIMIT: Duration = Duration::from_secs(20);

/// Clock ticks a second in `/proc`: 100 on every architecture that Linux gives them for (`USER_HZ`).
const TICKS: u32 = 100;

/// Connections that may wait to be accepted; thousands may come before a process gets its turn. The system may allow less.
const WAITING: u32 = 4_096;

/// Listens, and says where, as the server does.
pub(crate) fn listen(address: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(address).expect("an address");
    let listener = socket.listen(WAITING).expect("to listen");
    println!("{LISTENING}{}", listener.local_addr().expect("an address"));
    std::io::stdout().flush().expect("standard output");
    listener
}

/// Lets this process and its children have as many open files as they may.
pub(crate) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised);
}

/// How many processors' time was used in the last second, by whomever.
pub(crate) async fn busy_processors() -> f64 {
    let before = busy_ticks();
    sleep(Duration::from_secs(1)).await;
    (busy_ticks() - before) as f64 / f64::from(TICKS)
}

fn busy_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("/proc/stat");
    let all = stat.lines().next().expect("a line of all processors");
    let ticks = |field: usize| {
        let value = all.split_whitespace().nth(field);
        value.and_then(|v| v.parse::<u64>().ok()).unwrap_or(0)
    };
    // User, nice, system, and interrupts; the others are idle or counted twice.
    [1, 2, 3, 6, 7].map(ticks).iter().sum()
}

/// A program that ends with this one, however that ends.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("TIDEMARK_") || text.starts_with("OTEL_") || text == "RUST_LOG" {
            command.env_remove(&name);
        }
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pid: u32,
    /// Where it listens.
    pub(crate) address: String,
}

impl Server {
    /// Starts it, and waits until it says where it listens; what it writes goes to `log`.
    pub(crate) async fn start(mut command: Command, log: &Path) -> Self {
        let file = File::create(log).expect("a log file");
        let error = file.try_clone().expect("a log file");
        let begun = Instant::now();
        let child = command.stdout(file).stderr(error).spawn();
        let mut child = child.expect("a program that starts");
        let pid = child.id().expect("a process id");
        loop {
            let said = std::fs::read_to_string(log).unwrap_or_default();
            if let Some(address) = address_in(&said) {
                return Self {
                    child,
                    pid,
                    address,
                };
            }
            let ended = child.try_wait().expect("a status");
            assert!(
                ended.is_none() && begun.elapsed() < START_LIMIT,
                "{command:?} did not start:\n{said}"
            );
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// Asks it to end, and waits for that.
    pub(crate) async fn end(mut self) {
        let pid = Pid::from_raw(self.pid as i32).expect("a process id");
        let _ = kill_process(pid, Signal::TERM);
        if timeout(END_LIMIT, self.child.wait()).await.is_err() {
            self.child.kill().await.expect("SIGKILL");
        }
    }

    /// Processor time of all its threads so far, in steps of 10 ms.
    pub(crate) fn processor_time(&self) -> Duration {
        let (_, ticks) = stat(&self.read("stat")).expect("times of a process");
        Duration::from_secs(1) * ticks / TICKS
    }

    /// The same to the nanosecond, for spans in which none of its threads ends.
    pub(crate) fn precise_time(&self) -> Duration {
        family_time(self.pid)
    }

    /// Memory that it has now, in KiB.
    pub(crate) fn resident(&self) -> u64 {
        let status = self.read("status");
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
        value.and_then(|v| v.parse().ok()).unwrap_or(0)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.pid))
            .expect("the server runs no more")
    }
}

/// The parent, and user and system time in ticks, of a line of `/proc/PID/stat`.
fn stat(line: &str) -> Option<(u32, u32)> {
    // The name in parentheses may hold blanks. Behind it are state and parent, and the times as 12th and 13th.
    let (_, fields) = line.rsplit_once(')')?;
    let field = |at: usize| fields.split_whitespace().nth(at)?.parse::<u32>().ok();
    Some((field(1)?, field(11)? + field(12)?))
}

/// Processor time of a process and of its children, to the nanosecond, for spans in which none of their threads ends.
pub(crate) fn family_time(pid: u32) -> Duration {
    let mut time = threads_time(pid);
    for child in numbers_in("/proc") {
        let line = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        if stat(&line).is_some_and(|(parent, _)| parent == pid) {
            time += threads_time(child);
        }
    }
    time
}

fn threads_time(pid: u32) -> Duration {
    let tasks = format!("/proc/{pid}/task");
    let times = numbers_in(&tasks).into_iter().map(|thread| {
        // The first number is the time on a processor.
        let line = std::fs::read_to_string(format!("{tasks}/{thread}/schedstat"));
        let line = line.unwrap_or_default();
        let first = line.split(' ').next().and_then(|n| n.parse().ok());
        Duration::from_nanos(first.unwrap_or_default())
    });
    times.sum()
}

/// The names in a folder that are numbers.
fn numbers_in(folder: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn address_in(said: &str) -> Option<String> {
    let (_, after) = said.split_once(LISTENING)?;
    // Without what follows it, it may be half of it.
    let end = after.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ':')))?;
    Some(after[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_a_name_with_blanks_and_brackets() {
        let line = "7 (a (b) c) S 3 7 7 0 -1 4194304 1 2 3 4 150 50 1000 20 20 0 1 0 5";
        assert_eq!(stat(line), Some((3, 200)));
        assert_eq!(stat("7 (a"), None);
    }

    #[test]
    fn time_of_this_process_is_found_and_grows() {
        let pid = std::process::id();
        let before = family_time(pid);
        assert!(before > Duration::ZERO);
        // Ends only if it grows.
        while family_time(pid) <= before {}
    }

    #[test]
    fn an_address_is_taken_when_it_is_whole() {
        assert_eq!(
            address_in("x\nlistening on http://127.0.0.1:4711\n").as_deref(),
            Some("127.0.0.1:4711")
        );
        assert_eq!(address_in("listening on http://127.0.0.1:47"), None);
        assert_eq!(address_in("starting"), None);
    }
}
