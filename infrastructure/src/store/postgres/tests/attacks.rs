//! What whoever can send statements as the role that serves, or as another, gets of a tenant that is not theirs.

use std::collections::BTreeMap;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use tidemark_domain::ids::TenantId;

use super::super::schema as migrations;
use super::super::testing::{TestDatabase, TestRole, give_key, new_id};
use super::isolation::{as_app, tables};
use super::schema::statements;
use super::steps::fill;

/// The functions that run as the migrating role, and why each may see what is not the tenant's. What they give out is ids and numbers; names are
/// of models, kinds and states.
const BEYOND_A_TENANT: [(&str, &str); 15] = [
    (
        "tidemark_adopt_embedding_model",
        "models are the installation's",
    ),
    (
        "tidemark_analyze_unseen",
        "counts rows of whole tables, for their statistics",
    ),
    (
        "tidemark_applied_migrations",
        "the schema is the installation's",
    ),
    (
        "tidemark_claim_job",
        "a worker takes what is due, whosever it is",
    ),
    ("tidemark_count_jobs", "metrics are the installation's"),
    (
        "tidemark_earlier_embedding_models",
        "models are the installation's",
    ),
    (
        "tidemark_embedding_dimension",
        "models are the installation's",
    ),
    (
        "tidemark_fading_memories",
        "the sweep fades what is due, whosever it is",
    ),
    (
        "tidemark_key_tenant",
        "a request shows a key before its tenant is known",
    ),
    (
        "tidemark_lapsed_turns",
        "recovery closes what has no runner, whosever it is",
    ),
    (
        "tidemark_owners_to_embed",
        "a new model embeds what everybody has",
    ),
    (
        "tidemark_sessions_to_consolidate",
        "quiet sessions are consolidated, whosever they are",
    ),
    ("tidemark_tenant_named", "an operator names a tenant"),
    ("tidemark_tenants", "an operator lists the tenants"),
    (
        "tidemark_waiting_sessions",
        "a worker starts what waits, whosever it is",
    ),
];

async fn code_of(connection: &mut PgConnection, sql: &str) -> Option<String> {
    let sent = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await;
    let error = sent.err()?;
    Some(error.as_database_error()?.code()?.into_owned())
}

