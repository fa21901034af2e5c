//! Nothing crosses a tenant, whatever statement is sent.

use std::borrow::Cow;

use sqlx::types::JsonValue;
use sqlx::{AssertSqlSafe, PgConnection};
use tidemark_domain::ids::TenantId;

use super::super::testing::{TestDatabase, TestRole, give_key, new_id};
use super::super::{ConnectError, PostgresStore};
use super::steps::fill;

/// Those that the store's connections can touch at all.
const TABLES: &str = "
SELECT c.relname::text FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
    AND has_table_privilege('tidemark_app', c.oid, 'SELECT, INSERT, UPDATE, DELETE')
ORDER BY c.relname";

pub(super) async fn tables(connection: &mut PgConnection) -> Vec<String> {
    sqlx::query_scalar(TABLES)
        .fetch_all(connection)
        .await
        .unwrap()
}

async fn count(connection: &mut PgConnection, table: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table}")))
        .fetch_one(connection)
        .await
        .unwrap()
}

/// Works as the store's connections do, for a tenant or for none.
pub(super) async fn as_app(database: &TestDatabase, tenant: Option<TenantId>) -> PgConnection {
    let mut connection = database.connection().await;
    sqlx::raw_sql("SET ROLE tidemark_app")
        .execute(&mut connection)
        .await
        .unwrap();
    if let Some(tenant) = tenant {
        sqlx::query("SELECT set_config('tidemark.tenant', $1, false)")
            .bind(tenant.to_string())
            .execute(&mut connection)
            .await
            .unwrap();
    }
    connection
}

#[tokio::test]
async fn connections_work_as_a_role_that_row_level_security_binds() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    let role = store
        .database
        .before_tenant((), |tx, ()| {
            Box::pin(async move {
                Ok(sqlx::query_as::<_, (String, bool, bool)>(
                    "SELECT current_user::text, r.rolsuper OR r.rolbypassrls, row_security_active('messages') \
                     FROM pg_roles r WHERE r.rolname = current_user",
                )
                .fetch_one(tx)
                .await?)
            })
        })
        .await
        .unwrap();
    assert_eq!(role, ("tidemark_app".to_owned(), false, true));
}

#[tokio::test]
async fn every_table_has_row_level_security_and_a_policy_for_reading_and_writing() {
    let database = TestDatabase::create().await;
    database.store().await;
    let mut connection = database.connection().await;
    let unprotected: Vec<String> = sqlx::query_scalar(
        "SELECT c.relname::text FROM pg_class c
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'm', 'f')
            AND (NOT c.relrowsecurity OR (
                has_table_privilege('tidemark_app', c.oid, 'SELECT, INSERT, UPDATE, DELETE') AND NOT EXISTS (
                    SELECT FROM pg_policy p
                    WHERE p.polrelid = c.oid AND p.polpermissive AND p.polcmd = '*'
                        AND pg_get_expr(p.polqual, c.oid) LIKE '%tidemark_tenant()%'
                        AND pg_get_expr(p.polwithcheck, c.oid) LIKE '%tidemark_tenant()%'
                )
            ))",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(unprotected, Vec::<String>::new());
    assert!(tables(&mut connection).await.len() >= 9);
}

fn code_of(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error()?.code()
}

