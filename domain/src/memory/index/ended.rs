//! Which messages have a fact that has ended: what they say word for word may be over with it.

use std::collections::HashMap;

use super::Entry;
use crate::ids::MessageId;
use crate::memory::Layer;

/// How many ended facts were learned from each message that has any.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended(HashMap<MessageId, u32>);

impl Ended {
    /// Counts an entry, if it is an ended fact.
    pub(super) fn hold(&mut self, entry: &Entry) {
        if is_ended(entry) {
            for source in &entry.sources {
                *self.0.entry(source.message_id).or_default() += 1;
            }
        }
    }

    /// Counts an entry that was held no longer.
    pub(super) fn release(&mut self, entry: &Entry) {
        if !is_ended(entry) {
            return;
        }
        for source in &entry.sources {
            if let Some(held) = self.0.get_mut(&source.message_id) {
                *held -= 1;
                if *held == 0 {
                    self.0.remove(&source.message_id);
                }
            }
        }
    }

    /// Whether the message has one.
    pub(super) fn has(&self, message: MessageId) -> bool {
        self.0.contains_key(&message)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        // A table is half full.
        2 * self.0.capacity() * size_of::<(MessageId, u32)>()
    }
}

fn is_ended(entry: &Entry) -> bool {
    entry.layer != Layer::Episodic && entry.standing().has_ended()
}
