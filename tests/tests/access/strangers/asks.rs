//! Requests about what is another's, each with what it would be about things that nobody has.

use std::collections::HashSet;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::paths::encoded;
use tidemark_tests::random::Random;

use super::people::{Person, letters};

/// A time that is the same for both requests of a pair, so that age counts alike.
const NOW: &str = "2030-01-01T00:00:00Z";

/// A request.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    /// The operation of the document.
    pub(super) operation: &'static str,
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Option<Value>,
    /// Named in place of the asker's own user.
    user: Option<String>,
    /// Sent without a key: the ticket in its path stands for one.
    without_key: bool,
    /// What in it is another's, with what is nobody's.
    pub(super) foreign: Vec<(String, String)>,
}

impl Ask {
    fn new(operation: &'static str, method: Method, path: impl Into<String>) -> Self {
        Self {
            operation,
            method,
            path: path.into(),
            headers: Vec::new(),
            body: None,
            user: None,
            without_key: false,
            foreign: Vec::new(),
        }
    }

    fn get(operation: &'static str, path: impl Into<String>) -> Self {
        Self::new(operation, Method::GET, path)
    }

    fn post(operation: &'static str, path: impl Into<String>, body: Value) -> Self {
        Self::new(operation, Method::POST, path).with_body(body)
    }

    fn with_body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same about things that nobody has.
    pub(super) fn of_nobody(&self) -> Self {
        let with = |text: &str| {
            let mut text = text.to_owned();
            for (theirs, nobodys) in &self.foreign {
                text = text.replace(theirs, nobodys);
            }
            text
        };
        let body = self.body.as_ref().map(|body| {
            serde_json::from_str(&with(&body.to_string())).expect("the same with other names")
        });
        Self {
            path: with(&self.path),
            headers: self
                .headers
                .iter()
                .map(|(name, value)| (*name, with(value)))
                .collect(),
            body,
            user: self.user.as_deref().map(with),
            ..self.clone()
        }
    }

    /// Everything that it says.
    pub(super) fn text(&self) -> String {
        let headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        let body = self.body.as_ref().map(Value::to_string);
        format!(
            "{} {} {} user {:?} {}",
            self.method,
            self.path,
            headers.join(", "),
            self.user,
            body.unwrap_or_default()
        )
    }

    /// The request of the one who asks.
    pub(super) fn request(&self, client: &Client, nobody: &Client) -> RequestBuilder {
        let client = if self.without_key { nobody } else { client };
        let client = match &self.user {
            Some(user) => client.as_user(user),
            None => client.clone(),
        };
        let mut request = client.request(self.method.clone(), &self.path);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        match &self.body {
            Some(body) => request.json(body),
            None => request,
        }
    }
}

/// An id without what may be written in one way or another.
fn plain(id: &str) -> String {
    id.replace('-', "").to_lowercase()
}

/// Chooses what a request is about.
pub(super) struct Chooser<'a> {
    pub(super) random: &'a mut Random,
    pub(super) asker: &'a mut Person,
    pub(super) victim: &'a Person,
    /// Idempotency keys of the victim that this one has used: the next time there is something behind them.
    pub(super) used: &'a mut HashSet<String>,
    foreign: Vec<(String, String)>,
}

impl<'a> Chooser<'a> {
    pub(super) fn new(
        random: &'a mut Random,
        asker: &'a mut Person,
        victim: &'a Person,
        used: &'a mut HashSet<String>,
    ) -> Self {
        Self {
            random,
            asker,
            victim,
            used,
            foreign: Vec::new(),
        }
    }

