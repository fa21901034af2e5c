//! Derived work that a kill must not lose: what was said is indexed, due sessions are consolidated, uses are counted once.
//!
//! It is looked at before any further turn: the work of a later turn would make up for what was lost. For the same reason each round also
//! has sessions of one turn ([`crate::load::ask_once`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tidemark_tests::client::Client;
use tidemark_tests::paths::messages_of;
use tidemark_tests::transcript::violations;

use crate::load::TurnSeen;

/// How long derived work may take after the last turn of a round has ended.
const DRAIN: Duration = Duration::from_mins(1);

/// Waits until no derived work is left but what has failed for good, and gives that.
pub(crate) async fn failed_once_drained(client: &Client) -> Vec<Value> {
    tidemark_tests::wait::until("the derived work to be done", DRAIN, || async {
        let jobs = client.all("/v1/jobs").await;
        jobs.iter()
            .all(|job| job["state"] == "failed")
            .then_some(jobs)
    })
    .await
}

/// Which of the work derived from a session's turns is missing, in words. `seen` are turns of this session.
pub(crate) async fn missing(
    client: &Client,
    session: &str,
    seen: &[&TurnSeen],
    threshold: i64,
) -> Vec<String> {
    let history = client.history(session).await;
    let learned = client
        .all(&format!("/v1/memories?session={session}&layer=episodic"))
        .await;
    let mut missing: Vec<String> = seen
        .iter()
        .filter_map(|turn| unindexed(&history, &learned, turn))
        .collect();
    let page = client.get(&messages_of(session)).await.expect(200);
    let boundary = page["last_consolidated"].as_i64().expect("a boundary");
    missing.extend(unconsolidated(&history, boundary, seen, threshold));
    missing
}

/// Whatever way its turn ended (the load cancels none), a message that is stored was to be learned from, once.
fn unindexed(history: &[Value], learned: &[Value], turn: &TurnSeen) -> Option<String> {
    let message = history.iter().find(|message| turn.asked(message))?;
    let is_source =
        |source: &Value| source["message_id"] == message["id"] && source["seq"] == message["seq"];
    let count = learned
        .iter()
        .filter(|memory| {
            memory["sources"]
                .as_array()
                .is_some_and(|all| all.iter().any(is_source))
        })
        .count();
    (count != 1).then(|| {
        format!(
            "index: message {} of {} is {count} memories",
            message["seq"], turn.marker
        )
    })
}

/// A completed turn leaves its session below the threshold, or has it consolidated at least up to its answer. What comes behind the last
/// answer belongs to turns that ended without one; they make nothing due.
fn unconsolidated(
    history: &[Value],
    boundary: i64,
    seen: &[&TurnSeen],
    threshold: i64,
) -> Vec<String> {
    let mut found = Vec::new();
    let answered = seen
        .iter()
        .filter(|turn| turn.status() == "completed")
        .filter_map(|turn| {
            let id = &turn.done["message_id"];
            let answer = history.iter().find(|message| &message["id"] == id)?;
            answer["seq"].as_i64()
        })
        .max();
    if let Some(answered) = answered
        && answered - boundary >= threshold
    {
        found.push(format!(
            "consolidate: the answer is message {answered}, the boundary {boundary}"
        ));
    }
    let (behind, ahead) = history.split_at(usize::try_from(boundary).expect("a boundary"));
    for (side, messages) in [("behind", behind), ("ahead of", ahead)] {
        for violation in violations(messages) {
            found.push(format!("consolidate: {side} {boundary}: {violation}"));
        }
    }
    found
}

/// The uses that must have been counted: each completed turn counts each memory that it was shown once.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// Memories by user and id: how many completed turns were shown it.
    shown: BTreeMap<(String, String), u64>,
    /// Those that were stored before the first turn.
    given: BTreeSet<(String, String)>,
    /// Those that were shown since the last look.
    fresh: BTreeSet<(String, String)>,
}

impl Uses {
    /// Gives a user a standing preference, which every turn is shown.
    pub(crate) async fn give_preference(&mut self, client: &Client, user: &str) {
        let preference = serde_json::json!({
            "content": "I prefer answers of one sentence.", "scope": "user_profile", "kind": "preference",
        });
        let stored = client.as_user(user).post("/v1/memories", &preference).await;
        let key = (
            user.to_owned(),
            tidemark_tests::paths::id_of(&stored.expect(201)),
        );
        self.shown.insert(key.clone(), 0);
        self.given.insert(key);
    }

    /// Takes down what a turn was shown, as it is stored.
    pub(crate) fn record(&mut self, user: &str, turn: &Value) {
        if turn["status"] != "completed" {
            return;
        }
        for memory in turn["memories"].as_array().expect("memories") {
            let key = (user.to_owned(), tidemark_tests::paths::id_of(memory));
            *self.shown.entry(key.clone()).or_default() += 1;
            self.fresh.insert(key);
        }
    }

    /// Which uses are not counted as they should be, in words; to be asked once no derived work is left.
    ///
    /// The count is exact for what was stored before all turns. A memory may also be shown from its message before it is stored, and a
    /// use counted in that moment finds nothing to be counted at: for these it is a bound.
    pub(crate) async fn miscounted(&mut self, client: &Client) -> Vec<String> {
        let mut found = Vec::new();
        let fresh = std::mem::take(&mut self.fresh);
        for key in self.given.union(&fresh) {
            let (user, id) = key;
            let answer = client
                .as_user(user)
                .get(&format!("/v1/memories/{id}"))
                .await;
            if answer.status != 200 {
                found.push(format!("index: {id} was shown and is not stored"));
                continue;
            }
            let counted = answer.body["access_count"].as_u64().expect("a count");
            let shown = self.shown[key];
            let exact = self.given.contains(key);
            if counted > shown || (exact && counted < shown) {
                found.push(format!(
                    "count_use: {id} was shown {shown} times and counted {counted} times"
                ));
            }
        }
        found
    }

    /// How many turns were shown a preference.
    pub(crate) fn of_preferences(&self) -> u64 {
        self.given.iter().map(|key| self.shown[key]).sum()
    }
}
