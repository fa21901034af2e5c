//! Recall of what was said a moment ago, and of what is not to be told any more.

use std::sync::Arc;

use tidemark_application::memory::forget::{Forget, Forgotten};
use tidemark_application::memory::recall::{Recall, RecallRequest};
use tidemark_application::memory::remember::{GivenMemory, Remember};
use tidemark_application::settings::RecallSettings;
use tidemark_domain::ids::MemoryId;
use tidemark_domain::memory::Memory;
use tidemark_domain::window::EstimateCounter;
use tidemark_infrastructure::model::offline::OfflineModel;
use tidemark_infrastructure::system::{SystemClock, UuidV7};

use super::world::World;

struct Recaller {
    world: World,
    recall: Recall,
    remember: Remember,
    forget: Forget,
}

impl Recaller {
    async fn new() -> Self {
        let world = World::with(Arc::new(OfflineModel::default())).await;
        let settings = RecallSettings::default();
        let unindexed = settings.unindexed;
        Self {
            recall: Recall::new(
                Arc::clone(&world.store),
                Arc::new(SystemClock),
                Arc::new(EstimateCounter),
                settings,
            ),
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
