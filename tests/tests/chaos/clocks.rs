//! The fault itself: when its clock is set, a replica tells another time, and goes on.

use std::time::Duration;

use serde_json::json;
use sqlx::{Connection, PgConnection};
use tidemark_tests::clock::Clock;
use tidemark_tests::database::Store;
use tidemark_tests::postgres::Postgres;
use tidemark_tests::server::Setup;
use tidemark_tests::wait;

const LIMIT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_replica_whose_clock_is_set_tells_that_time_at_once() {
    let clock = Clock::new();
    let mut setup = Setup::on(Store::Sqlite);
    for (name, value) in clock.settings() {
        setup = setup.with(name, &value);
    }
    let server = setup.start().await;
    let client = server.client();
    let client = &client;
    let year = move || async move {
        let made = client.post("/v1/sessions", &json!({})).await.expect(201);
        let at = made["created_at"].as_str().expect("a time");
        at[..4].parse::<i64>().expect("a year")
    };
    let now = year().await;
    for (years, expected) in [(2, now + 2), (-2, now - 2), (0, now)] {
        clock.set(years * 366 * 24 * 3_600);
        wait::until("the clock to jump", LIMIT, || async {
            // Two times 366 days may end a day into the next year.
            ((year().await - expected).abs() <= i64::from(years != 0)).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn the_databases_clock_is_set_while_it_runs_and_what_is_committed_outlives_its_crash() {
    let mut postgres = Postgres::start().await;
    let mut connection = PgConnection::connect(&postgres.url()).await.unwrap();
    sqlx::raw_sql(
        "CREATE TABLE kept (at timestamptz); INSERT INTO kept VALUES (clock_timestamp())",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    postgres.clock().set(3_600);
    let mut ahead = 0.0_f64;
    while ahead < 3_500.0 {
        let asked = sqlx::query_scalar(
            "SELECT extract(epoch FROM clock_timestamp() - at)::float8 FROM kept",
        );
        ahead = asked.fetch_one(&mut connection).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    postgres.crash().await;
    postgres.start_again().await;
    let mut connection = PgConnection::connect(&postgres.url()).await.unwrap();
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM kept")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(rows, 1);
}
