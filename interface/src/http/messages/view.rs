//! A message as it is shown.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidemark_domain::session::{Message, Role};
use tidemark_domain::tool::ToolCall;
use utoipa::ToSchema;
use uuid::Uuid;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Role)]
pub enum RoleView {
    /// Instructions of the caller.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

impl From<Role> for RoleView {
    fn from(role: Role) -> Self {
        match role {
            Role::System => Self::System,
            Role::User => Self::User,
            Role::Assistant => Self::Assistant,
            Role::Tool => Self::Tool,
        }
    }
}

/// One call of a tool.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ToolCall)]
pub struct ToolCallView {
    /// The model's id for it.
    #[schema(examples("call_1"))]
    pub id: String,
    /// The tool.
    #[schema(examples("search_memory"))]
    pub name: String,
    /// Its arguments, JSON as the model wrote it.
    #[schema(examples("{\"query\":\"budget\"}"))]
    pub arguments: String,
}

impl From<ToolCall> for ToolCallView {
    fn from(call: ToolCall) -> Self {
        Self {
            id: call.id,
            name: call.name,
            arguments: call.arguments,
        }
    }
}

/// A message.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Message)]
pub struct MessageView {
    /// Its id.
    pub id: Uuid,
    /// Its place in the session, from 1, without gaps.
    #[schema(examples(1))]
    pub seq: i64,
    /// Who speaks.
    pub role: RoleView,
    /// What is said.
    #[schema(examples("I prefer answers as tables"))]
    pub content: String,
    /// The speaker's name, where an import gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Calls that an assistant message makes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub tool_calls: Vec<ToolCallView>,
    /// The call that a tool message answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The turn that brought it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<Uuid>,
    /// It was cut by a cancellation, a failure or an interruption.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub partial: bool,
    /// When it was said.
    pub created_at: DateTime<Utc>,
}

impl From<Message> for MessageView {
    fn from(message: Message) -> Self {
        Self {
            id: message.id.0,
            seq: message.seq,
            role: message.role.into(),
            content: message.content,
            name: message.name,
            tool_calls: message.tool_calls.into_iter().map(Into::into).collect(),
            tool_call_id: message.tool_call_id,
            turn_id: message.turn_id.map(|id| id.0),
            partial: message.partial,
            created_at: message.created_at,
        }
    }
}
