//! An answer of the API, and the rules that every problem document has to keep.

use reqwest::header::HeaderMap;
use serde_json::Value;

/// An answer, read to its end.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// The body as text.
    pub text: String,
    /// The body as JSON; null when it is none.
    pub body: Value,
}

impl Answer {
    pub(crate) async fn of(response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let bytes = response.bytes().await.expect("a body");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or_default();
        Self {
            status,
            headers,
            text,
            body,
        }
    }

    /// Fails the test unless the status is `expected`; gives the body.
    #[track_caller]
    pub fn expect(self, expected: u16) -> Value {
        assert_eq!(self.status, expected, "{}", self.text);
        self.body
    }

    /// The text of a header, or empty.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// Fails the test unless this is a whole problem document of this status; gives its code.
    #[track_caller]
    pub fn expect_problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{}",
            self.text
        );
        assert_eq!(self.body["status"], status, "{}", self.text);
        for field in ["type", "title", "detail", "code", "request_id"] {
            let text = self.body[field]
                .as_str()
                .unwrap_or_else(|| panic!("no {field} in {}", self.text));
            assert!(!text.is_empty(), "an empty {field} in {}", self.text);
        }
        assert_eq!(
            self.body["request_id"],
            self.header("x-request-id"),
            "{}",
            self.text
        );
        let code = self.body["code"].as_str().unwrap_or_default();
        assert!(
            code.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
            "code {code:?} is not snake_case"
        );
        code.to_owned()
    }

    /// Like [`Self::expect_problem`], and one of `errors` names `field` (or a part of it, as in `messages[0].role`).
    #[track_caller]
    pub fn expect_problem_with(&self, status: u16, field: &str) -> String {
        let code = self.expect_problem(status);
        let errors = self.body["errors"].as_array().cloned().unwrap_or_default();
        let named = errors.iter().any(|error| {
            error["field"]
                .as_str()
                .is_some_and(|name| name.contains(field))
        });
        assert!(named, "no error names {field:?}: {}", self.text);
        assert!(
            errors.iter().all(|error| error["message"].is_string()),
            "{}",
            self.text
        );
        code
    }
}
