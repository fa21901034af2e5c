//! What each operation needs of whoever asks: the one place that says so. A test fails while an operation of the document has no line here.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::http::Method;
use tidemark_domain::identity::Scope;

/// What an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: it tells nobody's data.
    Nothing,
    /// A key with this scope.
    Key(Scope),
    /// A key with this scope, or a ticket for the turn.
    KeyOrTicket(Scope),
    /// A key with the scope `admin` of the default tenant: it tells of the installation as a whole.
    Operator,
}

impl Need {
    /// The scope among it.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Self::Nothing => None,
            Self::Key(scope) | Self::KeyOrTicket(scope) => Some(scope),
            Self::Operator => Some(Scope::Admin),
        }
    }

    /// Whether a ticket will do.
    pub fn takes_ticket(self) -> bool {
        matches!(self, Self::KeyOrTicket(_))
    }
}

const CHAT: Need = Need::Key(Scope::Chat);
const READ: Need = Need::Key(Scope::MemoryRead);
const WRITE: Need = Need::Key(Scope::MemoryWrite);
const ADMIN: Need = Need::Key(Scope::Admin);

/// Methods with their paths, and what they need.
pub const OPERATIONS: &[(&str, &str, Need)] = &[
    ("GET", "/healthz", Need::Nothing),
    ("GET", "/readyz", Need::Nothing),
    ("GET", "/metrics", Need::Operator),
    ("GET", "/", Need::Nothing),
    ("GET", "/assets/{name}", Need::Nothing),
    ("GET", "/docs", Need::Nothing),
    ("GET", "/openapi.json", Need::Nothing),
    ("POST", "/v1/login", Need::Nothing),
    ("POST", "/v1/logout", Need::Nothing),
    ("GET", "/v1/sessions", CHAT),
    ("POST", "/v1/sessions", CHAT),
    ("GET", "/v1/sessions/{id}", CHAT),
    ("PATCH", "/v1/sessions/{id}", CHAT),
    ("DELETE", "/v1/sessions/{id}", CHAT),
    ("GET", "/v1/sessions/{id}/messages", CHAT),
    ("POST", "/v1/sessions/{id}/messages", CHAT),
    ("POST", "/v1/sessions/{id}/turns", CHAT),
    ("GET", "/v1/turns/{id}", CHAT),
    (
        "GET",
        "/v1/turns/{id}/events",
        Need::KeyOrTicket(Scope::Chat),
    ),
    ("POST", "/v1/turns/{id}/ticket", CHAT),
    ("POST", "/v1/turns/{id}/cancel", CHAT),
    ("GET", "/v1/chat/stream", CHAT),
    ("GET", "/v1/memories", READ),
    ("POST", "/v1/memories", WRITE),
    ("POST", "/v1/memories/recall", READ),
    ("GET", "/v1/memories/{id}", READ),
    ("PATCH", "/v1/memories/{id}", WRITE),
    ("DELETE", "/v1/memories/{id}", WRITE),
    ("GET", "/v1/memories/{id}/history", READ),
    ("GET", "/v1/changes", READ),
    ("POST", "/v1/changes/{id}/revert", WRITE),
    ("GET", "/v1/jobs", ADMIN),
    ("POST", "/v1/jobs/{id}/retry", ADMIN),
    ("DELETE", "/v1/jobs/{id}", ADMIN),
    ("POST", "/v1/users/{id}/export", ADMIN),
    ("DELETE", "/v1/users/{id}", ADMIN),
];

static BY_PATH: LazyLock<HashMap<&str, Vec<(&str, Need)>>> = LazyLock::new(|| {
    let mut by_path: HashMap<&str, Vec<(&str, Need)>> = HashMap::new();
    for (method, path, need) in OPERATIONS {
        by_path.entry(path).or_default().push((method, *need));
    }
    by_path
});

