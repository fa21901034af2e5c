//! The scripted model's answers: chunks in `OpenAI`'s form with the timing and the faults asked for.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::directives::{Behaviour, words};
use crate::model::Seen;

/// Text of the reasoning that `think` and `reasoning` put ahead of an answer; it must never reach an answer.
pub const REASONING: &str = "the user wants something and this is private reasoning";

/// An error answer in `OpenAI`'s form.
pub(crate) fn error(status: u16, retry_after: Option<u64>) -> Response {
    let body =
        json!({"error": {"message": "scripted failure", "type": "scripted", "code": "scripted"}});
    let mut response = Response::builder()
        .status(status)
        .header("content-type", "application/json");
    if let Some(seconds) = retry_after {
        response = response.header("retry-after", seconds);
    }
    response
        .body(Body::from(body.to_string()))
        .expect("a response")
}

/// Counts a request as in flight for as long as its answer lives, and as gone when it is dropped unfinished.
struct Flight {
    seen: Arc<Seen>,
    finished: bool,
}

impl Flight {
    fn begin(seen: &Arc<Seen>) -> Self {
        seen.in_flight.fetch_add(1, Ordering::SeqCst);
        Self {
            seen: Arc::clone(seen),
            finished: false,
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.seen.in_flight.fetch_sub(1, Ordering::SeqCst);
        if !self.finished {
            self.seen.gone.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// One step of an answer.
enum Step {
    Wait(Duration),
    Send(String),
    /// Drops the connection in the middle of the body.
    Cut,
}

pub(crate) async fn answer(
    seen: &Arc<Seen>,
    number: usize,
    request: &Value,
    behaviour: Behaviour,
) -> Response {
    let flight = Flight::begin(seen);
    if request["stream"] == json!(true) {
        let steps = stream_steps(number, request, &behaviour);
        let body = async_stream::stream! {
            // Names the whole guard, so that the stream owns it and not a copy of its flag.
            let mut flight = flight;
            for step in steps {
                match step {
                    // Even a sleep of no length waits for the timer's next millisecond.
                    Step::Wait(time) if time.is_zero() => {}
                    Step::Wait(time) => sleep(time).await,
                    Step::Send(line) => yield Ok(Bytes::from(line)),
                    Step::Cut => {
                        flight.finished = true;
                        yield Err(io::Error::other("scripted cut"));
                        return;
                    }
                }
            }
            flight.finished = true;
        };
        return Response::builder()
            .header("content-type", "text/event-stream")
            .body(Body::from_stream(body))
            .expect("a response");
    }
    let pauses = behaviour.delay * behaviour.words().len() as u32;
    sleep(behaviour.first + behaviour.stall + pauses).await;
    let mut flight = flight;
    flight.finished = true;
    let body = whole_answer(number, request, &behaviour).to_string();
    Response::builder()
        .header("content-type", "application/json")
        .body(Body::from(body))
        .expect("a response")
}

fn whole_answer(number: usize, request: &Value, behaviour: &Behaviour) -> Value {
    let calls = calls_due(number, request, behaviour);
    let (message, reason) = if calls.is_empty() {
        let thought = if behaviour.think {
            format!("<think>{REASONING}</think>")
        } else {
            String::new()
        };
        (
            json!({"role": "assistant", "content": thought + &behaviour.answer()}),
            "stop",
        )
    } else {
        (
            json!({"role": "assistant", "content": null, "tool_calls": calls}),
            "tool_calls",
        )
    };
    json!({
        "id": format!("chatcmpl-{number}"), "object": "chat.completion", "created": 0, "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": usage(behaviour),
    })
}

fn stream_steps(number: usize, request: &Value, behaviour: &Behaviour) -> Vec<Step> {
    let chunk = |delta: Value, reason: Option<&str>| {
        let value = json!({
            "id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk", "created": 0, "model": request["model"],
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        });
        Step::Send(format!("data: {value}\n\n"))
    };
    let mut steps = vec![
        Step::Wait(behaviour.first),
        chunk(json!({"role": "assistant", "content": ""}), None),
    ];
    if behaviour.garbage {
        steps.push(Step::Send(
            "data: this is {no JSON\n\ndata: 17}\n\n".to_owned(),
        ));
        return steps;
    }
    if behaviour.reasoning {
        steps.extend(
            REASONING
                .split_inclusive(' ')
                .map(|word| chunk(json!({"reasoning_content": word}), None)),
        );
    }
    if behaviour.think {
        let inline = format!("<think>{REASONING}</think>");
        let (head, tail) = inline.split_at(4);
        steps.extend([head, tail].map(|part| chunk(json!({"content": part}), None)));
    }
    let calls = calls_due(number, request, behaviour);
    let text = if calls.is_empty() {
        behaviour.words()
    } else {
        words(behaviour.before_tool)
    };
    for (at, word) in text.iter().enumerate() {
        if at == behaviour.stall_after {
            steps.push(Step::Wait(behaviour.stall));
        }
        if behaviour.cut_after == Some(at) {
            // A moment, since what is not yet written to the socket is lost with the connection.
            steps.push(Step::Wait(Duration::from_millis(30)));
            steps.push(Step::Cut);
            return steps;
        }
        if behaviour.error_after == Some(at) {
            let error = json!({"error": {"message": "scripted failure", "type": "server_error", "code": 500}});
            steps.push(Step::Send(format!("data: {error}\n\n")));
            return steps;
        }
        if at > 0 {
            steps.push(Step::Wait(behaviour.delay));
        }
        steps.push(chunk(json!({"content": word}), None));
    }
    if text.len() <= behaviour.stall_after {
        steps.push(Step::Wait(behaviour.stall));
    }
    if behaviour.no_finish {
        return steps;
    }
    steps.extend(
        calls
            .iter()
            .enumerate()
            .flat_map(|(index, call)| call_fragments(index, call))
            .map(|delta| chunk(delta, None)),
    );
    steps.push(chunk(
        json!({}),
        Some(if calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        }),
    ));
    if request["stream_options"]["include_usage"] == json!(true) {
        let value = json!({
            "id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk", "created": 0, "model": request["model"],
            "choices": [], "usage": usage(behaviour),
        });
        steps.push(Step::Send(format!("data: {value}\n\n")));
    }
    steps.push(Step::Send("data: [DONE]\n\n".to_owned()));
    steps
}

/// A call as real servers stream it: its name first, its arguments in pieces.
fn call_fragments(index: usize, call: &Value) -> Vec<Value> {
    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
    let middle = arguments
        .char_indices()
        .nth(arguments.chars().count() / 2)
        .map_or(0, |(at, _)| at);
    let (head, tail) = arguments.split_at(middle);
    let mut first = call.clone();
    first["index"] = json!(index);
    first["function"]["arguments"] = json!("");
    let more = [head, tail].map(|part| json!({"index": index, "function": {"arguments": part}}));
    [first]
        .into_iter()
        .chain(more)
        .map(|call| json!({"tool_calls": [call]}))
        .collect()
}

/// The calls of this request: while fewer rounds than asked for lie behind the last user message.
fn calls_due(number: usize, request: &Value, behaviour: &Behaviour) -> Vec<Value> {
    let Some(tool) = &behaviour.tool else {
        return Vec::new();
    };
    let messages = request["messages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let since = messages
        .iter()
        .rposition(|message| message["role"] == "user")
        .unwrap_or(0);
    let rounds = messages[since..]
        .iter()
        .filter(|message| message["tool_calls"].is_array())
        .count();
    if rounds >= behaviour.tool_rounds.max(1) {
        return Vec::new();
    }
    let arguments = behaviour
        .tool_args
        .clone()
        .unwrap_or_else(|| json!({"query": "anything"}));
    (0..behaviour.tool_calls.max(1))
        .map(|i| {
            json!({
                "id": format!("call_{number}_{i}"), "type": "function",
                "function": {"name": tool, "arguments": arguments.to_string()},
            })
        })
        .collect()
}

fn usage(behaviour: &Behaviour) -> Value {
    let out = behaviour.words().len();
    json!({"prompt_tokens": 11, "completion_tokens": out, "total_tokens": 11 + out})
}
