//! How values stand in columns, and rows become what the ports speak of. A row that cannot be read is `Corrupt`, and says where.

use std::error::Error;

use chrono::DateTime;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Decode, Row as _, Sqlite, Type};
use tidemark_application::ports::jobs::{Job, JobKind, JobState};
use tidemark_application::ports::store::{StoreError, StoreResult};
use tidemark_domain::ids::{
    JobId, MemoryId, MessageId, Owner, OwnerId, SessionId, TenantId, Timestamp, TurnId,
};
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, Source, State, Trust};
use tidemark_domain::session::{MemoryMode, Message, Role, Session};
use tidemark_domain::turn::{FinishReason, Turn, TurnStatus};
use uuid::Uuid;

/// A statement whose first two parameters are the owner.
pub(super) fn owned(sql: &'static str, owner: Owner) -> Query<'static, Sqlite, SqliteArguments> {
    sqlx::query(sql).bind(owner.tenant.0).bind(owner.id.0)
}

/// A time as it is stored.
pub(super) fn micros(at: Timestamp) -> i64 {
    at.timestamp_micros()
}

/// A length of time as it is stored.
pub(super) fn duration_micros(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}

/// A value as JSON text.
pub(super) fn json(value: &impl Serialize) -> StoreResult<String> {
    serde_json::to_string(value).map_err(|e| StoreError::Corrupt {
        what: "a value that cannot be written as JSON".to_owned(),
        source: Some(Box::new(e)),
    })
}

/// Ids as a JSON array of hexadecimal text, to be read with `unhex(value)`.
pub(super) fn hex_list(ids: impl IntoIterator<Item = Uuid>) -> String {
    let quoted: Vec<String> = ids
        .into_iter()
        .map(|id| format!("\"{}\"", id.simple()))
        .collect();
    format!("[{}]", quoted.join(","))
}

/// A row, with the table it is of, for errors.
pub(super) struct Row<'r> {
    table: &'static str,
    row: &'r SqliteRow,
}

impl<'r> Row<'r> {
    pub(super) fn of(table: &'static str, row: &'r SqliteRow) -> Self {
        Self { table, row }
    }

    fn wrong(&self, column: &str, source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError::Corrupt {
            what: format!("{}.{column}", self.table),
            source: Some(source.into()),
        }
    }

    pub(super) fn get<T>(&self, column: &str) -> StoreResult<T>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite>,
    {
        self.row.try_get(column).map_err(|e| self.wrong(column, e))
    }

    pub(super) fn number<T: TryFrom<i64>>(&self, column: &str) -> StoreResult<T>
    where
        T::Error: Error + Send + Sync + 'static,
    {
        T::try_from(self.get::<i64>(column)?).map_err(|e| self.wrong(column, e))
    }

    pub(super) fn time(&self, column: &str) -> StoreResult<Timestamp> {
        self.time_or_none(column)?
            .ok_or_else(|| self.wrong(column, "no time"))
    }

    pub(super) fn time_or_none(&self, column: &str) -> StoreResult<Option<Timestamp>> {
        self.get::<Option<i64>>(column)?
            .map(|micros| {
                DateTime::from_timestamp_micros(micros)
                    .ok_or_else(|| self.wrong(column, "a time out of range"))
            })
            .transpose()
    }

    /// Sources as `json_group_array(json_array(…))` writes them.
    pub(super) fn sources(&self, column: &str) -> StoreResult<Vec<Source>> {
        let rows: Vec<SourceRow> = self.json(column)?;
        Ok(rows
            .into_iter()
            .map(|SourceRow(message, session, seq)| Source {
                message_id: MessageId(message),
                session_id: SessionId(session),
                seq,
            })
            .collect())
    }