#[tokio::test]
async fn rows_of_another_tenant_are_invisible_and_unwritable_in_every_table() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    let (own, other) = (TenantId(new_id()), TenantId(new_id()));
    fill(&store, own).await;
    give_key(&store, own).await;

    let mut all = database.connection().await;
    let mut mine = as_app(&database, Some(own)).await;
    let mut theirs = as_app(&database, Some(other)).await;
    let mut nobody = as_app(&database, None).await;
    for table in tables(&mut all).await {
        assert!(count(&mut mine, &table).await > 0, "{table} is empty");
        assert_eq!(count(&mut theirs, &table).await, 0, "{table}");
        assert_eq!(count(&mut nobody, &table).await, 0, "{table}");
        let row: JsonValue = sqlx::query_scalar(AssertSqlSafe(format!(
            "SELECT to_jsonb(t) FROM {table} t LIMIT 1"
        )))
        .fetch_one(&mut all)
        .await
        .unwrap();
        let columns: String = sqlx::query_scalar(
            "SELECT string_agg(quote_ident(a.attname), ', ') FROM pg_attribute a
             WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''",
        )
        .bind(table.as_str())
        .fetch_one(&mut all)
        .await
        .unwrap();
        for connection in [&mut theirs, &mut nobody] {
            for statement in ["UPDATE {} SET tenant_id = tenant_id", "DELETE FROM {}"] {
                let changed = sqlx::query(AssertSqlSafe(statement.replace("{}", &table)))
                    .execute(&mut *connection)
                    .await;
                match changed {
                    Ok(changed) => {
                        assert_eq!(changed.rows_affected(), 0, "{statement} on {table}");
                    }
                    // Not even of the own tenant.
                    Err(refused) => assert_eq!(code_of(&refused).as_deref(), Some("42501")),
                }
            }
            let refused = sqlx::query(AssertSqlSafe(format!(
                "INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE
                 SELECT {columns} FROM jsonb_populate_record(NULL::{table}, $1)"
            )))
            .bind(&row)
            .execute(&mut *connection)
            .await
            .unwrap_err();
            let code = code_of(&refused);
            assert_eq!(code.as_deref(), Some("42501"), "{table}: {refused}");
        }
    }
}

#[tokio::test]
async fn a_tenant_cannot_be_left_behind_on_a_pooled_connection() {
    let database = TestDatabase::create().await;
    let mut options = database.options();
    options.max_connections = 1;
    let store = PostgresStore::connect(options).await.unwrap();
    fill(&store, TenantId::DEFAULT).await;
    let seen: i64 = store
        .database
        .before_tenant((), |tx, ()| {
            Box::pin(async move {
                Ok(sqlx::query_scalar("SELECT count(*) FROM messages")
                    .fetch_one(tx)
                    .await?)
            })
        })
        .await
        .unwrap();
    assert_eq!(seen, 0);
}

#[tokio::test]
async fn a_role_that_escapes_row_level_security_is_refused() {
    let database = TestDatabase::create().await;
    database.store().await;
    let owns = TestRole::create(&database, "NOLOGIN").await;
    database
        .execute(format!(
            "GRANT CREATE, USAGE ON SCHEMA public TO {0}; CREATE TABLE stray (id int); ALTER TABLE stray OWNER TO {0}; \
             GRANT EXECUTE ON FUNCTION tidemark_applied_migrations() TO {0}",
            owns.name
        ))
        .await;
    let bypasses = TestRole::create(&database, "NOLOGIN BYPASSRLS").await;
    for (role, expected) in [
        ("postgres".to_owned(), "is a superuser"),
        (bypasses.name.clone(), "bypasses row-level security"),
        (owns.name.clone(), "owns tables"),
    ] {
        let refused = PostgresStore::connect_as(database.options(), role.clone().leak()).await;
        match refused {
            Err(ConnectError::Role { role: named, why }) => {
                assert_eq!((named, why), (role, expected));
            }
            other => panic!("{role}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_role_that_is_no_superuser_can_migrate_and_serve() {
    let database = TestDatabase::create().await;
    // So that the role to be taken on exists in the cluster whichever test comes first.
    TestDatabase::create().await.store().await;
    let migrates = TestRole::create(&database, "LOGIN").await;
    database
        .execute(format!(
            "GRANT CREATE, USAGE ON SCHEMA public TO {0}; GRANT tidemark_app TO {0}",
            migrates.name
        ))
        .await;
    let mut options = database.options();
    options.url = database.url_as(&migrates.name);
    let store = PostgresStore::connect(options).await.unwrap();
    fill(&store, TenantId::DEFAULT).await;
    store.close().await;
}
