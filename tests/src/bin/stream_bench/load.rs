//! Many streams at once, and what their readers saw.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::client::{self, Seen};
use crate::model::AT_ONCE;

/// The most kinds of failures that are told.
const TOLD: usize = 5;

#[derive(Clone, Debug, Args)]
pub(crate) struct LoadArgs {
    /// The server's address and port
    #[arg(long, value_name = "ADDRESS")]
    address: String,
    /// Streams at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    streams: u32,
    /// Turns of each stream, one after the other
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u32,
    /// Instead, each stream asks again for so long
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Tokens of an answer
    #[arg(long, value_name = "N")]
    tokens: usize,
    /// Over how long the streams begin
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    ramp_ms: u32,
    /// Ask the model for answers at once
    #[arg(long)]
    at_once: bool,
    /// How long a turn may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    limit: u64,
    /// Streams that are of one user
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    per_user: u32,
    /// Tells the users and questions of this load from those of others
    #[arg(long, value_name = "TEXT")]
    mark: String,
}

/// What all readers saw.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Turns that were all they should be.
    pub(crate) turns: u64,
    /// Turns that were not.
    pub(crate) failed: u64,
    /// What was wrong with the first of them.
    pub(crate) failures: Vec<String>,
    /// From the first question to the last end.
    pub(crate) seconds: f64,
    /// Delay of the first token beyond the model's own.
    pub(crate) first: Spread,
    /// Delay of each token between the model and its reader.
    pub(crate) token: Spread,
}

/// Percentiles in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Of values in nanoseconds; all are 0 where there are none.
    pub(crate) fn of(mut nanoseconds: Vec<u64>) -> Self {
        nanoseconds.sort_unstable();
        let at = |share: f64| {
            let rank = (share * nanoseconds.len() as f64).ceil() as usize;
            let value = nanoseconds.get(rank.max(1) - 1).copied();
            value.unwrap_or_default() as f64 / 1e6
        };
        Self {
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            most: at(1.0),
        }
    }
}

/// Runs the load, and prints its outcome.
pub(crate) async fn run(args: LoadArgs) {
    let outcome = loaded(&args).await;
    println!("{}", serde_json::to_string(&outcome).expect("JSON"));
}

async fn loaded(args: &LoadArgs) -> Outcome {
    let begun = Instant::now();
    let mut streams = JoinSet::new();
    for number in 0..args.streams {
        let args = args.clone();
        streams.spawn(async move { one_after_the_other(&args, number, begun).await });
    }
    let (mut outcome, mut firsts, mut tokens) = (Outcome::default(), Vec::new(), Vec::new());
    while let Some(turns) = streams.join_next().await {
        for turn in turns.expect("a stream's task") {
            match turn {
                Ok(seen) => {
                    outcome.turns += 1;
                    firsts.push(seen.first);
                    tokens.extend(seen.relayed);
                }
                Err(failure) => {
                    outcome.failed += 1;
                    if outcome.failures.len() < TOLD && !outcome.failures.contains(&failure) {
                        outcome.failures.push(failure);
                    }
                }
            }
        }
    }
    outcome.seconds = begun.elapsed().as_secs_f64();
    outcome.first = Spread::of(firsts);
    outcome.token = Spread::of(tokens);
    outcome
}

async fn one_after_the_other(
    args: &LoadArgs,
    number: u32,
    begun: Instant,
) -> Vec<Result<Seen, String>> {
    let ramp = Duration::from_millis(args.ramp_ms.into());
    sleep(ramp * number / args.streams).await;
    let user = format!("bench-{}-{}", args.mark, number / args.per_user);
    let more = |round: u32| match args.seconds {
        Some(seconds) => begun.elapsed() < Duration::from_secs(seconds),
        None => round < args.rounds,
    };
    let mut turns = Vec::new();
    while more(turns.len() as u32) {
        let path = path(args, number, turns.len());
        let turn = client::turn(&args.address, &path, &user, args.tokens);
        let turn = timeout(Duration::from_secs(args.limit), turn).await;
        let turn = turn.unwrap_or_else(|_| Err(format!("no end within {} s", args.limit)));
        if turn.is_err() {
            // A server that refuses is not to be asked again at once for the rest of the time.
            sleep(Duration::from_millis(100)).await;
        }
        turns.push(turn);
    }
    turns
}

/// Each turn is of a session of its own, and is named as a page names it that may have to ask again.
fn path(args: &LoadArgs, number: u32, round: usize) -> String {
    let mark = &args.mark;
    let at_once = if args.at_once { AT_ONCE } else { "" };
    let query =
        format!("How far is plot {number} of the garden plan, and who waters it? {at_once}");
    let query = tidemark_tests::paths::encoded(&query);
    format!("/v1/chat/stream?query={query}&request_id={mark}-{number}-{round}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let spread = Spread::of((1..=200).rev().map(|n| n * 1_000_000).collect());
        assert_eq!(
            spread,
            Spread {
                p50: 100.0,
                p95: 190.0,
                p99: 198.0,
                most: 200.0
            }
        );
        assert_eq!(Spread::of(Vec::new()), Spread::default());
    }
}
