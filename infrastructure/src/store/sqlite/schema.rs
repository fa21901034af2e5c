//! The schema's version.

use sqlx::SqlitePool;
use sqlx::migrate::Migrator;
use tidemark_application::ports::store::StoreResult;

use super::errors::{corrupt, store_error};
use super::rows::Row;
use super::statements::statements;

/// The migrations that this program was built with.
pub(super) static MIGRATIONS: Migrator = sqlx::migrate!("../migrations/sqlite");

statements! {
    MIGRATED = "SELECT count(*) AS tables FROM sqlite_schema WHERE type = 'table' AND name = '_sqlx_migrations'";
    APPLIED = "SELECT version, success, checksum FROM _sqlx_migrations ORDER BY version";
}

/// The database answers and has exactly this program's migrations.
pub(super) async fn check(readers: &SqlitePool) -> StoreResult<()> {
    let row = sqlx::query(MIGRATED)
        .fetch_one(readers)
        .await
        .map_err(store_error)?;
    if Row::of("sqlite_schema", &row).get::<i64>("tables")? == 0 {
        return Err(corrupt("schema: no migration has been applied"));
    }
    let rows = sqlx::query(APPLIED)
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    let mut applied = Vec::with_capacity(rows.len());
    for row in &rows {
        let row = Row::of("_sqlx_migrations", row);
        if row.get("success")? {
            applied.push((row.get::<i64>("version")?, row.get::<Vec<u8>>("checksum")?));
        }
    }
    let expected: Vec<_> = MIGRATIONS
        .iter()
        .map(|m| (m.version, m.checksum.to_vec()))
        .collect();
    if applied == expected {
        return Ok(());
    }
    let version = |list: &[(i64, Vec<u8>)]| list.last().map_or(0, |(version, _)| *version);
    Err(corrupt(format!(
        "schema: version {} is not this program's version {}",
        version(&applied),
        version(&expected)
    )))
}
