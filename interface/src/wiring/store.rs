//! The store that the settings name.

use std::error::Error;
use std::sync::Arc;

use tidemark_application::ports::owners::OwnerRepository as _;
use tidemark_application::ports::store::Store;
use tidemark_infrastructure::store::postgres::{PostgresOptions, PostgresStore};
use tidemark_infrastructure::store::sqlite::{OpenError, SqliteOptions, SqliteStore};

use super::WiringError;
use crate::config::{sections, setting};

/// Connections that read a file.
const MAX_READERS: u32 = 8;

/// Where a store is.
enum Address {
    Sqlite(SqliteOptions),
    Postgres(PostgresOptions),
}

impl Address {
    fn of(settings: &sections::Store, migrate: bool) -> Result<Self, WiringError> {
        let url = settings.url.0.as_str();
        if !url.starts_with("sqlite://") {
            return Ok(Self::Postgres(PostgresOptions {
                url: url.to_owned(),
                migrate,
                max_connections: settings.max_connections,
            }));
        }
        let mut options = SqliteOptions::from_url(url).map_err(|error| failed(settings, error))?;
        options.migrate = migrate;
        options.readers = settings.max_connections.min(MAX_READERS);
        Ok(Self::Sqlite(options))
    }
}

fn failed(settings: &sections::Store, source: impl Error + Send + Sync + 'static) -> WiringError {
    WiringError::Store {
        url: setting::without_password(settings.url.0.as_str()),
        source: Box::new(source),
    }
}

/// A store of either kind.
#[derive(Debug)]
pub enum OpenStore {
    /// One file.
    Sqlite(SqliteStore),
    /// A database server.
    Postgres(PostgresStore),
}

impl OpenStore {
    /// Opens the store that the settings name.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn open(settings: &sections::Store, migrate: bool) -> Result<Self, WiringError> {
        match Address::of(settings, migrate)? {
            Address::Sqlite(options) => SqliteStore::open(options)
                .await
                .map(Self::Sqlite)
                .map_err(|error| failed(settings, error)),
            Address::Postgres(options) => PostgresStore::connect(options)
                .await
                .map(Self::Postgres)
                .map_err(|error| failed(settings, error)),
        }
    }

    /// Opens the store that the settings name, and migrates it, for a command about keys. A file that a server has open is opened beside it.
    ///
    /// # Errors
    /// When it cannot be opened, or the server that has it open is one of another version.
    pub async fn open_for_keys(settings: &sections::Store) -> Result<Self, WiringError> {
        let Address::Sqlite(options) = Address::of(settings, true)? else {
            return Self::open(settings, true).await;
        };
        match SqliteStore::open(options.clone()).await {
            Err(OpenError::InUse { .. }) => {}
            opened => {
                return opened
                    .map(Self::Sqlite)
                    .map_err(|error| failed(settings, error));
            }
        }
        let store = SqliteStore::open_beside(options)
            .await
            .map_err(|error| failed(settings, error))?;
        if let Err(error) = store.ready().await {
            store.close().await;
            return Err(failed(settings, error));
        }
        Ok(Self::Sqlite(store))
    }

    /// All its ports.
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres(store) => Arc::new(store.clone()),
        }
    }

    /// Finishes what is being written, and closes.
    pub async fn close(&self) {
        match self {
            Self::Sqlite(store) => store.close().await,
            Self::Postgres(store) => store.close().await,
        }
    }
}
