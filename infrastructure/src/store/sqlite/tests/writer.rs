//! One writer for all: savepoints, acknowledgements, callers that go away, the end.

use super::*;

/// A step that occupies the writer, so that what is sent meanwhile goes into one transaction after it.
async fn occupied(store: &SqliteStore) -> tokio::sync::oneshot::Sender<()> {
    let (release, released) = tokio::sync::oneshot::channel();
    let (begun, begins) = tokio::sync::oneshot::channel();
    let writer = store.writer.clone();
    tokio::spawn(async move {
        writer
            .write::<(), StoreError, _>(move |_| {
                Box::pin(async move {
                    begun.send(()).unwrap();
                    released.await.unwrap();
                    Ok(())
                })
            })
            .await
    });
    begins.await.unwrap();
    release
}

fn add_owner(
    number: i64,
) -> sqlx::query::Query<'static, sqlx::Sqlite, sqlx::sqlite::SqliteArguments> {
    let sql = "INSERT INTO owners (tenant_id, owner_id, user_name, created_at) \
               VALUES (x'01', ?1, 'user' || ?1, 0)";
    sqlx::query(sql).bind(number)
}

async fn owners(store: &SqliteStore) -> Vec<i64> {
    sqlx::query_scalar("SELECT owner_id FROM owners WHERE tenant_id = x'01' ORDER BY owner_id")
        .fetch_all(&store.readers)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_step_that_fails_or_panics_is_undone_alone_and_its_neighbours_are_committed() {
    let fixture = Fixture::new().await;
    let release = occupied(&fixture.store).await;
    let step = |number: i64, end: &'static str| {
        let writer = fixture.store.writer.clone();
        tokio::spawn(async move {
            writer
                .write::<i64, StoreError, _>(move |c| {
                    Box::pin(async move {
                        add_owner(number).execute(&mut *c).await.unwrap();
                        match end {
                            "conflict" => Err(errors::corrupt("decided otherwise")),
                            "statement" => {
                                add_owner(number)
                                    .execute(c)
                                    .await
                                    .map_err(errors::store_error)?;
                                Ok(number)
                            }
                            "panic" => panic!("a mistake"),
                            _ => Ok(number),
                        }
                    })
                })
                .await
        })
    };
    let ends = ["", "conflict", "", "statement", "", "panic", ""];
    let steps: Vec<_> = (1..).zip(ends).map(|(n, end)| step(n, end)).collect();
    tokio::task::yield_now().await;
    release.send(()).unwrap();
    for (step, end) in steps.into_iter().zip(ends) {
        assert_eq!(step.await.unwrap().is_ok(), end.is_empty(), "{end}");
    }
    assert_eq!(owners(&fixture.store).await, [1, 3, 5, 7]);
}

#[tokio::test]
async fn nothing_is_acknowledged_or_seen_before_it_is_committed() {
    let fixture = Fixture::new().await;
    let release = occupied(&fixture.store).await;
    let writer = fixture.store.writer.clone();
    let (written, is_written) = tokio::sync::oneshot::channel();
    let (go_on, goes_on) = tokio::sync::oneshot::channel();
    let step = tokio::spawn(async move {
        writer
            .write::<(), StoreError, _>(move |c| {
                Box::pin(async move {
                    add_owner(1).execute(c).await.unwrap();
                    written.send(()).unwrap();
                    goes_on.await.unwrap();
                    Ok(())
                })
            })
            .await
    });
    tokio::task::yield_now().await;
    release.send(()).unwrap();
    is_written.await.unwrap();
    assert!(!step.is_finished());
    assert!(owners(&fixture.store).await.is_empty());
    go_on.send(()).unwrap();
    step.await.unwrap().unwrap();
    assert_eq!(owners(&fixture.store).await, [1]);
}

