//! The PostgreSQL store keeps what the ports promise. Each test has a database of its own on the server of
//! `TIDEMARK_TEST_POSTGRES_URL`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tidemark_application::ports::ids::Ids;
use tidemark_application::ports::store::Store;
use tidemark_infrastructure::store::postgres::{PostgresOptions, PostgresStore};
use tidemark_infrastructure::system::UuidV7;

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
    let server = std::env::var("TIDEMARK_TEST_POSTGRES_URL")
        .expect("TIDEMARK_TEST_POSTGRES_URL names the PostgreSQL of the tests");
    let name = format!("tidemark_conformance_{}", UuidV7::default().uuid().simple());
    run(&server, format!("CREATE DATABASE {name}")).await;
    let url = with_database(&server, &name);
    let database = Database { server, name };
    let options = PostgresOptions {
        url,
        migrate: true,
        max_connections: CONNECTIONS,
    };
    let store = PostgresStore::connect(options)
        .await
        .expect("the store opens");
    (Arc::new(store), database)
}

tidemark_infrastructure::conformance!(open);
