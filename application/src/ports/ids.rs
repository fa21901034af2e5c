//! New identifiers.

use tidemark_domain::ids::{ChangeId, JobId, KeyId, MemoryId, MessageId, SessionId, TurnId};
use uuid::Uuid;

/// Makes identifiers.
pub trait Ids: Send + Sync + 'static {
    /// A new UUIDv7, never given before and greater than all before it from the same process.
    fn uuid(&self) -> Uuid;
}

impl dyn Ids {
    /// For a session.
    pub fn session(&self) -> SessionId {
        SessionId(self.uuid())
    }

    /// For a turn.
    pub fn turn(&self) -> TurnId {
        TurnId(self.uuid())
    }

    /// For a message.
    pub fn message(&self) -> MessageId {
        MessageId(self.uuid())
    }

    /// For a memory.
    pub fn memory(&self) -> MemoryId {
        MemoryId(self.uuid())
    }

    /// For a change of what is remembered.
    pub fn change(&self) -> ChangeId {
        ChangeId(self.uuid())
    }

    /// For a job.
    pub fn job(&self) -> JobId {
        JobId(self.uuid())
    }

    /// For an API key.
    pub fn key(&self) -> KeyId {
        KeyId(self.uuid())
    }
}
