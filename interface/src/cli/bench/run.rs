//! Conversations told to a server, and questions asked of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::error::Error;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Roles;
use super::data::{Conversation, Data, Question};
use super::names;
use crate::cli::api::{self, Api, ApiError};
use crate::cli::tell;

/// How long derived work may take after the import; embedding tens of thousands of messages in process takes minutes.
const SETTLE_LIMIT: Duration = Duration::from_hours(1);

/// So much of the prompt that no memory is left out for want of room.
const ALL_TOKENS: u32 = 100_000;

/// How it is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) top_k: u32,
    pub(super) roles: Roles,
}

/// What recall gave for a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// The turns that the memories came from, best first, each once, with the score of its best memory.
    pub(super) ranked: Vec<(String, f64)>,
    /// How sure recall was that it holds an answer: its confidence where it gives one, else the best score, 0 without any.
    pub(super) sureness: f64,
    /// Whether anything was recalled at the server's own threshold.
    pub(super) recalled: bool,
    /// What the client waited for.
    pub(super) latency: Duration,
}

/// All answers.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// By the question's id, in the order they were asked.
    pub(super) questions: Vec<(String, Answer)>,
    /// To questions of one conversation asked of another, about its own speakers: nothing is to be recalled.
    pub(super) negatives: Vec<Answer>,
    /// Arms that failed, with how many recalls lacked them.
    pub(super) degraded: BTreeMap<String, usize>,
}

/// The conversations as a server knows them.
#[derive(Debug)]
pub(super) struct World<'a> {
    api: &'a Api,
    plan: Plan,
    /// Makes the users of this run no others.
    mark: String,
    known: HashMap<String, Known>,
}

/// A conversation as a server knows it.
#[derive(Debug, Default)]
struct Known {
    user: String,
    /// Message to turn.
    turns: HashMap<String, String>,
    end: DateTime<Utc>,
}

impl<'a> World<'a> {
    /// Nothing is told yet.
    pub(super) fn new(api: &'a Api, plan: Plan) -> Self {
        Self {
            api,
            plan,
            mark: Uuid::new_v4().simple().to_string()[..12].to_owned(),
            known: HashMap::new(),
        }
    }

    /// Tells each conversation as a user of its own; gives how many messages that were.
    pub(super) async fn import(&mut self, data: &Data) -> Result<usize, ApiError> {
        let mut count = 0;
        for (number, conversation) in data.conversations.iter().enumerate() {
            let user = self.user(number);
            let known = self.known.entry(conversation.id.clone()).or_default();
            known.user = user;
            known.end = conversation.end().unwrap_or_default();
            let first = match self.plan.roles {
                Roles::Users => None,
                Roles::UserAndAssistant => conversation.speakers.first(),
            };
            for session in &conversation.sessions {
                let id = self.api.create_session(&known.user, &session.id).await?;
                let messages = session.messages(first.map(String::as_str));
                let ids = self.api.import(&known.user, &id, &messages).await?;
                count += ids.len();
                let turns = session.turns.iter().map(|t| t.id.clone());
                known.turns.extend(ids.into_iter().zip(turns));
            }
        }
        Ok(count)
    }

    /// Waits for the derived work.
    pub(super) async fn settle(&self) -> Result<(), ApiError> {
        self.api.settle(SETTLE_LIMIT).await?;
        let failed = self.api.failed_jobs().await?;
        if let Some(job) = failed.first() {
            tell(&format!(
                "tidemark: warning: {} jobs failed, so something may be missing; the newest: {job}",
                failed.len()
            ));
        }
        Ok(())
    }

    /// Asks all questions of their own conversations, and the answerable ones again of others.
    pub(super) async fn ask(&self, data: &Data) -> Result<Asked, Box<dyn Error>> {
        let mut asked = Asked::default();
        for question in &data.questions {
            let known = self.of(&question.conversation_id)?;
            let at = question.asked_at.unwrap_or(known.end);
            let answer = self
                .answer(known, &question.text, at, &mut asked.degraded)
                .await?;
            asked.questions.push((question.id.clone(), answer));
        }
        for (text, other) in negatives(data) {
            let known = self.of(&other.id)?;
            let answer = self
                .answer(known, &text, known.end, &mut asked.degraded)
                .await?;
            asked.negatives.push(answer);
        }
        Ok(asked)
    }

    fn of(&self, conversation: &str) -> Result<&Known, String> {
        self.known
            .get(conversation)
            .ok_or_else(|| format!("{conversation} was not imported"))
    }

    async fn answer(
        &self,
        known: &Known,
        question: &str,
        now: DateTime<Utc>,
        degraded: &mut BTreeMap<String, usize>,
    ) -> Result<Answer, ApiError> {
        let everything = json!({
            "query": question, "now": now, "top_k": self.plan.top_k, "min_score": 0, "token_budget": ALL_TOKENS,
        });
        let begun = Instant::now();
        let all = self.api.recall(&known.user, &everything).await?;
        let latency = begun.elapsed();
        for arm in all["degraded"].as_array().into_iter().flatten() {
            *degraded
                .entry(arm.as_str().unwrap_or_default().to_owned())
                .or_default() += 1;
        }
        let usual = json!({ "query": question, "now": now });
        let told = self.api.recall(&known.user, &usual).await?;
        Ok(Answer {
            ranked: ranked(&all, &known.turns)?,
            sureness: sureness(&all),
            recalled: told["items"]
                .as_array()
                .is_some_and(|items| !items.is_empty()),
            latency,
        })
    }

