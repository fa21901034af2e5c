//! The events of one turn, and the rules of the contract that every reading of a stream has to keep.

use std::time::Instant;

use serde_json::Value;

use crate::sse::{Arrived, Frame};

/// The event types that the contract names; others are to be ignored by clients but are a surprise in a test.
const KNOWN: [&str; 8] = [
    "start", "recall", "message", "tool", "approval", "reset", "snapshot", "done",
];

/// One event of a turn.
#[derive(Debug, Clone)]
pub struct TurnEvent {
    /// `<turn_id>:<seq>`.
    pub id: String,
    /// Its number.
    pub seq: u64,
    /// Its type.
    pub kind: String,
    /// Its data.
    pub data: Value,
    /// When it arrived.
    pub at: Instant,
}

/// The numbered events of a reading, in order.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The events.
    pub events: Vec<TurnEvent>,
    /// The `retry` of the first event or of a frame of its own, all that came.
    pub retries: Vec<u64>,
    /// When heartbeats came.
    pub heartbeats: Vec<Instant>,
    /// Reasoning tokens, which carry no id.
    pub reasoning: String,
}

impl Reading {
    /// Reads frames, and fails the test where one breaks the framing rules.
    pub fn of(frames: &[Arrived]) -> Self {
        let mut reading = Self::default();
        for arrived in frames {
            match &arrived.frame {
                Frame::Comment(text) => {
                    if text.contains("heartbeat") {
                        reading.heartbeats.push(arrived.at);
                    }
                }
                Frame::Retry(millis) => reading.retries.push(*millis),
                Frame::Event(event) => {
                    reading.retries.extend(event.retry);
                    assert_eq!(event.data_lines, 1, "one data line an event: {event:?}");
                    let data: Value = serde_json::from_str(&event.data).expect("data is JSON");
                    assert_eq!(
                        data["type"],
                        event.kind.as_str(),
                        "type and event field: {event:?}"
                    );
                    assert_ne!(event.kind, "error", "no event is ever named error");
                    if event.kind == "reasoning" {
                        assert_eq!(event.id, None, "reasoning carries no id");
                        reading
                            .reasoning
                            .push_str(data["token"].as_str().expect("a token"));
                        continue;
                    }
                    assert!(
                        KNOWN.contains(&event.kind.as_str()),
                        "an event type outside the contract: {}",
                        event.kind
                    );
                    let seq = data["seq"].as_u64().expect("a seq");
                    let turn = data["turn_id"].as_str().expect("a turn id");
                    let id = event.id.clone().expect("an id");
                    assert_eq!(id, format!("{turn}:{seq}"), "id, turn and seq");
                    reading.events.push(TurnEvent {
                        id,
                        seq,
                        kind: event.kind.clone(),
                        data,
                        at: arrived.at,
                    });
                }
            }
        }
        reading
    }

    /// The events of this type.
    pub fn of_kind(&self, kind: &str) -> Vec<&TurnEvent> {
        self.events
            .iter()
            .filter(|event| event.kind == kind)
            .collect()
    }

    /// The terminal event, if it came.
    pub fn done(&self) -> Option<&TurnEvent> {
        self.events.iter().find(|event| event.kind == "done")
    }

    /// Numbers of the events.
    pub fn seqs(&self) -> Vec<u64> {
        self.events.iter().map(|event| event.seq).collect()
    }

    /// The `memories` of the `recall` event.
    pub fn recalled(&self) -> Vec<Value> {
        let events = self.of_kind("recall");
        events
            .first()
            .and_then(|event| event.data["memories"].as_array().cloned())
            .unwrap_or_default()
    }

    /// Tokens since the last `reset` or `snapshot`, with the snapshot's text in front.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for event in &self.events {
            match event.kind.as_str() {
                "message" => text.push_str(event.data["token"].as_str().expect("a token")),
                "reset" => text.clear(),
                "snapshot" => event.data["text"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut text),
                _ => {}
            }
        }
        text
    }

    /// Numbers rise by one from `first`; only a snapshot may jump.
    pub fn assert_gapless_from(&self, first: u64) {
        let mut expected = first;
        for event in &self.events {
            if event.kind == "snapshot" {
                assert!(
                    event.seq >= expected,
                    "a snapshot goes back: {:?}",
                    self.seqs()
                );
            } else {
                assert_eq!(event.seq, expected, "a gap or repeat in {:?}", self.seqs());
            }
            expected = event.seq + 1;
        }
    }

    /// The whole log of a turn that completed: `start` first, one `done` last, tokens equal to the text. Gives the text.
    pub fn assert_complete(&self) -> String {
        self.assert_gapless_from(1);
        assert_eq!(self.retries.first(), Some(&2000), "retry: 2000 comes first");
        assert_eq!(self.of_kind("start").len(), 1, "one start");
        assert_eq!(
            self.events.first().map(|event| event.kind.as_str()),
            Some("start"),
            "start is first"
        );
        assert!(self.of_kind("recall").len() <= 1, "at most one recall");
        let done = self.assert_one_done_last();
        assert_eq!(done.data["status"], "completed", "{:?}", done.data);
        let text = done.data["text"]
            .as_str()
            .expect("a completed turn has a text")
            .to_owned();
        assert_eq!(self.text(), text, "tokens and text");
        text
    }

    /// Exactly one `done`, and nothing after it.
    pub fn assert_one_done_last(&self) -> &TurnEvent {
        assert_eq!(
            self.of_kind("done").len(),
            1,
            "one done in {:?}",
            self.kinds()
        );
        let last = self.events.last().expect("events");
        assert_eq!(last.kind, "done", "done is last in {:?}", self.kinds());
        last
    }

    /// The types in order, for messages.
    pub fn kinds(&self) -> Vec<&str> {
        self.events
            .iter()
            .map(|event| event.kind.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sse::SseEvent;

    fn frame(seq: u64, kind: &str, mut data: Value) -> Arrived {
        data["type"] = json!(kind);
        data["turn_id"] = json!("t");
        data["seq"] = json!(seq);
        let event = SseEvent {
            id: Some(format!("t:{seq}")),
            kind: kind.to_owned(),
            data: data.to_string(),
            data_lines: 1,
            retry: (seq == 1).then_some(2000),
        };
        Arrived {
            frame: Frame::Event(event),
            at: Instant::now(),
        }
    }

    fn log() -> Vec<Arrived> {
        vec![
            frame(1, "start", json!({})),
            frame(2, "message", json!({"token": "void"})),
            frame(3, "reset", json!({"reason": "tool"})),
            frame(4, "message", json!({"token": "a"})),
            frame(5, "message", json!({"token": "b"})),
            frame(6, "done", json!({"status": "completed", "text": "ab"})),
        ]
    }

    #[test]
    fn a_good_log_passes_and_tokens_before_a_reset_are_void() {
        assert_eq!(Reading::of(&log()).assert_complete(), "ab");
    }

    #[test]
    fn a_missing_a_repeated_and_a_late_event_are_found() {
        let broken: [fn(&mut Vec<Arrived>); 4] = [
            |log| drop(log.remove(4)),
            |log| log.insert(4, log[4].clone()),
            |log| log.push(frame(7, "message", json!({"token": "late"}))),
            |log| {
                log.push(frame(
                    7,
                    "done",
                    json!({"status": "completed", "text": "ab"}),
                ));
            },
        ];
        for (at, breaks) in broken.into_iter().enumerate() {
            let mut log = log();
            breaks(&mut log);
            assert!(
                std::panic::catch_unwind(|| Reading::of(&log).assert_complete()).is_err(),
                "breach {at} passed"
            );
        }
    }
}
