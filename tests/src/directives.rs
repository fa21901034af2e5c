//! What the scripted model is to do with one request, written in the message itself: `[[tokens=50 delay_ms=20]]`.
//!
//! The last pair of double square brackets in the last user message counts. Values end at white space, except that a value
//! that begins with `{` is one JSON object.

use std::time::Duration;

use serde_json::Value;

/// One request's behaviour. The default answers at once with three words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Behaviour {
    /// Words of the answer; `None` is three.
    pub tokens: Option<usize>,
    /// The answer itself; wins over `tokens`. It is sent word by word.
    pub text: Option<String>,
    /// Between two chunks.
    pub delay: Duration,
    /// Before the first chunk, after the response's head.
    pub first: Duration,
    /// Silence after `stall_after` words.
    pub stall: Duration,
    /// Words before `stall`.
    pub stall_after: usize,
    /// The connection is dropped after this many words.
    pub cut_after: Option<usize>,
    /// Status of an error answer in place of a stream.
    pub error_status: Option<u16>,
    /// `Retry-After` of that error answer, in seconds.
    pub retry_after: Option<u64>,
    /// The error is given to this many requests only; later ones are answered. `None` is all.
    pub error_times: Option<usize>,
    /// Reasoning inside `<think>` tags ahead of the answer.
    pub think: bool,
    /// Reasoning in `reasoning_content` ahead of the answer.
    pub reasoning: bool,
    /// A tool call before the answer.
    pub tool: Option<String>,
    /// Arguments of that call; `None` is `{"query":"anything"}`.
    pub tool_args: Option<Value>,
    /// How many rounds of tool calls before the answer, when `tool` is set; 0 counts as 1.
    pub tool_rounds: usize,
    /// Tool calls in each round; 0 counts as 1.
    pub tool_calls: usize,
    /// Words of text ahead of a tool call in the same message.
    pub before_tool: usize,
    /// The stream ends without finish reason and `[DONE]`.
    pub no_finish: bool,
    /// Lines that are no JSON in place of chunks.
    pub garbage: bool,
    /// An error object after this many words, in a stream that began with 200.
    pub error_after: Option<usize>,
    /// A finish reason and no word.
    pub empty: bool,
}

impl Behaviour {
    /// What the last directive of `message` says, or the default.
    ///
    /// # Errors
    /// On a key or a value that is not known here: a typing error in a test must not pass as the default.
    pub fn of_message(message: &str) -> Result<Self, String> {
        let mut behaviour = Self::default();
        let inside = message
            .rsplit_once("[[")
            .and_then(|(_, rest)| rest.split_once("]]"));
        if let Some((inside, _)) = inside {
            for (key, value) in pairs(inside)? {
                behaviour.set(&key, &value)?;
            }
        }
        Ok(behaviour)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = || {
            value
                .parse::<usize>()
                .map_err(|_| format!("directive {key}={value} wants a number"))
        };
        let millis = || number().map(|n| Duration::from_millis(n as u64));
        match key {
            "tokens" => self.tokens = Some(number()?),
            "text" => self.text = Some(value.replace('_', " ")),
            "delay_ms" => self.delay = millis()?,
            "first_ms" => self.first = millis()?,
            "stall_ms" => self.stall = millis()?,
            "stall_after" => self.stall_after = number()?,
            "cut_after" => self.cut_after = Some(number()?),
            "error_status" => self.error_status = Some(number()? as u16),
            "retry_after" => self.retry_after = Some(number()? as u64),
            "error_times" => self.error_times = Some(number()?),
            "think" => self.think = number()? > 0,
            "reasoning" => self.reasoning = number()? > 0,
            "tool" => self.tool = Some(value.to_owned()),
            "tool_args" => {
                self.tool_args = Some(serde_json::from_str(value).map_err(|e| e.to_string())?);
            }
            "tool_rounds" => self.tool_rounds = number()?,
            "tool_calls" => self.tool_calls = number()?,
            "before_tool" => self.before_tool = number()?,
            "no_finish" => self.no_finish = number()? > 0,
            "garbage" => self.garbage = number()? > 0,
            "error_after" => self.error_after = Some(number()?),
            "empty" => self.empty = number()? > 0,
            _ => return Err(format!("unknown directive {key}={value}")),
        }
        Ok(())
    }

    /// The answer's words, each but the first with the blank before it, so that their concatenation is the answer.
    pub fn words(&self) -> Vec<String> {
        if self.empty {
            return Vec::new();
        }
        match &self.text {
            Some(text) => text.split_inclusive(' ').map(str::to_owned).collect(),
            None => words(self.tokens.unwrap_or(3)),
        }
    }

    /// The answer as a client should see it.
    pub fn answer(&self) -> String {
        self.words().concat()
    }
}

/// `n` numbered words whose concatenation reads `word1 word2 …`.
pub fn words(n: usize) -> Vec<String> {
    (1..=n)
        .map(|i| {
            if i == 1 {
                "word1".to_owned()
            } else {
                format!(" word{i}")
            }
        })
        .collect()
}

fn pairs(inside: &str) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    let mut rest = inside.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest
            .split_once('=')
            .ok_or_else(|| format!("directive without a value: {rest}"))?;
        let end = if after.starts_with('{') {
            object_end(after)?
        } else {
            after.find(char::is_whitespace).unwrap_or(after.len())
        };
        found.push((key.to_owned(), after[..end].to_owned()));
        rest = after[end..].trim_start();
    }
    Ok(found)
}

fn object_end(text: &str) -> Result<usize, String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match values.next() {
        Some(Ok(_)) => Ok(values.byte_offset()),
        _ => Err(format!("not a JSON object: {text}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_without_directive_gets_the_default() {
        assert_eq!(
            Behaviour::of_message("What is [1] and [[?"),
            Ok(Behaviour::default())
        );
        assert_eq!(Behaviour::default().answer(), "word1 word2 word3");
    }

    #[test]
    fn the_last_directive_counts_and_arguments_may_hold_blanks() {
        let read = Behaviour::of_message(r#"[[tokens=9]] x [[tokens=2 tool=search_memory tool_args={"query": "a b"} delay_ms=20]]"#).unwrap();
        assert_eq!(read.answer(), "word1 word2");
        assert_eq!(read.tool.as_deref(), Some("search_memory"));
        assert_eq!(read.tool_args, Some(json!({"query": "a b"})));
        assert_eq!(read.delay, Duration::from_millis(20));
    }

    #[test]
    fn a_misspelt_directive_is_an_error_and_not_the_default() {
        for wrong in [
            "[[tokenz=2]]",
            "[[tokens=two]]",
            "[[tokens]]",
            "[[tool_args={x}]]",
        ] {
            assert!(Behaviour::of_message(wrong).is_err(), "{wrong} passed");
        }
    }
}
