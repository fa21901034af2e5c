//! Changes of what is remembered, so that each can be listed and undone as a whole.
//!
//! A change names the memories that it touched, each with what became of it and the values that it had before and has after; of what was
//! made or forgotten no values are kept. What stands or falls with a key ([`super::conflict`]) is not undone by itself: it follows from what is
//! said of the key once the rest is undone.

mod former;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Kind, Layer, Memory, Scope, Source, State, Trust, conflict, forgetting};
use crate::ids::{ChangeId, MemoryId, SessionId, Timestamp};
use crate::session::Message;

pub use former::{former, is_said_again};

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

fn values(memory: &Memory) -> Values {
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
    if ended_apart(item) {
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

/// What a person changes of a memory; what is none stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Revision {
    /// What it says.
    pub content: Option<String>,
    /// Where it applies.
    pub scope: Option<Scope>,
    /// What it is.
    pub kind: Option<Kind>,
    /// 1–5.
    pub importance: Option<u8>,
    /// Never fades.
    pub pinned: Option<bool>,
    /// What it speaks of; none within when it is to speak of nothing in particular.
    pub key: Option<Setting<String>>,
    /// When it is to be deleted; none within when never.
    pub expires_at: Option<Setting<Timestamp>>,
    /// Whether it is told.
    pub state: Option<Standing>,
}

/// A value that may be taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting<T> {
    /// It is to be this.
    To(T),
    /// There is to be none.
    Nothing,
}

impl<T> From<Setting<T>> for Option<T> {
    fn from(setting: Setting<T>) -> Self {
        match setting {
            Setting::To(value) => Some(value),
            Setting::Nothing => None,
        }
    }
}

/// What a person can make of a memory's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Told: confirmed, or brought back.
    Current,
    /// Kept, and told on request.
    Archived,
}

/// A memory that said the same as one that was edited, from the same messages in another layer: it stands no longer, and nothing that is said
/// of a key reopens it. With the key of the edited one it is left to the key.
pub fn echoed(echo: &Memory, edited: &Memory, now: Timestamp) -> Option<(Memory, Item)> {
    if echo.key.is_some() && echo.key == edited.key {
        return None;
    }
    let mut ended = echo.clone();
    ended.state = State::Superseded;
    ended.valid_to = Some(now.max(echo.valid_from));
    ended.superseded_by = None;
    ended.ended_at = ended.valid_to;
    ended.version += 1;
    let item = Item::changed(echo, &ended, Op::Closed);
    Some((ended, item))
}

/// Whether an edit takes a memory off its key without calling wrong that it spoke of it: by name, or in words that still do, among other things. What it
/// had ended stays ended then, as if it had been forgotten. An edit that speaks of something else instead, or names another key, corrects what never was so.
pub fn leaves_its_key(before: &Memory, revision: &Revision, after: &Memory) -> bool {
    let (Some(key), None) = (&before.key, &after.key) else {
        return false;
    };
    revision.key == Some(Setting::Nothing) || conflict::states(key, &after.content)
}

/// What a memory had ended that speaks of the key no more: it stays ended.
pub fn released(ended: &Memory) -> (Memory, Item) {
    let mut released = ended.clone();
    released.superseded_by = None;
    released.ended_at = ended.valid_to;
    released.version += 1;
    let item = Item::changed(ended, &released, Op::Closed);
    (released, item)
}

/// A memory that has faded, archived; and what is kept of it.
pub fn faded(memory: &Memory) -> (Memory, Item) {
    let mut archived = memory.clone();
    forgetting::archive(&mut archived);
    archived.version += 1;
    let item = Item::changed(memory, &archived, Op::Archived);
    (archived, item)
}

/// The new version of a memory. Whoever words it anew, or confirms one that waited for it, vouches for it: it is then believed like the
/// person's own words.
///
/// A key that the rules had read from the content follows the content, unless the revision names one. One that says something else of its key
/// than before says so from now on: before, it held what it said then.
pub fn revise(memory: &Memory, revision: Revision, now: Timestamp) -> Memory {
    let mut new = memory.clone();
    if let Some(content) = revision.content {
        if content != memory.content {
            // Whoever words it says it.
            new.trust = Trust::User;
        }
        if new.key == conflict::key_of(memory) {
            new.content = content;
            new.key = conflict::key_of(&new);
        } else {
            new.content = content;
        }
    }
    new.scope = revision.scope.unwrap_or(new.scope);
    new.kind = revision.kind.unwrap_or(new.kind);
    new.importance = revision.importance.unwrap_or(new.importance);
    new.pinned = revision.pinned.unwrap_or(new.pinned);
    if let Some(key) = revision.key {
        new.key = key.into();
    }
    if let Some(expiry) = revision.expires_at {
        new.expires_at = expiry.into();
    }
    if let (Some(key), State::Current) = (&memory.key, memory.state)
        && new.key == memory.key
        && conflict::value(key, &memory.content).contradicts(&conflict::value(key, &new.content))
    {
        new.valid_from = now.max(memory.valid_from);
    }
    match (revision.state, new.state) {
        (Some(Standing::Current), State::Quarantined) => {
            new.state = State::Current;
            new.trust = Trust::User;
        }
        (Some(Standing::Current), State::Archived) => forgetting::restore(&mut new, now),
        (Some(Standing::Archived), State::Current | State::Quarantined) => {
            forgetting::archive(&mut new);
        }
        // What is superseded stands as its key decides.
        _ => {}
    }
    new.version += 1;
    new
}

#[cfg(test)]
mod tests;
