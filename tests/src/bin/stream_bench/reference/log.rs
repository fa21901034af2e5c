//! Statements as `PostgreSQL` writes them to its log.

use serde::Deserialize;

/// A statement that was executed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    /// Its transaction, among those of the log.
    pub(super) transaction: (i64, String),
    pub(super) sql: String,
    /// Its parameters, `$1` first; none is NULL.
    pub(super) parameters: Vec<Option<String>>,
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    dbname: String,
    #[serde(default)]
    pid: i64,
    #[serde(default)]
    vxid: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    detail: String,
}

/// The statements of one database in a part of a log that is written as JSON, in their order. The part may begin and end within a line.
pub(super) fn statements(log: &str, database: &str) -> Vec<Statement> {
    log.lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok())
        .filter(|line| line.dbname == database)
        .filter_map(statement)
        .collect()
}

fn statement(line: Line) -> Option<Statement> {
    let sql = match line.message.strip_prefix("statement: ") {
        Some(sql) => sql,
        None => line.message.strip_prefix("execute ")?.split_once(": ")?.1,
    };
    let parameters = line.detail.strip_prefix("Parameters: ");
    Some(Statement {
        transaction: (line.pid, line.vxid),
        sql: sql.trim().to_owned(),
        parameters: parameters.map(values).unwrap_or_default(),
    })
}

/// `$1 = 'it''s', $2 = NULL` as values.
fn values(mut text: &str) -> Vec<Option<String>> {
    let mut values = Vec::new();
    while let Some((_, rest)) = text.split_once(" = ") {
        let Some(mut quoted) = rest.strip_prefix('\'') else {
            values.push(None);
            text = rest.strip_prefix("NULL").unwrap_or_default();
            continue;
        };
        let mut value = String::new();
        loop {
            let Some((part, rest)) = quoted.split_once('\'') else {
                return values;
            };
            value += part;
            let Some(more) = rest.strip_prefix('\'') else {
                text = rest;
                break;
            };
            value.push('\'');
            quoted = more;
        }
        values.push(Some(value));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(message: &str, detail: &str) -> String {
        json!({"dbname": "bench", "pid": 7, "vxid": "4/9", "message": message, "detail": detail})
            .to_string()
    }

    #[test]
    fn a_statement_is_read_with_its_parameters() {
        let log = [
            "is executed\"}".to_owned(),
            line("statement: BEGIN", ""),
            line(
                "execute sqlx_s_3: \nSELECT $1, $2, $3",
                "Parameters: $1 = 'it''s = ''x'', $2 = NULL', $2 = NULL, $3 = ''",
            ),
            line("checkpoint starting", ""),
            "{\"dbname\":\"bench\",\"pid".to_owned(),
        ];
        let read = statements(&log.join("\n"), "bench");
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].sql, "BEGIN");
        assert_eq!(read[1].sql, "SELECT $1, $2, $3");
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            read[1].parameters,
            [text("it's = 'x', $2 = NULL"), None, text("")]
        );
        assert_eq!(read[1].transaction, (7, "4/9".to_owned()));
        assert_eq!(statements(&log.join("\n"), "other"), []);
    }
}
