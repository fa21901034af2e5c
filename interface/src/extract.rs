//! What operations take from a request, and the problems of what cannot be taken.

mod caller;
mod conditions;

use std::str::FromStr;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use validator::{Validate, ValidationErrors, ValidationErrorsKind};

use crate::body;
use crate::problem::{Code, Problem};

pub use caller::{Caller, Reader, Tenant};
pub use conditions::{IdempotencyKey, IfMatch, entity_tag};

/// A JSON body, parsed and validated; with its hash for idempotency.
#[derive(Debug)]
pub struct JsonBody<T> {
    /// What it says.
    pub value: T,
    /// SHA-256 of its bytes.
    pub hash: [u8; 32],
}

impl<T, S> FromRequest<S> for JsonBody<T>
where
    T: DeserializeOwned + Validate,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(unsupported_media_type());
        }
        let bytes = body::read(request.into_body()).await?;
        let value = parse::<T>(&bytes)?;
        value.validate().map_err(|errors| invalid(&errors))?;
        Ok(Self {
            value,
            hash: Sha256::digest(&bytes).into(),
        })
    }
}

/// The body of an operation that takes none: nothing at all, or an object without fields. What says more is refused, since the operation
/// would pass over it without a word.
#[derive(Clone, Copy, Debug)]
pub struct NoBody;

impl<S: Send + Sync> FromRequest<S> for NoBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let declared = is_json(request.headers());
        let bytes = body::read(request.into_body()).await?;
        if bytes.is_empty() {
            return Ok(Self);
        }
        if !declared {
            return Err(unsupported_media_type());
        }
        without_fields(&bytes)
    }
}

fn without_fields(bytes: &[u8]) -> Result<NoBody, Problem> {
    let given: serde_json::Map<String, serde_json::Value> = parse(bytes)?;
    if given.is_empty() {
        return Ok(NoBody);
    }
    let unknown = Problem::new(Code::InvalidField, "a field cannot be read");
    let named = given.keys().take(NAMED);
    Err(named.fold(unknown, |problem, name| problem.field(name, "is unknown")))
}

/// The body of an operation that takes none, as generated clients send it: they declare it as JSON.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoFields {}

/// How many unknown fields of a body that is to have none are named.
const NAMED: usize = 10;

/// Whether the body is declared as JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.split(';').next())
        .is_some_and(|v| v.trim().eq_ignore_ascii_case("application/json"))
}

/// The problem of a body that is not.
pub fn unsupported_media_type() -> Problem {
    Problem::new(
        Code::UnsupportedMediaType,
        "the body must be declared as application/json",
    )
    .field("Content-Type", "must be application/json")
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        unparsable(&path, error.inner())
    })?;
    json.end().map_err(|error| unparsable(".", &error))?;
    Ok(value)
}

fn unparsable(path: &str, error: &serde_json::Error) -> Problem {
    // The parser's message may quote the text it stumbled over; only what it expected is told.
    let message = error.to_string();
    let field = field_at_fault(path, &message, "body");
    match error.classify() {
        serde_json::error::Category::Data => {
            Problem::new(Code::InvalidField, "a field cannot be read")
                .field(field, expectation(&message))
        }
        _ => Problem::new(Code::MalformedBody, "the body is not valid JSON").field(
            field,
            format!(
                "not valid at line {}, column {}",
                error.line(),
                error.column()
            ),
        ),
    }
}

/// The path of the field at fault: an unknown or a missing one lies below the path that the parser tells.
fn field_at_fault(path: &str, message: &str, whole: &str) -> String {
    let named = ["unknown field `", "missing field `", "duplicate field `"]
        .iter()
        .find_map(|begin| message.strip_prefix(begin))
        .and_then(|rest| rest.split('`').next());
    match (path, named) {
        ("." | "?", None) => whole.to_owned(),
        ("." | "?", Some(name)) => name.to_owned(),
        (path, None) => path.to_owned(),
        // The parser may have told the field itself already.
        (path, Some(name)) if path == name || path.ends_with(&format!(".{name}")) => {
            path.to_owned()
        }
        (path, Some(name)) => format!("{path}.{name}"),
    }
}

