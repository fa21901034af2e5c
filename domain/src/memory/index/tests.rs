#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::{BTreeMap, BTreeSet};

mod ranking;

use proptest::prelude::*;
use uuid::Uuid;

use super::super::recall::{DropReason, Moment, Standing};
use super::super::scoring::Profile;
use super::super::testing::{day, memory};
use super::super::{Layer, Scope, Source, State, chunk_id};
use super::search::{Filter, Query, Search, search};
use super::*;
use crate::ids::{MessageId, SessionId};

fn asked(text: &str) -> Query {
    Query {
        text: text.to_owned(),
        vectors: Vec::new(),
        filter: Filter::default(),
        moment: Moment::at(day(11)),
        profile: Profile::Hybrid,
        top_k: 10,
        limit: 100,
        why_not: Vec::new(),
    }
}

fn texts(texts: &[&str]) -> Vec<Memory> {
    (0..).zip(texts).map(|(n, text)| memory(n, text)).collect()
}

fn look_up(query: &str, memories: &[Memory]) -> Search {
    search(&View::of(&OwnerIndex::of(memories)), &asked(query))
}

fn ids(found: &Search) -> Vec<u128> {
    found.found.iter().map(|s| s.id.0.as_u128()).collect()
}

fn id(number: u128) -> MemoryId {
    MemoryId(Uuid::from_u128(number))
}

/// A chunk of the message with this number in a session.
fn chunk(session: u128, seq: i64, ordinal: usize, content: &str) -> Memory {
    let message_id = MessageId(Uuid::from_u128(session << 32 | seq as u128));
    Memory {
        id: chunk_id(message_id, ordinal),
        layer: Layer::Episodic,
        sources: vec![Source {
            message_id,
            session_id: SessionId(Uuid::from_u128(session)),
            seq,
        }],
        ..memory(0, content)
    }
}

#[test]
fn relevance_is_bm25_divided_by_its_maximum_to_the_last_digit() {
    let mut memories = texts(&["budget budget"]);
    memories.extend((1..100).map(|n| memory(n, "other words")));
    let found = look_up("budget absent", &memories);
    let rare = (1.0_f64 + 99.5 / 1.5).ln();
    let unseen = (1.0_f64 + 100.5 / 0.5).ln();
    let bm25 = rare * 2.0 * 1.9 / (2.0 + 0.9);
    let expected = bm25 / (1.9 * (rare + unseen));
    assert!((found.found[0].parts.relevance - expected).abs() < 1e-12);
    assert_eq!(found.found[0].matched, ["budget"]);
}

#[test]
fn a_question_in_chinese_finds_what_was_said_in_other_words() {
    let found = look_up(
        "项目预算",
        &texts(&["今天天气很好", "预算是30万", "我喜欢猫"]),
    );
    assert_eq!(ids(&found), [1]);
    assert_eq!(found.found[0].matched, ["预算"]);
}

#[test]
fn the_rarer_term_weighs_more() {
    let memories = texts(&["red car", "red house", "a zebra", "red door"]);
    assert_eq!(ids(&look_up("red zebra", &memories))[0], 2);
}

#[test]
fn a_query_that_meets_nothing_finds_nothing() {
    for query in ["mongolia", "", "what is the"] {
        let found = look_up(query, &texts(&["I prefer tables", "what is the"]));
        assert!(found.found.is_empty(), "{query}");
    }
}

#[test]
fn the_very_first_memory_is_already_relevant() {
    let found = look_up("What is my project budget?", &texts(&["My budget is 300k"]));
    assert!(found.found[0].score > 0.2);
}

#[test]
fn a_filter_never_starves_what_it_leaves() {
    let mut memories: Vec<Memory> = (0..500)
        .map(|n| memory(n, &format!("budget budget {n}")))
        .collect();
    memories[7].scope = Scope::TaskState;
    memories[7].content = "a long word and the budget".to_owned();
    let mut query = asked("budget");
    query.filter.scopes = vec![Scope::TaskState];
    query.limit = 1;
    let index = OwnerIndex::of(&memories);
    let found = search(&View::of(&index), &query);
    assert_eq!(ids(&found), [7]);
    assert!(found.dropped.is_empty());
}

