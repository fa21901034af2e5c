//! What profile "hybrid" makes of features, and the cosines of the other two.
use super::super::vectors::FEW;
use super::*;
use crate::memory::scoring::{decay, recency};

/// Chunks of one session each, one message a chunk, by these speakers.
fn dialogue(session: u128, day_of_may: u32, said: &[(&str, &str)]) -> Vec<Memory> {
    (1..)
        .zip(said)
        .map(|(seq, (speaker, text))| Memory {
            speaker: Some((*speaker).to_owned()),
            valid_from: day(day_of_may),
            ..chunk(session, seq, 0, text)
        })
        .collect()
}

fn best<'m>(query: &Query, memories: &'m [Memory]) -> &'m str {
    let index = OwnerIndex::of(memories);
    let found = search(&View::of(&index), query);
    let id = found.found[0].id;
    &memories.iter().find(|m| m.id == id).unwrap().content
}

fn embedded(memories: &[Memory], vectors: &[&[f32]]) -> OwnerIndex {
    let mut index = OwnerIndex::of(memories);
    let pairs = memories.iter().zip(vectors);
    index.apply(Delta {
        vectors: pairs
            .map(|(memory, vector)| Embedded {
                memory: memory.id,
                model: "m".to_owned(),
                vector: vector.to_vec(),
            })
            .collect(),
        ..Delta::default()
    });
    index
}

#[test]
fn of_two_who_say_the_same_the_one_whom_the_question_names_is_told_first() {
    let memories = dialogue(
        1,
        2,
        &[
            ("Ada", "I adopted a cat named Turing"),
            ("Bob", "I adopted a cat named Oliver"),
            ("Ada", "Bob, that is a fine cat"),
        ],
    );
    let of = |query: &str| best(&asked(query), &memories).to_owned();
    assert_eq!(of("Which cat did Bob adopt?"), memories[1].content);
    assert_eq!(of("Which cat did Ada adopt?"), memories[0].content);
    let found = look_up("Which cat did Bob adopt?", &memories);
    assert!(found.found[0].parts.speaker.unwrap() > 0.0);
    assert_eq!(found.found[0].matched, ["adopt", "bob", "cat"]);
}

#[test]
fn what_nobody_is_known_to_have_said_is_about_whom_it_names() {
    let mut memories = dialogue(1, 2, &[("Ada", "Hello there"), ("Bob", "Hello to you")]);
    memories.push(memory(1, "Ada collects stamps"));
    memories.push(memory(2, "Bob collects stamps"));
    let what = |who: &str| format!("What does {who} collect?");
    assert_eq!(best(&asked(&what("Ada")), &memories), "Ada collects stamps");
    assert_eq!(best(&asked(&what("Bob")), &memories), "Bob collects stamps");
}

#[test]
fn a_named_time_brings_what_was_said_then_to_the_top_and_holds_nothing_back() {
    let mut memories = dialogue(1, 1, &[("Ada", "We walked to the lake")]);
    memories.extend(dialogue(2, 10, &[("Ada", "We walked to the lake again")]));
    let mut query = asked("Where did we walk on May 10th?");
    query.moment = Moment::at(day(20));
    let found = search(&View::of(&OwnerIndex::of(&memories)), &query);
    assert_eq!(found.found.len(), 2);
    assert_eq!(found.found[0].id, memories[1].id);
    assert!(found.found[0].parts.time > found.found[1].parts.time);
    query.text = "Where did we walk yesterday?".to_owned();
    query.moment = Moment::at(day(2));
    assert_eq!(best(&query, &memories[..]), memories[0].content);
}

#[test]
fn an_answer_is_found_by_the_question_before_it() {
    let mut memories = dialogue(
        1,
        2,
        &[
            ("Ada", "Which instrument do you play?"),
            ("Bob", "The cello, since I was nine."),
        ],
    );
    memories.extend(dialogue(2, 3, &[("Ada", "Rain again, what weather.")]));
    let found = look_up("Which instrument does Bob play?", &memories);
    assert_eq!(found.found[0].id, memories[1].id);
    assert!(found.found[0].parts.answers.unwrap() > 0.0);
}

#[test]
fn what_wants_a_time_or_a_name_prefers_what_holds_one() {
    for (query, with, without) in [
        (
            "When was the trip?",
            "the trip was last summer",
            "the trip was truly great",
        ),
        (
            "Who led the trip?",
            "the trip was led by Grace",
            "the trip was led by friends",
        ),
    ] {
        assert_eq!(
            best(&asked(query), &texts(&[without, with])),
            with,
            "{query}"
        );
    }
}

