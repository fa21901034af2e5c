//! What was accepted is there once, has ended, and tells the same everywhere; nobody was refused for good or kept waiting.

use std::collections::{BTreeMap, BTreeSet};

use super::Complaint;
use crate::clients::is_passing;
use crate::history::{Entry, What};
use crate::stored::{Stored, TurnRow};

/// How long a drain may take: the ten seconds that a server is given, and what a busy machine may add.
const DRAIN_MS: u64 = 15_000;

pub(super) fn complaints(history: &[Entry], stored: &Stored) -> Vec<Complaint> {
    let mut found = refusals(history);
    found.extend(one_turn_a_key(history, stored));
    for turn in &stored.turns {
        found.extend(ended(turn));
        found.extend(told_alike(turn, stored));
    }
    found.extend(readiness(stored));
    found
}

fn refusals(history: &[Entry]) -> Vec<Complaint> {
    let mut found = Vec::new();
    for entry in history {
        match &entry.what {
            What::Refused { key, status, code } if !is_passing(*status) => {
                found.push(Complaint::of(key, format!("refused with {status} {code}")));
            }
            What::GaveUp { subject } => {
                found.push(Complaint::of(subject, "somebody waited in vain"));
            }
            What::Drained {
                replica,
                took_ms,
                status,
            } if *took_ms > DRAIN_MS + stood_still(history, entry.ms, *took_ms)
                || status != "exit status: 0" =>
            {
                let text =
                    format!("replica {replica} drained for {took_ms} ms and ended with {status}");
                found.push(Complaint::of("drain", text));
            }
            _ => {}
        }
    }
    found
}

/// For how long the machine did not even run the test, of the time that ended then.
fn stood_still(history: &[Entry], ended: u64, took: u64) -> u64 {
    let meanwhile = ended.saturating_sub(took)..=ended + 1_000;
    let stood = history.iter().map(|entry| match entry.what {
        What::StoodStill { for_ms } if meanwhile.contains(&entry.ms) => for_ms,
        _ => 0,
    });
    stood.sum()
}

/// Each key is one turn, whatever was answered to it: of the messages asked for, none is two turns, and none that was accepted is no turn.
fn one_turn_a_key(history: &[Entry], stored: &Stored) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut accepted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut asked: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in history {
        match &entry.what {
            What::Accepted { key, turn } => {
                accepted.entry(key).or_default().insert(turn);
            }
            What::Asked { key, message, .. } => {
                asked.insert(message, key);
            }
            _ => {}
        }
    }
    let mut turns: BTreeMap<&str, Vec<&TurnRow>> = BTreeMap::new();
    for turn in &stored.turns {
        match asked.get(turn.input.as_str()) {
            Some(key) => turns.entry(key).or_default().push(turn),
            None => found.push(Complaint::of(&turn.id, "a turn that nobody asked for")),
        }
    }
    for (key, turns) in &turns {
        if turns.len() > 1 {
            found.push(Complaint::of(
                key,
                format!("{} turns of one key", turns.len()),
            ));
        }
    }
    for (key, ids) in accepted {
        if ids.len() > 1 {
            found.push(Complaint::of(key, format!("one key, accepted as {ids:?}")));
        }
        for id in ids {
            if !turns
                .get(key)
                .is_some_and(|rows| rows.iter().any(|row| row.id == id))
            {
                found.push(Complaint::of(
                    id,
                    format!("accepted for {key} and not there"),
                ));
            }
        }
    }
    found
}

fn ended(turn: &TurnRow) -> Option<Complaint> {
    let is_over = matches!(
        turn.status.as_str(),
        "completed" | "failed" | "cancelled" | "interrupted"
    );
    (!is_over).then(|| Complaint::of(&turn.id, format!("still {} at the end", turn.status)))
}

/// Every replica tells the turn as it is stored, and its answer in the history.
fn told_alike(turn: &TurnRow, stored: &Stored) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (at, replica) in stored.replicas.iter().enumerate() {
        let told = replica.turns.get(&turn.id);
        let same = told.is_some_and(|told| {
            told["status"] == turn.status.as_str()
                && told["text"].as_str() == turn.text.as_deref()
                && told["message_id"].as_str() == turn.message_id.as_deref()
        });
        if !same {
            let text = format!("replica {at} tells {told:?} of {turn:?}");
            found.push(Complaint::of(&turn.id, text));
        }
        let Some(answer) = &turn.message_id else {
            continue;
        };
        let history = replica.histories.get(&turn.session);
        let shown = history.is_some_and(|messages| {
            messages.iter().any(|message| {
                message["id"] == answer.as_str()
                    && message["content"].as_str() == turn.text.as_deref()
            })
        });
        if !shown {
            let text = format!("replica {at} does not show the answer {answer}");
            found.push(Complaint::of(&turn.id, text));
        }
    }
    found
}