#[test]
fn each_that_was_asked_for_and_not_found_has_its_reason() {
    let session_id = SessionId(Uuid::from_u128(7));
    let mut memories: Vec<Memory> = (1..=9).map(|n| memory(n, "the budget")).collect();
    memories[1].state = State::Superseded;
    memories[2].expires_at = Some(day(3));
    memories[3].scope = Scope::UserProfile;
    memories[4].content = "tea".to_owned();
    memories[5] = Memory {
        id: id(6),
        ..chunk(7, 3, 0, "the budget")
    };
    for (at, memory) in memories.iter_mut().enumerate() {
        memory.session_id = (at != 6).then_some(session_id);
    }
    let mut query = asked("budget");
    query.filter.session_id = Some(session_id);
    query.filter.in_window = [memories[5].sources[0].message_id].into();
    query.limit = 2;
    query.why_not = (1..=10).map(id).collect();
    let found = search(&View::of(&OwnerIndex::of(&memories)), &query);
    assert_eq!(ids(&found), [1, 8]);
    let mut reasons: Vec<_> = (found.dropped.iter())
        .map(|(id, reason)| (id.0.as_u128(), *reason))
        .collect();
    reasons.sort_unstable_by_key(|r| r.0);
    assert_eq!(
        reasons,
        [
            (2, DropReason::NotCurrent),
            (3, DropReason::Expired),
            (4, DropReason::OtherScope),
            (5, DropReason::BelowThreshold),
            (6, DropReason::InWindow),
            (7, DropReason::OtherScope),
            (9, DropReason::BeyondTopK),
        ]
    );
}

#[test]
fn what_held_at_a_time_is_told_as_of_it() {
    let mut first = memory(1, "budget 300k");
    first.state = State::Superseded;
    first.valid_to = Some(day(3));
    let mut second = memory(2, "budget 400k");
    second.valid_from = day(3);
    let mut faded = memory(3, "budget of old");
    faded.state = State::Archived;
    let index = OwnerIndex::of(&[first, second, faded]);
    let mut query = asked("budget");
    let mut found = |as_of, archived| {
        query.moment.as_of = as_of;
        query.moment.archived = archived;
        let found = search(&View::of(&index), &query);
        ids(&found).into_iter().collect::<BTreeSet<_>>()
    };
    assert_eq!(found(None, false), [2].into());
    assert_eq!(found(Some(day(2)), false), [1].into());
    assert_eq!(found(Some(day(3)), false), [2].into());
    assert_eq!(found(Some(day(2)), true), [1, 3].into());
    assert_eq!(found(None, true), [2, 3].into());
}

#[test]
fn what_is_not_stored_yet_is_found_beside_the_index_and_counted_once() {
    let stored = texts(&["the budget is 300k", "I like tea"]);
    let index = OwnerIndex::of(&stored);
    let all = texts(&["the budget is 300k", "I like tea", "budget for tea"]);
    let fresh = all[1..].iter().map(Upsert::of).collect();
    let whole = OwnerIndex::of(&all);
    for query in ["budget", "tea", "budget tea", "300k"] {
        let beside = View::with(&index, all[1..].iter().map(Upsert::of).collect());
        assert_eq!(
            search(&beside, &asked(query)),
            search(&View::of(&whole), &asked(query)),
            "{query}"
        );
    }
    let view = View::with(&index, fresh);
    assert_eq!(view.slot(id(2)), Some(2));
    assert_eq!(view.entry(2).id, id(2));
    assert_eq!(index.len(), 2);
}

#[test]
fn neighbours_are_those_said_before_and_after_whether_stored_or_not() {
    let said = [
        chunk(1, 1, 0, "one"),
        chunk(1, 2, 0, "two, first part"),
        chunk(1, 2, 1, "two, second part"),
        chunk(1, 4, 0, "four"),
        chunk(2, 3, 0, "elsewhere"),
    ];
    // Two came late, and one of them is not stored yet.
    let index = OwnerIndex::of([&said[3], &said[4], &said[0], &said[2]]);
    let view = View::with(&index, vec![Upsert::of(&said[1])]);
    let walk = |from: &Memory, forwards: bool| {
        let mut at = view.slot(from.id).unwrap();
        let mut walked = Vec::new();
        while let Some(next) = if forwards {
            view.next(at)
        } else {
            view.previous(at)
        } {
            walked.push(said.iter().position(|m| m.id == view.entry(next).id));
            at = next;
        }
        walked.into_iter().flatten().collect::<Vec<_>>()
    };
    assert_eq!(walk(&said[0], true), [1, 2, 3]);
    assert_eq!(walk(&said[3], false), [2, 1, 0]);
    assert!(walk(&said[4], true).is_empty());
    assert_eq!(view.text(view.slot(said[2].id).unwrap()).ordinal, 1);
}

