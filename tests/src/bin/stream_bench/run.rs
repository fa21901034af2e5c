//! Starts everything, loads the relay and the server in turn, and prints what they took.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use tokio::time::sleep;

use crate::bench::{Asked, Bench, Parts, name_of};
use crate::load::Outcome;
use crate::report::Report;
use crate::verdict::Verdict;
use crate::{process, reference};

/// The least turns of a wave: a few streams take several one after the other.
const LEAST_TURNS: u32 = 50;
const MOST_ROUNDS: u32 = 5;

/// A wave begins over a millisecond a stream, but no longer than this.
const LONGEST_RAMP_MS: u32 = 2_000;

/// What warms a server up: enough to open all of its connections to a database.
const WARM_STREAMS: u32 = 16;
const WARM_ROUNDS: u32 = 4;

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    parts: Parts,
    /// Streams at once, a wave each
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [10, 100, 1_000, 5_000], value_parser = clap::value_parser!(u32).range(1..=20_000))]
    streams: Vec<u32>,
    /// Clients at full speed
    #[arg(long, value_name = "N", default_value_t = 64)]
    clients: u32,
    /// How long full speed lasts; 0 leaves it out, and the waves alone are measured
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    seconds: u64,
    /// Leave the waves out
    #[arg(long)]
    no_waves: bool,
    /// `pgbench`, for the reference of full speed on `PostgreSQL`; it needs a superuser, and a log that is written as JSON
    #[arg(long, value_name = "FILE")]
    pgbench: Option<PathBuf>,
    /// Keep the script of the reference
    #[arg(long, value_name = "FILE", requires = "pgbench")]
    script: Option<PathBuf>,
    #[command(flatten)]
    verdict: Verdict,
}

/// Measures, prints, and judges.
pub(crate) async fn run(args: RunArgs) -> ExitCode {
    process::raise_open_files();
    let mut report = Report::of_this_machine().await;
    println!(
        "{} tokens at {} a second",
        args.parts.tokens, args.parts.rate
    );
    let bench = Bench::start(args.parts.clone()).await;
    let mut run = Run {
        args,
        bench,
        failures: Vec::new(),
    };
    run.measure(&mut report).await;
    run.bench.end().await;
    println!("{}", report.table());
    run.args.verdict.of(&report, &run.failures)
}

struct Run {
    args: RunArgs,
    bench: Bench,
    /// Why something was not measured, or did not end in time.
    failures: Vec<String>,
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

impl Run {
    async fn measure(&mut self, report: &mut Report) {
        let stores = self.args.parts.store.clone();
        let waves = if self.args.no_waves {
            Vec::new()
        } else {
            self.args.streams.clone()
        };
        for streams in waves {
            let relay = self.bench.relay().await;
            let reference = self.wave(&relay, streams).await;
            relay.server.end().await;
            tell(&format!("relay-{streams}"), &reference.outcome);
            for store in &stores {
                let (product, _) = self.bench.product(store, &[]).await;
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
        let relay = self.bench.relay().await;
        self.warm_up(&relay).await;
        let reference = self.full_speed(&relay).await;
        relay.server.end().await;
        tell("relay at full speed", &reference);
        for store in &stores {
            self.measure_whole(report, store, &reference).await;
        }
    }

    /// What concerns a server as a whole: its start on a database that has been used, its memory, its full speed.
    async fn measure_whole(&mut self, report: &mut Report, store: &str, relay: &Outcome) {
        // The first start makes the database where no wave has.
        let (made, _) = self.bench.product(store, &[]).await;
        self.warm_up(&made).await;
        made.server.end().await;
        let (product, start) = self.bench.product(store, &[]).await;
        sleep(Duration::from_secs(1)).await;
        let idle = product.server.resident();
        self.warm_up(&product).await;
        let (before, committed) = (product.server.processor_time(), commits(store).await);
        let outcome = self.full_speed(&product).await;
        let ended = Instant::now();
        self.settle(&product).await;
        let drained = ended.elapsed();
        let used = product.server.processor_time().saturating_sub(before);
        product.server.end().await;
        let row = name_of(store);
        tell(&format!("{row} at full speed"), &outcome);
        for (name, value) in [
            ("start_seconds", start.as_secs_f64()),
            ("idle_mib", idle as f64 / 1_024.0),
            ("errors", (outcome.failed + relay.failed) as f64),
            ("turns_per_second", per_second(&outcome)),
            ("relay_per_second", per_second(relay)),
            ("drained_seconds", drained.as_secs_f64()),
            (
                "turn_cpu",
                used.as_secs_f64() * 1e3 / outcome.turns.max(1) as f64,
            ),
        ] {
            report.add(row, name, value);
        }
        // A connection tells what it committed when it ends, at the latest.
        sleep(Duration::from_millis(500)).await;
        if let (Some(before), Some(after)) = (committed, commits(store).await) {
            let each = (after - before) as f64 / outcome.turns.max(1) as f64;
            report.add(row, "all_transactions", each);
        }
        if store.starts_with("postgres") && self.args.pgbench.is_some() {
            self.refer(report, store, per_second(&outcome)).await;
        }
    }

    /// Measures what `pgbench` reaches with the statements of a turn.
    async fn refer(&mut self, report: &mut Report, store: &str, own: f64) {
        let settings = reference::Settings {
            pgbench: self.args.pgbench.clone().unwrap_or_default(),
            clients: self.args.clients,
            seconds: self.args.seconds,
            tokens: self.args.parts.tokens,
            script: self.args.script.clone(),
        };
        let row = name_of(store);
        match reference::measured(&self.bench, store, &settings).await {
            Ok(reached) => {
                report.add(row, "turn_transactions", reached.transactions as f64);
                report.add(row, "turn_statements", reached.statements as f64);
                report.add(row, "pgbench_per_second", reached.per_second);
                report.add(row, "pgbench_ratio", own / reached.per_second);
            }
            Err(failure) => self.failures.push(format!("the reference: {failure}")),
        }
    }

    async fn settle(&mut self, asked: &Asked) {
        if let Err(failure) = asked.settle().await {
            self.failures.push(failure);
        }
    }

    async fn wave(&mut self, asked: &Asked, streams: u32) -> Wave {
        self.warm_up(asked).await;
        let rounds = (LEAST_TURNS / streams).clamp(1, MOST_ROUNDS);
        let ramp = streams.min(LONGEST_RAMP_MS);
        let load = format!("--streams {streams} --rounds {rounds} --ramp-ms {ramp}");
        let server = &asked.server;
        let (idle, before) = (server.resident(), server.processor_time());
        let (outcome, most) = self.bench.load(asked, &load).await;
        let tokens = (outcome.turns * u64::from(self.args.parts.tokens)).max(1);
        let a_token = || {
            let used = server.processor_time().saturating_sub(before);
            used.as_secs_f64() * 1e6 / tokens as f64
        };
        let cpu = a_token();
        self.settle(asked).await;
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
        let (outcome, _) = self.bench.load(asked, &load).await;
        complain("warming up", &outcome);
        self.settle(asked).await;
        sleep(Duration::from_millis(300)).await;
    }

    async fn full_speed(&mut self, asked: &Asked) -> Outcome {
        let Self { args, .. } = self;
        let load = format!(
            "--streams {} --seconds {} --at-once",
            args.clients, args.seconds
        );
        self.bench.load(asked, &load).await.0
    }
}

/// Transactions that were committed in a store, if it counts them.
async fn commits(store: &str) -> Option<i64> {
    if store.starts_with("postgres") {
        reference::copy::commits(store).await.ok()
    } else {
        None
    }
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
