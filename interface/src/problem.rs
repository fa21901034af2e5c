//! Every error that leaves the server: RFC 9457 problem documents, from one table of codes.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::request_id;

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request has to change.
    Caller,
    /// A defect of this server.
    Ours,
    /// Something that this server needs is away or slow.
    Dependency,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident => $code:literal, $status:ident, $title:literal, $fault:ident;)+) => {
        /// The stable codes of errors.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($(#[doc = $doc])+ $variant),+ }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// As it is on the wire.
            pub fn as_str(self) -> &'static str { match self { $(Self::$variant => $code),+ } }

            /// The HTTP status.
            pub fn status(self) -> StatusCode { match self { $(Self::$variant => StatusCode::$status),+ } }

            /// A short name for people.
            pub fn title(self) -> &'static str { match self { $(Self::$variant => $title),+ } }

            /// Whose fault it is.
            pub fn fault(self) -> Fault { match self { $(Self::$variant => Fault::$fault),+ } }

            /// When it is given, and what to do; for `docs/errors.md`.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii()),+ }
            }
        }
    };
}

codes! {
    /// The body is not JSON, or its text is not Unicode.
    MalformedBody => "malformed_body", BAD_REQUEST, "Malformed body", Caller;
    /// A field is unknown or has another type; `errors` names it.
    InvalidField => "invalid_field", BAD_REQUEST, "Invalid field", Caller;
    /// A query parameter is unknown or cannot be read; `errors` names it.
    InvalidParameter => "invalid_parameter", BAD_REQUEST, "Invalid parameter", Caller;
    /// A header cannot be read; `errors` names it.
    InvalidHeader => "invalid_header", BAD_REQUEST, "Invalid header", Caller;
    /// An id in the path is no UUID.
    InvalidId => "invalid_id", BAD_REQUEST, "Invalid id", Caller;
    /// A list cursor that this server did not give for this list.
    InvalidCursor => "invalid_cursor", BAD_REQUEST, "Invalid cursor", Caller;
    /// A stream position of another turn, or beyond the end of the turn.
    InvalidPosition => "invalid_position", BAD_REQUEST, "Invalid stream position", Caller;
    /// No key or token was given, or one that is not valid, has expired or was revoked; `WWW-Authenticate` says which kind is wanted.
    Unauthenticated => "unauthenticated", UNAUTHORIZED, "Unauthenticated", Caller;
    /// The key or token lacks the scope that the operation needs; `errors` names it.
    InsufficientScope => "insufficient_scope", FORBIDDEN, "Insufficient scope", Caller;
    /// The key or token is bound to one user, and `X-Tidemark-User` names another.
    UserNotAllowed => "user_not_allowed", FORBIDDEN, "User not allowed", Caller;
    /// The token of the identity provider is good, but names no tenant that is here or no user that can be one; `errors` names the claim.
    UnknownIdentity => "unknown_identity", FORBIDDEN, "Unknown identity", Caller;
    /// The Host or Origin is not one that may use this server. Without authentication, and by the cookie of a page, only pages of this server itself may.
    ForbiddenOrigin => "forbidden_origin", FORBIDDEN, "Forbidden origin", Caller;
    /// There is nothing at this address, or it is not yours.
    NotFound => "not_found", NOT_FOUND, "Not found", Caller;
    /// The address knows other methods; see `Allow`.
    MethodNotAllowed => "method_not_allowed", METHOD_NOT_ALLOWED, "Method not allowed", Caller;
    /// Another turn of the session is open, and the request does not go together with that.
    SessionBusy => "session_busy", CONFLICT, "Session busy", Caller;
    /// A change of this kind cannot be undone: what was forgotten is gone, and a reversal is undone by saying it anew.
    NotRevertible => "not_revertible", CONFLICT, "Not revertible", Caller;
    /// What the change touched was changed since, and to undo it would undo that too; revert the later changes first.
    ChangedSince => "changed_since", CONFLICT, "Changed since", Caller;
    /// The resource has changed since the entity tag was given.
    StaleVersion => "stale_version", PRECONDITION_FAILED, "Stale version", Caller;
    /// The body did not come in time.
    BodyTimeout => "body_timeout", REQUEST_TIMEOUT, "Body timeout", Caller;
    /// The body is larger than 1 MiB.
    BodyTooLarge => "body_too_large", PAYLOAD_TOO_LARGE, "Body too large", Caller;
    /// The body is not declared as `application/json`.
    UnsupportedMediaType => "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "Unsupported media type", Caller;
    /// The request is well-formed but not acceptable; `errors` names the fields.
    Unacceptable => "unacceptable", UNPROCESSABLE_ENTITY, "Unacceptable", Caller;
    /// The idempotency key was used with another body.
    IdempotencyMismatch => "idempotency_mismatch", UNPROCESSABLE_ENTITY, "Idempotency mismatch", Caller;
    /// The session's queue is full; wait as long as `Retry-After` says.
    QueueFull => "queue_full", TOO_MANY_REQUESTS, "Queue full", Caller;
    /// The tenant, the key or the user has made as many requests in a minute as each may; `RateLimit` says which, and `Retry-After` how long to wait.
    TooManyRequests => "too_many_requests", TOO_MANY_REQUESTS, "Too many requests", Caller;
    /// Too many turns of this user, this key or this tenant are open; wait as long as `Retry-After` says.
    TooManyTurns => "too_many_turns", TOO_MANY_REQUESTS, "Too many turns", Caller;
    /// The turns of this user, this key or this tenant have used the tokens of the day; `Retry-After` says how long it is until the next, in UTC.
    TooManyTokens => "too_many_tokens", TOO_MANY_REQUESTS, "Too many tokens", Caller;
    /// A defect of this server; the request id finds it in the log.
    Internal => "internal", INTERNAL_SERVER_ERROR, "Internal error", Ours;
    /// As many turns are open as this server takes; try again later or elsewhere.
    Overloaded => "overloaded", SERVICE_UNAVAILABLE, "Overloaded", Dependency;
    /// The server is going down; try again.
    ShuttingDown => "shutting_down", SERVICE_UNAVAILABLE, "Shutting down", Dependency;
    /// The store cannot be reached; try again later.
    StoreUnavailable => "store_unavailable", SERVICE_UNAVAILABLE, "Store unavailable", Dependency;
    /// Whether the token is good cannot be known: the identity provider's keys cannot be read. API keys are good meanwhile; try again as `Retry-After` says.
    IdentityProviderUnavailable => "identity_provider_unavailable", SERVICE_UNAVAILABLE, "Identity provider unavailable", Dependency;
    /// The user was erased while the request was on its way, and nothing was stored. Whoever asks again is a new user.
    UserErased => "user_erased", SERVICE_UNAVAILABLE, "User erased", Dependency;
    /// The outcome is unknown: look whether it happened, or repeat with the same idempotency key.
    OutcomeUnknown => "outcome_unknown", SERVICE_UNAVAILABLE, "Outcome unknown", Dependency;
}