/// The methods of all operations, each once.
pub fn methods() -> Vec<Method> {
    let mut names: Vec<&str> = OPERATIONS.iter().map(|(method, ..)| *method).collect();
    names.sort_unstable();
    names.dedup();
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// Whether there is an address of that form, which knows some method.
pub fn is_known(path: &str) -> bool {
    BY_PATH.contains_key(path)
}

/// What is never refused for the number of requests: what follows or stops a turn that is there, and what watches over the installation.
const UNCOUNTED: [(&str, &str); 4] = [
    ("GET", "/v1/turns/{id}/events"),
    ("POST", "/v1/turns/{id}/ticket"),
    ("POST", "/v1/turns/{id}/cancel"),
    ("GET", "/metrics"),
];

/// Whether requests for the operation count against limits of requests. What tells nobody's data counts for nobody.
pub fn is_counted(method: &Method, path: &str) -> bool {
    let is_uncounted = UNCOUNTED
        .iter()
        .any(|(known, at)| *at == path && of_get(method) == *known);
    !is_uncounted && need(method, path).is_some_and(|need| need != Need::Nothing)
}

/// Headers alone are asked for as what they head is.
fn of_get(method: &Method) -> &str {
    if method == Method::HEAD {
        Method::GET.as_str()
    } else {
        method.as_str()
    }
}

/// What the operation needs; none where there is no such operation. Headers alone need what the whole answer does.
pub fn need(method: &Method, path: &str) -> Option<Need> {
    let method = of_get(method);
    let methods = BY_PATH.get(path)?;
    let found = methods.iter().find(|(known, _)| *known == method);
    found.map(|(_, need)| *need)
}

/// The same, of a method in any case, for the document.
pub fn declared(method: &str, path: &str) -> Option<Need> {
    let found = OPERATIONS
        .iter()
        .find(|(known, at, _)| known.eq_ignore_ascii_case(method) && *at == path);
    found.map(|(_, _, need)| *need)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Beside the operations of the document: its own address, and the pages.
    const PAGES: [&str; 4] = ["/", "/assets/{name}", "/docs", "/openapi.json"];

    #[test]
    fn every_operation_of_the_document_says_what_it_needs_and_nothing_else_does() {
        let document = crate::openapi::document().unwrap();
        let mut documented = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, _) in methods.as_object().unwrap() {
                documented.insert((method.to_uppercase(), path.clone()));
            }
        }
        let said: BTreeSet<_> = OPERATIONS
            .iter()
            .filter(|(_, path, _)| !PAGES.contains(path))
            .map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()))
            .collect();
        assert_eq!(said, documented);
        assert_eq!(OPERATIONS.len(), said.len() + PAGES.len());
    }

    #[test]
    fn only_what_tells_nobodys_data_needs_nothing() {
        let open: Vec<_> = OPERATIONS
            .iter()
            .filter(|(_, _, need)| *need == Need::Nothing)
            .map(|(method, path, _)| (*method, *path))
            .collect();
        let expected = [
            ("GET", "/healthz"),
            ("GET", "/readyz"),
            ("GET", "/"),
            ("GET", "/assets/{name}"),
            ("GET", "/docs"),
            ("GET", "/openapi.json"),
            ("POST", "/v1/login"),
            ("POST", "/v1/logout"),
        ];
        assert_eq!(open, expected);
    }

    #[test]
    fn what_is_not_counted_is_an_operation_and_everything_else_of_somebody_is() {
        for (method, path) in UNCOUNTED {
            assert!(declared(method, path).is_some(), "{method} {path}");
        }
        let counted = OPERATIONS
            .iter()
            .filter(|(method, path, _)| is_counted(&method.parse().unwrap(), path));
        let of_nobody = OPERATIONS
            .iter()
            .filter(|(_, _, need)| *need == Need::Nothing);
        assert_eq!(
            counted.count() + of_nobody.count() + UNCOUNTED.len(),
            OPERATIONS.len()
        );
        assert!(is_counted(&Method::HEAD, "/v1/memories"));
        assert!(!is_counted(&Method::HEAD, "/metrics"));
        assert!(!is_counted(&Method::PUT, "/v1/memories"));
    }

    #[test]
    fn what_an_operation_needs_is_found_by_its_method_and_path() {
        assert_eq!(need(&Method::GET, "/v1/memories"), Some(READ));
        assert_eq!(need(&Method::HEAD, "/v1/memories"), Some(READ));
        assert_eq!(need(&Method::POST, "/v1/memories"), Some(WRITE));
        assert_eq!(need(&Method::PUT, "/v1/memories"), None);
        assert_eq!(need(&Method::GET, "/v1/nothing"), None);
        assert_eq!(
            methods(),
            [Method::DELETE, Method::GET, Method::PATCH, Method::POST]
        );
        assert!(is_known("/v1/memories") && !is_known("/v1/nothing"));
    }
}
