//! Language models.

use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tidemark_domain::event::RecalledMemory;
use tidemark_domain::memory::prompt::Language;
use tidemark_domain::session::Role;
use tidemark_domain::tool::{ToolCall, ToolSpec};
use tidemark_domain::turn::{FinishReason, Usage};
use tidemark_domain::window::{OVERHEAD, TokenCounter};

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
    /// The speaker's name, where there is one.
    pub name: Option<String>,
    /// Calls that an assistant message makes.
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool message answers.
    pub tool_call_id: Option<String>,
}

/// What a model is asked.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The prompt: at most one system message, first; then a valid transcript that ends with the user's message or tool results.
    pub messages: Vec<PromptMessage>,
    /// Tools that it may call.
    pub tools: Vec<ToolSpec>,
    /// The most tokens it may write.
    pub max_output_tokens: u32,
    /// The most tokens that messages and tools may take together.
    pub max_input_tokens: usize,
    /// What was recalled; the prompt holds it too. The offline model answers from it.
    pub recalled: Vec<RecalledMemory>,
    /// The language of the user's message.
    pub language: Language,
    /// The form that the answer is to have; free text where none is asked for.
    pub format: Option<AnswerFormat>,
    /// How freely the model writes; as it is set up where nothing is asked for.
    pub temperature: Option<f64>,
}

/// A form for an answer: one JSON value that a schema describes. A server that cannot hold a model to it is asked without; so the prompt has to
/// describe it too, and the answer has to be checked.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerFormat {
    /// What it is called, `[a-zA-Z0-9_-]{1,64}`.
    pub name: &'static str,
    /// Its JSON Schema.
    pub schema: serde_json::Value,
}

impl ModelRequest {
    /// What messages and tools take of the model's window. Each message, call and tool costs [`OVERHEAD`] besides its texts, as in the
    /// window of the history.
    pub fn tokens(&self, counter: &dyn TokenCounter) -> usize {
        let messages: usize = self.messages.iter().map(|m| m.tokens(counter)).sum();
        messages + tool_tokens(&self.tools, counter)
    }
}

impl PromptMessage {
    fn tokens(&self, counter: &dyn TokenCounter) -> usize {
        let calls: usize = self
            .tool_calls
            .iter()
            .map(|call| OVERHEAD + counter.count(&call.name) + counter.count(&call.arguments))
            .sum();
        OVERHEAD + counter.count(&self.content) + calls
    }
}

/// What the descriptions of tools take of the model's window.
pub fn tool_tokens(tools: &[ToolSpec], counter: &dyn TokenCounter) -> usize {
    tools
        .iter()
        .map(|tool| {
            OVERHEAD
                + counter.count(&tool.name)
                + counter.count(&tool.description)
                + counter.count(&tool.parameters.to_string())
        })
        .sum()
}

/// What a model says, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelEvent {
    /// Text as it came: reasoning tags inside are not yet separated.
    Text(String),
    /// Reasoning that came apart from the text.
    Reasoning(String),
    /// A whole tool call: its fragments are joined by the adapter.
    ToolCall(ToolCall),
    /// The end; nothing follows. Always present in an answer that is not an error.
    Finished {
        /// Why it stopped.
        reason: FinishReason,
        /// What it cost, where the server says so.
        usage: Option<Usage>,
    },
}

/// The model did not answer. Messages hold no user's text and no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// It cannot be reached, or says that it cannot serve (5xx), after all retries.
    #[error("the model cannot be reached: {0}")]
    Unavailable(String),
    /// It refuses for load (429), after all retries.
    #[error("the model refuses for load")]
    RateLimited {
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// It refuses the request itself (other 4xx).
    #[error("the model refused the request with status {status}")]
    Refused {
        /// The HTTP status.
        status: u16,
    },
    /// Nothing came for too long.
    #[error("the model was silent for {0:?}")]
    Silent(Duration),
    /// The answer ended without saying that it is whole.
    #[error("the model's answer was cut off")]
    Truncated,
    /// It talks something else than its protocol.
    #[error("the model does not keep to its protocol: {0}")]
    Protocol(String),
    /// It reported an error in the middle of its answer.
    #[error("the model reported an error: {0}")]
    Reported(String),
}

impl ModelError {
    /// The stable code of a turn that fails with it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "model_unavailable",
            Self::RateLimited { .. } => "model_rate_limited",
            Self::Refused { .. } => "model_refused",
            Self::Silent(_) => "model_timeout",
            Self::Truncated => "model_truncated",
            Self::Protocol(_) => "model_protocol",
            Self::Reported(_) => "model_error",
        }
    }
}

/// A model's answer as it comes. Dropping it hangs up.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// A language model.
#[async_trait]
pub trait ChatModel: Send + Sync + 'static {
    /// The name it is configured by.
    fn name(&self) -> &str;

    /// Whether what it says may become memory. Not so for the offline model, which would learn its own echo.
    fn teaches(&self) -> bool;

    /// Counts tokens as this model does, or estimates.
    fn counter(&self) -> &dyn TokenCounter;

    /// Asks. Retries happen inside and only before the first event. Holds no resource of ours while it waits.
    async fn answer(&self, request: ModelRequest) -> Result<ModelStream, ModelError>;
}
