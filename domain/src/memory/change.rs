//! Changes of what is remembered, so that each can be listed and undone as a whole.
//!
//! A change names the memories that it touched, each with what became of it and the values that it had before and has after; of what was
//! made or forgotten no values are kept. What stands or falls with a key ([`super::conflict`]) is not undone by itself: it follows from what is
//! said of the key once the rest is undone.

mod fields;
mod former;
mod revision;
mod undo;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Memory, conflict};
use crate::ids::{ChangeId, MemoryId, SessionId, Timestamp};
use crate::session::Message;

pub use fields::{before, difference};
pub use former::{former, is_said_again};
pub use revision::{Revision, Setting, Standing, echoed, faded, leaves_its_key, released, revise};
pub use undo::{Undoing, undo};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A caller gave memories.
    Add,
    /// A person changed one.
    Edit,
    /// A person forgot one.
    Forget,
    /// Messages were imported.
    Import,
    /// What was said in a conversation took the place of what was remembered.
    Index,
    /// Messages behind the boundary were taken into semantic memory.
    Consolidation,
    /// What was not used for long was archived.
    Archive,
    /// What was archived was shown again, and holds again by it.
    Use,
    /// Another change was undone.
    Revert,
}

impl ChangeKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Add,
        Self::Edit,
        Self::Forget,
        Self::Import,
        Self::Index,
        Self::Consolidation,
        Self::Archive,
        Self::Use,
        Self::Revert,
    ];

    /// The name used on the wire and in the stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Edit => "edit",
            Self::Forget => "forget",
            Self::Import => "import",
            Self::Index => "index",
            Self::Consolidation => "consolidation",
            Self::Archive => "archive",
            Self::Use => "use",
            Self::Revert => "revert",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Whether it can be undone. What was forgotten is gone, and so is what a revert removed.
    pub fn can_be_reverted(self) -> bool {
        !matches!(self, Self::Forget | Self::Revert)
    }
}

/// What became of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// It was made.
    Created,
    /// Somebody changed it.
    Updated,
    /// It was said once more.
    Strengthened,
    /// Another value took its place.
    Superseded,
    /// It ended, and nothing took its place.
    Closed,
    /// It contradicts what is better trusted.
    Refused,
    /// It holds again, or longer.
    Reopened,
    /// It had faded, and is told on request alone.
    Archived,
    /// It is told again.
    Restored,
    /// It was removed.
    Removed,
}

impl Op {
    /// Every outcome.
    pub const ALL: [Self; 10] = [
        Self::Created,
        Self::Updated,
        Self::Strengthened,
        Self::Superseded,
        Self::Closed,
        Self::Refused,
        Self::Reopened,
        Self::Archived,
        Self::Restored,
        Self::Removed,
    ];

    /// The name used on the wire and in the stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Strengthened => "strengthened",
            Self::Superseded => "superseded",
            Self::Closed => "closed",
            Self::Refused => "refused",
            Self::Reopened => "reopened",
            Self::Archived => "archived",
            Self::Restored => "restored",
            Self::Removed => "removed",
        }
    }

    /// The outcome of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.as_str() == name)
    }

    /// Whether it changed what the memory says, so that an earlier change cannot be undone any more without losing that.
    fn is_an_edit(self) -> bool {
        matches!(self, Self::Updated | Self::Strengthened)
    }

    /// Whether it changed only whether the memory is told.
    fn is_of_standing(self) -> bool {
        matches!(self, Self::Archived | Self::Restored)
    }
}

impl From<conflict::Outcome> for Op {
    fn from(outcome: conflict::Outcome) -> Self {
        match outcome {
            conflict::Outcome::Superseded => Self::Superseded,
            conflict::Outcome::Closed => Self::Closed,
            conflict::Outcome::Refused => Self::Refused,
            conflict::Outcome::Reopened => Self::Reopened,
        }
    }
}

/// Values of a memory by the names of the API.
pub type Values = Map<String, Value>;

/// What a change did to one memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The memory.
    pub memory: MemoryId,
    /// What became of it.
    pub op: Op,
    /// The version it had then.
    pub version: i64,
    /// The values that it lost.
    pub before: Values,
    /// The values in their place.
    pub after: Values,
}

impl Item {
    /// Of a memory that was made.
    pub fn created(memory: &Memory) -> Self {
        Self::bare(memory.id, Op::Created, memory.version)
    }

