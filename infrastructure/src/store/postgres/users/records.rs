//! A user's records, part by part.

use sqlx::PgConnection;
use tidemark_application::ports::users::{Part, Place, Record, Tombstone, UsedKey};
use tidemark_domain::ids::{Owner, Timestamp};
use uuid::Uuid;

use super::super::history;
use super::super::rows::{
    JobRow, MemoryRow, MessageRow, SessionRow, TurnRow, job_columns, memory_columns,
    message_columns, owned_as, session_columns, turn_columns,
};

const SESSIONS: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions s WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.id > $3 ORDER BY s.id LIMIT $4"
);

const MESSAGES: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM messages m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND (m.session_id, m.seq) > ($3, $5)
      ORDER BY m.session_id, m.seq LIMIT $4"
);

const TURNS: &str = concat!(
    "SELECT ",
    turn_columns!(),
    " FROM turns t WHERE t.tenant_id = $1 AND t.owner_id = $2 AND t.id > $3 ORDER BY t.id LIMIT $4"
);

const MEMORIES: &str = concat!(
    "SELECT ",
    memory_columns!(),
    " FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id > $3 ORDER BY m.id LIMIT $4"
);

const TOMBSTONES: &str = "
SELECT b.subject_id, min(b.created_at) FROM tombstones b
WHERE b.tenant_id = $1 AND b.owner_id = $2 AND b.subject_id > $3
GROUP BY b.subject_id ORDER BY b.subject_id LIMIT $4";

const JOBS: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs j WHERE j.tenant_id = $1 AND j.owner_id = $2 AND j.id > $3 ORDER BY j.id LIMIT $4"
);

const USED_KEYS: &str = "
SELECT i.operation, i.key, i.resource_ids, i.created_at FROM idempotency i
WHERE i.tenant_id = $1 AND i.owner_id = $2 AND (i.operation, i.key) > ($3, $4)
ORDER BY i.operation, i.key LIMIT $5";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    SESSIONS, MESSAGES, TURNS, MEMORIES, TOMBSTONES, JOBS, USED_KEYS,
];

pub(super) async fn read(
    tx: &mut PgConnection,
    owner: Owner,
    part: Part,
    after: &Place,
    limit: u32,
) -> Result<Vec<Record>, sqlx::Error> {
    let limit = i64::from(limit);
    /// Rows behind an id.
    macro_rules! behind {
        ($sql:expr $(, $more:expr)?) => {
            owned_as($sql, owner).bind(after.id).bind(limit)$(.bind($more))?.fetch_all(tx).await?
        };
    }
    match part {
        Part::Sessions => {
            let rows: Vec<SessionRow> = behind!(SESSIONS);
            rows.into_iter()
                .map(|row| Ok(Record::Session(row.try_into()?)))
                .collect()
        }
        Part::Messages => {
            let rows: Vec<MessageRow> = behind!(MESSAGES, after.seq);
            rows.into_iter()
                .map(|row| Ok(Record::Message(row.try_into()?)))
                .collect()
        }
        Part::Turns => {
            let rows: Vec<TurnRow> = behind!(TURNS);
            rows.into_iter()
                .map(|row| Ok(Record::Turn(Box::new(row.try_into()?))))
                .collect()
        }
        Part::Memories => {
            let rows: Vec<MemoryRow> = behind!(MEMORIES);
            rows.into_iter()
                .map(|row| Ok(Record::Memory(Box::new(row.try_into()?))))
                .collect()
        }
        Part::Changes => {
            let changes = history::after(tx, owner, after.id, limit).await?;
            let changes = changes.into_iter().map(Box::new);
            Ok(changes.map(Record::Change).collect())
        }
        Part::Jobs => {
            let rows: Vec<JobRow> = behind!(JOBS);
            rows.into_iter()
                .map(|row| Ok(Record::Job(row.try_into()?)))
                .collect()
        }
        Part::Tombstones => {
            let rows: Vec<(Uuid, Timestamp)> = behind!(TOMBSTONES);
            let records = rows.into_iter().map(|(subject, forgotten_at)| {
                Record::Tombstone(Tombstone {
                    subject,
                    forgotten_at,
                })
            });
            Ok(records.collect())
        }
        Part::IdempotencyKeys => used_keys(tx, owner, after, limit).await,
    }
}

async fn used_keys(
    tx: &mut PgConnection,
    owner: Owner,
    after: &Place,
    limit: i64,
) -> Result<Vec<Record>, sqlx::Error> {
    let (operation, key) = &after.names;
    let rows: Vec<(String, String, Vec<Uuid>, Timestamp)> = owned_as(USED_KEYS, owner)
        .bind(operation)
        .bind(key)
        .bind(limit)
        .fetch_all(tx)
        .await?;
    let records = rows
        .into_iter()
        .map(|(operation, key, resources, created_at)| {
            Record::UsedKey(UsedKey {
                operation,
                key,
                resources,
                created_at,
            })
        });
    Ok(records.collect())
}
