//! How statements are carried out under row-level security.
//!
//! PostgreSQL keeps a condition away from rows that a policy may hide, and so from an index, unless every function in it is known not to leak
//! what it is given. A statement that is quick for the owner of the tables can walk through all of them for the role that serves requests.

use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection, Row};
use tidemark_domain::ids::TenantId;

use super::super::testing::{TestDatabase, new_id};
use super::super::{embeddings, jobs, keys, memories, recalled, schema, statistics, users};
use super::isolation::as_app;
use super::schema::statements;
use super::steps::fill;

/// Every step of a plan, with whether a limit ends it early.
fn steps<'a>(node: &'a Value, limited: bool, found: &mut Vec<(&'a Value, bool)>) {
    let kind = node["Node Type"].as_str().unwrap_or_default();
    let limited = match kind {
        "Limit" => true,
        "Sort" | "Aggregate" | "Hash" | "Unique" => false,
        _ => limited,
    };
    found.push((node, limited));
    for child in node["Plans"].as_array().into_iter().flatten() {
        steps(child, limited, found);
    }
}

/// The columns that an index is asked for.
fn columns(condition: &str) -> impl Iterator<Item = &str> {
    condition.split(" AND ").map(|part| {
        let part = part
            .trim_start_matches(['(', ' '])
            .trim_start_matches("ROW(");
        part.split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .next()
            .unwrap_or_default()
    })
}

async fn plan(connection: &mut PgConnection, sql: &str) -> Value {
    // Parameters of a generic plan are not bound, which only the simple protocol allows.
    let explain = AssertSqlSafe(format!("EXPLAIN (GENERIC_PLAN, FORMAT JSON) {sql}"));
    let row = sqlx::raw_sql(explain)
        .fetch_one(connection)
        .await
        .unwrap_or_else(|error| panic!("{error}: {sql}"));
    let plan: Value = row.get(0);
    plan[0]["Plan"].clone()
}

/// Makes many rows of a row of each table that an owner has, with ids, numbers, names and hashes of their own, so that a walk is the last
/// thing that is chosen for a statement.
const MULTIPLY: &str = "
DO $$
DECLARE
    each text;
    fields text;
    given text;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR each IN
        SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'owner_id'
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'owners'
    LOOP
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum), string_agg(
            CASE
                WHEN a.attname = 'expires_at' THEN 'NULL'
                WHEN a.attname = 'indexed_seq' THEN 'x.message_count'
                WHEN a.attname IN ('tenant_id', 'owner_id') THEN 'x.' || a.attname
                WHEN a.atttypid = 'uuid'::regtype THEN 'gen_random_uuid()'
                WHEN a.atttypid = 'bytea'::regtype THEN 'sha256(uuid_send(gen_random_uuid()))'
                WHEN a.attname IN ('seq', 'change', 'number', 'first_seq') THEN 'n'
                WHEN a.attname IN ('key', 'identity') THEN format('x.%1$I || n', a.attname)
                WHEN a.attname = 'day' THEN 'x.day + n'
                WHEN a.attname = 'created_at' THEN 'x.created_at + make_interval(secs => n)'
                ELSE 'x.' || quote_ident(a.attname)
            END, ', ' ORDER BY a.attnum
        ) INTO fields, given
        FROM pg_attribute a
        WHERE a.attrelid = each::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attidentity = '';
        EXECUTE format(
            'INSERT INTO %1$I (%2$s) SELECT %3$s FROM (SELECT * FROM %1$I LIMIT 1) x, generate_series(1000, 21000) n ON CONFLICT DO NOTHING',
            each, fields, given
        );
        EXECUTE format('ANALYZE %I', each);
    END LOOP;
END $$";

/// Indexes of one row for each owner or tenant, and of open or unfinished things alone, which may be walked.
const SMALL: [&str; 7] = [
    "owners_pkey",
    "tenants_pkey",
    "pass_secrets_pkey",
    "turns_open",
    "turns_running",
    "turns_waiting",
    "sessions_unindexed",
];

/// What may cost as much as an owner has: each module says why. So may what is checked at the start, and erasing.
fn may_walk(sql: &str) -> bool {
    let walks = [
        embeddings::WALKS,
        jobs::WALKS,
        keys::WALKS,
        memories::WALKS,
        recalled::WALKS,
        schema::STATEMENTS,
        users::WALKS,
    ];
    walks.concat().contains(&sql) || is_erasure(sql)
}

fn is_erasure(sql: &str) -> bool {
    sql.starts_with("DELETE FROM ")
        && sql
            .trim_end_matches(" RETURNING id")
            .ends_with(" WHERE tenant_id = $1 AND owner_id = $2")
}

/// The statements that read more than they look up, under row-level security.
async fn walks(database: &TestDatabase, tenant: TenantId) -> Vec<String> {
    let mut connection = as_app(database, Some(tenant)).await;
    let mut walks = Vec::new();
    for sql in statements().into_iter().filter(|sql| !may_walk(sql)) {
        let plan = plan(&mut connection, sql).await;
        let mut all = Vec::new();
        steps(&plan, false, &mut all);
        for (step, limited) in all {
            let by = step["Index Name"].as_str();
            let Some(of) = by.or_else(|| step["Relation Name"].as_str()) else {
                continue;
            };
            let kind = step["Node Type"].as_str().unwrap_or_default();
            let reads = kind.contains("Scan") && kind != "Bitmap Heap Scan" && kind != "Tid Scan";
            let condition = step["Index Cond"].as_str().unwrap_or_default();
            let narrowed = columns(condition).any(|c| !matches!(c, "" | "tenant_id" | "owner_id"));
            if reads && !narrowed && !limited && !SMALL.contains(&of) {
                walks.push(format!(
                    "{of}: {condition}\n    in {}",
                    sql.split_whitespace().collect::<Vec<_>>().join(" ")
                ));
            }
        }
    }
    walks
}

#[tokio::test]
async fn the_cost_of_no_statement_grows_with_what_an_owner_has_ever_stored() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    let tenant = TenantId(new_id());
    fill(&store, tenant).await;
    database.execute(MULTIPLY).await;
    let walks = walks(&database, tenant).await;
    assert!(walks.is_empty(), "{}", walks.join("\n"));
}

#[tokio::test]
async fn a_table_that_was_just_filled_is_analyzed_once() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    fill(&store, TenantId(new_id())).await;
    // Autovacuum might come first.
    database
        .execute("DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
            EXECUTE format('ALTER TABLE %I SET (autovacuum_enabled = off)', t); END LOOP; END $$")
        .await;
    database
        .execute(MULTIPLY.replace("EXECUTE format('ANALYZE", "-- "))
        .await;
    let mut connection = database.connection().await;
    let mut known = 0;
    // The server's counters are behind by up to a second, and the next look may be ten away.
    for _ in 0..300 {
        known = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stats WHERE schemaname = 'public' AND tablename = 'memories' AND attname = 'owner_id'",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        if known == 1_i64 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(known, 1);
    // By whom it was done does not matter to whoever asks then.
    assert_eq!(
        statistics::analyze_unseen(&store.database).await.unwrap(),
        0
    );
}
