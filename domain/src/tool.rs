//! Tools: what a model may call, and under which policy.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One call that a model makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id for it, unique within its message.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments, a JSON object as text, exactly as the model wrote it.
    pub arguments: String,
}

/// What a model is told about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Name, `[a-zA-Z0-9_-]{1,64}`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: serde_json::Value,
    /// How it may be used.
    pub policy: ToolPolicy,
}

/// How a tool may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolPolicy {
    /// How long a call may take.
    pub timeout: TimeoutClass,
    /// Whether a call changes anything; a write is never repeated (D5, D8).
    pub effect: Effect,
}

/// Whether a call changes anything outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Looks only.
    Read,
    /// Changes something.
    Write,
}

/// The time limits of D4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutClass {
    /// Files: 5 s.
    File,
    /// Databases: 10 s.
    Database,
    /// External APIs: 30 s.
    External,
    /// Heavy computation: 120 s.
    Heavy,
}

impl TimeoutClass {
    /// The limit (D4).
    pub fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::File => 5,
            Self::Database => 10,
            Self::External => 30,
            Self::Heavy => 120,
        })
    }
}
