//! How long one recall takes to rank, by the number of memories: `cargo bench -p tidemark-domain`, on an otherwise idle machine.
//!
//! Owners are made up: words as unevenly frequent as those of a language, half said by two in sessions of 40, half given by hand. Questions ask in four words of a
//! memory, every third names a speaker and every fourth a time.
#![expect(clippy::print_stdout, reason = "it reports to whoever ran it")]
#![expect(clippy::unwrap_used, reason = "constants are well-formed")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use tidemark_domain::ids::{MemoryId, MessageId, SessionId, Timestamp};
use tidemark_domain::memory::index::search::{Filter, Query, search};
use tidemark_domain::memory::index::{Delta, Embedded, OwnerIndex, Upsert, View};
use tidemark_domain::memory::recall::Moment;
use tidemark_domain::memory::scoring::Profile;
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, Source, State, Trust, chunk_id};
use uuid::Uuid;

const DIMENSIONS: usize = 384;
const VOCABULARY: f64 = 20_000.0;
const QUESTIONS: u64 = 200;

/// A sequence of numbers without a pattern: `SplitMix64` (Steele, Lea, Flood, 2014).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The rank of a word; frequencies fall with it as Zipf's law has it.
    fn rank(&mut self) -> u64 {
        (self.share() * VOCABULARY.ln()).exp() as u64
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSIONS).map(|_| self.share() as f32 - 0.5).collect()
    }
}

fn ranks(number: u64) -> Vec<u64> {
    let mut numbers = Numbers(number);
    (0..14).map(|_| numbers.rank()).collect()
}

fn words(ranks: &[u64]) -> String {
    let words: Vec<String> = ranks.iter().map(|rank| format!("w{rank}q")).collect();
    words.join(" ")
}

fn at(number: u64) -> Timestamp {
    let start: Timestamp = "2023-01-01T00:00:00Z".parse().unwrap();
    start + Duration::from_secs(number * 300)
}

fn memory(number: u64) -> Memory {
    let message_id = MessageId(Uuid::from_u128(u128::from(number) << 64 | 7));
    let said = (number / 40).is_multiple_of(2);
    let source = Source {
        message_id,
        session_id: SessionId(Uuid::from_u128(u128::from(number / 40) + 1)),
        seq: (number % 40) as i64,
    };
    Memory {
        id: chunk_id(message_id, 0),
        content: words(&ranks(number)),
        speaker: said.then(|| ["Melanie", "Bartholomew"][number as usize % 2].to_owned()),
        scope: Scope::ProjectContext,
        kind: Kind::Fact,
        layer: if said {
            Layer::Episodic
        } else {
            Layer::Semantic
        },
        state: State::Current,
        importance: 3,
        confidence: 0.8,
        trust: Trust::User,
        pinned: false,
        key: None,
        session_id: None,
        sources: if said { vec![source] } else { Vec::new() },
        valid_from: at(number),
        valid_to: None,
        superseded_by: None,
        ended_at: None,
        expires_at: None,
        created_at: at(number),
        access_count: 0,
        last_access: at(number),
        version: 1,
    }
}

fn question(number: u64, memories: u64, profile: Profile, dense: bool) -> Query {
    let mut numbers = Numbers(number ^ 0x5bd1_e995);
    let mut ranks = ranks(numbers.next() % memories);
    ranks.sort_unstable();
    ranks.dedup();
    let mut text = words(&ranks[ranks.len().saturating_sub(4)..]);
    if number.is_multiple_of(3) {
        text.push_str(" of Melanie");
    }
    if number.is_multiple_of(4) {
        text.push_str(" in March?");
    }
    let vectors = dense.then(|| ("model".to_owned(), numbers.vector()));
    Query {
        text,
        vectors: vectors.into_iter().collect(),
        filter: Filter::default(),
        moment: Moment::at(at(memories)),
        profile,
        top_k: 10,
        limit: 100,
        why_not: Vec::new(),
    }
}

/// Half and 95 of 100 take no longer than this.
fn measure(view: &View<'_>, questions: &[Query]) -> [Duration; 2] {
    let mut took: Vec<Duration> = (questions.iter())
        .map(|question| {
            let begun = Instant::now();
            black_box(search(view, question));
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    [50, 95].map(|percent| took[(took.len() * percent / 100).min(took.len() - 1)])
}

fn main() {
    for memories in [1_000, 10_000, 100_000] {
        let mut index = OwnerIndex::default();
        let all: Vec<Memory> = (0..memories).map(memory).collect();
        let ids: Vec<MemoryId> = all.iter().map(|memory| memory.id).collect();
        index.apply(Delta {
            upserts: all.iter().map(Upsert::of).collect(),
            ..Delta::default()
        });
        for dense in [false, true] {
            if dense {
                let mut numbers = Numbers(memories);
                let vectors = ids.iter().map(|id| Embedded {
                    memory: *id,
                    model: "model".to_owned(),
                    vector: numbers.vector(),
                });
                index.apply(Delta {
                    vectors: vectors.collect(),
                    ..Delta::default()
                });
            }
            for profile in Profile::ALL {
                let questions: Vec<Query> = (0..QUESTIONS)
                    .map(|number| question(number, memories, profile, dense))
                    .collect();
                let view = View::of(&index);
                measure(&view, &questions[..20]);
                let [half, most] = measure(&view, &questions);
                println!(
                    "{memories:>7} memories, embeddings: {dense:<5}, {:<7}: p50 {half:>9.1?}, p95 {most:>9.1?}, {} bytes each",
                    profile.as_str(),
                    index.bytes() / index.len()
                );
            }
            if dense {
                let fresh = |number| vec![Upsert::of(&memory(number))];
                let begun = Instant::now();
                for number in 0..10 {
                    black_box(View::with(&index, fresh(memories + number)));
                }
                println!(
                    "{memories:>7} memories and one beside them: {:.1?} more",
                    begun.elapsed() / 10
                );
            }
        }
    }
}
