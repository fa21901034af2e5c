//! One scenario played against a server.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::judgement::{self, Area, Seen};
use super::report::{Failure, Outcome};
use super::scenario::{Past, Scenario, Step};
use crate::cli::api::{self, Api, ApiError, PastMessage};

/// How long derived work may take, a model's included.
const SETTLE_LIMIT: Duration = Duration::from_mins(5);

/// How long an answer is waited for.
const ANSWER_SECONDS: u64 = 110;

/// Who does what nobody is named for.
const SOMEBODY: &str = "ann";

/// The users and sessions of one scenario.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    api: &'a Api,
    /// Makes these users no others.
    mark: String,
    users: BTreeSet<String>,
    /// By user and the scenario's name for it.
    sessions: HashMap<(String, String), String>,
    /// The memories of each user when a change was last looked at.
    areas: HashMap<String, Area>,
}

impl<'a> Stage<'a> {
    /// An empty one for the scenario of that number.
    pub(super) fn new(api: &'a Api, number: usize) -> Self {
        let mark = &Uuid::new_v4().simple().to_string()[..12];
        Self {
            api,
            mark: format!("eval-{mark}-{number}"),
            users: BTreeSet::new(),
            sessions: HashMap::new(),
            areas: HashMap::new(),
        }
    }

    /// Plays all steps, whatever fails; a request that is refused ends it.
    pub(super) async fn play(&mut self, scenario: &Scenario) -> Outcome {
        let begun = Instant::now();
        let mut failures = Vec::new();
        for (number, step) in (1..).zip(&scenario.steps) {
            let failed = |reason| Failure {
                step: number,
                action: step.title(),
                reason,
            };
            match self.step(step).await {
                Ok(reasons) => failures.extend(reasons.into_iter().map(failed)),
                Err(error) => {
                    failures.push(failed(error.to_string()));
                    break;
                }
            }
        }
        Outcome::new(scenario, failures, begun.elapsed())
    }

    /// Removes everything that its users were told.
    pub(super) async fn clear(&self) -> Result<(), ApiError> {
        for user in &self.users {
            self.api.clear(user).await?;
        }
        Ok(())
    }

    /// Does it; gives what was not as expected.
    async fn step(&mut self, step: &Step) -> Result<Vec<String>, ApiError> {
        let user = format!("{}-{}", self.mark, step.user.as_deref().unwrap_or(SOMEBODY));
        self.users.insert(user.clone());
        let mut seen = Seen::default();
        let mut reasons = Vec::new();
        if let Some(message) = &step.say {
            seen = self.say(&user, message, step).await?;
        } else if let Some(messages) = &step.import {
            self.import(&user, messages, step).await?;
        } else if let Some(content) = &step.remember {
            self.remember(&user, content, step).await?;
        } else if let Some(query) = &step.recall {
            seen = self.recall(&user, query, step).await?;
        } else if let (Some(text), Some(content)) = (&step.edit, &step.to) {
            reasons.extend(self.edit(&user, text, content).await?);
        } else if let Some(text) = &step.confirm {
            reasons.extend(self.confirm(&user, text).await?);
        } else if let Some(text) = &step.forget {
            self.forget(&user, text).await?;
        } else if let Some(name) = &step.delete_session {
            let id = self.session(&user, Some(name)).await?;
            self.api.delete_session(&user, &id).await?;
        } else {
            self.api.settle(SETTLE_LIMIT).await?;
        }
        let expect = &step.expect;
        reasons.extend(judgement::of_telling(expect, &seen));
        if !expect.memories.is_empty() || expect.change.is_some() {
            let area = Area::of(&self.api.memories(&user).await?);
            reasons.extend(judgement::of_counts(&expect.memories, &area));
            if let Some(change) = &expect.change {
                let before = self.areas.remove(&user).unwrap_or_default();
                reasons.extend(judgement::of_change(change, &before, &area));
                self.areas.insert(user, area);
            }
        }
        Ok(reasons)
    }

    /// The session of that name, made when it is new; without a name a new one.
    async fn session(&mut self, user: &str, name: Option<&str>) -> Result<String, ApiError> {
        let Some(name) = name else {
            return self.api.create_session(user, "eval").await;
        };
        let key = (user.to_owned(), name.to_owned());
        if let Some(id) = self.sessions.get(&key) {
            return Ok(id.clone());
        }
        let id = self.api.create_session(user, name).await?;
        self.sessions.insert(key, id.clone());
        Ok(id)
    }

