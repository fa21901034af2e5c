//! Every follower is told every event once and in order, and all of one turn the same end: the one that is stored.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Complaint;
use crate::clients::is_passing;
use crate::history::{Entry, What};
use crate::stored::{Stored, TurnRow};

pub(super) fn complaints(history: &[Entry], stored: &Stored) -> Vec<Complaint> {
    let turns: BTreeMap<&str, &TurnRow> = stored
        .turns
        .iter()
        .map(|turn| (turn.id.as_str(), turn))
        .collect();
    let mut readers: BTreeMap<&str, Reader> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in history {
        match &entry.what {
            What::Opened {
                reader,
                turn,
                after,
                ..
            } => {
                let its = readers.entry(reader).or_insert_with(|| Reader::of(turn));
                its.asked_after = *after;
            }
            What::NotOpened {
                reader,
                status,
                code,
                ..
            } => {
                let its = readers.get(reader.as_str());
                let over = its.is_some_and(|its| its.end.is_some());
                if !(is_passing(*status) || *status == 204 && over) {
                    let text = format!("a stream was refused with {status} {code}");
                    found.push(Complaint::of(reader, text));
                }
            }
            What::Told {
                reader,
                seq,
                kind,
                data,
                ..
            } => {
                if let Some(its) = readers.get_mut(reader.as_str()) {
                    let wrong = its.is_told(*seq, kind, data);
                    found.extend(wrong.into_iter().map(|text| Complaint::of(reader, text)));
                }
            }
            _ => {}
        }
    }
    for (name, reader) in &readers {
        let wrong = reader.ends_with(turns.get(reader.turn));
        found.extend(wrong.into_iter().map(|text| Complaint::of(name, text)));
    }
    found
}

/// One follower, over all its connections.
struct Reader<'a> {
    turn: &'a str,
    asked_after: Option<u64>,
    last: u64,
    text: String,
    end: Option<(u64, &'a Value)>,
}

impl<'a> Reader<'a> {
    fn of(turn: &'a str) -> Self {
        Self {
            turn,
            asked_after: None,
            last: 0,
            text: String::new(),
            end: None,
        }
    }

