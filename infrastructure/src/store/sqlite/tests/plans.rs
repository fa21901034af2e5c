//! How statements are carried out.

use sqlx::Row;

use super::*;

/// Indexes of open or unfinished things alone, which may be walked.
const SMALL: [&str; 14] = [
    "turns_open",
    "turns_running",
    "turns_queued",
    "jobs_leased",
    "jobs_pending",
    "sessions_unindexed",
    "sessions_unconsolidated",
    "memories_profile",
    "owners",
    "jobs USING PRIMARY KEY",
    "erasures_unfinished",
    "tenants",
    // Read in its order, up to a limit.
    "memories_stated",
    // The few models that ever were in use.
    "SCAN earlier",
];

/// What may cost as much as an owner has, or all have, and why.
fn may_walk(sql: &str) -> bool {
    // Statistics of the metrics; the migrations; a check for children of a new owner that is skipped when run; forgetting, which looks
    // through the turns that have shown anything; and what stands around embedding.
    sql.starts_with("SELECT kind, state, count(*)")
        || sql.contains("_sqlx_migrations")
        || sql.starts_with("INSERT INTO owners")
        || sql.starts_with("UPDATE turns SET recalled = (")
        || embeddings::WALKS.contains(&sql)
        || users::WALKS.contains(&sql)
        || is_erasure(sql)
}

/// Whether it removes all that an owner has.
fn is_erasure(sql: &str) -> bool {
    sql.starts_with("DELETE FROM ")
        && sql
            .trim_end_matches(" RETURNING id")
            .ends_with(" WHERE tenant_id = ?1 AND owner_id = ?2")
}

#[tokio::test]
async fn the_cost_of_no_statement_grows_with_what_an_owner_has_ever_stored() {
    let fixture = Fixture::new().await;
    let mut walks = Vec::new();
    for sql in all_statements().into_iter().filter(|sql| !may_walk(sql)) {
        let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        let plan = sqlx::query(explain)
            .fetch_all(&fixture.store.readers)
            .await
            .unwrap();
        for step in plan {
            let step: String = step.get("detail");
            let generated = [
                "VIRTUAL TABLE",
                "CONSTANT ROW",
                "(subquery",
                "SCAN used",
                "SCAN learned",
                "SCAN asked",
                "SCAN named",
            ];
            let walks_all =
                step.starts_with("SCAN") && !generated.iter().any(|name| step.contains(name));
            let walks_an_owner = step.ends_with("(tenant_id=? AND owner_id=?)");
            let small = SMALL.iter().any(|name| step.contains(name));
            if (walks_all || walks_an_owner) && !small {
                walks.push(format!("{step}\n    in {sql}"));
            }
        }
    }
    assert!(walks.is_empty(), "{}", walks.join("\n"));
}

#[test]
fn no_statement_writes_memories_without_the_number_of_the_change() {
    // An erasure leaves nobody who could follow changes.
    let all = all_statements().into_iter().filter(|sql| !is_erasure(sql));
    let mut written = 0;
    for sql in all {
        let writes = ["INSERT INTO memories", "UPDATE memories "];
        // When a memory fades concerns the sweep alone.
        let notes = sql.starts_with("UPDATE memories SET fades_at = ");
        if !notes && writes.iter().any(|write| sql.contains(write)) {
            assert!(
                sql.contains("change = ?") || sql.contains(", change)"),
                "{sql}"
            );
            written += 1;
        }
        // Removed are those alone that have been listed before, by the function that does both.
        if sql.contains("DELETE FROM memories") {
            assert!(
                sql.starts_with(
                    "DELETE FROM memories WHERE tenant_id = ?1 AND owner_id = ?2 AND id IN"
                ),
                "{sql}"
            );
            written += 1;
        }
    }
    assert_eq!(written, 9);
}