    async fn say(&mut self, user: &str, message: &str, step: &Step) -> Result<Seen, ApiError> {
        let session = self.session(user, step.session.as_deref()).await?;
        let mut body = json!({ "message": message });
        if let Some(memory) = &step.memory {
            body["memory"] = json!(memory);
        }
        let path = format!("/v1/sessions/{session}/turns");
        let turn = self
            .api
            .post_waiting(user, &path, &body, ANSWER_SECONDS)
            .await?;
        let status = turn["status"].as_str().unwrap_or_default();
        if status != "completed" {
            return Err(ApiError::Unfinished {
                status: status.to_owned(),
                problem: turn["problem"].to_string(),
            });
        }
        let memories = turn["memories"].as_array().cloned().unwrap_or_default();
        let by_relevance = memories.iter().any(|m| m["via"] == "relevance");
        Ok(Seen {
            answer: api::text(&turn, "text", "the turn")?,
            recalled: contents(memories.iter()),
            abstained: !by_relevance,
        })
    }

    async fn recall(&self, user: &str, query: &str, step: &Step) -> Result<Seen, ApiError> {
        let mut body = json!({ "query": query });
        if let Some(time) = step.as_of {
            body["as_of"] = json!(time);
        }
        let recalled = self.api.recall(user, &body).await?;
        let items = recalled["items"].as_array().cloned().unwrap_or_default();
        Ok(Seen {
            answer: String::new(),
            recalled: contents(items.iter().map(|item| &item["memory"])),
            abstained: items.is_empty() && recalled["abstained"] == true,
        })
    }

    async fn import(&mut self, user: &str, past: &[Past], step: &Step) -> Result<(), ApiError> {
        let session = self.session(user, step.session.as_deref()).await?;
        let messages: Vec<PastMessage> = past.iter().flat_map(written_out).collect();
        self.api.import(user, &session, &messages).await?;
        Ok(())
    }

    async fn remember(&self, user: &str, content: &str, step: &Step) -> Result<(), ApiError> {
        let mut body = Map::new();
        body.insert("content".to_owned(), json!(content));
        for (name, value) in [
            ("scope", &step.scope),
            ("kind", &step.kind),
            ("key", &step.key),
        ] {
            if let Some(value) = value {
                body.insert(name.to_owned(), json!(value));
            }
        }
        if let Some(time) = step.valid_from {
            body.insert("valid_from".to_owned(), json!(time));
        }
        let path = "/v1/memories";
        self.api.post(user, path, &Value::Object(body)).await?;
        Ok(())
    }

    /// Why it was not done, when no memory that holds now holds the text, or several do.
    async fn edit(
        &self,
        user: &str,
        text: &str,
        content: &str,
    ) -> Result<Option<String>, ApiError> {
        let area = Area::of(&self.api.memories(user).await?);
        let [memory] = area.current(text)[..] else {
            return Ok(Some(format!("not one memory alone holds {text:?} now")));
        };
        let path = format!("/v1/memories/{memory}");
        let body = json!({ "content": content });
        self.api
            .call(Method::PATCH, user, &path, Some(&body))
            .await?;
        Ok(None)
    }

    /// Why it was not done, when no memory that holds the text waits.
    async fn confirm(&self, user: &str, text: &str) -> Result<Option<String>, ApiError> {
        let area = Area::of(&self.api.memories(user).await?);
        let waiting = area.waiting(text);
        let body = json!({ "state": "current" });
        for memory in &waiting {
            let path = format!("/v1/memories/{memory}");
            self.api
                .call(Method::PATCH, user, &path, Some(&body))
                .await?;
        }
        let none = || format!("no memory that holds {text:?} waits for confirmation");
        Ok(waiting.is_empty().then(none))
    }

    async fn forget(&self, user: &str, text: &str) -> Result<(), ApiError> {
        for memory in Area::of(&self.api.memories(user).await?).holding(text) {
            let path = format!("/v1/memories/{memory}");
            match self.api.call(Method::DELETE, user, &path, None).await {
                // It went with one that says the same.
                Err(ApiError::Refused { status: 404, .. }) => {}
                other => drop(other?),
            }
        }
        Ok(())
    }
}

/// A message, as often as it is wanted; repeated ones are numbered and a minute apart.
fn written_out(past: &Past) -> Vec<PastMessage> {
    let (role, text) = match (&past.user, &past.assistant) {
        (Some(text), _) => ("user", text.as_str()),
        (None, text) => ("assistant", text.as_deref().unwrap_or_default()),
    };
    let times = past.times.unwrap_or(1);
    (0..times)
        .map(|at| PastMessage {
            role,
            content: if past.times.is_some() {
                format!("{text} ({})", at + 1)
            } else {
                text.to_owned()
            },
            name: None,
            created_at: past.at + TimeDelta::minutes(i64::from(at)),
        })
        .collect()
}

fn contents<'v>(memories: impl Iterator<Item = &'v Value>) -> Vec<String> {
    memories
        .map(|m| m["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}
