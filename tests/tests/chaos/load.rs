//! What the clients are up to: people who talk, alone or two in one session, and programs that give and forget memories.

use std::sync::Arc;

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use tidemark_tests::random::Random;
use tokio::sync::Mutex;

use super::clients::{Clients, Outcome, any, is_passing, pause};
use super::follower::Follower;
use super::history::What;

/// A session is left after so many turns, so that also short and new ones are broken.
const TURNS_OF_A_SESSION: usize = 12;

/// A user's session, which may be several clients'.
#[derive(Debug)]
pub(crate) struct Room {
    user: String,
    session: Mutex<(String, usize)>,
}

impl Room {
    pub(crate) fn of(user: &str) -> Arc<Self> {
        Arc::new(Self {
            user: user.to_owned(),
            session: Mutex::default(),
        })
    }

    /// The session of the next turn.
    async fn session(&self, clients: &Clients, random: &mut Random) -> Option<String> {
        let mut held = self.session.lock().await;
        if held.0.is_empty() || held.1 >= TURNS_OF_A_SESSION {
            *held = (new_session(clients, random, &self.user).await?, 0);
        }
        held.1 += 1;
        Some(held.0.clone())
    }
}

async fn new_session(clients: &Clients, random: &mut Random, user: &str) -> Option<String> {
    while !clients.is_over() {
        let outcome = clients
            .once(any(random), user, &[201], |client| {
                client
                    .request(Method::POST, "/v1/sessions")
                    .json(&json!({}))
            })
            .await;
        match outcome {
            Outcome::Answered(answer) => {
                return Some(tidemark_tests::paths::id_of(&answer.body));
            }
            Outcome::Failed(status, code) => {
                let key = format!("a session of {user}");
                clients.history.add(What::Refused { key, status, code });
                if !is_passing(status) {
                    return None;
                }
            }
        }
        pause(random, 50, 300).await;
    }
    None
}

/// Somebody who talks until the end: one turn or several at once, some with two followers, some cancelled.
pub(crate) async fn talk(clients: Clients, room: Arc<Room>, name: String, mut random: Random) {
    let mut count = 0;
    while !clients.is_over() {
        let Some(session) = room.session(&clients, &mut random).await else {
            continue;
        };
        let place = (room.user.as_str(), session.as_str());
        let several = match random.between(0, 10) {
            0..7 => 1,
            _ => random.between(2, 5),
        };
        let mut following = Vec::new();
        for _ in 0..several {
            count += 1;
            let key = format!("{name}-{count}");
            let message = message(&mut random, &format!("crate{name}n{count}"));
            let mut its = Random::from_seed(random.bits());
            if its.one_in(4) {
                let asking = Follower::asking(&clients, its, place, &key, &message);
                following.push(tokio::spawn(asking.run()));
                continue;
            }
            let Some(turn) = clients.ask(&mut random, place, &key, &message).await else {
                continue;
            };
            let readers = if random.one_in(6) { 2 } else { 1 };
            let readings = (0..readers).map(|reader| {
                let (random, name) = (Random::from_seed(its.bits()), format!("{key}/{reader}"));
                Follower::of(&clients, random, &room.user, &turn, name).run()
            });
            following.extend(readings.map(tokio::spawn));
            if its.one_in(8) {
                let (clients, user) = (clients.clone(), room.user.clone());
                following.push(tokio::spawn(async move {
                    pause(&mut its, 0, 1_200).await;
                    clients.cancel(&mut its, &user, &turn).await;
                }));
            }
        }
        for reading in join_all(following).await {
            reading.expect("a stream that keeps to the form");
        }
        pause(&mut random, 0, 400).await;
    }
}

