#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::super::testing::{day, memory, message, source};
use super::*;
use crate::session::Role;
use proptest::prelude::*;
use uuid::Uuid;

fn id(number: u128) -> MemoryId {
    MemoryId(Uuid::from_u128(number))
}

fn is(value: &str) -> Value {
    Value::Is(value.to_owned())
}

/// A claim of the person since that day of May.
fn claim(number: u128, value: Value, since: u32) -> Claim {
    Claim {
        id: id(number),
        value,
        trust: Trust::User,
        since: day(since),
        seq: None,
        stored: day(since),
        ended: None,
    }
}

fn ends(claims: &[Claim]) -> Vec<Option<Timestamp>> {
    settle(claims).iter().map(|s| s.until).collect()
}

/// The memory of a claim, as it was stored: its content is read as the value.
fn stated(number: u128, content: &str, since: u32) -> Memory {
    let mut memory = memory(number, content);
    memory.key = Some("budget".to_owned());
    memory.valid_from = day(since);
    memory.created_at = day(since);
    memory
}

/// How memories come to stand.
fn turned(memories: &[Memory]) -> Vec<(MemoryId, Outcome, Option<Timestamp>)> {
    verdicts(memories)
        .into_iter()
        .map(|v| (v.id, v.outcome, v.valid_to))
        .collect()
}

#[test]
fn the_newest_wins_at_once_and_a_third_change_works_like_the_second() {
    let first = claim(1, is("300k"), 1);
    let second = claim(2, is("400k"), 5);
    let third = claim(3, is("500k"), 9);
    assert_eq!(ends(std::slice::from_ref(&first)), [None]);
    assert_eq!(ends(&[first.clone(), second.clone()]), [Some(day(5)), None]);
    let all = [first, second, third];
    assert_eq!(ends(&all), [Some(day(5)), Some(day(9)), None]);
    let by: Vec<_> = settle(&all).iter().map(|s| s.by).collect();
    assert_eq!(by, [Some(id(2)), Some(id(3)), None]);
}

#[test]
fn what_comes_late_is_closed_where_its_successor_begins() {
    let late = claim(9, is("300k"), 1);
    let between = claim(8, is("450k"), 7);
    let all = [
        claim(2, is("400k"), 5),
        claim(3, is("500k"), 9),
        late,
        between,
    ];
    assert_eq!(ends(&all), [Some(day(7)), None, Some(day(5)), Some(day(9))]);
}

#[test]
fn who_says_the_same_again_ends_nothing() {
    let all = [
        claim(1, is("300k"), 1),
        claim(2, is("300k"), 3),
        claim(3, is("400k"), 5),
        claim(4, is("300k"), 7),
    ];
    assert_eq!(ends(&all[..2]), [None, None]);
    assert_eq!(ends(&all), [Some(day(5)), Some(day(5)), Some(day(7)), None]);
    // Back to what it was: a run of its own.
    let runs: Vec<usize> = settle(&all).iter().map(|s| s.run).collect();
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[3]);
}

#[test]
fn a_negation_closes_without_a_successor() {
    let held = claim(1, is("300k"), 1);
    let then = claim(3, is("400k"), 5);
    let gone = claim(2, Value::Nothing, 4);
    assert_eq!(
        ends(&[held.clone(), gone, then.clone()]),
        [Some(day(4)), Some(day(5)), None]
    );
    let not_this = claim(2, Value::Not("300k".to_owned()), 4);
    assert_eq!(
        ends(&[held.clone(), not_this, then.clone()]),
        [Some(day(4)), None, None]
    );
    // Not that, but what it is stays open: it ends nothing else.
    let not_that = claim(2, Value::Not("200k".to_owned()), 4);
    assert_eq!(ends(&[held, not_that, then]), [Some(day(5)), None, None]);
}

#[test]
fn a_lower_trust_never_overrides_a_higher_one() {
    let own = claim(1, is("300k"), 1);
    let mut models = claim(2, is("400k"), 5);
    models.trust = Trust::Assistant;
    assert_eq!(ends(&[own.clone(), models.clone()]), [None, Some(day(5))]);
    let late = claim(3, is("400k"), 7);
    assert_eq!(
        ends(&[own.clone(), models.clone(), late]),
        [Some(day(7)), Some(day(5)), None]
    );
    // The model first, then the person: the person's word counts from then on.
    models.since = day(1);
    let own = claim(1, is("300k"), 2);
    assert_eq!(ends(&[models, own]), [Some(day(2)), None]);
}

