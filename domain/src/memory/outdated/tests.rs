#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use uuid::Uuid;

use super::super::testing::{day, memory};
use super::super::{Source, chunk_id};
use super::*;
use crate::ids::SessionId;

fn source(seq: i64) -> Source {
    Source {
        message_id: MessageId(Uuid::from_u128(seq as u128)),
        session_id: SessionId(Uuid::from_u128(7)),
        seq,
    }
}

/// A chunk of message 1.
fn chunk(ordinal: usize, content: &str) -> Memory {
    Memory {
        id: chunk_id(source(1).message_id, ordinal),
        layer: Layer::Episodic,
        sources: vec![source(1)],
        ..memory(0, content)
    }
}

/// A fact with a key, of message 1.
fn fact(id: u128, key: &str, content: &str) -> Memory {
    Memory {
        key: Some(key.to_owned()),
        sources: vec![source(1)],
        ..memory(id, content)
    }
}

/// The same, which ended on the fifth.
fn ended(id: u128, key: &str, content: &str) -> Memory {
    Memory {
        state: State::Superseded,
        valid_to: Some(day(5)),
        superseded_by: Some(MemoryId(Uuid::from_u128(99))),
        ..fact(id, key, content)
    }
}

fn budget() -> Memory {
    ended(1, "budget", "The budget is 300k")
}

fn is_over(chunk: &Memory, others: &[Memory]) -> bool {
    let all = others.iter().chain([chunk]);
    outdated(all, &Moment::at(day(11))).contains_key(&chunk.id)
}

#[test]
fn a_chunk_that_says_nothing_but_what_has_ended_is_over() {
    for said in [
        "Finance has agreed to 300k for us",
        "Finance has agreed to 300k for us.",
        "Finance has agreed to 300k as the budget for all of this.",
        "About the budget: finance has agreed to 300k.",
        "On Monday the CFO signed off on 300k.",
        "Bo got us 300k!",
    ] {
        assert!(is_over(&chunk(0, said), &[budget()]), "{said}");
    }
    let chinese = ended(1, "budget", "项目预算为30万");
    assert!(is_over(&chunk(0, "财务批给项目的预算有30万"), &[chinese]));
    let tables = ended(1, "answer_format", "User prefers answers as tables");
    assert!(is_over(
        &chunk(0, "Could you lay it out in tables"),
        &[tables]
    ));
}

#[test]
fn a_chunk_that_says_more_stays() {
    for said in [
        "Finance has agreed to 300k and Bo will lead",
        "Finance has agreed to 300k. Bo will lead.",
        "Finance has agreed to 300k, Bo leads",
        "Finance has agreed to 300k, which Bo is to spend",
        "Finance has agreed to 300k for Lisbon",
        "Finance has agreed to 300k for 12 people",
        "Finance has agreed to 300k so we hire",
        "Finance has agreed to 300k while legal still waits",
        "Bo will lead",
        "Finance has agreed to 400k",
        "",
    ] {
        assert!(!is_over(&chunk(0, said), &[budget()]), "{said}");
    }
    let chinese = ended(1, "budget", "项目预算为30万");
    let said = "财务批给项目的预算有30万并由小李负责";
    assert!(!is_over(&chunk(0, said), &[chinese]));
}

#[test]
fn a_chunk_is_over_when_all_that_it_says_is() {
    let said = chunk(0, "Finance has agreed to 300k and Bo will lead");
    let lead = "Bo leads the project";
    assert!(!is_over(&said, &[budget(), fact(2, "lead", lead)]));
    assert!(is_over(&said, &[budget(), ended(2, "lead", lead)]));
    let twice = chunk(0, "I stay in Oslo. Bo stays in Oslo too.");
    let home = ended(1, "home", "User lives in Oslo");
    assert!(!is_over(&twice, &[home]), "only one of both has ended");
}

#[test]
fn a_fact_of_the_same_words_that_holds_keeps_the_chunk() {
    let said = chunk(0, "Finance has agreed to 300k for us");
    let other = fact(2, "agreement", "Finance agreed to 300k");
    assert!(!is_over(&said, &[budget(), other]));
    let led = chunk(0, "Bo leads the project with a budget of 300k");
    let project = fact(2, "lead", "Bo leads the project");
    assert!(!is_over(&led, &[budget(), project]));
    let mut elsewhere = fact(2, "agreement", "Finance agreed to 300k");
    elsewhere.sources = vec![source(2)];
    assert!(is_over(&said, &[budget(), elsewhere]));
}

#[test]
fn of_two_chunks_of_a_message_the_one_is_over_from_which_the_fact_was_read() {
    let tea = ended(1, "taste", "User likes tea");
    let (said, other) = (
        chunk(0, "Tea is what I like"),
        chunk(1, "The tea shop closed"),
    );
    assert!(is_over(&said, &[tea.clone(), other.clone()]));
    assert!(!is_over(&other, &[tea.clone(), said.clone()]));
    let mut keyed = said;
    keyed.key = tea.key.clone();
    assert!(
        !is_over(&keyed, std::slice::from_ref(&tea)),
        "a key decides by itself"
    );
    assert!(!is_over(&other, &[tea, keyed]));
}

#[test]
fn a_chunk_is_told_as_of_a_time_at_which_its_fact_held_and_when_it_holds_again() {
    let (said, fact) = (chunk(0, "Finance has agreed to 300k for us"), budget());
    let as_of = |then| Moment {
        as_of: Some(then),
        ..Moment::at(day(11))
    };
    assert!(outdated([&said, &fact], &as_of(day(4))).is_empty());
    let over = outdated([&said, &fact], &as_of(day(6)));
    assert_eq!(over[&said.id].valid_to, Some(day(5)));
    assert!(as_of(day(6)).unfit(&over[&said.id]).is_some());
    assert!(Moment::at(day(11)).unfit(&over[&said.id]).is_some());
    let again = super::tests::fact(1, "budget", "The budget is 300k");
    assert!(!is_over(&said, &[again]));
}

#[test]
fn clauses_are_parted_where_another_statement_may_begin() {
    let all: Vec<_> = clauses("We have 300k, so Bo is in. Bo left").collect();
    assert_eq!(
        all,
        [
            (true, "We have 300k"),
            (false, "so Bo is in."),
            (true, "Bo left")
        ]
    );
}
