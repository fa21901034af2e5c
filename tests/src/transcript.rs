//! What a model API refuses: a tool call that is not answered exactly once before the next other message.

use std::collections::BTreeSet;

use serde_json::Value;

/// Every breach of the rule in `messages` (`OpenAI`'s form, or the history of a session), in words; empty when valid.
pub fn violations(messages: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = result_id(message);
            if !open.remove(&id) {
                let how = if known.contains(&id) {
                    "a second or late result"
                } else {
                    "a result without call"
                };
                found.push(format!("message {at}: {how} for {id:?}"));
            }
            continue;
        }
        if !open.is_empty() {
            found.push(format!(
                "message {at} ({role}) comes before the results of {open:?}"
            ));
            open.clear();
        }
        match role {
            "assistant" => {
                let ids = call_ids(message);
                if ids.is_empty() && text_of(message).is_empty() {
                    found.push(format!(
                        "message {at}: an assistant message with neither text nor calls"
                    ));
                }
                for id in ids {
                    if id.is_empty() {
                        found.push(format!("message {at}: a call without id"));
                    }
                    if !open.insert(id.clone()) {
                        found.push(format!("message {at}: call id {id:?} twice"));
                    }
                    known.insert(id);
                }
            }
            "system" | "developer" | "user" => {
                if text_of(message).is_empty() {
                    found.push(format!("message {at}: an empty {role} message"));
                }
            }
            other => found.push(format!("message {at}: unknown role {other:?}")),
        }
    }
    if !open.is_empty() {
        found.push(format!("the transcript ends with the calls {open:?} open"));
    }
    found
}

/// The message's text, whether `content` is a string or a list of parts.
pub fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

/// The ids of the tool calls that an assistant message makes.
pub fn call_ids(message: &Value) -> Vec<String> {
    let calls = message["tool_calls"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    calls
        .iter()
        .map(|call| first_text(call, &["id", "call_id"]))
        .collect()
}

fn result_id(message: &Value) -> String {
    first_text(message, &["tool_call_id", "call_id"])
}

fn first_text(value: &Value, keys: &[&str]) -> String {
    keys.iter()
        .find_map(|key| value[*key].as_str())
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(ids: &[&str]) -> Value {
        let calls: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "type": "function"}))
            .collect();
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    }

    fn result(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": "r"})
    }

    fn says(role: &str) -> Value {
        json!({"role": role, "content": "x"})
    }

    #[test]
    fn answered_calls_are_valid_in_any_order_of_their_results() {
        let valid = [
            says("user"),
            call(&["a", "b"]),
            result("b"),
            result("a"),
            says("assistant"),
        ];
        assert_eq!(violations(&valid), Vec::<String>::new());
    }

    #[test]
    fn every_breach_is_found() {
        let breaches: [&[Value]; 7] = [
            &[says("user"), call(&["a"])],
            &[says("user"), call(&["a"]), says("user")],
            &[says("user"), call(&["a"]), result("a"), result("a")],
            &[says("user"), result("a")],
            &[says("user"), call(&["a", "a"]), result("a")],
            &[json!({"role": "assistant", "content": ""})],
            &[says("narrator")],
        ];
        for breach in breaches {
            assert!(!violations(breach).is_empty(), "not found: {breach:?}");
        }
    }
}
