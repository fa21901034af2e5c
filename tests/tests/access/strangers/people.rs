//! Who asks, and what each of them has.

use std::collections::HashMap;

use reqwest::Method;
use serde_json::{Value, json};
use tidemark_tests::answer::Answer;
use tidemark_tests::client::Client;
use tidemark_tests::paths::{chat_stream, events_of, id_of, messages_of, turns_of};
use tidemark_tests::random::Random;

/// What somebody has, for others to ask about.
#[derive(Debug, Default)]
pub(super) struct Things {
    pub(super) sessions: Vec<String>,
    pub(super) turns: Vec<String>,
    pub(super) memories: Vec<String>,
    pub(super) changes: Vec<String>,
    pub(super) messages: Vec<String>,
    pub(super) jobs: Vec<String>,
    pub(super) requests: Vec<String>,
    pub(super) cursors: Vec<String>,
    pub(super) tickets: Vec<String>,
    pub(super) tags: Vec<String>,
    /// Idempotency keys.
    pub(super) retry_keys: Vec<String>,
    /// Words of texts. Beside each stands another that is in no request of anybody else.
    pub(super) words: Vec<String>,
    /// Keys of memories.
    pub(super) keys: Vec<String>,
}

/// A principal.
#[derive(Debug)]
pub(super) struct Person {
    pub(super) client: Client,
    pub(super) tenant: &'static str,
    pub(super) user: String,
    /// Sees the jobs of the tenant, exports and erases its users.
    pub(super) admin: bool,
    /// May name any user of the tenant in a request.
    pub(super) service: bool,
    /// The begin of every word that this one alone says.
    pub(super) stem: String,
    pub(super) things: Things,
}

/// Letters that nobody guesses.
pub(super) fn letters(random: &mut Random, number: usize) -> String {
    (0..number)
        .map(|_| char::from(b'a' + random.between(0, 26) as u8))
        .collect()
}

impl Person {
    fn word(&self, random: &mut Random) -> String {
        format!("{}{}", self.stem, letters(random, 8))
    }

    /// A text with a word that others may ask for and one that they may not know.
    pub(super) fn text(&mut self, random: &mut Random) -> String {
        let (told, secret) = (self.word(random), self.word(random));
        self.things.words.push(told.clone());
        format!("My {told} is {secret}.")
    }

