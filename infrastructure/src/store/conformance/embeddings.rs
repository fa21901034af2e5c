//! The vectors of memories: kept for each model, gone with their memories, followed like these (B21).

use std::collections::BTreeSet;
use std::sync::Arc;

use tidemark_application::ports::changes::Edit;
use tidemark_application::ports::embeddings::{EmbeddingProgress, MemoryVector, VectorCommit};
use tidemark_application::ports::jobs::{ClaimedJob, JobKind, JobState, JobWriteError};
use tidemark_application::ports::store::Store;
use tidemark_domain::ids::{MemoryId, Owner};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::embedding::Embedding;
use tidemark_domain::memory::index::View;

use super::world::Follower;
use super::world::{ALL, SHORT, World, indexed, lapse, sorted};

const OLD: &str = "openai:wave-1";
const NEW: &str = "local:wave-2@0a1b2c3d (passage: 水)";

fn vector(first: f32) -> Embedding {
    Embedding::of(&[first, 1.0, -0.5]).unwrap()
}

async fn adopted(w: &World, model: &str) {
    let known = w.store.adopt_embedding_model(model, 3, w.now()).await;
    assert_eq!(known.unwrap(), 3);
}

/// A claimed job of the owner's; nothing else may be due.
async fn claimed(w: &World) -> ClaimedJob {
    let job = w.new_job(JobKind::Embed);
    w.store
        .enqueue_embedding(w.owner, job, w.now())
        .await
        .unwrap();
    let claim = w.claim().await.unwrap();
    assert_eq!(claim.job.kind, JobKind::Embed);
    assert_eq!(claim.job.session_id, None);
    claim
}

fn commit(model: &str, vectors: &[(&Memory, Option<Embedding>)]) -> VectorCommit {
    VectorCommit {
        model: model.to_owned(),
        vectors: vectors
            .iter()
            .map(|(memory, vector)| MemoryVector {
                memory: memory.id,
                version: memory.version,
                vector: vector.clone(),
            })
            .collect(),
    }
}

async fn unembedded(w: &World, model: &str) -> BTreeSet<MemoryId> {
    let found = w.store.unembedded(w.owner, model, ALL).await.unwrap();
    found.into_iter().map(|m| m.id).collect()
}

async fn to_embed(w: &World, model: &str) -> Vec<Owner> {
    let found = w.store.owners_to_embed(model, None, ALL).await;
    found.unwrap()
}

fn follower(w: &World, models: &[&str]) -> Follower {
    let mut follower = Follower::of(w.owner);
    follower.models = models.iter().map(|m| (*m).to_owned()).collect();
    follower
}

/// The vector that an index holds of a memory.
fn held(follower: &Follower, model: &str, memory: &Memory) -> Option<Vec<f32>> {
    let view = View::of(&follower.index);
    let slot = view.slot(memory.id)?;
    Some(view.vectors(model)?.get(slot)?.to_vec())
}

pub async fn a_model_is_known_by_the_dimension_it_had_first(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    assert_eq!(w.store.embedding_dimension(OLD).await.unwrap(), None);
    adopted(&w, OLD).await;
    let again = w.store.adopt_embedding_model(OLD, 4, w.now()).await;
    assert_eq!(again.unwrap(), 3, "another dimension is not taken");
    assert_eq!(w.store.embedding_dimension(OLD).await.unwrap(), Some(3));
    assert_eq!(w.store.embedding_dimension(NEW).await.unwrap(), None);
}

pub async fn of_many_that_adopt_a_model_at_once_one_is_right(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let now = w.now();
    let all = (1..=16).map(|dimension| w.store.adopt_embedding_model(NEW, dimension, now));
    let told = futures::future::join_all(all).await;
    let told: BTreeSet<usize> = told.into_iter().map(Result::unwrap).collect();
    assert_eq!(told.len(), 1, "{told:?}");
}