impl Code {
    /// The URI of this kind of problem.
    fn uri(self) -> String {
        format!("urn:tidemark:problem:{}", self.as_str())
    }
}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// The field, as a path such as `items[2].content`; a query parameter or header by its name.
    #[schema(examples("message"))]
    pub field: String,
    /// What is wrong with it.
    #[schema(examples("must not be empty"))]
    pub message: String,
}

/// A problem document (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    /// A URI that names the kind of problem.
    #[serde(rename = "type")]
    #[schema(examples("urn:tidemark:problem:not_found"))]
    pub kind: String,
    /// A short name for people.
    #[schema(examples("Not found"))]
    pub title: String,
    /// The HTTP status.
    #[schema(examples(404))]
    pub status: u16,
    /// What happened, in one sentence.
    #[schema(examples("there is no such session"))]
    pub detail: String,
    /// Stable, for programs.
    #[schema(examples("not_found"))]
    pub code: String,
    /// Finds the request in the log.
    #[schema(examples("0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d9e"))]
    pub request_id: String,
    /// The fields at fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<FieldError>,
}

impl ProblemDocument {
    /// What a code looks like, for the document.
    pub fn example(code: Code) -> Self {
        Self {
            kind: code.uri(),
            title: code.title().to_owned(),
            status: code.status().as_u16(),
            detail: code.explanation().to_owned(),
            code: code.as_str().to_owned(),
            request_id: "0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d9e".to_owned(),
            errors: Vec::new(),
        }
    }
}

