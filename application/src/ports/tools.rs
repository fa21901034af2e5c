//! Tools that a model may call.

use async_trait::async_trait;
use tidemark_domain::ids::{Owner, SessionId, TurnId};
use tidemark_domain::session::MemoryMode;
use tidemark_domain::tool::ToolSpec;

/// For whom a tool is called.
#[derive(Clone, Copy, Debug)]
pub struct ToolContext {
    /// Whose turn calls.
    pub owner: Owner,
    /// Its session.
    pub session_id: SessionId,
    /// The turn.
    pub turn_id: TurnId,
    /// Whether it may see memory.
    pub memory: MemoryMode,
}

/// The call failed. The model is told the message and may do something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The arguments do not fit; not worth a retry as they are.
    #[error("the arguments do not fit: {0}")]
    BadArguments(String),
    /// The tool could not do it now.
    #[error("the tool failed: {0}")]
    Failed(String),
}

/// One tool.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// What the model is told about it.
    fn spec(&self) -> ToolSpec;

    /// Whether this turn may use it.
    fn allowed(&self, context: &ToolContext) -> bool;

    /// Calls it. The caller bounds the time by the tool's policy.
    async fn call(&self, context: &ToolContext, arguments: &str) -> Result<String, ToolError>;
}
