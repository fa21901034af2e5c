//! The store in one `SQLite` file: the default of an installation without a database server.
//!
//! Writes go through one task ([`writer`]), which commits the steps of many turns together; reads go over connections of their own and
//! see what has been committed, those of several statements in tasks ([`snapshot`]). A lock beside the file refuses a second process, so at the start no lease can belong to anybody.

mod changes;
mod edits;
mod embeddings;
mod errors;
mod extraction;
mod fading;
mod history;
mod idempotency;
mod jobs;
mod keys;
mod learning;
mod memories;
mod messages;
mod options;
mod owners;
mod recalled;
mod rows;
mod schema;
mod sessions;
mod snapshot;
mod statements;
mod turns;
mod users;
mod writer;

use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{ConnectOptions, SqlitePool};

pub use self::errors::OpenError;
pub use self::options::SqliteOptions;
use self::writer::Writer;

/// The store. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    writer: Writer,
    readers: SqlitePool,
}

impl SqliteStore {
    /// Opens the database, makes it if it is missing, migrates it if that is asked for, and voids all leases of an earlier process.
    ///
    /// # Errors
    /// [`OpenError`], naming the file.
    pub async fn open(options: SqliteOptions) -> Result<Self, OpenError> {
        let options = options.resolved();
        let lock = options::lock(&options.path)?;
        let cannot_open = |source| OpenError::Open {
            path: options.path.clone(),
            source,
        };
        let mut connection = options.writer().connect().await.map_err(cannot_open)?;
        if options.migrate {
            schema::MIGRATIONS
                .run(&mut connection)
                .await
                .map_err(|source| OpenError::Migrate {
                    path: options.path.clone(),
                    source,
                })?;
        }
        let readers = SqlitePoolOptions::new()
            .max_connections(options.readers.max(1))
            .min_connections(1)
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options.reader())
            .await
            .map_err(cannot_open)?;
        // A schema of another version may lack the tables; then nothing can be started on it either.
        if schema::check(&readers).await.is_ok() {
            turns::void_leases(&mut connection)
                .await
                .map_err(cannot_open)?;
            jobs::void_leases(&mut connection)
                .await
                .map_err(cannot_open)?;
            // An erasure was cut by the end of the process.
            if users::is_unfinished(&mut connection)
                .await
                .map_err(cannot_open)?
            {
                writer::rewrite(&mut connection)
                    .await
                    .map_err(cannot_open)?;
                users::mark_finished(&mut connection)
                    .await
                    .map_err(cannot_open)?;
            }
        }
        Ok(Self {
            writer: Writer::start(options.writer(), connection, Some(lock)),
            readers,
        })
    }

    /// Opens the database beside a process that serves it, for what takes no part in its turns and jobs: keys. Nothing is migrated and no lease
    /// voided. Two processes that write wait for each other.
    ///
    /// # Errors
    /// [`OpenError`], naming the file.
    pub async fn open_beside(options: SqliteOptions) -> Result<Self, OpenError> {
        let options = options.resolved();
        let cannot_open = |source| OpenError::Open {
            path: options.path.clone(),
            source,
        };
        let writer = options.writer().create_if_missing(false);
        let connection = writer.connect().await.map_err(cannot_open)?;
        let readers = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options.reader())
            .await
            .map_err(cannot_open)?;
        Ok(Self {
            writer: Writer::start(writer, connection, None),
            readers,
        })
    }

    /// Finishes the writes that wait, writes the log back into the database and closes it. Whoever still uses the store is refused.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

#[cfg(test)]
mod tests;