pub async fn what_is_stored_can_be_enqueued_to_be_embedded_with_it(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let item = indexed(w.memory("The budget is 400k"));
    let jobs = vec![w.new_job(JobKind::Embed)];
    let stored = w
        .store
        .remember(w.owner, vec![item], jobs, w.ids.change(), None, w.now());
    stored.await.unwrap();
    let session = w.session().await;
    let said = w.said(session, "The budget is 500k.").await;
    let claim = w.claimed_in(session, JobKind::Index).await;
    let mut index = w
        .index(session, vec![w.chunk("The budget is 500k.", &said)])
        .await;
    index.jobs = vec![w.new_job(JobKind::Embed), w.new_job(JobKind::Consolidate)];
    w.store.commit_index(&claim, index).await.unwrap();

    let jobs = w.jobs().await;
    let of = |kind| jobs.iter().filter(move |job| job.kind == kind);
    let embed: Vec<_> = of(JobKind::Embed).collect();
    assert_eq!(embed.len(), 1, "one serves the whole owner: {embed:?}");
    assert_eq!((embed[0].session_id, embed[0].owner), (None, w.owner));
    let consolidate: Vec<_> = of(JobKind::Consolidate).map(|j| j.session_id).collect();
    assert_eq!(consolidate, [Some(session)]);
}

pub async fn memories_are_asked_for_until_the_model_has_been_asked_about_them(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let stranger = w.strangers().await[0];
    let first = w.remembered(w.memory("The budget is 400k")).await;
    let second = w.remembered(w.memory("Tea at five")).await;
    let theirs = indexed(w.memory("Not mine"));
    let stored = w.store.remember(
        stranger,
        vec![theirs],
        Vec::new(),
        w.ids.change(),
        None,
        w.now(),
    );
    stored.await.unwrap();
    adopted(&w, OLD).await;
    let none = w.store.embedding_progress(w.owner, OLD).await.unwrap();
    assert_eq!(none, EmbeddingProgress { done: 0, total: 2 });
    assert_eq!(
        unembedded(&w, OLD).await,
        BTreeSet::from([first.id, second.id])
    );
    let newest = w.store.unembedded(w.owner, OLD, 1).await.unwrap();
    assert_eq!(
        newest,
        std::slice::from_ref(&second),
        "the newest goes first"
    );

    let claim = claimed(&w).await;
    let vectors = commit(OLD, &[(&first, Some(vector(1.0))), (&second, None)]);
    assert_eq!(w.store.commit_vectors(&claim, vectors).await.unwrap(), 2);
    assert!(unembedded(&w, OLD).await.is_empty());
    assert_eq!(unembedded(&w, NEW).await.len(), 2);
    let all = w.store.embedding_progress(w.owner, OLD).await.unwrap();
    assert_eq!(all, EmbeddingProgress { done: 2, total: 2 });
    assert_eq!(w.jobs().await, [claim.job], "the job goes on");
}

pub async fn vectors_are_followed_by_an_index_that_knows_their_memories(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let memories = [
        w.remembered(w.memory("The budget is 400k")).await,
        w.remembered(w.memory("Tea at five")).await,
        w.remembered(w.memory("The tide is high")).await,
    ];
    adopted(&w, OLD).await;
    let mut early = follower(&w, &[OLD, NEW]);
    early.catch_up(&w).await;
    let mut blind = follower(&w, &[]);
    let claim = claimed(&w).await;
    for (number, memory) in memories.iter().enumerate() {
        let known = early.change;
        let vectors = commit(OLD, &[(memory, Some(vector(number as f32)))]);
        w.store.commit_vectors(&claim, vectors).await.unwrap();
        early.catch_up(&w).await;
        assert!(early.change > known, "a vector is a change");
        let expected = vector(number as f32).values().to_vec();
        assert_eq!(held(&early, OLD, memory), Some(expected));
    }
    adopted(&w, NEW).await;
    let vectors = commit(NEW, &[(&memories[0], Some(vector(7.0)))]);
    w.store.commit_vectors(&claim, vectors).await.unwrap();
    // A use writes the memory anew, behind its vectors.
    let session = w.session().await;
    w.said(session, "Tea?").await;
    early.catch_up(&w).await;
    for page in [1, 2, ALL] {
        let mut late = follower(&w, &[OLD, NEW]);
        late.page = page;
        late.catch_up(&w).await;
        for memory in &memories {
            for model in [OLD, NEW] {
                assert_eq!(
                    held(&late, model, memory),
                    held(&early, model, memory),
                    "{page}"
                );
            }
        }
    }
    assert_eq!(
        held(&early, NEW, &memories[0]),
        Some(vector(7.0).values().to_vec())
    );
    assert_eq!(held(&early, NEW, &memories[1]), None);
    blind.catch_up(&w).await;
    assert_eq!(held(&blind, OLD, &memories[0]), None, "nobody asked for it");
    w.store.finish_job(&claim).await.unwrap();
}

