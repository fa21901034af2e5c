//! What was said and is not indexed yet: a person's next request finds what the last one said.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use tidemark_domain::ids::{MemoryId, MessageId, Owner, Timestamp};
use tidemark_domain::memory::conflict::{Touched, verdicts};
use tidemark_domain::memory::index::{Document, Upsert};
use tidemark_domain::memory::recall::Standing;
use tidemark_domain::memory::{Memory, episodic};
use tidemark_domain::session::Message;

use super::remember;
use crate::ports::memories::IndexedMemory;
use crate::ports::store::{Store, StoreResult};

/// How much text of messages that are not yet indexed is looked through, in bytes. Ours: some milliseconds of work.
const UNINDEXED_BYTES: usize = 256 * 1024;

/// How much text of such messages is remembered with what was made of it, in bytes: a conversation asks for the same ones with each turn. With terms and
/// identities it takes some three times as much memory.
const REMEMBERED_BYTES: usize = 4 * 1024 * 1024;

/// What a message without a word counts for in that.
const LEAST_BYTES: usize = 128;

/// What was said and is not indexed yet, and what it changes.
#[derive(Debug, Default)]
pub struct Fresh {
    /// What the index will make of it, as it will stand.
    pub made: Vec<Memory>,
    /// Stored memories that will stand otherwise because of it, as they will.
    pub turned: Vec<Memory>,
    /// It was settled with what is stored now: what was read before may be older than that, and is to be read again.
    pub looked: bool,
    /// The documents of what is made, where they are known.
    documents: HashMap<MemoryId, Document>,
}

impl Fresh {
    /// Of what the index will make.
    #[cfg(test)]
    pub(super) fn new(made: Vec<Memory>, turned: Vec<Memory>) -> Self {
        Self {
            made,
            turned,
            ..Self::default()
        }
    }

    /// How the stored memories will stand that will stand otherwise.
    pub fn standings(&self) -> HashMap<MemoryId, Standing> {
        let turned = self.turned.iter();
        turned.map(|m| (m.id, Standing::from(m))).collect()
    }

    /// What is made, as an index takes it.
    pub fn upserts(&self) -> Vec<Upsert> {
        let made = self.made.iter();
        made.map(|memory| match self.documents.get(&memory.id) {
            Some(document) => Upsert::new(memory, document.clone()),
            None => Upsert::of(memory),
        })
        .collect()
    }
}

/// What was said and is not indexed yet, with what the index will make of each message. What a message says never changes, so what was made of one
/// is remembered; whether it teaches anything may change, and is asked each time.
#[derive(Debug)]
pub struct Unindexed {
    remembered: Mutex<Remembered>,
    /// How much text is remembered, in bytes.
    bound: usize,
}

impl Default for Unindexed {
    fn default() -> Self {
        Self {
            remembered: Mutex::default(),
            bound: REMEMBERED_BYTES,
        }
    }
}

#[derive(Debug, Default)]
struct Remembered {
    messages: HashMap<(Owner, MessageId), Made>,
    /// Messages by when they were asked for last.
    used: BTreeMap<u64, (Owner, MessageId)>,
    tick: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Made {
    memories: Arc<[IndexedMemory]>,
    bytes: usize,
    used: u64,
}

impl Unindexed {
    /// What the newest `limit` messages that are not indexed yet say, settled with what is stored of the same keys: what they change is
    /// changed for whoever asks next.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn settled(
        &self,
        store: &dyn Store,
        owner: Owner,
        limit: u32,
        now: Timestamp,
    ) -> StoreResult<Fresh> {
        let messages = store.unindexed(owner, limit).await?;
        self.settled_of(store, owner, &messages, true, now).await
    }