/// An error on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    code: Code,
    detail: String,
    errors: Vec<FieldError>,
    retry_after_ms: Option<u64>,
    challenge: Option<String>,
    limit: Option<&'static str>,
}

impl Problem {
    /// Of that code.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            errors: Vec::new(),
            retry_after_ms: None,
            challenge: None,
            limit: None,
        }
    }

    /// There is no such thing.
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no such {what}"))
    }

    /// A well-formed field that is not acceptable.
    pub fn unacceptable(field: &str, message: impl Into<String>) -> Self {
        Self::new(Code::Unacceptable, "the request is not acceptable").field(field, message)
    }

    /// Names a field at fault.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>, message: impl Into<String>) -> Self {
        self.errors.push(FieldError {
            field: field.into(),
            message: message.into(),
        });
        self
    }

    /// Says when to try again.
    #[must_use]
    pub fn retry_after_ms(mut self, ms: u64) -> Self {
        self.retry_after_ms = Some(ms);
        self
    }

    /// Says in `WWW-Authenticate` what would have to be shown.
    #[must_use]
    pub fn challenge(mut self, challenge: String) -> Self {
        self.challenge = Some(challenge);
        self
    }

    /// Names the setting of `limits` that it is refused by, for the metrics.
    #[must_use]
    pub fn by_limit(mut self, setting: &'static str) -> Self {
        self.limit = Some(setting);
        self
    }

    /// Its code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The fields at fault.
    pub fn errors(&self) -> &[FieldError] {
        &self.errors
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.code.status();
        let document = ProblemDocument {
            kind: self.code.uri(),
            title: self.code.title().to_owned(),
            status: status.as_u16(),
            detail: self.detail,
            code: self.code.as_str().to_owned(),
            request_id: request_id::current(),
            errors: self.errors,
        };
        metrics::counter!("tidemark_problems_total", "code" => self.code.as_str()).increment(1);
        if let Some(setting) = self.limit {
            metrics::counter!("tidemark_limited_total", "limit" => setting).increment(1);
        }
        let mut response = (status, Json(document)).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(ms) = self.retry_after_ms {
            // Retry-After counts whole seconds; the exact number is beside it.
            headers.insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000)));
            headers.insert("retry-after-ms", HeaderValue::from(ms));
        }
        let challenge = self.challenge.map(HeaderValue::try_from);
        if let Some(Ok(challenge)) = challenge {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    #[test]
    fn every_code_is_unique_and_explained() {
        let names: BTreeSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        assert!(Code::ALL.iter().all(|c| !c.explanation().is_empty()));
    }

    #[test]
    fn only_defects_of_ours_are_500() {
        for code in Code::ALL {
            assert_eq!(
                code.fault() == Fault::Ours,
                code.status() == StatusCode::INTERNAL_SERVER_ERROR
            );
            assert_eq!(
                code.fault() == Fault::Dependency,
                code.status() == StatusCode::SERVICE_UNAVAILABLE
            );
        }
    }

    #[test]
    fn the_documented_table_is_the_table_in_use() {
        let mut table = String::from(
            "# Errors\n\nEvery error is an `application/problem+json` document with one of these codes. The table is generated.\n\n\
             | code | status | when |\n|---|---|---|\n",
        );
        for code in Code::ALL {
            let _ = writeln!(
                table,
                "| `{}` | {} | {} |",
                code.as_str(),
                code.status().as_u16(),
                code.explanation()
            );
        }
        table.push_str(crate::http::turns::PROBLEM_CODES);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/errors.md");
        if std::env::var_os("TIDEMARK_UPDATE").is_some() {
            std::fs::write(path, &table).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(path).unwrap(),
            table,
            "run with TIDEMARK_UPDATE=1"
        );
    }
}
