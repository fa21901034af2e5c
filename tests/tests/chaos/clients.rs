//! What every client does: it asks whichever replica, again with the same key until it knows the outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tidemark_tests::answer::Answer;
use tidemark_tests::client::Client;
use tidemark_tests::paths::turns_of;
use tidemark_tests::random::Random;
use tokio::sync::watch;

use super::cluster::{Cluster, REPLICAS};
use super::history::{History, What};

/// How long a client waits for one answer. A replica that is paused gives none.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(4);

/// How long a client goes on with one thing until it gives up. Nothing is away for nearly as long.
pub(crate) const PATIENCE: Duration = Duration::from_mins(4);

/// What all clients share.
#[derive(Debug, Clone)]
pub(crate) struct Clients {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) history: Arc<History>,
    pub(crate) stopped: watch::Receiver<bool>,
}

/// What came of a request.
pub(crate) enum Outcome {
    /// The answer, with one of the statuses that were hoped for.
    Answered(Answer),
    /// A refusal, or nothing: status 0.
    Failed(u16, String),
}

impl Clients {
    pub(crate) fn is_over(&self) -> bool {
        *self.stopped.borrow()
    }

    /// Sends one request to one replica.
    pub(crate) async fn once(
        &self,
        replica: usize,
        user: &str,
        good: &[u16],
        shape: impl Fn(&Client) -> RequestBuilder,
    ) -> Outcome {
        let client = self.cluster.client(replica, user);
        match client.send_within(ANSWER_LIMIT, shape(&client)).await {
            Some(answer) if good.contains(&answer.status) => Outcome::Answered(answer),
            Some(answer) => Outcome::Failed(answer.status, code_of(&answer.body, &answer.text)),
            None => Outcome::Failed(0, String::new()),
        }
    }

    /// Asks for a turn until it is accepted; none if it is refused for good.
    pub(crate) async fn ask(
        &self,
        random: &mut Random,
        (user, session): (&str, &str),
        key: &str,
        message: &str,
    ) -> Option<String> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let replica = any(random);
            self.history.add(What::Asked {
                key: key.to_owned(),
                user: user.to_owned(),
                session: session.to_owned(),
                message: message.to_owned(),
                replica,
            });
            let body = json!({"message": message});
            let outcome = self
                .once(replica, user, &[200, 202], |client| {
                    client
                        .request(Method::POST, &turns_of(session))
                        .header("idempotency-key", key)
                        .json(&body)
                })
                .await;
            let key = key.to_owned();
            match outcome {
                Outcome::Answered(answer) => {
                    let turn = answer.body["turn_id"]
                        .as_str()
                        .or(answer.body["id"].as_str())
                        .expect("a turn id")
                        .to_owned();
                    self.history.add(What::Accepted {
                        key,
                        turn: turn.clone(),
                    });
                    return Some(turn);
                }
                Outcome::Failed(status, code) => {
                    self.history.add(What::Refused { key, status, code });
                    if !is_passing(status) {
                        return None;
                    }
                }
            }
            pause(random, 50, 300).await;
        }
        self.gave_up(key);
        None
    }

    /// Cancels a turn until that is confirmed.
    pub(crate) async fn cancel(&self, random: &mut Random, user: &str, turn: &str) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let outcome = self
                .once(any(random), user, &[200], |client| {
                    client
                        .request(Method::POST, &format!("/v1/turns/{turn}/cancel"))
                        .json(&json!({}))
                })
                .await;
            let turn = turn.to_owned();
            match outcome {
                Outcome::Answered(answer) => {
                    let status = answer.body["status"].as_str().expect("a status").to_owned();
                    return self.history.add(What::Cancelled { turn, status });
                }
                Outcome::Failed(status, code) => {
                    let key = format!("cancel {turn}");
                    self.history.add(What::Refused { key, status, code });
                    if !is_passing(status) {
                        return;
                    }
                }
            }
            pause(random, 50, 300).await;
        }
        self.gave_up(turn);
    }

    pub(crate) fn gave_up(&self, subject: &str) {
        let subject = subject.to_owned();
        self.history.add(What::GaveUp { subject });
    }
}

/// Whether it may be asked again: no answer, a conflict with one's own earlier try, or what is away or full for a moment.
pub(crate) fn is_passing(status: u16) -> bool {
    matches!(status, 0 | 409 | 429 | 503)
}

pub(crate) fn any(random: &mut Random) -> usize {
    random.between(0, REPLICAS as u64) as usize
}

pub(crate) async fn pause(random: &mut Random, low: u64, high: u64) {
    tokio::time::sleep(Duration::from_millis(random.between(low, high))).await;
}

pub(crate) fn code_of(body: &Value, text: &str) -> String {
    body["code"].as_str().unwrap_or(text).to_owned()
}