#[test]
fn what_ended_by_itself_is_not_reopened_and_ends_nothing() {
    let mut first = claim(1, is("300k"), 1);
    first.ended = Some(day(3));
    assert_eq!(ends(std::slice::from_ref(&first)), [Some(day(3))]);
    let again = claim(2, is("300k"), 5);
    assert_eq!(ends(&[first, again]), [Some(day(3)), None]);
}

#[test]
fn what_shortens_an_end_that_is_final_leaves_it_when_it_is_taken_away() {
    let mut first = stated(1, "Our budget is 102k", 1);
    first.state = State::Superseded;
    first.valid_to = Some(day(9));
    first.ended_at = Some(day(9));
    assert_eq!(turned(std::slice::from_ref(&first)), []);
    let sooner = stated(2, "Our budget is 111k", 5);
    let line = [first.clone(), sooner];
    assert_eq!(
        turned(&line),
        [(first.id, Outcome::Superseded, Some(day(5)))]
    );
    let mut shortened = first.clone();
    verdicts(&line)[0].apply(&mut shortened);
    assert_eq!(shortened.ended_at, Some(day(9)));
    // Alone again.
    let mut again = shortened.clone();
    verdicts([&shortened])[0].apply(&mut again);
    assert_eq!(again, first);
}

#[test]
fn at_one_moment_the_later_message_wins() {
    let mut one = claim(9, is("300k"), 1);
    let mut two = claim(2, is("400k"), 1);
    (one.seq, two.seq) = (Some(1), Some(2));
    assert_eq!(ends(&[two.clone(), one.clone()]), [None, Some(day(1))]);
    let by_hand = claim(1, is("500k"), 1);
    assert_eq!(
        ends(&[by_hand, two, one]),
        [None, Some(day(1)), Some(day(1))]
    );
}

#[test]
fn a_memory_is_to_stand_as_its_key_decides() {
    let old = stated(1, "Our budget is 300k", 1);
    let new = stated(2, "We raised the budget to 400k", 5);
    assert_eq!(turned(std::slice::from_ref(&old)), []);
    let all = [old.clone(), new.clone()];
    assert_eq!(turned(&all), [(old.id, Outcome::Superseded, Some(day(5)))]);
    let mut all = all.to_vec();
    verdicts(&all)[0].apply(&mut all[0]);
    assert_eq!(all[0].superseded_by, Some(new.id));
    assert_eq!(turned(&all), [], "what stands as it should is left alone");
    // What had ended it is gone, and is known to be gone for good.
    all[0].superseded_by = None;
    all[0].ended_at = all[0].valid_to;
    assert_eq!(turned(&all[..1]), []);
    // Or was undone.
    all[0].superseded_by = Some(new.id);
    all[0].ended_at = None;
    assert_eq!(turned(&all[..1]), [(old.id, Outcome::Reopened, None)]);
}

#[test]
fn how_a_memory_ended_is_known() {
    let old = stated(1, "Our budget is 300k", 1);
    let gone = stated(2, "We don't have a budget any more", 3);
    assert_eq!(
        turned(&[old.clone(), gone]),
        [(old.id, Outcome::Closed, Some(day(3)))]
    );
    let mut models = stated(3, "Your budget is 400k", 4);
    models.trust = Trust::Assistant;
    models.content = "The budget is 400k".to_owned();
    assert_eq!(
        turned(&[old.clone(), models.clone()]),
        [(models.id, Outcome::Refused, Some(day(4)))]
    );
    let mut waiting = stated(4, "The budget is 500k", 5);
    waiting.state = State::Quarantined;
    assert_eq!(turned(&[old.clone(), waiting]), []);
    let mut faded = old;
    faded.state = State::Archived;
    assert_eq!(turned(std::slice::from_ref(&faded)), []);
    let new = stated(5, "Our budget is 400k", 6);
    assert_eq!(
        turned(&[faded.clone(), new]),
        [(faded.id, Outcome::Superseded, Some(day(6)))]
    );
}

