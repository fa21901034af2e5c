//! The statements of a turn, found among all that a database was asked meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use super::log::Statement;

/// The statements of a turn, by transaction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turn {
    pub(super) transactions: Vec<Vec<Statement>>,
}

impl Turn {
    /// The transactions that name one of `names`, which this turn and what it works on have alone, or an id that such a transaction names.
    pub(super) fn among(statements: Vec<Statement>, names: &[&str]) -> Self {
        let mut transactions: Vec<Vec<Statement>> = Vec::new();
        for statement in statements {
            let of = |t: &&mut Vec<Statement>| t[0].transaction == statement.transaction;
            match transactions.iter_mut().find(of) {
                Some(transaction) => transaction.push(statement),
                None => transactions.push(vec![statement]),
            }
        }
        let mut known: BTreeSet<String> = names.iter().map(|n| (*n).to_owned()).collect();
        let mut belongs = vec![false; transactions.len()];
        loop {
            let found: Vec<usize> = (0..transactions.len())
                .filter(|at| !belongs[*at] && names_any(&transactions[*at], &known))
                .collect();
            if found.is_empty() {
                break;
            }
            for at in found {
                belongs[at] = true;
                known.extend(ids_of(&transactions[at]));
            }
        }
        let mut belongs = belongs.into_iter();
        transactions.retain(|_| belongs.next().unwrap_or(false));
        Self { transactions }
    }

    /// How many statements are executed, those that begin and end transactions among them.
    pub(super) fn statements(&self) -> usize {
        self.transactions.iter().map(Vec::len).sum()
    }

    /// All that identifies something in it.
    pub(super) fn ids(&self) -> BTreeSet<String> {
        self.transactions.iter().flat_map(|t| ids_of(t)).collect()
    }

    /// What it does, whatever it does it with; transactions may overlap, so their order is no part of it.
    fn shape(&self) -> Vec<Vec<&str>> {
        let transactions = self.transactions.iter();
        let mut shape: Vec<Vec<&str>> = transactions
            .map(|t| t.iter().map(|s| s.sql.as_str()).collect())
            .collect();
        shape.sort_unstable();
        shape
    }
}

/// The places of turns that ask alike, at least two, and least of all such: others found less of what they need at hand.
pub(super) fn alike(turns: &[Turn]) -> Option<Vec<usize>> {
    let mut shapes: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, turn) in turns.iter().enumerate() {
        shapes.entry(turn.shape()).or_default().push(at);
    }
    shapes
        .into_values()
        .filter(|places| places.len() >= 2)
        .min_by_key(|places| turns[places[0]].statements())
}

fn names_any(transaction: &[Statement], known: &BTreeSet<String>) -> bool {
    let parameters = transaction.iter().flat_map(|s| s.parameters.iter());
    parameters
        .flatten()
        .any(|value| known.iter().any(|name| value.contains(name.as_str())))
}

/// The ids in the parameters, but for those that are no more than a beginning or an end of all.
fn ids_of(transaction: &[Statement]) -> BTreeSet<String> {
    let parameters = transaction.iter().flat_map(|s| s.parameters.iter());
    let pieces = parameters.flatten().flat_map(|value| pieces(value));
    pieces
        .filter(|(is_id, _)| *is_id)
        .map(|(_, id)| id.to_owned())
        .filter(|id| !id.starts_with("00000000-") && !id.starts_with("ffffffff-"))
        .collect()
}

/// A text as UUIDs and what is between them.
pub(super) fn pieces(text: &str) -> Vec<(bool, &str)> {
    const LENGTH: usize = 36;
    let is_id = |at: usize| {
        let Some(candidate) = text.get(at..at + LENGTH) else {
            return false;
        };
        candidate.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    let (mut pieces, mut from, mut at) = (Vec::new(), 0, 0);
    while at < text.len() {
        if is_id(at) {
            if from < at {
                pieces.push((false, &text[from..at]));
            }
            pieces.push((true, &text[at..at + LENGTH]));
            at += LENGTH;
            from = at;
        } else {
            at += 1;
        }
    }
    if from < text.len() {
        pieces.push((false, &text[from..]));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "01a22d6f-4961-7621-8c95-e9186a99bbdd";
    const TWO: &str = "01a22d6f-4961-7621-8c95-e917ff783d75";

    fn statement(transaction: i64, sql: &str, parameters: &[&str]) -> Statement {
        Statement {
            transaction: (transaction, String::new()),
            sql: sql.to_owned(),
            parameters: parameters.iter().map(|p| Some((*p).to_owned())).collect(),
        }
    }

    #[test]
    fn a_transaction_is_of_the_turn_if_it_names_what_one_of_the_turn_names() {
        let tenant = "00000000-0000-0000-0000-000000000000";
        let log = vec![
            statement(1, "BEGIN", &[]),
            statement(2, "claim", &[tenant, "index"]),
            statement(1, "insert", &[tenant, "u1", ONE]),
            statement(3, "read", &[tenant, &format!("{{{ONE},{TWO}}}")]),
            statement(4, "end", &[TWO]),
            statement(5, "other", &[tenant, "u2"]),
        ];
        let turn = Turn::among(log, &["u1"]);
        let first: Vec<&str> = turn
            .transactions
            .iter()
            .map(|t| t.last().unwrap().sql.as_str())
            .collect();
        assert_eq!(first, ["insert", "read", "end"]);
        assert_eq!(turn.statements(), 4);
        assert_eq!(turn.ids().len(), 2);
    }

    #[test]
    fn turns_are_alike_that_ask_the_same_in_whatever_order_and_the_least_count() {
        let turn = |sql: &[&str]| {
            let log = sql
                .iter()
                .zip(0..)
                .map(|(sql, t)| statement(t, sql, &["u1"]));
            Turn::among(log.collect(), &["u1"])
        };
        let long = || turn(&["a", "b", "c"]);
        let turns = [
            long(),
            long(),
            turn(&["a", "b"]),
            turn(&["b", "a"]),
            turn(&["a"]),
        ];
        assert_eq!(alike(&turns), Some(vec![2, 3]));
        assert_eq!(alike(&turns[3..]), None);
    }

    #[test]
    fn ids_are_found_within_other_text() {
        let text = format!("{{\"äid\": \"{ONE}\", {TWO}");
        let pieces = pieces(&text);
        assert_eq!(
            pieces,
            [
                (false, "{\"äid\": \""),
                (true, ONE),
                (false, "\", "),
                (true, TWO)
            ]
        );
        assert_eq!(super::pieces(""), []);
    }
}
