//! What can go wrong with the file, and how the database's errors are told to the ports.

use std::io;
use std::path::PathBuf;

use sqlx::error::DatabaseError;
use tidemark_application::ports::store::StoreError;

/// The store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address is not `sqlite://` and the path of a file.
    #[error(
        "`{url}` is not the address of an SQLite file: write sqlite://path, for example sqlite://tidemark.db"
    )]
    Address {
        /// What was given.
        url: String,
    },
    /// The file would have to be made in a directory that is not there.
    #[error("cannot open the database {}: there is no directory {}", path.display(), directory.display())]
    NoDirectory {
        /// The file.
        path: PathBuf,
        /// The missing directory.
        directory: PathBuf,
    },
    /// Another process serves this file.
    #[error("the database {} is in use by another process (it holds a lock on {})", path.display(), lock.display())]
    InUse {
        /// The file.
        path: PathBuf,
        /// The file that is locked.
        lock: PathBuf,
    },
    /// The lock file could not be made or locked.
    #[error("cannot lock {}", lock.display())]
    Lock {
        /// The lock file.
        lock: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file could not be opened, or is no database.
    #[error("cannot open the database {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: sqlx::Error,
    },
    /// The schema could not be brought to this program's version.
    #[error("cannot migrate the database {}", path.display())]
    Migrate {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: sqlx::migrate::MigrateError,
    },
}

/// The file's state or the machine's is at fault, not the statement: error codes of `SQLite` without their extension.
const PASSING: [i32; 9] = [
    5,  // busy
    6,  // locked
    7,  // no memory
    8,  // read-only
    9,  // interrupted
    10, // I/O error
    13, // disk full
    14, // cannot open
    15, // locking protocol
];

fn primary_code(error: &dyn DatabaseError) -> Option<i32> {
    let extended: i32 = error.code()?.parse().ok()?;
    Some(extended & 0xff)
}

fn is_passing(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(e) => primary_code(e.as_ref()).is_some_and(|c| PASSING.contains(&c)),
        sqlx::Error::Io(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        _ => false,
    }
}

/// `SQLITE_CONSTRAINT_FOREIGNKEY`: all references lead to owners at last, and only an erasure removes what is being referred to.
fn is_orphan(error: &sqlx::Error) -> bool {
    let code = match error {
        sqlx::Error::Database(e) => e.code(),
        _ => None,
    };
    code.as_deref() == Some("787")
}

/// A failed statement, in the ports' words.
pub(super) fn store_error(error: sqlx::Error) -> StoreError {
    if is_passing(&error) {
        return StoreError::Unavailable(Box::new(error));
    }
    if is_orphan(&error) {
        return no_owner();
    }
    // The database's own message names tables and columns, never values.
    let what = match &error {
        sqlx::Error::Database(e) => e.message().to_owned(),
        _ => "a row or statement".to_owned(),
    };
    StoreError::Corrupt {
        what,
        source: Some(Box::new(error)),
    }
}

/// Somebody was erased while something was about to be stored for them.
pub(super) fn no_owner() -> StoreError {
    StoreError::OwnerGone
}

/// Whether a COMMIT that failed with this certainly changed nothing: busy, locked, disk full and broken constraints are found before the
/// log is written to its end.
pub(super) fn commit_was_refused(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(e) if matches!(primary_code(e.as_ref()), Some(5 | 6 | 13 | 19)))
}

/// A broken rule of this store's own rows.
pub(super) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt {
        what: what.into(),
        source: None,
    }
}
