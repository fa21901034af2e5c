//! Postings and statistics: what the stores return must be what the domain computes, or they would rank apart.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::TimeDelta;
use tidemark_application::ports::memories::{Forgetting, LexicalRows};
use tidemark_application::ports::store::Store;
use tidemark_domain::ids::Timestamp;
use tidemark_domain::memory::analysis::document_of;
use tidemark_domain::memory::lexical::{self, CorpusStats, LexicalHit, TermPostings, query_terms};
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, State};

use super::world::{Random, World, indexed, later};

const WORDS: [&str; 16] = [
    "budget",
    "Budgets",
    "the",
    "TEA",
    "café",
    "2026-05-02",
    "May 2nd",
    "预算",
    "项目预算",
    "万",
    "naïve",
    "e\u{301}tude",
    "😀",
    "100%",
    "\"quoted\"",
    "дом",
];

const CORPORA: u64 = 6;
const LARGEST_CORPUS: usize = 40;
const QUERIES: usize = 8;

fn is_recallable(memory: &Memory, scopes: &[Scope], now: Timestamp) -> bool {
    memory.state == State::Current
        && memory.expires_at.is_none_or(|at| at > now)
        && (scopes.is_empty() || scopes.contains(&memory.scope))
}

/// What the domain makes of these memories, without any store.
fn computed(
    memories: &[Memory],
    query: &[String],
    scopes: &[Scope],
    now: Timestamp,
) -> (CorpusStats, Vec<TermPostings>) {
    let mut stats = CorpusStats::default();
    let mut postings = Vec::new();
    for memory in memories.iter().filter(|m| is_recallable(m, scopes, now)) {
        let document = document_of(memory);
        lexical::add_document(&mut stats, &mut postings, query, memory.id, &document);
    }
    (stats, postings)
}

fn by_term(postings: &[TermPostings]) -> BTreeMap<&str, Vec<(u128, u32, u32)>> {
    postings
        .iter()
        .map(|entry| {
            let mut held: Vec<_> = entry
                .postings
                .iter()
                .map(|p| (p.memory.0.as_u128(), p.count, p.len))
                .collect();
            held.sort_unstable();
            (entry.term.as_str(), held)
        })
        .collect()
}

async fn asked(w: &World, query: &[String], scopes: &[Scope], now: Timestamp) -> LexicalRows {
    let rows = w.store.lexical(w.owner, query, scopes, now).await;
    rows.unwrap()
}

/// The store's rows are the domain's, and so is the ranking made of them.
async fn check(
    w: &World,
    memories: &[Memory],
    query: &[String],
    scopes: &[Scope],
    now: Timestamp,
) -> Vec<LexicalHit> {
    let rows = asked(w, query, scopes, now).await;
    let (stats, postings) = computed(memories, query, scopes, now);
    assert_eq!(rows.stats, stats);
    assert_eq!(by_term(&rows.postings), by_term(&postings));
    assert_eq!(rows.postings.len(), postings.len());
    let ranked = lexical::score(query, rows.stats, &rows.postings);
    assert_eq!(ranked, lexical::score(query, stats, &postings));
    ranked
}

fn text(random: &mut Random) -> String {
    let words: Vec<_> = (0..random.below(12)).map(|_| random.of(&WORDS)).collect();
    words.join(" ")
}

fn any_memory(w: &World, random: &mut Random, now: Timestamp) -> Memory {
    let expiry = random.below(4) as i64;
    Memory {
        scope: random.of(Scope::ALL),
        kind: random.of(Kind::ALL),
        layer: random.of(&[Layer::Semantic, Layer::Episodic]),
        state: random.of(&[
            State::Current,
            State::Current,
            State::Current,
            State::Archived,
        ]),
        expires_at: (expiry < 3).then(|| now + TimeDelta::microseconds(expiry - 1)),
        ..w.memory(&text(random))
    }
}

