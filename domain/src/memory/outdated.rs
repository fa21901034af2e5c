//! What was said word for word and is over with the fact that was learned from it (B13).
//!
//! A statement that no rule knows ("Finance has agreed to 300k for us") has no key, so nothing that follows it ends it. But the fact that a model reads from
//! it has one ("The budget is 300k"). When that fact ends, the chunk ends with it, if it says nothing else. That is read from the words whenever chunks
//! are told, and nothing of it is stored: when the fact holds again, or is told as of a time at which it held, so does the chunk.

use std::collections::{HashMap, HashSet};

use super::extraction::{adds_nothing, grounded_in, says_only, shared};
use super::prompt::spoken;
use super::recall::{Moment, Standing};
use super::sentence::sentences;
use super::{Layer, Memory, State, rules};
use crate::ids::{MemoryId, MessageId, Timestamp};

/// Words that join what may be another statement, in scripts that part words.
#[rustfmt::skip]
const JOINING: &[&str] = &[
    "after", "although", "because", "before", "if", "or", "since", "so", "then", "though", "unless", "until", "when", "where", "whereas", "which",
    "while", "who", "whose",
];
/// The same in Chinese, and the comma of lists.
const CHINESE_JOINING: &[&str] = &[
    "而且", "因为", "所以", "如果", "以及", "但", "并", "和", "还", "、",
];

/// How those of some memories stand that are chunks of which nothing holds any more, by the time that is judged by. `memories` is all that was learned from
/// the messages behind these chunks.
///
/// A chunk is over when each of its clauses says what a fact of its message does that has ended, and nothing else; none holds that it tells; and no other chunk of
/// the message tells the fact better. What has a key stands by itself.
pub fn outdated<'m>(
    memories: impl IntoIterator<Item = &'m Memory>,
    moment: &Moment,
) -> HashMap<MemoryId, Standing> {
    let mut by_message: HashMap<MessageId, Vec<&Memory>> = HashMap::new();
    for memory in memories {
        let messages: HashSet<MessageId> = memory.sources.iter().map(|s| s.message_id).collect();
        for message in messages {
            by_message.entry(message).or_default().push(memory);
        }
    }
    let mut out = HashMap::new();
    for learned in by_message.values() {
        let (chunks, facts): (Vec<&Memory>, Vec<&Memory>) =
            (learned.iter()).partition(|memory| memory.layer == Layer::Episodic);
        let facts = facts.into_iter().filter(|m| m.state != State::Quarantined);
        let (ended, holding): (Vec<&Memory>, Vec<&Memory>) =
            facts.partition(|fact| moment.ended(&Standing::from(*fact)));
        let unkeyed = chunks.iter().filter(|chunk| chunk.key.is_none());
        for chunk in unkeyed {
            let of_it: Vec<&Memory> = (ended.iter().copied())
                .filter(|fact| is_read_from(fact, chunk, &chunks))
                .collect();
            let holds =
                |fact: &&Memory| tells_in_part(chunk, fact) && is_read_from(fact, chunk, &chunks);
            if holding.iter().any(holds) {
                continue;
            }
            if let Some(end) = end(chunk, &of_it) {
                let standing = Standing {
                    state: State::Superseded,
                    valid_to: Some(end),
                    ..Standing::from(*chunk)
                };
                out.insert(chunk.id, standing);
            }
        }
    }
    out
}

/// Whether no other chunk of the message tells the fact better, as the one does that states its key.
fn is_read_from(fact: &Memory, chunk: &Memory, chunks: &[&Memory]) -> bool {
    let told = shared(&chunk.content, &fact.content);
    chunks.iter().filter(|other| other.id != chunk.id).all(|o| {
        let states = o.key.is_some() && o.key == fact.key;
        !states && shared(&o.content, &fact.content) <= told
    })
}

/// Whether a fact may have been read from a chunk, which may say more.
fn tells_in_part(chunk: &Memory, fact: &Memory) -> bool {
    let speaker = chunk.speaker.as_deref();
    grounded_in(&spoken(speaker, &chunk.content), &fact.content)
}

/// When the last of the facts ended, if they are all that a chunk says.
fn end(chunk: &Memory, ended: &[&Memory]) -> Option<Timestamp> {
    let speaker = chunk.speaker.as_deref();
    let statements: Vec<&str> = ended.iter().map(|fact| fact.content.as_str()).collect();
    let mut left = ended.to_vec();
    let mut last = None;
    for (opens, clause) in clauses(&chunk.content) {
        let says = |fact: &&Memory| says_only(clause, opens, speaker, &fact.content);
        if let Some(at) = left.iter().position(says) {
            // One fact is not said twice: what resembles it is something else.
            let fact = left.swap_remove(at);
            last = last.max(Some(fact.valid_to.unwrap_or(fact.valid_from)));
        } else if !adds_nothing(clause, &statements) {
            return None;
        }
    }
    last
}

/// The clauses of a text, with whether each opens a sentence.
fn clauses(text: &str) -> impl Iterator<Item = (bool, &str)> {
    sentences(text).into_iter().flat_map(|sentence| {
        let clauses = rules::texts(sentence).flat_map(parted);
        let said = clauses.filter(|clause| clause.chars().any(char::is_alphanumeric));
        said.enumerate().map(|(nth, clause)| (nth == 0, clause))
    })
}

/// A clause, parted where another statement may begin within it.
fn parted(clause: &str) -> Vec<&str> {
    let mut cuts: Vec<usize> = (CHINESE_JOINING.iter())
        .flat_map(|word| clause.match_indices(word).map(|(at, _)| at))
        .collect();
    let mut at = 0;
    for word in clause.split(' ') {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if JOINING
            .iter()
            .any(|joining| bare.eq_ignore_ascii_case(joining))
        {
            cuts.push(at);
        }
        at += word.len() + 1;
    }
    cuts.sort_unstable();
    let mut out = Vec::new();
    let mut start = 0;
    for cut in cuts {
        out.push(&clause[start..cut]);
        start = cut;
    }
    out.push(&clause[start..]);
    out
}

#[cfg(test)]
mod tests;
