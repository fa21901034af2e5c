//! What is remembered: its kinds, where it comes from, and how long it holds.

pub mod analysis;
pub mod change;
pub mod chunk;
pub mod conflict;
pub mod consolidation;
mod cues;
pub mod embedding;
pub mod episodic;
pub mod extraction;
pub mod forgetting;
pub mod gate;
#[cfg(test)]
mod hostile_text;
pub mod index;
pub mod injection;
pub mod lexical;
pub mod outdated;
pub mod prompt;
pub mod recall;
pub mod redaction;
pub mod rerank;
pub mod rules;
pub mod scoring;
pub mod segment;
pub mod sentence;
pub mod speakers;
#[cfg(test)]
pub(crate) mod testing;
pub mod when;
mod words;

use serde::{Deserialize, Serialize};

use crate::ids::{MemoryId, MessageId, SessionId, Timestamp};

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident => $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name used on the wire and in the stores.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The value of that name.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|v| v.as_str() == name)
            }
        }
    };
}

names!(
    /// Where a memory applies (B3).
    Scope {
        /// The person, in every session.
        UserProfile => "user_profile",
        /// What the conversations are about.
        ProjectContext => "project_context",
        /// The state of a task in progress.
        TaskState => "task_state",
    }
);
names!(
    /// What a memory is (B2).
    Kind {
        /// How the person wants things.
        Preference => "preference",
        /// What is the case.
        Fact => "fact",
        /// What was decided.
        Decision => "decision",
        /// What holds for a while.
        TemporaryState => "temporary_state",
    }
);
names!(
    /// How far a memory is from what was said.
    Layer {
        /// Said a moment ago and not indexed yet.
        Working => "working",
        /// A verbatim chunk of one message.
        Episodic => "episodic",
        /// An extracted or merged statement.
        Semantic => "semantic",
        /// Kept, but only told on request.
        Archival => "archival",
    }
);
names!(
    /// Whether a memory is told.
    State {
        /// It holds.
        Current => "current",
        /// A newer one took its place.
        Superseded => "superseded",
        /// It faded.
        Archived => "archived",
        /// It waits for a person's confirmation.
        Quarantined => "quarantined",
    }
);

/// How far what is said can be believed, by who said it. A lower one never overrides a higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// A tool's result.
    Tool,
    /// The model's own words.
    Assistant,
    /// The person's own words, or a caller of the API in their name.
    User,
}

impl Trust {
    /// As a number, 0–1, the form of the API: tool 0.3, assistant 0.6, user 1. The numbers are ours; only their order matters.
    pub fn weight(self) -> f64 {
        match self {
            Self::Tool => 0.3,
            Self::Assistant => 0.6,
            Self::User => 1.0,
        }
    }

    /// The name used in the stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Assistant => "assistant",
            Self::User => "user",
        }
    }

    /// The value of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Tool, Self::Assistant, Self::User]
            .into_iter()
            .find(|t| t.as_str() == name)
    }
}

/// A message that a memory was learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Source {
    /// The message.
    pub message_id: MessageId,
    /// Its session.
    pub session_id: SessionId,
    /// Its position there.
    pub seq: i64,
}

/// One remembered item (B2).
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Its id.
    pub id: MemoryId,
    /// What it says. At most 4,000 characters.
    pub content: String,
    /// Who said it, where that was named: of an import, the name. "I" in the content is this one, else the owner.
    pub speaker: Option<String>,
    /// Where it applies.
    pub scope: Scope,
    /// What it is.
    pub kind: Kind,
    /// How far it is from what was said.
    pub layer: Layer,
    /// Whether it is told.
    pub state: State,
    /// 1–5 (B6).
    pub importance: u8,
    /// 0–1: how sure we are that it still holds.
    pub confidence: f64,
    /// Who said it.
    pub trust: Trust,
    /// Never fades.
    pub pinned: bool,
    /// Subject and attribute; what has the same key speaks of the same thing.
    pub key: Option<String>,
    /// The session it was learned in, or was given for.
    pub session_id: Option<SessionId>,
    /// The messages behind it.
    pub sources: Vec<Source>,
    /// Since when it holds.
    pub valid_from: Timestamp,
    /// Until when it held.
    pub valid_to: Option<Timestamp>,
    /// The memory that took its place.
    pub superseded_by: Option<MemoryId>,
    /// When it ended for good, whatever else is said of its key: what had ended it was forgotten or has expired, or an edit put it aside.
    /// `valid_to` is never later, but may be earlier.
    pub ended_at: Option<Timestamp>,
    /// When it is to be deleted.
    pub expires_at: Option<Timestamp>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// How often it was shown in a committed turn.
    pub access_count: i64,
    /// When it was last shown, said again, or stored.
    pub last_access: Timestamp,
    /// Rises with every change; the entity tag.
    pub version: i64,
}

