//! Migrations, and the statements that rely on them.

use sqlx::{AssertSqlSafe, Executor, SqlSafeStr};
use tidemark_application::memory::remember;
use tidemark_application::ports::memories::{Forgetting, MemoryRepository};
use tidemark_application::ports::owners::OwnerRepository;
use tidemark_application::ports::store::StoreError;
use tidemark_domain::ids::{ChangeId, TenantId};
use tidemark_domain::memory::State;

use super::super::testing::{TestDatabase, new_id, now, owner};
use super::super::transaction::OWNER_REFERENCE;
use super::super::{
    ConnectError, PostgresStore, SchemaMismatch, changes, claims, context, edits, embeddings,
    extraction, fading, forget, formers, history, idempotency, indexing, jobs, keys, learning,
    lines, memories, messages, owners, recalled, schema, sessions, statistics, turns, users, uses,
};
use super::steps::memory;

pub(super) fn statements() -> Vec<&'static str> {
    [
        changes::STATEMENTS,
        claims::STATEMENTS,
        context::STATEMENTS,
        embeddings::STATEMENTS,
        extraction::STATEMENTS,
        fading::STATEMENTS,
        forget::STATEMENTS,
        formers::STATEMENTS,
        idempotency::STATEMENTS,
        indexing::STATEMENTS,
        jobs::STATEMENTS,
        keys::STATEMENTS,
        learning::STATEMENTS,
        edits::STATEMENTS,
        history::STATEMENTS,
        lines::STATEMENTS,
        memories::STATEMENTS,
        messages::STATEMENTS,
        owners::STATEMENTS,
        recalled::STATEMENTS,
        schema::STATEMENTS,
        sessions::STATEMENTS,
        statistics::STATEMENTS,
        &turns::statements(),
        uses::STATEMENTS,
        &users::statements(),
    ]
    .concat()
}

#[tokio::test]
async fn every_statement_can_be_prepared_by_the_role_that_runs_it() {
    let database = TestDatabase::create().await;
    database.store().await;
    let mut connection = database.connection().await;
    sqlx::raw_sql("SET ROLE tidemark_app")
        .execute(&mut connection)
        .await
        .unwrap();
    for statement in statements() {
        connection
            .prepare(AssertSqlSafe(statement).into_sql_str())
            .await
            .unwrap_or_else(|error| panic!("{error}: {statement}"));
    }
}

#[test]
fn no_statement_writes_memories_without_the_number_of_the_change() {
    let mut written = 0;
    for sql in statements() {
        for write in ["INSERT INTO memories ", "UPDATE memories m"] {
            // When a memory fades concerns the sweep alone.
            if sql.contains("UPDATE memories m SET fades_at = ") {
                continue;
            }
            for part in sql.split(write).skip(1) {
                assert!(
                    part.contains("change = $") || part.contains("change)"),
                    "{sql}"
                );
                written += 1;
            }
        }
        let removals = sql.matches("INSERT INTO memory_removals").count();
        assert_eq!(
            sql.matches("DELETE FROM memories m").count(),
            removals,
            "{sql}"
        );
        written += removals;
    }
    assert_eq!(written, 14);
}

#[test]
fn every_statement_is_listed_for_the_test_that_prepares_it() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/postgres");
    let mut declared = 0;
    for folder in [
        folder.to_owned(),
        format!("{folder}/turns"),
        format!("{folder}/users"),
    ] {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() {
                let text = std::fs::read_to_string(path).unwrap();
                declared += text
                    .lines()
                    .filter(|line| line.starts_with("const ") && line.contains(": &str ="))
                    .count();
            }
        }
    }
    // The role's name is the only other text constant.
    assert_eq!(declared - 1, statements().len());
}

