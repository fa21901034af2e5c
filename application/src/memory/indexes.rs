//! The indexes of those owners who were recalled lately, in the memory of the process.
//!
//! An index is never trusted, only validated: whoever searches one has read the number of the owner's newest change before, and what the index
//! does not know yet is fetched first. So replicas need not tell each other anything, and dropping an index costs no more than time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use metrics::{counter, gauge};
use tidemark_domain::ids::{MessageId, Owner};
use tidemark_domain::memory::index::search::{Query, Search, search};
use tidemark_domain::memory::index::{OwnerIndex, Upsert, View};
use tokio::sync::{Mutex as Turnstile, Semaphore};
use tracing::Instrument;

use crate::ports::memories::{ChangePosition, MemoryRepository};
use crate::ports::store::{StoreError, StoreResult};

/// How many memories are fetched at a time: some megabytes, and some tens of milliseconds of the store's time.
const PAGE: u32 = 5_000;

/// Up to so many memories an index is searched, and changes are taken in, where the caller runs: some hundreds of microseconds. Beyond, in a
/// thread for such work, so that streams are not held up.
const AT_ONCE: usize = 500;

/// Up to so many memories a compaction of the index takes no more than that either.
const MANY: usize = 10 * AT_ONCE;

/// What is known of one owner.
#[derive(Debug, Default)]
struct Known {
    index: RwLock<OwnerIndex>,
    /// Everything up to this change is in the index.
    change: AtomicI64,
    /// How many memories are in it.
    len: AtomicUsize,
    /// What it counts for in the bound.
    bytes: AtomicUsize,
    /// One at a time brings it up to date; the others wait and find it done.
    refreshing: Turnstile<()>,
}

#[derive(Debug, Default)]
struct Cache {
    owners: HashMap<Owner, (Arc<Known>, u64)>,
    /// Owners by when they were used last.
    used: BTreeMap<u64, Owner>,
    tick: u64,
    bytes: usize,
}

/// The indexes. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Indexes {
    store: Arc<dyn MemoryRepository>,
    cache: Arc<Mutex<Cache>>,
    /// The memory that all indexes together may take, in bytes. One that takes more alone is kept as long as nobody else's is wanted.
    bound: usize,
    /// The models that questions can be embedded by: vectors of others would be of no use.
    models: Arc<[String]>,
    /// Threads that may search at the same time.
    searching: Arc<Semaphore>,
}

impl std::fmt::Debug for Indexes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Indexes")
            .field("bound", &self.bound)
            .finish_non_exhaustive()
    }
}

