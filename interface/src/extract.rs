//! What operations take from a request, and the problems of what cannot be taken.

use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tidemark_application::ports::store::Idempotency;
use tidemark_domain::ids::{Owner, TenantId, UserName};
use validator::{Validate, ValidationErrors, ValidationErrorsKind};

use crate::app::App;
use crate::problem::{Code, Problem};

/// The largest body: 1 MiB.
pub const MAX_BODY: usize = 1 << 20;

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

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(unsupported_media_type());
        }
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|rejection| unreadable(&rejection))?;
        let value = parse::<T>(&bytes)?;
        value.validate().map_err(|errors| invalid(&errors))?;
        Ok(Self {
            value,
            hash: Sha256::digest(&bytes).into(),
        })
    }
}

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

fn unreadable(rejection: &BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        Problem::new(Code::BodyTooLarge, "the body is larger than 1 MiB")
    } else {
        Problem::new(Code::MalformedBody, "the body could not be read")
    }
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
    let field = unknown_field(&message).unwrap_or(if path == "." { "body" } else { path });
    match error.classify() {
        serde_json::error::Category::Data => {
            Problem::new(Code::InvalidField, "a field cannot be read").field(field, expectation(&message))
        }
        _ => Problem::new(Code::MalformedBody, "the body is not valid JSON").field(
            field,
            format!("not valid at line {}, column {}", error.line(), error.column()),
        ),
    }
}

fn unknown_field(message: &str) -> Option<&str> {
    message.strip_prefix("unknown field `")?.split('`').next()
}

fn expectation(message: &str) -> String {
    if message.starts_with("unknown field") {
        return "is unknown".to_owned();
    }
    if let Some(rest) = message.strip_prefix("missing field") {
        return format!("missing field{}", rest.split(" at line").next().unwrap_or_default());
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
        let pairs = serde_html_form::Deserializer::from_bytes(query.as_bytes());
        let value: T = serde_path_to_error::deserialize(pairs).map_err(|error| {
            let message = error.inner().to_string();
            let path = error.path().to_string();
            let field = unknown_field(&message).unwrap_or(if path == "." { "query" } else { &path });
            Problem::new(Code::InvalidParameter, "a query parameter cannot be read")
                .field(field, expectation(&message))
        })?;
        value.validate().map_err(|errors| invalid(&errors))?;
        Ok(Self(value))
    }
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
                Problem::new(Code::InvalidId, "the id in the path is not one").field("id", "must be a UUID")
            })
    }
}

/// Who asks. Without authentication the header names the user of the one tenant.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Whose data the request is about.
    pub owner: Owner,
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let user = match parts.headers.get("x-tidemark-user") {
            None => UserName::default_user(),
            Some(value) => value
                .to_str()
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| {
                    Problem::new(Code::InvalidHeader, "the user is not named properly").field(
                        "X-Tidemark-User",
                        "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : @ -",
                    )
                })?,
        };
        let owner = app.owners.resolve(TenantId::DEFAULT, user).await?;
        Ok(Self { owner })
    }
}

/// The idempotency key of a creating request.
#[derive(Debug)]
pub struct IdempotencyKey {
    key: Option<String>,
    operation: String,
}

impl IdempotencyKey {
    /// With the hash of the body that came with it.
    pub fn with_body(self, hash: [u8; 32]) -> Option<Idempotency> {
        self.key.map(|key| Idempotency {
            key,
            operation: self.operation,
            body_hash: hash,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let key = match parts.headers.get("idempotency-key") {
            None => None,
            Some(value) => Some(
                value
                    .to_str()
                    .ok()
                    .filter(|v| (1..=255).contains(&v.len()) && v.bytes().all(|b| b.is_ascii_graphic()))
                    .map(ToOwned::to_owned)
                    .ok_or_else(|| {
                        Problem::new(Code::InvalidHeader, "the idempotency key is not one")
                            .field("Idempotency-Key", "must be 1 to 255 visible ASCII characters")
                    })?,
            ),
        };
        Ok(Self {
            key,
            operation: format!("{} {}", parts.method, parts.uri.path()),
        })
    }
}

/// The version named by `If-Match`; none when there is no such header or it is `*`.
#[derive(Clone, Copy, Debug)]
pub struct IfMatch(pub Option<i64>);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(header::IF_MATCH) else {
            return Ok(Self(None));
        };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(Self(None));
        }
        let version = text
            .strip_prefix('"')
            .and_then(|t| t.strip_suffix('"'))
            .and_then(|t| t.parse().ok());
        // A tag that this server never gave matches nothing: stale, not malformed.
        Ok(Self(Some(version.unwrap_or(-1))))
    }
}

/// The entity tag of a version.
pub fn entity_tag(version: i64) -> String {
    format!("\"{version}\"")
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