#[tokio::test]
async fn a_caller_that_goes_away_disturbs_nobody_and_what_it_asked_for_is_done() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let release = occupied(&fixture.store).await;
    let gone: Vec<_> = (0..20)
        .map(|_| {
            let (store, turn) = (fixture.store.clone(), fixture.turn(session));
            let turn = AcceptTurn {
                max_queued: 100,
                ..turn
            };
            tokio::spawn(async move { store.accept_turn(turn).await })
        })
        .collect();
    tokio::task::yield_now().await;
    for caller in &gone {
        caller.abort();
    }
    release.send(()).unwrap();
    let started = fixture.start(session).await;
    assert!(started.is_some());
    fixture.store.close().await;
}

#[tokio::test]
async fn closing_finishes_what_waits_and_refuses_what_comes_later() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let release = occupied(&fixture.store).await;
    let store = fixture.store.clone();
    let turn = fixture.turn(session);
    let waiting = tokio::spawn(async move { store.accept_turn(turn).await });
    tokio::task::yield_now().await;
    let store = fixture.store.clone();
    let closing = tokio::spawn(async move { store.close().await });
    tokio::task::yield_now().await;
    release.send(()).unwrap();
    closing.await.unwrap();
    waiting.await.unwrap().unwrap();
    let late = fixture.store.accept_turn(fixture.turn(session)).await;
    assert!(late.is_err());
    let log = std::fs::metadata(fixture.directory.path().join("tidemark.db-wal"));
    assert!(log.is_err() || log.unwrap().len() == 0);
}

/// Sends two steps that go into one transaction, of which the second does `sql`, and returns what they are told.
async fn together(
    fixture: &Fixture,
    sql: &'static str,
) -> (Result<(), StoreError>, Result<(), StoreError>) {
    let release = occupied(&fixture.store).await;
    let (innocent, other) = (fixture.store.writer.clone(), fixture.store.writer.clone());
    let innocent = tokio::spawn(async move {
        innocent
            .write::<(), StoreError, _>(|c| {
                Box::pin(async {
                    add_owner(1).execute(c).await.unwrap();
                    Ok(())
                })
            })
            .await
    });
    let other = tokio::spawn(async move {
        other
            .write::<(), StoreError, _>(move |c| {
                Box::pin(async move {
                    sqlx::raw_sql(sql).execute(c).await.unwrap();
                    Err(errors::corrupt("decided otherwise"))
                })
            })
            .await
    });
    tokio::task::yield_now().await;
    release.send(()).unwrap();
    (innocent.await.unwrap(), other.await.unwrap())
}

#[tokio::test]
async fn a_transaction_that_the_database_gave_up_is_acknowledged_to_nobody_and_the_next_one_works()
{
    let fixture = Fixture::new().await;
    // What SQLite does by itself after some failures of the disk.
    let (innocent, other) = together(&fixture, "ROLLBACK").await;
    assert!(matches!(innocent, Err(StoreError::Unavailable(_))));
    assert!(matches!(other, Err(StoreError::Unavailable(_))));
    assert!(owners(&fixture.store).await.is_empty());
    fixture.session().await;
}

#[tokio::test]
async fn a_commit_that_is_refused_is_acknowledged_to_nobody_and_the_next_one_works() {
    let fixture = Fixture::new().await;
    // Ends the step's savepoint early, so that its broken reference is met by the COMMIT.
    let sql = "PRAGMA defer_foreign_keys = ON; \
               INSERT INTO sessions (tenant_id, owner_id, id, labels, channel, memory, created_at, updated_at) \
                   VALUES (x'02', 9, x'03', '[]', 'api', 'on', 0, 0); \
               RELEASE step; SAVEPOINT step";
    let (innocent, other) = together(&fixture, sql).await;
    assert!(
        matches!(innocent, Err(StoreError::Unavailable(_))),
        "{innocent:?}"
    );
    assert!(
        matches!(other, Err(StoreError::Unavailable(_))),
        "{other:?}"
    );
    assert!(owners(&fixture.store).await.is_empty());
    fixture.session().await;
}
