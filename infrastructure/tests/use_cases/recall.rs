//! Recall of what was said a moment ago, and of what is not to be told any more.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tidemark_application::memory::forget::{Forget, Forgotten};
use tidemark_application::memory::recall::{Recall, RecallRequest};
use tidemark_application::memory::remember::{GivenMemory, Remember};
use tidemark_application::memory::reranking::Reranking;
use tidemark_application::ports::reranker::{RerankError, Reranker};
use tidemark_application::settings::RecallSettings;
use tidemark_domain::ids::MemoryId;
use tidemark_domain::memory::Memory;
use tidemark_domain::window::EstimateCounter;
use tidemark_infrastructure::model::offline::OfflineModel;
use tidemark_infrastructure::system::{SystemClock, UuidV7};
use tokio::sync::Notify;

use super::world::World;

struct Recaller {
    world: World,
    recall: Recall,
    remember: Remember,
    forget: Forget,
}

impl Recaller {
    async fn new() -> Self {
        Self::with(None).await
    }

    async fn with(reranking: Option<Reranking>) -> Self {
        let world = World::with(Arc::new(OfflineModel::default())).await;
        let settings = RecallSettings::default();
        let unindexed = settings.unindexed;
        Self {
            recall: Recall::new(
                Arc::clone(&world.store),
                Arc::new(SystemClock),
                Arc::new(EstimateCounter),
                settings,
            )
            .with_reranking(reranking),
            remember: Remember::new(
                Arc::clone(&world.store),
                Arc::new(UuidV7::default()),
                Arc::new(SystemClock),
            ),
            forget: Forget::new(
                Arc::clone(&world.store),
                Arc::new(UuidV7::default()),
                Arc::new(SystemClock),
                unindexed,
            ),
            world,
        }
    }

    async fn recalls(&self, query: &str) -> Vec<Memory> {
        let request = RecallRequest {
            query: query.to_owned(),
            ..RecallRequest::default()
        };
        let outcome = self.recall.run(self.world.owner, request).await.unwrap();
        let items = outcome.ranking.items;
        items.into_iter().map(|item| item.memory).collect()
    }

    async fn forgets(&self, id: MemoryId) -> Forgotten {
        self.forget.run(self.world.owner, id, None).await.unwrap()
    }

    async fn remembers(&self, content: &str) -> MemoryId {
        let given = GivenMemory {
            content: content.to_owned(),
            scope: None,
            kind: None,
            importance: None,
            key: None,
            session_id: None,
            valid_from: None,
            expires_at: None,
        };
        let stored = self.remember.run(self.world.owner, vec![given], None).await;
        stored.unwrap().value[0].id
    }

    async fn learn(&self) {
        let workers = self.world.workers(Arc::new(UuidV7::default()), 3);
        while workers.step().await.unwrap() {}
    }
}

#[tokio::test]
async fn what_was_just_said_is_recalled_and_what_is_forgotten_of_it_never_comes_back() {
    let it = Recaller::new().await;
    let turn = it.world.say(None, "The launch of Zephyr is in May.").await;
    let told = it.recalls("When is the launch of Zephyr?").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        it.world
            .store
            .memories(it.world.owner, &[told[0].id])
            .await
            .unwrap()
            .is_empty()
    );

    assert_eq!(it.forgets(told[0].id).await, Forgotten::Done);
    assert!(it.recalls("When is the launch of Zephyr?").await.is_empty());
    it.world
        .say(Some(turn.session_id), "My desk is green.")
        .await;
    assert!(it.recalls("When is the launch of Zephyr?").await.is_empty());
    it.learn().await;
    assert!(it.recalls("When is the launch of Zephyr?").await.is_empty());
    assert_eq!(it.recalls("Which colour has my green desk?").await.len(), 1);
    assert_eq!(it.forgets(told[0].id).await, Forgotten::NotFound);
}

#[tokio::test]
async fn what_was_just_said_takes_the_place_of_what_is_stored_and_the_other_way_round() {
    let it = Recaller::new().await;
    let told = async |expected: &str| {
        let found = it.recalls("What is our budget? 预算是多少？").await;
        let all: Vec<&str> = found.iter().map(|m| m.content.as_str()).collect();
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].contains(expected), "{all:?}");
    };
    it.remembers("Our budget is 300k").await;
    told("300k").await;
    it.world.say(None, "We raised the budget to 400k.").await;
    told("400k").await;
    it.world.say(None, "预算现在是50万。").await;
    told("50万").await;
    it.learn().await;
    told("50万").await;
    it.remembers("Our budget is 600k").await;
    told("600k").await;
    it.world.say(None, "The budget is 700k now.").await;
    it.remembers("Our budget is 800k").await;
    told("800k").await;
    it.learn().await;
    told("800k").await;
}

