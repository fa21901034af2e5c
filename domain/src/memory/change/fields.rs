//! The values of a memory that a change keeps of its past.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Item, Values};
use crate::ids::{MemoryId, Timestamp};
use crate::memory::{Kind, Layer, Memory, Scope, Source, State, Trust};

/// What of a memory is kept of its past.
#[derive(Serialize, Deserialize)]
struct Fields {
    content: String,
    scope: Scope,
    kind: Kind,
    layer: Layer,
    state: State,
    importance: u8,
    confidence: f64,
    trust: Trust,
    pinned: bool,
    key: Option<String>,
    valid_from: Timestamp,
    valid_to: Option<Timestamp>,
    superseded_by: Option<MemoryId>,
    ended_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    sources: Vec<Source>,
}

impl From<&Memory> for Fields {
    fn from(memory: &Memory) -> Self {
        Self {
            content: memory.content.clone(),
            scope: memory.scope,
            kind: memory.kind,
            layer: memory.layer,
            state: memory.state,
            importance: memory.importance,
            confidence: memory.confidence,
            trust: memory.trust,
            pinned: memory.pinned,
            key: memory.key.clone(),
            valid_from: memory.valid_from,
            valid_to: memory.valid_to,
            superseded_by: memory.superseded_by,
            ended_at: memory.ended_at,
            expires_at: memory.expires_at,
            sources: memory.sources.clone(),
        }
    }
}

impl Fields {
    fn put_into(self, memory: &mut Memory) {
        memory.content = self.content;
        memory.scope = self.scope;
        memory.kind = self.kind;
        memory.layer = self.layer;
        memory.state = self.state;
        memory.importance = self.importance;
        memory.confidence = self.confidence;
        memory.trust = self.trust;
        memory.pinned = self.pinned;
        memory.key = self.key;
        memory.valid_from = self.valid_from;
        memory.valid_to = self.valid_to;
        memory.superseded_by = self.superseded_by;
        memory.ended_at = self.ended_at;
        memory.expires_at = self.expires_at;
        memory.sources = self.sources;
    }
}

pub(super) fn values(memory: &Memory) -> Values {
    match serde_json::to_value(Fields::from(memory)) {
        Ok(Value::Object(values)) => values,
        _ => Values::new(),
    }
}

/// The values in which two states of a memory differ: those of the first, and those of the second.
pub fn difference(before: &Memory, after: &Memory) -> (Values, Values) {
    let (old, new) = (values(before), values(after));
    let differ = |from: &Values, other: &Values| -> Values {
        from.iter()
            .filter(|(name, value)| other.get(*name) != Some(value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    (differ(&old, &new), differ(&new, &old))
}

/// A memory as it was before the item, if nothing but that item had changed it. Unknown or unreadable values are passed over.
pub fn before(memory: &Memory, item: &Item) -> Memory {
    let mut old = memory.clone();
    let mut all = values(memory);
    for (name, value) in &item.before {
        all.insert(name.clone(), value.clone());
    }
    if let Ok(fields) = serde_json::from_value::<Fields>(Value::Object(all)) {
        fields.put_into(&mut old);
    }
    old.version = (item.version - 1).max(1);
    old
}
