//! What the index knows of a memory besides its words.

use std::sync::Arc;

use super::Document;
use crate::ids::{MemoryId, SessionId, Timestamp};
use crate::memory::recall::Standing;
use crate::memory::{Kind, Layer, Memory, Scope, Source, State, Trust, chunk_id, made_in};

/// A memory without its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its id.
    pub id: MemoryId,
    /// Where it applies.
    pub scope: Scope,
    /// What it is.
    pub kind: Kind,
    /// How far it is from what was said.
    pub layer: Layer,
    /// Whether it is told.
    pub state: State,
    /// Who said it.
    pub trust: Trust,
    /// 1–5.
    pub importance: u8,
    /// Never fades.
    pub pinned: bool,
    /// 0–1: how sure we are that it still holds.
    pub confidence: f64,
    /// How often it was shown in a committed turn.
    pub access_count: i64,
    /// When it was last shown, said again, or stored.
    pub last_access: Timestamp,
    /// When it was stored.
    pub created_at: Timestamp,
    /// Since when it holds; of an episodic one, when it was said.
    pub valid_from: Timestamp,
    /// Until when it held.
    pub valid_to: Option<Timestamp>,
    /// When it is to be deleted.
    pub expires_at: Option<Timestamp>,
    /// The session it was learned in, or was given for.
    pub session_id: Option<SessionId>,
    /// The messages behind it.
    pub sources: Box<[Source]>,
    /// Who spoke, where that was named.
    pub speaker: Option<Arc<str>>,
}

impl Entry {
    /// What decides whether it may be told.
    pub fn standing(&self) -> Standing {
        Standing {
            state: self.state,
            layer: self.layer,
            valid_from: self.valid_from,
            valid_to: self.valid_to,
            expires_at: self.expires_at,
        }
    }

    /// The message and the place in it that an episodic memory is a chunk of.
    pub(super) fn place(&self) -> Option<&Source> {
        match &*self.sources {
            [source] if made_in(self.layer, self.id, &self.sources) == Layer::Episodic => {
                Some(source)
            }
            _ => None,
        }
    }
}

impl From<&Memory> for Entry {
    fn from(memory: &Memory) -> Self {
        Self {
            id: memory.id,
            scope: memory.scope,
            kind: memory.kind,
            layer: memory.layer,
            state: memory.state,
            trust: memory.trust,
            importance: memory.importance,
            pinned: memory.pinned,
            confidence: memory.confidence,
            access_count: memory.access_count,
            last_access: memory.last_access,
            created_at: memory.created_at,
            valid_from: memory.valid_from,
            valid_to: memory.valid_to,
            expires_at: memory.expires_at,
            session_id: memory.session_id,
            sources: memory.sources.clone().into(),
            speaker: memory.speaker.as_deref().map(Arc::from),
        }
    }
}

/// What the index knows of a memory's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// How many terms it has, with repeats.
    pub len: u32,
    /// How many characters.
    pub chars: u32,
    /// It does nothing but ask.
    pub asks: bool,
    /// Which chunk of its message it is, from 0; 0 for what is no chunk.
    pub ordinal: u32,
    /// Stands for its document: equal documents have equal ones.
    pub(super) print: u64,
}

/// A message has no more chunks than this: the longest that is taken has some 2,000.
const MOST_CHUNKS: usize = 4_096;

impl Text {
    pub(super) fn new(entry: &Entry, document: &Document) -> Self {
        // The ordinal is part of a chunk's id, see [`chunk_id`].
        let ordinal = entry.place().and_then(|source| {
            (0..MOST_CHUNKS).find(|&n| chunk_id(source.message_id, n) == entry.id)
        });
        Self {
            len: document.len(),
            chars: document.chars(),
            asks: document.asks(),
            ordinal: ordinal.unwrap_or(0) as u32,
            print: fingerprint(document.as_bytes()),
        }
    }
}

/// FNV-1a, 64 bits: offset basis and prime of its specification.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
