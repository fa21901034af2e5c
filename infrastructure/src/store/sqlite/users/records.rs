//! A user's records, part by part.

use sqlx::SqlitePool;
use sqlx::sqlite::SqliteRow;
use tidemark_application::ports::store::StoreResult;
use tidemark_application::ports::users::{Part, Place, Record, Tombstone, UsedKey};
use tidemark_domain::ids::Owner;

use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::history;
use crate::store::sqlite::jobs::job_columns;
use crate::store::sqlite::memories::memory_columns;
use crate::store::sqlite::messages::message_columns;
use crate::store::sqlite::rows::{self, Row, owned};
use crate::store::sqlite::sessions::session_columns;
use crate::store::sqlite::statements::statements;
use crate::store::sqlite::turns::turn_columns;

statements! {
    SESSIONS = concat!("SELECT ", session_columns!(), " FROM sessions s \
                        WHERE s.tenant_id = ?1 AND s.owner_id = ?2 AND s.id > ?3 ORDER BY s.id LIMIT ?7");
    MESSAGES = concat!("SELECT ", message_columns!(), " FROM messages m \
                        WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND (m.session_id, m.seq) > (?3, ?4) \
                        ORDER BY m.session_id, m.seq LIMIT ?7");
    TURNS = concat!("SELECT ", turn_columns!(), " FROM turns \
                     WHERE tenant_id = ?1 AND owner_id = ?2 AND id > ?3 ORDER BY id LIMIT ?7");
    MEMORIES = concat!("SELECT ", memory_columns!(), " FROM memories m \
                        WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id > ?3 ORDER BY m.id LIMIT ?7");
    TOMBSTONES =
        "SELECT subject, min(forgotten_at) AS forgotten_at FROM ( \
             SELECT memory_id AS subject, forgotten_at FROM tombstones WHERE tenant_id = ?1 AND owner_id = ?2 AND memory_id > ?3 \
             UNION ALL \
             SELECT message_id, forgotten_at FROM source_tombstones WHERE tenant_id = ?1 AND owner_id = ?2 AND message_id > ?3) \
         GROUP BY subject ORDER BY subject LIMIT ?7";
    JOBS = concat!("SELECT ", job_columns!(), " FROM jobs \
                    WHERE tenant_id = ?1 AND owner_id = ?2 AND id > ?3 ORDER BY id LIMIT ?7");
    USED_KEYS = "SELECT operation, key, resources, created_at FROM idempotency \
                 WHERE tenant_id = ?1 AND owner_id = ?2 AND (operation, key) > (?5, ?6) ORDER BY operation, key LIMIT ?7";
}

pub(super) async fn read(
    readers: &SqlitePool,
    owner: Owner,
    part: Part,
    after: &Place,
    limit: u32,
) -> StoreResult<Vec<Record>> {
    let (sql, record): (&'static str, fn(&SqliteRow) -> StoreResult<Record>) = match part {
        Part::Sessions => (SESSIONS, |row| rows::session(row).map(Record::Session)),
        Part::Messages => (MESSAGES, |row| rows::message(row).map(Record::Message)),
        Part::Turns => (TURNS, |row| {
            rows::turn(row).map(|turn| Record::Turn(Box::new(turn)))
        }),
        Part::Memories => (MEMORIES, |row| {
            rows::memory(row).map(|memory| Record::Memory(Box::new(memory)))
        }),
        Part::Changes => {
            let changes = history::after(readers, owner, after.id, limit).await?;
            let changes = changes.into_iter().map(Box::new);
            return Ok(changes.map(Record::Change).collect());
        }
        Part::Tombstones => (TOMBSTONES, tombstone),
        Part::Jobs => (JOBS, |row| rows::job(row).map(Record::Job)),
        Part::IdempotencyKeys => (USED_KEYS, used_key),
    };
    let found = owned(sql, owner)
        .bind(after.id)
        .bind(after.seq)
        .bind(&after.names.0)
        .bind(&after.names.1)
        .bind(i64::from(limit))
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    found.iter().map(record).collect()
}

fn tombstone(row: &SqliteRow) -> StoreResult<Record> {
    let row = Row::of("tombstones", row);
    Ok(Record::Tombstone(Tombstone {
        subject: row.get("subject")?,
        forgotten_at: row.time("forgotten_at")?,
    }))
}

fn used_key(row: &SqliteRow) -> StoreResult<Record> {
    let row = Row::of("idempotency", row);
    Ok(Record::UsedKey(UsedKey {
        operation: row.get("operation")?,
        key: row.get("key")?,
        resources: row.json("resources")?,
        created_at: row.time("created_at")?,
    }))
}
