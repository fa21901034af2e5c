//! A turn's statements as a script of `pgbench`, which asks them again with ids and owners of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::log::Statement;
use super::turn::{Turn, pieces};

/// Whose turn was recorded: what stands for the owner in parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded<'a> {
    pub(super) owner: &'a str,
    pub(super) user: &'a str,
}

/// The owners that a script asks for, of which each is also the name of its user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owners {
    pub(super) first: i64,
    pub(super) count: i64,
}

/// What `pgbench` is given.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) text: String,
    /// Variables that are the same in every turn.
    pub(super) constants: Vec<(String, String)>,
}

/// Types of each statement's parameters.
pub(super) type Types = BTreeMap<String, Vec<String>>;

/// Writes the script of a turn. What `others` name too is the same in every turn; an id that they do not name is new in each.
pub(super) fn written(
    turn: &Turn,
    others: &BTreeSet<String>,
    types: &Types,
    recorded: Recorded<'_>,
    owners: Owners,
) -> Script {
    let mut writer = Writer {
        others,
        types,
        recorded,
        ids: Vec::new(),
        composed: Vec::new(),
        constants: Vec::new(),
    };
    let mut statements = String::new();
    for transaction in &turn.transactions {
        for statement in transaction {
            writer.put(statement, &mut statements);
        }
    }
    let Owners { first, count } = owners;
    let mut text = format!("\\set owner random({first}, {})\n", first + count - 1);
    text += &writer.identifiers();
    text += &statements;
    Script {
        text,
        constants: writer.constants,
    }
}

struct Writer<'a> {
    others: &'a BTreeSet<String>,
    types: &'a Types,
    recorded: Recorded<'a>,
    /// The ids that are new in each turn, by what they were in the recorded one.
    ids: Vec<String>,
    /// Expressions of texts that hold such ids, and their names.
    composed: Vec<(String, String)>,
    constants: Vec<(String, String)>,
}

impl Writer<'_> {
    fn put(&mut self, statement: &Statement, out: &mut String) {
        let mut parts = statement.sql.split(';').map(str::trim);
        if statement.parameters.is_empty() && statement.sql.contains(';') {
            // Sent at once, as it was.
            out.push_str("\\startpipeline\n");
            for part in parts.by_ref().filter(|part| !part.is_empty()) {
                let _ = writeln!(out, "{part};");
            }
            out.push_str("\\endpipeline\n");
            return;
        }
        let types = self.types.get(&statement.sql);
        let values: Vec<String> = statement
            .parameters
            .iter()
            .enumerate()
            .map(|(at, value)| {
                let value = self.value(value.as_deref());
                let kind = types.and_then(|types| types.get(at));
                kind.map_or(value.clone(), |kind| format!("{value}::{kind}"))
            })
            .collect();
        let _ = writeln!(out, "{};", with_values(&statement.sql, &values));
    }

    /// What stands for a parameter's value: a variable.
    fn value(&mut self, value: Option<&str>) -> String {
        let Some(value) = value else {
            return "NULL".to_owned();
        };
        let pieces = self.split(value);
        match pieces.as_slice() {
            [Piece::Variable(name)] => format!(":{name}"),
            [] | [Piece::Text(_)] => format!(":{}", self.constant(value)),
            pieces => {
                let parts: Vec<String> = pieces
                    .iter()
                    .map(|piece| match piece {
                        Piece::Text(text) => format!(":{}::text", self.constant(text)),
                        Piece::Variable(name) if name == "owner" => ":owner::text".to_owned(),
                        Piece::Variable(name) => format!("n.{name}"),
                    })
                    .collect();
                let expression = format!("concat({})", parts.join(", "));
                format!(":{}", self.composed(expression))
            }
        }
    }

    fn split(&mut self, value: &str) -> Vec<Piece> {
        let mut split = Vec::new();
        for (is_id, piece) in pieces(value) {
            if is_id && !self.others.contains(piece) && is_new(piece) {
                split.push(Piece::Variable(self.id(piece)));
                continue;
            }
            let mut rest = piece;
            while let Some((before, name, after)) = self.owner_in(rest) {
                put_text(&mut split, before);
                split.push(Piece::Variable(name));
                rest = after;
            }
            put_text(&mut split, rest);
        }
        split
    }

    fn owner_in<'t>(&self, text: &'t str) -> Option<(&'t str, String, &'t str)> {
        let Recorded { owner, user } = self.recorded;
        let (before, after) = text.split_once(owner).or_else(|| text.split_once(user))?;
        Some((before, "owner".to_owned(), after))
    }

    fn id(&mut self, id: &str) -> String {
        let known = self.ids.iter().position(|known| known == id);
        let at = known.unwrap_or_else(|| {
            self.ids.push(id.to_owned());
            self.ids.len() - 1
        });
        format!("id_{at}")
    }

    fn composed(&mut self, expression: String) -> String {
        if let Some((_, name)) = self.composed.iter().find(|(e, _)| *e == expression) {
            return name.clone();
        }
        let name = format!("text_{}", self.composed.len());
        self.composed.push((expression, name.clone()));
        name
    }

    fn constant(&mut self, value: &str) -> String {
        if let Some((name, _)) = self.constants.iter().find(|(_, known)| known == value) {
            return name.clone();
        }
        let name = format!("constant_{}", self.constants.len());
        self.constants.push((name.clone(), value.to_owned()));
        name
    }

    /// The one statement that is not the turn's own: `pgbench` has no ids, so the database makes them.
    fn identifiers(&self) -> String {
        if self.ids.is_empty() {
            return String::new();
        }
        let ids = 0..self.ids.len();
        let made: Vec<String> = ids.map(|at| format!("uuidv7() AS id_{at}")).collect();
        let composed: Vec<String> = self
            .composed
            .iter()
            .map(|(expression, name)| format!(", {expression} AS {name}"))
            .collect();
        format!(
            "SELECT n.*{}\nFROM (SELECT {}) n\n\\gset\n",
            composed.concat(),
            made.join(", ")
        )
    }
}

