//! What was to be derived from turns is derived, once: nothing is open or has failed, each message is indexed once, each stretch consolidated
//! once, each use counted once.

use std::collections::BTreeMap;

use super::Complaint;
use crate::THRESHOLD;
use crate::stored::{MessageRow, Stored, TurnRow};

pub(super) fn complaints(stored: &Stored) -> Vec<Complaint> {
    let mut found: Vec<Complaint> = stored
        .jobs
        .iter()
        .map(|job| Complaint::of(&job.id, format!("is left: {job:?}")))
        .collect();
    found.extend(indexed_once(stored));
    found.extend(consolidated_once(stored));
    found.extend(counted_once(stored));
    found
}

/// Whatever way a turn ended, its question and its whole answer were to be learned from, unless it was cancelled.
fn indexed_once(stored: &Stored) -> Vec<Complaint> {
    let mut chunks: BTreeMap<&str, usize> = BTreeMap::new();
    for memory in stored
        .memories
        .iter()
        .filter(|memory| memory.layer == "episodic")
    {
        for source in &memory.sources {
            *chunks.entry(source).or_default() += 1;
        }
    }
    let turns: BTreeMap<&str, &TurnRow> = stored
        .turns
        .iter()
        .map(|turn| (turn.id.as_str(), turn))
        .collect();
    let mut found = Vec::new();
    for message in &stored.messages {
        let status = turns
            .get(message.turn.as_str())
            .map(|turn| turn.status.as_str());
        let expected = usize::from(teaches(message) && status != Some("cancelled"));
        let count = chunks.get(message.id.as_str()).copied().unwrap_or_default();
        if count != expected {
            let text = format!(
                "message {} ({}) is {count} memories and not {expected}",
                message.seq, message.role
            );
            found.push(Complaint::of(&message.turn, text));
        }
    }
    found
}

fn teaches(message: &MessageRow) -> bool {
    let is_said = message.role == "user" || message.role == "assistant" && message.calls == 0;
    is_said && message.learnable && !message.partial
}

/// Each consolidation begins where the one before has ended, the last ends at the boundary, and behind the last answer nothing is due.
fn consolidated_once(stored: &Stored) -> Vec<Complaint> {
    let mut reached: BTreeMap<&str, i64> = BTreeMap::new();
    let mut found = Vec::new();
    for change in &stored.consolidations {
        let before = reached
            .insert(&change.session, change.to_seq)
            .unwrap_or_default();
        if change.from_seq < before || change.to_seq <= change.from_seq {
            let text = format!("consolidated up to {before}, then {change:?}");
            found.push(Complaint::of(&change.session, text));
        }
    }
    for session in &stored.sessions {
        let boundary = session.last_consolidated;
        let changed_to = reached
            .get(session.id.as_str())
            .copied()
            .unwrap_or_default();
        if changed_to > boundary {
            let text = format!("consolidated up to {changed_to}, the boundary is {boundary}");
            found.push(Complaint::of(&session.id, text));
        }
        let answered = stored
            .turns
            .iter()
            .filter(|turn| turn.session == session.id && turn.status == "completed")
            .filter_map(|turn| turn.message_id.as_deref())
            .filter_map(|id| stored.messages.iter().find(|message| message.id == id))
            .map(|message| message.seq)
            .max()
            .unwrap_or_default();
        if answered - boundary >= THRESHOLD {
            let text = format!("the last answer is {answered}, the boundary {boundary}");
            found.push(Complaint::of(&session.id, text));
        }
        if answered > session.indexed_seq {
            let text = format!(
                "answered up to {answered}, indexed up to {}",
                session.indexed_seq
            );
            found.push(Complaint::of(&session.id, text));
        }
    }
    found
}

