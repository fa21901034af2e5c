//! The operations of the document, each with a request that would be accepted.

use std::path::PathBuf;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::server::repository;

/// Things that requests name.
#[derive(Debug, Clone)]
pub(crate) struct Things {
    pub(crate) session: String,
    pub(crate) turn: String,
    pub(crate) memory: String,
    pub(crate) change: String,
    pub(crate) job: String,
    pub(crate) user: String,
}

impl Things {
    /// Things that are nowhere.
    pub(crate) fn nowhere() -> Self {
        let id = || uuid::Uuid::now_v7().to_string();
        Self {
            session: id(),
            turn: id(),
            memory: id(),
            change: id(),
            job: id(),
            user: "nobody-of-that-name".to_owned(),
        }
    }
}

/// An operation of the document.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) method: Method,
    pub(crate) template: String,
    /// The scope that the document says it needs.
    pub(crate) scope: Option<String>,
    has_body: bool,
}

/// Every operation of the document in the repository.
pub(crate) fn operations() -> Vec<Operation> {
    let path: PathBuf = repository().join("openapi/tidemark.json");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut all = Vec::new();
    for (template, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            let security = operation["security"]
                .as_array()
                .unwrap_or_else(|| panic!("{id} does not say what it needs"));
            let scope = security.first().map(|one| {
                let scopes = one["key"].as_array().unwrap();
                assert_eq!(scopes.len(), 1, "{id}");
                scopes[0].as_str().unwrap().to_owned()
            });
            let body = operation.pointer("/requestBody/content/application~1json/schema/$ref");
            let body = body.and_then(Value::as_str);
            all.push(Operation {
                id,
                method: method.to_uppercase().parse().unwrap(),
                template: template.clone(),
                scope,
                has_body: body.is_some_and(|name| !name.ends_with("/NoFields")),
            });
        }
    }
    assert!(all.len() > 25, "{}", all.len());
    all
}

impl Operation {
    /// It is about one thing, which its path names.
    pub(crate) fn names_a_thing(&self) -> bool {
        self.template.contains('{')
    }

    /// Lists things, or looks for them.
    pub(crate) fn lists(&self) -> bool {
        !self.names_a_thing()
            && (self.method == Method::GET || self.id == "recall_memories")
            && self.id != "chat_stream"
            && self.template.starts_with("/v1/")
    }

    /// Its path for these things. A new resource needs its line here.
    pub(crate) fn path(&self, things: &Things) -> String {
        let resource = self.template.split('/').nth(2).unwrap_or_default();
        let id = match resource {
            "sessions" => &things.session,
            "turns" => &things.turn,
            "memories" => &things.memory,
            "changes" => &things.change,
            "jobs" => &things.job,
            "users" => &things.user,
            _ if self.names_a_thing() => panic!("{} names something unknown", self.id),
            _ => "",
        };
        let path = self.template.replace("{id}", id);
        match self.id.as_str() {
            "chat_stream" => format!("{path}?query=x&session_id={}", things.session),
            _ => path,
        }
    }

    /// A body that would be accepted. A new operation with a body needs its line here.
    fn body(&self) -> Option<Value> {
        let body = match self.id.as_str() {
            "create_session" => json!({}),
            "login" => json!({"key": "x"}),
            "update_session" => json!({"title": "taken"}),
            "import_messages" => {
                json!({"messages": [{"role": "user", "content": "planted", "created_at": "2025-01-01T00:00:00Z"}]})
            }
            "create_turn" => json!({"message": "planted"}),
            "create_memories" => json!({"content": "The tower is blue."}),
            "update_memory" => json!({"content": "taken"}),
            "recall_memories" => json!({"query": "Where is the vault?"}),
            id if self.has_body => panic!("no body is known for {id}"),
            _ if self.method == Method::POST => json!({}),
            _ => return None,
        };
        Some(body)
    }

    /// The request.
    pub(crate) fn request(&self, client: &Client, things: &Things) -> RequestBuilder {
        let request = client.request(self.method.clone(), &self.path(things));
        match self.body() {
            Some(body) => request.json(&body),
            None => request,
        }
    }
}
