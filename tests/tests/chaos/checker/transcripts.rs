//! Sessions hold what a model API accepts: numbers without a gap, each turn in one piece with one question and at most one answer, and turns in
//! the order in which they were accepted.

use std::collections::{BTreeMap, BTreeSet};

use tidemark_tests::transcript::violations;

use super::Complaint;
use crate::history::{Entry, What};
use crate::stored::{MessageRow, Stored, TurnRow};

pub(super) fn complaints(history: &[Entry], stored: &Stored) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut by_session: BTreeMap<&str, Vec<&MessageRow>> = BTreeMap::new();
    let mut by_turn: BTreeMap<&str, Vec<&MessageRow>> = BTreeMap::new();
    for message in &stored.messages {
        by_session
            .entry(&message.session)
            .or_default()
            .push(message);
        by_turn.entry(&message.turn).or_default().push(message);
    }
    for session in &stored.sessions {
        let seqs: Vec<i64> = by_session
            .get(session.id.as_str())
            .map(|messages| messages.iter().map(|message| message.seq).collect())
            .unwrap_or_default();
        if seqs != (1..=session.message_count).collect::<Vec<_>>() {
            let text = format!("{} messages, numbered {seqs:?}", session.message_count);
            found.push(Complaint::of(&session.id, text));
        }
    }
    for turn in &stored.turns {
        let messages = by_turn.remove(turn.id.as_str()).unwrap_or_default();
        let wrong = of_turn(turn, &messages);
        found.extend(wrong.into_iter().map(|text| Complaint::of(&turn.id, text)));
    }
    for (turn, messages) in by_turn {
        found.push(Complaint::of(turn, format!("no turn of {messages:?}")));
    }
    for (at, replica) in stored.replicas.iter().enumerate() {
        for (session, messages) in &replica.histories {
            for violation in violations(messages) {
                let text = format!("replica {at} shows a transcript with: {violation}");
                found.push(Complaint::of(session, text));
            }
        }
    }
    found.extend(order(history, stored));
    found
}

/// What is wrong with the messages of one turn, which are in order.
fn of_turn(turn: &TurnRow, messages: &[&MessageRow]) -> Vec<String> {
    let mut wrong = Vec::new();
    let first = messages.first().map(|message| message.seq);
    if first != turn.first_seq {
        wrong.push(format!("begins with {first:?}, not {:?}", turn.first_seq));
    }
    let together = messages
        .windows(2)
        .all(|pair| pair[0].seq + 1 == pair[1].seq);
    if !together {
        let seqs: Vec<i64> = messages.iter().map(|message| message.seq).collect();
        wrong.push(format!("something lies between its messages {seqs:?}"));
    }
    let questions: Vec<_> = messages
        .iter()
        .filter(|message| message.role == "user")
        .collect();
    if questions.len() > 1
        || questions
            .iter()
            .any(|message| message.content != turn.input)
    {
        wrong.push(format!("asked {questions:?}"));
    }
    let answers: Vec<_> = messages
        .iter()
        .filter(|message| message.role == "assistant" && message.calls == 0)
        .collect();
    if answers.len() > 1 {
        wrong.push(format!("{} answers: {answers:?}", answers.len()));
    }
    if turn.status == "completed" {
        let is_last = messages.last().is_some_and(|last| {
            Some(&last.id) == turn.message_id.as_ref()
                && Some(&last.content) == turn.text.as_ref()
                && last.role == "assistant"
                && !last.partial
        });
        if !is_last || questions.is_empty() {
            wrong.push(format!("completed, and holds {messages:?}"));
        }
    } else if answers.iter().any(|answer| !answer.partial) {
        wrong.push(format!("{} with a whole answer {answers:?}", turn.status));
    }
    wrong
}

