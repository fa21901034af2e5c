//! The SQLite store keeps what the ports promise.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tempfile::TempDir;
use tidemark_application::ports::store::Store;
use tidemark_infrastructure::store::sqlite::{SqliteOptions, SqliteStore};

async fn open() -> (Arc<dyn Store>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(directory.path().join("tidemark.db"));
    let store = SqliteStore::open(options).await.unwrap();
    (Arc::new(store), directory)
}

tidemark_infrastructure::conformance!(open);
