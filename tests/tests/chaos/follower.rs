//! Whoever follows a turn: over as many connections as it takes, each to any replica and from the last event on, some of which it cuts itself.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::Value;
use tidemark_tests::paths::{chat_stream, events_of};
use tidemark_tests::random::Random;
use tidemark_tests::sse::{EventStream, Frame, SseEvent};

use super::clients::{ANSWER_LIMIT, Clients, PATIENCE, any, code_of, is_passing, pause};
use super::history::What;

/// How long a stream may say nothing, heartbeats included, until its reader tries elsewhere.
const SILENCE: Duration = Duration::from_secs(4);

/// How long a reader listens for what must not come behind the end.
const AFTER_THE_END: Duration = Duration::from_secs(1);

/// A follower, and how far it is.
#[derive(Debug)]
pub(crate) struct Follower {
    clients: Clients,
    random: Random,
    name: String,
    user: String,
    path: String,
    wish: Option<Wish>,
    turn: String,
    after: Option<u64>,
}

/// A turn that is asked for with the stream itself.
#[derive(Debug, Clone)]
struct Wish {
    key: String,
    session: String,
    message: String,
}

impl Follower {
    /// Of a turn that was accepted.
    pub(crate) fn of(
        clients: &Clients,
        random: Random,
        user: &str,
        turn: &str,
        name: String,
    ) -> Self {
        Self {
            clients: clients.clone(),
            random,
            name,
            user: user.to_owned(),
            path: events_of(turn),
            wish: None,
            turn: turn.to_owned(),
            after: None,
        }
    }

    /// Of a turn that it asks for itself, as a bare `EventSource` does.
    pub(crate) fn asking(
        clients: &Clients,
        random: Random,
        (user, session): (&str, &str),
        key: &str,
        message: &str,
    ) -> Self {
        Self {
            clients: clients.clone(),
            random,
            name: format!("{key}/0"),
            user: user.to_owned(),
            path: chat_stream(message, Some(session), Some(key)),
            wish: Some(Wish {
                key: key.to_owned(),
                session: session.to_owned(),
                message: message.to_owned(),
            }),
            turn: String::new(),
            after: None,
        }
    }

    /// Follows to the end of the turn.
    pub(crate) async fn run(mut self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            match self.open().await {
                Ok(stream) => {
                    if self.read(stream).await {
                        if self.random.one_in(4) {
                            drop(self.open().await);
                        }
                        return;
                    }
                }
                Err(status) if is_passing(status) => {}
                Err(_) => return,
            }
            pause(&mut self.random, 20, 150).await;
        }
        self.clients.gave_up(&self.name);
    }

    /// A connection to any replica, or the status of its refusal.
    async fn open(&mut self) -> Result<EventStream, u16> {
        let replica = any(&mut self.random);
        match &self.wish {
            Some(wish) => self.clients.history.add(What::Asked {
                key: wish.key.clone(),
                user: self.user.clone(),
                session: wish.session.clone(),
                message: wish.message.clone(),
                replica,
            }),
            None => self.clients.history.add(What::Opened {
                reader: self.name.clone(),
                turn: self.turn.clone(),
                replica: Some(replica),
                after: self.after,
            }),
        }
        let client = self.clients.cluster.client(replica, &self.user);
        let mut request = client.request(Method::GET, &self.path);
        if let Some(after) = self.after {
            request = request.header("last-event-id", format!("{}:{after}", self.turn));
        }
        let asked = Instant::now();
        let answer = tokio::time::timeout(ANSWER_LIMIT, request.send()).await;
        let (status, code) = match answer {
            Ok(Ok(response)) if response.status() == 200 => {
                return Ok(EventStream::new(response, asked));
            }
            Ok(Ok(response)) => {
                let status = response.status().as_u16();
                let text = response.text().await.unwrap_or_default();
                let body = serde_json::from_str(&text).unwrap_or_default();
                (status, code_of(&body, &text))
            }
            _ => (0, String::new()),
        };
        self.clients.history.add(match &self.wish {
            Some(wish) => What::Refused {
                key: wish.key.clone(),
                status,
                code,
            },
            None => What::NotOpened {
                reader: self.name.clone(),
                turn: self.turn.clone(),
                status,
                code,
            },
        });
        Err(status)
    }

    /// Reads one connection; tells whether the end of the turn came.
    async fn read(&mut self, mut stream: EventStream) -> bool {
        let mut left = self.random.one_in(3).then(|| self.random.between(0, 12));
        let mut over = false;
        let how = loop {
            let limit = if over { AFTER_THE_END } else { SILENCE };
            let Ok(next) = tokio::time::timeout(limit, stream.next()).await else {
                break "silent".to_owned();
            };
            let Some(arrived) = next else {
                break match &stream.ended {
                    Some(Err(error)) => error.clone(),
                    _ => "ended".to_owned(),
                };
            };
            let Frame::Event(event) = arrived.frame else {
                continue;
            };
            over |= event.kind == "done";
            self.is_told(event);
            if let Some(events) = &mut left
                && !over
            {
                if *events == 0 {
                    break "left".to_owned();
                }
                *events -= 1;
            }
        };
        self.clients.history.add(What::Closed {
            reader: self.name.clone(),
            turn: self.turn.clone(),
            how,
        });
        over
    }

    fn is_told(&mut self, event: SseEvent) {
        let data: Value = serde_json::from_str(&event.data).expect("data is JSON");
        let seq = data["seq"].as_u64().expect("a seq");
        if let Some(wish) = self.wish.take() {
            data["turn_id"]
                .as_str()
                .expect("a turn id")
                .clone_into(&mut self.turn);
            self.clients.history.add(What::Accepted {
                key: wish.key,
                turn: self.turn.clone(),
            });
            self.clients.history.add(What::Opened {
                reader: self.name.clone(),
                turn: self.turn.clone(),
                replica: None,
                after: None,
            });
        }
        assert_eq!(event.id, Some(format!("{}:{seq}", self.turn)), "{event:?}");
        self.after = Some(seq);
        self.clients.history.add(What::Told {
            reader: self.name.clone(),
            turn: self.turn.clone(),
            seq,
            data: what_counts(&event.kind, data),
            kind: event.kind,
        });
    }
}

/// What is kept of an event: all that the checker looks at.
fn what_counts(kind: &str, mut data: Value) -> Value {
    if matches!(kind, "tool" | "recall") {
        return Value::Null;
    }
    if let Some(fields) = data.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "type" | "turn_id" | "seq" | "usage"));
    }
    data
}
