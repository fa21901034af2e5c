//! What clients were built from stays true: no change of the document breaks them.
//!
//! `openapi/released/v1.json` is the document of the last release. It is written by `TIDEMARK_RELEASE=1` alone.

use serde_json::{Value, json};
use tidemark_tests::compatibility::breaking_changes;
use tidemark_tests::server::repository;

use crate::document;

#[test]
fn the_document_breaks_no_client_of_the_last_release() {
    let released = repository().join("openapi/released/v1.json");
    let present = std::fs::read_to_string(document()).unwrap();
    if std::env::var_os("TIDEMARK_RELEASE").is_some() {
        std::fs::write(&released, &present).unwrap();
    }
    let released = std::fs::read_to_string(released).expect("openapi/released/v1.json");
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let broken = breaking_changes(&read(&released), &read(&present));
    assert!(
        broken.is_empty(),
        "clients of the last release break:\n{}",
        broken.join("\n")
    );
}

/// A document with one of everything that is compared.
fn example() -> Value {
    json!({
        "paths": {"/v1/things/{id}": {"post": {
            "operationId": "make_thing",
            "parameters": [
                {"name": "id", "in": "path", "required": true, "schema": {"type": "string", "format": "uuid"}},
                {"$ref": "#/components/parameters/Limit"},
            ],
            "requestBody": {"required": false, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/NewThing"}}}},
            "responses": {
                "201": {
                    "headers": {"ETag": {"schema": {"type": "string"}}},
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}},
                },
                "404": {"$ref": "#/components/responses/NotFound"},
            },
        }}},
        "components": {
            "parameters": {"Limit": {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 100}}},
            "responses": {"NotFound": {"content": {"application/problem+json": {"schema": {"type": "object"}}}}},
            "schemas": {
                "NewThing": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^[a-z]+$"},
                    "colour": {"type": "string", "enum": ["red", "blue"]},
                    "parts": {"type": "array", "maxItems": 3, "items": {"$ref": "#/components/schemas/NewThing"}},
                    "about": {"type": "object"},
                    "free": {"type": "string"},
                }},
                "Thing": {"type": "object", "required": ["id", "state"], "properties": {
                    "id": {"type": "string", "format": "uuid"},
                    "state": {"type": "string", "enum": ["new", "old"]},
                    "title": {"type": "string"},
                    "last": {"$ref": "#/components/schemas/Event"},
                }},
                "Event": {
                    "oneOf": [{"$ref": "#/components/schemas/Start"}, {"$ref": "#/components/schemas/End"}],
                    "discriminator": {"propertyName": "type", "mapping": {"start": "#/components/schemas/Start", "end": "#/components/schemas/End"}},
                },
                "Start": {"type": "object"},
                "End": {"type": "object"},
            },
        },
    })
}

const OPERATION: &str = "/paths/~1v1~1things~1{id}/post";

/// What is said of the example once a value in it is another; null takes it out.
fn after(pointer: &str, value: Value) -> Vec<String> {
    let mut changed = example();
    let pointer = pointer
        .replace("OP", OPERATION)
        .replace("SCHEMAS", "/components/schemas");
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/");
    match changed
        .pointer_mut(parent)
        .unwrap_or_else(|| panic!("{parent}"))
    {
        Value::Object(fields) if value.is_null() => {
            fields.remove(&name).unwrap_or_else(|| panic!("{pointer}"));
        }
        Value::Object(fields) => {
            fields.insert(name, value);
        }
        Value::Array(items) if value.is_null() => {
            items.remove(name.parse().unwrap());
        }
        Value::Array(items) => items.push(value),
        other => panic!("{other}"),
    }
    breaking_changes(&example(), &changed)
}

fn assert_refused(cases: impl IntoIterator<Item = (&'static str, Value, &'static str)>) {
    for (pointer, value, said) in cases {
        let found = after(pointer, value);
        assert!(
            found.iter().any(|line| line.contains(said)),
            "{pointer}: {said} is not in {found:?}"
        );
    }
}

#[test]
fn an_operation_that_is_gone_renamed_or_wants_more_is_refused() {
    assert_refused([
        ("/paths/~1v1~1things~1{id}", Value::Null, "is gone"),
        ("OP", Value::Null, "POST /v1/things/{id} is gone"),
        ("OP/operationId", json!("create_thing"), "has another id"),
        ("OP/parameters/1", Value::Null, "parameter limit is gone"),
        (
            "OP/parameters/-",
            json!({"name": "q", "in": "query", "required": true}),
            "requires a new parameter q",
        ),
        (
            "/components/parameters/Limit/required",
            json!(true),
            "parameter limit is required now",
        ),
        (
            "/components/parameters/Limit/schema/maximum",
            json!(50),
            "narrower maximum: 50",
        ),
        (
            "/components/parameters/Limit/schema/minimum",
            json!(2),
            "narrower minimum: 2",
        ),
        ("OP/requestBody", Value::Null, "takes no body any more"),
        (
            "OP/requestBody/required",
            json!(true),
            "requires a body now",
        ),
        (
            "OP/requestBody/content/application~1json",
            Value::Null,
            "is not application/json any more",
        ),
    ]);
}