    /// Of a memory that is gone; it has no version any more.
    pub fn removed(memory: MemoryId) -> Self {
        Self::bare(memory, Op::Removed, 0)
    }

    fn bare(memory: MemoryId, op: Op, version: i64) -> Self {
        Self {
            memory,
            op,
            version,
            before: Values::new(),
            after: Values::new(),
        }
    }

    /// Of a memory that was changed.
    pub fn changed(before: &Memory, after: &Memory, op: Op) -> Self {
        let (lost, new) = difference(before, after);
        Self {
            memory: after.id,
            op,
            version: after.version,
            before: lost,
            after: new,
        }
    }
}

/// Each memory once: of what happened to one in the same change, the first says what it was, and what came of it is added. What a memory that
/// was made came to is not apart from its making.
pub fn merged(items: Vec<Item>) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        let Some(first) = out.iter_mut().find(|first| first.memory == item.memory) else {
            out.push(item);
            continue;
        };
        if first.op != Op::Created {
            for (name, value) in item.before {
                first.before.entry(name).or_insert(value);
            }
            first.after.extend(item.after);
        }
        first.version = first.version.max(item.version);
    }
    out
}

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Its id.
    pub id: ChangeId,
    /// What was done.
    pub kind: ChangeKind,
    /// The session it came from or was made for.
    pub session_id: Option<SessionId>,
    /// Of a consolidation the boundary before and after, of an import the numbers of the last message before it and of its last.
    pub range: Option<(i64, i64)>,
    /// When.
    pub created_at: Timestamp,
    /// The change that undid it.
    pub reverted_by: Option<ChangeId>,
    /// The change that it undid.
    pub reverts: Option<ChangeId>,
    /// What it did, memory by memory.
    pub items: Vec<Item>,
}

impl Change {
    /// A change that nothing has undone.
    pub fn new(id: ChangeId, kind: ChangeKind, created_at: Timestamp, items: Vec<Item>) -> Self {
        Self {
            id,
            kind,
            session_id: None,
            range: None,
            created_at,
            reverted_by: None,
            reverts: None,
            items,
        }
    }

    /// The same, of a session.
    #[must_use]
    pub fn of_session(mut self, session: Option<SessionId>) -> Self {
        self.session_id = session;
        self
    }

    /// The same, of a session's messages behind the first number up to the second.
    #[must_use]
    pub fn over(mut self, from: i64, to: i64) -> Self {
        self.range = Some((from, to));
        self
    }

    /// That a caller gave memories: of the session that all of them were given for.
    pub fn adding<'m>(
        id: ChangeId,
        given: impl IntoIterator<Item = &'m Memory>,
        now: Timestamp,
        items: Vec<Item>,
    ) -> Self {
        let mut sessions = given.into_iter().map(|memory| memory.session_id);
        let first = sessions.next().flatten();
        let session = first.filter(|first| sessions.all(|other| other == Some(*first)));
        Self::new(id, ChangeKind::Add, now, items).of_session(session)
    }

    /// That messages were imported; none if there are none. What it did to memories shows once they are indexed.
    pub fn importing(id: ChangeId, messages: &[Message], now: Timestamp) -> Option<Self> {
        let (first, last) = (messages.first()?, messages.last()?);
        let change = Self::new(id, ChangeKind::Import, now, Vec::new());
        let session = Some(first.session_id);
        Some(change.of_session(session).over(first.seq - 1, last.seq))
    }

    /// That messages of a session were indexed, if something that was remembered stands otherwise because of it: that, and the chunks that ended
    /// it. `settled` is all that stands otherwise.
    pub fn indexing(
        id: ChangeId,
        session: SessionId,
        range: (i64, i64),
        now: Timestamp,
        added: &[Memory],
        settled: Vec<Item>,
    ) -> Option<Self> {
        let known: Vec<Item> = settled
            .into_iter()
            .filter(|item| !added.iter().any(|memory| memory.id == item.memory))
            .collect();
        if known.is_empty() {
            return None;
        }
        let ended = |memory: &&Memory| {
            let id = memory.id.to_string();
            known
                .iter()
                .any(|item| item.after.get("superseded_by") == Some(&Value::String(id.clone())))
        };
        let mut items: Vec<Item> = added.iter().filter(ended).map(Item::created).collect();
        items.extend(known);
        let change = Self::new(id, ChangeKind::Index, now, items);
        Some(change.of_session(Some(session)).over(range.0, range.1))
    }
}

#[cfg(test)]
mod tests;
