//! The schema and the role: what must be right before anything is served.

use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};

use super::ConnectError;

static MIGRATOR: Migrator = sqlx::migrate!("../migrations/postgres");

/// The advisory lock of migrations: "tidemark" in ASCII.
const MIGRATION_LOCK: i64 = 0x7469_6465_6d61_726b;
const LOCK_ATTEMPTS: u32 = 6_000;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

const TRY_LOCK: &str = "SELECT pg_try_advisory_lock($1)";
const UNLOCK: &str = "SELECT pg_advisory_unlock($1)";
const IS_MIGRATED: &str = "SELECT to_regprocedure('tidemark_applied_migrations()') IS NOT NULL";
const APPLIED: &str = "SELECT version, success, checksum FROM tidemark_applied_migrations()";

/// Ownership counts whether it is direct or through another role: each escapes row-level security.
const EFFECTIVE_ROLE: &str = "
SELECT current_user::text, r.rolsuper, r.rolbypassrls,
    EXISTS (
        SELECT FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
            AND pg_has_role(current_user, c.relowner, 'MEMBER')
    )
FROM pg_roles r
WHERE r.rolname = current_user";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[TRY_LOCK, UNLOCK, IS_MIGRATED, APPLIED, EFFECTIVE_ROLE];

/// The schema is not the one that this program expects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaMismatch {
    /// The database was never migrated.
    #[error("the database is not migrated")]
    Missing,
    /// A migration is not applied, or not to its end.
    #[error("migration {0} is not applied")]
    NotApplied(i64),
    /// A migration was applied that this program does not know, or knows in another form.
    #[error("migration {0} was applied by another version of the program")]
    Foreign(i64),
}

/// Migrates if asked to, and checks schema and role on a connection of its own.
pub(super) async fn prepare(
    address: &PgConnectOptions,
    migrate: bool,
    role: &str,
) -> Result<(), ConnectError> {
    let mut connection = address.connect().await.map_err(ConnectError::Unreachable)?;
    if migrate {
        run_migrations(&mut connection).await?;
    }
    let migrated: bool = sqlx::query_scalar(IS_MIGRATED)
        .fetch_one(&mut connection)
        .await
        .map_err(ConnectError::Unreachable)?;
    if !migrated {
        return Err(SchemaMismatch::Missing.into());
    }
    take_role(&mut connection, role)
        .await
        .map_err(ConnectError::Unreachable)?;
    check_role(&mut connection).await?;
    check(&mut connection)
        .await
        .map_err(ConnectError::Unreachable)??;
    connection.close().await.map_err(ConnectError::Unreachable)
}

/// Gives up the rights of the role of the address.
pub(super) async fn take_role(
    connection: &mut PgConnection,
    role: &str,
) -> Result<(), sqlx::Error> {
    let role = role.replace('"', "\"\"");
    sqlx::raw_sql(AssertSqlSafe(format!(
        "SET search_path = public; SET ROLE \"{role}\""
    )))
    .execute(connection)
    .await?;
    Ok(())
}

/// Compares what is applied with what this program holds.
pub(super) async fn check(
    connection: &mut PgConnection,
) -> Result<Result<(), SchemaMismatch>, sqlx::Error> {
    let applied: Vec<(i64, bool, Vec<u8>)> = sqlx::query_as(APPLIED).fetch_all(connection).await?;
    Ok(compare(&applied))
}

fn compare(applied: &[(i64, bool, Vec<u8>)]) -> Result<(), SchemaMismatch> {
    for migration in MIGRATOR.iter() {
        match applied.iter().find(|row| row.0 == migration.version) {
            Some((version, _, checksum)) if **checksum != *migration.checksum => {
                return Err(SchemaMismatch::Foreign(*version));
            }
            Some((_, true, _)) => {}
            _ => return Err(SchemaMismatch::NotApplied(migration.version)),
        }
    }
    match applied.iter().find(|row| !MIGRATOR.version_exists(row.0)) {
        Some((version, _, _)) => Err(SchemaMismatch::Foreign(*version)),
        None => Ok(()),
    }
}

async fn run_migrations(connection: &mut PgConnection) -> Result<(), ConnectError> {
    sqlx::raw_sql("SET search_path = public")
        .execute(&mut *connection)
        .await
        .map_err(ConnectError::Unreachable)?;
    lock(connection).await?;
    let mut migrator = Migrator::with_migrations(MIGRATOR.iter().cloned().collect());
    migrator.set_locking(false);
    migrator
        .run(&mut *connection)
        .await
        .map_err(ConnectError::Migration)?;
    sqlx::query(UNLOCK)
        .bind(MIGRATION_LOCK)
        .execute(connection)
        .await
        .map_err(ConnectError::Unreachable)?;
    Ok(())
}

/// Tries again and again rather than waits in one statement: a waiting statement holds a snapshot, for which the concurrent index
/// build of whoever holds the lock would wait in turn.
async fn lock(connection: &mut PgConnection) -> Result<(), ConnectError> {
    for _ in 0..LOCK_ATTEMPTS {
        let locked: bool = sqlx::query_scalar(TRY_LOCK)
            .bind(MIGRATION_LOCK)
            .fetch_one(&mut *connection)
            .await
            .map_err(ConnectError::Unreachable)?;
        if locked {
            return Ok(());
        }
        tokio::time::sleep(LOCK_PAUSE).await;
    }
    Err(ConnectError::MigrationLocked)
}

async fn check_role(connection: &mut PgConnection) -> Result<(), ConnectError> {
    let (role, superuser, bypasses, owns): (String, bool, bool, bool) =
        sqlx::query_as(EFFECTIVE_ROLE)
            .fetch_one(connection)
            .await
            .map_err(ConnectError::Unreachable)?;
    let why = match (superuser, bypasses, owns) {
        (true, _, _) => "is a superuser",
        (_, true, _) => "bypasses row-level security",
        (_, _, true) => "owns tables",
        _ => return Ok(()),
    };
    Err(ConnectError::Role { role, why })
}
