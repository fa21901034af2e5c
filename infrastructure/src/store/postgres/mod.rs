//! The store on PostgreSQL (16 or newer): the only truth when several replicas run.
//!
//! - `schema`: migrations, and what is checked before anything is served
//! - `transaction`: one operation, one transaction, one task
//! - `together`: operations that come at the same time, in one transaction
//! - `rows`: rows as types
//! - `statistics`: what the planner knows of tables that have just been filled
//! - the rest is named for what it stores
//!
//! Writers that touch a session lock its row first, then turns, the owner, memories and jobs, always in this order. To add an
//! operation: a statement as a constant (and in its module's `STATEMENTS`), a function on a connection, and a method that runs it.

mod changes;
mod claims;
mod context;
mod edits;
mod embeddings;
mod extraction;
mod fading;
mod forget;
mod formers;
mod history;
mod idempotency;
mod indexing;
mod jobs;
mod keys;
mod learning;
mod lines;
mod memories;
mod memory_port;
mod messages;
mod owners;
mod recalled;
mod rows;
mod schema;
mod sessions;
mod statistics;
mod together;
mod transaction;
mod turns;
mod users;
mod uses;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, PgPool};

pub use self::schema::SchemaMismatch;
use self::together::Together;
use self::transaction::Database;
use tidemark_application::ports::context::TurnContext;
use tidemark_application::ports::store::StoreResult;
use tidemark_application::ports::turns::{
    AcceptError, AcceptTurn, Accepted, Committed, TurnWriteError,
};
use tidemark_domain::ids::{OwnerId, UserName};

/// The role that every connection of the pool takes on.
const APP_ROLE: &str = "tidemark_app";

/// How long an operation waits for a connection before it is refused for load.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Statements kept prepared on each connection: all of this store's, with room.
const STATEMENT_CACHE: usize = 256;

/// Where the database is and how it is used.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database`. The role needs to own the database's schema `public`, or to be allowed to create
    /// in it, and to create the role `tidemark_app` unless that is there and granted to it.
    pub url: String,
    /// Apply what is missing of the schema.
    pub migrate: bool,
    /// How many connections may be open, at least 1.
    pub max_connections: u32,
}

impl std::fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        f.debug_struct("PostgresOptions")
            .field("migrate", &self.migrate)
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}

/// The store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address cannot be read.
    #[error("the address of the database is not a valid postgres:// URL")]
    Address(#[source] sqlx::Error),
    /// No connection could be made, or it broke.
    #[error("the database cannot be reached")]
    Unreachable(#[source] sqlx::Error),
    /// A migration failed.
    #[error("the database could not be migrated")]
    Migration(#[source] sqlx::migrate::MigrateError),
    /// Another process has been migrating for longer than anybody should.
    #[error("another process holds the migration lock")]
    MigrationLocked,
    /// The schema is not this program's.
    #[error(transparent)]
    Schema(#[from] SchemaMismatch),
    /// The role would not be bound by row-level security.
    #[error("the role {role} must not be used: it {why}, so row-level security would not bind it")]
    Role {
        /// The effective role.
        role: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// All persistence ports on PostgreSQL.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    database: Database,
    acceptances: Together<AcceptTurn, Result<Accepted, AcceptError>>,
    commits: Together<turns::Commit, Result<Committed, TurnWriteError>>,
    contexts: Together<context::Wanted, StoreResult<TurnContext>>,
    owners: Together<UserName, StoreResult<OwnerId>>,
}

impl PostgresStore {
    /// Opens the store: migrates if asked to, then checks the schema and the role that all connections work as.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect(options: PostgresOptions) -> Result<Self, ConnectError> {
        Self::connect_as(options, APP_ROLE).await
    }

    async fn connect_as(
        options: PostgresOptions,
        role: &'static str,
    ) -> Result<Self, ConnectError> {
        let address: PgConnectOptions = options.url.parse().map_err(ConnectError::Address)?;
        let address = address
            .application_name("tidemark")
            .statement_cache_capacity(STATEMENT_CACHE)
            // sqlx asks after each statement whether it would be logged, and with filters of layers that swallows the next line of the
            // log on the same thread, whatever it says (tokio-rs/tracing#2519).
            .disable_statement_logging();
        schema::prepare(&address, options.migrate, role).await?;
        let database = Database::new(pool(address, options.max_connections, role));
        tokio::spawn(statistics::keep_known(database.clone()));
        Ok(Self::over(database))
    }

    fn over(database: Database) -> Self {
        let (accepts, commits) = (database.clone(), database.clone());
        let (reads, resolves) = (database.clone(), database.clone());
        Self {
            database,
            acceptances: Together::start(move |tenant, asked| {
                turns::accept_all(&accepts, tenant, asked)
            }),
            commits: Together::start(move |tenant, asked| {
                turns::commit_all(&commits, tenant, asked)
            }),
            contexts: Together::start(move |tenant, asked| {
                context::read_all(&reads, tenant, asked)
            }),
            owners: Together::start(move |tenant, asked| {
                owners::resolve_all(&resolves, tenant, asked)
            }),
        }
    }

    /// Waits for the operations that have begun, then closes all connections. Later operations are refused as unavailable.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

fn pool(address: PgConnectOptions, max_connections: u32, role: &'static str) -> PgPool {
    PgPoolOptions::new()
        .max_connections(max_connections.max(1))
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // It would cost a round trip an operation; a dead connection is found when its transaction cannot begin.
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            Box::pin(async move { schema::take_role(connection, role).await })
        })
        .connect_lazy_with(address)
}
