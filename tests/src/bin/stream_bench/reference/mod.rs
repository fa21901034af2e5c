//! What `pgbench` alone reaches with the statements of a turn, on the same `PostgreSQL`: the reference of full speed.
//!
//! The statements are no list that somebody keeps: turns are recorded from the server's own log, in a copy of the database, and `pgbench` asks
//! the same statements in the same transactions, prepared as the server prepares them, with ids and owners of their own. Work that is derived
//! from turns is not among them; it is put off while a turn is recorded. What was recorded and what is asked again is compared by the rows that
//! each turn leaves behind.

pub(crate) mod copy;
mod log;
mod pgbench;
mod script;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::sleep;

use self::copy::Copy;
use self::pgbench::Load;
use self::script::{Owners, Recorded};
use self::turn::Turn;
use crate::bench::{Asked, Bench};
use crate::client;
use crate::model::AT_ONCE;

/// Turns before those that are recorded, and these.
const WARM_TURNS: u32 = 4;
const TURNS: u32 = 9;

/// How long whatever belongs to a turn may go on behind its end, and a change of settings take.
const TAIL: Duration = Duration::from_millis(300);

/// Whose turns are recorded: a name that is found in no other text.
const USER: &str = "bench-of-recorded-turns";

/// Turns that are asked again are of so many owners, so that few wait for each other.
const OWNERS: Owners = Owners {
    first: 7_200_000_000,
    count: 10_000,
};

/// `pgbench` warms up for so long: each of its connections prepares and plans every statement.
const WARM_SECONDS: u64 = 10;

/// Rows a turn may differ by so much from those recorded.
const ROWS_APART: f64 = 0.05;

/// Why there is no figure.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Where `pgbench` is, and how it loads.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) pgbench: PathBuf,
    pub(crate) clients: u32,
    pub(crate) seconds: u64,
    pub(crate) tokens: u16,
    /// Where the script is kept, if it is.
    pub(crate) script: Option<PathBuf>,
}

/// What was reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    /// Turns a second.
    pub(crate) per_second: f64,
    /// Transactions of a turn.
    pub(crate) transactions: usize,
    /// Its statements, those that begin and end transactions among them.
    pub(crate) statements: usize,
}

/// A recorded turn, and the rows that it left behind.
struct Record {
    turn: Turn,
    rows: BTreeMap<String, f64>,
}

/// Records turns in a copy of the store that nobody is connected to, and asks them again.
///
/// # Errors
/// Says why there is no figure: the server's log cannot be read, or what was asked again was not what was recorded.
pub(crate) async fn measured(
    bench: &Bench,
    store: &str,
    settings: &Settings,
) -> Result<Reference, Failure> {
    let mut copy = Copy::of(store).await?;
    let outcome = measured_in(bench, &mut copy, settings).await;
    copy.remove().await?;
    outcome
}

async fn measured_in(
    bench: &Bench,
    copy: &mut Copy,
    settings: &Settings,
) -> Result<Reference, Failure> {
    copy.prepare().await?;
    let (product, _) = bench.product(&copy.url, &[]).await;
    let records = recorded(copy, &product, settings.tokens).await;
    let stopped = copy.log_statements(false).await;
    product.server.end().await;
    let records = records?;
    stopped?;

    let turns: Vec<Turn> = records.iter().map(|r| r.turn.clone()).collect();
    let alike = turn::alike(&turns);
    let Some(at) = alike.and_then(|places| places.last().copied()) else {
        let statements: Vec<usize> = turns.iter().map(Turn::statements).collect();
        return Err(format!(
            "no two recorded turns ask alike; they have {statements:?} statements"
        )
        .into());
    };
    let Record { turn, rows } = &records[at];
    let owner = copy.owner(USER).await?;
    let others = turns.iter().enumerate().filter(|(other, _)| *other != at);
    let others: BTreeSet<String> = others.flat_map(|(_, turn)| turn.ids()).collect();
    let statements = turn.transactions.iter().flatten();
    let with_parameters: Vec<&str> = statements
        .filter(|statement| !statement.parameters.is_empty())
        .map(|statement| statement.sql.as_str())
        .collect();
    let types = copy.types(&with_parameters).await?;
    let number = owner.to_string();
    let whose = Recorded {
        owner: &number,
        user: USER,
    };
    let script = script::written(turn, &others, &types, whose, OWNERS);
    let file = bench.directory().join("turn.sql");
    for file in std::iter::once(&file).chain(&settings.script) {
        std::fs::write(file, &script.text).map_err(|e| format!("{}: {e}", file.display()))?;
    }

    copy.multiply(owner, OWNERS).await?;
    let database = copy.url.clone();
    let load = Load {
        pgbench: &settings.pgbench,
        database: &database,
        script: &file,
        constants: &script.constants,
        clients: settings.clients,
    };
    let before = copy.rows().await?;
    let reached = load.run(WARM_SECONDS, settings.seconds).await?;
    let after = copy.rows().await?;
    compared(&each(&before, &after, reached.turns), rows)?;
    Ok(Reference {
        per_second: reached.per_second,
        transactions: turn.transactions.len(),
        statements: turn.statements(),
    })
}