fn readiness(stored: &Stored) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (at, replica) in stored.replicas.iter().enumerate() {
        if replica.ready["status"] != "ready" || replica.ready["events"] != "ok" {
            let text = format!("replica {at} says {}", replica.ready);
            found.push(Complaint::of("readyz", text));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::assert_complains;
    use super::*;
    use crate::history::of;
    use crate::stored::AtReplica;

    fn asked(key: &str) -> What {
        What::Asked {
            key: key.to_owned(),
            user: "u".to_owned(),
            session: "s".to_owned(),
            message: format!("message of {key}"),
            replica: 0,
        }
    }

    fn accepted(key: &str, turn: &str) -> What {
        What::Accepted {
            key: key.to_owned(),
            turn: turn.to_owned(),
        }
    }

    fn turn(id: &str, key: &str) -> TurnRow {
        TurnRow {
            id: id.to_owned(),
            session: "s".to_owned(),
            status: "completed".to_owned(),
            input: format!("message of {key}"),
            text: Some("answer".to_owned()),
            message_id: Some("m".to_owned()),
            ..TurnRow::default()
        }
    }

    fn replica() -> AtReplica {
        let told = json!({"status": "completed", "text": "answer", "message_id": "m"});
        let shown = vec![json!({"id": "m", "content": "answer"})];
        AtReplica {
            ready: json!({"status": "ready", "events": "ok"}),
            turns: [("t".to_owned(), told)].into(),
            histories: [("s".to_owned(), shown)].into(),
        }
    }

    fn good() -> (Vec<What>, Stored) {
        let stored = Stored {
            turns: vec![turn("t", "k")],
            replicas: vec![replica(), replica()],
            ..Stored::default()
        };
        let passing = What::Refused {
            key: "k".to_owned(),
            status: 503,
            code: String::new(),
        };
        (
            vec![asked("k"), passing, asked("k"), accepted("k", "t")],
            stored,
        )
    }

    #[test]
    fn a_key_tried_twice_and_accepted_as_one_turn_is_right() {
        let (history, stored) = good();
        assert_eq!(complaints(&of(history), &stored), []);
    }

    #[test]
    fn an_accepted_turn_that_is_lost_doubled_renamed_or_still_open_is_found() {
        let (history, mut stored) = good();
        stored.turns.clear();
        assert_complains(&complaints(&of(history.clone()), &stored), "not there");

        stored.turns = vec![turn("t", "k"), turn("t2", "k")];
        assert_complains(
            &complaints(&of(history.clone()), &stored),
            "2 turns of one key",
        );

        let mut renamed = history.clone();
        renamed.push(accepted("k", "t2"));
        assert_complains(&complaints(&of(renamed), &good().1), "accepted as");

        stored.turns = vec![TurnRow {
            status: "running".to_owned(),
            ..turn("t", "k")
        }];
        assert_complains(&complaints(&of(history.clone()), &stored), "still running");

        assert_complains(&complaints(&of([]), &good().1), "nobody asked for");
    }

    #[test]
    fn a_replica_that_tells_another_end_or_hides_the_answer_is_found() {
        let (history, mut stored) = good();
        stored.replicas[1].turns.get_mut("t").unwrap()["text"] = json!("other");
        assert_complains(
            &complaints(&of(history.clone()), &stored),
            "replica 1 tells",
        );

        let (_, mut stored) = good();
        stored.replicas[0].histories.clear();
        assert_complains(&complaints(&of(history.clone()), &stored), "does not show");

        let (_, mut stored) = good();
        stored.replicas[0].ready["events"] = json!("degraded");
        assert_complains(&complaints(&of(history), &stored), "degraded");
    }

    #[test]
    fn a_refusal_for_good_a_vain_wait_and_a_slow_drain_are_found() {
        let refused = |status| What::Refused {
            key: "k".to_owned(),
            status,
            code: String::new(),
        };
        let drained = |took_ms, status: &str| What::Drained {
            replica: 1,
            took_ms,
            status: status.to_owned(),
        };
        for (what, part) in [
            (refused(500), "refused with 500"),
            (refused(404), "refused with 404"),
            (
                What::GaveUp {
                    subject: "k".to_owned(),
                },
                "in vain",
            ),
            (drained(20_000, "exit status: 0"), "drained for"),
            (drained(1_000, "signal: 9"), "ended with signal"),
        ] {
            assert_complains(&refusals(&of([what])), part);
        }
        let slow_machine = of([
            What::StoodStill { for_ms: 6_000 },
            drained(20_000, "exit status: 0"),
        ]);
        assert_eq!(refusals(&slow_machine), []);
        assert_eq!(
            refusals(&of([refused(429), drained(900, "exit status: 0")])),
            []
        );
    }
}
