//! The SQLite store keeps what the ports promise.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tempfile::TempDir;
use tidemark_application::ports::store::Store;
use tidemark_infrastructure::store::conformance;
use tidemark_infrastructure::store::sqlite::{SqliteOptions, SqliteStore};

async fn open() -> (Arc<dyn Store>, TempDir) {
    open_with(4).await
}

async fn open_with(readers: u32) -> (Arc<dyn Store>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let mut options = SqliteOptions::new(directory.path().join("tidemark.db"));
    options.readers = readers;
    let store = SqliteStore::open(options).await.unwrap();
    (Arc::new(store), directory)
}

tidemark_infrastructure::conformance!(open);

/// A connection that stayed in a transaction would not see what is written afterwards.
#[tokio::test]
async fn a_dropped_request_leaves_the_only_connection_free() {
    let (store, _directory) = open_with(1).await;
    conformance::dropped::a_dropped_request_leaves_the_only_connection_free(store, async || true)
        .await;
}