    /// Removes everything that was told.
    pub(super) async fn remove(&self) -> Result<(), ApiError> {
        for known in self.known.values() {
            self.api.clear(&known.user).await?;
        }
        Ok(())
    }

    /// The user that the conversation of that number is told as.
    pub(super) fn user(&self, number: usize) -> String {
        format!("bench-{}-{number}", self.mark)
    }
}

/// Answerable questions of each conversation, asked of the next one in its language about that one's speakers.
fn negatives(data: &Data) -> Vec<(String, &Conversation)> {
    let mut out = Vec::new();
    for (at, own) in data.conversations.iter().enumerate() {
        let mut others = data.conversations.iter().cycle().skip(at + 1);
        let other = others
            .by_ref()
            .take(data.conversations.len() - 1)
            .find(|c| c.lang == own.lang);
        let Some(other) = other else { continue };
        let of_own = |q: &&Question| q.conversation_id == own.id && !q.abstain;
        out.extend(data.questions.iter().filter(of_own).map(|q| {
            let text = names::replaced(&q.text, &own.speakers, &other.speakers);
            (text, other)
        }));
    }
    out
}

fn ranked(
    recalled: &Value,
    turns: &HashMap<String, String>,
) -> Result<Vec<(String, f64)>, ApiError> {
    let operation = "POST /v1/memories/recall";
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for item in recalled["items"].as_array().into_iter().flatten() {
        let score = item["score"].as_f64().ok_or_else(|| ApiError::Malformed {
            operation: operation.to_owned(),
            what: "score",
        })?;
        for source in item["memory"]["sources"].as_array().into_iter().flatten() {
            let message = api::text(source, "message_id", operation)?;
            if let Some(turn) = turns.get(&message)
                && seen.insert(turn)
            {
                out.push((turn.clone(), score));
            }
        }
    }
    Ok(out)
}

fn sureness(recalled: &Value) -> f64 {
    let best = || recalled["items"].as_array()?.first()?["score"].as_f64();
    recalled["confidence"].as_f64().or_else(best).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn memories_become_the_turns_they_came_from_each_once_in_the_order_of_the_first() {
        let item = |score: f64, messages: &[&str]| {
            let sources: Vec<_> = messages
                .iter()
                .map(|m| json!({ "message_id": m }))
                .collect();
            json!({ "score": score, "memory": { "sources": sources } })
        };
        let recalled = json!({ "items": [item(0.9, &["m2"]), item(0.8, &["m3", "m2", "m1"]), item(0.7, &[])] });
        let turns = [("m1", "D1:1"), ("m2", "D1:2")]
            .map(|(m, t)| (m.to_owned(), t.to_owned()))
            .into();
        assert_eq!(
            ranked(&recalled, &turns).unwrap(),
            [("D1:2".to_owned(), 0.9), ("D1:1".to_owned(), 0.8)]
        );
        assert!(ranked(&json!({ "items": [{}] }), &turns).is_err());
    }

    #[test]
    fn sureness_is_the_confidence_else_the_best_score_else_nothing() {
        let mut recalled = json!({ "items": [{ "score": 1.5 }, { "score": 1.0 }] });
        assert!((sureness(&recalled) - 1.5).abs() < f64::EPSILON);
        recalled["confidence"] = json!(0.3);
        assert!((sureness(&recalled) - 0.3).abs() < f64::EPSILON);
        assert!(sureness(&json!({ "items": [] })).abs() < f64::EPSILON);
    }

    #[test]
    fn a_negative_asks_another_conversation_of_the_language_about_its_own_people() {
        let conversation = |id: &str, lang: &str, speaker: &str| json!({ "id": id, "lang": lang, "speakers": [speaker], "sessions": [] });
        let question = |conversation: &str, text: &str, abstain: bool| json!({ "id": "q", "conversation_id": conversation, "question": text, "category": "x", "abstain": abstain });
        let data = Data {
            conversations: serde_json::from_value(json!([
                conversation("a", "en", "Ann"),
                conversation("z", "zh", "李雷"),
                conversation("b", "en", "Bo"),
            ]))
            .unwrap(),
            questions: serde_json::from_value(json!([
                question("a", "Where is Ann?", false),
                question("a", "Who is Ann?", true),
                question("z", "李雷在哪里？", false),
                question("b", "Where is Bo?", false),
            ]))
            .unwrap(),
        };
        let made: Vec<_> = negatives(&data)
            .into_iter()
            .map(|(text, other)| (text, other.id.as_str()))
            .collect();
        assert_eq!(
            made,
            [
                ("Where is Bo?".to_owned(), "b"),
                ("Where is Ann?".to_owned(), "a")
            ]
        );
    }
}
