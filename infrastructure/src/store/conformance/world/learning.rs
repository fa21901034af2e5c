//! Jobs and memories.

use std::time::Duration;

use tidemark_application::ports::jobs::{ClaimedJob, Job, JobKind, NewJob};
use tidemark_application::ports::learning::{ConsolidationCommit, IndexCommit, LearningSnapshot};
use tidemark_application::ports::memories::{Forgetting, MemoryFilter};
use tidemark_application::ports::sessions::Updated;
use tidemark_domain::ids::{MemoryId, SessionId};
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, State, Trust};
use tidemark_domain::session::{Message, Role};

use super::{ALL, LONG, World, indexed, source};

impl World {
    pub(in crate::store::conformance) fn new_job(&self, kind: JobKind) -> NewJob {
        NewJob {
            id: self.ids.job(),
            kind,
        }
    }

    /// Enqueues a job with a message that comes with it, and returns it as the store lists it.
    pub(in crate::store::conformance) async fn enqueued(
        &self,
        session: SessionId,
        kind: JobKind,
    ) -> Job {
        let past = self.past(Role::User, "Something was said.");
        self.import_with(session, vec![past], &[kind]).await;
        let jobs = self.jobs().await;
        jobs.into_iter()
            .find(|job| {
                job.session_id == Some(session).filter(|_| !kind.is_of_owner()) && job.kind == kind
            })
            .unwrap()
    }

    pub(in crate::store::conformance) async fn claim_for(
        &self,
        lease: Duration,
    ) -> Option<ClaimedJob> {
        self.store.claim_job(lease).await.unwrap()
    }

    pub(in crate::store::conformance) async fn claim(&self) -> Option<ClaimedJob> {
        self.claim_for(LONG).await
    }

    /// A claimed job of this kind; nothing else may be due.
    pub(in crate::store::conformance) async fn claimed(
        &self,
        session: SessionId,
        kind: JobKind,
    ) -> ClaimedJob {
        self.enqueued(session, kind).await;
        let claim = self.claim().await.unwrap();
        assert_eq!(
            (claim.job.session_id, claim.job.kind),
            (Some(session), kind)
        );
        claim
    }

    /// The claimed job of this kind of a session, whatever else is due.
    pub(in crate::store::conformance) async fn claimed_in(
        &self,
        session: SessionId,
        kind: JobKind,
    ) -> ClaimedJob {
        self.enqueued(session, kind).await;
        let claim = self.store.claim_job_of(&[kind], LONG).await.unwrap();
        claim.filter(|c| c.job.session_id == Some(session)).unwrap()
    }

    /// Moves a session's `indexed_seq` to its newest closed message, by way of a job.
    pub(in crate::store::conformance) async fn index_all(&self, session: SessionId) {
        let claim = self.claimed(session, JobKind::Index).await;
        let commit = self.index(session, Vec::new()).await;
        self.store.commit_index(&claim, commit).await.unwrap();
    }

    pub(in crate::store::conformance) async fn jobs(&self) -> Vec<Job> {
        self.store
            .list_jobs(self.owner.tenant, None, None, ALL)
            .await
            .unwrap()
            .items
    }
}

/// Commits of derived work.
impl World {
    pub(in crate::store::conformance) async fn snapshot(
        &self,
        session: SessionId,
    ) -> LearningSnapshot {
        let found = self.store.learning_snapshot(self.owner, session).await;
        found.unwrap().unwrap()
    }

    /// The commit of an index job as it stands now.
    pub(in crate::store::conformance) async fn index(
        &self,
        session: SessionId,
        memories: Vec<Memory>,
    ) -> IndexCommit {
        let snapshot = self.snapshot(session).await;
        IndexCommit {
            erase_epoch: snapshot.erase_epoch,
            from_seq: snapshot.session.indexed_seq,
            to_seq: snapshot.last_closed,
            memories: memories.into_iter().map(indexed).collect(),
            change: self.ids.change(),
            jobs: Vec::new(),
            now: self.now(),
        }
    }

    /// The commit of a consolidation as it stands now.
    pub(in crate::store::conformance) async fn consolidation(
        &self,
        session: SessionId,
        new: Vec<Memory>,
    ) -> ConsolidationCommit {
        let snapshot = self.snapshot(session).await;
        ConsolidationCommit {
            erase_epoch: snapshot.erase_epoch,
            from_seq: snapshot.session.last_consolidated,
            to_seq: snapshot.last_closed,
            new: new.into_iter().map(indexed).collect(),
            worded: Vec::new(),
            strengthened: Vec::new(),
            change: self.ids.change(),
            pending: None,
            jobs: Vec::new(),
            now: self.now(),
        }
    }
}

impl World {
    /// A fact that a caller gives.
    pub(in crate::store::conformance) fn memory(&self, content: &str) -> Memory {
        let now = self.now();
        Memory {
            id: self.ids.memory(),
            content: content.to_owned(),
            speaker: None,
            scope: Scope::ProjectContext,
            kind: Kind::Fact,
            layer: Layer::Semantic,
            state: State::Current,
            importance: 3,
            confidence: 0.8,
            trust: Trust::User,
            pinned: false,
            key: None,
            session_id: None,
            sources: Vec::new(),
            valid_from: now,
            valid_to: None,
            superseded_by: None,
            ended_at: None,
            expires_at: None,
            created_at: now,
            access_count: 0,
            last_access: now,
            version: 1,
        }
    }

    /// A fact that these messages taught.
    pub(in crate::store::conformance) fn learned(
        &self,
        content: &str,
        from: &[&Message],
    ) -> Memory {
        Memory {
            session_id: from.first().map(|m| m.session_id),
            sources: from.iter().copied().map(source).collect(),
            ..self.memory(content)
        }
    }

    /// What was said, word for word.
    pub(in crate::store::conformance) fn chunk(&self, content: &str, message: &Message) -> Memory {
        Memory {
            layer: Layer::Episodic,
            ..self.learned(content, &[message])
        }
    }

    /// Stores a memory and returns what the store returns for it.
    pub(in crate::store::conformance) async fn remembered(&self, memory: Memory) -> Memory {
        let items = vec![indexed(memory)];
        self.store
            .remember(
                self.owner,
                items,
                Vec::new(),
                self.ids.change(),
                None,
                self.now(),
            )
            .await
            .unwrap()
            .value
            .pop()
            .unwrap()
    }

    /// The wish to forget a memory alone, in whatever version it is.
    pub(in crate::store::conformance) fn forgetting(&self, id: MemoryId) -> Forgetting {
        Forgetting {
            id,
            expected: None,
            fresh: false,
            echoes: Vec::new(),
            buried: Vec::new(),
            change: self.ids.change(),
            now: self.now(),
        }
    }

    /// Forgets, and tells how many memories went.
    pub(in crate::store::conformance) async fn forget(&self, what: Forgetting) -> u64 {
        match self.store.forget(self.owner, what).await.unwrap() {
            Updated::Done(removed) => removed,
            refused => panic!("{refused:?}"),
        }
    }

    pub(in crate::store::conformance) async fn memory_row(&self, id: MemoryId) -> Option<Memory> {
        let found = self.store.memories(self.owner, &[id]).await.unwrap();
        assert!(found.len() <= 1);
        found.into_iter().next()
    }

    pub(in crate::store::conformance) async fn memories(&self) -> Vec<Memory> {
        self.store
            .list_memories(self.owner, &MemoryFilter::default(), None, ALL)
            .await
            .unwrap()
            .items
    }
}