impl Indexes {
    /// Over this store, within so many bytes, with the vectors of these models.
    pub fn new(store: Arc<dyn MemoryRepository>, bound: usize, models: Vec<String>) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            store,
            cache: Arc::default(),
            bound,
            models: models.into(),
            searching: Arc::new(Semaphore::new(threads)),
        }
    }

    /// Searches an owner's memories as of the change `newest` or a later one, and `fresh` ones beside them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn search(
        &self,
        owner: Owner,
        newest: i64,
        fresh: Vec<Upsert>,
        query: Query,
    ) -> StoreResult<Search> {
        let known = self.current(owner, newest).await?;
        let few = known.len.load(Ordering::Relaxed) + fresh.len() <= AT_ONCE;
        // Somebody may be writing a large part of it.
        if few && let Ok(index) = known.index.try_read() {
            return Ok(search(&View::with(&index, fresh), &query));
        }
        let look = move || search(&View::with(&read(&known.index), fresh), &query);
        let _place = self.searching.acquire().await.map_err(unavailable)?;
        tokio::task::spawn_blocking(look).await.map_err(failed)
    }

    /// Those by whom the owner has a memory, as of the change `newest` or a later one.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn speakers(&self, owner: Owner, newest: i64) -> StoreResult<Vec<String>> {
        let known = self.current(owner, newest).await?;
        // Somebody may be writing a large part of it.
        let look = move || {
            let index = read(&known.index);
            index.speakers().map(str::to_owned).collect()
        };
        tokio::task::spawn_blocking(look).await.map_err(failed)
    }

    /// Which of these messages have a fact that has ended, at whatever time, as of the change `newest` or a later one.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn ended(
        &self,
        owner: Owner,
        newest: i64,
        mut messages: BTreeSet<MessageId>,
    ) -> StoreResult<BTreeSet<MessageId>> {
        let known = self.current(owner, newest).await?;
        let index = read(&known.index);
        messages.retain(|message| index.has_ended(*message));
        Ok(messages)
    }

    /// Lets go what is held of an owner who is gone. A search that is under way ends with what it has.
    pub fn forget(&self, owner: Owner) {
        lock(&self.cache).remove(owner);
    }

    /// What is known of an owner, brought up to date.
    async fn current(&self, owner: Owner, newest: i64) -> StoreResult<Arc<Known>> {
        let known = lock(&self.cache).touch(owner);
        if known.change.load(Ordering::Acquire) == newest {
            return Ok(known);
        }
        // A task of its own: what has been begun is of use to the next caller even when this one goes away.
        let (this, refreshed) = (self.clone(), Arc::clone(&known));
        let task = async move { this.refresh(owner, &refreshed, newest).await };
        tokio::spawn(task.in_current_span())
            .await
            .map_err(failed)??;
        Ok(known)
    }

    async fn refresh(&self, owner: Owner, known: &Arc<Known>, newest: i64) -> StoreResult<()> {
        let _alone = known.refreshing.lock().await;
        let before = known.change.load(Ordering::Acquire);
        if before == newest {
            return Ok(());
        }
        let way = if before == 0 { "load" } else { "delta" };
        counter!("tidemark_index_refreshes_total", "way" => way).increment(1);
        let mut after = ChangePosition::behind(before);
        // What an earlier try has read may be gone since, and would not be told of.
        let mut anew = before == 0;
        loop {
            let page = self
                .store
                .index_delta(owner, after, PAGE, &self.models)
                .await?;
            let reset = page.reset || std::mem::take(&mut anew);
            if reset {
                // Nothing is known until all is known.
                known.change.store(0, Ordering::Release);
            }
            let changed =
                page.delta.upserts.len() + page.delta.removed.len() + page.delta.vectors.len();
            let (target, delta) = (Arc::clone(known), page.delta);
            let apply = move || {
                let mut index = write(&target.index);
                if reset {
                    *index = OwnerIndex::default();
                }
                index.apply(delta);
                target.len.store(index.len(), Ordering::Relaxed);
                index.bytes()
            };
            let held = if reset {
                0
            } else {
                known.len.load(Ordering::Relaxed)
            };
            let bytes = if changed <= AT_ONCE && held <= MANY {
                apply()
            } else {
                tokio::task::spawn_blocking(apply).await.map_err(failed)?
            };
            lock(&self.cache).weigh(owner, known, bytes, self.bound);
            let Some(next) = page.next else {
                known.change.store(page.change, Ordering::Release);
                return Ok(());
            };
            after = next;
        }
    }
}

impl Cache {
    /// What is known of an owner, who is the last used now.
    fn touch(&mut self, owner: Owner) -> Arc<Known> {
        self.tick += 1;
        let (known, used) = self.owners.entry(owner).or_default();
        self.used.remove(used);
        *used = self.tick;
        self.used.insert(self.tick, owner);
        Arc::clone(known)
    }

    fn remove(&mut self, owner: Owner) {
        if let Some((gone, tick)) = self.owners.remove(&owner) {
            self.used.remove(&tick);
            self.bytes -= gone.bytes.load(Ordering::Relaxed);
        }
        self.tell();
    }

    fn tell(&self) {
        gauge!("tidemark_index_bytes").set(self.bytes as f64);
        gauge!("tidemark_index_owners").set(self.owners.len() as f64);
    }

    /// Accounts for an index that has changed, and lets those go that were not used for longest.
    fn weigh(&mut self, owner: Owner, known: &Arc<Known>, bytes: usize, bound: usize) {
        // It may have been let go meanwhile; then it goes with its last user.
        let kept = self.owners.get(&owner).map(|(kept, used)| (kept, *used));
        let Some((_, used)) = kept.filter(|(kept, _)| Arc::ptr_eq(kept, known)) else {
            return;
        };
        self.bytes = self.bytes - known.bytes.swap(bytes, Ordering::Relaxed) + bytes;
        while self.bytes > bound {
            let oldest = self.used.iter().find(|(tick, _)| **tick != used);
            let Some((&tick, &oldest)) = oldest else {
                break;
            };
            self.used.remove(&tick);
            if let Some((gone, _)) = self.owners.remove(&oldest) {
                self.bytes -= gone.bytes.load(Ordering::Relaxed);
            }
        }
        self.tell();
    }
}

// A panic while an index is changed leaves it as it was before the change or in part: what is missing is fetched again, since the change is
// noted last.
fn read(index: &RwLock<OwnerIndex>) -> std::sync::RwLockReadGuard<'_, OwnerIndex> {
    index.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(index: &RwLock<OwnerIndex>) -> std::sync::RwLockWriteGuard<'_, OwnerIndex> {
    index.write().unwrap_or_else(PoisonError::into_inner)
}

fn lock(cache: &Mutex<Cache>) -> MutexGuard<'_, Cache> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}

fn failed(error: tokio::task::JoinError) -> StoreError {
    StoreError::Corrupt {
        what: "an index".to_owned(),
        source: Some(Box::new(error)),
    }
}

#[cfg(test)]
mod tests;