enum Piece {
    Text(String),
    Variable(String),
}

/// Adds text, to that which is there last.
fn put_text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        Some(Piece::Text(last)) => last.push_str(text),
        _ if text.is_empty() => {}
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

/// No beginning or end of all ids, nor a tenant's.
fn is_new(id: &str) -> bool {
    !id.starts_with("00000000-") && !id.starts_with("ffffffff-")
}

/// The statement with its values in place of `$1`, `$2`, ….
fn with_values(sql: &str, values: &[String]) -> String {
    let mut out = String::new();
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once('$') {
        out += before;
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let number = after[..digits].parse::<usize>().ok();
        if let Some(value) = number.and_then(|number| values.get(number.wrapping_sub(1))) {
            out += value;
            rest = &after[digits..];
        } else {
            out.push('$');
            rest = after;
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: &str = "00000000-0000-0000-0000-000000000000";
    const SESSION: &str = "01a22d6f-4961-7621-8c95-e917ff783d75";
    const KNOWN: &str = "01a22d6f-4961-7621-8c95-e9186a99bbdd";

    fn statement(sql: &str, parameters: &[Option<&str>]) -> Statement {
        Statement {
            transaction: (1, String::new()),
            sql: sql.to_owned(),
            parameters: parameters.iter().map(|p| p.map(str::to_owned)).collect(),
        }
    }

    #[test]
    fn a_script_asks_with_ids_of_its_own_and_keeps_what_is_the_same_in_every_turn() {
        let insert = "INSERT INTO t VALUES ($1, $2, $3, $4, $5, $10)";
        let both = format!("{{{SESSION},{KNOWN}}}");
        let parameters = [
            Some(TENANT),
            Some("7100000001"),
            Some(SESSION),
            None,
            Some(both.as_str()),
        ];
        let turn = Turn {
            transactions: vec![vec![
                statement("BEGIN; SET LOCAL a = 'b'", &[]),
                statement(insert, &parameters),
                statement("SELECT $1", &[Some("u1")]),
                statement("COMMIT", &[]),
            ]],
        };
        let others = BTreeSet::from([KNOWN.to_owned()]);
        let kinds = ["uuid", "bigint", "uuid", "text", "uuid[]"].map(str::to_owned);
        let types = Types::from([(insert.to_owned(), kinds.to_vec())]);
        let recorded = Recorded {
            owner: "7100000001",
            user: "u1",
        };
        let owners = Owners {
            first: 10,
            count: 5,
        };
        let script = written(&turn, &others, &types, recorded, owners);
        assert_eq!(
            script.text,
            "\\set owner random(10, 14)
SELECT n.*, concat(:constant_1::text, n.id_0, :constant_2::text) AS text_0
FROM (SELECT uuidv7() AS id_0) n
\\gset
\\startpipeline
BEGIN;
SET LOCAL a = 'b';
\\endpipeline
INSERT INTO t VALUES (:constant_0::uuid, :owner::bigint, :id_0::uuid, NULL::text, :text_0::uuid[], $10);
SELECT :owner;
COMMIT;
"
        );
        let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            script.constants,
            [
                text("constant_0", TENANT),
                text("constant_1", "{"),
                text("constant_2", &format!(",{KNOWN}}}"))
            ]
        );
    }
}