/// A message, and in it what the model is to answer. Both hold a word that nothing else does, so that each makes a memory of its own.
fn message(random: &mut Random, marker: &str) -> String {
    let hall = random.between(1, 99);
    let mut answer = format!("The {marker}a was carried to bay {hall}");
    for post in 0..random.between(0, 8) {
        answer = format!("{answer} and then past post {post}");
    }
    let tool = if random.one_in(3) {
        let rounds = random.between(1, 3);
        format!(" tool=search_memory tool_rounds={rounds} tool_calls=2 before_tool=2")
    } else {
        String::new()
    };
    let fault = match random.between(0, 24) {
        0 => " cut_after=3",
        1 => " error_status=503 error_times=1",
        2 => " stall_ms=3000 stall_after=2",
        _ => "",
    };
    format!(
        "The {marker} stands in hall {hall} beside the loading gate. [[text={} delay_ms={}{tool}{fault}]]",
        answer.replace(' ', "_"),
        random.between(0, 60)
    )
}

/// A program that gives memories, looks for them elsewhere, and has some forgotten.
pub(crate) async fn remember(clients: Clients, user: String, name: String, mut random: Random) {
    let mut kept: Vec<String> = Vec::new();
    let mut count = 0;
    while !clients.is_over() {
        count += 1;
        let key = format!("{name}-{count}");
        let door = random.between(1, 99);
        let content = format!("The badge{name}n{count} opens door {door} of the tower.");
        if let Some(memory) = give(&clients, &mut random, &user, &key, &content).await {
            if random.one_in(2) {
                look(&clients, &mut random, &user, &memory).await;
            }
            kept.push(memory);
        }
        if random.one_in(3) && !kept.is_empty() {
            let chosen = random.between(0, kept.len() as u64) as usize;
            let memory = kept.swap_remove(chosen);
            if forget(&clients, &mut random, &user, &memory).await {
                look(&clients, &mut random, &user, &memory).await;
            }
        }
        pause(&mut random, 50, 700).await;
    }
}

/// Gives a memory until it is kept.
async fn give(
    clients: &Clients,
    random: &mut Random,
    user: &str,
    key: &str,
    content: &str,
) -> Option<String> {
    for _ in 0..300 {
        clients.history.add(What::Given {
            key: key.to_owned(),
            user: user.to_owned(),
            content: content.to_owned(),
        });
        let body = json!({"content": content});
        let outcome = clients
            .once(any(random), user, &[201], |client| {
                client
                    .request(Method::POST, "/v1/memories")
                    .header("idempotency-key", key)
                    .json(&body)
            })
            .await;
        let key = key.to_owned();
        match outcome {
            Outcome::Answered(answer) => {
                let memory = tidemark_tests::paths::id_of(&answer.body);
                clients.history.add(What::Kept {
                    key,
                    memory: memory.clone(),
                });
                return Some(memory);
            }
            Outcome::Failed(status, code) => {
                clients.history.add(What::Refused { key, status, code });
                if !is_passing(status) {
                    return None;
                }
            }
        }
        pause(random, 50, 300).await;
    }
    clients.gave_up(key);
    None
}

/// Looks for a memory once, at any replica; no answer tells nothing.
async fn look(clients: &Clients, random: &mut Random, user: &str, memory: &str) {
    let outcome = clients
        .once(any(random), user, &[200], |client| {
            client.request(Method::GET, &format!("/v1/memories/{memory}"))
        })
        .await;
    let status = match outcome {
        Outcome::Answered(answer) => answer.status,
        Outcome::Failed(status, _) => status,
    };
    let memory = memory.to_owned();
    clients.history.add(What::Looked { memory, status });
}

/// Has a memory forgotten until that is confirmed.
async fn forget(clients: &Clients, random: &mut Random, user: &str, memory: &str) -> bool {
    for _ in 0..300 {
        let memory = memory.to_owned();
        clients.history.add(What::ForgetAsked {
            memory: memory.clone(),
        });
        // A try before may have been done and not told; then it is not there any more.
        let outcome = clients
            .once(any(random), user, &[204, 404], |client| {
                client.request(Method::DELETE, &format!("/v1/memories/{memory}"))
            })
            .await;
        match outcome {
            Outcome::Answered(answer) => {
                let status = answer.status;
                clients.history.add(What::Forgotten { memory, status });
                return true;
            }
            Outcome::Failed(status, code) => {
                let key = format!("forget {memory}");
                clients.history.add(What::Refused { key, status, code });
                if !is_passing(status) {
                    return false;
                }
            }
        }
        pause(random, 50, 300).await;
    }
    clients.gave_up(memory);
    false
}
