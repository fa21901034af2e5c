//! What the clients did and saw, in the order in which it happened to them. It is all that the checker knows of the run, beside what is
//! stored at its end.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

/// How often is looked whether the machine runs this test at all.
const TICK: Duration = Duration::from_millis(500);

/// One thing that happened.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Entry {
    /// Its place in the history.
    pub at: usize,
    /// Milliseconds since the begin.
    pub ms: u64,
    #[serde(flatten)]
    pub what: What,
}

/// What may happen. A key is the idempotency key of one wish; a turn and a memory are named by their ids.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum What {
    /// A fault began or ended.
    Fault { text: String },
    /// The machine was too busy to run even this test, for so long.
    StoodStill { for_ms: u64 },
    /// A replica has ended after SIGTERM.
    Drained {
        replica: usize,
        took_ms: u64,
        status: String,
    },
    /// A turn was asked for; again with each try.
    Asked {
        key: String,
        user: String,
        session: String,
        message: String,
        replica: usize,
    },
    /// It was answered with success.
    Accepted { key: String, turn: String },
    /// It was answered otherwise, or not at all (status 0).
    Refused {
        key: String,
        status: u16,
        code: String,
    },
    /// A client has lost its patience.
    GaveUp { subject: String },
    /// A cancellation was confirmed.
    Cancelled { turn: String, status: String },
    /// A follower asked for a turn's events behind a number; at no replica where the turn was asked for with the stream itself.
    Opened {
        reader: String,
        turn: String,
        replica: Option<usize>,
        after: Option<u64>,
    },
    /// It was answered with another status than 200; 0 for no answer.
    NotOpened {
        reader: String,
        turn: String,
        status: u16,
        code: String,
    },
    /// An event arrived.
    Told {
        reader: String,
        turn: String,
        seq: u64,
        kind: String,
        data: Value,
    },
    /// The connection ended.
    Closed {
        reader: String,
        turn: String,
        how: String,
    },
    /// A memory was given; again with each try.
    Given {
        key: String,
        user: String,
        content: String,
    },
    /// It was confirmed.
    Kept { key: String, memory: String },
    /// Somebody looked for it at another replica.
    Looked { memory: String, status: u16 },
    /// It was to be forgotten; again with each try.
    ForgetAsked { memory: String },
    /// That was confirmed: 204, or 404 where a try before was done and not told.
    Forgotten { memory: String, status: u16 },
}

impl What {
    /// Whether it concerns a turn, a key, a reader or a memory of this name.
    pub(crate) fn names(&self, subject: &str) -> bool {
        let named = match self {
            Self::Fault { .. } | Self::StoodStill { .. } | Self::Drained { .. } => return false,
            Self::Asked { key, session, .. } => [key, session],
            Self::Accepted { key, turn } => [key, turn],
            Self::Refused { key, .. } => [key, key],
            Self::GaveUp { subject } => [subject, subject],
            Self::Cancelled { turn, .. } => [turn, turn],
            Self::Opened { reader, turn, .. }
            | Self::NotOpened { reader, turn, .. }
            | Self::Told { reader, turn, .. }
            | Self::Closed { reader, turn, .. } => [reader, turn],
            Self::Given { key, user, .. } => [key, user],
            Self::Kept { key, memory } => [key, memory],
            Self::Looked { memory, .. }
            | Self::ForgetAsked { memory }
            | Self::Forgotten { memory, .. } => [memory, memory],
        };
        named.iter().any(|name| *name == subject)
    }
}

/// Where all clients write.
#[derive(Debug)]
pub(crate) struct History {
    begun: Instant,
    entries: Mutex<Vec<Entry>>,
}

impl History {
    pub(crate) fn begin() -> Self {
        Self {
            begun: Instant::now(),
            entries: Mutex::default(),
        }
    }

    /// Writes down what has just happened, or is about to be asked.
    pub(crate) fn add(&self, what: What) {
        let ms = self.begun.elapsed().as_millis() as u64;
        let mut entries = self.entries.lock().unwrap();
        let at = entries.len();
        entries.push(Entry { at, ms, what });
    }

    pub(crate) fn fault(&self, text: String) {
        println!("{:>8.3} {text}", self.begun.elapsed().as_secs_f64());
        self.add(What::Fault { text });
    }

    /// Writes down when the machine stands still, as long as it is polled: what takes longer then is nobody's fault.
    pub(crate) async fn watch(&self) {
        loop {
            let begun = Instant::now();
            tokio::time::sleep(TICK).await;
            let late = begun.elapsed().saturating_sub(TICK);
            if late > TICK {
                let for_ms = late.as_millis() as u64;
                println!("the machine stood still for {for_ms} ms");
                self.add(What::StoodStill { for_ms });
            }
        }
    }

    /// Everything so far.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }
}

/// A history of these, one a millisecond.
#[cfg(test)]
pub(crate) fn of(all: impl IntoIterator<Item = What>) -> Vec<Entry> {
    all.into_iter()
        .enumerate()
        .map(|(at, what)| Entry {
            at,
            ms: at as u64,
            what,
        })
        .collect()
}