#[test]
fn both_stores_have_the_same_migrations() {
    let names = |store: &str| {
        let folder = format!("{}/../migrations/{store}", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(folder).unwrap();
        let names = files.map(|file| file.unwrap().file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(names("postgres"), names("sqlite"));
    assert!(names("postgres").len() >= 14);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_start_at_once_migrate_one_database_once() {
    let database = TestDatabase::create().await;
    let stores =
        futures::future::join_all((0..4).map(|_| PostgresStore::connect(database.options())));
    for store in stores.await {
        let store = store.unwrap();
        store.ready().await.unwrap();
        store.close().await;
    }
}

#[tokio::test]
async fn a_database_that_is_not_migrated_is_refused_unless_it_may_be_migrated() {
    let database = TestDatabase::create().await;
    let mut options = database.options();
    options.migrate = false;
    let refused = PostgresStore::connect(options.clone()).await;
    assert!(matches!(
        refused,
        Err(ConnectError::Schema(SchemaMismatch::Missing))
    ));

    database.store().await;
    let store = PostgresStore::connect(options.clone()).await.unwrap();
    store.ready().await.unwrap();

    database
        .execute("DELETE FROM _sqlx_migrations WHERE version = 6")
        .await;
    assert!(matches!(
        store.ready().await,
        Err(StoreError::Corrupt { .. })
    ));
    let refused = PostgresStore::connect(options).await;
    assert!(matches!(
        refused,
        Err(ConnectError::Schema(SchemaMismatch::NotApplied(6)))
    ));
}

#[tokio::test]
async fn a_database_that_a_later_version_has_migrated_is_refused() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    database
        .execute(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (9999, 'later', true, '', 0)",
        )
        .await;
    assert!(store.ready().await.is_err());
    let mut options = database.options();
    options.migrate = false;
    let refused = PostgresStore::connect(options).await;
    assert!(matches!(
        refused,
        Err(ConnectError::Schema(SchemaMismatch::Foreign(9999)))
    ));
}

#[tokio::test]
async fn what_had_ended_for_good_before_that_was_a_value_of_its_own_still_has() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    let owner = owner(&store, TenantId::DEFAULT).await;
    let keyed = |content: &str, key: &str| {
        let mut memory = memory(content, Vec::new()).memory;
        memory.key = Some(key.to_owned());
        memory
    };
    let (budget, raised) = (keyed("102k", "budget"), keyed("103k", "budget"));
    let (limit, lowered) = (keyed("9", "limit"), keyed("8", "limit"));
    for memory in [&budget, &raised, &limit, &lowered] {
        let given = vec![remember::index(memory.clone())];
        let change = ChangeId(new_id());
        let stored = store.remember(owner, given, Vec::new(), change, None, now());
        stored.await.unwrap();
    }
    let forgetting = Forgetting {
        id: raised.id,
        expected: None,
        fresh: false,
        echoes: Vec::new(),
        buried: Vec::new(),
        change: ChangeId(new_id()),
        now: now(),
    };
    store.forget(owner, forgetting).await.unwrap();
    store.close().await;
    database
        .execute("ALTER TABLE memories DROP COLUMN ended_at")
        .await;
    database
        .execute("DELETE FROM _sqlx_migrations WHERE version = 16")
        .await;
    let store = database.store().await;
    let ids = [budget.id, limit.id];
    for memory in store.memories(owner, &ids).await.unwrap() {
        let end = (memory.id == budget.id).then_some(raised.valid_from);
        assert_eq!(memory.ended_at, end);
        assert_eq!(memory.state, State::Superseded);
    }
}

/// Whoever adds a table says what an erasure does to it.
#[tokio::test]
async fn every_table_that_belongs_to_owners_is_erased_or_kept_for_a_reason() {
    let database = TestDatabase::create().await;
    database.store().await;
    let mut connection = database.connection().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT DISTINCT c.table_name::text FROM information_schema.columns c
         WHERE c.table_schema = 'public' AND c.column_name = 'owner_id' ORDER BY 1",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let mut named: Vec<&str> = users::DELETIONS.iter().map(|(table, _)| *table).collect();
    named.push("turns");
    named.extend(users::KEPT);
    named.sort_unstable();
    assert_eq!(tables, named);
    sqlx::raw_sql("SET ROLE tidemark_app")
        .execute(&mut connection)
        .await
        .unwrap();
    for (_, deletion) in users::DELETIONS {
        connection
            .prepare(AssertSqlSafe(*deletion).into_sql_str())
            .await
            .unwrap_or_else(|error| panic!("{error}: {deletion}"));
    }
}

/// What `ANALYZE` keeps outlives the rows it was taken from.
#[tokio::test]
async fn no_statistics_are_kept_of_what_people_say() {
    let database = TestDatabase::create().await;
    database.store().await;
    let mut connection = database.connection().await;
    let kept: Vec<String> = sqlx::query_scalar(
        "SELECT c.relname || '.' || a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
             AND a.attstattarget IS DISTINCT FROM 0
             AND a.atttypid IN ('text'::regtype, 'text[]'::regtype, 'jsonb'::regtype, 'bytea'::regtype)
             AND EXISTS (SELECT FROM pg_attribute o WHERE o.attrelid = c.oid AND o.attname = 'owner_id')
         ORDER BY 1",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    // Names of the program's own, hashes and numbers.
    let harmless = [
        "change_items.op",
        "changes.kind",
        "embedding_marks.model",
        "erasures.removed",
        "idempotency.body_hash",
        "jobs.kind",
        "jobs.state",
        "memories.identity_hash",
        "memories.kind",
        "memories.layer",
        "memories.scope",
        "memories.state",
        "memories.trust",
        "memory_vectors.model",
        "messages.role",
        "sessions.channel",
        "sessions.memory",
        "tombstones.identity_hash",
        "turns.finish_reason",
        "turns.memory",
        "turns.status",
        "turns.usage",
    ];
    assert_eq!(kept, harmless);
}

#[tokio::test]
async fn references_to_owners_are_told_from_all_others_by_their_names() {
    let database = TestDatabase::create().await;
    database.store().await;
    let references: Vec<(String, bool)> =
        sqlx::query_as("SELECT conname::text, confrelid = 'owners'::regclass FROM pg_constraint WHERE contype = 'f'")
            .fetch_all(&mut database.connection().await)
            .await
            .unwrap();
    assert!(references.iter().any(|(_, to_owners)| *to_owners));
    for (name, to_owners) in references {
        assert_eq!(name.ends_with(OWNER_REFERENCE), to_owners, "{name}");
    }
}
