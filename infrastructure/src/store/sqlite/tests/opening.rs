//! Opening and reopening the file.

use sqlx::Connection;
use tidemark_application::memory::remember;
use tidemark_application::ports::memories::{Forgetting, MemoryRepository};
use tidemark_domain::memory::{Layer, Memory, State};

use super::*;

#[tokio::test]
async fn a_second_opening_of_the_same_file_is_refused_with_its_name_until_the_first_is_closed() {
    let fixture = Fixture::new().await;
    let options = SqliteOptions::new(path(fixture.directory.path()));
    let refused = SqliteStore::open(options.clone()).await.unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }));
    assert!(refused.to_string().contains("tidemark.db"), "{refused}");

    fixture.store.close().await;
    SqliteStore::open(options).await.unwrap();
}

#[tokio::test]
async fn keys_are_made_beside_the_process_that_serves_the_file_and_seen_by_it() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let started = fixture.started(session).await;
    let options = SqliteOptions::new(path(fixture.directory.path()));
    let beside = SqliteStore::open_beside(options.clone()).await.unwrap();
    beside.ready().await.unwrap();
    let name = "acme".parse().unwrap();
    let fresh = TenantId(fixture.ids.uuid());
    let made = beside.make_tenant(&name, fresh, fixture.now).await.unwrap();
    beside.close().await;
    let seen = fixture.store.find_tenant(&name).await.unwrap();
    assert_eq!(seen, Some(made.id));
    // What the serving process runs is not disturbed, and it is still the only one.
    let committed = fixture
        .store
        .commit_turn(started.key, fixture.commit())
        .await;
    assert!(committed.is_ok());
    let refused = SqliteStore::open(options).await.unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }));
}

#[tokio::test]
async fn nothing_is_made_by_opening_beside_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(path(directory.path()));
    let refused = SqliteStore::open_beside(options).await.unwrap_err();
    assert!(matches!(refused, OpenError::Open { .. }));
    assert!(!path(directory.path()).exists());
}

#[tokio::test]
async fn a_link_to_the_file_is_the_same_file() {
    let fixture = Fixture::new().await;
    let link = fixture.directory.path().join("link.db");
    std::os::unix::fs::symlink(path(fixture.directory.path()), &link).unwrap();
    let refused = SqliteStore::open(SqliteOptions::new(link)).await;
    assert!(matches!(refused.unwrap_err(), OpenError::InUse { .. }));
}

#[tokio::test]
async fn a_file_in_a_missing_directory_or_that_is_no_database_is_refused_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("absent").join("tidemark.db");
    let refused = SqliteStore::open(SqliteOptions::new(&missing))
        .await
        .unwrap_err();
    assert!(matches!(refused, OpenError::NoDirectory { .. }));
    assert!(refused.to_string().contains("absent"), "{refused}");

    let text = directory.path().join("notes.txt");
    std::fs::write(&text, "These are notes and no database. ".repeat(100)).unwrap();
    let refused = SqliteStore::open(SqliteOptions::new(&text))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("notes.txt"), "{refused}");
}

#[tokio::test]
async fn a_schema_of_another_version_is_not_ready() {
    let fixture = Fixture::new().await;
    fixture.store.ready().await.unwrap();

    let directory = tempfile::tempdir().unwrap();
    let empty = SqliteStore::open(SqliteOptions {
        migrate: false,
        ..SqliteOptions::new(path(directory.path()))
    })
    .await
    .unwrap();
    let error = empty.ready().await.unwrap_err();
    assert!(error.to_string().contains("schema"), "{error}");
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let mut fixture = Fixture::new().await;
    let session = fixture.session().await;
    let started = fixture.started(session).await;
    let turn = fixture
        .store
        .commit_turn(started.key, fixture.commit())
        .await
        .unwrap();
    fixture.reopen().await;
    assert_eq!(
        fixture.store.turn(fixture.owner, turn.id).await.unwrap(),
        Some(turn)
    );
    let history = fixture
        .store
        .history(fixture.owner, session, None, 10)
        .await;
    let said: Vec<_> = history.unwrap().into_iter().map(|m| m.content).collect();
    assert_eq!(said, ["What is the budget?", "It is 400k."]);
}