    fn one<'b>(&mut self, of: &'b [String]) -> Option<&'b String> {
        (!of.is_empty()).then(|| &of[self.random.between(0, of.len() as u64) as usize])
    }

    /// Notes that `theirs` is the victim's, and what stands for it where nobody has anything.
    fn note(&mut self, theirs: &str, nobodys: String) -> String {
        self.foreign.push((theirs.to_owned(), nobodys));
        theirs.to_owned()
    }

    /// An id of the victim's, mostly of a thing of this kind, at times of another or not quite right.
    fn id(&mut self, kind: &'a [String]) -> String {
        let things = &self.victim.things;
        let all = [
            &things.sessions,
            &things.turns,
            &things.memories,
            &things.changes,
            &things.messages,
            &things.jobs,
            &things.requests,
        ];
        let from: &[String] = if self.random.one_in(8) || kind.is_empty() {
            all[self.random.between(0, all.len() as u64) as usize]
        } else {
            kind
        };
        let from: &[String] = if from.is_empty() {
            &things.sessions
        } else {
            from
        };
        let mut id = self.one(from).expect("the victim has something").clone();
        match self.random.between(0, 20) {
            // Another version, another variant.
            0 => id.replace_range(14..15, "4"),
            1 => id.replace_range(19..20, "c"),
            2 => id = id.to_uppercase(),
            3 => id = id.replace('-', ""),
            _ => {}
        }
        let cut = id.len() - 10;
        // The same id written in another way stands for the same thing of nobody's.
        let same = |(theirs, _): &&(String, String)| plain(theirs) == plain(&id);
        let digits = match self.foreign.iter().find(same) {
            Some((_, nobodys)) => nobodys[nobodys.len() - 10..].to_lowercase(),
            None => format!("{:010x}", self.random.bits() & 0xff_ffff_ffff),
        };
        let digits = if id.contains(|c: char| c.is_ascii_uppercase()) {
            digits.to_uppercase()
        } else {
            digits
        };
        let nobodys = format!("{}{digits}", &id[..cut]);
        self.note(&id, nobodys)
    }

    fn session(&mut self) -> String {
        self.id(&self.victim.things.sessions)
    }

    fn turn(&mut self) -> String {
        self.id(&self.victim.things.turns)
    }

    fn memory(&mut self) -> String {
        self.id(&self.victim.things.memories)
    }

    fn word_of(&mut self, words: &'a [String]) -> String {
        let word = self
            .one(words)
            .expect("the victim has said something")
            .clone();
        let nobodys = letters(self.random, word.len());
        self.note(&word, nobodys)
    }

    fn word(&mut self) -> String {
        self.word_of(&self.victim.things.words)
    }

    /// A cursor of the victim's, or its place in a list of the asker's.
    fn cursor(&mut self) -> String {
        let cursor = self
            .one(&self.victim.things.cursors)
            .expect("a cursor")
            .clone();
        let own = self.asker.things.cursors.clone();
        if self.random.one_in(2)
            && let Some(own) = self.one(&own)
        {
            let (list, _) = own.split_once('.').expect("a list");
            let (_, place) = cursor.split_once('.').expect("a place");
            let moved = format!("{list}.{place}");
            let nobodys = match place.rsplit_once('.') {
                Some((at, id)) => format!(
                    "{list}.{at}.{}{:04x}",
                    &id[..28],
                    self.random.between(0, 0xffff)
                ),
                None => moved.clone(),
            };
            return self.note(&moved, nobodys);
        }
        let nobodys = format!("{:016x}{}", self.random.bits(), &cursor[16..]);
        self.note(&cursor, nobodys)
    }

    /// An idempotency key of the victim's that the asker has not used.
    fn once(&mut self) -> Option<String> {
        let key = self.one(&self.victim.things.retry_keys)?.clone();
        if !self.used.insert(key.clone()) {
            return None;
        }
        let nobodys = letters(self.random, key.len());
        Some(self.note(&key, nobodys))
    }

    fn user(&mut self) -> String {
        let nobodys = letters(self.random, self.victim.user.len());
        self.note(&self.victim.user, nobodys)
    }

    fn own(&mut self, of: impl Fn(&Person) -> &Vec<String>) -> String {
        let of = of(self.asker).clone();
        self.one(&of).expect("the asker has something").clone()
    }

    fn text(&mut self) -> String {
        self.asker.text(self.random)
    }

    fn filter(&mut self, names: &[&'static str]) -> String {
        let name = names[self.random.between(0, names.len() as u64) as usize];
        let value = match name {
            "text" => self.word(),
            "key" => self.word_of(&self.victim.things.keys),
            "cursor" => self.cursor(),
            "session" | "session_id" => self.session(),
            "as_of" | "created_to" => encoded(NOW),
            _ => unreachable!("{name} is no filter"),
        };
        format!("?limit=100&{name}={value}")
    }

    /// A request to try.
    pub(super) fn ask(mut self) -> Ask {
        let ask = match self.random.between(0, 12) {
            0 | 1 => self.about_sessions(),
            2 | 3 => self.about_turns(),
            4 => self.about_streams(),
            5 => self.about_tickets(),
            6 | 7 => self.about_memories(),
            8 => self.recall(),
            9 => self.about_changes(),
            10 => self.about_the_tenant(),
            _ => self.that_makes_something(),
        };
        Ask {
            foreign: self.foreign,
            ..ask
        }
    }

    fn about_sessions(&mut self) -> Ask {
        let choice = self.random.between(0, 8);
        if choice == 0 {
            let filter = self.filter(&["text", "cursor"]);
            return Ask::get("list_sessions", format!("/v1/sessions{filter}"));
        }
        let path = format!("/v1/sessions/{}", self.session());
        match choice {
            1 => Ask::get("get_session", path),
            2 | 3 => {
                let body = json!({"title": self.text()});
                let ask = Ask::new("update_session", Method::PATCH, path).with_body(body);
                self.perhaps_as_tagged(ask)
            }
            4 => {
                let kept = if self.random.one_in(2) {
                    "?memories=keep"
                } else {
                    ""
                };
                Ask::new("delete_session", Method::DELETE, format!("{path}{kept}"))
            }
            5 => Ask::get("list_messages", format!("{path}/messages")),
            6 => {
                let cursor = self.cursor();
                Ask::get("list_messages", format!("{path}/messages?cursor={cursor}"))
            }
            _ => {
                let message = json!({"role": "user", "content": self.text(), "created_at": "2025-01-01T00:00:00Z"});
                let ask = Ask::post(
                    "import_messages",
                    format!("{path}/messages"),
                    json!({"messages": [message]}),
                );
                self.perhaps_once(ask)
            }
        }
    }

    fn their_tag(&mut self) -> String {
        self.one(&self.victim.things.tags).expect("a tag").clone()
    }

    fn perhaps_as_tagged(&mut self, ask: Ask) -> Ask {
        if self.random.one_in(2) {
            ask.with_header("if-match", self.their_tag())
        } else {
            ask
        }
    }

    fn perhaps_once(&mut self, ask: Ask) -> Ask {
        match self.once() {
            Some(key) => ask.with_header("idempotency-key", key),
            None => ask,
        }
    }

    fn about_turns(&mut self) -> Ask {
        match self.random.between(0, 6) {
            0 => Ask::get("get_turn", format!("/v1/turns/{}", self.turn())),
            1 => Ask::post(
                "cancel_turn",
                format!("/v1/turns/{}/cancel", self.turn()),
                json!({}),
            ),
            2 => Ask::post(
                "create_ticket",
                format!("/v1/turns/{}/ticket", self.turn()),
                json!({}),
            ),
            3 => {
                // In the asker's own session.
                let path = format!("/v1/sessions/{}/turns", self.own(|p| &p.things.sessions));
                let body = json!({"message": self.text(), "replaces": self.turn()});
                Ask::post("create_turn", path, body).with_header("prefer", "wait=60")
            }
            _ => {
                let path = format!("/v1/sessions/{}/turns", self.session());
                let ask = Ask::post("create_turn", path, json!({"message": self.text()}));
                self.perhaps_once(ask.with_header("prefer", "wait=60"))
            }
        }
    }

    fn event_id(&mut self) -> String {
        let seq = self.random.between(1, 9);
        format!("{}:{seq}", self.turn())
    }

    fn about_streams(&mut self) -> Ask {
        let text = encoded(&self.text());
        match self.random.between(0, 6) {
            0 => Ask::get(
                "stream_turn_events",
                format!("/v1/turns/{}/events?after=1", self.turn()),
            ),
            1 => Ask::get(
                "stream_turn_events",
                format!("/v1/turns/{}/events", self.turn()),
            )
            .with_header("last-event-id", self.event_id()),
            2 => {
                let path = format!("/v1/turns/{}/events", self.own(|p| &p.things.turns));
                Ask::get("stream_turn_events", path).with_header("last-event-id", self.event_id())
            }
            3 => Ask::get(
                "chat_stream",
                format!("/v1/chat/stream?query={text}&session_id={}", self.session()),
            ),
            4 => Ask::get("chat_stream", format!("/v1/chat/stream?query={text}"))
                .with_header("last-event-id", self.event_id()),
            _ => match self.once() {
                Some(key) => Ask::get(
                    "chat_stream",
                    format!("/v1/chat/stream?query={text}&request_id={key}"),
                ),
                None => Ask::get(
                    "stream_turn_events",
                    format!("/v1/turns/{}/events?reasoning=true", self.turn()),
                ),
            },
        }
    }

    /// A ticket is good for its turn, whoever shows it. So it is shown for others.
    fn about_tickets(&mut self) -> Ask {
        let ticket = if self.random.one_in(2) {
            let own = self.own(|p| &p.things.tickets);
            let path = format!("/v1/turns/{}/events?ticket={own}", self.turn());
            Ask::get("stream_turn_events", path)
        } else {
            let ticket = self
                .one(&self.victim.things.tickets)
                .expect("a ticket")
                .clone();
            // Another signature, of the same length.
            let cut = ticket.len() - 12;
            let nobodys = format!("{}{}", &ticket[..cut], letters(self.random, 12));
            let ticket = self.note(&ticket, nobodys);
            let path = match self.random.between(0, 4) {
                0 => format!(
                    "/v1/turns/{}?ticket={ticket}",
                    self.own(|p| &p.things.turns)
                ),
                1 => format!("/v1/turns/{}?ticket={ticket}", self.turn()),
                _ => format!(
                    "/v1/turns/{}/events?ticket={ticket}",
                    self.own(|p| &p.things.turns)
                ),
            };
            let operation = if path.contains("/events") {
                "stream_turn_events"
            } else {
                "get_turn"
            };
            Ask::get(operation, path)
        };
        Ask {
            without_key: self.random.one_in(2),
            ..ticket
        }
    }

    fn about_memories(&mut self) -> Ask {
        let choice = self.random.between(0, 9);
        if choice < 2 {
            let filter = self.filter(&["text", "cursor", "session", "key", "as_of", "created_to"]);
            return Ask::get("list_memories", format!("/v1/memories{filter}"));
        }
        if choice == 2 {
            // The asker's own, as the victim last saw another.
            let path = format!("/v1/memories/{}", self.own(|p| &p.things.memories));
            let tag = self.their_tag();
            return Ask::new("update_memory", Method::PATCH, path)
                .with_body(json!({"importance": 2}))
                .with_header("if-match", tag);
        }
        let path = format!("/v1/memories/{}", self.memory());
        match choice {
            3 => Ask::get("get_memory", path),
            4 => Ask::get("get_memory_history", format!("{path}/history")),
            5 | 6 => {
                let body = match self.random.between(0, 3) {
                    0 => json!({"pinned": true}),
                    1 => json!({"state": "current", "importance": 5}),
                    _ => json!({"content": self.text()}),
                };
                let ask = Ask::new("update_memory", Method::PATCH, path).with_body(body);
                self.perhaps_as_tagged(ask)
            }
            _ => {
                let ask = Ask::new("delete_memory", Method::DELETE, path);
                self.perhaps_as_tagged(ask)
            }
        }
    }

    fn recall(&mut self) -> Ask {
        let mut body =
            json!({"query": format!("Where is my {}?", self.word()), "now": NOW, "explain": true});
        for (field, value) in [
            ("min_score", json!(0)),
            ("top_k", json!(100)),
            ("include_archived", json!(true)),
            ("as_of", json!(NOW)),
        ] {
            if self.random.one_in(2) {
                body[field] = value;
            }
        }
        if self.random.one_in(2) {
            body["why_not"] = json!([self.memory(), self.memory()]);
        }
        if self.random.one_in(3) {
            body["session_id"] = json!(self.session());
        }
        Ask::post("recall_memories", "/v1/memories/recall", body)
    }

    fn about_changes(&mut self) -> Ask {
        if self.random.one_in(2) {
            let filter = self.filter(&["session_id", "cursor"]);
            return Ask::get("list_changes", format!("/v1/changes{filter}"));
        }
        let id = self.id(&self.victim.things.changes);
        Ask::post(
            "revert_change",
            format!("/v1/changes/{id}/revert"),
            json!({}),
        )
    }

    fn about_the_tenant(&mut self) -> Ask {
        let elsewhere = self.asker.tenant != self.victim.tenant;
        match self.random.between(0, 7) {
            0 => {
                let filter = self.filter(&["cursor"]);
                Ask::get("list_jobs", format!("/v1/jobs{filter}"))
            }
            1 => Ask::post(
                "retry_job",
                format!("/v1/jobs/{}/retry", self.id(&self.victim.things.jobs)),
                json!({}),
            ),
            2 => Ask::new(
                "drop_job",
                Method::DELETE,
                format!("/v1/jobs/{}", self.id(&self.victim.things.jobs)),
            ),
            3 => Ask::post(
                "export_user",
                format!("/v1/users/{}/export", self.user()),
                json!({}),
            ),
            4 => Ask::new(
                "erase_user",
                Method::DELETE,
                format!("/v1/users/{}", self.user()),
            ),
            5 => Ask::get("metrics", "/metrics"),
            // A service key of the tenant may name its users; nobody else may.
            _ if elsewhere || !self.asker.service => {
                let user = self.user();
                let ask = match self.random.between(0, 3) {
                    0 => Ask::get("list_sessions", "/v1/sessions?limit=100"),
                    1 => Ask::get("list_memories", "/v1/memories?limit=100"),
                    _ => Ask::get("get_session", format!("/v1/sessions/{}", self.session())),
                };
                Ask {
                    user: Some(user),
                    ..ask
                }
            }
            _ => Ask::get(
                "list_changes",
                format!("/v1/changes?session_id={}", self.session()),
            ),
        }
    }

    fn that_makes_something(&mut self) -> Ask {
        match self.random.between(0, 4) {
            0 => {
                let ask = Ask::post(
                    "create_session",
                    "/v1/sessions",
                    json!({"title": self.text()}),
                );
                self.perhaps_once(ask)
            }
            1 => {
                let body = json!({"content": self.text(), "session_id": self.session()});
                Ask::post("create_memories", "/v1/memories", body)
            }
            2 => {
                let path = format!("/v1/sessions/{}/turns", self.own(|p| &p.things.sessions));
                let ask = Ask::post("create_turn", path, json!({"message": self.text()}));
                self.perhaps_once(ask.with_header("prefer", "wait=60"))
            }
            _ => {
                let ask = Ask::post(
                    "create_memories",
                    "/v1/memories",
                    json!({"content": self.text()}),
                );
                self.perhaps_once(ask)
            }
        }
    }
}
