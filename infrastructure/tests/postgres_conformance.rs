//! The PostgreSQL store keeps what the ports promise. Each test has a database of its own on the server of
//! `TIDEMARK_TEST_POSTGRES_URL`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tidemark_application::ports::ids::Ids;
use tidemark_application::ports::store::Store;
use tidemark_infrastructure::store::conformance;
use tidemark_infrastructure::store::postgres::{PostgresOptions, PostgresStore};
use tidemark_infrastructure::system::UuidV7;
use tokio::sync::Mutex;

/// Fewer than the starters and workers of the suite, so that they also wait for each other.
const CONNECTIONS: u32 = 8;

/// A database that is dropped with this.
struct Database {
    server: String,
    name: String,
}

impl Drop for Database {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let server = self.server.clone();
        // The runtime of the test cannot be waited on from inside.
        let dropping = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(run(&server, statement));
        });
        drop(dropping.join());
    }
}

async fn run(server: &str, statement: String) {
    let mut connection = PgConnection::connect(server)
        .await
        .expect("PostgreSQL of the tests answers");
    sqlx::raw_sql(AssertSqlSafe(statement.clone()))
        .execute(&mut connection)
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
    connection.close().await.unwrap();
}

/// The address of another database of the same server.
fn with_database(server: &str, name: &str) -> String {
    let (address, query) = server.split_once('?').unwrap_or((server, ""));
    let (base, _) = address
        .rsplit_once('/')
        .expect("the address names a database");
    if query.is_empty() {
        format!("{base}/{name}")
    } else {
        format!("{base}/{name}?{query}")
    }
}

async fn open() -> (Arc<dyn Store>, Database) {
    let (url, database) = create().await;
    (connect(url, CONNECTIONS).await, database)
}

/// An empty database with its address.
async fn create() -> (String, Database) {
    let server = std::env::var("TIDEMARK_TEST_POSTGRES_URL")
        .expect("TIDEMARK_TEST_POSTGRES_URL names the PostgreSQL of the tests");
    let name = format!("tidemark_conformance_{}", UuidV7::default().uuid().simple());
    run(&server, format!("CREATE DATABASE {name}")).await;
    let url = with_database(&server, &name);
    (url, Database { server, name })
}

async fn connect(url: String, max_connections: u32) -> Arc<dyn Store> {
    let options = PostgresOptions {
        url,
        migrate: true,
        max_connections,
    };
    let store = PostgresStore::connect(options)
        .await
        .expect("the store opens");
    Arc::new(store)
}

tidemark_infrastructure::conformance!(open);

const IN_TRANSACTIONS: &str = "
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'tidemark' AND state <> 'idle'";

#[tokio::test]
async fn a_dropped_request_leaves_the_only_connection_free() {
    let (url, database) = create().await;
    // Thousands of transactions, of which none has to survive anything.
    let hasty = format!(
        "ALTER DATABASE {} SET synchronous_commit = off",
        database.name
    );
    run(&database.server, hasty).await;
    let store = connect(url.clone(), 1).await;
    let observer = Mutex::new(PgConnection::connect(&url).await.unwrap());
    let is_idle = async || {
        let count = sqlx::query_scalar(IN_TRANSACTIONS);
        let open: i64 = count.fetch_one(&mut *observer.lock().await).await.unwrap();
        open == 0
    };
    conformance::dropped::a_dropped_request_leaves_the_only_connection_free(store, is_idle).await;
}
