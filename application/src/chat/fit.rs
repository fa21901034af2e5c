//! Keeping a prompt within the model's window while a turn goes on: each round of tools adds to it.

use tidemark_domain::session::Role;
use tidemark_domain::window::{TokenCounter, cut_middle};

use crate::ports::model::ModelRequest;

/// What is left of a tool's result in the last resort, in tokens: less tells a model nothing. Ours, as in the window of the history.
const FLOOR: usize = 64;

/// Shortens results of tools, the oldest first and each to its head and tail, until the request fits. They can be had again by another
/// call; what was said stays. The stored messages stay whole.
pub(super) fn fit(request: &mut ModelRequest, counter: &dyn TokenCounter) {
    let mut over = request
        .tokens(counter)
        .saturating_sub(request.max_input_tokens);
    for message in &mut request.messages {
        if over == 0 {
            return;
        }
        if message.role != Role::Tool {
            continue;
        }
        let before = counter.count(&message.content);
        let target = before.saturating_sub(over).max(FLOOR);
        if target < before {
            message.content = cut_middle(&message.content, target, counter);
            let saved = before - counter.count(&message.content).min(before);
            over = over.saturating_sub(saved);
        }
    }
    if over > 0 {
        tracing::debug!(over, "the prompt does not fit the model's window");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::model::PromptMessage;
    use tidemark_domain::memory::prompt::Language;
    use tidemark_domain::window::EstimateCounter;

    fn message(role: Role, content: String) -> PromptMessage {
        PromptMessage {
            role,
            content,
            name: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }

    fn request(max_input_tokens: usize) -> ModelRequest {
        let result = |n: usize| message(Role::Tool, format!("result {n} {}", "word ".repeat(400)));
        ModelRequest {
            messages: vec![
                message(Role::User, "find it".to_owned()),
                result(1),
                result(2),
                result(3),
            ],
            tools: Vec::new(),
            max_output_tokens: 100,
            max_input_tokens,
            recalled: Vec::new(),
            language: Language::English,
            format: None,
            temperature: None,
        }
    }

    #[test]
    fn results_of_tools_are_shortened_until_the_prompt_fits_the_oldest_first() {
        let whole = request(10_000);
        let mut fitted = request(1_200);
        fit(&mut fitted, &EstimateCounter);
        assert!(fitted.tokens(&EstimateCounter) <= 1_200);
        assert_eq!(fitted.messages[0], whole.messages[0]);
        assert_ne!(fitted.messages[1], whole.messages[1]);
        assert_eq!(fitted.messages[3], whole.messages[3]);
        assert!(fitted.messages[1].content.starts_with("result 1"));
    }

    #[test]
    fn a_prompt_that_fits_is_left_alone() {
        let mut fitted = request(10_000);
        fit(&mut fitted, &EstimateCounter);
        assert_eq!(fitted.messages, request(10_000).messages);
    }
}