#[test]
fn what_was_archived_before_it_was_superseded_is_archived_again_when_it_is_reopened() {
    let mut old = stated(1, "Our budget is 300k", 1);
    crate::memory::forgetting::archive(&mut old);
    old.state = State::Superseded;
    old.valid_to = Some(day(6));
    old.superseded_by = Some(MemoryId(Uuid::from_u128(9)));
    let verdicts = verdicts([&old]);
    assert_eq!(verdicts.len(), 1);
    assert_eq!(verdicts[0].outcome, Outcome::Reopened);
    assert_eq!(verdicts[0].state, State::Archived);
}

#[test]
fn what_is_said_again_is_used_and_comes_back_from_the_archive() {
    let mut known = stated(1, "Our budget is 300k", 1);
    let said = said_again(&known, 0.9, day(4));
    assert_eq!((said.confidence, said.last_access), (0.9, day(4)));
    assert_eq!((said.state, said.version), (State::Current, 2));
    crate::memory::forgetting::archive(&mut known);
    let said = said_again(&known, 0.9, day(4));
    assert_eq!(
        (said.state, said.layer, said.last_access, said.version),
        (State::Current, Layer::Semantic, day(4), 2)
    );
}

#[test]
fn what_a_caller_gives_again_comes_back_from_the_archive() {
    let mut known = stated(1, "Our budget is 300k", 1);
    let mut again = stated(2, "Our budget is 300k", 4);
    again.created_at = day(4);
    assert_eq!(voiced(&known, &again), None);
    crate::memory::forgetting::archive(&mut known);
    let voiced = voiced(&known, &again).unwrap();
    assert_eq!(
        (
            voiced.state,
            voiced.layer,
            voiced.last_access,
            voiced.version
        ),
        (State::Current, Layer::Semantic, day(4), 2)
    );
    // Of two that say the same, the one that is told.
    let mut told = stated(3, "Our budget is 300k", 2);
    told.sources.clear();
    let line = [known.clone(), told.clone()];
    assert_eq!(repeated(&line, &again).map(|m| m.id), Some(told.id));
    assert_eq!(
        repeated(std::slice::from_ref(&known), &again).map(|m| m.id),
        Some(known.id)
    );
}

#[test]
fn a_repetition_is_known_by_its_words_its_speaker_and_that_it_still_held() {
    let old = stated(1, "Our budget is 300k", 1);
    let new = stated(2, "Our budget is 400k", 5);
    let again = stated(3, "our budget is 300k!", 3);
    let line = [old.clone(), new];
    assert_eq!(repeated(&line, &again).map(|m| m.id), Some(old.id));
    let back = stated(3, "Our budget is 300k", 7);
    assert_eq!(repeated(&line, &back), None);
    // What comes between is new as well.
    assert!(!repeat_any(&line[..1], &[&line[1], &back]));
    assert!(repeat_any(&line[..1], &[&back]));
    let other_words = stated(3, "The budget is 300k", 3);
    assert_eq!(repeated(&line, &other_words), None);
    let mut of_another = again;
    of_another.speaker = Some("Alice".to_owned());
    assert_eq!(repeated(&line, &of_another), None);
}

#[test]
fn a_memory_that_is_given_again_is_surer_and_holds_since_the_earlier_time() {
    let mut known = stated(1, "Our budget is 300k", 5);
    known.sources = vec![source(&message(1, Role::User, "Our budget is 300k"))];
    let earlier = stated(2, "Our budget is 300k", 3);
    let voiced_now = voiced(&known, &earlier).unwrap();
    assert_eq!((voiced_now.valid_from, voiced_now.version), (day(3), 2));
    assert!((voiced_now.confidence - 0.9).abs() < 1e-12);
    let given = stated(1, "Our budget is 300k", 5);
    assert_eq!(voiced(&given, &stated(2, "Our budget is 300k", 7)), None);
    assert_eq!(
        Touched::by([&given, &earlier]),
        Some(Touched {
            keys: vec!["budget".to_owned()],
            since: day(3)
        })
    );
    assert_eq!(Touched::by([&memory(1, "We met")]), None);
}