/// What was known before the first turn was used by as many completed turns as were shown it.
fn counted_once(stored: &Stored) -> Vec<Complaint> {
    let mut shown: BTreeMap<&str, i64> = BTreeMap::new();
    for turn in stored
        .turns
        .iter()
        .filter(|turn| turn.status == "completed")
    {
        for memory in &turn.recalled {
            *shown.entry(memory).or_default() += 1;
        }
    }
    stored
        .memories
        .iter()
        .filter(|memory| memory.content == crate::PREFERENCE)
        .filter_map(|memory| {
            let shown = shown.get(memory.id.as_str()).copied().unwrap_or_default();
            let counted = memory.access_count;
            let text = format!("was shown {shown} times and counted {counted} times");
            (shown != counted).then(|| Complaint::of(&memory.id, text))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::assert_complains;
    use super::*;
    use crate::stored::{ConsolidationRow, JobRow, MemoryRow, SessionRow};

    fn message(id: &str, seq: i64, role: &str) -> MessageRow {
        MessageRow {
            id: id.to_owned(),
            session: "s".to_owned(),
            turn: "t".to_owned(),
            seq,
            role: role.to_owned(),
            learnable: true,
            ..MessageRow::default()
        }
    }

    fn chunk(id: &str, source: &str) -> MemoryRow {
        MemoryRow {
            id: id.to_owned(),
            layer: "episodic".to_owned(),
            sources: vec![source.to_owned()],
            ..MemoryRow::default()
        }
    }

    fn consolidation(from_seq: i64, to_seq: i64) -> ConsolidationRow {
        ConsolidationRow {
            session: "s".to_owned(),
            from_seq,
            to_seq,
        }
    }

    fn stored() -> Stored {
        Stored {
            turns: vec![TurnRow {
                id: "t".to_owned(),
                session: "s".to_owned(),
                status: "completed".to_owned(),
                message_id: Some("b".to_owned()),
                recalled: vec!["p".to_owned()],
                ..TurnRow::default()
            }],
            messages: vec![message("a", 1, "user"), message("b", 2, "assistant")],
            sessions: vec![SessionRow {
                id: "s".to_owned(),
                message_count: 2,
                last_consolidated: 2,
                indexed_seq: 2,
                ..SessionRow::default()
            }],
            memories: vec![
                chunk("1", "a"),
                chunk("2", "b"),
                MemoryRow {
                    id: "p".to_owned(),
                    content: crate::PREFERENCE.to_owned(),
                    access_count: 1,
                    ..MemoryRow::default()
                },
            ],
            consolidations: vec![consolidation(0, 1), consolidation(1, 2)],
            ..Stored::default()
        }
    }

    fn changed(change: impl FnOnce(&mut Stored)) -> Vec<Complaint> {
        let mut stored = stored();
        change(&mut stored);
        complaints(&stored)
    }

    #[test]
    fn what_is_done_once_is_right() {
        assert_eq!(complaints(&stored()), []);
        assert_eq!(
            changed(|s| {
                s.turns[0].status = "cancelled".to_owned();
                s.memories.clear();
            }),
            []
        );
    }

    #[test]
    fn a_job_that_is_left_is_found() {
        assert_complains(&changed(|s| s.jobs.push(JobRow::default())), "is left");
    }

    #[test]
    fn a_message_indexed_twice_or_not_and_a_cancelled_one_are_found() {
        assert_complains(
            &changed(|s| s.memories.push(chunk("3", "a"))),
            "is 2 memories",
        );
        assert_complains(&changed(|s| drop(s.memories.remove(1))), "is 0 memories");
        assert_complains(
            &changed(|s| s.turns[0].status = "cancelled".to_owned()),
            "is 1 memories and not 0",
        );
        assert_complains(
            &changed(|s| s.sessions[0].indexed_seq = 1),
            "indexed up to 1",
        );
    }

    #[test]
    fn a_stretch_consolidated_twice_or_not_at_all_is_found() {
        let twice = changed(|s| s.consolidations.push(consolidation(1, 2)));
        assert_complains(&twice, "consolidated up to 2, then");
        let behind = changed(|s| s.sessions[0].last_consolidated = 1);
        assert_complains(&behind, "the boundary is 1");
        let due = changed(|s| s.messages[1].seq = 2 + THRESHOLD);
        assert_complains(&due, "the last answer is");
    }

    #[test]
    fn a_use_counted_twice_or_not_is_found() {
        assert_complains(
            &changed(|s| s.memories[2].access_count = 2),
            "counted 2 times",
        );
        assert_complains(
            &changed(|s| s.memories[2].access_count = 0),
            "counted 0 times",
        );
    }
}