pub async fn a_vector_of_what_has_changed_or_gone_is_not_stored(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let changed = w.remembered(w.memory("The budget is 400k")).await;
    let gone = w.remembered(w.memory("Tea at five")).await;
    let stays = w.remembered(w.memory("The tide is high")).await;
    adopted(&w, OLD).await;
    let claim = claimed(&w).await;
    w.forget(w.forgetting(gone.id)).await;
    let stale = Memory {
        version: changed.version + 1,
        ..changed.clone()
    };
    let mine = Some(vector(1.0));
    let vectors = commit(
        OLD,
        &[
            (&stale, mine.clone()),
            (&gone, mine.clone()),
            (&stays, mine),
        ],
    );
    assert_eq!(w.store.commit_vectors(&claim, vectors).await.unwrap(), 1);
    assert_eq!(unembedded(&w, OLD).await, BTreeSet::from([changed.id]));
    let mut follower = follower(&w, &[OLD]);
    follower.catch_up(&w).await;
    assert!(held(&follower, OLD, &stays).is_some());
    assert!(held(&follower, OLD, &changed).is_none());
}

pub async fn a_vector_goes_with_its_memory(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let memory = w.remembered(w.memory("The budget is 400k")).await;
    let other = w.remembered(w.memory("Tea at five")).await;
    adopted(&w, OLD).await;
    let claim = claimed(&w).await;
    let vectors = commit(
        OLD,
        &[(&memory, Some(vector(1.0))), (&other, Some(vector(2.0)))],
    );
    w.store.commit_vectors(&claim, vectors).await.unwrap();
    let mut follower = follower(&w, &[OLD]);
    follower.catch_up(&w).await;
    w.forget(w.forgetting(memory.id)).await;
    follower.catch_up(&w).await;
    assert!(held(&follower, OLD, &memory).is_none());
    let progress = w.store.embedding_progress(w.owner, OLD).await.unwrap();
    assert_eq!(progress, EmbeddingProgress { done: 1, total: 1 });
}

pub async fn a_memory_that_says_something_else_loses_its_vector_and_is_embedded_anew(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let before = w.remembered(w.memory("The budget is 400k")).await;
    adopted(&w, OLD).await;
    let claim = claimed(&w).await;
    let vectors = commit(OLD, &[(&before, Some(vector(1.0)))]);
    w.store.commit_vectors(&claim, vectors).await.unwrap();
    w.store.finish_job(&claim).await.unwrap();
    let mut follower = follower(&w, &[OLD]);
    follower.catch_up(&w).await;
    let edit = |before: &Memory, after: Memory| Edit {
        before: before.clone(),
        after: indexed(after),
        former: None,
        releases: false,
        echoes: Vec::new(),
        items: Vec::new(),
        buried: Vec::new(),
        jobs: vec![w.new_job(JobKind::Embed)],
        change: w.ids.change(),
        now: w.now(),
    };
    let pinned = Memory {
        pinned: true,
        version: before.version + 1,
        ..before.clone()
    };
    let mut same = edit(&before, pinned.clone());
    same.jobs.clear();
    w.store.edit_memory(w.owner, same).await.unwrap();
    follower.catch_up(&w).await;
    assert!(held(&follower, OLD, &before).is_some());
    let after = Memory {
        content: "The budget is 500k".to_owned(),
        version: pinned.version + 1,
        ..pinned.clone()
    };
    let other = edit(&pinned, after);
    w.store.edit_memory(w.owner, other).await.unwrap();
    follower.catch_up(&w).await;
    assert!(held(&follower, OLD, &before).is_none());
    assert_eq!(unembedded(&w, OLD).await, BTreeSet::from([before.id]));
    let kinds: Vec<JobKind> = w.jobs().await.into_iter().map(|job| job.kind).collect();
    assert_eq!(kinds, [JobKind::Embed]);
}

