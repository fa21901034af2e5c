//! What becomes of connections and transactions when callers go away or the network does.

use std::time::Duration;

use tidemark_application::ports::owners::OwnerRepository;
use tidemark_application::ports::sessions::{CreateError, SessionRepository};
use tidemark_application::ports::store::StoreError;
use tidemark_domain::ids::{Owner, OwnerId, TenantId, UserName};

use super::super::testing::{TestDatabase, owner};
use super::super::transaction::Abort;
use super::super::{PostgresStore, changes, owners};
use super::steps::new_session;

const OPEN_TRANSACTIONS: &str = "
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'tidemark' AND state LIKE 'idle in transaction%'";

const TERMINATE: &str = "
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'tidemark'";

#[tokio::test]
async fn callers_that_go_away_leave_no_open_transaction() {
    let database = TestDatabase::create().await;
    let mut options = database.options();
    options.max_connections = 1;
    let store = PostgresStore::connect(options).await.unwrap();
    let owner = owner(&store, TenantId::DEFAULT).await;
    for step in 0..200_u64 {
        // Every moment of an operation, from before its first byte to after its last.
        let impatient = Duration::from_micros(step * 20);
        drop(
            tokio::time::timeout(impatient, store.create_session(owner, new_session(), None)).await,
        );
    }
    // The only connection serves again, and what follows is not part of what was left.
    store
        .create_session(owner, new_session(), None)
        .await
        .unwrap();
    store.close().await;
    let mut connection = database.connection().await;
    let open: i64 = sqlx::query_scalar(OPEN_TRANSACTIONS)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(open, 0);
    let stored: i64 = sqlx::query_scalar("SELECT count(*) FROM sessions")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(stored, 201, "an operation that has begun is carried out");
}

#[tokio::test]
async fn connections_that_the_server_has_closed_are_passed_over() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    let user = UserName::default_user();
    let calls = (0..4).map(|_| store.resolve_owner(TenantId::DEFAULT, &user));
    for result in futures::future::join_all(calls).await {
        result.unwrap();
    }
    let mut connection = database.connection().await;
    sqlx::query(TERMINATE)
        .execute(&mut connection)
        .await
        .unwrap();
    store.ready().await.unwrap();
}

#[tokio::test]
async fn a_connection_lost_during_a_commit_is_an_unknown_outcome() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    let owner = owner(&store, TenantId::DEFAULT).await;
    database
        .execute(
            "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$;
             CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON sessions DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION linger()",
        )
        .await;
    let creation = {
        let store = store.clone();
        tokio::spawn(async move { store.create_session(owner, new_session(), None).await })
    };
    let mut connection = database.connection().await;
    let mut committing = false;
    while !committing {
        committing = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT' AND state = 'active')",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    sqlx::query(TERMINATE)
        .execute(&mut connection)
        .await
        .unwrap();
    let outcome = creation.await.unwrap();
    assert!(
        matches!(
            outcome,
            Err(CreateError::Store(StoreError::OutcomeUnknown(_)))
        ),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_store_that_is_closed_is_unavailable() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    store.close().await;
    let refused = store
        .resolve_owner(TenantId::DEFAULT, &UserName::default_user())
        .await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_unreachable() {
    let database = TestDatabase::create().await;
    let mut options = database.options();
    // The port of a listener that has gone.
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    options.url = format!("postgres://nobody@127.0.0.1:{port}/nothing");
    let refused = PostgresStore::connect(options).await;
    assert!(matches!(
        refused,
        Err(super::super::ConnectError::Unreachable(_))
    ));
}

#[tokio::test]
async fn whoever_refers_to_an_erased_owner_is_told_so_and_whatever_else_is_missing_is_a_defect() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    let known = owner(&store, TenantId::DEFAULT).await;
    let nobody = Owner {
        id: OwnerId(i64::MAX),
        ..known
    };
    let gone = store.create_session(nobody, new_session(), None).await;
    assert!(
        matches!(gone, Err(CreateError::Store(StoreError::OwnerGone))),
        "{gone:?}"
    );
    for locks in [true, false] {
        let gone = store.database.write(TenantId::DEFAULT, (), move |tx, ()| {
            Box::pin(async move {
                if locks {
                    owners::lock(tx, nobody).await?;
                } else {
                    changes::Change::begin(tx, nobody).await?;
                }
                Ok::<_, Abort<StoreError>>(())
            })
        });
        let gone = gone.await;
        assert!(matches!(gone, Err(StoreError::OwnerGone)), "{gone:?}");
    }
    // A session that should be there, and a row that should.
    for statement in [
        "INSERT INTO jobs (tenant_id, owner_id, session_id, id, kind, state, run_at, created_at)
         SELECT tenant_id, owner_id, gen_random_uuid(), gen_random_uuid(), 'index', 'pending', now(), now() FROM owners
         RETURNING 1",
        "SELECT 1 FROM sessions",
    ] {
        let broken = store.database.write(TenantId::DEFAULT, (), move |tx, ()| {
            Box::pin(async move {
                sqlx::query(statement).fetch_one(tx).await?;
                Ok::<_, Abort<StoreError>>(())
            })
        });
        let broken = broken.await;
        assert!(
            matches!(broken, Err(StoreError::Corrupt { .. })),
            "{broken:?}"
        );
    }
}
