//! Single turns, one after the other: what memories and a long session add to the first token, and to what a turn costs.

mod asked;
mod commits;
mod stored;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use self::asked::{Measured, Question, Turns};
use self::commits::Commits;
use self::stored::Memories;
use crate::bench::{Asked, Bench, Parts, name_of};
use crate::load::Spread;
use crate::process;
use crate::report::Report;
use crate::texts;
use crate::verdict::Verdict;

/// Users whose turns are measured where many have memories, and turns of each before those that count.
const ASKING: u32 = 20;
const WARM_TURNS: u32 = 5;

/// Opens all of the server's connections, and has each prepare what a turn asks.
const WARM_LOAD: &str = "--streams 16 --rounds 8 --at-once";

/// Sessions that nobody goes on with would be consolidated after five minutes, in the middle of what is measured.
const ONLY_WHEN_LONG: (&str, &str) = ("TIDEMARK_LEARNING__INTERVAL_SECONDS", "86400");

/// How long what was stored may take to be embedded, indexed and consolidated.
const SETTLE_LIMIT: Duration = Duration::from_hours(3);

#[derive(Clone, Debug, Args)]
pub(crate) struct TurnsArgs {
    #[command(flatten)]
    parts: Parts,
    /// Memories of a user, a row each; `1000x50` is fifty users of a thousand each. None when nothing follows
    #[arg(long, value_name = "N,…", num_args = 0.., value_delimiter = ',', default_values = ["1000", "10000"])]
    memories: Vec<Memories>,
    /// Rows of up to so many memories in all have vectors beside words, from a scripted embedder
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    embedded: u64,
    /// Messages that a session has before its turns, a row each. None when nothing follows
    #[arg(long, value_name = "N,…", num_args = 0.., value_delimiter = ',', default_values_t = [10, 100, 1_000, 10_000], value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    messages: Vec<u32>,
    /// Turns of each row
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    turns: u32,
    #[command(flatten)]
    verdict: Verdict,
}

/// Measures, prints, and judges.
pub(crate) async fn run(args: TurnsArgs) -> ExitCode {
    process::raise_open_files();
    let mut report = Report::of_this_machine().await;
    let mut bench = Bench::start(args.parts.clone()).await;
    let mut failures = Vec::new();
    for store in &args.parts.store {
        let measured = measure(&args, &mut bench, &mut report, store).await;
        failures.extend(measured.err());
    }
    bench.end().await;
    println!("{}", report.table());
    args.verdict.of(&report, &failures)
}

async fn measure(
    args: &TurnsArgs,
    bench: &mut Bench,
    report: &mut Report,
    store: &str,
) -> Result<(), String> {
    let commits = Commits::on(store, bench.directory()).await;
    let commits = commits.map_err(|error| format!("{store}: {error}"))?;
    let mut turns = Turns::new(args.parts.tokens, commits).await;
    let relay = bench.relay().await;
    let questions =
        (0..args.turns).map(|turn| Question::new("bench-relay", &texts::question(0, turn)));
    let relayed = turns.ask(&relay, questions.collect()).await?;
    relay.server.end().await;
    let yard = Yard {
        args,
        store,
        relay: relayed.first,
    };

    // What has no vectors comes last: else they would be made while others are measured.
    let (with, without): (Vec<Memories>, Vec<Memories>) = args
        .memories
        .iter()
        .partition(|memories| memories.all() <= args.embedded);
    for memories in with {
        yard.memories(bench, &mut turns, report, memories, true)
            .await?;
    }
    if !args.messages.is_empty() {
        let (product, _) = bench.product(store, &[ONLY_WHEN_LONG]).await;
        yard.warm_up(bench, &product).await?;
        for messages in &args.messages {
            yard.session(&product, &mut turns, report, *messages)
                .await?;
        }
        product.server.end().await;
    }
    for memories in without {
        yard.memories(bench, &mut turns, report, memories, false)
            .await?;
    }
    let ended = turns.end().await;
    ended.map_err(|error| format!("{store}: {error}"))
}

/// What all rows of a store have in common.
struct Yard<'a> {
    args: &'a TurnsArgs,
    store: &'a str,
    /// What the first token takes without any server.
    relay: Spread,
}

