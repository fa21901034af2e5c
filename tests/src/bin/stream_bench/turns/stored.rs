//! What is there before the turns that are measured.

use std::str::FromStr;

use chrono::{TimeDelta, Utc};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use crate::api;
use crate::process::Server;
use crate::texts;

/// The most that one request stores, and requests at once.
const MEMORIES: u32 = 100;
const MESSAGES: u32 = 1_000;
const AT_ONCE: usize = 4;

/// So many memories of each of so many users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memories {
    pub(super) each: u32,
    pub(super) users: u32,
}

impl FromStr for Memories {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (each, users) = text.split_once('x').unwrap_or((text, "1"));
        let number = |text: &str, least| match text.parse::<u32>() {
            Ok(number) if (least..=10_000_000).contains(&number) => Ok(number),
            _ => Err(format!("`{text}` is no number from {least} to 10000000")),
        };
        Ok(Self {
            each: number(each, 0)?,
            users: number(users, 1)?,
        })
    }
}

impl Memories {
    pub(super) fn all(self) -> u64 {
        u64::from(self.each) * u64::from(self.users)
    }

    pub(super) fn name(self) -> String {
        match self {
            Self { each, users: 1 } => each.to_string(),
            Self { each, users } => format!("{each}x{users}"),
        }
    }

    pub(super) fn user(self, user: u32) -> String {
        format!("bench-memories-{}-{user}", self.name())
    }

    /// Stores them, some of each user after the other, as if they all talked over the same time.
    pub(super) async fn store(self, server: &Server) -> Result<(), String> {
        let batches = (0..self.each.div_ceil(MEMORIES))
            .flat_map(|batch| (0..self.users).map(move |user| (user, batch)));
        let stored = stream::iter(batches).map(|(user, batch)| async move {
            let numbers = batch * MEMORIES..((batch + 1) * MEMORIES).min(self.each);
            let items: Vec<Value> = numbers
                .map(|number| json!({"content": texts::memory(user, number)}))
                .collect();
            let body = json!({"items": items});
            api::post(server, &self.user(user), "/v1/memories", &body).await
        });
        let stored = stored.buffer_unordered(AT_ONCE);
        stored.try_for_each(|_| async { Ok(()) }).await
    }
}

/// A session of so many messages, questions and answers in turn.
pub(super) async fn session(server: &Server, user: &str, messages: u32) -> Result<String, String> {
    let session = api::post(server, user, "/v1/sessions", &json!({})).await?;
    let session = tidemark_tests::paths::id_of(&session);
    let path = tidemark_tests::paths::messages_of(&session);
    let begun = Utc::now() - TimeDelta::seconds(messages.into());
    for from in (0..messages).step_by(MESSAGES as usize) {
        let messages: Vec<Value> = (from..(from + MESSAGES).min(messages))
            .map(|number| {
                json!({
                    "role": if number % 2 == 0 { "user" } else { "assistant" },
                    "content": texts::memory(0, number),
                    "created_at": (begun + TimeDelta::seconds(number.into())).to_rfc3339(),
                })
            })
            .collect();
        api::post(server, user, &path, &json!({"messages": messages})).await?;
    }
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_of_one_user_unless_users_are_named() {
        let read = |text: &str| text.parse::<Memories>();
        let of = |each, users| Ok::<_, String>(Memories { each, users });
        assert_eq!(read("10000"), of(10_000, 1));
        assert_eq!(read("1000x50"), of(1_000, 50));
        assert_eq!(read("0"), of(0, 1));
        for wrong in ["", "x", "10x0", "1e3", "-1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(read("1000x50").unwrap().name(), "1000x50");
    }
}