#[test]
fn meaning_finds_what_shares_no_word() {
    let memories = texts(&["tea", "the stairs", "a letter", "green paint", "my budget"]);
    let index = embedded(
        &memories,
        &[
            &[0.9, 0.1],
            &[-0.2, 1.0],
            &[0.1, 1.0],
            &[0.0, -1.0],
            &[-0.1, 0.8],
        ],
    );
    let mut query = asked("beverage");
    query.vectors = vec![
        ("other".to_owned(), vec![1.0]),
        ("m".to_owned(), vec![1.0, 0.0]),
    ];
    let found = search(&View::of(&index), &query);
    assert_eq!(found.found[0].id, id(0));
    assert!(found.found[0].score > 0.3);
    let similarity = found.found[0].parts.similarity.unwrap();
    assert!((similarity - 0.9 / 0.82_f64.sqrt()).abs() < 1e-6);
}

#[test]
fn decay_and_recency_take_the_cosine_and_without_one_the_share_of_words() {
    let mut memories = texts(&["tea", "budget"]);
    memories[0].access_count = 5;
    let index = embedded(&memories, &[&[3.0, 4.0]]);
    let mut query = asked("budget");
    query.vectors = vec![("m".to_owned(), vec![1.0, 0.0])];
    for profile in [Profile::Decay, Profile::Recency] {
        query.profile = profile;
        let found = search(&View::of(&index), &query).found;
        let score = |number| found.iter().find(|s| s.id == id(number)).unwrap();
        let words = score(1).parts.relevance;
        assert!(words > 0.4 && words < 1.0);
        let (tea, budget) = match profile {
            Profile::Decay => (decay(0.6, 10.0, 5), decay(words, 10.0, 0)),
            _ => (recency(0.6, 10.0, 30.0), recency(words, 10.0, 30.0)),
        };
        assert!((score(0).score - tea).abs() < 1e-6);
        assert!((score(1).score - budget).abs() < 1e-12);
    }
}

#[test]
fn among_very_many_the_best_are_those_by_the_true_cosine_and_are_told_with_it() {
    let many = FEW as u128 + 200;
    let mut memories: Vec<Memory> = (0..many)
        .map(|n| chunk(1 + n / 50, n as i64, 0, "tea"))
        .collect();
    let number = |n: u128, at: u128| ((n * 7_919 + at * 104_729) % 65_537) as f32 / 65_537.0 - 0.5;
    let vectors: Vec<Vec<f32>> = (0..many)
        .map(|n| (0..24).map(|at| number(n * n + 3, at * at + n)).collect())
        .collect();
    let index = embedded(
        &memories,
        &vectors.iter().map(Vec::as_slice).collect::<Vec<_>>(),
    );
    let mut query = asked("beverage");
    let question: Vec<f32> = (0..24).map(|at| number(77, at)).collect();
    query.vectors = vec![("m".to_owned(), question.clone())];
    query.profile = Profile::Decay;
    let cosine = |vector: &[f32]| {
        let dot =
            |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        dot(vector, &question) / (dot(vector, vector) * dot(&question, &question)).sqrt()
    };
    let mut expected: Vec<(f64, MemoryId)> = (vectors.iter().map(|v| cosine(v)))
        .zip(memories.iter().map(|m| m.id))
        .collect();
    expected.sort_by(|a, b| b.0.total_cmp(&a.0));
    let found = search(&View::of(&index), &query).found;
    for (scored, (cosine, id)) in found[..20].iter().zip(&expected) {
        assert_eq!(scored.id, *id);
        assert!((scored.parts.relevance - cosine).abs() < 1e-6);
    }
    query.profile = Profile::Hybrid;
    let found = search(&View::of(&index), &query).found;
    for scored in &found {
        let (cosine, _) = expected.iter().find(|e| e.1 == scored.id).unwrap();
        assert!((scored.parts.similarity.unwrap() - cosine).abs() < 1e-6);
    }
    // Fewer that may be told are compared as they are: what was near before has to be what is true now.
    for memory in &mut memories[..400] {
        if found.iter().all(|scored| scored.id != memory.id) {
            memory.state = State::Archived;
        }
    }
    let vectors: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
    let fewer = search(&View::of(&embedded(&memories, &vectors)), &query).found;
    let (near, exact): (Vec<_>, Vec<_>) = (found.iter().zip(&fewer))
        .map(|(a, b)| (a.score, b.score))
        .unzip();
    assert!(
        near.iter()
            .zip(&exact)
            .take(10)
            .all(|(a, b)| (a - b).abs() < 0.02),
        "{near:?} {exact:?}"
    );
}

#[test]
fn one_memory_given_by_hand_is_found_by_its_words_and_by_nothing_else() {
    let memories = texts(&["I parked on level 4"]);
    let found = look_up("Where did I park?", &memories).found;
    assert!(found[0].score > 0.3, "{}", found[0].score);
    assert!(
        look_up("What is the capital of Mongolia?", &memories)
            .found
            .is_empty()
    );
}

