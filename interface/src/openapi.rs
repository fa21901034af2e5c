//! The OpenAPI document: gathered from the operations, tidied, kept in `openapi/tidemark.json`.

mod examples;
mod refusals;

use serde_json::{Map, Value, json};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::auth::operations::{self, Need};
use crate::http::{
    changes, chat, health, jobs, memories, messages, sessions, sign_in, turns, users,
};

/// What stands above the operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tidemark",
        description = "A chat server that remembers. Errors are problem documents (RFC 9457) whose `code` is stable. Lists are cut into pages by opaque \
                       cursors. A POST that creates takes an `Idempotency-Key`. Where the server asks for API keys, a request carries one as \
                       `Authorization: Bearer tmk_…`, or a token of the identity provider whose tokens it accepts, with the scope that the operation names. The header `X-Tidemark-User` names the user a \
                       request is for, unless the key or token is bound to one; without either, it is for the user `default`. Every response carries \
                       `X-Request-Id`. Unknown fields and parameters are refused; clients are to pass over what they do not know in responses, and \
                       events whose type they do not know.",
        contact(name = "The authors of Tidemark"),
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    servers((url = "/", description = "This server")),
    tags(
        (name = "sessions", description = "Conversations of one user."),
        (name = "messages", description = "What was said in a session."),
        (name = "turns", description = "One request and its answer. A turn is stored when it is accepted and runs whoever is listening; its end is told only after the answer is stored."),
        (name = "memories", description = "What is remembered, where it comes from, and why it was recalled."),
        (name = "changes", description = "What was done to memories; each change can be undone as a whole."),
        (name = "jobs", description = "Work derived from turns."),
        (name = "users", description = "Everything that is kept of a user, and its end."),
        (name = "sign-in", description = "A page trades a key for a cookie."),
        (name = "health", description = "Whether the server is well."),
    ),
    components(schemas(turns::event::Event, crate::problem::ProblemDocument))
)]
struct Above;

/// Every operation, with its documentation.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Above::openapi())
        .merge(sessions::router())
        .merge(messages::router())
        .merge(turns::router())
        .merge(chat::router())
        .merge(memories::router())
        .merge(changes::router())
        .merge(jobs::router())
        .merge(users::router())
        .merge(sign_in::router())
        .merge(health::router())
}

/// The document as it is served and kept.
///
/// # Errors
/// When it cannot be written as JSON; a test holds that it can.
pub fn document() -> Result<Value, serde_json::Error> {
    let mut document = serde_json::to_value(router().into_openapi())?;
    if let Some(schemas) = document
        .pointer_mut("/components/schemas")
        .and_then(Value::as_object_mut)
    {
        for (name, schema) in schemas {
            without_null(name, schema);
        }
    }
    if let Some(paths) = document
        .pointer_mut("/paths")
        .and_then(Value::as_object_mut)
    {
        paths.values_mut().for_each(|path| without_null("", path));
        for (path, methods) in paths {
            for (method, operation) in methods.as_object_mut().into_iter().flatten() {
                secure(operation, operations::declared(method, path));
            }
        }
    }
    document["components"]["securitySchemes"] = json!({
        "key": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "tmk_<id>_<secret>",
            "description": "An API key, where the server asks for one.",
        },
        "token": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "A token of the identity provider, where the server accepts them. It is good for the user that it names; with the scope `admin`, for any of its tenant's.",
        },
        "sign_in": {
            "type": "apiKey",
            "in": "cookie",
            "name": "tidemark",
            "description": "What `POST /v1/login` gives a page; over TLS its name is `__Host-tidemark`.",
        },
        "ticket": {
            "type": "apiKey",
            "in": "query",
            "name": "ticket",
            "description": "What `POST /v1/turns/{id}/ticket` gives for the events of one turn.",
        },
    });
    refusals::complete(&mut document);
    examples::add(&mut document)?;
    Ok(document)
}

/// Says what the operation needs of a key.
fn secure(operation: &mut Value, need: Option<Need>) {
    let Some(scope) = need.and_then(Need::scope) else {
        operation["security"] = json!([]);
        return;
    };
    let mut security = vec![
        json!({ "key": [scope.as_str()] }),
        json!({ "token": [scope.as_str()] }),
        json!({ "sign_in": [scope.as_str()] }),
    ];
    if need.is_some_and(Need::takes_ticket) {
        security.push(json!({ "ticket": [] }));
    }
    operation["security"] = security.into();
    let whose = match need {
        Some(Need::Operator) => " of the tenant `default`",
        _ => "",
    };
    let needs = format!("Needs the scope `{}`{whose}.", scope.as_str());
    operation["description"] = match operation["description"].as_str() {
        Some(said) => format!("{said}\n\n{needs}").into(),
        None => needs.into(),
    };
}

