//! How a change is undone.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::values;
use super::{Change, ChangeKind, Item, Op, Values, before};
use crate::ids::{MemoryId, Timestamp};
use crate::memory::{Memory, Source, State};

/// How a change is undone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Undoing {
    /// Memories to be removed for good, in the version that was seen.
    pub removed: Vec<Memory>,
    /// Memories to be put back to what they were: as they were seen, and as they are to be.
    pub restored: Vec<(Memory, Memory)>,
}

/// How a change is undone at a time, given the memories that it touched as they are now (without those that are gone) and the items of later
/// changes that still stand. What was made is removed; what was edited or said again gets its values back; what a key decides follows by itself;
/// what was archived is told again, and fades anew, unless it is no longer archived anyway.
///
/// # Errors
/// The memories that were edited since: to undo the change would undo that too. Nothing is to be undone then.
pub fn undo(
    change: &Change,
    now: &[Memory],
    later: &[Item],
    at: Timestamp,
) -> Result<Undoing, Vec<MemoryId>> {
    let now: BTreeMap<MemoryId, &Memory> = now.iter().map(|m| (m.id, m)).collect();
    // An import is undone by withdrawing its messages: what else says the same stays.
    let stands_against = |op: Op| match change.kind {
        ChangeKind::Import => op == Op::Updated,
        _ => op.is_an_edit(),
    };
    let edited = |id: MemoryId| {
        later
            .iter()
            .any(|item| item.memory == id && stands_against(item.op))
    };
    let mut undoing = Undoing::default();
    let mut conflicts = Vec::new();
    for item in &change.items {
        let Some(memory) = now.get(&item.memory) else {
            continue;
        };
        if item.op.is_of_standing() {
            let stood = stood_before(memory, item, at);
            undoing
                .restored
                .extend(stood.map(|stood| ((*memory).clone(), stood)));
            continue;
        }
        let decided_by_key = !item.op.is_an_edit() && item.op != Op::Created && !ended_apart(item);
        if decided_by_key {
            continue;
        }
        // What ended it once is gone by now: the end is final, whatever is undone.
        let successor = item.before.get("superseded_by").and_then(Value::as_str);
        let is_gone = |id: &str| !now.keys().any(|known| known.to_string() == id);
        if ended_apart(item) && successor.is_some_and(is_gone) {
            continue;
        }
        if edited(item.memory) {
            conflicts.push(item.memory);
        } else if item.op == Op::Created {
            undoing.removed.push((*memory).clone());
        } else {
            let restored = restored(memory, item);
            undoing.restored.push(((*memory).clone(), restored));
        }
    }
    if conflicts.is_empty() {
        Ok(undoing)
    } else {
        Err(conflicts)
    }
}

/// A memory as it stood before an item archived or restored it; none when it stands otherwise by now.
fn stood_before(memory: &Memory, item: &Item, at: Timestamp) -> Option<Memory> {
    let now = values(memory);
    let of_standing = |values: &Values| -> Values {
        let named = ["state", "layer"].into_iter();
        named
            .filter_map(|name| Some((name.to_owned(), values.get(name)?.clone())))
            .collect()
    };
    let (was, is) = (of_standing(&item.before), of_standing(&item.after));
    if was.is_empty() || is.iter().any(|(name, value)| now.get(name) != Some(value)) {
        return None;
    }
    let mut kept = item.clone();
    kept.before = was;
    let mut old = before(memory, &kept);
    old.version = memory.version + 1;
    if item.op == Op::Archived {
        old.last_access = memory.last_access.max(at);
    }
    Some(old)
}

/// Whether an item ended a memory for good, otherwise than by what is said of its key: as the echo of one that was edited, or as what one had
/// ended that left its key. Where the end is not named, as in what was kept before it was a value of its own, it is known by its state, with nothing in its place.
fn ended_apart(item: &Item) -> bool {
    let is = |name| item.after.get(name).is_some_and(|value| !value.is_null());
    item.op == Op::Closed && (is("ended_at") || is("state") && !is("superseded_by"))
}

/// A memory with the values that an item took from it. Sources that the item added go, others stay; how it stands with its key is left as it is.
fn restored(memory: &Memory, item: &Item) -> Memory {
    let mut kept = item.clone();
    let had_sources = kept.before.remove("sources");
    let waited = State::Quarantined.as_str();
    if kept.before.get("state").and_then(Value::as_str) == Some(waited) {
        // What waits stands apart from its key, whatever became of it while it did not.
        for derived in ["valid_to", "superseded_by", "ended_at"] {
            kept.before.insert(derived.to_owned(), Value::Null);
        }
    } else if ended_apart(item) {
        // What was kept before the end was a value of its own does not name it.
        kept.before.entry("ended_at").or_insert(Value::Null);
    } else {
        for derived in ["valid_to", "superseded_by"] {
            kept.before.remove(derived);
        }
        if memory.state == State::Superseded {
            kept.before.remove("state");
        }
    }
    let mut old = before(memory, &kept);
    if let Some(had) = had_sources {
        let read = |value: &Value| -> Vec<Source> {
            serde_json::from_value(value.clone()).unwrap_or_default()
        };
        let had = read(&had);
        let added = item.after.get("sources").map(read).unwrap_or_default();
        old.sources
            .retain(|source| had.contains(source) || !added.contains(source));
    }
    old.version = memory.version + 1;
    old
}
