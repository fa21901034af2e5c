//! Starts everything, loads the relay and the server in turn, and prints what they took.

use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::api::{is_ready, settle};
use crate::load::Outcome;
use crate::process::{self, Server};
use crate::report::Report;
use crate::requirement::Requirement;

/// The least turns of a wave: a few streams take several one after the other.
const LEAST_TURNS: u32 = 50;
const MOST_ROUNDS: u32 = 5;

/// A wave begins over a millisecond a stream, but no longer than this.
const LONGEST_RAMP_MS: u32 = 2_000;

/// What warms a server up: enough to open all of its connections to a database.
const WARM_STREAMS: u32 = 16;
const WARM_ROUNDS: u32 = 4;

/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// The server's binary
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// `sqlite`, a file that is removed in the end, or the address of an empty `PostgreSQL` database; may be named several times
    #[arg(long, value_name = "STORE", default_value = "sqlite")]
    store: Vec<String>,
    /// Streams at once, a wave each
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [10, 100, 1_000, 5_000], value_parser = clap::value_parser!(u32).range(1..=20_000))]
    streams: Vec<u32>,
    /// Tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 50)]
    tokens: u16,
    /// Tokens a second of a stream
    #[arg(long, value_name = "N", default_value_t = 20.0)]
    rate: f64,
    /// How long the model's first token takes
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 200)]
    delay_ms: u64,
    /// Streams that are of one user; each is a session of its own
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    per_user: u32,
    /// Clients at full speed
    #[arg(long, value_name = "N", default_value_t = 64)]
    clients: u32,
    /// How long full speed lasts
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    seconds: u64,
    /// Write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Fail unless it holds, as `postgres-1000/cpu_ratio<=3` (at most) or `postgres/turns_per_second=300` (at least); may be repeated
    #[arg(long, value_name = "ROW/NAME=VALUE")]
    require: Vec<Requirement>,
}

/// Measures, prints, and judges.
pub(crate) async fn run(args: RunArgs) -> ExitCode {
    process::raise_open_files();
    let busy = process::busy_processors().await;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "{} tokens at {} a second; before the run {busy:.1} of {processors} processors were busy",
        args.tokens, args.rate
    );
    let mut bench = Bench::start(args.clone()).await;
    let mut report = Report::default();
    report.add("machine", "busy_before", busy);
    bench.measure(&mut report).await;
    bench.model.end().await;
    println!("{}", report.table());
    if let Some(file) = &args.json {
        let json = serde_json::to_string_pretty(&report.json()).expect("JSON");
        std::fs::write(file, json + "\n").expect("to write the figures");
    }
    let mut met = true;
    for requirement in &args.require {
        let (holds, line) = requirement.judge(&report);
        met &= holds;
        println!("{line}");
    }
    if met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

struct Bench {
    args: RunArgs,
    dir: TempDir,
    model: Server,
    loads: u32,
}

/// What a wave took.
struct Wave {
    outcome: Outcome,
    /// Microseconds of processor time a token, until the last stream had ended.
    cpu: f64,
    /// The same until the derived work of the turns was done, too.
    cpu_derived: f64,
    /// KiB a stream beyond what the idle process had.
    kib: f64,
}

/// Who is asked.
struct Asked {
    server: Server,
    is_product: bool,
}

impl Bench {
    async fn start(args: RunArgs) -> Self {
        let dir = TempDir::new().expect("a directory");
        let mut model = process::command(&this_program());
        model
            .args(["model", "--tokens", &args.tokens.to_string()])
            .args(["--rate", &args.rate.to_string()])
            .args(["--delay-ms", &args.delay_ms.to_string()]);
        let model = Server::start(model, &dir.path().join("model.log")).await;
        Self {
            args,
            dir,
            model,
            loads: 0,
        }
    }

    async fn measure(&mut self, report: &mut Report) {
        let stores = self.args.store.clone();
        for streams in self.args.streams.clone() {
            let relay = self.relay().await;
            let reference = self.wave(&relay, streams).await;
            relay.server.end().await;
            tell(&format!("relay-{streams}"), &reference.outcome);
            for store in &stores {
                let (product, _) = self.product(store).await;
                let wave = self.wave(&product, streams).await;
                product.server.end().await;
                let row = format!("{}-{streams}", name_of(store));
                tell(&row, &wave.outcome);
                add_wave(report, &row, &reference, &wave);
            }
        }
        if self.args.seconds == 0 {
            return;
        }
        let relay = self.relay().await;
        self.warm_up(&relay).await;
        let reference = self.full_speed(&relay).await;
        relay.server.end().await;
        tell("relay at full speed", &reference);
        for store in &stores {
            self.measure_whole(report, store, &reference).await;
        }
    }

    /// What concerns a server as a whole: its start on a database that has been used, its memory, its full speed.
    async fn measure_whole(&mut self, report: &mut Report, store: &str, reference: &Outcome) {
        // The first start makes the database where no wave has.
        let (made, _) = self.product(store).await;
        self.warm_up(&made).await;
        made.server.end().await;
        let (product, start) = self.product(store).await;
        sleep(Duration::from_secs(1)).await;
        let idle = product.server.resident();
        self.warm_up(&product).await;
        let outcome = self.full_speed(&product).await;
        let ended = Instant::now();
        settle(&product.server).await;
        let drained = ended.elapsed();
        product.server.end().await;
        let row = name_of(store);
        tell(&format!("{row} at full speed"), &outcome);
        report.add(row, "start_seconds", start.as_secs_f64());
        report.add(row, "idle_mib", idle as f64 / 1_024.0);
        report.add(row, "errors", (outcome.failed + reference.failed) as f64);
        report.add(row, "turns_per_second", per_second(&outcome));
        report.add(row, "relay_per_second", per_second(reference));
        report.add(row, "drained_seconds", drained.as_secs_f64());
    }

