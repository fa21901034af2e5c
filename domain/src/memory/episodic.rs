//! What of a message becomes episodic memory.

use super::chunk::chunks;
use super::gate::{KEEP_FROM, importance};
use super::redaction::redact;
use super::rules::{Statement, statements};
use super::{Kind, Layer, Memory, Scope, Source, State, Trust, chunk_id};
use crate::ids::Timestamp;
use crate::session::{Message, Role};

/// How sure a memory starts, by who said it: 0.8 of the weight of their trust. The number is ours; it leaves room to rise when a statement
/// is repeated (see [`super::consolidation`]).
pub fn initial_confidence(trust: Trust) -> f64 {
    0.8 * trust.weight()
}

/// The episodic memories of a message: its chunks, verbatim but for credentials, as far as they pass the importance gate.
///
/// None for messages of tools and of the system, for such as must not be learned from, and for answers that were cut. Imported messages (those
/// without a turn) skip the gate, and when an import names the speaker each chunk starts with the name, since "I" would else be the owner.
/// The ids depend on message and place alone, so that making them again is harmless. `now` is the time of storing.
pub fn memories(message: &Message, now: Timestamp) -> Vec<Memory> {
    let trust = match message.role {
        Role::User => Trust::User,
        Role::Assistant => Trust::Assistant,
        Role::System | Role::Tool => return Vec::new(),
    };
    if !message.learnable || message.partial {
        return Vec::new();
    }
    // Before it is cut, so that no credential lies across two chunks.
    let clean = redact(&message.content).text;
    chunks(&clean)
        .into_iter()
        .enumerate()
        .filter_map(|(ordinal, chunk)| {
            let importance = importance(&chunk, message.role);
            if importance < KEEP_FROM && message.turn_id.is_some() {
                return None;
            }
            let (scope, kind) = purport(&chunk, message.role);
            Some(Memory {
                id: chunk_id(message.id, ordinal),
                content: match &message.name {
                    Some(name) => format!("{name}: {chunk}"),
                    None => chunk,
                },
                scope,
                kind,
                layer: Layer::Episodic,
                state: State::Current,
                importance,
                confidence: initial_confidence(trust),
                trust,
                pinned: false,
                key: None,
                session_id: Some(message.session_id),
                sources: vec![Source {
                    message_id: message.id,
                    session_id: message.session_id,
                    seq: message.seq,
                }],
                valid_from: message.created_at,
                valid_to: None,
                expires_at: None,
                created_at: now,
                access_count: 0,
                last_access: now,
                version: 1,
            })
        })
        .collect()
}

/// Scope and kind of a chunk: those of a standing preference if it states one, else of its weightiest statement, else a fact of the
/// project. Only a person's own words state anything.
fn purport(chunk: &str, role: Role) -> (Scope, Kind) {
    let stated = if role == Role::User {
        statements(chunk)
    } else {
        Vec::new()
    };
    let first_of = |better: fn(&Statement) -> (bool, u8)| {
        stated
            .iter()
            .enumerate()
            .max_by_key(|(at, s)| (better(s), std::cmp::Reverse(*at)))
            .map(|(_, s)| (s.scope, s.kind))
    };
    first_of(|s| (s.kind == Kind::Preference, s.importance))
        .unwrap_or((Scope::ProjectContext, Kind::Fact))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::super::testing::{day, message, source};
    use super::*;

    #[test]
    fn a_preference_is_known_as_one_at_once_and_names_its_message() {
        let message = message(3, Role::User, "I prefer answers as tables.");
        let all = memories(&message, day(3));
        assert_eq!(all.len(), 1);
        let memory = &all[0];
        assert_eq!(memory.content, message.content);
        assert_eq!(
            (memory.scope, memory.kind),
            (Scope::UserProfile, Kind::Preference)
        );
        assert_eq!((memory.layer, memory.trust), (Layer::Episodic, Trust::User));
        assert_eq!(memory.sources, [source(&message)]);
        assert_eq!((memory.valid_from, memory.created_at), (day(2), day(3)));
        assert_eq!(memory.id, chunk_id(message.id, 0));
        assert_eq!(all, memories(&message, day(3)));
    }

    #[test]
    fn the_models_words_are_kept_with_less_trust_and_state_no_preference() {
        let all = memories(
            &message(1, Role::Assistant, "I prefer tables for this."),
            day(3),
        );
        assert_eq!(
            (all[0].trust, all[0].kind, all[0].scope),
            (Trust::Assistant, Kind::Fact, Scope::ProjectContext)
        );
        assert!(all[0].confidence < initial_confidence(Trust::User));
    }

    #[test]
    fn nothing_is_learned_from_tools_temporary_chats_and_cut_answers() {
        let text = "The budget is 300k and the deadline is Friday.";
        for role in [Role::Tool, Role::System] {
            assert!(memories(&message(1, role, text), day(3)).is_empty());
        }
        let mut hidden = message(1, Role::User, text);
        hidden.learnable = false;
        assert!(memories(&hidden, day(3)).is_empty());
        let mut cut = message(1, Role::Assistant, text);
        cut.partial = true;
        assert!(memories(&cut, day(3)).is_empty());
    }

    #[test]
    fn small_talk_is_kept_only_where_it_was_imported() {
        let mut greeting = message(1, Role::User, "Good morning!");
        assert!(memories(&greeting, day(3)).is_empty());
        greeting.turn_id = None;
        greeting.name = Some("Alice".to_owned());
        assert_eq!(
            memories(&greeting, day(3))[0].content,
            "Alice: Good morning!"
        );
    }

    #[test]
    fn no_credential_becomes_memory_not_even_across_two_chunks() {
        let key = format!("sk-{}", "a1B2c3D4".repeat(5));
        let text = format!("{} {key} {}", "word ".repeat(96), "more words. ".repeat(40));
        let mut message = message(1, Role::User, &text);
        for turn in [message.turn_id, None] {
            message.turn_id = turn;
            let all = memories(&message, day(3));
            assert!(all.len() > 1);
            assert!(all.iter().all(|m| !m.content.contains("a1B2c3D4")));
            assert!(all.iter().any(|m| m.content.contains("[redacted]")));
        }
    }
}