    async fn ask(
        &mut self,
        ids: &mut Ids,
        me: usize,
        method: Method,
        path: &str,
        body: Option<Value>,
        headers: &[(&'static str, String)],
    ) -> Answer {
        let mut request = self.client.request(method, path);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = self.client.send(request).await;
        assert!(answer.status < 300, "{path}: {}", answer.text);
        self.things
            .requests
            .push(answer.header("x-request-id").to_owned());
        ids.learn(me, &answer.text);
        answer
    }

    /// Has a conversation, says things to remember, and looks at all of it; every id and text is kept for others to ask about.
    pub(super) async fn live(&mut self, ids: &mut Ids, me: usize, random: &mut Random) {
        let mut once = |all: &mut Vec<String>| {
            let key = format!("{}{}", self.stem, letters(random, 8));
            all.push(key.clone());
            ("idempotency-key", key)
        };
        let (of_session, of_import, of_turn, of_memory, of_stream) = {
            let retry_keys = &mut self.things.retry_keys;
            (
                once(retry_keys),
                once(retry_keys),
                once(retry_keys),
                once(retry_keys),
                once(retry_keys).1,
            )
        };
        let new = json!({"title": self.text(random), "labels": [self.word(random)], "channel": self.word(random)});
        let made = self
            .ask(
                ids,
                me,
                Method::POST,
                "/v1/sessions",
                Some(new),
                &[of_session],
            )
            .await;
        let session = id_of(&made.body);
        self.things.tags.push(made.header("etag").to_owned());
        let past = |role: &str, content: String| json!({"role": role, "content": content, "created_at": "2025-01-01T00:00:00Z"});
        let import = json!({"messages": [past("user", self.text(random)), past("assistant", self.text(random))]});
        let path = messages_of(&session);
        self.ask(ids, me, Method::POST, &path, Some(import), &[of_import])
            .await;
        let said = json!({"message": format!("I prefer tea. {}", self.text(random))});
        let wait = ("prefer", "wait=60".to_owned());
        let turn = self
            .ask(
                ids,
                me,
                Method::POST,
                &turns_of(&session),
                Some(said),
                &[of_turn, wait],
            )
            .await;
        let turn = id_of(&turn.body);
        let key = self.word(random);
        let memory = json!({"content": self.text(random), "key": key});
        self.things.keys.push(key);
        let memory = self
            .ask(
                ids,
                me,
                Method::POST,
                "/v1/memories",
                Some(memory),
                &[of_memory],
            )
            .await;
        let memory = id_of(&memory.body);
        let path = format!("/v1/memories/{memory}");
        let other = json!({"content": self.text(random)});
        let changed = self
            .ask(ids, me, Method::PATCH, &path, Some(other), &[])
            .await;
        self.things.tags.push(changed.header("etag").to_owned());
        let path = chat_stream(&self.text(random), Some(&session), Some(&of_stream));
        self.ask(ids, me, Method::GET, &path, None, &[]).await;
        self.ask(ids, me, Method::GET, &events_of(&turn), None, &[])
            .await;
        let path = format!("/v1/turns/{turn}/ticket");
        let ticket = self
            .ask(ids, me, Method::POST, &path, Some(json!({})), &[])
            .await;
        self.things
            .tickets
            .push(ticket.body["ticket"].as_str().unwrap().to_owned());
        self.things.sessions.push(session);
        self.things.turns.push(turn);
    }

    /// Looks through all lists, once what follows from what was said is done.
    pub(super) async fn look(&mut self, ids: &mut Ids, me: usize) {
        let session = self.things.sessions.last().unwrap().clone();
        for list in [
            messages_of(&session),
            "/v1/sessions".to_owned(),
            "/v1/memories".to_owned(),
            "/v1/changes".to_owned(),
        ] {
            let page = self
                .ask(ids, me, Method::GET, &format!("{list}?limit=1"), None, &[])
                .await;
            self.things
                .cursors
                .extend(page.body["next_cursor"].as_str().map(str::to_owned));
            let page = self
                .ask(
                    ids,
                    me,
                    Method::GET,
                    &format!("{list}?limit=100"),
                    None,
                    &[],
                )
                .await;
            let found = page.body["items"].as_array().unwrap().iter().map(id_of);
            let things = &mut self.things;
            let known = match list.as_str() {
                "/v1/sessions" => &mut things.sessions,
                "/v1/memories" => &mut things.memories,
                "/v1/changes" => &mut things.changes,
                _ => &mut things.messages,
            };
            for id in found {
                if !known.contains(&id) {
                    known.push(id);
                }
            }
        }
    }
}

/// Whose an id is.
#[derive(Debug, Default)]
pub(super) struct Ids(HashMap<String, usize>);

impl Ids {
    /// Every id of an answer that nobody was seen with is its reader's.
    pub(super) fn learn(&mut self, reader: usize, text: &str) {
        for id in ids_in(text) {
            self.0.entry(id).or_insert(reader);
        }
    }

    /// Who was first seen with it.
    pub(super) fn owner(&self, id: &str) -> Option<usize> {
        self.0.get(id).copied()
    }
}

/// The ids in a text, in their usual form, also where they stand without dashes.
pub(super) fn ids_in(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !(c.is_ascii_hexdigit() || c == '-'));
    let ids = parts.filter(|part| matches!(part.len(), 32 | 36));
    ids.filter_map(|part| uuid::Uuid::parse_str(part).ok())
        .map(|id| id.to_string())
        .collect()
}
