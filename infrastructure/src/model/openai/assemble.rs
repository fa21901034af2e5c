//! Chunks become events: text is passed on, fragments of tool calls are joined, the end is judged.

use tidemark_application::ports::model::{ModelError, ModelEvent};
use tidemark_domain::tool::ToolCall;
use tidemark_domain::turn::{FinishReason, Usage};

use super::calls::OpenCalls;
use super::wire::{Chunk, Piece};

/// Collects one answer.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    calls: OpenCalls,
    finish: Option<String>,
    usage: Option<Usage>,
    streamed: String,
}

impl Assembler {
    /// Takes the next chunk and appends what can be told at once.
    pub(super) fn push(
        &mut self,
        chunk: Chunk,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        for piece in chunk.pieces {
            match piece {
                Piece::Text(text) => {
                    if chunk.is_message {
                        out.extend(self.not_yet_streamed(text).map(ModelEvent::Text));
                    } else {
                        self.streamed.push_str(&text);
                        out.push(ModelEvent::Text(text));
                    }
                }
                Piece::Reasoning(text) => out.push(ModelEvent::Reasoning(text)),
            }
        }
        for fragment in chunk.fragments {
            self.calls.push(fragment)?;
        }
        if chunk.usage.is_some() {
            self.usage = chunk.usage; // where it stands on every chunk it counts from the start
        }
        if let Some(finish) = chunk.finish {
            if finish == "error" {
                return Err(ModelError::Reported("finish_reason_error".to_owned()));
            }
            self.finish = Some(finish);
        }
        Ok(())
    }

    /// Whether the model has said why it stopped: only its usage may still come.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The stream has ended. Without a reason to stop, the answer was cut off.
    pub(super) fn finish(self) -> Result<Vec<ModelEvent>, ModelError> {
        let stated = finish_reason(&self.finish.ok_or(ModelError::Truncated)?);
        // A call that the limit or a filter stopped may lack arguments, and those before it are half of what the model wanted.
        let calls: Vec<ToolCall> = match stated {
            FinishReason::Stop | FinishReason::ToolCalls => self.calls.close()?,
            FinishReason::Length | FinishReason::ContentFilter => Vec::new(),
        };
        let reason = match stated {
            FinishReason::Stop | FinishReason::ToolCalls if calls.is_empty() => FinishReason::Stop,
            FinishReason::Stop | FinishReason::ToolCalls => FinishReason::ToolCalls,
            cut => cut,
        };
        let mut out: Vec<ModelEvent> = calls.into_iter().map(ModelEvent::ToolCall).collect();
        out.push(ModelEvent::Finished {
            reason,
            usage: self.usage,
        });
        Ok(out)
    }

    /// What a `message` adds: some servers close a stream of deltas with the whole text once more.
    fn not_yet_streamed(&self, text: String) -> Option<String> {
        if self.streamed.is_empty() {
            return Some(text);
        }
        match text.strip_prefix(self.streamed.as_str()) {
            Some(rest) => (!rest.is_empty()).then(|| rest.to_owned()),
            None => Some(text),
        }
    }
}

/// The reason that a server's word stands for. A word nobody knows means that the model stopped of its own accord: every server
/// has its own names for stop tokens, while limits and filters go by few.
fn finish_reason(word: &str) -> FinishReason {
    match word.to_ascii_lowercase().as_str() {
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => FinishReason::Length,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => FinishReason::ToolCalls,
        "content_filter" | "safety" | "recitation" | "prohibited_content" | "blocklist"
        | "sensitive" => FinishReason::ContentFilter,
        _ => FinishReason::Stop,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::model::openai::wire;

    fn assemble(chunks: &[&str]) -> Result<Vec<ModelEvent>, ModelError> {
        let mut assembler = Assembler::default();
        let mut out = Vec::new();
        for chunk in chunks {
            assembler.push(wire::chunk(chunk).unwrap(), &mut out)?;
        }
        out.extend(assembler.finish()?);
        Ok(out)
    }

    fn finished(reason: FinishReason) -> ModelEvent {
        ModelEvent::Finished {
            reason,
            usage: None,
        }
    }

    #[test]
    fn an_answer_without_a_reason_to_stop_is_truncated() {
        let chunk = r#"{"choices":[{"delta":{"content":"half"},"finish_reason":null}]}"#;
        assert_eq!(assemble(&[chunk]), Err(ModelError::Truncated));
        assert_eq!(assemble(&[]), Err(ModelError::Truncated));
    }

    #[test]
    fn a_finish_reason_that_nobody_knows_is_a_stop() {
        for word in ["stop", "eos_token", "end_turn", "banana"] {
            let chunk = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{word}"}}]}}"#);
            assert_eq!(assemble(&[&chunk]).unwrap(), [finished(FinishReason::Stop)]);
        }
    }

    #[test]
    fn limits_and_filters_are_known_by_their_names() {
        for (word, reason) in [
            ("length", FinishReason::Length),
            ("MAX_TOKENS", FinishReason::Length),
            ("content_filter", FinishReason::ContentFilter),
            ("SAFETY", FinishReason::ContentFilter),
        ] {
            let chunk = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{word}"}}]}}"#);
            assert_eq!(assemble(&[&chunk]).unwrap(), [finished(reason)]);
        }
    }

    #[test]
    fn calls_make_the_reason_and_no_calls_unmake_it() {
        let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}"#;
        assert_eq!(
            assemble(&[call]).unwrap()[1],
            finished(FinishReason::ToolCalls)
        );
        let none = r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"tool_calls"}]}"#;
        assert_eq!(assemble(&[none]).unwrap()[1], finished(FinishReason::Stop));
    }

    #[test]
    fn calls_that_the_limit_cut_are_not_made() {
        let chunk = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]},"finish_reason":"length"}]}"#;
        assert_eq!(
            assemble(&[chunk]).unwrap(),
            [finished(FinishReason::Length)]
        );
    }

    #[test]
    fn the_last_usage_counts() {
        let events = assemble(&[
            r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
            r#"{"choices":[],"usage":null}"#,
        ])
        .unwrap();
        let ModelEvent::Finished { usage, .. } = events[1] else {
            panic!("{events:?}")
        };
        assert_eq!(usage.unwrap().completion_tokens, 2);
        assert!(!usage.unwrap().estimated);
    }

    #[test]
    fn a_closing_message_does_not_repeat_what_was_streamed() {
        let events = assemble(&[
            r#"{"choices":[{"delta":{"content":"Hello"}}]}"#,
            r#"{"choices":[{"message":{"content":"Hello, you"},"finish_reason":"stop"}]}"#,
        ])
        .unwrap();
        assert_eq!(
            events[..2],
            [
                ModelEvent::Text("Hello".into()),
                ModelEvent::Text(", you".into())
            ]
        );
    }
}
