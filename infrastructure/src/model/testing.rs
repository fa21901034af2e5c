//! Requests for this folder's tests.

use tidemark_application::ports::model::{ModelRequest, PromptMessage};
use tidemark_domain::memory::prompt::Language;
use tidemark_domain::session::Role;

/// A message without calls.
pub(super) fn said(role: Role, content: &str) -> PromptMessage {
    PromptMessage {
        role,
        content: content.to_owned(),
        name: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    }
}

/// The user asks, in English, with nothing recalled.
pub(super) fn asked(text: &str) -> ModelRequest {
    ModelRequest {
        messages: vec![said(Role::User, text)],
        tools: Vec::new(),
        max_output_tokens: 100,
        max_input_tokens: 1_000,
        recalled: Vec::new(),
        language: Language::English,
        format: None,
        temperature: None,
    }
}