    async fn relay(&self) -> Asked {
        let mut relay = process::command(&this_program());
        relay.args(["relay", "--model", &self.model_url()]);
        Asked {
            server: Server::start(relay, &self.dir.path().join("relay.log")).await,
            is_product: false,
        }
    }

    /// A fresh process on the store, and how long it took until it was ready.
    async fn product(&self, store: &str) -> (Asked, Duration) {
        let file = self.dir.path().join("tidemark.db");
        let url = match store {
            "sqlite" => format!("sqlite://{}", file.display()),
            url => url.to_owned(),
        };
        let mut command = process::command(&self.args.server);
        command
            .arg("serve")
            .env("TIDEMARK_LISTEN", "127.0.0.1:0")
            .env("TIDEMARK_STORE__URL", url)
            .env("TIDEMARK_MODEL__BASE_URL", self.model_url())
            .env("TIDEMARK_MODEL__NAME", "scripted")
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

    fn model_url(&self) -> String {
        format!("http://{}/v1", self.model.address)
    }

    async fn wave(&mut self, asked: &Asked, streams: u32) -> Wave {
        self.warm_up(asked).await;
        let rounds = (LEAST_TURNS / streams).clamp(1, MOST_ROUNDS);
        let ramp = streams.min(LONGEST_RAMP_MS);
        let load = format!("--streams {streams} --rounds {rounds} --ramp-ms {ramp}");
        let server = &asked.server;
        let (idle, before) = (server.resident(), server.processor_time());
        let (outcome, most) = self.load(asked, &load).await;
        let tokens = (outcome.turns * u64::from(self.args.tokens)).max(1);
        let a_token = || {
            let used = server.processor_time().saturating_sub(before);
            used.as_secs_f64() * 1e6 / tokens as f64
        };
        let cpu = a_token();
        if asked.is_product {
            settle(server).await;
        }
        Wave {
            cpu,
            cpu_derived: a_token(),
            kib: most.saturating_sub(idle) as f64 / f64::from(streams),
            outcome,
        }
    }

    /// Opens what a server opens once: connections, caches, threads.
    async fn warm_up(&mut self, asked: &Asked) {
        let most = self.args.streams.iter().copied().max();
        let streams = most.unwrap_or(0).max(self.args.clients).min(WARM_STREAMS);
        let load = format!("--streams {streams} --rounds {WARM_ROUNDS} --at-once");
        let (outcome, _) = self.load(asked, &load).await;
        complain("warming up", &outcome);
        if asked.is_product {
            settle(&asked.server).await;
        }
        sleep(Duration::from_millis(300)).await;
    }

    async fn full_speed(&mut self, asked: &Asked) -> Outcome {
        let Self { args, .. } = self;
        let load = format!(
            "--streams {} --seconds {} --at-once",
            args.clients, args.seconds
        );
        self.load(asked, &load).await.0
    }

    /// Runs a load, and gives what it saw and the most memory that the server had meanwhile, in KiB.
    async fn load(&mut self, asked: &Asked, load: &str) -> (Outcome, u64) {
        self.loads += 1;
        let mark = format!("{}-{}", std::process::id(), self.loads);
        let mut command = process::command(&this_program());
        command
            .args(["load", "--address", &asked.server.address, "--mark", &mark])
            .args(["--tokens", &self.args.tokens.to_string()])
            .args(["--per-user", &self.args.per_user.to_string()])
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

fn name_of(store: &str) -> &str {
    store.split_once("://").map_or(store, |(scheme, _)| scheme)
}

fn per_second(outcome: &Outcome) -> f64 {
    outcome.turns as f64 / outcome.seconds
}

/// A line as soon as it is measured; the table comes in the end.
fn tell(what: &str, outcome: &Outcome) {
    println!(
        "{what}: {} turns in {:.1} s, first token {:.1} ms beyond the model's at p99",
        outcome.turns, outcome.seconds, outcome.first.p99
    );
    complain(what, outcome);
}

fn complain(what: &str, outcome: &Outcome) {
    if outcome.failed > 0 {
        println!(
            "{what}: {} of {} turns failed: {}",
            outcome.failed,
            outcome.failed + outcome.turns,
            outcome.failures.join("; ")
        );
    }
}

fn add_wave(report: &mut Report, row: &str, relay: &Wave, own: &Wave) {
    let failed = relay.outcome.failed + own.outcome.failed;
    for (name, value) in [
        ("turns", own.outcome.turns as f64),
        ("errors", failed as f64),
        ("relay_first_p50", relay.outcome.first.p50),
        ("relay_first_p99", relay.outcome.first.p99),
        ("first_p50", own.outcome.first.p50),
        ("first_p95", own.outcome.first.p95),
        ("first_p99", own.outcome.first.p99),
        ("first_most", own.outcome.first.most),
        ("added_p50", own.outcome.first.p50 - relay.outcome.first.p50),
        ("added_p99", own.outcome.first.p99 - relay.outcome.first.p99),
        ("relay_token_p99", relay.outcome.token.p99),
        ("token_p50", own.outcome.token.p50),
        ("token_p95", own.outcome.token.p95),
        ("token_p99", own.outcome.token.p99),
        ("relay_cpu", relay.cpu),
        ("cpu", own.cpu),
        ("cpu_ratio", own.cpu / relay.cpu),
        ("cpu_derived", own.cpu_derived),
        ("relay_kib", relay.kib),
        ("kib", own.kib),
        ("memory_ratio", own.kib / relay.kib),
    ] {
        report.add(row, name, value);
    }
}
