//! Where a server under test keeps its state: a file of its own, or a `PostgreSQL` database of its own.

use std::path::Path;

use sqlx::{Connection, PgConnection, SqliteConnection};

/// The stores of the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// One file in the server's temporary directory.
    Sqlite,
    /// A database on the server of `TIDEMARK_TEST_POSTGRES_URL`, which may trade durability for speed.
    Postgres,
    /// A database on the server of `TIDEMARK_TEST_POSTGRES_DURABLE_URL`, which keeps what it has committed.
    PostgresDurable,
}

impl Store {
    /// Changes what is kept at `url`, behind the server's back.
    pub async fn execute(self, url: &str, statements: &str) {
        if self == Self::Sqlite {
            let text = sqlx::AssertSqlSafe(statements.to_owned());
            let mut connection = SqliteConnection::connect(url).await.expect("a connection");
            sqlx::raw_sql(text)
                .execute(&mut connection)
                .await
                .unwrap_or_else(|error| panic!("{statements}: {error}"));
            connection.close().await.expect("a connection closes");
        } else {
            execute(url, statements).await;
        }
    }
}

/// A store made for one test; a `PostgreSQL` database is dropped with it.
#[derive(Debug)]
pub struct Database {
    url: String,
    made: Option<Made>,
}

#[derive(Debug)]
struct Made {
    server: String,
    name: String,
}

impl Database {
    /// Makes an empty store; `dir` is where a file may lie.
    pub async fn create(store: Store, dir: &Path) -> Self {
        let server = match store {
            Store::Sqlite => {
                return Self {
                    url: format!("sqlite://{}", dir.join("tidemark.db").display()),
                    made: None,
                };
            }
            Store::Postgres => server_url("TIDEMARK_TEST_POSTGRES_URL"),
            Store::PostgresDurable => server_url("TIDEMARK_TEST_POSTGRES_DURABLE_URL"),
        };
        let name = format!("tidemark_test_{}", uuid::Uuid::now_v7().simple());
        execute(&server, &format!("CREATE DATABASE {name}")).await;
        Self {
            url: with_database(&server, &name),
            made: Some(Made { server, name }),
        }
    }

    /// The address for `TIDEMARK_STORE__URL`.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(Made { server, name }) = self.made.take() {
            // The runtime of the test may be the one that is dropping this, and cannot be waited on from inside.
            let dropping = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime");
                runtime.block_on(execute(
                    &server,
                    &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
                ));
            });
            if dropping.join().is_err() {
                eprintln!("a test database could not be dropped");
            }
        }
    }
}

fn server_url(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: scripts/test starts PostgreSQL and sets it")
    })
}

/// The address of another database of the same server.
pub fn with_database(server: &str, name: &str) -> String {
    let (address, query) = server
        .split_once('?')
        .map_or((server, None), |(address, query)| (address, Some(query)));
    let authority = address.find("://").map_or(0, |at| at + 3);
    let base = address[authority..]
        .find('/')
        .map_or(address, |slash| &address[..authority + slash]);
    query.map_or_else(
        || format!("{base}/{name}"),
        |query| format!("{base}/{name}?{query}"),
    )
}

async fn execute(server: &str, statement: &str) {
    let mut connection = PgConnection::connect(server)
        .await
        .expect("PostgreSQL of the tests answers");
    let text = sqlx::AssertSqlSafe(statement.to_owned());
    sqlx::raw_sql(text)
        .execute(&mut connection)
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
    connection.close().await.expect("a connection closes");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_replaces_the_one_of_the_server_address() {
        for (server, expected) in [
            (
                "postgres://u@127.0.0.1:5432/postgres",
                "postgres://u@127.0.0.1:5432/x",
            ),
            (
                "postgres://u@127.0.0.1:5432",
                "postgres://u@127.0.0.1:5432/x",
            ),
            (
                "postgres://h/postgres?sslmode=disable",
                "postgres://h/x?sslmode=disable",
            ),
        ] {
            assert_eq!(with_database(server, "x"), expected);
        }
    }
}
