//! The form of an answer, as JSON Schema.

use serde_json::{Value, json};

use super::super::{Kind, Scope};

/// What the form is called where it has to have a name.
pub const SCHEMA_NAME: &str = "extracted_facts";

/// The JSON Schema of an answer. Every field is required and unknown ones are forbidden, since servers that hold a model to a schema want it
/// so; what may be absent may be null. Lengths are not in it, since not all of them know these keywords: they are checked in the answer.
pub fn schema() -> Value {
    let names = |all: Vec<&str>| json!({ "type": "string", "enum": all });
    let optional =
        |description: &str| json!({ "type": ["string", "null"], "description": description });
    let properties = json!({
        "content": { "type": "string", "description": "one self-contained statement, at most 200 characters" },
        "kind": names(Kind::ALL.iter().map(|k| k.as_str()).collect()),
        "scope": names(Scope::ALL.iter().map(|s| s.as_str()).collect()),
        "key": optional("subject and attribute in snake_case, such as user_name or project_budget"),
        "importance": { "type": "integer", "minimum": 1, "maximum": 5 },
        "evidence": { "type": "array", "items": { "type": "integer" }, "description": "numbers of the messages that say so" },
        "valid_from": optional("since when, as YYYY-MM-DD, if it was said"),
        "expires_at": optional("until when, as YYYY-MM-DD, only of a temporary_state"),
        "negated": { "type": "boolean", "description": "it has ceased to be so, and nothing takes its place" },
    });
    let required: Vec<&String> = properties
        .as_object()
        .map(|fields| fields.keys().collect())
        .unwrap_or_default();
    json!({
        "type": "object",
        "properties": {
            "facts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": properties,
                    "required": required,
                    "additionalProperties": false,
                },
            },
        },
        "required": ["facts"],
        "additionalProperties": false,
    })
}
