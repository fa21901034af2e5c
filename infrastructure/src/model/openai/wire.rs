//! The chat-completions protocol on the wire: what is sent, and what real servers send back.
//!
//! Answers are read leniently, field by field, since hardly a server keeps to the published schema: a field of an unexpected type
//! counts as absent rather than spoiling the chunk that it stands in.

use serde_json::{Map, Value, json};
use tidemark_application::ports::model::{ModelRequest, PromptMessage};
use tidemark_domain::session::Role;
use tidemark_domain::tool::ToolSpec;
use tidemark_domain::turn::Usage;

/// What a server has been seen not to understand; learned from its refusals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    /// It refuses `stream_options`.
    pub(super) no_stream_options: bool,
    /// It wants `max_completion_tokens` where others want `max_tokens`.
    pub(super) max_completion_tokens: bool,
    /// It writes at a temperature of its own.
    pub(super) no_temperature: bool,
    /// How far it can hold an answer to a form.
    pub(super) format: FormatSupport,
}

/// How far a server can hold an answer to a form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FormatSupport {
    /// To a schema.
    #[default]
    Schema,
    /// To being a JSON object.
    Object,
    /// Not at all.
    None,
}

impl Dialect {
    /// The dialect that a 400 asks for, if it is one that would say something new. `body` is the refusal's text.
    pub(super) fn corrected_by(self, body: &str) -> Option<Self> {
        let mut next = self;
        if body.contains("stream_options") {
            next.no_stream_options = true;
        } else if body.contains("max_completion_tokens") {
            next.max_completion_tokens = true;
        } else if body.contains("response_format") || body.contains("json_schema") {
            next.format = match self.format {
                FormatSupport::Schema => FormatSupport::Object,
                FormatSupport::Object | FormatSupport::None => FormatSupport::None,
            };
        } else if body.contains("temperature") {
            next.no_temperature = true;
        }
        (next != self).then_some(next)
    }
}

/// The request's body.
pub(super) fn request_body(
    model: &str,
    temperature: Option<f64>,
    request: &ModelRequest,
    dialect: Dialect,
) -> Value {
    let mut body = json!({
        "model": model,
        "messages": request.messages.iter().map(message).collect::<Vec<_>>(),
        "stream": true,
    });
    let limit = if dialect.max_completion_tokens {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    body[limit] = request.max_output_tokens.into();
    if !dialect.no_stream_options {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if let Some(temperature) = request.temperature.or(temperature)
        && !dialect.no_temperature
    {
        body["temperature"] = temperature.into();
    }
    if let Some(format) = &request.format {
        match dialect.format {
            FormatSupport::Schema => {
                body["response_format"] = json!({
                    "type": "json_schema",
                    "json_schema": { "name": format.name, "schema": format.schema, "strict": true },
                });
            }
            FormatSupport::Object => body["response_format"] = json!({ "type": "json_object" }),
            FormatSupport::None => {}
        }
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    body
}

fn message(message: &PromptMessage) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut wire = json!({ "role": role, "content": message.content });
    if !message.tool_calls.is_empty() {
        if message.content.is_empty() {
            wire["content"] = Value::Null; // an empty text beside calls is refused by some servers, null by none
        }
        wire["tool_calls"] = message
            .tool_calls
            .iter()
            .map(|call| {
                json!({
                    "id": call.id,
                    "type": "function",
                    "function": { "name": call.name, "arguments": call.arguments },
                })
            })
            .collect();
    }
    if let Some(id) = &message.tool_call_id {
        wire["tool_call_id"] = id.as_str().into();
    }
    if let Some(name) = message.name.as_deref().filter(|name| is_speaker_name(name)) {
        wire["name"] = name.into();
    }
    wire
}

/// Servers refuse a whole request for a speaker's name with other characters.
fn is_speaker_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": { "name": tool.name, "description": tool.description, "parameters": tool.parameters },
    })
}

/// One chunk of an answer, or a whole answer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Chunk {
    /// Text and reasoning, in order.
    pub(super) pieces: Vec<Piece>,
    /// The text stood in `message`, where a stream has `delta`.
    pub(super) is_message: bool,
    /// Pieces of tool calls.
    pub(super) fragments: Vec<Fragment>,
    /// Why the model stopped, as the server spells it.
    pub(super) finish: Option<String>,
    /// What it cost so far.
    pub(super) usage: Option<Usage>,
}

/// A piece of what the model says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Of the answer.
    Text(String),
    /// Of the reasoning.
    Reasoning(String),
}

/// A piece of a tool call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fragment {
    /// The call's place in the answer.
    pub(super) index: Option<u64>,
    /// The call's id; never empty.
    pub(super) id: Option<String>,
    /// The tool's name; never empty.
    pub(super) name: Option<String>,
    /// A piece of the arguments.
    pub(super) arguments: Option<Arguments>,
}

/// A piece of a call's arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arguments {
    /// A piece of JSON text.
    Text(String),
    /// All of them, sent as an object and written out here.
    Whole(String),
}

/// The chunk cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChunkError {
    /// It is no JSON object.
    NotJson,
    /// It is the report of an error, with its code.
    Reported(String),
}

