//! What is learned from messages that go away.

use tidemark_application::ports::jobs::JobWriteError;
use tidemark_application::ports::learning::{IndexCommit, LearningRepository};
use tidemark_application::ports::memories::{Forgetting, IndexedMemory, MemoryRepository};
use tidemark_application::ports::sessions::Updated;
use tidemark_domain::memory::index::Document;
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, Source, State, Trust, chunk_id};
use tidemark_domain::session::Message;

use super::*;

/// A chunk as indexing makes it.
pub(super) fn chunk(message: &Message) -> IndexedMemory {
    let now = message.created_at;
    let memory = Memory {
        id: chunk_id(message.id, 0),
        content: message.content.clone(),
        speaker: None,
        scope: Scope::ProjectContext,
        kind: Kind::Fact,
        layer: Layer::Episodic,
        state: State::Current,
        importance: 3,
        confidence: 1.0,
        trust: Trust::User,
        pinned: false,
        key: None,
        session_id: Some(message.session_id),
        sources: vec![Source {
            message_id: message.id,
            session_id: message.session_id,
            seq: message.seq,
        }],
        valid_from: now,
        valid_to: None,
        superseded_by: None,
        ended_at: None,
        expires_at: None,
        created_at: now,
        access_count: 0,
        last_access: now,
        version: 1,
    };
    IndexedMemory {
        identity: message.content.to_lowercase(),
        document: Document::of(&memory),
        memory,
    }
}

async fn sources_of(store: &SqliteStore, memory: tidemark_domain::ids::MemoryId) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM memory_sources WHERE memory_id = ?1")
        .bind(memory.0)
        .fetch_one(&store.readers)
        .await
        .unwrap()
}

/// A committed turn whose user's message is indexed.
async fn indexed(fixture: &Fixture, session: SessionId) -> (Started, IndexedMemory) {
    let started = fixture.started(session).await;
    let committed = fixture.store.commit_turn(started.key, fixture.commit());
    committed.await.unwrap();
    let claim = fixture.store.claim_job(LEASE).await.unwrap().unwrap();
    let snapshot = fixture.store.learning_snapshot(fixture.owner, session);
    let snapshot = snapshot.await.unwrap().unwrap();
    let mut memory = chunk(&started.message);
    memory.memory.expires_at = Some(fixture.now + TimeDelta::hours(1));
    let commit = IndexCommit {
        erase_epoch: snapshot.erase_epoch,
        from_seq: snapshot.session.indexed_seq,
        to_seq: snapshot.last_closed,
        memories: vec![memory.clone()],
        change: fixture.ids.change(),
        jobs: Vec::new(),
        now: fixture.now,
    };
    fixture.store.commit_index(&claim, commit).await.unwrap();
    (started, memory)
}

#[tokio::test]
async fn a_memory_that_goes_takes_its_sources_with_it_however_it_goes() {
    let fixture = Fixture::new().await;
    let (store, owner) = (&fixture.store, fixture.owner);
    for way in ["forgotten", "expired", "session deleted", "turn replaced"] {
        let session = fixture.session().await;
        let (started, memory) = indexed(&fixture, session).await;
        let id = memory.memory.id;
        assert_eq!(sources_of(store, id).await, 1);
        match way {
            "forgotten" => {
                let forgetting = Forgetting {
                    id,
                    expected: None,
                    fresh: false,
                    echoes: Vec::new(),
                    buried: Vec::new(),
                    change: fixture.ids.change(),
                    now: fixture.now,
                };
                let forgotten = store.forget(owner, forgetting).await.unwrap();
                assert_eq!(forgotten, Updated::Done(1));
            }
            "expired" => {
                let later = fixture.now + TimeDelta::hours(1);
                store
                    .remember(
                        owner,
                        Vec::new(),
                        Vec::new(),
                        fixture.ids.change(),
                        None,
                        later,
                    )
                    .await
                    .unwrap();
            }
            "session deleted" => {
                let deleted = store.delete_session(owner, session, true).await;
                assert!(deleted.unwrap().is_some());
            }
            _ => {
                let replacing = AcceptTurn {
                    replaces: Some(started.key.turn_id),
                    ..fixture.turn(session)
                };
                store.accept_turn(replacing).await.unwrap();
            }
        }
        assert_eq!(sources_of(store, id).await, 0, "{way}");
    }
}

#[tokio::test]
async fn a_replacement_voids_learning_that_has_read_what_it_removes() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let started = fixture.started(session).await;
    fixture
        .store
        .commit_turn(started.key, fixture.commit())
        .await
        .unwrap();
    let claim = fixture.store.claim_job(LEASE).await.unwrap().unwrap();
    let snapshot = fixture
        .store
        .learning_snapshot(fixture.owner, session)
        .await
        .unwrap()
        .unwrap();
    let replacing = AcceptTurn {
        replaces: Some(started.key.turn_id),
        now: fixture.now + TimeDelta::seconds(1),
        ..fixture.turn(session)
    };
    fixture.store.accept_turn(replacing).await.unwrap();
    let again = fixture.start(session).await.unwrap();
    fixture
        .store
        .commit_turn(again.key, fixture.commit())
        .await
        .unwrap();
    let stale = IndexCommit {
        erase_epoch: snapshot.erase_epoch,
        from_seq: 0,
        to_seq: snapshot.last_closed,
        memories: Vec::new(),
        change: fixture.ids.change(),
        jobs: Vec::new(),
        now: fixture.now,
    };
    let refused = fixture.store.commit_index(&claim, stale).await;
    assert!(matches!(refused, Err(JobWriteError::Conflict)));
    assert!(fixture.store.finish_job(&claim).await.is_ok());
}
