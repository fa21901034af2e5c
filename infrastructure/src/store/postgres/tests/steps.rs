//! Steps of a conversation, and the races that only concurrent transactions have.

use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tidemark_application::memory::remember;
use tidemark_application::ports::changes::{ChangeRepository, Edit};
use tidemark_application::ports::embeddings::{EmbeddingRepository, MemoryVector, VectorCommit};
use tidemark_application::ports::jobs::{JobKind, JobRepository, JobState, NewJob};
use tidemark_application::ports::learning::{
    ConsolidationCommit, IndexCommit, LearningRepository, Unanswered,
};
use tidemark_application::ports::memories::{
    Forgetting, IndexedMemory, MemoryFilter, MemoryRepository,
};
use tidemark_application::ports::sessions::{NewSession, SessionRepository, Updated};
use tidemark_application::ports::store::Idempotency;
use tidemark_application::ports::turns::{
    AcceptTurn, CommitTurn, NewMessage, SharedLimits, Started, TokenLimits, TurnRepository,
    TurnSession,
};
use tidemark_application::ports::users::UserRepository;
use tidemark_domain::ids::{
    ChangeId, JobId, MemoryId, MessageId, Owner, SessionId, TenantId, TurnId,
};
use tidemark_domain::memory::change::{self, Item, Op};
use tidemark_domain::memory::embedding::Embedding;
use tidemark_domain::memory::index::Document;
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, Source, State, Trust};
use tidemark_domain::session::{MemoryMode, Role};
use tidemark_domain::turn::{FinishReason, TurnOptions, Usage};

use super::super::testing::{TestDatabase, new_id, now, owner};
use super::super::{PostgresStore, jobs, sessions};

pub(super) fn new_session() -> NewSession {
    NewSession {
        id: SessionId(new_id()),
        title: Some("a session".to_owned()),
        labels: vec!["one".to_owned()],
        channel: "api".to_owned(),
        memory: MemoryMode::On,
        now: now(),
    }
}

pub(super) fn accept_turn(owner: Owner, session: TurnSession) -> AcceptTurn {
    AcceptTurn {
        owner,
        id: TurnId(new_id()),
        session,
        input: "what is the budget?".to_owned(),
        memory: None,
        options: TurnOptions::default(),
        reject_if_busy: false,
        replaces: None,
        admit: true,
        max_queued: 8,
        max_open_per_owner: 1_000,
        key: None,
        max_open_shared: SharedLimits::default(),
        max_tokens: TokenLimits::default(),
        idempotency: Some(Idempotency {
            key: new_id().to_string(),
            operation: "POST /v1/turns".to_owned(),
            body_hash: [7; 32],
        }),
        start: None,
        now: now(),
    }
}

pub(super) fn job(kind: JobKind) -> NewJob {
    NewJob {
        id: JobId(new_id()),
        kind,
    }
}