/// The document as the text of its file.
///
/// # Errors
/// As [`document`].
pub fn text() -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&document()?)? + "\n")
}

/// Where `null` means something other than absence: it removes a title, a key, an end.
const NULL_MATTERS: [(&str, &str); 3] = [
    ("MemoryPatch", "expires_at"),
    ("MemoryPatch", "key"),
    ("SessionPatch", "title"),
];

/// Optional fields are absent, never `null`, in responses and need not be `null` in requests: the document says so, for the sake of the
/// types that are generated from it.
fn without_null(name: &str, schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (field, value) in fields.iter_mut() {
                if field != "examples" {
                    without_null(name, value);
                }
            }
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                for (property, value) in properties {
                    if !NULL_MATTERS.contains(&(name, property.as_str())) {
                        tidy(value);
                    }
                }
            }
            if let Some(value) = fields.get_mut("schema") {
                tidy(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without_null(name, item)),
        _ => {}
    }
}

/// `["string", "null"]` becomes `"string"`, and a choice between null and something that thing.
fn tidy(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|t| t != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(choices)) = fields.get("oneOf") else {
        return;
    };
    let is_null = |choice: &Value| choice.get("type").is_some_and(|t| t == "null");
    if !choices.iter().any(is_null) {
        return;
    }
    let rest: Vec<Value> = choices.iter().filter(|c| !is_null(c)).cloned().collect();
    fields.remove("oneOf");
    match rest.as_slice() {
        [Value::Object(only)] => {
            let mut only: Map<String, Value> = only.clone();
            std::mem::swap(fields, &mut only);
            for (field, value) in only {
                fields.entry(field).or_insert(value);
            }
        }
        _ => {
            fields.insert("oneOf".to_owned(), Value::Array(rest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_in_the_repository_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi/tidemark.json");
        if std::env::var_os("TIDEMARK_UPDATE").is_some() {
            std::fs::write(path, text().unwrap()).unwrap();
        }
        let kept: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(kept == document().unwrap(), "run with TIDEMARK_UPDATE=1");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn check(value: &Value, document: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(Value::String(reference)) = fields.get("$ref") {
                        let target = document.pointer(reference.trim_start_matches('#'));
                        assert!(target.is_some(), "{reference}");
                    }
                    fields.values().for_each(|v| check(v, document));
                }
                Value::Array(items) => items.iter().for_each(|v| check(v, document)),
                _ => {}
            }
        }
        let document = document().unwrap();
        check(&document, &document);
        let mapping = &document["components"]["schemas"]["TurnEvent"]["discriminator"]["mapping"];
        for (_, target) in mapping.as_object().unwrap() {
            let target = target.as_str().unwrap();
            assert!(
                document.pointer(target.trim_start_matches('#')).is_some(),
                "{target}"
            );
        }
    }

    #[test]
    fn an_event_is_told_apart_by_the_type_it_has_on_the_wire() {
        let document = document().unwrap();
        let schemas = &document["components"]["schemas"];
        let mapping = &schemas["TurnEvent"]["discriminator"]["mapping"];
        for (value, target) in mapping.as_object().unwrap() {
            let named = |reference: &Value| {
                let name = reference.as_str().unwrap().rsplit('/').next().unwrap();
                schemas[name].clone()
            };
            let tag = named(&named(target)["properties"]["type"]["$ref"]);
            assert_eq!(tag["enum"], json!([value]));
        }
    }

    #[test]
    fn null_is_only_where_it_means_something() {
        let document = document().unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let with_null: Vec<_> = schemas
            .iter()
            .flat_map(|(name, schema)| {
                let properties = schema["properties"].as_object().into_iter().flatten();
                properties.map(move |(property, schema)| (name.as_str(), property.as_str(), schema))
            })
            .filter(|(_, _, schema)| schema.to_string().contains("\"null\""))
            .map(|(name, property, _)| (name, property))
            .collect();
        assert_eq!(with_null, NULL_MATTERS);
    }

    #[test]
    fn a_choice_with_null_becomes_the_rest_of_it() {
        let mut schema = json!({"oneOf": [{"type": "null"}, {"$ref": "#/x", "description": "inner"}], "description": "outer"});
        tidy(&mut schema);
        assert_eq!(schema, json!({"$ref": "#/x", "description": "inner"}));
        let mut schema = json!({"type": ["integer", "null"], "minimum": 1});
        tidy(&mut schema);
        assert_eq!(schema, json!({"type": "integer", "minimum": 1}));
    }
}
