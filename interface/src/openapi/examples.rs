//! Examples of what operations take and give: recorded from a running server by a test of the black-box suite, which also holds that the
//! server still says the like.

use serde_json::{Value, json};

/// By operation: the body of its request under `request`, and its responses under their status; of a stream its events by their type.
const RECORDED: &str = include_str!("examples.json");

pub(super) fn add(document: &mut Value) -> Result<(), serde_json::Error> {
    let recorded: Value = serde_json::from_str(RECORDED)?;
    let paths = document["paths"].as_object_mut();
    let operations = paths
        .into_iter()
        .flat_map(|paths| paths.values_mut())
        .filter_map(Value::as_object_mut)
        .flat_map(|methods| methods.values_mut());
    for operation in operations {
        let Some(examples) = operation["operationId"]
            .as_str()
            .and_then(|id| recorded[id].as_object())
        else {
            continue;
        };
        for (place, example) in examples {
            let contents = if place == "request" {
                &mut operation["requestBody"]["content"]
            } else {
                &mut operation["responses"][place]["content"]
            };
            for (media, content) in contents.as_object_mut().into_iter().flatten() {
                content["examples"] = match (media.as_str(), example) {
                    ("text/event-stream", Value::Object(events)) => {
                        let events = events
                            .iter()
                            .map(|(kind, event)| (kind.clone(), json!({"value": event})));
                        Value::Object(events.collect())
                    }
                    (_, value) => json!({"recorded": {"summary": summary(place), "value": value}}),
                };
            }
        }
    }
    Ok(())
}

fn summary(place: &str) -> &'static str {
    if place == "request" {
        "What is sent"
    } else {
        "What is answered"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::document;

    #[test]
    fn every_recorded_example_is_shown() {
        let (recorded, document): (Value, _) =
            (serde_json::from_str(RECORDED).unwrap(), document().unwrap());
        let operations: Vec<_> = document["paths"]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|methods| methods.as_object().unwrap().values())
            .collect();
        for (id, places) in recorded.as_object().unwrap() {
            let operation = operations
                .iter()
                .find(|operation| operation["operationId"] == id.as_str());
            let operation = operation.unwrap_or_else(|| panic!("there is no operation {id}"));
            for place in places.as_object().unwrap().keys() {
                let content = if place == "request" {
                    &operation["requestBody"]["content"]
                } else {
                    &operation["responses"][place]["content"]
                };
                assert!(content.to_string().contains("\"examples\""), "{id} {place}");
            }
        }
    }
}
