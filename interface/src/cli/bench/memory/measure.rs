//! Clients that store, recall and add, each with one request at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::text::{self, Numbers};
use crate::cli::api::Api;
use crate::cli::api::ApiError;

/// How many memories one request stores while loading, and how many requests do so at once.
const BATCH: u64 = 100;
const LOADERS: u64 = 4;

/// How long derived work may take after loading, embeddings included.
const SETTLE_LIMIT: Duration = Duration::from_hours(6);

/// Owners whose first recall is measured.
const FIRSTS: u64 = 200;

/// After so many additions of a client it looks whether the last one is found.
const LOOK_EVERY: u64 = 20;

/// What a round gave.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Of each request.
    pub(super) latencies: Vec<Duration>,
    /// From its beginning to the end of its last request.
    pub(super) took: Duration,
    /// How many looks found the memory that was looked for, and how many looks there were.
    pub(super) found: u64,
    pub(super) looks: u64,
}

/// Owners and their memories on a server.
#[derive(Clone, Debug)]
pub(super) struct Yard {
    api: Api,
    mark: Arc<str>,
    owners: u64,
    memories: u64,
}

impl Yard {
    /// Nothing is stored yet.
    pub(super) fn new(api: Api, owners: u64, memories: u64) -> Self {
        let mark = Uuid::new_v4().simple().to_string();
        Self {
            api,
            mark: mark[..12].into(),
            owners,
            memories,
        }
    }

    fn user(&self, owner: u64) -> String {
        format!("bench-{}-{owner}", self.mark)
    }

    /// Stores everything, and waits for its derived work.
    pub(super) async fn load(&self) -> Result<Duration, ApiError> {
        let begun = Instant::now();
        let batches = self.memories.div_ceil(BATCH);
        let next = Arc::new(AtomicU64::new(0));
        let mut loaders = JoinSet::new();
        for _ in 0..LOADERS {
            let (yard, next) = (self.clone(), Arc::clone(&next));
            loaders.spawn(async move {
                loop {
                    let batch = next.fetch_add(1, Ordering::Relaxed);
                    // One batch of each owner after the other, as if they all talked over the same time.
                    let (owner, batch) = (batch % yard.owners, batch / yard.owners);
                    if batch >= batches {
                        return Ok(());
                    }
                    yard.store(owner, batch).await?;
                }
            });
        }
        joined(loaders).await?;
        self.api.settle(SETTLE_LIMIT).await?;
        Ok(begun.elapsed())
    }

    async fn store(&self, owner: u64, batch: u64) -> Result<(), ApiError> {
        let numbers = batch * BATCH..((batch + 1) * BATCH).min(self.memories);
        let items: Vec<Value> = numbers
            .map(|number| json!({ "content": text::memory(owner, number) }))
            .collect();
        let path = "/v1/memories";
        let user = self.user(owner);
        self.api
            .post(&user, path, &json!({ "items": items }))
            .await?;
        Ok(())
    }

    /// The first recall of owners, when nothing of them is at hand yet.
    pub(super) async fn first_recalls(&self) -> Result<Round, ApiError> {
        let begun = Instant::now();
        let mut round = Round::default();
        for owner in 0..self.owners.min(FIRSTS) {
            self.ask(owner, self.memories / 2, &mut round).await?;
        }
        round.took = begun.elapsed();
        Ok(round)
    }

    /// Recalls by `clients` at once, of any owner, for a time.
    pub(super) async fn recall(
        &self,
        clients: u32,
        seconds: u64,
        seed: u64,
    ) -> Result<Round, ApiError> {
        self.at_once(clients, seconds, |yard, client, until| async move {
            let mut numbers = Numbers::new(seed << 32 | u64::from(client));
            let mut round = Round::default();
            while Instant::now() < until {
                let owner = numbers.below(yard.owners);
                let number = numbers.below(yard.memories);
                yard.ask(owner, number, &mut round).await?;
            }
            Ok(round)
        })
        .await
    }

    /// Adds by `clients` at once, for a time; `from` is how many were added before.
    pub(super) async fn add(
        &self,
        clients: u32,
        seconds: u64,
        from: u64,
    ) -> Result<Round, ApiError> {
        let next = Arc::new(AtomicU64::new(from));
        self.at_once(clients, seconds, move |yard, client, until| {
            let next = Arc::clone(&next);
            async move {
                let mut numbers = Numbers::new(from << 16 | u64::from(client));
                let mut round = Round::default();
                let mut count = 0;
                while Instant::now() < until {
                    let owner = numbers.below(yard.owners);
                    let number = yard.memories + next.fetch_add(1, Ordering::Relaxed);
                    count += 1;
                    yard.append(owner, number, count % LOOK_EVERY == 0, &mut round)
                        .await?;
                }
                Ok(round)
            }
        })
        .await
    }

    async fn ask(&self, owner: u64, number: u64, round: &mut Round) -> Result<(), ApiError> {
        let query = json!({ "query": text::question(owner, number) });
        let user = self.user(owner);
        let begun = Instant::now();
        let recalled = self.api.recall(&user, &query).await?;
        round.latencies.push(begun.elapsed());
        round.looks += 1;
        round.found += u64::from(holds(&recalled, &text::memory(owner, number)));
        Ok(())
    }

    async fn append(
        &self,
        owner: u64,
        number: u64,
        look: bool,
        round: &mut Round,
    ) -> Result<(), ApiError> {
        let (content, mark) = text::marked(owner, number);
        let user = self.user(owner);
        let body = json!({ "content": content });
        let begun = Instant::now();
        self.api.post(&user, "/v1/memories", &body).await?;
        round.latencies.push(begun.elapsed());
        if look {
            let query = json!({ "query": mark });
            let recalled = self.api.recall(&user, &query).await?;
            round.looks += 1;
            round.found += u64::from(holds(&recalled, &content));
        }
        Ok(())
    }

    async fn at_once<C, F>(&self, clients: u32, seconds: u64, client: C) -> Result<Round, ApiError>
    where
        C: Fn(Self, u32, Instant) -> F,
        F: Future<Output = Result<Round, ApiError>> + Send + 'static,
    {
        let begun = Instant::now();
        let until = begun + Duration::from_secs(seconds);
        let mut running = JoinSet::new();
        for number in 0..clients {
            running.spawn(client(self.clone(), number, until));
        }
        let mut all = Round::default();
        for round in joined(running).await? {
            all.latencies.extend(round.latencies);
            all.found += round.found;
            all.looks += round.looks;
        }
        all.took = begun.elapsed();
        Ok(all)
    }

    /// Removes everything.
    pub(super) async fn clear(&self) -> Result<(), ApiError> {
        for owner in 0..self.owners {
            self.api.clear(&self.user(owner)).await?;
        }
        Ok(())
    }
}

async fn joined<T: Send + 'static>(
    mut tasks: JoinSet<Result<T, ApiError>>,
) -> Result<Vec<T>, ApiError> {
    let mut all = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        match joined {
            Ok(outcome) => all.push(outcome?),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    Ok(all)
}

fn holds(recalled: &Value, content: &str) -> bool {
    recalled["items"]
        .as_array()
        .is_some_and(|items| items.iter().any(|i| i["memory"]["content"] == content))
}
