//! What the context stage of a turn reads, in one go: each read of its own would cost a transaction, and the first token waits for all of them.

use async_trait::async_trait;
use tidemark_domain::ids::{Owner, SessionId, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::session::Message;

use super::memories::MemoryRepository;
use super::sessions::SessionRepository;
use super::store::StoreResult;

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct ContextWanted {
    /// The session.
    pub session: SessionId,
    /// How many of its newest messages; 0 for none.
    pub messages: u32,
    /// What recall begins with, where memory is asked.
    pub recall: Option<RecallWanted>,
}

/// What recall begins with.
#[derive(Clone, Copy, Debug)]
pub struct RecallWanted {
    /// How many of the newest messages that are not indexed yet.
    pub unindexed: u32,
    /// How many preferences.
    pub preferences: u32,
    /// Preferences that have expired by then are left out.
    pub now: Timestamp,
}

/// What a turn's context is made from.
#[derive(Clone, Debug, Default)]
pub struct TurnContext {
    /// The newest messages of the session, the oldest of them first.
    pub messages: Vec<Message>,
    /// What recall begins with.
    pub recall: Option<RecallBase>,
}

/// What recall begins with.
#[derive(Clone, Debug)]
pub struct RecallBase {
    /// Messages that are not indexed yet, see [`MemoryRepository::unindexed`].
    pub unindexed: Vec<Message>,
    /// Recallable preferences, see [`MemoryRepository::preferences`].
    pub preferences: Vec<Memory>,
    /// Anything was ever forgotten of this owner: only then something of the messages may be buried.
    pub has_forgotten: bool,
    /// The number of the newest change of the owner's memories, read no earlier than the messages: what is indexed meanwhile is found in one of
    /// both.
    pub change: i64,
}

/// Reads for the context stage.
#[async_trait]
pub trait ContextRepository: SessionRepository + MemoryRepository {
    /// What a turn's context is made from. A store may read all of it as of one moment; read one by one it is as good.
    async fn turn_context(&self, owner: Owner, wanted: ContextWanted) -> StoreResult<TurnContext> {
        let messages = match wanted.messages {
            0 => Vec::new(),
            limit => self.history(owner, wanted.session, None, limit).await?,
        };
        let recall = match wanted.recall {
            None => None,
            Some(recall) => {
                let unindexed = self.unindexed(owner, recall.unindexed).await?;
                Some(RecallBase {
                    unindexed,
                    preferences: self
                        .preferences(owner, recall.now, recall.preferences)
                        .await?,
                    has_forgotten: true,
                    change: self.memory_change(owner).await?,
                })
            }
        };
        Ok(TurnContext { messages, recall })
    }
}