/// Turns of a user who has been here before, one after the other, each with its derived work done before the next.
async fn recorded(copy: &mut Copy, product: &Asked, tokens: u16) -> Result<Vec<Record>, Failure> {
    for _ in 0..WARM_TURNS {
        ask(product, &new_id(), tokens).await?;
        product.settle().await?;
    }
    let owner = copy.owner(USER).await?.to_string();
    copy.log_statements(true).await?;
    let mut records = Vec::new();
    for _ in 0..TURNS {
        copy.put_off(true).await?;
        let before = copy.rows().await?;
        sleep(TAIL).await;
        let from = copy.log_end().await?;
        let from = from.ok_or("PostgreSQL runs without logging_collector and log_destination=jsonlog, so that no turn can be recorded")?;
        let id = new_id();
        ask(product, &id, tokens).await?;
        sleep(TAIL).await;
        let log = copy.log_since(&from).await?;
        let after = copy.rows().await?;
        let statements = log::statements(&log, &copy.name);
        records.push(Record {
            turn: Turn::among(statements, &[&owner, USER, &id]),
            rows: each(&before, &after, 1.0),
        });
        copy.put_off(false).await?;
        product.settle().await?;
    }
    Ok(records)
}

async fn ask(product: &Asked, id: &str, tokens: u16) -> Result<(), String> {
    let query = format!(
        "How far is plot {} of the garden plan? {AT_ONCE}",
        &id[30..]
    );
    let query = tidemark_tests::paths::encoded(&query);
    let path = format!("/v1/chat/stream?query={query}&request_id={id}");
    let address = &product.server.address;
    client::turn(address, &path, USER, tokens.into()).await?;
    Ok(())
}

fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// The rows that each turn left behind in each table.
fn each(
    before: &BTreeMap<String, i64>,
    after: &BTreeMap<String, i64>,
    turns: f64,
) -> BTreeMap<String, f64> {
    let rows = after.iter().map(|(table, rows)| {
        let more = rows - before.get(table).copied().unwrap_or_default();
        (table.clone(), more as f64 / turns)
    });
    rows.filter(|(_, rows)| *rows != 0.0).collect()
}

/// What was asked again has to leave behind what was recorded; of each transaction it is the same statements already.
fn compared(asked: &BTreeMap<String, f64>, recorded: &BTreeMap<String, f64>) -> Result<(), String> {
    let tables: BTreeSet<&String> = asked.keys().chain(recorded.keys()).collect();
    let differ = tables.into_iter().any(|table| {
        let of = |rows: &BTreeMap<String, f64>| rows.get(table).copied().unwrap_or_default();
        (of(asked) - of(recorded)).abs() > ROWS_APART
    });
    if differ {
        return Err(format!(
            "what pgbench asked is not a turn: it left {asked:.2?} behind, a turn {recorded:?}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_that_leaves_other_rows_behind_is_none() {
        let rows = |messages: f64| BTreeMap::from([("messages".to_owned(), messages)]);
        let jobs = BTreeMap::from([("jobs".to_owned(), 1.0)]);
        assert!(compared(&rows(1.99), &rows(2.0)).is_ok());
        assert!(compared(&rows(1.9), &rows(2.0)).is_err());
        assert!(compared(&BTreeMap::new(), &jobs).is_err());
    }

    #[test]
    fn rows_are_told_where_there_are_more_or_fewer() {
        let rows = |jobs: i64, turns: i64| {
            BTreeMap::from([("jobs".to_owned(), jobs), ("turns".to_owned(), turns)])
        };
        let each = each(&rows(8, 10), &rows(8, 30), 10.0);
        assert_eq!(each, BTreeMap::from([("turns".to_owned(), 2.0)]));
    }
}
