//! What the planner knows of tables that have just been filled.
//!
//! A plan is kept by its connection until the table is analyzed. One that is made while a table is small may look through the whole of it, and
//! the server's own `autovacuum` comes by once a minute: until then whatever a new database is filled with would be read again and again.

use std::time::Duration;

use super::transaction::Database;

/// How often it is looked for tables that were never analyzed. One look costs a read of the server's counters.
const INTERVAL: Duration = Duration::from_secs(2);

/// From how many rows on a plan matters.
const LEAST: i64 = 200;

const ANALYZE_UNSEEN: &str = "SELECT tidemark_analyze_unseen($1)";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[ANALYZE_UNSEEN];

/// Has tables analyzed once they are filled, until the database is closed.
pub(super) async fn keep_known(database: Database) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = database.closing() => return,
            _ = ticks.tick() => {}
        }
        if let Err(error) = analyze_unseen(&database).await {
            tracing::debug!(%error, "tables could not be analyzed");
        }
    }
}

/// How many tables were analyzed.
pub(super) async fn analyze_unseen(
    database: &Database,
) -> Result<i64, tidemark_application::ports::store::StoreError> {
    database
        .before_tenant((), |tx, ()| {
            Box::pin(async move {
                let done = sqlx::query_scalar(ANALYZE_UNSEEN).bind(LEAST);
                Ok(done.fetch_one(tx).await?)
            })
        })
        .await
}