impl Yard<'_> {
    async fn memories(
        &self,
        bench: &mut Bench,
        turns: &mut Turns,
        report: &mut Report,
        memories: Memories,
        embedded: bool,
    ) -> Result<(), String> {
        let model = bench.model_url();
        let mut settings = vec![ONLY_WHEN_LONG];
        if embedded {
            settings.extend([
                ("TIDEMARK_EMBEDDER__KIND", "openai"),
                ("TIDEMARK_EMBEDDER__NAME", "scripted"),
                ("TIDEMARK_EMBEDDER__BASE_URL", model.as_str()),
            ]);
        }
        let (loading, _) = bench.product(self.store, &settings).await;
        memories.store(&loading.server).await?;
        loading.settle_within(SETTLE_LIMIT).await?;
        loading.server.end().await;

        // A fresh process has nothing of them at hand.
        let (product, _) = bench.product(self.store, &settings).await;
        self.warm_up(bench, &product).await?;
        let users = memories.users.min(ASKING);
        let question = |turn: u32| {
            let (user, number) = (turn % users, turn * 7 % memories.each.max(1));
            Question::new(&memories.user(user), &texts::question(user, number))
        };
        let first = turns
            .ask(&product, (0..users).map(question).collect())
            .await?;
        let more = (users..users * WARM_TURNS).map(question).collect();
        turns.ask(&product, more).await?;
        let questions = (0..self.args.turns).map(|turn| question(turn + 1_000));
        let measured = turns.ask(&product, questions.collect()).await?;
        product.server.end().await;
        let kind = if embedded { "vectors" } else { "words" };
        let row = format!("{}-{kind}-{}", name_of(self.store), memories.name());
        self.add(report, &row, &measured);
        report.add(&row, "cold_p50", first.first.p50);
        Ok(())
    }

    async fn session(
        &self,
        product: &Asked,
        turns: &mut Turns,
        report: &mut Report,
        messages: u32,
    ) -> Result<(), String> {
        // No session is to grow by more than a few parts of its length.
        let each = (messages / 10).clamp(1, self.args.turns);
        let user = format!("bench-session-{messages}");
        let mut questions = Vec::new();
        while questions.len() < self.args.turns as usize {
            let session = stored::session(&product.server, &user, messages).await?;
            let more = (0..each)
                .map(|turn| Question::new(&user, &texts::question(0, turn)).in_session(&session));
            questions.extend(more);
        }
        questions.truncate(self.args.turns as usize);
        product.settle_within(SETTLE_LIMIT).await?;
        let warm = (0..WARM_TURNS).map(|turn| Question::new(&user, &texts::question(0, turn)));
        turns.ask(product, warm.collect()).await?;
        let measured = turns.ask(product, questions).await?;
        let row = format!("{}-session-{messages}", name_of(self.store));
        self.add(report, &row, &measured);
        Ok(())
    }

    async fn warm_up(&self, bench: &mut Bench, product: &Asked) -> Result<(), String> {
        bench.load(product, WARM_LOAD).await;
        product.settle().await
    }

    fn add(&self, report: &mut Report, row: &str, measured: &Measured) {
        let Measured { first, commit, .. } = measured;
        let beyond = |first: f64| first - self.relay.p50 - 2.0 * commit.p50;
        println!(
            "{row}: first token {:.1} ms beyond the model's at p50, {:.1} ms at p99",
            first.p50, first.p99
        );
        for (name, value) in [
            ("errors", measured.failed as f64),
            ("relay_first_p50", self.relay.p50),
            ("relay_first_p99", self.relay.p99),
            ("first_p50", first.p50),
            ("first_p99", first.p99),
            ("commit_p50", commit.p50),
            ("commit_p99", commit.p99),
            ("beyond_p50", beyond(first.p50)),
            ("beyond_p99", beyond(first.p99)),
            ("recalled", measured.recalled),
            ("degraded", measured.degraded as f64),
            ("server_cpu", measured.server_cpu),
        ] {
            report.add(row, name, value);
        }
        if let Some(database) = measured.database_cpu {
            report.add(row, "database_cpu", database);
        }
    }
}