#[test]
fn a_memory_loses_its_embedding_when_it_says_something_else() {
    let mut index = OwnerIndex::of(&texts(&["tea", "milk"]));
    let embedded = |memory, vector: &[f32]| Embedded {
        memory: id(memory),
        model: "m".to_owned(),
        vector: vector.to_vec(),
    };
    index.apply(Delta {
        vectors: vec![
            embedded(0, &[1.0, 0.0]),
            embedded(1, &[0.0, 1.0]),
            embedded(9, &[0.5, 0.5]),
            embedded(1, &[3.0]),
        ],
        ..Delta::default()
    });
    let vector = |index: &OwnerIndex, number| {
        let view = View::of(index);
        let slot = view.slot(id(number)).unwrap();
        view.vectors("m").unwrap().get(slot).map(<[f32]>::to_vec)
    };
    assert_eq!(vector(&index, 1).unwrap(), [0.0, 1.0]);
    let mut tea = memory(0, "tea");
    tea.access_count = 3;
    let upsert = |memory: &Memory| Delta {
        upserts: vec![Upsert::of(memory)],
        ..Delta::default()
    };
    index.apply(upsert(&tea));
    assert_eq!(vector(&index, 0).unwrap(), [1.0, 0.0]);
    assert_eq!(index.get(id(0)).unwrap().access_count, 3);
    tea.content = "coffee".to_owned();
    index.apply(upsert(&tea));
    assert_eq!(vector(&index, 0), None);
    assert_eq!(vector(&index, 1).unwrap(), [0.0, 1.0]);
}

#[test]
fn removed_memories_give_their_room_back() {
    let many: Vec<Memory> = (0..1_000)
        .map(|n| memory(n, &format!("word{n} budget")))
        .collect();
    let mut index = OwnerIndex::of(&many);
    let full = index.bytes();
    index.apply(Delta {
        removed: many[10..].iter().map(|m| m.id).collect(),
        ..Delta::default()
    });
    assert_eq!(index.len(), 10);
    assert!(index.bytes() * 20 < full, "{} of {full}", index.bytes());
    let few = OwnerIndex::of(&many[..10]);
    let query = asked("budget word3");
    assert_eq!(
        search(&View::of(&index), &query),
        search(&View::of(&few), &query)
    );
}

const WORDS: [&str; 6] = ["alpha", "beta", "gamma", "预算", "tea?", "delta"];

fn any_memory() -> impl Strategy<Value = Memory> {
    let content = prop::collection::vec(prop::sample::select(&WORDS[..]), 0..6);
    (0_u128..12, content, 0..3_usize, 0..4_usize, 1..4_i64).prop_map(
        |(number, words, scope, state, seq)| {
            let content = words.join(" ");
            let base = if number < 6 {
                memory(number, &content)
            } else {
                chunk(1 + number % 2, number as i64 * 10 + seq, 0, &content)
            };
            Memory {
                id: id(number),
                scope: Scope::ALL[scope],
                state: State::ALL[state.saturating_sub(2)],
                access_count: seq,
                ..base
            }
        },
    )
}