impl Memory {
    /// The layer that it was made in: archiving changes neither what a memory is nor where it comes from.
    pub fn made_in(&self) -> Layer {
        made_in(self.layer, self.id, &self.sources)
    }
}

/// The layer that a memory with this layer, id and sources was made in. Of what is archived the id tells: a chunk has the first half of its
/// message's ([`chunk_id`]).
pub fn made_in(layer: Layer, id: MemoryId, sources: &[Source]) -> Layer {
    match (layer, sources) {
        (Layer::Archival, [source])
            if id.0.as_bytes()[..8] == source.message_id.0.as_bytes()[..8] =>
        {
            Layer::Episodic
        }
        (Layer::Archival, _) => Layer::Semantic,
        (layer, _) => layer,
    }
}

/// Since when a statement of a message holds: from the message's time on, and of several about the same thing each a microsecond (the
/// precision of the stores) after the one before it. `nth` is the number of those before it.
pub fn said_at(message: Timestamp, nth: usize) -> Timestamp {
    message + chrono::TimeDelta::microseconds(nth as i64)
}

/// The id of the episodic memory made of one chunk of a message.
///
/// It keeps the message's time and replaces its random bits by a hash of message and ordinal, so that indexing the same message
/// twice yields the same ids (idempotent), and a chunk that is recalled before it is indexed already has its later id.
pub fn chunk_id(message: MessageId, ordinal: usize) -> MemoryId {
    let source = message.0.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64; // FNV-1a, 64 bits: offset basis and prime of its specification
    for byte in source.iter().copied().chain((ordinal as u64).to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut bytes = *source;
    bytes[8..].copy_from_slice(&hash.to_be_bytes());
    bytes[8] = (bytes[8] & 0x3f) | 0x80; // the variant bits of RFC 9562
    MemoryId(uuid::Uuid::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_chunk_has_the_same_id_whenever_it_is_made_and_no_other_chunk_has_it() {
        let message = MessageId(Uuid::from_u128(0x0192_3456_789a_7bcd_8ef0_1234_5678_9abc));
        assert_eq!(chunk_id(message, 0), chunk_id(message, 0));
        assert_ne!(chunk_id(message, 0), chunk_id(message, 1));
        assert_ne!(chunk_id(message, 0).0, message.0);
        assert_eq!(chunk_id(message, 3).0.get_version_num(), 7);
        assert_eq!(
            chunk_id(message, 3).0.as_bytes()[..8],
            message.0.as_bytes()[..8]
        );
    }

    #[test]
    fn what_is_archived_is_known_by_its_id_as_the_chunk_or_the_statement_that_it_was() {
        use super::testing::{memory, message, source};
        let said = message(1, crate::session::Role::User, "We went hiking");
        let mut chunk = memory(1, "We went hiking");
        chunk.id = chunk_id(said.id, 2);
        chunk.sources = vec![source(&said)];
        chunk.layer = Layer::Archival;
        assert_eq!(chunk.made_in(), Layer::Episodic);
        let mut statement = chunk.clone();
        statement.id = MemoryId(Uuid::from_u128(u128::MAX));
        assert_eq!(statement.made_in(), Layer::Semantic);
        let mut given = chunk.clone();
        given.sources.clear();
        assert_eq!(given.made_in(), Layer::Semantic);
        for layer in [Layer::Working, Layer::Episodic, Layer::Semantic] {
            chunk.layer = layer;
            assert_eq!(chunk.made_in(), layer);
        }
    }

    #[test]
    fn names_survive_the_round_trip() {
        for scope in Scope::ALL {
            assert_eq!(Scope::parse(scope.as_str()), Some(*scope));
        }
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.as_str()), Some(*kind));
        }
    }
}
