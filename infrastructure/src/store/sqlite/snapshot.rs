//! Several statements that read on one moment.
//!
//! They run in a task of their own, which a caller that goes away does not end: a connection that stayed inside its transaction would go on
//! reading that moment for ever, and keep the log from being cut. A read of one statement has no transaction that could stay open.

use futures::future::BoxFuture;
use sqlx::{SqliteConnection, SqlitePool};
use tidemark_application::ports::store::{StoreError, StoreResult};
use tracing::Instrument;

use super::errors::{corrupt, store_error};

/// Reads within one transaction.
pub(super) async fn snapshot<T, F>(readers: &SqlitePool, read: F) -> StoreResult<T>
where
    F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, StoreResult<T>> + Send + 'static,
    T: Send + 'static,
{
    let readers = readers.clone();
    let task = async move {
        let mut snapshot = readers.begin().await.map_err(store_error)?;
        let outcome = read(&mut snapshot).await;
        snapshot.rollback().await.map_err(store_error)?;
        outcome
    };
    // Closing the pool waits for it, since it waits for every connection.
    match tokio::spawn(task.in_current_span()).await {
        Ok(outcome) => outcome,
        Err(error) if error.is_cancelled() => Err(StoreError::Unavailable(Box::new(error))),
        Err(_) => Err(corrupt("a read panicked")),
    }
}