/// Dialogues with vectors.
fn any_dialogue() -> impl Strategy<Value = (Vec<Memory>, Vec<Vec<f32>>)> {
    let words = prop::collection::vec(prop::sample::select(&WORDS[..]), 0..5);
    let said = (0_usize..3, words, prop::collection::vec(-1.0..1.0_f32, 3));
    prop::collection::vec(said, 0..14).prop_map(|said| {
        let memories = said.iter().enumerate().map(|(n, (who, words, _))| {
            let speaker = ["Ada", "Bob", ""][*who];
            let chunk = chunk(1 + n as u128 / 5, n as i64, 0, &words.join(" "));
            Memory {
                speaker: (!speaker.is_empty()).then(|| speaker.to_owned()),
                ..chunk
            }
        });
        (
            memories.collect(),
            said.iter().map(|s| s.2.clone()).collect(),
        )
    })
}

proptest! {
    #[test]
    fn scores_are_shares_made_of_their_parts_and_do_not_depend_on_the_order(
        (memories, vectors) in any_dialogue(),
        query in "(Ada |Bob |when |who |alpha |beta |预算 |in May ){0,5}",
        dense in any::<bool>(),
    ) {
        let vectors: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).take(if dense { memories.len() } else { 0 }).collect();
        let index = embedded(&memories, &vectors);
        let mut query = asked(&query);
        query.vectors = vec![("m".to_owned(), vec![0.3, -0.4, 0.5])];
        let found = search(&View::of(&index), &query);
        for scored in &found.found {
            prop_assert!(scored.score > 0.0 && scored.score < 1.0);
            prop_assert!((scored.parts.score(Profile::Hybrid) - scored.score).abs() < 1e-12);
        }
        for pair in found.found.windows(2) {
            prop_assert!(pair[0].score - pair[1].score > -1e-12);
        }
        let (mut memories, mut vectors) = (memories, vectors);
        memories.reverse();
        vectors.reverse();
        if vectors.len() == memories.len() || !dense {
            prop_assert_eq!(found, search(&View::of(&embedded(&memories, &vectors)), &query));
        }
    }

    #[test]
    fn a_further_term_of_the_question_never_harms(held in 1_usize..4, others in 0_usize..30) {
        let terms = ["zebra", "yacht", "xylophone", "walrus"];
        let text = |n: usize| (0..4).map(|at| if at < n { terms[at] } else { "filler" }).collect::<Vec<_>>().join(" ");
        let mut memories = texts(&[&text(held), &text(held + 1)]);
        memories.extend((0..others).map(|n| memory(10 + n as u128, "other words of nothing")));
        let found = look_up(&terms.join(" "), &memories).found;
        prop_assert_eq!(found[0].id, id(1));
        prop_assert_eq!(found[1].id, id(0));
    }
}

/// Numbers without a pattern, within -1 and 1.
fn noise(seed: &mut u64) -> f32 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    ((*seed >> 40) as f32 / (1_u64 << 23) as f32) - 1.0
}

#[test]
fn what_waits_for_its_embedding_is_found_by_its_words_among_those_that_have_one() {
    let mut seed = 7;
    let mut memories: Vec<Memory> = (1..=3_000)
        .map(|n| {
            memory(
                n,
                &format!("an errand of day{n} in the town that week{}", n % 50),
            )
        })
        .collect();
    let vectors: Vec<Vec<f32>> = (memories.iter())
        .map(|_| (0..32).map(|_| noise(&mut seed)).collect())
        .collect();
    memories.push(memory(
        9_000,
        "Grandmother lent the umbrella with a quillon",
    ));
    let vectors: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
    let index = embedded(&memories, &vectors);
    for text in ["quillon", "Who lent the umbrella?", "lent week7"] {
        let mut query = asked(text);
        query.vectors = vec![("m".to_owned(), (0..32).map(|_| noise(&mut seed)).collect())];
        let found = search(&View::of(&index), &query);
        assert_eq!(ids(&found).first(), Some(&9_000), "{text}");
        assert!(found.found.len() > 3, "{text}: others are told too");
        // What it was allowed for it tells: parts add up to the score.
        for scored in &found.found {
            let sum = scored.parts.score(Profile::Hybrid);
            assert!((sum - scored.score).abs() < 1e-12);
        }
    }
}

#[test]
fn what_waits_for_its_embedding_does_not_go_before_what_fits_better() {
    let mut memories = texts(&[
        "the cello lesson is on Monday",
        "an umbrella stands by the door",
    ]);
    memories.push(memory(3, "the lesson of the storm"));
    let index = embedded(&memories, &[&[1.0, 0.0], &[0.0, 1.0]]);
    let mut query = asked("When is the cello lesson?");
    query.vectors = vec![("m".to_owned(), vec![1.0, 0.1])];
    let found = search(&View::of(&index), &query);
    assert_eq!(found.found[0].id, memories[0].id);
    assert!(found.found.iter().any(|scored| scored.id == memories[2].id));
}
