//! Memories, their changes and their vectors.

use tidemark_application::ports::embeddings::{MemoryVector, VectorCommit};
use tidemark_application::ports::jobs::{ClaimedJob, JobKind};
use tidemark_application::ports::memories::{ChangePosition, MemoryFilter};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::Change;
use tidemark_domain::memory::conflict::Touched;
use tidemark_domain::memory::embedding::Embedding;

use super::super::changes::{editing, reversal, to};
use super::super::world::{ALL, LONG, World, indexed};
use super::{Operation, operation};

const MODEL: &str = "local:wave-1";

/// A memory like no other.
async fn known(w: &World) -> Memory {
    w.remembered(w.memory(&format!("The code is {}.", w.ids.uuid())))
        .await
}

/// The change that brought a memory.
async fn taught(w: &World) -> Change {
    let memory = known(w).await;
    let changes = w.store.changes_of(w.owner, memory.id).await;
    changes.unwrap().pop().unwrap()
}

async fn claimed(w: &World) -> ClaimedJob {
    let job = w.new_job(JobKind::Embed);
    let enqueued = w.store.enqueue_embedding(w.owner, job, w.now()).await;
    enqueued.unwrap();
    let claim = w.store.claim_job_of(&[JobKind::Embed], LONG).await;
    claim.unwrap().unwrap()
}

pub(super) fn operations() -> Vec<Operation> {
    let mut all = memories();
    all.extend(changes());
    all.extend(vectors());
    all
}

fn memories() -> Vec<Operation> {
    vec![
        operation!(w.remember(w.owner, items, Vec::new(), change, None, now) after {
            let items = vec![indexed(w.memory(&format!("The code is {}.", w.ids.uuid())))];
            let (change, now) = (w.ids.change(), w.now());
        }),
        operation!(w.memories_by_key(w.owner, &touched) after {
            let touched = Touched { keys: vec!["budget".to_owned()], since: w.now() };
        }),
        operation!(w.memories(w.owner, &[known.id]) after { let known = known(&w).await; }),
        operation!(w.list_memories(w.owner, &MemoryFilter::default(), None, ALL) after {}),
        operation!(w.forget(w.owner, what) after {
            let known = known(&w).await;
            let what = w.forgetting(known.id);
        }),
        operation!(w.memory_change(w.owner) after {}),
        operation!(w.index_delta(w.owner, ChangePosition::START, ALL, &[MODEL.to_owned()]) after {}),
        operation!(w.buried(w.owner, &[(w.ids.message(), "budget".to_owned())]) after {}),
        operation!(w.preferences(w.owner, now, ALL) after { let now = w.now(); }),
        operation!(w.keys_in_use(w.owner, ALL) after {}),
        operation!(w.memories_from(w.owner, &[w.ids.message()]) after {}),
        operation!(w.memories_by_identity(w.owner, &["x".to_owned()]) after {}),
        operation!(w.unindexed(w.owner, ALL) after {}),
        operation!(w.fading(now, None, ALL) after { let now = w.now(); }),
        operation!(w.fade(w.owner, vec![known.id], change, now) after {
            let (known, change, now) = (known(&w).await, w.ids.change(), w.now());
        }),
    ]
}

fn changes() -> Vec<Operation> {
    vec![
        operation!(w.ended_by(w.owner, known.id) after { let known = known(&w).await; }),
        operation!(w.formers(w.owner, known.id) after { let known = known(&w).await; }),
        operation!(w.list_changes(w.owner, None, None, ALL) after {}),
        operation!(w.change(w.owner, change.id) after { let change = taught(&w).await; }),
        operation!(w.changes_of(w.owner, known.id) after { let known = known(&w).await; }),
        operation!(w.later_items(w.owner, change.id, &[change.items[0].memory]) after {
            let change = taught(&w).await;
        }),
        operation!(w.edit_memory(w.owner, edit) after {
            let edit = editing(&w, &known(&w).await, to("It is for tea."));
        }),
        operation!(w.revert(w.owner, reversal) after {
            let reversal = reversal(&w, &taught(&w).await).await;
        }),
    ]
}

fn vectors() -> Vec<Operation> {
    vec![
        operation!(w.embedding_dimension(MODEL) after {}),
        operation!(w.adopt_embedding_model(MODEL, 3, now) after { let now = w.now(); }),
        operation!(w.owners_to_embed(MODEL, None, ALL) after {}),
        operation!(w.enqueue_embedding(w.owner, job, now) after {
            let (job, now) = (w.new_job(JobKind::Embed), w.now());
        }),
        operation!(w.unembedded(w.owner, MODEL, 10) after {}),
        operation!(w.speakers(w.owner) after {}),
        operation!(w.embedding_progress(w.owner, MODEL) after {}),
        operation!(w.commit_vectors(&claim, commit) after {
            let (claim, known) = (claimed(&w).await, known(&w).await);
            let vector = MemoryVector {
                memory: known.id,
                version: known.version,
                vector: Embedding::of(&[1.0, 0.5, 0.0]),
            };
            let commit = VectorCommit { model: MODEL.to_owned(), vectors: vec![vector] };
        }),
        operation!(w.drop_earlier_vectors(&claim, MODEL, ALL) after { let claim = claimed(&w).await; }),
        operation!(w.finish_embedding(&claim, MODEL, 1) after { let claim = claimed(&w).await; }),
    ]
}