fn expectation(message: &str) -> String {
    if message.starts_with("unknown field") {
        return "is unknown".to_owned();
    }
    if message.starts_with("missing field") {
        return "is required".to_owned();
    }
    if message.starts_with("duplicate field") {
        return "is given twice".to_owned();
    }
    match message.find("expected ") {
        Some(at) => {
            let rest = &message[at..];
            rest.split(" at line").next().unwrap_or(rest).to_owned()
        }
        None => "has a value that is not allowed".to_owned(),
    }
}

/// The problem of a body or query that is well-formed but not acceptable.
pub fn invalid(errors: &ValidationErrors) -> Problem {
    let mut problem = Problem::new(Code::Unacceptable, "the request is not acceptable");
    let mut found = Vec::new();
    collect(errors, "", &mut found);
    found.sort();
    for (field, message) in found {
        problem = problem.field(field, message);
    }
    problem
}

fn collect(errors: &ValidationErrors, prefix: &str, found: &mut Vec<(String, String)>) {
    for (name, kind) in errors.errors() {
        let path = if prefix.is_empty() {
            name.to_string()
        } else {
            format!("{prefix}.{name}")
        };
        match kind {
            ValidationErrorsKind::Field(list) => {
                for error in list {
                    let message = error.message.as_ref().map_or_else(
                        || format!("is not acceptable ({})", error.code),
                        ToString::to_string,
                    );
                    found.push((path.clone(), message));
                }
            }
            ValidationErrorsKind::Struct(inner) => collect(inner, &path, found),
            ValidationErrorsKind::List(items) => {
                for (i, inner) in items {
                    collect(inner, &format!("{path}[{i}]"), found);
                }
            }
        }
    }
}

/// Query parameters, parsed and validated.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T, S> FromRequestParts<S> for Params<T>
where
    T: DeserializeOwned + Validate,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::of(parts)
    }
}

impl<T: DeserializeOwned + Validate> Params<T> {
    /// Of this request.
    ///
    /// # Errors
    /// When a parameter is unknown, cannot be read, or is not acceptable.
    pub fn of(parts: &Parts) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        check_text(query)?;
        let pairs = serde_html_form::Deserializer::from_bytes(query.as_bytes());
        let value: T = serde_path_to_error::deserialize(pairs).map_err(|error| {
            let message = error.inner().to_string();
            let path = error.path().to_string();
            Problem::new(Code::InvalidParameter, "a query parameter cannot be read").field(
                field_at_fault(&path, &message, "query"),
                expectation(&message),
            )
        })?;
        value.validate().map_err(|errors| invalid(&errors))?;
        Ok(Self(value))
    }
}

/// Refuses what is not UTF-8: the parser would replace it without a word. And what is empty: it would take it for absent. Only what is
/// asked may be judged by its operation.
fn check_text(query: &str) -> Result<(), Problem> {
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if value.is_empty() && name != "query" {
            let name = percent_decode_str(name).decode_utf8_lossy();
            return Err(
                Problem::new(Code::InvalidParameter, "a query parameter has no value")
                    .field(name, "must not be empty"),
            );
        }
        let valid = |text: &str| percent_decode_str(text).decode_utf8().is_ok();
        if !valid(name) || !valid(value) {
            let name = percent_decode_str(name).decode_utf8_lossy();
            return Err(
                Problem::new(Code::InvalidParameter, "a query parameter cannot be read")
                    .field(name, "must be valid UTF-8"),
            );
        }
    }
    Ok(())
}

/// An id in the path.
#[derive(Debug)]
pub struct IdPath<T>(pub T);

impl<T, S> FromRequestParts<S> for IdPath<T>
where
    T: FromStr + Send,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = Path::<String>::from_request_parts(parts, state)
            .await
            .map(|Path(text)| text);
        text.ok()
            .and_then(|text| text.parse().ok())
            .map(Self)
            .ok_or_else(|| {
                Problem::new(Code::InvalidId, "the id in the path is not one")
                    .field("id", "must be a UUID")
            })
    }
}