pub async fn ranking_over_the_stores_rows_is_ranking_over_the_memories(store: Arc<dyn Store>) {
    let mut w = World::new(store).await;
    let mut found = 0;
    for corpus in 0..CORPORA {
        let random = &mut Random(corpus);
        w.owner = w
            .owner_named(w.owner.tenant, &format!("owner-{corpus}"))
            .await;
        let now = later(w.now(), 1);
        let memories: Vec<_> = (0..random.below(LARGEST_CORPUS))
            .map(|_| indexed(any_memory(&w, random, now)))
            .collect();
        let stored = w.store.remember(w.owner, memories, None, w.now()).await;
        let mut stored = stored.unwrap().value;
        stored.sort_by_key(|memory| memory.id);
        stored.dedup_by_key(|memory| memory.id);
        for query in 0..QUERIES {
            let terms = query_terms(&text(random));
            let scopes = &Scope::ALL[..query % (Scope::ALL.len() + 1)];
            found += check(&w, &stored, &terms, scopes, now).await.len();
            if query % 3 == 2
                && let Some(at) = stored.iter().position(|m| is_recallable(m, &[], now))
            {
                let what = w.forgetting(stored.remove(at).id);
                assert_eq!(w.forget(Forgetting { now, ..what }).await, 1);
            }
        }
    }
    assert!(found > 100, "the corpora hardly meet the queries: {found}");
}

pub async fn postings_come_in_the_order_of_the_terms_and_for_those_that_occur(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    for content in ["alpha beta", "beta gamma", "gamma gamma delta"] {
        w.remembered(w.memory(content)).await;
    }
    let now = later(w.now(), 1);
    for order in [
        ["gamma", "missing", "alpha", "delta"],
        ["delta", "alpha", "gamma", "missing"],
    ] {
        let terms = order.map(str::to_owned);
        let rows = asked(&w, &terms, &[], now).await;
        let found: Vec<_> = rows.postings.iter().map(|p| p.term.as_str()).collect();
        let expected: Vec<_> = order.into_iter().filter(|t| *t != "missing").collect();
        assert_eq!(found, expected);
        assert_eq!(rows.stats.documents, 3);
        assert_eq!(rows.stats.total_len, 7);
    }
    let none = asked(&w, &[], &[], now).await;
    assert!(none.postings.is_empty());
    assert_eq!(none.stats.documents, 3);
}

pub async fn an_owner_without_memories_has_no_rows(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let rows = asked(&w, &["budget".to_owned()], &[], w.now()).await;
    assert_eq!(rows.stats, CorpusStats::default());
    assert!(rows.postings.is_empty());
}

pub async fn a_memory_expires_at_its_time_and_not_before(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let expires_at = later(w.now(), 1);
    let memory = Memory {
        expires_at: Some(expires_at),
        ..w.memory("The budget is 400k")
    };
    w.remembered(memory).await;
    let terms = ["budget".to_owned()];
    for (now, found) in [
        (expires_at - TimeDelta::microseconds(1), 1),
        (expires_at, 0),
        (expires_at + TimeDelta::microseconds(1), 0),
    ] {
        let rows = asked(&w, &terms, &[], now).await;
        assert_eq!(rows.postings.len(), found);
        assert_eq!(rows.stats.documents, found as u64);
    }
}

pub async fn a_memory_is_found_by_the_request_after_it_was_given(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let mut memories = Vec::new();
    for number in 0..20 {
        let memory = w.remembered(w.memory(&format!("secret{number}"))).await;
        memories.push(memory.clone());
        let query = query_terms(&memory.content);
        let hits = check(&w, &memories, &query, &[], later(w.now(), 1)).await;
        assert_eq!(hits[0].id, memory.id);
    }
}

pub async fn terms_survive_whatever_they_hold(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let longest = "ж".repeat(64);
    let terms = [
        "it's", "a\"b", "{x,y}", "c\\d", "预算", "𠀀𪚥", "%", "null", &longest,
    ];
    let mut item = indexed(w.memory("Terms"));
    item.document.terms = terms.map(|t| (t.to_owned(), 2)).to_vec();
    item.document.terms.sort();
    item.document.len = 18;
    w.store
        .remember(w.owner, vec![item], None, w.now())
        .await
        .unwrap();
    for term in terms {
        let rows = asked(&w, &[term.to_owned()], &[], later(w.now(), 1)).await;
        assert_eq!(rows.postings.len(), 1, "{term}");
        assert_eq!(rows.postings[0].term, term);
        let [posting] = rows.postings[0].postings[..] else {
            panic!("one posting")
        };
        assert_eq!((posting.count, posting.len), (2, 18));
    }
}
