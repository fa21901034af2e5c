//! Forgetting (B12): confidence falls while a memory is not used, slower the more often it was, and what has faded is archived.
//!
//! Memory has layers, from what is near the task to what is only kept: working → episodic → semantic → archival. The nearer to the moment,
//! the sooner it fades. The curve is the exponential one of Ebbinghaus, *Über das Gedächtnis* (1885), in the form of half-lives that grow with
//! practice (Settles and Meeder, *A Trainable Spaced Repetition Model for Language Learning*, 2016). The numbers are ours.

use chrono::TimeDelta;

use super::recall::days_between;
use super::{Kind, Layer, Memory, State, Trust};
use crate::ids::Timestamp;

/// The confidence below which a memory is archived. A person's words, never used, come there after two half-lives, the model's after 1¼.
pub const FLOOR: f64 = 0.2;

/// After this many uses the half-life grows no further: ten times the first.
pub const MOST_USES: i64 = 9;

/// Half-lives without use, in days. Of a working memory a week, of what holds for a while a month, of a verbatim chunk a quarter, of a
/// statement half a year.
fn first_half_life(memory: &Memory) -> f64 {
    let by_layer = match memory.layer {
        Layer::Working => 7.0,
        // What is archived does not grow surer by it.
        Layer::Episodic | Layer::Archival => 90.0,
        Layer::Semantic => 180.0,
    };
    match memory.kind {
        Kind::TemporaryState => f64::min(by_layer, 30.0),
        Kind::Preference | Kind::Fact | Kind::Decision => by_layer,
    }
}

/// The days in which confidence halves: the first half-life, once more for each use ([`MOST_USES`] at most).
pub fn half_life(memory: &Memory) -> f64 {
    let uses = memory.access_count.clamp(0, MOST_USES);
    first_half_life(memory) * (1.0 + uses as f64)
}

/// How sure we are at a time that a memory still holds, 0–1: `c·2^(−days/half-life)`, the days since it was last shown or stored. What never
/// fades keeps its confidence.
pub fn confidence_at(memory: &Memory, now: Timestamp) -> f64 {
    if never_fades(memory) {
        return memory.confidence;
    }
    let days = days_between(memory.last_access, now);
    memory.confidence * (-days / half_life(memory)).exp2()
}

/// Whether a memory never fades: a pinned one, and what a person stated or wishes. Their verbatim chunks fade; what they say of a key, or as a
/// standing preference, does not.
pub fn never_fades(memory: &Memory) -> bool {
    let stated =
        memory.layer == Layer::Semantic || memory.kind == Kind::Preference || memory.key.is_some();
    memory.pinned || (memory.trust == Trust::User && stated)
}

/// When a memory's confidence comes to [`FLOOR`], if it is not used again, in whatever state it is; none for what never fades.
///
/// Use, repetition and a person's wish only put it off, so whoever keeps it may be late in noticing them.
pub fn fades_at(memory: &Memory) -> Option<Timestamp> {
    if never_fades(memory) {
        return None;
    }
    let half_lives = (memory.confidence / FLOOR).log2().max(0.0);
    let seconds = half_lives * half_life(memory) * 86_400.0;
    memory
        .last_access
        .checked_add_signed(TimeDelta::seconds(seconds.ceil() as i64))
}

/// What is to be done with a memory whose time was thought to have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has faded: archive it.
    Archive,
    /// It was used since: look again then.
    Later(Timestamp),
    /// It does not fade, or is not current.
    Keep,
}

/// The fate of a memory at a time.
pub fn fate(memory: &Memory, now: Timestamp) -> Fate {
    match fades_at(memory).filter(|_| memory.state == State::Current) {
        None => Fate::Keep,
        Some(at) if at <= now => Fate::Archive,
        Some(at) => Fate::Later(at),
    }
}

/// Archives: kept, and told on request alone.
pub fn archive(memory: &mut Memory) {
    memory.state = State::Archived;
    memory.layer = Layer::Archival;
}

/// Brings an archived memory back, at a person's wish: confirmed so, it is a statement, and fades no sooner than one. The time counts as use.
pub fn restore(memory: &mut Memory, now: Timestamp) {
    memory.state = State::Current;
    if memory.layer == Layer::Archival {
        memory.layer = Layer::Semantic;
    }
    memory.last_access = now;
}