    /// The same of messages that have been read. Unless anything was ever forgotten of the owner, nothing of them can be buried.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn settled_of(
        &self,
        store: &dyn Store,
        owner: Owner,
        messages: &[Message],
        has_forgotten: bool,
        now: Timestamp,
    ) -> StoreResult<Fresh> {
        let mut all = self.made(owner, messages, now);
        if has_forgotten {
            all = unforgotten(store, owner, all).await?;
        }
        let mut documents = HashMap::with_capacity(all.len());
        let mut made = Vec::with_capacity(all.len());
        for IndexedMemory {
            memory, document, ..
        } in all
        {
            documents.insert(memory.id, document);
            made.push(memory);
        }
        let Some(touched) = Touched::by(&made) else {
            return Ok(Fresh {
                made,
                documents,
                ..Fresh::default()
            });
        };
        let stored = store.memories_by_key(owner, &touched).await?;
        // What has been indexed since the messages were read.
        made.retain(|memory| stored.iter().all(|known| known.id != memory.id));
        let mut turned = Vec::new();
        for verdict in verdicts(stored.iter().chain(&made)) {
            if let Some(memory) = made.iter_mut().find(|memory| memory.id == verdict.id) {
                verdict.apply(memory);
            } else if let Some(memory) = stored.iter().find(|memory| memory.id == verdict.id) {
                let mut memory = memory.clone();
                verdict.apply(&mut memory);
                turned.push(memory);
            }
        }
        Ok(Fresh {
            made,
            turned,
            looked: true,
            documents,
        })
    }

    /// Lets go what is remembered of an owner who is gone.
    pub fn forget(&self, owner: Owner) {
        let mut remembered = self.lock();
        let of_owner = |(whose, _): &&(Owner, MessageId)| *whose == owner;
        let gone: Vec<_> = remembered
            .messages
            .keys()
            .filter(of_owner)
            .copied()
            .collect();
        for message in gone {
            remembered.remove(message);
        }
    }

    /// What the index will make of messages, the newest first, and of no more text than can be looked through without being felt.
    fn made(&self, owner: Owner, messages: &[Message], now: Timestamp) -> Vec<IndexedMemory> {
        let mut left = UNINDEXED_BYTES;
        let mut newest: Vec<&Message> = messages.iter().collect();
        newest.sort_by_key(|m| std::cmp::Reverse(m.created_at));
        let mut out = Vec::new();
        for message in newest {
            if left == 0 {
                break;
            }
            if !message.learnable || message.partial {
                continue;
            }
            left = left.saturating_sub(message.content.len());
            let known = self.lock().find((owner, message.id));
            let made = known.unwrap_or_else(|| {
                let made = make(message, now);
                let length = message.content.len();
                self.lock()
                    .keep((owner, message.id), Arc::clone(&made), length, self.bound);
                made
            });
            out.extend(at(&made, now));
        }
        out
    }

    /// What the index makes of a message. It is not remembered for it: who indexes asks once.
    pub(crate) fn of(&self, owner: Owner, message: &Message, now: Timestamp) -> Vec<IndexedMemory> {
        if !message.learnable || message.partial {
            return Vec::new();
        }
        let known = self.lock().find((owner, message.id));
        let made = known.unwrap_or_else(|| make(message, now));
        at(&made, now).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn make(message: &Message, now: Timestamp) -> Arc<[IndexedMemory]> {
    let made = episodic::memories(message, now);
    made.into_iter().map(remember::index).collect()
}

/// As if it were made now.
fn at(made: &[IndexedMemory], now: Timestamp) -> impl Iterator<Item = IndexedMemory> {
    made.iter().cloned().map(move |mut made| {
        made.memory.created_at = now;
        made.memory.last_access = now;
        made
    })
}

impl Remembered {
    fn find(&mut self, message: (Owner, MessageId)) -> Option<Arc<[IndexedMemory]>> {
        let made = self.messages.get_mut(&message)?;
        self.tick += 1;
        self.used.remove(&made.used);
        self.used.insert(self.tick, message);
        made.used = self.tick;
        Some(Arc::clone(&made.memories))
    }

    fn keep(
        &mut self,
        message: (Owner, MessageId),
        memories: Arc<[IndexedMemory]>,
        length: usize,
        bound: usize,
    ) {
        self.remove(message);
        self.tick += 1;
        let made = Made {
            memories,
            bytes: length + LEAST_BYTES,
            used: self.tick,
        };
        self.bytes += made.bytes;
        self.used.insert(self.tick, message);
        self.messages.insert(message, made);
        while self.bytes > bound {
            let Some((_, oldest)) = self.used.pop_first() else {
                break;
            };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, message: (Owner, MessageId)) {
        if let Some(gone) = self.messages.remove(&message) {
            self.used.remove(&gone.used);
            self.bytes -= gone.bytes;
        }
    }
}

/// What the index will make of the newest `limit` messages it has not come to yet, without what was forgotten of it.
///
/// # Errors
/// When the store fails.
pub async fn memories(
    store: &dyn Store,
    owner: Owner,
    limit: u32,
    now: Timestamp,
) -> StoreResult<Vec<Memory>> {
    let messages = store.unindexed(owner, limit).await?;
    let made = Unindexed::default().made(owner, &messages, now);
    let made = unforgotten(store, owner, made).await?;
    Ok(made.into_iter().map(|indexed| indexed.memory).collect())
}

async fn unforgotten(
    store: &dyn Store,
    owner: Owner,
    mut made: Vec<IndexedMemory>,
) -> StoreResult<Vec<IndexedMemory>> {
    if made.is_empty() {
        return Ok(made);
    }
    let taught = |made: &IndexedMemory| -> Vec<(MessageId, String)> {
        let sources = made.memory.sources.iter();
        sources
            .map(|s| (s.message_id, made.identity.clone()))
            .collect()
    };
    let pairs: Vec<_> = made.iter().flat_map(taught).collect();
    let buried: HashSet<_> = store.buried(owner, &pairs).await?.into_iter().collect();
    made.retain(|made| !taught(made).iter().any(|pair| buried.contains(pair)));
    Ok(made)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::time::Duration;

    use tidemark_domain::ids::{OwnerId, SessionId, TenantId, TurnId};
    use tidemark_domain::session::Role;
    use uuid::Uuid;

    use super::*;

    fn owner(n: i64) -> Owner {
        Owner {
            tenant: TenantId::DEFAULT,
            id: OwnerId(n),
        }
    }

    fn said(n: u128, content: &str) -> Message {
        Message {
            id: MessageId(Uuid::from_u128(n)),
            session_id: SessionId(Uuid::from_u128(1)),
            turn_id: Some(TurnId(Uuid::from_u128(2))),
            seq: n as i64,
            role: Role::User,
            content: content.to_owned(),
            name: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            partial: false,
            learnable: true,
            created_at: Timestamp::UNIX_EPOCH + Duration::from_secs(n as u64),
        }
    }

    #[test]
    fn what_was_made_of_a_message_is_remembered_but_for_the_time() {
        let unindexed = Unindexed::default();
        let messages = [
            said(1, "The budget is 300k."),
            said(2, "The deadline is Friday."),
        ];
        let (now, later) = (
            messages[1].created_at,
            Timestamp::UNIX_EPOCH + Duration::from_hours(9),
        );
        let first = unindexed.made(owner(1), &messages, now);
        let again = unindexed.made(owner(1), &messages, later);
        let anew = Unindexed::default().made(owner(1), &messages, later);
        assert_eq!(first.len(), 2);
        assert_eq!(first[0].memory.content, "The deadline is Friday.");
        assert_eq!(again, anew);
        assert_eq!(unindexed.lock().messages.len(), 2);
    }

    #[test]
    fn what_teaches_no_more_makes_nothing_though_it_was_made_before() {
        let unindexed = Unindexed::default();
        let said = said(1, "The budget is 300k.");
        let now = said.created_at;
        assert_eq!(unindexed.of(owner(1), &said, now).len(), 1);
        let made = unindexed.made(owner(1), std::slice::from_ref(&said), now);
        assert_eq!(unindexed.of(owner(1), &said, now), made);
        let withdrawn = Message {
            learnable: false,
            ..said.clone()
        };
        let partial = Message {
            partial: true,
            ..said
        };
        for message in [withdrawn, partial] {
            assert_eq!(unindexed.of(owner(1), &message, now), []);
            assert_eq!(unindexed.made(owner(1), &[message], now), []);
        }
    }

    #[test]
    fn what_is_remembered_is_bounded_and_goes_with_its_owner() {
        let said_often = "The garden lies behind the house.";
        let most = 20;
        let unindexed = Unindexed {
            bound: most * (said_often.len() + LEAST_BYTES),
            ..Unindexed::default()
        };
        for n in 0..2 * most {
            let message = said(n as u128, said_often);
            unindexed.made(
                owner(1 + n as i64 % 2),
                std::slice::from_ref(&message),
                message.created_at,
            );
        }
        let held = |of: i64| {
            let remembered = unindexed.lock();
            let owners = remembered.messages.keys();
            owners.filter(|(whose, _)| *whose == owner(of)).count()
        };
        assert_eq!((held(1), held(2)), (most / 2, most / 2));
        unindexed.forget(owner(1));
        assert_eq!(held(1), 0);
        assert!(held(2) > 0);
        let remembered = unindexed.lock();
        let bytes: usize = remembered.messages.values().map(|made| made.bytes).sum();
        assert_eq!(
            (remembered.bytes, remembered.used.len()),
            (bytes, remembered.messages.len())
        );
    }
}
