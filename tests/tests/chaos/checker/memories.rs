//! A memory that was confirmed is there, once, until it is forgotten; what is forgotten is gone for good. This holds from the confirmation on, at
//! every replica.

use std::collections::{BTreeMap, BTreeSet};

use super::Complaint;
use crate::history::{Entry, What};
use crate::stored::{MemoryRow, Stored};

/// What the clients know of a memory.
#[derive(Default)]
struct Known<'a> {
    content: &'a str,
    tries_to_forget: usize,
    forgotten: bool,
}

pub(super) fn complaints(history: &[Entry], stored: &Stored) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut contents: BTreeMap<&str, &str> = BTreeMap::new();
    let mut ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut known: BTreeMap<&str, Known> = BTreeMap::new();
    for entry in history {
        match &entry.what {
            What::Given { key, content, .. } => {
                contents.insert(key, content);
            }
            What::Kept { key, memory } => {
                ids.entry(key).or_default().insert(memory);
                let content = contents.get(key.as_str()).copied().unwrap_or_default();
                known.entry(memory).or_default().content = content;
            }
            What::ForgetAsked { memory } => {
                known.entry(memory).or_default().tries_to_forget += 1;
            }
            What::Forgotten { memory, status } => {
                let its = known.entry(memory).or_default();
                if *status == 404 && its.tries_to_forget < 2 {
                    found.push(Complaint::of(memory, "was lost before it was forgotten"));
                }
                its.forgotten = true;
            }
            What::Looked { memory, status } => {
                let its = known.entry(memory).or_default();
                let is_wrong = match status {
                    200 => its.forgotten,
                    404 => its.tries_to_forget == 0,
                    0 | 503 => false,
                    _ => true,
                };
                if is_wrong {
                    let text = format!("looked for, and the answer was {status}");
                    found.push(Complaint::of(memory, text));
                }
            }
            _ => {}
        }
    }
    for (key, ids) in ids.iter().filter(|(_, ids)| ids.len() > 1) {
        found.push(Complaint::of(key, format!("one key, kept as {ids:?}")));
    }
    let rows: BTreeMap<&str, &MemoryRow> = stored
        .memories
        .iter()
        .map(|memory| (memory.id.as_str(), memory))
        .collect();
    for (memory, its) in &known {
        let row = rows.get(memory);
        let is_wrong = match row {
            Some(row) => its.forgotten || row.content != its.content,
            None => its.tries_to_forget == 0,
        };
        if is_wrong {
            let text = format!(
                "kept {:?}, forgotten: {}, stored: {row:?}",
                its.content, its.forgotten
            );
            found.push(Complaint::of(memory, text));
        }
    }
    found.extend(said_once(&contents, stored));
    found
}

/// However often it was tried, what was given is one memory.
fn said_once(contents: &BTreeMap<&str, &str>, stored: &Stored) -> Vec<Complaint> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for memory in &stored.memories {
        *count.entry(&memory.content).or_default() += 1;
    }
    contents
        .iter()
        .filter_map(|(key, content)| {
            let count = count.get(content).copied().unwrap_or_default();
            (count > 1).then(|| Complaint::of(key, format!("{count} memories say {content:?}")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::assert_complains;
    use super::*;
    use crate::history::of;

    fn given() -> What {
        What::Given {
            key: "k".to_owned(),
            user: "u".to_owned(),
            content: "words".to_owned(),
        }
    }

    fn kept(memory: &str) -> What {
        What::Kept {
            key: "k".to_owned(),
            memory: memory.to_owned(),
        }
    }

    fn looked(status: u16) -> What {
        What::Looked {
            memory: "m".to_owned(),
            status,
        }
    }

    fn forget() -> What {
        What::ForgetAsked {
            memory: "m".to_owned(),
        }
    }

    fn forgotten(status: u16) -> What {
        What::Forgotten {
            memory: "m".to_owned(),
            status,
        }
    }

    fn stored(ids: &[&str]) -> Stored {
        let memories = ids.iter().map(|id| MemoryRow {
            id: (*id).to_owned(),
            content: "words".to_owned(),
            ..MemoryRow::default()
        });
        Stored {
            memories: memories.collect(),
            ..Stored::default()
        }
    }

    fn judged(history: impl IntoIterator<Item = What>, ids: &[&str]) -> Vec<Complaint> {
        complaints(&of(history), &stored(ids))
    }

    #[test]
    fn kept_tried_again_and_forgotten_is_right() {
        let there = [given(), given(), kept("m"), looked(200), looked(503)];
        assert_eq!(judged(there.clone(), &["m"]), []);
        let gone = [forget(), forget(), forgotten(404), looked(404)];
        assert_eq!(judged(there.clone().into_iter().chain(gone), &[]), []);
        // Asked for and never confirmed: either is right.
        let asked = there.into_iter().chain([forget(), looked(404)]);
        assert_eq!(judged(asked.clone(), &[]), []);
        assert_eq!(judged(asked, &["m"]), []);
    }

    #[test]
    fn a_lost_a_doubled_and_a_returned_memory_are_found() {
        let there = [given(), kept("m")];
        assert_complains(&judged(there.clone(), &[]), "stored: None");
        assert_complains(&judged(there.clone(), &["m", "m2"]), "2 memories say");
        let renamed = there.clone().into_iter().chain([kept("m2")]);
        assert_complains(&judged(renamed, &["m", "m2"]), "one key, kept as");
        let forgotten_once = there.clone().into_iter().chain([forget(), forgotten(204)]);
        assert_complains(&judged(forgotten_once.clone(), &["m"]), "forgotten: true");
        let seen = forgotten_once.chain([looked(200)]);
        assert_complains(&judged(seen, &[]), "the answer was 200");
        let unseen = there.clone().into_iter().chain([looked(404)]);
        assert_complains(&judged(unseen, &["m"]), "the answer was 404");
        let lost = there.into_iter().chain([forget(), forgotten(404)]);
        assert_complains(&judged(lost, &[]), "was lost before");
    }
}