pub async fn who_has_lost_the_job_stores_and_drops_nothing(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let memory = w.remembered(w.memory("The budget is 400k")).await;
    adopted(&w, OLD).await;
    let job = w.new_job(JobKind::Embed);
    w.store
        .enqueue_embedding(w.owner, job, w.now())
        .await
        .unwrap();
    let slow = w.claim_for(SHORT).await.unwrap();
    lapse().await;
    let second = w.claim().await.unwrap();
    assert_eq!(second.job.id, slow.job.id);
    let before = w.store.memory_change(w.owner).await.unwrap();
    let late = w
        .store
        .commit_vectors(&slow, commit(OLD, &[(&memory, Some(vector(1.0)))]));
    assert!(matches!(late.await, Err(JobWriteError::Lost)));
    let late = w.store.drop_earlier_vectors(&slow, OLD, ALL);
    assert!(matches!(late.await, Err(JobWriteError::Lost)));
    let late = w.store.postpone_job(&slow, None, SHORT);
    assert!(matches!(late.await, Err(JobWriteError::Lost)));
    assert_eq!(unembedded(&w, OLD).await, BTreeSet::from([memory.id]));
    assert_eq!(w.store.memory_change(w.owner).await.unwrap(), before);
}

pub async fn vectors_of_models_that_were_adopted_earlier_are_dropped(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let memory = w.remembered(w.memory("The budget is 400k")).await;
    let other = w.remembered(w.memory("Tea at five")).await;
    let claim = claimed(&w).await;
    for model in [OLD, NEW] {
        adopted(&w, model).await;
        let vectors = commit(
            model,
            &[(&memory, Some(vector(1.0))), (&other, Some(vector(2.0)))],
        );
        w.store.commit_vectors(&claim, vectors).await.unwrap();
    }
    let drop = async |model: &str, limit| {
        let dropped = w.store.drop_earlier_vectors(&claim, model, limit).await;
        dropped.unwrap()
    };
    assert_eq!(drop("never adopted", ALL).await, 0);
    assert_eq!(drop(OLD, ALL).await, 0, "the newer one stays");
    assert_eq!(drop(NEW, 1).await, 1);
    assert_eq!(drop(NEW, ALL).await, 1);
    assert_eq!(unembedded(&w, OLD).await.len(), 2);
    assert!(unembedded(&w, NEW).await.is_empty());
    // And back again.
    adopted(&w, OLD).await;
    assert_eq!(drop(OLD, ALL).await, 2);
}

pub async fn what_lies_before_a_mark_is_not_looked_at_again(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let memory = w.remembered(w.memory("The budget is 400k")).await;
    for model in [OLD, NEW] {
        adopted(&w, model).await;
    }
    let newest = w.store.memory_change(w.owner).await.unwrap();
    let claim = claimed(&w).await;
    w.store.finish_job(&claim).await.unwrap();
    let late = w.store.finish_embedding(&claim, OLD, newest).await;
    assert!(matches!(late, Err(JobWriteError::Lost)));
    assert_eq!(
        unembedded(&w, OLD).await,
        BTreeSet::from([memory.id]),
        "who has lost the job marks nothing"
    );

    let claim = claimed(&w).await;
    w.store.finish_embedding(&claim, OLD, newest).await.unwrap();
    assert!(unembedded(&w, OLD).await.is_empty());
    assert_eq!(unembedded(&w, NEW).await, BTreeSet::from([memory.id]));
    assert!(!to_embed(&w, OLD).await.contains(&w.owner));
    let later = w.remembered(w.memory("Tea at five")).await;
    assert_eq!(unembedded(&w, OLD).await, BTreeSet::from([later.id]));
    assert!(to_embed(&w, OLD).await.contains(&w.owner));
    // The marks of a model go with its vectors: when it returns, everything is to be embedded again.
    let claim = claimed(&w).await;
    w.store
        .drop_earlier_vectors(&claim, NEW, ALL)
        .await
        .unwrap();
    assert_eq!(
        unembedded(&w, OLD).await,
        BTreeSet::from([memory.id, later.id])
    );
}