/// A turn that was accepted before another of its session was asked for begins before it.
fn order(history: &[Entry], stored: &Stored) -> Vec<Complaint> {
    let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
    let mut accepted: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for entry in history {
        match &entry.what {
            What::Asked { key, .. } => {
                asked.entry(key).or_insert(entry.at);
            }
            What::Accepted { key, turn } => {
                accepted.entry(turn).or_insert((entry.at, key));
            }
            _ => {}
        }
    }
    let mut sessions: BTreeMap<&str, Vec<(i64, &str)>> = BTreeMap::new();
    for turn in &stored.turns {
        if let Some(first) = turn.first_seq {
            sessions
                .entry(&turn.session)
                .or_default()
                .push((first, &turn.id));
        }
    }
    let mut found = BTreeSet::new();
    for turns in sessions.values_mut() {
        turns.sort_unstable();
        for (place, (_, later)) in turns.iter().enumerate() {
            let Some((accepted_at, key)) = accepted.get(later) else {
                continue;
            };
            // Whoever stands before it in the transcript must have been asked for before it was accepted.
            for (_, earlier) in &turns[..place] {
                let asked_at = accepted.get(earlier).and_then(|(_, key)| asked.get(key));
                if asked_at.is_some_and(|asked_at| asked_at > accepted_at) {
                    found.insert((*later, *earlier, *key));
                }
            }
        }
    }
    found
        .into_iter()
        .map(|(later, earlier, key)| {
            let text =
                format!("{key} was accepted before {earlier} was asked for, and began after it");
            Complaint::of(later, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::assert_complains;
    use super::*;
    use crate::history::of;
    use crate::stored::{AtReplica, SessionRow};

    fn message(turn: &str, seq: i64, role: &str) -> MessageRow {
        MessageRow {
            id: format!("m{seq}"),
            session: "s".to_owned(),
            turn: turn.to_owned(),
            seq,
            role: role.to_owned(),
            content: format!("{role} of {turn}"),
            ..MessageRow::default()
        }
    }

    fn turn(id: &str, first_seq: i64, answer: i64) -> TurnRow {
        TurnRow {
            id: id.to_owned(),
            session: "s".to_owned(),
            status: "completed".to_owned(),
            input: format!("user of {id}"),
            text: Some(format!("assistant of {id}")),
            message_id: Some(format!("m{answer}")),
            first_seq: Some(first_seq),
            ..TurnRow::default()
        }
    }

    fn stored() -> Stored {
        let call = MessageRow {
            calls: 1,
            ..message("b", 4, "assistant")
        };
        Stored {
            turns: vec![turn("a", 1, 2), turn("b", 3, 6)],
            messages: vec![
                message("a", 1, "user"),
                message("a", 2, "assistant"),
                message("b", 3, "user"),
                call,
                message("b", 5, "tool"),
                message("b", 6, "assistant"),
            ],
            sessions: vec![SessionRow {
                id: "s".to_owned(),
                message_count: 6,
                ..SessionRow::default()
            }],
            ..Stored::default()
        }
    }

    fn asked(key: &str) -> What {
        What::Asked {
            key: key.to_owned(),
            user: String::new(),
            session: "s".to_owned(),
            message: String::new(),
            replica: 0,
        }
    }

    fn accepted(key: &str, turn: &str) -> What {
        What::Accepted {
            key: key.to_owned(),
            turn: turn.to_owned(),
        }
    }

    fn changed(change: impl FnOnce(&mut Stored)) -> Vec<Complaint> {
        let mut stored = stored();
        change(&mut stored);
        complaints(&[], &stored)
    }

    #[test]
    fn two_turns_one_after_the_other_are_right() {
        assert_eq!(complaints(&[], &stored()), []);
    }

    #[test]
    fn gaps_mixed_turns_and_second_answers_are_found() {
        assert_complains(&changed(|s| drop(s.messages.remove(4))), "numbered");
        let mixed = changed(|s| {
            s.messages[1].turn = "b".to_owned();
            s.messages[5].turn = "a".to_owned();
        });
        assert_complains(&mixed, "lies between");
        assert_complains(&changed(|s| s.messages[3].calls = 0), "2 answers");
        assert_complains(
            &changed(|s| s.messages[4].role = "user".to_owned()),
            "asked",
        );
        assert_complains(&changed(|s| s.messages[0].content.clear()), "asked");
        assert_complains(&changed(|s| drop(s.turns.remove(0))), "no turn of");
    }

    #[test]
    fn a_completed_turn_without_its_answer_and_another_with_one_are_found() {
        assert_complains(&changed(|s| s.messages[5].partial = true), "completed, and");
        assert_complains(
            &changed(|s| s.messages[5].content.clear()),
            "completed, and",
        );
        let cut = changed(|s| s.turns[1].status = "interrupted".to_owned());
        assert_complains(&cut, "with a whole answer");
        assert_complains(&changed(|s| s.turns[1].first_seq = Some(2)), "begins with");
    }

    #[test]
    fn a_replica_that_shows_an_invalid_transcript_is_found() {
        let history = vec![json!({"role": "tool", "content": "x", "tool_call_id": "c"})];
        let found = changed(|s| {
            s.replicas.push(AtReplica {
                histories: [("s".to_owned(), history)].into(),
                ..AtReplica::default()
            });
        });
        assert_complains(&found, "a result without call");
    }

    #[test]
    fn a_turn_that_overtook_one_accepted_before_is_found_and_one_asked_meanwhile_is_not() {
        let waited = [
            asked("a"),
            accepted("a", "a"),
            asked("b"),
            accepted("b", "b"),
        ];
        assert_eq!(complaints(&of(waited.clone()), &stored()), []);
        let meanwhile = [
            asked("b"),
            asked("a"),
            accepted("b", "b"),
            accepted("a", "a"),
        ];
        assert_eq!(complaints(&of(meanwhile), &stored()), []);
        let overtook = [
            asked("b"),
            accepted("b", "b"),
            asked("a"),
            accepted("a", "a"),
        ];
        assert_complains(&complaints(&of(overtook), &stored()), "began after it");
    }
}
