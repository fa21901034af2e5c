//! What every operation has in common, found from what it takes: which problems it may answer with, the header that names its user, and
//! the id of the request. So no operation can forget one; a test over the running server holds that none is missing.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use crate::auth::operations;
use crate::problem::{Code, ProblemDocument};

/// What an operation may refuse beyond what its parameters and its body say.
const ITS_OWN: [(&str, &[StatusCode]); 7] = [
    // What an earlier request with the same key has made is gone.
    ("create_memories", &[StatusCode::NOT_FOUND]),
    ("create_session", &[StatusCode::NOT_FOUND]),
    // A key that is good for nothing, and a server that asks for none.
    ("login", &[StatusCode::UNAUTHORIZED, StatusCode::NOT_FOUND]),
    ("create_turn", &[StatusCode::CONFLICT]),
    (
        "chat_stream",
        &[
            StatusCode::NOT_FOUND,
            // Of the HTTP library, before anything of this server sees the request: a query of more than 64 KiB.
            StatusCode::URI_TOO_LONG,
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        ],
    ),
    ("import_messages", &[StatusCode::CONFLICT]),
    ("revert_change", &[StatusCode::CONFLICT]),
];

/// Takes the place of the ranges that operations declare, `4XX` and `5XX`.
pub(super) fn complete(document: &mut Value) {
    let mut used = BTreeSet::new();
    let secured = document["security"]
        .as_array()
        .is_some_and(|s| !s.is_empty());
    for (path, methods) in fields(&mut document["paths"]) {
        for (method, operation) in fields(methods) {
            if has_user(path) {
                let header = json!({"$ref": "#/components/parameters/User"});
                match &mut operation["parameters"] {
                    Value::Array(parameters) => parameters.push(header),
                    none => *none = json!([header]),
                }
            }
            let refused = statuses(path, method, operation, secured);
            let responses = &mut operation["responses"];
            for (_, response) in fields(responses) {
                response["headers"]["X-Request-Id"] =
                    json!({"$ref": "#/components/headers/RequestId"});
                if is_counted(path, method) {
                    tell_limits(response);
                }
            }
            if let Value::Object(responses) = responses {
                responses.retain(|status, _| !status.ends_with("XX"));
                for status in refused {
                    let reference = format!("#/components/responses/{}", name(status));
                    responses.insert(status.as_str().to_owned(), json!({"$ref": reference}));
                    used.insert(status);
                }
            }
        }
    }
    let components = &mut document["components"];
    components["responses"] = used.into_iter().map(|s| (name(s), response(s))).collect();
    components["headers"]["RequestId"] = json!({
        "description": "Finds the request in the log: the caller's own `X-Request-Id`, or a new one.",
        "schema": {"type": "string", "examples": ["0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d9e"]},
    });
    components["headers"]["RetryAfter"] = json!({
        "description": "Seconds to wait before the next attempt; `Retry-After-Ms` says it in milliseconds.",
        "schema": {"type": "integer", "minimum": 0, "examples": [1]},
    });
    components["headers"]["RateLimitPolicy"] = json!({
        "description": "Where requests are limited: how many, `q`, may be made in `w` seconds for each user, key or tenant.",
        "schema": {"type": "string", "examples": ["\"user\";q=60;w=60, \"tenant\";q=600;w=60"]},
    });
    components["headers"]["RateLimit"] = json!({
        "description": "Where requests are limited: the policy nearest to its end, how many requests, `r`, may come at once, and in how many seconds, \
                        `t`, all of it is there again; after a refusal, in how many seconds one is admitted again.",
        "schema": {"type": "string", "examples": ["\"user\";r=41;t=19"]},
    });
    components["parameters"]["User"] = json!({
        "name": "X-Tidemark-User",
        "in": "header",
        "description": "The user the request is for; `default` when not said.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._:@-]{1,128}$", "examples": ["ada"]},
    });
}

/// Whether the operation is about what belongs to one user, who is not named in its path or its body.
fn has_user(path: &str) -> bool {
    path.starts_with("/v1/")
        && !["/v1/users/", "/v1/login", "/v1/logout"]
            .iter()
            .any(|other| path.starts_with(other))
}

/// Whether its requests count against limits.
fn is_counted(path: &str, method: &str) -> bool {
    let method = method.to_ascii_uppercase().parse();
    method.is_ok_and(|method| operations::is_counted(&method, path))
}

fn tell_limits(response: &mut Value) {
    for (name, header) in [
        ("RateLimit-Policy", "RateLimitPolicy"),
        ("RateLimit", "RateLimit"),
    ] {
        let reference = format!("#/components/headers/{header}");
        response["headers"][name] = json!({"$ref": reference});
    }
}