#[test]
fn a_request_that_is_narrowed_is_refused() {
    assert_refused([
        (
            "SCHEMAS/NewThing/properties/free",
            Value::Null,
            "free is gone",
        ),
        (
            "SCHEMAS/NewThing/required/-",
            json!("free"),
            "free is required now",
        ),
        (
            "SCHEMAS/NewThing/properties/free",
            json!({"type": "integer"}),
            "another type",
        ),
        (
            "SCHEMAS/NewThing/properties/free/format",
            json!("uuid"),
            "another format",
        ),
        (
            "SCHEMAS/NewThing/properties/free/maxLength",
            json!(9),
            "narrower maxLength: 9",
        ),
        (
            "SCHEMAS/NewThing/properties/free/pattern",
            json!("^a$"),
            "another pattern",
        ),
        (
            "SCHEMAS/NewThing/properties/free/enum",
            json!(["a"]),
            "takes some values alone now",
        ),
        (
            "SCHEMAS/NewThing/properties/name/minLength",
            json!(2),
            "narrower minLength: 2",
        ),
        (
            "SCHEMAS/NewThing/properties/name/pattern",
            json!("^[a-y]+$"),
            "another pattern",
        ),
        (
            "SCHEMAS/NewThing/properties/colour/enum/0",
            Value::Null,
            "has no value \"red\" any more",
        ),
        (
            "SCHEMAS/NewThing/properties/parts/maxItems",
            json!(2),
            "narrower maxItems: 2",
        ),
        (
            "SCHEMAS/NewThing/properties/parts/items",
            json!({"type": "string"}),
            "another type",
        ),
        (
            "SCHEMAS/NewThing/properties/about/additionalProperties",
            json!(false),
            "takes no other fields any more",
        ),
    ]);
}

#[test]
fn a_response_that_loses_what_clients_know_is_refused() {
    assert_refused([
        ("OP/responses/201", Value::Null, "201 is gone"),
        ("OP/responses/404", Value::Null, "404 is gone"),
        (
            "OP/responses/201/headers/ETag",
            Value::Null,
            "has no header ETag any more",
        ),
        (
            "OP/responses/201/content/application~1json",
            Value::Null,
            "is not application/json any more",
        ),
        (
            "SCHEMAS/Thing/properties/title",
            Value::Null,
            "title is gone",
        ),
        (
            "SCHEMAS/Thing/required/0",
            Value::Null,
            "id may be absent now",
        ),
        (
            "SCHEMAS/Thing/properties/title/type",
            json!(["string", "null"]),
            "another type",
        ),
        (
            "SCHEMAS/Thing/properties/id/format",
            Value::Null,
            "another format",
        ),
        (
            "SCHEMAS/Thing/properties/state/enum/1",
            Value::Null,
            "has no value \"old\" any more",
        ),
        (
            "SCHEMAS/Thing/properties/state/enum",
            Value::Null,
            "is no enumeration any more",
        ),
        (
            "SCHEMAS/Event/oneOf/1",
            Value::Null,
            "is never \"#/components/schemas/End\" any more",
        ),
        (
            "SCHEMAS/Event/discriminator/mapping/end",
            Value::Null,
            "is never told apart as end any more",
        ),
        (
            "SCHEMAS/Start",
            Value::Null,
            "Start is gone from the schemas",
        ),
    ]);
}

#[test]
fn what_is_added_or_widened_passes() {
    assert_eq!(breaking_changes(&example(), &example()), [""; 0]);
    for (pointer, value) in [
        (
            "/paths/~1v1~1others",
            json!({"get": {"operationId": "others"}}),
        ),
        ("OP/parameters/-", json!({"name": "q", "in": "query"})),
        ("OP/responses/409", json!({"description": "no"})),
        ("OP/responses/201/headers/Location", json!({})),
        ("OP/responses/201/content/text~1plain", json!({})),
        ("OP/summary", json!("Make it")),
        ("/components/parameters/Limit/schema/maximum", json!(200)),
        (
            "SCHEMAS/NewThing/properties/size",
            json!({"type": "integer"}),
        ),
        ("SCHEMAS/NewThing/required/0", Value::Null),
        (
            "SCHEMAS/NewThing/properties/free/type",
            json!(["string", "null"]),
        ),
        ("SCHEMAS/NewThing/properties/name/pattern", Value::Null),
        ("SCHEMAS/NewThing/properties/name/maxLength", json!(10)),
        ("SCHEMAS/NewThing/properties/colour/enum/-", json!("green")),
        ("SCHEMAS/Thing/properties/size", json!({"type": "integer"})),
        ("SCHEMAS/Thing/required/-", json!("title")),
        ("SCHEMAS/Thing/properties/state/enum/-", json!("lost")),
        (
            "SCHEMAS/Event/oneOf/-",
            json!({"$ref": "#/components/schemas/Thing"}),
        ),
        ("SCHEMAS/Other", json!({"type": "string"})),
    ] {
        assert_eq!(after(pointer, value), [""; 0], "{pointer}");
    }
}
