//! Forgetting over time, by workers whose clock is ahead.

use std::sync::Arc;

use chrono::TimeDelta;
use tidemark_application::learning::worker::Workers;
use tidemark_application::memory::forget::{Forget, Forgotten};
use tidemark_application::memory::recall::{Recall, RecallRequest};
use tidemark_application::memory::revert::{Revert, Reverted};
use tidemark_application::ports::clock::Clock;
use tidemark_application::ports::memories::MemoryFilter;
use tidemark_application::settings::RecallSettings;
use tidemark_domain::ids::{MemoryId, Timestamp};
use tidemark_domain::memory::change::ChangeKind;
use tidemark_domain::memory::recall::DropReason;
use tidemark_domain::memory::{Layer, Memory, State};
use tidemark_domain::window::EstimateCounter;
use tidemark_infrastructure::model::offline::OfflineModel;
use tidemark_infrastructure::system::{SystemClock, UuidV7};
use tokio_util::sync::CancellationToken;

use super::world::World;

/// Some days ahead.
#[derive(Debug)]
struct Ahead(i64);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now() + TimeDelta::days(self.0)
    }
}

const SAID: &str =
    "The lighthouse at the cape was painted in broad green stripes. I prefer answers as tables.";

async fn world() -> World {
    let world = World::with(Arc::new(OfflineModel::default())).await;
    let session = world.say(None, SAID).await.session_id;
    world.say(Some(session), "Thanks, that is all.").await;
    let workers = world.workers(Arc::new(UuidV7::default()), 1);
    while workers.step().await.unwrap() {}
    world
}

fn workers(world: &World, days: i64) -> Workers {
    Workers {
        clock: Arc::new(Ahead(days)),
        ..world.workers(Arc::new(UuidV7::default()), 1)
    }
}

async fn fade(world: &World, days: i64) -> u64 {
    let running = CancellationToken::new();
    workers(world, days).fade(&running).await.unwrap()
}

async fn all(world: &World) -> Vec<Memory> {
    let every = MemoryFilter::default();
    let page = world
        .store
        .list_memories(world.owner, &every, None, 100)
        .await;
    page.unwrap().items
}

/// Whether the lighthouse is told, and why it is not.
async fn told(world: &World, archived: bool, id: MemoryId) -> (bool, Option<DropReason>) {
    let recall = Recall::new(
        Arc::clone(&world.store),
        Arc::new(SystemClock),
        Arc::new(EstimateCounter),
        RecallSettings::default(),
    );
    let request = RecallRequest {
        query: "How was the lighthouse painted?".to_owned(),
        archived,
        why_not: vec![id],
        ..RecallRequest::default()
    };
    let ranking = recall.run(world.owner, request).await.unwrap().ranking;
    let told = ranking.items.iter().any(|item| item.memory.id == id);
    let dropped = ranking.dropped.into_iter().find(|(of, _)| *of == id);
    (told, dropped.map(|(_, reason)| reason))
}

#[tokio::test]
async fn what_has_faded_is_archived_and_what_the_person_stated_stays() {
    let world = world().await;
    let before = all(&world).await;
    assert_eq!(fade(&world, 170).await, 0);
    let archived = fade(&world, 200).await;
    assert!(archived > 0);
    let after = all(&world).await;
    assert_eq!(after.len(), before.len());
    let gone: Vec<&Memory> = (after.iter())
        .filter(|m| m.state == State::Archived)
        .collect();
    assert_eq!(gone.len() as u64, archived);
    assert!(gone.iter().any(|m| m.content.contains("lighthouse")));
    assert!(
        !gone
            .iter()
            .any(|m| m.content == "I prefer answers as tables")
    );
    let id = gone[0].id;
    assert_eq!(
        told(&world, false, id).await,
        (false, Some(DropReason::Archived))
    );
    assert_eq!(told(&world, true, id).await, (true, None));
    assert_eq!(fade(&world, 200).await, 0);
}

#[tokio::test]
async fn what_was_archived_comes_back_as_a_whole_and_fades_anew() {
    let world = world().await;
    let before = all(&world).await;
    let archived = fade(&world, 200).await;
    let page = world.store.list_changes(world.owner, None, None, 10).await;
    let change = page
        .unwrap()
        .items
        .into_iter()
        .find(|c| c.kind == ChangeKind::Archive);
    let revert = Revert::new(
        Arc::clone(&world.store),
        Arc::new(UuidV7::default()),
        Arc::new(Ahead(200)),
    );
    let reverted = revert.run(world.owner, change.unwrap().id).await.unwrap();
    assert!(matches!(reverted, Reverted::Done(_)), "{reverted:?}");
    for memory in all(&world).await {
        let was = before.iter().find(|was| was.id == memory.id).unwrap();
        assert_eq!((memory.state, memory.layer), (was.state, was.layer));
    }
    assert_eq!(fade(&world, 370).await, 0);
    assert_eq!(fade(&world, 390).await, archived);
}

#[tokio::test]
async fn whoever_forgets_a_statement_forgets_the_archived_chunk_that_holds_it() {
    let world = World::with(Arc::new(OfflineModel::default())).await;
    let session = world.say(None, "We decided to use Rust.").await.session_id;
    world.say(Some(session), "Thanks, that is all.").await;
    let quick = world.workers(Arc::new(UuidV7::default()), 1);
    while quick.step().await.unwrap() {}
    assert!(fade(&world, 200).await > 0);
    let memories = all(&world).await;
    let about: Vec<&Memory> = (memories.iter())
        .filter(|m| m.content.contains("Rust"))
        .collect();
    let statement = about.iter().find(|m| m.layer == Layer::Semantic).unwrap();
    assert!(
        about
            .iter()
            .any(|m| m.made_in() == Layer::Episodic && m.state == State::Archived)
    );
    let forget = Forget::new(
        Arc::clone(&world.store),
        Arc::new(UuidV7::default()),
        Arc::new(SystemClock),
        200,
    );
    let forgotten = forget.run(world.owner, statement.id, None).await.unwrap();
    assert_eq!(forgotten, Forgotten::Done);
    let left = all(&world).await;
    assert!(!left.iter().any(|m| m.content.contains("Rust")), "{left:?}");
}