#[tokio::test]
async fn what_was_recalled_before_it_is_indexed_is_the_same_memory_afterwards() {
    let it = Recaller::new().await;
    it.world.say(None, "The launch of Zephyr is in May.").await;
    let before = it.recalls("launch of Zephyr").await;
    it.learn().await;
    let after = it.recalls("launch of Zephyr").await;
    assert_eq!(before.len(), 1);
    assert_eq!(before[0].id, after[0].id);
    assert_eq!(it.forgets(before[0].id).await, Forgotten::Done);
    assert!(it.recalls("launch of Zephyr").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_sees_what_the_one_before_it_has_written() {
    let it = Arc::new(Recaller::new().await);
    let clients = (0..4).map(|client| {
        let it = Arc::clone(&it);
        tokio::spawn(async move {
            for round in 0..10 {
                let word = format!("zz{client}x{round}");
                let id = it.remembers(&format!("The password hint is {word}")).await;
                let found = it.recalls(&word).await;
                assert!(found.iter().any(|m| m.id == id), "{word}: {found:?}");
                if round % 2 == 0 {
                    assert_eq!(it.forgets(id).await, Forgotten::Done);
                    let found = it.recalls(&word).await;
                    assert!(found.iter().all(|m| m.id != id), "{word}");
                }
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}

/// Prefers texts that hold "lamp"; while it is told to, it fails.
#[derive(Default)]
struct Lamplighter {
    fails: Mutex<bool>,
    asked: Mutex<Vec<Vec<String>>>,
}

#[async_trait]
impl Reranker for Lamplighter {
    async fn rerank(&self, _: &str, texts: &[String]) -> Result<Vec<f64>, RerankError> {
        self.asked.lock().unwrap().push(texts.to_vec());
        if *self.fails.lock().unwrap() {
            return Err(RerankError::Busy);
        }
        let score = |text: &String| if text.contains("lamp") { 3.0 } else { -3.0 };
        Ok(texts.iter().map(score).collect())
    }
}

#[tokio::test]
async fn a_second_opinion_is_asked_of_the_best_alone_and_is_not_missed() {
    const LAMP: &str = "The lighthouse of Zephyr was painted under a lamp";
    let reranker = Arc::new(Lamplighter::default());
    let reranking = Reranking::new(Arc::clone(&reranker) as _, 3, Duration::from_secs(2));
    let it = Recaller::with(Some(reranking)).await;
    for content in [
        "The lighthouse of Zephyr was painted white",
        "The lighthouse of Zephyr was painted blue before",
        LAMP,
        "The lighthouse stands near a shop for lamps",
    ] {
        it.remembers(content).await;
    }
    let request = RecallRequest {
        query: "When was the lighthouse of Zephyr painted?".to_owned(),
        ..RecallRequest::default()
    };
    let run = async || {
        let outcome = it.recall.run(it.world.owner, request.clone()).await;
        let outcome = outcome.unwrap();
        let items = outcome.ranking.items.iter();
        let told: Vec<String> = items.map(|item| item.memory.content.clone()).collect();
        (told, outcome.degraded)
    };
    *reranker.fails.lock().unwrap() = true;
    let (ours, degraded) = run().await;
    assert_eq!(degraded, ["rerank"]);
    *reranker.fails.lock().unwrap() = false;
    let (told, degraded) = run().await;
    assert!(degraded.is_empty());
    assert_ne!(ours[0], LAMP);
    let rest = ours.iter().filter(|content| *content != LAMP);
    let expected: Vec<&str> = [LAMP].into_iter().chain(rest.map(String::as_str)).collect();
    assert_eq!(told, expected);
    for asked in reranker.asked.lock().unwrap().iter() {
        assert_eq!(asked[..], ours[..3], "in our order");
    }
}

/// Says when it is asked, and answers when it may.
#[derive(Default)]
struct Ponderer {
    asked: Notify,
    may: Notify,
}

#[async_trait]
impl Reranker for Ponderer {
    async fn rerank(&self, _: &str, texts: &[String]) -> Result<Vec<f64>, RerankError> {
        self.asked.notify_one();
        self.may.notified().await;
        Ok(vec![0.5; texts.len()])
    }
}

#[tokio::test]
async fn what_is_forgotten_while_a_second_opinion_is_thought_about_is_not_told() {
    let reranker = Arc::new(Ponderer::default());
    let reranking = Reranking::new(Arc::clone(&reranker) as _, 30, Duration::from_mins(1));
    let it = Recaller::with(Some(reranking)).await;
    it.remembers("The code of the harbour gate is known to Nadia")
        .await;
    let secret = it.remembers("The code of the harbour gate is blue").await;
    let (told, ()) = tokio::join!(it.recalls("What is the code of the harbour gate?"), async {
        reranker.asked.notified().await;
        assert_eq!(it.forgets(secret).await, Forgotten::Done);
        reranker.may.notify_one();
    });
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].content.contains("Nadia"), "{told:?}");
}