/// For `validator`: refuses NUL, which PostgreSQL cannot store.
pub fn no_nul(text: &str) -> Result<(), validator::ValidationError> {
    if text.contains('\0') {
        let mut error = validator::ValidationError::new("nul");
        error.message = Some("must not contain the character U+0000".into());
        return Err(error);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, Validate)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[validate(length(min = 1, message = "must not be empty"))]
        text: String,
    }

    #[derive(Debug, Deserialize, Validate)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[validate(nested)]
        items: Vec<Inner>,
        #[validate(range(max = 9, message = "must be at most 9"))]
        count: Option<u8>,
    }

    fn problem(bytes: &[u8]) -> (Code, String, String) {
        let outcome = parse::<Outer>(bytes).and_then(|v| v.validate().map_err(|e| invalid(&e)));
        let problem = outcome.unwrap_err();
        let error = problem.errors()[0].clone();
        (problem.code(), error.field, error.message)
    }

    #[test]
    fn a_field_at_fault_is_named_by_its_path() {
        for (body, code, field, message) in [
            (
                &br#"{"items": [{"text": "x", "colour": 1}]}"#[..],
                Code::InvalidField,
                "items[0].colour",
                "is unknown",
            ),
            (
                br#"{"colour": 1, "items": []}"#,
                Code::InvalidField,
                "colour",
                "is unknown",
            ),
            (
                br#"{"items": [{"text": "x"}, {}]}"#,
                Code::InvalidField,
                "items[1].text",
                "is required",
            ),
            (br"{}", Code::InvalidField, "items", "is required"),
            (
                br#"{"items": [{"text": 17}]}"#,
                Code::InvalidField,
                "items[0].text",
                "expected a string",
            ),
            (
                br#"{"items": [], "items": []}"#,
                Code::InvalidField,
                "items",
                "is given twice",
            ),
            (
                br#"{"items": [], "count": 256}"#,
                Code::InvalidField,
                "count",
                "expected u8",
            ),
            (
                br#"{"items": [{"text": ""}]}"#,
                Code::Unacceptable,
                "items[0].text",
                "must not be empty",
            ),
        ] {
            let told = problem(body);
            assert_eq!(
                told,
                (code, field.to_owned(), message.to_owned()),
                "{}",
                String::from_utf8_lossy(body)
            );
        }
    }

    #[test]
    fn a_body_where_none_is_taken_has_no_fields() {
        for body in [&b"{}"[..], b" { }\n"] {
            assert!(without_fields(body).is_ok());
        }
        let refused = without_fields(br#"{"colour": 1, "size": {}}"#).unwrap_err();
        let told: Vec<_> = (refused.errors().iter())
            .map(|e| (e.field.as_str(), e.message.as_str()))
            .collect();
        assert_eq!(told, [("colour", "is unknown"), ("size", "is unknown")]);
        for body in [&b"{"[..], b"[]", b"null", b"{} {}", b"\xff"] {
            assert!(without_fields(body).is_err());
        }
    }

    #[test]
    fn text_that_is_no_text_is_malformed_and_its_field_named() {
        for body in [
            &br#"{"items": [{"text": "a\ud800b"}]}"#[..],
            b"{\"items\": [{\"text\": \"a\xffb\"}]}",
            b"{\"items\": [{\"text\": \"a\x00b\"}]}",
        ] {
            let (code, field, _) = problem(body);
            assert_eq!(
                (code, field.as_str()),
                (Code::MalformedBody, "items[0].text")
            );
        }
        for body in [&b""[..], b"{", b"[1]", b"null", b"{} {}"] {
            let outcome = parse::<Outer>(body).unwrap_err();
            assert!(
                matches!(outcome.code(), Code::MalformedBody | Code::InvalidField),
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn a_query_parameter_that_is_empty_or_not_utf8_is_refused_by_name() {
        assert!(check_text("query=%E4%BD%A0&x=%zz&query=").is_ok());
        for empty in ["limit=", "a=b&limit", "limit=&a=b"] {
            let refused = check_text(empty).unwrap_err();
            assert_eq!(
                (refused.code(), refused.errors()[0].field.as_str()),
                (Code::InvalidParameter, "limit"),
                "{empty}"
            );
        }
        let refused = check_text("a=b&query=%E4%BD").unwrap_err();
        assert_eq!(
            (refused.code(), refused.errors()[0].field.as_str()),
            (Code::InvalidParameter, "query")
        );
    }
}
