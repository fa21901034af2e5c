//! What becomes of a memory that a person edits, of what it said the same as or had ended, and of one that fades.

use super::{Item, Op};
use crate::ids::Timestamp;
use crate::memory::{Kind, Memory, Scope, State, Trust, conflict, forgetting, injection};

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
/// What is worded anew, or given a key, and looks like an instruction to the model by that waits for confirmation, unless the revision
/// confirms it too; one that waited and looks like none any more, in content and key, holds. What is confirmed says what it says of its key
/// from now on, as if it had been said now. What waits is not archived: from the archive it could be told, so it is to be confirmed first,
/// or forgotten.
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
        let read = new.key == conflict::key_of(memory);
        new.content = content;
        if read {
            new.key = conflict::key_of(&new);
        }
    }
    new.scope = revision.scope.unwrap_or(new.scope);
    new.kind = revision.kind.unwrap_or(new.kind);
    new.importance = revision.importance.unwrap_or(new.importance);
    new.pinned = revision.pinned.unwrap_or(new.pinned);
    if let Some(key) = revision.key {
        new.key = key.into();
    }
    judge(memory, &mut new, now);
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
        (Some(Standing::Current), State::Quarantined) => confirm(&mut new, now),
        (Some(Standing::Current), State::Archived) => forgetting::restore(&mut new, now),
        (Some(Standing::Archived), State::Current) => forgetting::archive(&mut new),
        // What is superseded stands as its key decides.
        _ => {}
    }
    if memory.state == State::Quarantined && new.state != State::Quarantined && new.key.is_some() {
        new.valid_from = now.max(memory.valid_from);
    }
    new.version += 1;
    new
}

/// Has new words wait that look like an instruction to the model, those of a key too. What waited is confirmed if that which it waited for is gone:
/// the content was worded anew, or the key was the reason.
fn judge(before: &Memory, new: &mut Memory, now: Timestamp) {
    let speaks = |text: &str| injection::sign(text).is_some();
    let key_speaks = |memory: &Memory| memory.key.as_deref().is_some_and(speaks);
    let (worded, keyed) = (new.content != before.content, new.key != before.key);
    if worded && speaks(&new.content) || keyed && key_speaks(new) {
        hold_back(new);
    } else if new.state == State::Quarantined
        && (worded || keyed && key_speaks(before))
        && !speaks(&new.content)
        && !key_speaks(new)
    {
        confirm(new, now);
    }
}

/// A memory waits for confirmation, and stands apart from its key.
fn hold_back(memory: &mut Memory) {
    memory.state = State::Quarantined;
    memory.valid_to = None;
    memory.superseded_by = None;
    memory.ended_at = None;
}

/// A memory that waited is told from now on, and believed like the person's own words.
fn confirm(memory: &mut Memory, now: Timestamp) {
    forgetting::restore(memory, now);
    memory.trust = Trust::User;
}