proptest! {
    #[test]
    fn an_index_kept_by_deltas_is_the_index_of_what_is_there(
        steps in prop::collection::vec((any::<bool>(), prop::collection::vec(any_memory(), 0..5)), 0..40),
        query in prop::collection::vec(prop::sample::select(&WORDS[..]), 1..4),
        compacted in any::<bool>(),
    ) {
        let mut index = OwnerIndex::default();
        let mut there: BTreeMap<MemoryId, Memory> = BTreeMap::new();
        for (remove, memories) in steps {
            let delta = if remove {
                Delta { removed: memories.iter().map(|m| m.id).collect(), ..Delta::default() }
            } else {
                Delta { upserts: memories.iter().map(Upsert::of).collect(), ..Delta::default() }
            };
            index.apply(delta.clone());
            index.apply(delta);
            for memory in memories {
                if remove {
                    there.remove(&memory.id);
                } else {
                    there.insert(memory.id, memory);
                }
            }
            if compacted {
                index.compact();
            }
        }
        prop_assert_eq!(index.len(), there.len());
        let anew = OwnerIndex::of(there.values());
        let (kept, made) = (View::of(&index), View::of(&anew));
        for profile in Profile::ALL {
            let mut query = asked(&query.join(" "));
            query.profile = profile;
            query.why_not = (0..13).map(id).collect();
            prop_assert_eq!(search(&kept, &query), search(&made, &query));
        }
        for memory in there.values() {
            let neighbours = |view: &View<'_>| {
                let slot = view.slot(memory.id).unwrap();
                [view.previous(slot), view.next(slot)].map(|s| s.map(|s| view.entry(s).id))
            };
            prop_assert_eq!(neighbours(&kept), neighbours(&made));
            prop_assert_eq!(index.get(memory.id), Some(&Entry::from(memory)));
        }
    }

    #[test]
    fn relevance_is_between_0_and_1_and_each_answer_holds_a_term(
        texts in prop::collection::vec("[a-d ]{0,12}", 1..8),
        query in "[a-d ]{1,8}",
    ) {
        let memories: Vec<Memory> = (0..).zip(&texts).map(|(n, text)| memory(n, text)).collect();
        let found = look_up(&query, &memories).found;
        for scored in &found {
            prop_assert!(scored.parts.relevance > 0.0 && scored.parts.relevance < 1.0);
            prop_assert!(!scored.matched.is_empty());
        }
        prop_assert!(found.windows(2).all(|w| w[0].score >= w[1].score));
    }
}

#[test]
fn chunks_whose_fact_has_ended_are_doubtful_until_it_holds_again_or_is_gone() {
    let said = chunk(1, 1, 0, "Finance has agreed to 300k for us");
    let message = said.sources[0].message_id;
    let fact = Memory {
        sources: said.sources.clone(),
        ..memory(2, "The 300k from finance are the budget")
    };
    let over = Memory {
        state: State::Superseded,
        valid_to: Some(day(3)),
        ..fact.clone()
    };
    let mut index = OwnerIndex::of([&said, &fact]);
    let doubtful = |index: &OwnerIndex| {
        let asked = asked("What has finance agreed to?");
        search(&View::of(index), &asked).doubtful
    };
    let upsert = |memory: &Memory| Delta {
        upserts: vec![Upsert::of(memory)],
        ..Delta::default()
    };
    assert!(doubtful(&index).is_empty());
    let before = index.bytes();
    index.apply(upsert(&over));
    index.apply(upsert(&over));
    assert_eq!(doubtful(&index), BTreeSet::from([message]));
    assert!(index.has_ended(message) && index.bytes() > before);
    index.apply(upsert(&fact));
    assert!(doubtful(&index).is_empty() && !index.has_ended(message));
    index.apply(upsert(&over));
    index.apply(Delta {
        removed: vec![over.id],
        ..Delta::default()
    });
    assert!(doubtful(&index).is_empty() && !index.has_ended(message));
}

#[test]
fn what_is_not_indexed_yet_makes_chunks_doubtful_too() {
    let said = chunk(1, 1, 0, "Finance has agreed to 300k for us");
    let fact = Memory {
        sources: said.sources.clone(),
        ..memory(2, "The 300k from finance are the budget")
    };
    let mut query = asked("What has finance agreed to?");
    let standing = Standing {
        state: State::Superseded,
        valid_to: Some(day(3)),
        ..Standing::from(&fact)
    };
    query.filter.standings.insert(fact.id, standing);
    let index = OwnerIndex::of([&said, &fact]);
    let found = search(&View::of(&index), &query);
    assert_eq!(found.doubtful, BTreeSet::from([said.sources[0].message_id]));
}
