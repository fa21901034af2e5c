//! Where the database is and how its connections are set.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use super::errors::OpenError;

/// How to open the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The file; made if it is missing, in a directory that is there.
    pub path: PathBuf,
    /// Bring the schema to this program's version at the start. Without it [`ready`] tells when it is not.
    ///
    /// [`ready`]: tidemark_application::ports::owners::OwnerRepository::ready
    pub migrate: bool,
    /// How many connections read beside the writer, at least 1.
    pub readers: u32,
}

impl SqliteOptions {
    /// Migrates, and reads over four connections.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            migrate: true,
            readers: 4,
        }
    }

    /// The options of `sqlite://path`; relative paths are relative to the working directory. A database in memory is refused: it
    /// could not be read while it is written.
    ///
    /// # Errors
    /// [`OpenError::Address`].
    pub fn from_url(url: &str) -> Result<Self, OpenError> {
        match url.strip_prefix("sqlite://") {
            Some(path) if !path.is_empty() && !path.starts_with(':') && !path.contains('?') => {
                Ok(Self::new(path))
            }
            _ => Err(OpenError::Address {
                url: url.to_owned(),
            }),
        }
    }

    /// With the file's own path in place of links to it: the lock beside it must be one, whatever name it is opened by.
    pub(super) fn resolved(self) -> Self {
        Self {
            path: std::fs::canonicalize(&self.path).unwrap_or(self.path),
            ..self
        }
    }

    fn connection(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(&self.path)
            .busy_timeout(Duration::from_secs(5))
            .statement_cache_capacity(256)
            .row_buffer_size(256)
            .disable_statement_logging()
    }

    /// Of the one connection that writes. `FULL` syncs the log at each commit: what was acknowledged survives a loss of power.
    pub(super) fn writer(&self) -> SqliteConnectOptions {
        self.connection()
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .pragma("secure_delete", "ON")
            .pragma("journal_size_limit", "67108864")
            .pragma("cache_size", "-65536")
            .thread_name(|_| "sqlite-writer".to_owned())
    }

    /// Of the connections that read.
    pub(super) fn reader(&self) -> SqliteConnectOptions {
        self.connection()
            .read_only(true)
            .pragma("query_only", "ON")
            .pragma("cache_size", "-16384")
            .thread_name(|n| format!("sqlite-reader-{n}"))
    }
}

/// The file beside the database that is locked while a process serves it.
fn lock_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// Locks the database against other processes, and against this one a second time. The lock ends with the returned file, or with the
/// process, however that ends.
pub(super) fn lock(database: &Path) -> Result<File, OpenError> {
    let directory = match database.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if !directory.is_dir() {
        return Err(OpenError::NoDirectory {
            path: database.to_owned(),
            directory: directory.to_owned(),
        });
    }
    let lock = lock_path(database);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock)
        .map_err(|source| OpenError::Lock {
            lock: lock.clone(),
            source,
        })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
            path: database.to_owned(),
            lock,
        }),
        Err(TryLockError::Error(source)) => Err(OpenError::Lock { lock, source }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_address_is_a_path_to_a_file() {
        for (url, path) in [
            ("sqlite://tidemark.db", "tidemark.db"),
            ("sqlite:///var/lib/tidemark.db", "/var/lib/tidemark.db"),
            ("sqlite://./data/t.db", "./data/t.db"),
        ] {
            assert_eq!(
                SqliteOptions::from_url(url).unwrap().path,
                PathBuf::from(path)
            );
        }
    }

    #[test]
    fn an_address_of_something_else_is_refused_and_named() {
        for url in [
            "sqlite://",
            "sqlite://:memory:",
            "sqlite:tidemark.db",
            "tidemark.db",
            "sqlite://a.db?mode=ro",
        ] {
            let refused = SqliteOptions::from_url(url).unwrap_err().to_string();
            assert!(refused.contains(url), "{refused}");
        }
    }
}
