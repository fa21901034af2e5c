//! The promises, asked of the restarted server.

use std::collections::BTreeSet;

use serde_json::Value;
use tidemark_tests::client::Client;
use tidemark_tests::events::Reading;
use tidemark_tests::transcript::{call_ids, violations};

use crate::THRESHOLD;
use crate::derived::{self, Uses};
use crate::load::{Line, Place, TurnSeen};

/// What must hold as soon as the clients of a round have seen their turns end. The derived work comes first: the turns that are asked here
/// bring new work, which covers for what was lost.
pub(crate) async fn after_restart(
    line: &Line,
    places: &[Place],
    seen: &[TurnSeen],
    uses: &mut Uses,
) {
    let distinct: BTreeSet<&str> = seen.iter().map(|turn| turn.turn.as_str()).collect();
    assert_eq!(distinct.len(), seen.len(), "one turn for two messages");
    for turn in seen {
        let client = line.client().as_user(&turn.place.user);
        let stored = told_once(&client, turn).await;
        uses.record(&turn.place.user, &stored);
    }
    let sessions: BTreeSet<&Place> = places
        .iter()
        .chain(seen.iter().map(|turn| &turn.place))
        .collect();
    no_work_is_lost(line, &sessions, seen, uses).await;
    for Place { user, session } in sessions {
        let client = line.client().as_user(user);
        let history = client.history(session).await;
        assert_eq!(
            violations(&history),
            Vec::<String>::new(),
            "the history of {session}: {history:#?}"
        );
        let seqs: Vec<u64> = history
            .iter()
            .map(|message| message["seq"].as_u64().unwrap())
            .collect();
        assert_eq!(
            seqs,
            (1..=history.len() as u64).collect::<Vec<_>>(),
            "the numbers of {session}"
        );
        for turn in seen.iter().filter(|turn| &turn.place.session == session) {
            answered_once(&history, turn);
        }
        let next = client.ask(session, "And on it goes [[tokens=2]]").await;
        assert_eq!(
            next["status"], "completed",
            "{session} does not accept the next turn"
        );
        uses.record(user, &next);
    }
}

/// Whatever was to be derived from the turns is there, and nothing failed.
async fn no_work_is_lost(
    line: &Line,
    sessions: &BTreeSet<&Place>,
    seen: &[TurnSeen],
    uses: &mut Uses,
) {
    let failed = derived::failed_once_drained(&line.client()).await;
    assert_eq!(failed, Vec::<Value>::new(), "failed jobs");
    let mut lost = uses.miscounted(&line.client()).await;
    for place in sessions {
        let client = line.client().as_user(&place.user);
        let turns: Vec<&TurnSeen> = seen.iter().filter(|turn| &&turn.place == place).collect();
        lost.extend(derived::missing(&client, &place.session, &turns, THRESHOLD).await);
    }
    assert_eq!(lost, Vec::<String>::new(), "derived work was lost");
}

/// The stored turn, and its stream asked again, tell the same end as the client saw.
async fn told_once(client: &Client, seen: &TurnSeen) -> Value {
    let stored = client.turn(&seen.turn).await;
    assert_eq!(stored["status"], seen.done["status"], "{}", seen.turn);
    if seen.status() == "completed" {
        assert_eq!(stored["text"], seen.done["text"], "{}", seen.turn);
    }
    let again: Reading = client.read_turn(&seen.turn).await;
    let end = again.assert_one_done_last();
    for field in ["status", "text", "message_id", "finish_reason"] {
        assert_eq!(
            end.data[field], seen.done[field],
            "{field} of {} told again",
            seen.turn
        );
    }
    assert_eq!(
        end.data["seq"], seen.done["seq"],
        "the end of {} has another number",
        seen.turn
    );
    stored
}

/// The message is there at most once, and after it at most one answer: the one that the client saw.
fn answered_once(history: &[Value], seen: &TurnSeen) {
    let places: Vec<usize> = history
        .iter()
        .enumerate()
        .filter(|(_, message)| seen.asked(message))
        .map(|(at, _)| at)
        .collect();
    assert!(
        places.len() <= 1,
        "{} was asked {} times",
        seen.marker,
        places.len()
    );
    let Some(asked) = places.first() else {
        assert_ne!(
            seen.status(),
            "completed",
            "{} completed without a user message",
            seen.marker
        );
        return;
    };
    let answers: Vec<&Value> = history[asked + 1..]
        .iter()
        .take_while(|message| message["role"] != "user")
        .filter(|message| message["role"] == "assistant" && call_ids(message).is_empty())
        .collect();
    assert!(
        answers.len() <= 1,
        "{} has {} answers",
        seen.marker,
        answers.len()
    );
    if seen.status() == "completed" {
        let answer = answers
            .first()
            .unwrap_or_else(|| panic!("{} was told done and has no answer", seen.marker));
        assert_eq!(
            (&answer["content"], &answer["id"]),
            (&seen.done["text"], &seen.done["message_id"]),
            "{}",
            seen.marker
        );
    }
}

/// What must hold once all derived work is done: nothing failed, and what completed turns told is indexed and found.
pub(crate) async fn at_the_end(line: &Line, seen: &[TurnSeen]) {
    let client = line.client();
    let failed = derived::failed_once_drained(&client).await;
    assert_eq!(failed, Vec::<Value>::new(), "failed jobs");
    let users: BTreeSet<&str> = seen.iter().map(|turn| turn.place.user.as_str()).collect();
    for user in users {
        let client = client.as_user(user);
        let memories = client.all("/v1/memories").await;
        let contents: Vec<&str> = memories
            .iter()
            .filter_map(|memory| memory["content"].as_str())
            .collect();
        let told = seen
            .iter()
            .filter(|turn| turn.place.user == user && turn.status() == "completed");
        let mut last = None;
        for turn in told {
            let holding = contents
                .iter()
                .filter(|content| content.contains(&format!("{} ", turn.marker)))
                .count();
            assert!(holding >= 1, "what {} told was never indexed", turn.marker);
            last = Some(&turn.marker);
        }
        if let Some(marker) = last {
            let found = client
                .recall(&format!("Where does the {marker} stand?"))
                .await;
            assert!(
                found.iter().any(|memory| memory["content"]
                    .as_str()
                    .is_some_and(|content| content.contains(marker.as_str()))),
                "{marker}: {found:?}"
            );
        }
    }
}