#[tokio::test]
async fn what_sees_beyond_a_tenant_is_known_and_gives_out_no_text_of_anybodys() {
    let database = TestDatabase::create().await;
    database.store().await;
    let mut connection = database.connection().await;
    let found: Vec<(String, bool, String)> = sqlx::query_as(
        "SELECT p.proname::text, has_function_privilege('public', p.oid, 'EXECUTE'), coalesce(array_to_string(p.proconfig, ','), '')
         FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef ORDER BY 1",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, BEYOND_A_TENANT.map(|(name, _)| name));
    for (name, by_anybody, settings) in &found {
        assert!(!by_anybody, "{name} may be called by every role");
        // Or the caller says which tables it reads.
        assert!(
            settings.contains("search_path="),
            "{name} has no search path"
        );
    }
    let others: Vec<String> = sqlx::query_scalar(
        "SELECT c.relname::text FROM pg_class c
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind NOT IN ('r', 'i', 'S', 't')",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert!(
        others.is_empty(),
        "neither a view nor anything else reads for others: {others:?}"
    );
}

/// The scans of a plan that read a table, with what their rows are asked for. A tenant that the statement names too is compared with the
/// transaction's once, before all that stands below.
fn scans(node: &Value, above: &str, found: &mut Vec<(String, String)>) {
    let once = node["One-Time Filter"].as_str().unwrap_or_default();
    let above = format!("{above}{once}");
    // What the database keeps of itself is nobody's.
    if let Some(table) = node["Relation Name"].as_str()
        && node["Schema"] == "public"
        && node["Node Type"]
            .as_str()
            .is_some_and(|kind| kind.contains("Scan"))
    {
        let parts = ["Index Cond", "Recheck Cond", "Filter", "TID Cond"];
        let asked: Vec<&str> = parts
            .iter()
            .filter_map(|part| node[part].as_str())
            .collect();
        found.push((table.to_owned(), format!("{above} {}", asked.join(" AND "))));
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        scans(child, &above, found);
    }
}

/// The names of the steps that ask whose transaction it is, one for each policy.
fn policies(node: &Value, found: &mut Vec<String>) {
    let output = node["Output"].to_string();
    if let Some(name) = node["Subplan Name"].as_str()
        && output.contains("current_setting('tidemark.tenant'")
    {
        found.push(format!("({name}).col1"));
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        policies(child, found);
    }
}

/// Parameters are not bound, so that the plan is the one for all of them.
#[tokio::test]
async fn every_statement_reads_each_table_through_its_policy_whatever_the_parameters() {
    let database = TestDatabase::create().await;
    database.store().await;
    let mut connection = as_app(&database, None).await;
    let (mut read, mut open) = (BTreeMap::<String, usize>::new(), Vec::new());
    for sql in statements() {
        let explain = format!("EXPLAIN (GENERIC_PLAN, VERBOSE, FORMAT JSON) {sql}");
        let explained: Value = sqlx::raw_sql(AssertSqlSafe(explain))
            .fetch_one(&mut connection)
            .await
            .unwrap_or_else(|error| panic!("{error}: {sql}"))
            .get(0);
        let plan = &explained[0]["Plan"];
        let mut all = Vec::new();
        scans(plan, "", &mut all);
        let mut asking = Vec::new();
        policies(plan, &mut asking);
        for (table, asked) in all {
            let narrowed = asked.contains("tenant_id = ");
            if narrowed && asking.iter().any(|policy| asked.contains(policy)) {
                *read.entry(table).or_default() += 1;
            } else {
                open.push(format!("{table}: {asked}\n    in {sql}"));
            }
        }
    }
    assert!(open.is_empty(), "{}", open.join("\n"));
    let mut all = database.connection().await;
    for table in tables(&mut all).await {
        // Written alone, which the policy's check is for.
        if !["erasures"].contains(&table.as_str()) {
            assert!(read.contains_key(&table), "no statement reads {table}");
        }
    }
}

/// Whether a statement says whose transaction it is, or takes a lock by a name, and nothing else.
fn reads_nothing_kept(sql: &str) -> bool {
    let tells = [
        "set_config(",
        "pg_advisory_xact_lock(",
        "pg_try_advisory_xact_lock(",
    ];
    let sources: Vec<&str> = sql
        .split("FROM ")
        .skip(1)
        .filter_map(|rest| rest.split_whitespace().next())
        .collect();
    tells.iter().any(|function| sql.contains(function))
        && sources
            .iter()
            .all(|source| source.starts_with('(') || source.starts_with("unnest("))
}

#[tokio::test]
async fn a_role_without_rights_can_run_no_statement() {
    let database = TestDatabase::create().await;
    database.store().await;
    let role = TestRole::create(&database, "LOGIN").await;
    let mut connection = PgConnection::connect(&database.url_as(&role.name))
        .await
        .unwrap();
    let mut open = Vec::new();
    for sql in statements() {
        // The rights are looked at when a plan is about to be carried out, and so here.
        let code = code_of(&mut connection, &format!("EXPLAIN (GENERIC_PLAN) {sql}")).await;
        let allowed = reads_nothing_kept(sql) || migrations::STATEMENTS.contains(&sql);
        if code.as_deref() != Some("42501") && !allowed {
            open.push(format!("{code:?}: {sql}"));
        }
    }
    assert!(open.is_empty(), "{}", open.join("\n"));
}

#[tokio::test]
async fn no_statement_of_anybody_gets_at_another_tenants_rows() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    let (own, other) = (TenantId(new_id()), TenantId(new_id()));
    fill(&store, own).await;
    give_key(&store, own).await;
    // Not a superuser's session, which could become anybody again.
    let served = TestRole::create(&database, "LOGIN").await;
    database
        .execute(format!("GRANT tidemark_app TO {}", served.name))
        .await;
    let stranger = TestRole::create(&database, "LOGIN").await;
    let mut app = PgConnection::connect(&database.url_as(&served.name))
        .await
        .unwrap();
    let mut none = PgConnection::connect(&database.url_as(&stranger.name))
        .await
        .unwrap();
    let mut all = database.connection().await;
    for table in tables(&mut all).await {
        for sql in [
            "SELECT FROM {}",
            "DELETE FROM {}",
            "UPDATE {} SET tenant_id = tenant_id",
            "INSERT INTO {} DEFAULT VALUES",
            "TRUNCATE {}",
            "COPY (SELECT * FROM {}) TO STDOUT",
            "SELECT; LOCK TABLE {}",
            "ALTER TABLE {} DISABLE ROW LEVEL SECURITY",
            "CREATE TRIGGER t BEFORE UPDATE ON {} EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "CREATE VIEW stolen AS SELECT * FROM {}",
            "DROP TABLE {}",
            "DROP POLICY tenant ON {}",
        ] {
            let sql = sql.replace("{}", &table);
            assert_eq!(
                code_of(&mut none, &sql).await.as_deref(),
                Some("42501"),
                "{sql}"
            );
        }
        for tenant in ["''".to_owned(), format!("'{other}'"), "DEFAULT".to_owned()] {
            let set = format!("SET ROLE tidemark_app; SET tidemark.tenant = {tenant}");
            assert_eq!(code_of(&mut app, &set).await, None, "{set}");
            let seen: i64 =
                sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table}")))
                    .fetch_one(&mut app)
                    .await
                    .unwrap();
            assert_eq!(seen, 0, "{table} with {tenant}");
            for (sql, code) in [
                ("TRUNCATE {}", "42501"),
                ("SET LOCAL row_security = off; SELECT FROM {}", "42501"),
                ("ALTER TABLE {} DISABLE ROW LEVEL SECURITY", "42501"),
                ("DROP POLICY tenant ON {}", "42501"),
                ("CREATE VIEW stolen AS SELECT * FROM {}", "42501"),
                ("SET ROLE postgres", "42501"),
                ("SET SESSION AUTHORIZATION postgres", "42501"),
                ("SET session_replication_role = replica", "42501"),
            ] {
                let sql = sql.replace("{}", &table);
                assert_eq!(
                    code_of(&mut app, &sql).await.as_deref(),
                    Some(code),
                    "{sql}"
                );
            }
        }
        // What is no tenant's name is none.
        for nonsense in ["*", "%", "' OR true --", "null"] {
            let set = format!("SET tidemark.tenant = '{}'", nonsense.replace('\'', "''"));
            assert_eq!(code_of(&mut app, &set).await, None, "{set}");
            let read = code_of(&mut app, &format!("SELECT count(*) FROM {table}")).await;
            assert_eq!(read.as_deref(), Some("22P02"), "{table} with {nonsense}");
        }
    }
}