    /// Takes an event; tells what is wrong with it.
    fn is_told(&mut self, seq: u64, kind: &str, data: &'a Value) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.end.is_some() {
            wrong.push(format!("{kind} {seq} after the end"));
        }
        let follows = match kind {
            "snapshot" => seq > self.last,
            _ => seq == self.last + 1,
        };
        if !follows {
            wrong.push(format!(
                "{kind} {seq} comes behind {} (asked for what is behind {:?})",
                self.last, self.asked_after
            ));
        }
        self.last = seq;
        match kind {
            "message" => self
                .text
                .push_str(data["token"].as_str().unwrap_or_default()),
            "reset" => self.text.clear(),
            "snapshot" => data["text"]
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut self.text),
            "done" => self.end = Some((seq, data)),
            _ => {}
        }
        wrong
    }

    /// What is wrong with its end.
    fn ends_with(&self, turn: Option<&&TurnRow>) -> Vec<String> {
        let Some((seq, data)) = self.end else {
            return vec!["was never told the end".to_owned()];
        };
        let Some(turn) = turn else {
            return vec![format!(
                "was told the end of {}, which is not there",
                self.turn
            )];
        };
        let mut wrong = Vec::new();
        let same = data["status"] == turn.status.as_str()
            && data["text"].as_str().unwrap_or_default()
                == turn.text.as_deref().unwrap_or_default()
            && data["message_id"].as_str() == turn.message_id.as_deref();
        if !same {
            wrong.push(format!("was told {data}, and stored is {turn:?}"));
        }
        if turn.terminal_seq != Some(seq as i64) {
            wrong.push(format!("was told the end as {seq}, stored is {turn:?}"));
        }
        if data["status"] == "completed" && data["text"].as_str() != Some(&self.text) {
            wrong.push(format!("its pieces are {:?}, the text {data}", self.text));
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::assert_complains;
    use super::*;
    use crate::history::of;

    fn opened(after: Option<u64>) -> What {
        What::Opened {
            reader: "r".to_owned(),
            turn: "t".to_owned(),
            replica: Some(0),
            after,
        }
    }

    fn told(seq: u64, kind: &str, data: Value) -> What {
        What::Told {
            reader: "r".to_owned(),
            turn: "t".to_owned(),
            seq,
            kind: kind.to_owned(),
            data,
        }
    }

    fn not_opened(status: u16) -> What {
        What::NotOpened {
            reader: "r".to_owned(),
            turn: "t".to_owned(),
            status,
            code: String::new(),
        }
    }

    fn end(seq: u64) -> What {
        let data = json!({"status": "completed", "text": "ab", "message_id": "m"});
        told(seq, "done", data)
    }

    fn stored(terminal_seq: i64) -> Stored {
        let turn = TurnRow {
            id: "t".to_owned(),
            status: "completed".to_owned(),
            text: Some("ab".to_owned()),
            message_id: Some("m".to_owned()),
            terminal_seq: Some(terminal_seq),
            ..TurnRow::default()
        };
        Stored {
            turns: vec![turn],
            ..Stored::default()
        }
    }

    fn good() -> Vec<What> {
        vec![
            not_opened(0),
            opened(None),
            told(1, "start", json!({})),
            told(2, "message", json!({"token": "void"})),
            told(3, "reset", json!({})),
            opened(Some(3)),
            told(4, "message", json!({"token": "a"})),
            told(5, "message", json!({"token": "b"})),
            end(6),
            opened(Some(6)),
            not_opened(204),
        ]
    }

    #[test]
    fn a_stream_in_pieces_and_one_with_an_announced_snapshot_are_right() {
        assert_eq!(complaints(&of(good()), &stored(6)), []);
        let mut jumped = good();
        jumped.splice(
            6..9,
            [told(257, "snapshot", json!({"text": "ab"})), end(258)],
        );
        assert_eq!(complaints(&of(jumped), &stored(258)), []);
    }

    #[test]
    fn gaps_repeats_and_what_comes_after_the_end_are_found() {
        type Breach = fn(&mut Vec<What>);
        let breaks: [(Breach, &str); 5] = [
            (|all| drop(all.remove(7)), "done 6 comes behind 4"),
            (
                |all| all.insert(7, all[6].clone()),
                "message 4 comes behind 4",
            ),
            (
                |all| all.push(told(7, "message", json!({}))),
                "after the end",
            ),
            (|all| all.push(end(7)), "after the end"),
            (|all| all.truncate(8), "never told the end"),
        ];
        for (breach, part) in breaks {
            let mut history = good();
            breach(&mut history);
            assert_complains(&complaints(&of(history), &stored(6)), part);
        }
    }

    #[test]
    fn another_text_end_or_number_than_is_stored_is_found() {
        let mut other = good();
        other[6] = told(4, "message", json!({"token": "x"}));
        assert_complains(&complaints(&of(other), &stored(6)), "its pieces are \"xb\"");
        assert_complains(&complaints(&of(good()), &stored(7)), "told the end as 6");

        let mut interrupted = stored(6);
        interrupted.turns[0].status = "interrupted".to_owned();
        assert_complains(&complaints(&of(good()), &interrupted), "and stored is");

        let lost = Stored::default();
        assert_complains(&complaints(&of(good()), &lost), "which is not there");
    }

    #[test]
    fn a_cursor_that_is_refused_and_an_early_no_content_are_found() {
        for status in [400, 404, 500, 204] {
            let mut history = good();
            history.insert(5, not_opened(status));
            assert_complains(
                &complaints(&of(history), &stored(6)),
                &format!("refused with {status}"),
            );
        }
    }
}
