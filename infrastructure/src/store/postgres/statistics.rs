//! What the planner knows of tables that have just been filled.
//!
//! A plan is kept by its connection until the table is analyzed. One that is made while a table is small may look through the whole of it, and
//! the server's own `autovacuum` comes by once a minute: until then whatever a new database is filled with would be read again and again.

use std::time::Duration;

use super::transaction::Database;

/// How often tables that were never analyzed are looked for, while there may be some. One look costs a read of the server's counters.
const SOON: Duration = Duration::from_secs(2);

/// How often when there is nothing to find. Ours: for so long a database that is filled late may have plans that look through whole tables.
const LATER: Duration = Duration::from_secs(10);

/// So many looks in a row have to find nothing before there is nothing to find. Ours: a new database is filled soon after the start.
const IN_VAIN: u32 = 10;

/// From how many rows on a plan matters.
const LEAST: i64 = 200;

const ANALYZE_UNSEEN: &str = "SELECT tidemark_analyze_unseen($1)";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[ANALYZE_UNSEEN];

/// Has tables analyzed once they are filled, until the database is closed.
pub(super) async fn keep_known(database: Database) {
    let mut pace = Pace::default();
    loop {
        let analyzed = analyze_unseen(&database).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "tables could not be analyzed");
            0
        });
        tokio::select! {
            () = database.closing() => return,
            () = tokio::time::sleep(pace.after(analyzed)) => {}
        }
    }
}

/// How soon the next look is.
#[derive(Debug, Default)]
struct Pace {
    /// How many looks in a row have found nothing.
    in_vain: u32,
}

impl Pace {
    /// After a look that has found so many tables.
    fn after(&mut self, analyzed: i64) -> Duration {
        self.in_vain = if analyzed > 0 {
            0
        } else {
            self.in_vain.saturating_add(1)
        };
        if self.in_vain < IN_VAIN { SOON } else { LATER }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_nothing_to_find_it_is_looked_seldom_until_something_is_found() {
        let mut pace = Pace::default();
        for _ in 0..2 {
            for look in 1..IN_VAIN {
                assert_eq!(pace.after(0), SOON, "look {look}");
            }
            for _ in 0..3 {
                assert_eq!(pace.after(0), LATER);
            }
            assert_eq!(pace.after(2), SOON);
        }
    }
}