/// Reads the JSON of one chunk or of a whole answer.
pub(super) fn chunk(text: &str) -> Result<Chunk, ChunkError> {
    let value = match serde_json::from_str(text) {
        Ok(Value::Array(items)) => items.into_iter().next(), // one vendor wraps its errors in a list
        other => other.ok(),
    };
    let Some(Value::Object(fields)) = value else {
        return Err(ChunkError::NotJson);
    };
    if let Some(code) = reported(&fields) {
        return Err(ChunkError::Reported(code));
    }
    let mut chunk = Chunk {
        usage: fields.get("usage").and_then(usage),
        ..Chunk::default()
    };
    let choice = fields
        .get("choices")
        .and_then(Value::as_array)
        .and_then(|choices| {
            choices
                .iter()
                .find(|c| matches!(c.get("index").and_then(Value::as_u64), None | Some(0)))
        });
    let Some(choice) = choice else {
        return Ok(chunk);
    };
    chunk.finish = nonempty(choice.get("finish_reason"));
    if chunk.usage.is_none() {
        chunk.usage = choice.get("usage").and_then(usage);
    }
    let said = if let Some(Value::Object(delta)) = choice.get("delta") {
        Some(delta)
    } else {
        chunk.is_message = true;
        choice.get("message").and_then(Value::as_object)
    };
    if let Some(said) = said {
        read_said(said, &mut chunk);
    }
    Ok(chunk)
}

fn read_said(said: &Map<String, Value>, chunk: &mut Chunk) {
    // Some servers send the same reasoning under both names.
    let reasoning = ["reasoning_content", "reasoning"]
        .into_iter()
        .find_map(|name| nonempty(said.get(name)));
    chunk.pieces.extend(reasoning.map(Piece::Reasoning));
    match said.get("content") {
        Some(Value::String(text)) if !text.is_empty() => {
            chunk.pieces.push(Piece::Text(text.clone()));
        }
        Some(Value::Array(parts)) => chunk.pieces.extend(parts.iter().filter_map(part)),
        _ => {}
    }
    if let Some(refusal) = nonempty(said.get("refusal")) {
        chunk.pieces.push(Piece::Text(refusal)); // a refusal is the answer, and stands in place of the content
    }
    match said.get("tool_calls") {
        Some(Value::Array(calls)) => chunk.fragments.extend(calls.iter().map(fragment)),
        Some(call @ Value::Object(_)) => chunk.fragments.push(fragment(call)),
        _ => {}
    }
    if let Some(call @ Value::Object(_)) = said.get("function_call") {
        chunk.fragments.push(Fragment {
            index: Some(0),
            ..function(call)
        });
    }
}

/// A part of a content that is a list.
fn part(part: &Value) -> Option<Piece> {
    let text = match part {
        Value::String(text) => return Some(Piece::Text(text.clone())),
        part => part.get("text"),
    };
    match part.get("type").and_then(Value::as_str) {
        Some("thinking" | "reasoning") => {
            let inner = match part.get("thinking").or(part.get("reasoning")).or(text)? {
                Value::Array(parts) => parts
                    .iter()
                    .filter_map(|p| p.get("text").and_then(Value::as_str))
                    .collect(),
                other => other.as_str()?.to_owned(),
            };
            Some(Piece::Reasoning(inner))
        }
        _ => nonempty(text).map(Piece::Text),
    }
}

fn fragment(call: &Value) -> Fragment {
    Fragment {
        index: call.get("index").and_then(Value::as_u64),
        id: nonempty(call.get("id")),
        // A few servers leave the function's fields beside the id.
        ..function(call.get("function").unwrap_or(call))
    }
}

fn function(function: &Value) -> Fragment {
    Fragment {
        name: nonempty(function.get("name")),
        arguments: match function.get("arguments") {
            Some(Value::String(text)) => Some(Arguments::Text(text.clone())),
            Some(object @ Value::Object(_)) => Some(Arguments::Whole(object.to_string())),
            _ => None,
        },
        ..Fragment::default()
    }
}

fn usage(value: &Value) -> Option<Usage> {
    let tokens = |names: [&str; 2]| {
        names
            .into_iter()
            .find_map(|name| value.get(name).and_then(Value::as_u64))
    };
    let prompt = tokens(["prompt_tokens", "input_tokens"]);
    let completion = tokens(["completion_tokens", "output_tokens"]);
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    Some(Usage {
        prompt_tokens: prompt.unwrap_or(0),
        completion_tokens: completion.unwrap_or(0),
        estimated: false,
    })
}

/// The code of an error object: `{"error": {…}}`, `{"error": "…"}`, or `{"object": "error", …}`.
fn reported(fields: &Map<String, Value>) -> Option<String> {
    match fields.get("error") {
        Some(Value::Object(error)) => Some(error_code(error)),
        Some(Value::String(_)) => Some(error_code(fields)),
        _ if fields.get("object").and_then(Value::as_str) == Some("error") => {
            Some(error_code(fields))
        }
        _ => None,
    }
}

/// What to keep of an error: its code or type, when it looks like one. Never the message, which may echo the prompt.
fn error_code(error: &Map<String, Value>) -> String {
    ["code", "type", "status"]
        .into_iter()
        .filter_map(|name| match error.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
        .find(|code| is_code(code))
        .unwrap_or_else(|| UNSPECIFIED.to_owned())
}

/// The code of an error that names none.
pub(in crate::model) const UNSPECIFIED: &str = "unspecified";

/// The code in the body of an error, whatever that body is.
pub(in crate::model) fn code_in(body: &str) -> String {
    match chunk(body) {
        Err(ChunkError::Reported(code)) => code,
        _ => serde_json::from_str::<Map<String, Value>>(body)
            .map_or_else(|_| UNSPECIFIED.to_owned(), |fields| error_code(&fields)),
    }
}

fn is_code(text: &str) -> bool {
    (1..=48).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

fn nonempty(value: Option<&Value>) -> Option<String> {
    value
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}