/// What the operation may refuse with.
fn statuses(path: &str, method: &str, operation: &Value, secured: bool) -> BTreeSet<StatusCode> {
    let takes = |place: &str, name: &str| {
        operation["parameters"].as_array().is_some_and(|all| {
            all.iter()
                .any(|p| p["in"] == place && (name.is_empty() || p["name"] == name))
        })
    };
    let id = operation["operationId"].as_str().unwrap_or_default();
    let writes = method != "get";
    let body = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
    let has_fields = body
        .as_str()
        .is_some_and(|name| !name.ends_with("/NoFields"));
    // What is looked at before any operation: repeated headers, the Host and the Origin, the size; and a defect anywhere.
    let mut all = BTreeSet::from([
        StatusCode::BAD_REQUEST,
        StatusCode::FORBIDDEN,
        StatusCode::PAYLOAD_TOO_LARGE,
        StatusCode::INTERNAL_SERVER_ERROR,
    ]);
    let mut when = |condition: bool, statuses: &[StatusCode]| {
        if condition {
            all.extend(statuses);
        }
    };
    let own = operation["security"].as_array().map(|s| !s.is_empty());
    // Who asks is looked up in the store, or by the identity provider's keys.
    when(
        own.unwrap_or(secured),
        &[StatusCode::UNAUTHORIZED, StatusCode::SERVICE_UNAVAILABLE],
    );
    when(
        path.starts_with("/v1/") || operation["responses"]["503"].is_object(),
        &[StatusCode::SERVICE_UNAVAILABLE],
    );
    when(is_counted(path, method), &[StatusCode::TOO_MANY_REQUESTS]);
    when(path.contains('{'), &[StatusCode::NOT_FOUND]);
    when(
        writes,
        &[
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ],
    );
    when(
        has_fields || takes("query", ""),
        &[StatusCode::UNPROCESSABLE_ENTITY],
    );
    when(
        takes("header", "If-Match"),
        &[StatusCode::PRECONDITION_FAILED],
    );
    for (operation, statuses) in ITS_OWN {
        when(operation == id, statuses);
    }
    all
}

/// `Not Found` is the component `NotFound`.
fn name(status: StatusCode) -> String {
    status
        .canonical_reason()
        .unwrap_or_default()
        .replace(' ', "")
}

/// All problems of a status, with an example each.
fn response(status: StatusCode) -> Value {
    let codes: Vec<_> = Code::ALL
        .iter()
        .filter(|code| code.status() == status)
        .collect();
    let names: Vec<_> = codes
        .iter()
        .map(|code| format!("`{}`", code.as_str()))
        .collect();
    let examples: Map<String, Value> = codes
        .iter()
        .map(|code| {
            let example =
                json!({"summary": code.title(), "value": ProblemDocument::example(**code)});
            (code.as_str().to_owned(), example)
        })
        .collect();
    if codes.is_empty() {
        let reason = status.canonical_reason().unwrap_or_default();
        return json!({"description": format!("{reason}. The answer has no body.")});
    }
    let mut headers = json!({"X-Request-Id": {"$ref": "#/components/headers/RequestId"}});
    let waits = [
        StatusCode::CONFLICT,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    if waits.contains(&status) {
        headers["Retry-After"] = json!({"$ref": "#/components/headers/RetryAfter"});
    }
    let mut response = json!({
        "description": format!("{}: {}.", status.canonical_reason().unwrap_or_default(), names.join(", ")),
        "headers": headers,
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": examples}},
    });
    if status == StatusCode::TOO_MANY_REQUESTS {
        tell_limits(&mut response);
    }
    response
}

fn fields(value: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    value.as_object_mut().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use crate::openapi::document;
    use crate::problem::Code;

    #[test]
    fn every_code_is_told_in_the_document_but_those_of_no_operation() {
        let document = document().unwrap().to_string();
        let missing: Vec<_> = Code::ALL
            .iter()
            .map(|code| code.as_str())
            .filter(|code| !document.contains(&format!("`{code}`")))
            .collect();
        assert_eq!(missing, ["method_not_allowed"]);
    }

    #[test]
    fn an_operation_names_the_statuses_it_refuses_with_and_no_range_of_them() {
        let document = document().unwrap();
        let statuses = |path: &str, method: &str| {
            let responses = document["paths"][path][method]["responses"]
                .as_object()
                .unwrap();
            responses
                .keys()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let told = [
            statuses("/healthz", "get"),
            statuses("/v1/memories/{id}", "patch"),
            statuses("/v1/sessions/{id}/turns", "post"),
        ];
        assert_eq!(
            told,
            [
                "200 400 403 413 500",
                "200 400 401 403 404 408 412 413 415 422 429 500 503",
                "200 202 400 401 403 404 408 409 413 415 422 429 500 503",
            ]
        );
    }
}