#[tokio::test]
async fn a_restart_voids_the_leases_of_turns_and_jobs_at_once() {
    let mut fixture = Fixture::new().await;
    let session = fixture.session().await;
    let done = fixture.started(session).await;
    fixture
        .store
        .commit_turn(done.key, fixture.commit())
        .await
        .unwrap();
    let claimed = fixture.store.claim_job(LEASE).await.unwrap().unwrap();
    let running = fixture.started(session).await;
    assert!(fixture.store.claim_job(LEASE).await.unwrap().is_none());
    assert!(fixture.store.lapsed_turns(10).await.unwrap().is_empty());
    let refused = fixture
        .store
        .close_turn(running.key, fixture.interrupted(3))
        .await;
    assert!(matches!(refused, Err(TurnWriteError::Fenced)));

    fixture.reopen().await;

    assert_eq!(fixture.store.lapsed_turns(10).await.unwrap(), [running.key]);
    let closed = fixture
        .store
        .close_turn(running.key, fixture.interrupted(3))
        .await
        .unwrap();
    assert_eq!(
        closed.terminal_seq,
        Some(terminal_seq_after_loss(EVENT_BLOCK))
    );
    let again = fixture.store.claim_job(LEASE).await.unwrap().unwrap();
    assert_eq!(again.job.id, claimed.job.id);
    assert_eq!(again.job.attempts, 2);
    assert!(again.token > claimed.token);
}

#[tokio::test]
async fn what_had_ended_for_good_before_that_was_a_value_of_its_own_still_has() {
    let mut fixture = Fixture::new().await;
    let owner = fixture.owner;
    let session = fixture.session().await;
    let said = fixture.started(session).await.message;
    let keyed = |content: &str, key: &str, hours: i64| Memory {
        id: fixture.ids.memory(),
        content: content.to_owned(),
        layer: Layer::Semantic,
        key: Some(key.to_owned()),
        sources: Vec::new(),
        valid_from: fixture.now + TimeDelta::hours(hours),
        ..learned::chunk(&said).memory
    };
    let (budget, raised) = (keyed("102k", "budget", 0), keyed("103k", "budget", 1));
    let (limit, lowered) = (keyed("9", "limit", 0), keyed("8", "limit", 1));
    for memory in [&budget, &raised, &limit, &lowered] {
        let given = vec![remember::index(memory.clone())];
        let change = fixture.ids.change();
        let stored = fixture
            .store
            .remember(owner, given, Vec::new(), change, None, fixture.now);
        stored.await.unwrap();
    }
    let forgetting = Forgetting {
        id: raised.id,
        expected: None,
        fresh: false,
        echoes: Vec::new(),
        buried: Vec::new(),
        change: fixture.ids.change(),
        now: fixture.now,
    };
    fixture.store.forget(owner, forgetting).await.unwrap();
    fixture.store.close().await;
    let file = SqliteOptions::new(path(fixture.directory.path()));
    let mut connection = file.writer().connect().await.unwrap();
    for statement in [
        "ALTER TABLE memories DROP COLUMN ended_at",
        "DELETE FROM _sqlx_migrations WHERE version = 16",
    ] {
        connection.execute(statement).await.unwrap();
    }
    connection.close().await.unwrap();
    fixture.store = SqliteStore::open(file).await.unwrap();
    let ids = [budget.id, limit.id];
    for memory in fixture.store.memories(owner, &ids).await.unwrap() {
        let end = (memory.id == budget.id).then_some(raised.valid_from);
        assert_eq!(memory.ended_at, end);
        assert_eq!(memory.state, State::Superseded);
    }
}