pub(super) fn commit(jobs: Vec<NewJob>) -> CommitTurn {
    CommitTurn {
        answer: NewMessage {
            id: MessageId(new_id()),
            role: Role::Assistant,
            content: "300k".to_owned(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            partial: false,
            learnable: true,
        },
        finish_reason: FinishReason::Stop,
        usage: Usage {
            prompt_tokens: 9,
            ..Usage::default()
        },
        recalled: Vec::new(),
        // So that this table has rows too.
        counts_tokens: true,
        events_used: 3,
        jobs,
        now: now(),
    }
}

pub(super) async fn started(store: &PostgresStore, owner: Owner, session: SessionId) -> Started {
    store
        .start_turn(
            owner,
            session,
            MessageId(new_id()),
            Duration::from_secs(30),
            64,
            now(),
        )
        .await
        .unwrap()
        .expect("a turn starts")
}

/// A session with one answered turn, whose index job is pending.
pub(super) async fn answered(store: &PostgresStore, owner: Owner) -> SessionId {
    let session = new_session();
    let id = session.id;
    store
        .accept_turn(accept_turn(owner, TurnSession::New(session)))
        .await
        .unwrap();
    let started = started(store, owner, id).await;
    store
        .commit_turn(started.key, commit(vec![job(JobKind::Index)]))
        .await
        .unwrap();
    id
}

pub(super) fn memory(content: &str, sources: Vec<Source>) -> IndexedMemory {
    let memory = Memory {
        id: MemoryId(new_id()),
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
        sources,
        valid_from: now(),
        valid_to: None,
        superseded_by: None,
        ended_at: None,
        expires_at: None,
        created_at: now(),
        access_count: 0,
        last_access: now(),
        version: 1,
    };
    IndexedMemory {
        identity: content.to_lowercase(),
        document: Document::of(&memory),
        memory,
    }
}

/// Puts at least one row of the tenant into every table.
pub(super) async fn fill(store: &PostgresStore, tenant: TenantId) -> Owner {
    let owner = self::owner(store, tenant).await;
    let session = answered(store, owner).await;
    let claim = store
        .claim_job(Duration::from_secs(30))
        .await
        .unwrap()
        .expect("the index job is due");
    assert_eq!(claim.job.session_id, Some(session));
    let messages = store.history(owner, session, None, 10).await.unwrap();
    let source = |seq: usize| Source {
        message_id: messages[seq].id,
        session_id: session,
        seq: messages[seq].seq,
    };
    let (kept, forgotten) = (
        memory("the budget is 300k", vec![source(0)]),
        memory("an answer was given", vec![source(1)]),
    );
    let gone = forgotten.memory.id;
    store
        .commit_index(
            &claim,
            IndexCommit {
                erase_epoch: 0,
                from_seq: 0,
                to_seq: 2,
                memories: vec![kept, forgotten],
                change: ChangeId(new_id()),
                jobs: vec![job(JobKind::Consolidate)],
                now: now(),
            },
        )
        .await
        .unwrap();
    let forgetting = Forgetting {
        id: gone,
        expected: None,
        fresh: false,
        echoes: Vec::new(),
        buried: Vec::new(),
        change: ChangeId(new_id()),
        now: now(),
    };
    let forgotten = store.forget(owner, forgetting).await.unwrap();
    assert_eq!(forgotten, Updated::Done(1));
    edit(store, owner).await;
    leave_unread(store, owner, session).await;
    embed(store, owner).await;
    let other = self::owner(store, tenant).await;
    let erased = store.erase(other, new_id(), now()).await.unwrap();
    assert!(erased.is_some());
    owner
}

/// Has a memory say something else from now on.
async fn edit(store: &PostgresStore, owner: Owner) {
    let all = MemoryFilter::default();
    let page = store.list_memories(owner, &all, None, 1).await.unwrap();
    let before = page.items.into_iter().next().unwrap();
    let after = Memory {
        content: "the budget is 400k".to_owned(),
        valid_from: now(),
        version: before.version + 1,
        ..before.clone()
    };
    let former = change::former(&before, &after, MemoryId(new_id())).unwrap();
    let edit = Edit {
        items: vec![Item::changed(&before, &after, Op::Updated)],
        before,
        after: remember::index(after),
        former: Some(remember::index(former)),
        releases: false,
        echoes: Vec::new(),
        buried: Vec::new(),
        jobs: Vec::new(),
        change: ChangeId(new_id()),
        now: now(),
    };
    let edited = store.edit_memory(owner, edit).await.unwrap();
    assert!(matches!(edited, Updated::Done(_)));
}

/// Consolidates what a model has yet to read.
async fn leave_unread(store: &PostgresStore, owner: Owner, session: SessionId) {
    let claim = store.claim_job_of(&[JobKind::Consolidate], Duration::from_secs(30));
    let claim = claim.await.unwrap().expect("the job is due");
    assert_eq!(claim.job.session_id, Some(session));
    let commit = ConsolidationCommit {
        erase_epoch: 0,
        from_seq: 0,
        to_seq: 2,
        new: Vec::new(),
        worded: Vec::new(),
        strengthened: Vec::new(),
        pending: Some(Unanswered {
            job: JobId(new_id()),
            error: "silent".to_owned(),
            retry_in: Duration::from_mins(1),
        }),
        change: ChangeId(new_id()),
        jobs: Vec::new(),
        now: now(),
    };
    store.commit_consolidation(&claim, commit).await.unwrap();
    let pending = store.pending_extractions(owner, session).await.unwrap();
    assert_eq!(pending.len(), 1);
}

/// Embeds everything that the owner has.
async fn embed(store: &PostgresStore, owner: Owner) {
    const MODEL: &str = "a model";
    store.adopt_embedding_model(MODEL, 2, now()).await.unwrap();
    store
        .enqueue_embedding(owner, job(JobKind::Embed), now())
        .await
        .unwrap();
    let claim = store.claim_job_of(&[JobKind::Embed], Duration::from_secs(30));
    let claim = claim.await.unwrap().expect("the job is due");
    let memories = store.unembedded(owner, MODEL, 10).await.unwrap();
    assert!(!memories.is_empty());
    let vectors = memories.iter().map(|memory| MemoryVector {
        memory: memory.id,
        version: memory.version,
        vector: Embedding::of(&[1.0, 2.0]),
    });
    let commit = VectorCommit {
        model: MODEL.to_owned(),
        vectors: vectors.collect(),
    };
    store.commit_vectors(&claim, commit).await.unwrap();
    store.finish_embedding(&claim, MODEL, 1).await.unwrap();
}

async fn app_connection(database: &TestDatabase, owner: Owner) -> PgConnection {
    let mut connection = database.connection().await;
    sqlx::raw_sql("SET ROLE tidemark_app")
        .execute(&mut connection)
        .await
        .unwrap();
    sqlx::query("SELECT set_config('tidemark.tenant', $1, false)")
        .bind(owner.tenant.to_string())
        .execute(&mut connection)
        .await
        .unwrap();
    connection
}

#[tokio::test]
async fn a_pending_job_is_not_claimed_while_what_it_is_to_work_on_is_being_committed() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    let owner = owner(&store, TenantId::DEFAULT).await;
    let session = answered(&store, owner).await;

    let mut connection = app_connection(&database, owner).await;
    let mut transaction = connection.begin().await.unwrap();
    sessions::lock(&mut transaction, owner, session)
        .await
        .unwrap();
    jobs::enqueue(
        &mut transaction,
        owner,
        session,
        &[job(JobKind::Index)],
        now(),
    )
    .await
    .unwrap();

    assert_eq!(store.claim_job(Duration::from_secs(5)).await.unwrap(), None);
    transaction.commit().await.unwrap();
    let claimed = store.claim_job(Duration::from_secs(5)).await.unwrap();
    assert_eq!(claimed.unwrap().job.session_id, Some(session));
    assert_eq!(store.claim_job(Duration::from_secs(5)).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_requests_with_one_key_at_the_same_time_make_one_turn() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    let owner = owner(&store, TenantId::DEFAULT).await;
    for _ in 0..10 {
        let session = new_session();
        let first = accept_turn(owner, TurnSession::New(session));
        let mut second = accept_turn(owner, TurnSession::New(new_session()));
        second.idempotency.clone_from(&first.idempotency);
        let (first, second) = tokio::join!(store.accept_turn(first), store.accept_turn(second));
        let (first, second) = (first.unwrap(), second.unwrap());
        assert_eq!(first.turn, second.turn);
        assert!(first.replayed != second.replayed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_starts_at_the_same_time_one_succeeds_and_numbers_have_no_gap() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    let owner = owner(&store, TenantId::DEFAULT).await;
    let session = store
        .create_session(owner, new_session(), None)
        .await
        .unwrap()
        .value
        .id;
    for _ in 0..3 {
        store
            .accept_turn(accept_turn(owner, TurnSession::Existing(session)))
            .await
            .unwrap();
    }
    for round in 0..3 {
        let starts = (0..4).map(|_| {
            store.start_turn(
                owner,
                session,
                MessageId(new_id()),
                Duration::from_secs(30),
                64,
                now(),
            )
        });
        let mut started: Vec<Started> = futures::future::join_all(starts)
            .await
            .into_iter()
            .filter_map(Result::unwrap)
            .collect();
        assert_eq!(started.len(), 1);
        let started = started.pop().unwrap();
        assert_eq!(started.message.seq, round * 2 + 1);
        store
            .commit_turn(started.key, commit(Vec::new()))
            .await
            .unwrap();
    }
    let seqs: Vec<i64> = store
        .history(owner, session, None, 100)
        .await
        .unwrap()
        .iter()
        .map(|message| message.seq)
        .collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn work_decided_on_a_branch_that_was_replaced_is_refused() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    let owner = owner(&store, TenantId::DEFAULT).await;
    let session = answered(&store, owner).await;
    let first = store.history(owner, session, None, 10).await.unwrap();
    let claim = store
        .claim_job(Duration::from_secs(30))
        .await
        .unwrap()
        .unwrap();
    let snapshot = store
        .learning_snapshot(owner, session)
        .await
        .unwrap()
        .unwrap();

    let mut again = accept_turn(owner, TurnSession::Existing(session));
    again.replaces = first[0].turn_id;
    store.accept_turn(again).await.unwrap();
    let started = started(&store, owner, session).await;
    assert_eq!(started.message.seq, 1);
    store
        .commit_turn(started.key, commit(Vec::new()))
        .await
        .unwrap();

    let source = Source {
        message_id: first[0].id,
        session_id: session,
        seq: 1,
    };
    let refused = store
        .commit_index(
            &claim,
            IndexCommit {
                erase_epoch: snapshot.erase_epoch,
                from_seq: snapshot.session.indexed_seq,
                to_seq: 2,
                memories: vec![memory("from the old branch", vec![source])],
                change: ChangeId(new_id()),
                jobs: Vec::new(),
                now: now(),
            },
        )
        .await;
    assert!(refused.is_err());
    assert!(
        store
            .memories_from(owner, &[first[0].id])
            .await
            .unwrap()
            .is_empty()
    );
    // The job is still there for another decision.
    assert!(store.finish_job(&claim).await.is_ok());
}

#[tokio::test]
async fn one_claim_takes_one_job_whatever_the_statistics_say() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    let owner = owner(&store, TenantId::DEFAULT).await;
    let enqueue = async |number: usize| {
        for _ in 0..number {
            let mut tx = database.connection().await;
            let session = store
                .create_session(owner, new_session(), None)
                .await
                .unwrap();
            jobs::enqueue(
                &mut tx,
                owner,
                session.value.id,
                &[job(JobKind::Index)],
                now(),
            )
            .await
            .unwrap();
        }
    };
    enqueue(1).await;
    // A table that was last looked at with one row makes nested loops over all of it look cheap.
    database.execute("ANALYZE jobs").await;
    enqueue(11).await;
    for left in (0..12).rev() {
        assert!(
            store
                .claim_job(Duration::from_mins(1))
                .await
                .unwrap()
                .is_some()
        );
        let pending = store.count_jobs().await.unwrap();
        let pending = pending
            .iter()
            .find(|(_, state, _)| *state == JobState::Pending);
        assert_eq!(pending.map_or(0, |(_, _, number)| *number), left);
    }
}
