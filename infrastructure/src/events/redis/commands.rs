//! The commands that write. A key is made together with its time, in one transaction: one without would stay for ever if this process died
//! in between.

use std::time::Duration;

use redis::{Pipeline, RedisError, RedisResult};
use tidemark_application::ports::events::LoggedEvent;
use tidemark_domain::ids::TurnId;

use super::outbox::End;
use super::wire::{self, EntryId, GONE};
use super::{HINTS, Shared};

/// How long the key is kept that wakes the reader.
const WAKE_KEPT: Duration = Duration::from_mins(1);

impl Shared {
    /// An event of a turn; where the key is not made by it, none comes to be if somebody has removed it.
    pub(super) fn add(
        &self,
        pipeline: &mut Pipeline,
        key: &str,
        fence: i64,
        logged: &LoggedEvent,
        makes: bool,
    ) -> RedisResult<()> {
        let written = wire::write(&logged.event);
        let (field, value) =
            written.map_err(|error| RedisError::from(std::io::Error::other(error)))?;
        // The start is the acceptor's and the runner's alike.
        let fence = if logged.seq == 1 { 0 } else { fence };
        pipeline.cmd("XADD").arg(key);
        if !makes {
            pipeline.arg("NOMKSTREAM");
        }
        pipeline
            .arg("MAXLEN")
            .arg("~")
            .arg(self.options.max_events)
            .arg(EntryId::of(fence, logged.seq).to_string())
            .arg(field)
            .arg(value.as_ref());
        Ok(())
    }

    /// Gives a key its time anew.
    pub(super) fn keep(&self, pipeline: &mut Pipeline, key: &str) {
        pipeline
            .cmd("PEXPIRE")
            .arg(key)
            .arg(self.options.memory.retention.as_millis() as u64);
    }

    /// An end that follows nothing here.
    pub(super) fn add_end(&self, pipeline: &mut Pipeline, end: &End) -> RedisResult<()> {
        let key = self.key(end.turn);
        pipeline.cmd("MULTI");
        let added = self.add(pipeline, &key, end.fence, &end.done, true);
        self.keep(pipeline, &key);
        pipeline.cmd("EXEC");
        added
    }

    /// Wakes this replica's reader.
    pub(super) fn add_wake(&self, pipeline: &mut Pipeline) {
        let (key, wake) = (self.wake_key(), self.next_wake());
        pipeline.cmd("MULTI");
        pipeline.cmd("XADD").arg(&key).arg("MAXLEN").arg(1);
        pipeline.arg(format!("{wake}-1")).arg("wake").arg("");
        pipeline.cmd("PEXPIRE").arg(&key);
        pipeline.arg(WAKE_KEPT.as_millis() as u64);
        pipeline.cmd("EXEC");
    }

    /// Tells all replicas something.
    pub(super) fn add_hint(&self, pipeline: &mut Pipeline, field: &str, value: &str) {
        let key = self.hints_key();
        pipeline.cmd("MULTI");
        pipeline.cmd("XADD").arg(&key).arg("MAXLEN").arg("~");
        pipeline.arg(HINTS).arg("*").arg(field).arg(value);
        self.keep(pipeline, &key);
        pipeline.cmd("EXEC");
    }

    /// Puts in the place of a turn that it is gone. Nothing can follow that, so no writer can add to it, until its time is over too.
    pub(super) fn bury(&self, pipeline: &mut Pipeline, turn: TurnId) {
        let key = self.key(turn);
        pipeline.cmd("MULTI");
        pipeline.cmd("DEL").arg(&key);
        pipeline.cmd("XADD").arg(&key);
        pipeline.arg(EntryId::LAST.to_string()).arg(GONE).arg("");
        self.keep(pipeline, &key);
        pipeline.cmd("EXEC");
    }
}
