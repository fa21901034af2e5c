//! A copy of a measured database, in which turns are recorded and asked again.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use tidemark_tests::database::with_database;

use super::script::{Owners, Types};

/// Owners of recorded turns have numbers from here on, which are found in no other text.
const FIRST_RECORDED: i64 = 7_100_000_001;

/// A database like another, and a connection to it as a superuser.
pub(super) struct Copy {
    /// The database that is there in every `PostgreSQL`.
    server: String,
    pub(super) name: String,
    pub(super) url: String,
    connection: PgConnection,
}

type Failure = sqlx::Error;

impl Copy {
    /// Copies a database that nobody is connected to.
    pub(super) async fn of(url: &str) -> Result<Self, Failure> {
        let server = with_database(url, "postgres");
        let mut connection = PgConnection::connect(url).await?;
        let original: String = sqlx::query_scalar("SELECT current_database()")
            .fetch_one(&mut connection)
            .await?;
        connection.close().await?;
        let name = format!("{original}_reference");
        let mut connection = PgConnection::connect(&server).await?;
        for statement in [
            format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
            format!("CREATE DATABASE {name} TEMPLATE {original}"),
        ] {
            execute(&mut connection, &statement).await?;
        }
        connection.close().await?;
        let url = with_database(url, &name);
        Ok(Self {
            connection: PgConnection::connect(&url).await?,
            server,
            name,
            url,
        })
    }

    /// Removes it.
    pub(super) async fn remove(self) -> Result<(), Failure> {
        self.connection.close().await?;
        let mut connection = PgConnection::connect(&self.server).await?;
        let statement = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        execute(&mut connection, &statement).await?;
        connection.close().await
    }

    async fn execute(&mut self, statement: &str) -> Result<(), Failure> {
        execute(&mut self.connection, statement).await
    }

    /// Owners made from now on have numbers that can be told from all others, and derived work can be put off.
    pub(super) async fn prepare(&mut self) -> Result<(), Failure> {
        self.execute(&format!(
            "ALTER TABLE owners ALTER COLUMN owner_id RESTART WITH {FIRST_RECORDED};
             CREATE FUNCTION bench_put_off() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN NEW.run_at := NEW.run_at + interval ''1 day''; RETURN NEW; END';
             CREATE TRIGGER bench_put_off BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION bench_put_off();
             ALTER TABLE jobs DISABLE TRIGGER bench_put_off"
        ))
        .await
    }

    /// Whether derived work is put off, so that nothing but turns is done.
    pub(super) async fn put_off(&mut self, off: bool) -> Result<(), Failure> {
        self.execute(if off {
            "ALTER TABLE jobs ENABLE TRIGGER bench_put_off"
        } else {
            "ALTER TABLE jobs DISABLE TRIGGER bench_put_off;
             UPDATE jobs SET run_at = now() WHERE run_at > now() + interval '12 hours'"
        })
        .await
    }

    /// Whether the server logs every statement, of all databases.
    pub(super) async fn log_statements(&mut self, on: bool) -> Result<(), Failure> {
        let setting = if on {
            "SET log_statement = 'all'"
        } else {
            "RESET log_statement"
        };
        // Neither goes into a transaction with the other.
        self.execute(&format!("ALTER SYSTEM {setting}")).await?;
        self.execute("SELECT pg_reload_conf()").await
    }

    /// Where the log ends; none if it is not written as JSON by a collector.
    pub(super) async fn log_end(&mut self) -> Result<Option<(String, i64)>, Failure> {
        let end = "SELECT f, (pg_stat_file(f)).size FROM pg_current_logfile('jsonlog') f WHERE f IS NOT NULL";
        sqlx::query_as(end)
            .fetch_optional(&mut self.connection)
            .await
    }

    /// What was written to the log from there on.
    pub(super) async fn log_since(&mut self, from: &(String, i64)) -> Result<String, Failure> {
        let part = "SELECT convert_from(pg_read_binary_file($1, $2, 1 << 28), 'UTF8')";
        let (file, offset) = from;
        let query = sqlx::query_scalar(part).bind(file).bind(offset);
        query.fetch_one(&mut self.connection).await
    }

    /// The number of a user's owner.
    pub(super) async fn owner(&mut self, user: &str) -> Result<i64, Failure> {
        let query = "SELECT owner_id FROM owners WHERE name = $1";
        sqlx::query_scalar(query)
            .bind(user)
            .fetch_one(&mut self.connection)
            .await
    }

    /// Rows of each table.
    pub(super) async fn rows(&mut self) -> Result<BTreeMap<String, i64>, Failure> {
        let tables = "SELECT relname::text FROM pg_stat_user_tables WHERE schemaname = 'public'";
        let tables: Vec<String> = sqlx::query_scalar(tables)
            .fetch_all(&mut self.connection)
            .await?;
        let mut rows = BTreeMap::new();
        for table in tables {
            let count = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
            let count = sqlx::query_scalar(count)
                .fetch_one(&mut self.connection)
                .await?;
            rows.insert(table, count);
        }
        Ok(rows)
    }

    /// The types of the parameters of each statement that has some.
    pub(super) async fn types(&mut self, statements: &[&str]) -> Result<Types, Failure> {
        let mut types = Types::new();
        for sql in statements {
            let prepare = format!("PREPARE bench_statement AS {sql}");
            self.execute(&prepare).await?;
            let row = "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'bench_statement'";
            let row = sqlx::query(row).fetch_one(&mut self.connection).await?;
            types.insert((*sql).to_owned(), row.try_get(0)?);
            self.execute("DEALLOCATE bench_statement").await?;
        }
        Ok(types)
    }

    /// Makes owners that are as the recorded one, each with its number as its user's name, and leaves the database as after a pause.
    pub(super) async fn multiply(&mut self, recorded: i64, owners: Owners) -> Result<(), Failure> {
        let columns = "SELECT attname::text FROM pg_attribute
            WHERE attrelid = 'owners'::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''";
        let columns: Vec<String> = sqlx::query_scalar(columns)
            .fetch_all(&mut self.connection)
            .await?;
        let number = format!("({} + i)", owners.first);
        let values: Vec<String> = columns
            .iter()
            .map(|column| match column.as_str() {
                "owner_id" => number.clone(),
                "name" => format!("{number}::text"),
                column => format!("o.{column}"),
            })
            .collect();
        let insert = format!(
            "INSERT INTO owners ({}) OVERRIDING SYSTEM VALUE
             SELECT {} FROM owners o, generate_series(0, {}) i WHERE o.owner_id = {recorded}",
            columns.join(", "),
            values.join(", "),
            owners.count - 1
        );
        self.execute(&insert).await?;
        self.execute("DROP TRIGGER bench_put_off ON jobs").await?;
        self.execute("VACUUM ANALYZE").await?;
        self.execute("CHECKPOINT").await
    }
}

/// Transactions that a database has committed, as far as their connections have told.
pub(crate) async fn commits(url: &str) -> Result<i64, Failure> {
    let commits = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
    let mut connection = PgConnection::connect(url).await?;
    let commits = sqlx::query_scalar(commits)
        .fetch_one(&mut connection)
        .await?;
    connection.close().await?;
    Ok(commits)
}

async fn execute(connection: &mut PgConnection, statement: &str) -> Result<(), Failure> {
    let statement = AssertSqlSafe(statement.to_owned());
    sqlx::raw_sql(statement).execute(connection).await?;
    Ok(())
}
