//! Single-row commits on the same store: what a turn cannot be faster than, since it has to store its question and its answer.

use std::path::Path;
use std::time::Instant;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, SqliteConnection};
use tidemark_tests::database::with_database;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS bench_commits (number bigint NOT NULL)";
const INSERT: &str = "INSERT INTO bench_commits VALUES ($1)";

/// One connection to a table that nobody else uses.
pub(super) enum Commits {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

impl Commits {
    /// On `PostgreSQL` in another database of the same server; else in a file beside, as durable as the server's.
    pub(super) async fn on(store: &str, directory: &Path) -> Result<Self, sqlx::Error> {
        if store == "sqlite" {
            let mut connection = SqliteConnectOptions::new()
                .filename(directory.join("commits.db"))
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
                .connect()
                .await?;
            sqlx::query(CREATE).execute(&mut connection).await?;
            return Ok(Self::Sqlite(connection));
        }
        let mut connection = PgConnection::connect(&with_database(store, "postgres")).await?;
        sqlx::query(CREATE).execute(&mut connection).await?;
        Ok(Self::Postgres(connection))
    }

    /// How long one takes, in nanoseconds.
    pub(super) async fn one(&mut self) -> Result<u64, sqlx::Error> {
        let begun = Instant::now();
        match self {
            Self::Postgres(connection) => {
                sqlx::query(INSERT).bind(1_i64).execute(connection).await?;
            }
            Self::Sqlite(connection) => {
                sqlx::query(INSERT).bind(1_i64).execute(connection).await?;
            }
        }
        Ok(begun.elapsed().as_nanos() as u64)
    }

    /// The process of the database, whose children serve its connections; a file has none.
    pub(super) async fn process(&mut self) -> Option<u32> {
        let Self::Postgres(connection) = self else {
            return None;
        };
        let first_line = "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::integer";
        let pid = sqlx::query_scalar::<_, i32>(first_line)
            .fetch_one(connection)
            .await;
        u32::try_from(pid.ok()?).ok()
    }

    /// Removes the table.
    pub(super) async fn end(self) -> Result<(), sqlx::Error> {
        const DROP: &str = "DROP TABLE IF EXISTS bench_commits";
        match self {
            Self::Postgres(mut connection) => {
                sqlx::query(DROP).execute(&mut connection).await?;
                connection.close().await
            }
            Self::Sqlite(mut connection) => {
                sqlx::query(DROP).execute(&mut connection).await?;
                connection.close().await
            }
        }
    }
}
