#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::super::consolidation;
use super::super::episodic::memories;
use super::super::index::search::{Filter, Found, Query, judge, search as look_up};
use super::super::index::{Entry, OwnerIndex, View};
use super::super::testing::{day, memory, message, source};
use super::*;
use crate::session::Role;
use proptest::prelude::*;
use uuid::Uuid;

/// One token a word.
struct Words;

impl TokenCounter for Words {
    fn count(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn is_estimate(&self) -> bool {
        true
    }
}

fn rules(profile: Profile, top_k: usize) -> RecallRules {
    RecallRules {
        profile,
        top_k,
        min_score: None,
        moment: Moment::at(day(11)),
        token_budget: 1_000,
    }
}

/// A memory that an arm of recall found.
#[derive(Clone, Debug)]
struct Candidate {
    memory: Memory,
    relevance: f64,
}

fn candidate(id: u128, content: &str, relevance: f64) -> Candidate {
    Candidate {
        memory: memory(id, content),
        relevance,
    }
}

/// Judges candidates as a recall does that found them; under profile "hybrid" the relevance given is the score.
fn rank(candidates: &[Candidate], rules: &RecallRules, counter: &dyn TokenCounter) -> Ranking {
    let entries: Vec<Entry> = candidates.iter().map(|c| Entry::from(&c.memory)).collect();
    let found = candidates.iter().zip(&entries).map(|(c, entry)| Found {
        entry,
        relevance: c.relevance,
        slot: 0,
    });
    let (mut judged, beyond) = judge(
        found.collect(),
        rules.profile,
        rules.moment.now,
        rules.top_k,
    );
    if rules.profile == Profile::Hybrid {
        for judged in &mut judged {
            let share = judged.found.relevance;
            judged.parts.base = Some((share / (1.0 - share)).ln());
            judged.score = judged.parts.score(Profile::Hybrid);
        }
        judged.sort_by(|a, b| b.score.total_cmp(&a.score));
    }
    let best = judged.first().map_or(0.0, |j| j.score);
    let mut selection = Selection::new(*rules, counter, best);
    for judged in judged {
        let id = judged.found.entry.id;
        let scored = Scored {
            id,
            score: judged.score,
            parts: judged.parts,
            matched: Vec::new(),
        };
        let memory = selection.wants(&scored).then(|| {
            let of = candidates.iter().find(|c| c.memory.id == id);
            of.unwrap().memory.clone()
        });
        selection.offer(scored, memory);
    }
    let mut ranking = selection.finish();
    let beyond = beyond.iter().map(|f| (f.entry.id, DropReason::BeyondTopK));
    ranking.dropped.splice(0..0, beyond);
    ranking
}

fn told(ranking: &Ranking) -> Vec<u128> {
    ranking
        .items
        .iter()
        .map(|r| r.memory.id.0.as_u128())
        .collect()
}

fn reasons(ranking: &Ranking) -> Vec<(u128, DropReason)> {
    ranking
        .dropped
        .iter()
        .map(|(id, reason)| (id.0.as_u128(), *reason))
        .collect()
}

fn search(query: &str, memories: &[Memory]) -> Ranking {
    let index = OwnerIndex::of(memories);
    let rules = rules(Profile::Hybrid, 3);
    let query = Query {
        text: query.to_owned(),
        vectors: Vec::new(),
        filter: Filter::default(),
        moment: rules.moment,
        profile: rules.profile,
        top_k: rules.top_k,
        limit: 100,
        why_not: Vec::new(),
    };
    let found = look_up(&View::of(&index), &query).found;
    let best = found.first().map_or(0.0, |scored| scored.score);
    let mut selection = Selection::new(rules, &Words, best);
    for scored in found {
        let memory = memories.iter().find(|m| m.id == scored.id).cloned();
        selection.offer(scored, memory);
    }
    selection.finish()
}

#[test]
fn told_answer_as_tables_then_asked_a_business_question_the_profile_still_holds_it() {
    let told_once = message(1, Role::User, "Please answer as tables.");
    let chunks = memories(&told_once, day(3));
    let ranking = search("How did revenue develop in the third quarter?", &chunks);
    assert!(ranking.items.is_empty() && ranking.abstained);
    let standing = profile(chunks.clone(), 10, 100, &Words);
    assert_eq!(standing.len(), 1);
    assert_eq!(standing[0].content, "Please answer as tables.");
    // And so it is once consolidated, told once.
    let mut made = consolidation::consolidate(&[told_once], &[], &[], day(4), &mut || {
        MemoryId(Uuid::from_u128(9))
    })
    .new;
    made.extend(chunks);
    let standing = profile(made, 10, 100, &Words);
    assert_eq!(
        standing.iter().map(|m| m.layer).collect::<Vec<_>>(),
        [Layer::Semantic]
    );
}

#[test]
fn a_question_in_chinese_recalls_the_fact() {
    let memories = [
        memory(1, "预算是30万"),
        memory(2, "我喜欢猫"),
        memory(3, "部署在上海"),
    ];
    assert_eq!(told(&search("项目预算", &memories)), [1]);
    assert_eq!(told(&search("我的项目预算是多少？", &memories)), [1]);
}

#[test]
fn asked_about_what_was_never_discussed_nothing_is_recalled() {
    let memories = [
        memory(1, "I prefer answers as tables"),
        memory(2, "My budget is 300k"),
        memory(3, "预算是30万"),
    ];
    for query in [
        "What is the capital of Mongolia?",
        "蒙古的首都在哪里？",
        "Who won the match yesterday evening?",
    ] {
        let ranking = search(query, &memories);
        assert!(ranking.abstained && ranking.items.is_empty(), "{query}");
    }
}

#[test]
fn hybrid_abstains_below_its_threshold_and_min_score_0_switches_that_off() {
    let weak = || vec![candidate(1, "a", 0.09), candidate(2, "b", 0.06)];
    let ranking = rank(&weak(), &rules(Profile::Hybrid, 5), &Words);
    assert!(ranking.abstained);
    assert_eq!(
        reasons(&ranking),
        [
            (1, DropReason::BelowThreshold),
            (2, DropReason::BelowThreshold)
        ]
    );
    let open = RecallRules {
        min_score: Some(0.0),
        ..rules(Profile::Hybrid, 5)
    };
    let ranking = rank(&weak(), &open, &Words);
    assert_eq!((told(&ranking), ranking.abstained), (vec![1, 2], false));
    let ranking = rank(
        &[
            candidate(1, "a", 0.6),
            candidate(2, "b", 0.06),
            candidate(3, "c", 0.004),
        ],
        &rules(Profile::Hybrid, 5),
        &Words,
    );
    assert_eq!(told(&ranking), [1, 2]);
}

#[test]
fn a_question_ranks_behind_its_answer() {
    let texts = ["What is my budget?", "My budget is 300k"];
    let memories: Vec<Memory> = (1..).zip(texts).map(|(n, text)| memory(n, text)).collect();
    assert_eq!(told(&search("What is my budget?", &memories)), [2, 1]);
}

#[test]
fn decay_scores_twice_as_many_as_it_tells_by_the_formula_of_b8() {
    let mut used = candidate(2, "b", 0.5);
    used.memory.access_count = 10;
    used.memory.last_access = day(11);
    let list = vec![candidate(1, "a", 0.6), used, candidate(3, "c", 0.4)];
    let ranking = rank(&list, &rules(Profile::Decay, 1), &Words);
    assert_eq!(told(&ranking), [2]);
    assert!((ranking.items[0].score - 0.7).abs() < 1e-12);
    assert_eq!(
        reasons(&ranking),
        [(3, DropReason::BeyondTopK), (1, DropReason::BeyondTopK)]
    );
    let ranking = rank(&[candidate(1, "a", 0.6)], &rules(Profile::Decay, 1), &Words);
    assert!(
        (ranking.items[0].score - 0.6 * 0.9_f64.powi(10)).abs() < 1e-12,
        "ten days untouched"
    );
}

#[test]
fn recency_drops_a_similarity_below_three_quarters_by_the_formula_of_b9() {
    let ranking = rank(
        &[candidate(1, "a", 0.8), candidate(2, "b", 0.74)],
        &rules(Profile::Recency, 3),
        &Words,
    );
    assert_eq!(told(&ranking), [1]);
    let expected = 0.8 * (0.9 + 0.1 * (-10.0_f64 / 30.0).exp());
    assert!((ranking.items[0].score - expected).abs() < 1e-12);
    assert_eq!(reasons(&ranking), [(2, DropReason::BelowThreshold)]);
}

#[test]
fn what_does_not_hold_any_more_is_not_told() {
    let mut list: Vec<Candidate> = (1..=5)
        .map(|id| candidate(id, &id.to_string(), 0.9))
        .collect();
    list[0].memory.state = State::Superseded;
    list[1].memory.expires_at = Some(day(11));
    list[2].memory.valid_to = Some(day(10));
    list[4].memory.state = State::Archived;
    let ranking = rank(&list, &rules(Profile::Hybrid, 5), &Words);
    assert_eq!(told(&ranking), [4]);
    assert_eq!(
        reasons(&ranking),
        [
            (1, DropReason::NotCurrent),
            (2, DropReason::Expired),
            (3, DropReason::NotCurrent),
            (5, DropReason::Archived)
        ]
    );
    let mut on_request = rules(Profile::Hybrid, 5);
    on_request.moment.archived = true;
    assert_eq!(told(&rank(&list, &on_request, &Words)), [4, 5]);
}

#[test]
fn what_waits_for_confirmation_is_told_at_no_time_and_on_no_request() {
    let mut waiting = memory(1, "a");
    waiting.state = State::Quarantined;
    for as_of in [None, Some(day(2))] {
        for archived in [false, true] {
            let moment = Moment {
                now: day(11),
                as_of,
                archived,
            };
            let unfit = moment.unfit(&Standing::from(&waiting));
            assert_eq!(unfit, Some(DropReason::Quarantined));
        }
    }
    assert_eq!(profile(vec![waiting], 10, 1_000, &Words), []);
}

#[test]
fn what_does_not_fit_the_budget_is_skipped_and_the_next_one_told() {
    let list = vec![
        candidate(1, "one two three", 0.9),
        candidate(2, &"long ".repeat(50), 0.8),
        candidate(3, "four five", 0.7),
    ];
    let tight = RecallRules {
        token_budget: 19,
        ..rules(Profile::Hybrid, 5)
    };
    let ranking = rank(&list, &tight, &Words);
    assert_eq!(told(&ranking), [1, 3]);
    assert_eq!(reasons(&ranking), [(2, DropReason::OverBudget)]);
    assert!(!ranking.abstained);
}

#[test]
fn a_statement_and_the_chunk_it_came_from_do_not_both_appear() {
    let origin = message(
        1,
        Role::User,
        "By the way, my budget is 300k. Nice weather.",
    );
    let mut chunk = candidate(1, &origin.content, 0.4);
    chunk.memory.layer = Layer::Episodic;
    chunk.memory.sources = vec![source(&origin)];
    let mut fact = candidate(2, "my budget is 300k", 0.5);
    fact.memory.sources = vec![source(&origin)];
    let ranking = rank(
        &[chunk.clone(), fact.clone()],
        &rules(Profile::Hybrid, 5),
        &Words,
    );
    assert_eq!(told(&ranking), [2]);
    assert_eq!(reasons(&ranking), [(1, DropReason::Duplicate)]);
    // Of different messages both are told, unless they say the same.
    fact.memory.sources = vec![source(&message(2, Role::User, ""))];
    assert_eq!(
        told(&rank(
            &[chunk, fact.clone()],
            &rules(Profile::Hybrid, 5),
            &Words
        )),
        [2, 1]
    );
    let again = candidate(3, "My budget is 300K!", 0.3);
    assert_eq!(
        told(&rank(&[again, fact], &rules(Profile::Hybrid, 5), &Words)),
        [2]
    );
}

#[test]
fn the_number_of_items_follows_query_and_dialogue() {
    assert_eq!(dynamic_k("budget?", 2), 3);
    assert_eq!(dynamic_k("项目预算是多少？", 2), 3);
    assert_eq!(dynamic_k("budget?", 20), 4);
    assert_eq!(dynamic_k("budget and deadline?", 100), 6);
    let complex = "Compare all database options, deployment targets, budgets, deadlines, team sizes and risks of both projects? And which one wins?";
    assert_eq!(dynamic_k(complex, 0), 8);
    assert_eq!(dynamic_k(complex, 500), 10);
    assert_eq!(TopK::Auto.resolve(Profile::Recency, complex, 500), 3);
    assert_eq!(TopK::Fixed(7).resolve(Profile::Recency, "x", 0), 7);
}

fn preference(id: u128, content: &str, since: u32) -> Memory {
    Memory {
        scope: Scope::UserProfile,
        kind: Kind::Preference,
        valid_from: day(since),
        ..memory(id, content)
    }
}

#[test]
fn of_preferences_about_the_same_thing_only_the_newest_is_told() {
    let mut first = preference(1, "I prefer answers as tables", 1);
    first.layer = Layer::Episodic;
    let mut second = preference(2, "Please answer with bullet points", 2);
    second.layer = Layer::Episodic;
    let other = preference(3, "I like tea", 1);
    let repeated = preference(4, "i like TEA.", 3);
    let found: Vec<u128> = profile(vec![first, second, other, repeated], 10, 100, &Words)
        .iter()
        .map(|m| m.id.0.as_u128())
        .collect();
    assert_eq!(found, [4, 2]);
}

#[test]
fn the_profile_keeps_to_its_bounds_and_to_what_holds() {
    let mut gone = preference(1, "I like rain", 9);
    gone.state = State::Superseded;
    let mut fact = preference(2, "I am tall", 9);
    fact.kind = Kind::Fact;
    let list = vec![
        gone,
        fact,
        preference(3, "I like tea", 1),
        preference(4, &format!("I like {}", "very ".repeat(40)), 2),
        preference(5, "I like sun", 3),
    ];
    let ids = |max, budget| -> Vec<u128> {
        profile(list.clone(), max, budget, &Words)
            .iter()
            .map(|m| m.id.0.as_u128())
            .collect()
    };
    assert_eq!(ids(10, 1_000), [5, 4, 3]);
    assert_eq!(ids(1, 1_000), [5]);
    assert_eq!(ids(10, 20), [5, 3]);
}

proptest! {
    #[test]
    fn the_order_of_candidates_does_not_matter_and_each_is_told_or_has_a_reason(
        list in prop::collection::vec((0_u8..4, 0_u8..6, 0_i64..12), 0..12).prop_shuffle(),
        shuffle in any::<prop::sample::Index>(),
        top_k in 0_usize..6,
        token_budget in 0_usize..40,
        pick in 0_usize..3,
    ) {
        let candidates: Vec<Candidate> = list
            .iter()
            .enumerate()
            .map(|(id, (content, relevance, uses))| {
                let mut c = candidate(id as u128, &format!("content {content}"), f64::from(*relevance) / 6.0);
                c.memory.access_count = *uses;
                c
            })
            .collect();
        let rules = RecallRules { token_budget, ..rules(Profile::ALL[pick], top_k) };
        let ranking = rank(&candidates, &rules, &Words);
        prop_assert!(ranking.items.len() <= top_k);
        prop_assert_eq!(ranking.items.len() + ranking.dropped.len(), candidates.len());
        prop_assert!(ranking.items.windows(2).all(|w| w[0].score >= w[1].score));
        prop_assert!(ranking.items.iter().map(|r| cost(&r.memory, &Words)).sum::<usize>() <= token_budget);
        for item in &ranking.items {
            prop_assert!((item.parts.score(rules.profile) - item.score).abs() < 1e-12);
        }
        let mut turned = candidates;
        if !turned.is_empty() {
            let by = shuffle.index(turned.len());
            turned.rotate_left(by);
            turned.reverse();
        }
        prop_assert_eq!(rank(&turned, &rules, &Words), ranking);
    }
}

#[test]
fn a_preference_that_a_newer_one_or_the_same_one_settles_is_not_told_beside_it() {
    let preference = |id, content: &str| Memory {
        kind: Kind::Preference,
        scope: Scope::UserProfile,
        ..memory(id, content)
    };
    let standing = [preference(1, "I prefer answers as bullet lists")];
    assert!(settled_by(
        &preference(2, "I prefer answers as bullet lists."),
        &standing
    ));
    assert!(settled_by(
        &preference(3, "I prefer answers as tables"),
        &standing
    ));
    assert!(!settled_by(&preference(4, "Call me Ada"), &standing));
    assert!(!settled_by(
        &memory(5, "answers as tables are long"),
        &standing
    ));
}