#[test]
fn a_memory_has_the_key_of_the_one_thing_it_says() {
    let of = |content: &str| key_of(&memory(1, content));
    assert_eq!(of(" Our budget is 300k. ").as_deref(), Some("budget"));
    assert_eq!(
        of("The budget is 300k. Actually, make it 400k.").as_deref(),
        Some("budget")
    );
    assert_eq!(of("Our budget is 300k. We met on Monday."), None);
    assert_eq!(of("Our budget is 300k and our deadline is Friday."), None);
    assert_eq!(of("We met on Monday."), None);
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => "[ab]".prop_map(Value::Is),
        1 => "[ab]".prop_map(Value::Not),
        1 => Just(Value::Nothing),
    ]
}

fn any_claims() -> impl Strategy<Value = Vec<Claim>> {
    let trust = prop::sample::select(vec![Trust::Tool, Trust::Assistant, Trust::User]);
    let ended = prop::option::weighted(0.1, 0..9_u32);
    let one = (any_value(), trust, 1..20_u32, ended);
    prop::collection::vec(one, 0..12).prop_map(|all| {
        let numbered = all.into_iter().enumerate();
        numbered
            .map(|(at, (value, trust, since, ended))| Claim {
                trust,
                ended: ended.map(|days| day(since + days)),
                ..claim(at as u128, value, since)
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn the_order_of_arrival_does_not_matter(claims in any_claims(), turn in 0..12_usize) {
        let once = settle(&claims);
        let mut turned = claims.clone();
        let by = turn.min(turned.len());
        turned.rotate_left(by);
        let mut again = settle(&turned);
        again.rotate_right(by);
        let bare = |all: Vec<Standing>| all.into_iter().map(|s| (s.until, s.by)).collect::<Vec<_>>();
        prop_assert_eq!(bare(once), bare(again));
    }

    #[test]
    fn what_holds_at_a_time_never_contradicts_itself(claims in any_claims(), at in 1..30_u32) {
        let standings = settle(&claims);
        let holding: Vec<&Claim> = claims
            .iter()
            .zip(&standings)
            .filter(|(c, s)| s.holds_at(c.since, day(at)))
            .map(|(c, _)| c)
            .collect();
        for one in &holding {
            for two in &holding {
                prop_assert!(!one.value.contradicts(&two.value), "{:?} {:?}", one, two);
            }
        }
    }

    #[test]
    fn what_ended_for_good_never_holds_longer(claims in any_claims(), without in 0..12_usize) {
        let fewer: Vec<Claim> = (claims.iter().enumerate())
            .filter(|(at, _)| *at != without)
            .map(|(_, claim)| claim.clone())
            .collect();
        for all in [claims, fewer] {
            for (claim, standing) in all.iter().zip(settle(&all)) {
                if let Some(ended) = claim.ended {
                    prop_assert!(standing.until.is_some_and(|until| until <= ended));
                }
            }
        }
    }

    #[test]
    fn nothing_ends_before_it_begins_and_none_ends_a_better_trusted_one(claims in any_claims()) {
        for (claim, standing) in claims.iter().zip(settle(&claims)) {
            prop_assert!(standing.until.is_none_or(|until| until >= claim.since));
            if let Some(by) = standing.by {
                let by = claims.iter().find(|c| c.id == by).unwrap();
                prop_assert!(by.value.contradicts(&claim.value));
                prop_assert!(by.trust >= claim.trust);
            }
        }
    }

    #[test]
    fn the_newest_word_of_the_person_holds(mut claims in any_claims(), value in any_value()) {
        claims.push(claim(99, value, 25));
        prop_assert_eq!(settle(&claims).last().unwrap().until, None);
    }

    #[test]
    fn taking_the_newest_away_restores_what_was(claims in any_claims(), value in any_value()) {
        let before = settle(&claims);
        let mut more = claims.clone();
        more.push(claim(99, value, 25));
        let after = settle(&more);
        for at in 0..claims.len() {
            if after[at].by == Some(id(99)) {
                prop_assert!(before[at].until.is_none_or(|until| until > day(25)));
            } else {
                prop_assert_eq!(before[at], after[at]);
            }
        }
    }
}