pub async fn owners_with_something_to_do_are_found_until_it_is_enqueued_or_done(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let memory = w.remembered(w.memory("The budget is 400k")).await;
    let strangers = w.strangers().await;
    for stranger in strangers {
        let item = indexed(w.memory("Theirs"));
        let stored = w.store.remember(
            stranger,
            vec![item],
            Vec::new(),
            w.ids.change(),
            None,
            w.now(),
        );
        stored.await.unwrap();
    }
    adopted(&w, OLD).await;
    let everybody = [w.owner, strangers[0], strangers[1]];
    let number = |owner: &Owner| (owner.tenant, owner.id);
    let found = to_embed(&w, OLD).await;
    assert_eq!(
        sorted(found.iter().map(number)),
        sorted(everybody.iter().map(number))
    );
    let mut one_by_one = Vec::new();
    let mut after = None;
    loop {
        let next = w.store.owners_to_embed(OLD, after, 1).await.unwrap();
        let Some(owner) = next.first() else { break };
        one_by_one.push(*owner);
        after = Some(*owner);
    }
    assert_eq!(one_by_one, found);

    let claim = claimed(&w).await;
    assert!(!to_embed(&w, OLD).await.contains(&w.owner));
    let vectors = commit(OLD, &[(&memory, Some(vector(1.0)))]);
    w.store.commit_vectors(&claim, vectors).await.unwrap();
    w.store.finish_job(&claim).await.unwrap();
    assert!(!to_embed(&w, OLD).await.contains(&w.owner));
    assert!(to_embed(&w, NEW).await.contains(&w.owner));

    adopted(&w, NEW).await;
    let claim = claimed(&w).await;
    let vectors = commit(NEW, &[(&memory, Some(vector(1.0)))]);
    w.store.commit_vectors(&claim, vectors).await.unwrap();
    w.store.finish_job(&claim).await.unwrap();
    assert!(
        to_embed(&w, NEW).await.contains(&w.owner),
        "old vectors are left"
    );
    let claim = claimed(&w).await;
    w.store
        .drop_earlier_vectors(&claim, NEW, ALL)
        .await
        .unwrap();
    w.store.finish_job(&claim).await.unwrap();
    assert!(!to_embed(&w, NEW).await.contains(&w.owner));
}

pub async fn a_postponed_job_waits_with_fresh_attempts(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let claim = claimed(&w).await;
    let hour = std::time::Duration::from_hours(1);
    w.store
        .postpone_job(&claim, Some("not there"), hour)
        .await
        .unwrap();
    let jobs = w.jobs().await;
    assert_eq!(jobs.len(), 1);
    assert_eq!((jobs[0].state, jobs[0].attempts), (JobState::Pending, 0));
    assert_eq!(jobs[0].last_error.as_deref(), Some("not there"));
    assert!(jobs[0].run_at - claim.job.run_at >= chrono::TimeDelta::minutes(59));
    assert_eq!(w.claim().await, None);
    // One that came meanwhile serves.
    let tenant = w.owner.tenant;
    assert!(w.store.drop_job(tenant, jobs[0].id).await.unwrap());
    let claim = claimed(&w).await;
    let job = w.new_job(JobKind::Embed);
    w.store
        .enqueue_embedding(w.owner, job, w.now())
        .await
        .unwrap();
    w.store.postpone_job(&claim, None, hour).await.unwrap();
    let left: Vec<_> = w.jobs().await.iter().map(|job| job.id).collect();
    assert_eq!(left, [job.id]);
}

pub async fn speakers_are_those_by_whom_there_is_a_memory(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    assert!(w.store.speakers(w.owner).await.unwrap().is_empty());
    for (content, speaker) in [
        ("Tea", Some("王小明")),
        ("Coffee", Some("Bob")),
        ("Water", Some("Bob")),
        ("Milk", None),
    ] {
        let memory = Memory {
            speaker: speaker.map(str::to_owned),
            ..w.memory(content)
        };
        w.remembered(memory).await;
    }
    let found = w.store.speakers(w.owner).await.unwrap();
    assert_eq!(found, ["Bob", "王小明"]);
}