/// An archived memory that a turn has shown, which is shown on request alone: it is what it was before, and the time counts as use. None for what
/// is not archived, and for what was archived before it had faded: that was a person's wish, and is left to that person.
pub fn revive(memory: &Memory, now: Timestamp) -> Option<Memory> {
    if memory.state != State::Archived {
        return None;
    }
    let mut revived = memory.clone();
    revived.layer = memory.made_in();
    fades_at(&revived).filter(|at| *at <= now)?;
    revived.state = State::Current;
    revived.last_access = now;
    revived.version += 1;
    Some(revived)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::super::chunk_id;
    use super::super::testing::{day, memory, message, source};
    use super::*;
    use crate::session::Role;
    use proptest::prelude::*;

    fn chunk() -> Memory {
        Memory {
            layer: Layer::Episodic,
            ..memory(1, "We went hiking")
        }
    }

    fn after(days: i64) -> Timestamp {
        day(1) + TimeDelta::days(days)
    }

    #[test]
    fn confidence_halves_with_each_half_life() {
        let chunk = chunk();
        assert!((confidence_at(&chunk, after(0)) - 0.8).abs() < 1e-12);
        assert!((confidence_at(&chunk, after(90)) - 0.4).abs() < 1e-12);
        assert!((confidence_at(&chunk, after(180)) - 0.2).abs() < 1e-12);
        assert_eq!(fades_at(&chunk), Some(after(180)));
        assert_eq!(fate(&chunk, after(179)), Fate::Later(after(180)));
        assert_eq!(fate(&chunk, after(180)), Fate::Archive);
    }

    #[test]
    fn use_makes_it_last_longer_but_not_for_ever() {
        let mut used = chunk();
        used.access_count = 1;
        assert_eq!(fades_at(&used), Some(after(360)));
        used.access_count = 1_000;
        assert_eq!(fades_at(&used), Some(after(1_800)));
        used.last_access = after(100);
        assert_eq!(fades_at(&used), Some(after(1_900)));
    }

    #[test]
    fn the_nearer_to_the_moment_the_sooner_it_fades() {
        let of = |layer: Layer| {
            let mut memory = chunk();
            memory.layer = layer;
            memory.trust = Trust::Assistant;
            half_life(&memory)
        };
        assert!(of(Layer::Working) < of(Layer::Episodic));
        assert!(of(Layer::Episodic) < of(Layer::Semantic));
        let mut state = chunk();
        state.kind = Kind::TemporaryState;
        assert!(half_life(&state) < half_life(&chunk()));
    }

    #[test]
    fn what_is_pinned_or_stated_by_the_person_never_fades() {
        let mut pinned = chunk();
        pinned.pinned = true;
        let stated = memory(1, "Our budget is 300k");
        let mut wish = chunk();
        wish.kind = Kind::Preference;
        let mut keyed = chunk();
        keyed.key = Some("budget".to_owned());
        for memory in [pinned, stated.clone(), wish, keyed] {
            assert_eq!(fate(&memory, after(100_000)), Fate::Keep);
            assert!((confidence_at(&memory, after(100_000)) - 0.8).abs() < 1e-12);
        }
        let mut models = stated;
        models.trust = Trust::Assistant;
        assert_eq!(fate(&models, after(100_000)), Fate::Archive);
    }

    #[test]
    fn what_was_archived_and_is_wanted_back_is_current_and_fades_anew() {
        let mut memory = chunk();
        memory.trust = Trust::Assistant;
        archive(&mut memory);
        assert_eq!(fate(&memory, after(100_000)), Fate::Keep);
        restore(&mut memory, after(200));
        assert_eq!(
            (memory.state, memory.layer),
            (State::Current, Layer::Semantic)
        );
        assert!(fades_at(&memory) > Some(after(200)));
    }

    #[test]
    fn what_has_faded_and_is_shown_on_request_is_what_it_was_and_lasts_longer() {
        let said = message(1, Role::User, "We went hiking");
        let mut faded = Memory {
            id: chunk_id(said.id, 0),
            sources: vec![source(&said)],
            ..chunk()
        };
        archive(&mut faded);
        assert!(confidence_at(&faded, after(180)) <= FLOOR);
        let revived = revive(&faded, after(200)).unwrap();
        assert_eq!(
            (revived.state, revived.layer, revived.version),
            (State::Current, Layer::Episodic, 2)
        );
        assert!(fades_at(&revived) >= Some(after(380)));
        assert_eq!(revive(&revived, after(400)), None);
    }

    #[test]
    fn what_a_person_archived_is_not_brought_back_by_being_shown() {
        let mut by_hand = chunk();
        by_hand.trust = Trust::Assistant;
        archive(&mut by_hand);
        assert_eq!(revive(&by_hand, after(10)), None);
        let mut stated = memory(1, "Our budget is 300k");
        archive(&mut stated);
        assert_eq!(revive(&stated, after(10_000)), None);
    }

    proptest! {
        #[test]
        fn it_is_archived_exactly_when_its_confidence_has_come_to_the_floor(
            confidence in 0.0_f64..=1.0, uses in 0_i64..20, days in 0_i64..5_000,
        ) {
            let mut memory = chunk();
            memory.confidence = confidence;
            memory.access_count = uses;
            let now = after(days);
            // Within the second to which the moment is rounded.
            let sure = confidence_at(&memory, now);
            match fate(&memory, now) {
                Fate::Archive => prop_assert!(sure <= FLOOR + 1e-6),
                _ => prop_assert!(sure >= FLOOR - 1e-6),
            }
        }
    }
}