    fn parse_name<T>(
        &self,
        column: &str,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> StoreResult<T> {
        parse(name).ok_or_else(|| self.wrong(column, "an unknown name"))
    }

    pub(super) fn name<T>(
        &self,
        column: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> StoreResult<T> {
        self.parse_name(column, self.get(column)?, parse)
    }

    fn name_or_none<T>(
        &self,
        column: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> StoreResult<Option<T>> {
        self.get::<Option<&str>>(column)?
            .map(|name| self.parse_name(column, name, parse))
            .transpose()
    }

    fn parse_json<T: DeserializeOwned>(&self, column: &str, text: &str) -> StoreResult<T> {
        serde_json::from_str(text).map_err(|e| self.wrong(column, e))
    }

    pub(super) fn json<T: DeserializeOwned>(&self, column: &str) -> StoreResult<T> {
        self.parse_json(column, self.get(column)?)
    }

    fn json_or_none<T: DeserializeOwned>(&self, column: &str) -> StoreResult<Option<T>> {
        self.get::<Option<&str>>(column)?
            .map(|text| self.parse_json(column, text))
            .transpose()
    }
}

pub(super) fn owner(row: &SqliteRow) -> StoreResult<Owner> {
    let row = Row::of("owners", row);
    Ok(Owner {
        tenant: TenantId(row.get("tenant_id")?),
        id: OwnerId(row.get("owner_id")?),
    })
}

pub(super) fn session(row: &SqliteRow) -> StoreResult<Session> {
    let row = Row::of("sessions", row);
    Ok(Session {
        id: SessionId(row.get("id")?),
        title: row.get("title")?,
        labels: row.json("labels")?,
        channel: row.get("channel")?,
        memory: row.name("memory", MemoryMode::parse)?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        message_count: row.get("message_count")?,
        last_consolidated: row.get("last_consolidated")?,
        indexed_seq: row.get("indexed_seq")?,
        version: row.get("version")?,
        active_turn: row.get::<Option<Uuid>>("active_turn")?.map(TurnId),
    })
}

pub(super) fn message(row: &SqliteRow) -> StoreResult<Message> {
    let row = Row::of("messages", row);
    Ok(Message {
        id: MessageId(row.get("id")?),
        session_id: SessionId(row.get("session_id")?),
        turn_id: row.get::<Option<Uuid>>("turn_id")?.map(TurnId),
        seq: row.get("seq")?,
        role: row.name("role", Role::parse)?,
        content: row.get("content")?,
        name: row.get("name")?,
        tool_calls: row.json("tool_calls")?,
        tool_call_id: row.get("tool_call_id")?,
        partial: row.get("partial")?,
        learnable: row.get("learnable")?,
        created_at: row.time("created_at")?,
    })
}

pub(super) fn turn(row: &SqliteRow) -> StoreResult<Turn> {
    let row = Row::of("turns", row);
    Ok(Turn {
        id: TurnId(row.get("id")?),
        session_id: SessionId(row.get("session_id")?),
        status: row.name("status", TurnStatus::parse)?,
        input: row.get("input")?,
        memory: row.name("memory", MemoryMode::parse)?,
        options: row.json("options")?,
        fence: row.get("fence")?,
        events_reserved: row.get("events_reserved")?,
        terminal_seq: row.get("terminal_seq")?,
        text: row.get("text")?,
        message_id: row.get::<Option<Uuid>>("message_id")?.map(MessageId),
        finish_reason: row.name_or_none("finish_reason", FinishReason::parse)?,
        usage: row.json_or_none("usage")?,
        recalled: row.json("recalled")?,
        problem: row.json_or_none("problem")?,
        cancel_requested: row.get("cancel_requested")?,
        created_at: row.time("created_at")?,
        started_at: row.time_or_none("started_at")?,
        ended_at: row.time_or_none("ended_at")?,
    })
}

pub(super) fn job(row: &SqliteRow) -> StoreResult<Job> {
    let whose = owner(row)?;
    let row = Row::of("jobs", row);
    Ok(Job {
        id: JobId(row.get("id")?),
        owner: whose,
        session_id: row.get::<Option<Uuid>>("session_id")?.map(SessionId),
        kind: row.name("kind", JobKind::parse)?,
        state: row.name("state", JobState::parse)?,
        attempts: row.number("attempts")?,
        run_at: row.time("run_at")?,
        last_error: row.get("last_error")?,
        created_at: row.time("created_at")?,
    })
}

/// A source inside a JSON text: `[message, session, seq]`, ids in hexadecimal.
#[derive(Deserialize, Serialize)]
struct SourceRow(Uuid, Uuid, i64);

/// Sources as JSON, to be read with `json_each` and `unhex`.
pub(super) fn sources_json(sources: &[Source]) -> StoreResult<String> {
    let rows: Vec<_> = sources
        .iter()
        .map(|s| {
            (
                s.message_id.0.simple().to_string(),
                s.session_id.0.simple().to_string(),
                s.seq,
            )
        })
        .collect();
    json(&rows)
}

pub(super) fn memory(row: &SqliteRow) -> StoreResult<Memory> {
    let row = Row::of("memories", row);
    Ok(Memory {
        id: MemoryId(row.get("id")?),
        content: row.get("content")?,
        speaker: row.get("speaker")?,
        scope: row.name("scope", Scope::parse)?,
        kind: row.name("kind", Kind::parse)?,
        layer: row.name("layer", Layer::parse)?,
        state: row.name("state", State::parse)?,
        importance: row.number("importance")?,
        confidence: row.get("confidence")?,
        trust: row.name("trust", Trust::parse)?,
        pinned: row.get("pinned")?,
        key: row.get("fact_key")?,
        session_id: row.get::<Option<Uuid>>("session_id")?.map(SessionId),
        sources: row.sources("sources")?,
        valid_from: row.time("valid_from")?,
        valid_to: row.time_or_none("valid_to")?,
        superseded_by: row.get::<Option<Uuid>>("superseded_by")?.map(MemoryId),
        ended_at: row.time_or_none("ended_at")?,
        expires_at: row.time_or_none("expires_at")?,
        created_at: row.time("created_at")?,
        access_count: row.get("access_count")?,
        last_access: row.time("last_access")?,
        version: row.get("version")?,
    })
}

/// Sixteen bytes that stand for a text in indexes and tombstones: FNV-1a, 128 bits, with offset basis and prime of its specification.
/// Where the text itself is kept it is compared as well.
pub(super) fn fingerprint(text: &str) -> [u8; 16] {
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for byte in text.bytes() {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
    }
    hash.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_is_the_published_one() {
        // Test vectors of draft-eastlake-fnv, FNV-1a 128.
        assert_eq!(
            fingerprint(""),
            0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128.to_be_bytes()
        );
        assert_eq!(
            fingerprint("a"),
            0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964_u128.to_be_bytes()
        );
        assert_eq!(
            fingerprint("foobar"),
            0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18_u128.to_be_bytes()
        );
    }
}
