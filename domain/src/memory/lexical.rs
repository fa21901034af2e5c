//! BM25 over the memories of one owner.
//!
//! `idf(t) = ln(1 + (N − n + 0.5)/(n + 0.5))`, `bm25 = Σ idf(t)·tf·(k1 + 1)/(tf + k1·(1 − b + b·len/avg))` (Robertson and Zaragoza 2009, with
//! the never-negative IDF that Lucene uses). `k1 = 0.9`, `b = 0.4` as Anserini has them, which suits short texts.

use std::collections::{BTreeMap, BTreeSet};

use super::analysis::{self, Document};
use crate::ids::MemoryId;

/// How soon the repetition of a term stops to count.
pub const K1: f64 = 0.9;
/// How much a long document is held to its length.
pub const B: f64 = 0.4;

/// The least number of documents that IDF counts with.
///
/// In a memory of one or two items every term that occurs at all would look common and every term that does not would look rare, and
/// the first fact a person tells would never reach the share of the maximum that [`LexicalHit::relevance`] states. The number is ours: from
/// about here on a single occurrence is rare (`idf` 2.4 against 3.5 for a term that no document has).
pub const LEAST_DOCUMENTS: u64 = 16;

/// What BM25 knows of the whole memory of an owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CorpusStats {
    /// How many documents there are.
    pub documents: u64,
    /// The sum of their lengths, in terms.
    pub total_len: u64,
}

/// That a memory holds a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The memory.
    pub memory: MemoryId,
    /// How often it holds the term.
    pub count: u32,
    /// How many terms it has in all.
    pub len: u32,
}

/// All postings of one owner's term; the document frequency is their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermPostings {
    /// The term.
    pub term: String,
    /// The memories that hold it, each at most once.
    pub postings: Vec<Posting>,
}

/// A memory that holds a term of the query.
#[derive(Clone, Debug, PartialEq)]
pub struct LexicalHit {
    /// The memory.
    pub id: MemoryId,
    /// Its BM25 score, above 0.
    pub bm25: f64,
    /// The score divided by its maximum for the query, `Σ idf·(k1 + 1)` over all its terms, those without a posting among them: 0–1 (B8).
    pub relevance: f64,
    /// The terms of the query that it holds, sorted.
    pub matched: Vec<String>,
}

/// The distinct terms of a query, sorted.
pub fn query_terms(text: &str) -> Vec<String> {
    let distinct: BTreeSet<String> = analysis::terms(text).into_iter().collect();
    distinct.into_iter().collect()
}

/// The memories that hold a term of the query, best first; equal scores by id.
///
/// Terms are summed in their sorted order whatever the order of the arguments, so that both stores give the same last digit.
pub fn score(query: &[String], stats: CorpusStats, postings: &[TermPostings]) -> Vec<LexicalHit> {
    let mut by_term: BTreeMap<&str, Vec<&Posting>> = query
        .iter()
        .map(|term| (term.as_str(), Vec::new()))
        .collect();
    for entry in postings {
        if let Some(list) = by_term.get_mut(entry.term.as_str()) {
            list.extend(&entry.postings);
        }
    }
    let average = (stats.total_len as f64 / stats.documents.max(1) as f64).max(1.0);
    let mut maximum = 0.0;
    let mut hits: BTreeMap<MemoryId, (f64, Vec<String>)> = BTreeMap::new();
    for (term, list) in by_term {
        let idf = idf(stats.documents, list.len() as u64);
        maximum += idf * (K1 + 1.0);
        for posting in list {
            let tf = f64::from(posting.count);
            let norm = K1 * (1.0 - B + B * f64::from(posting.len) / average);
            let hit = hits.entry(posting.memory).or_default();
            hit.0 += idf * tf * (K1 + 1.0) / (tf + norm);
            hit.1.push(term.to_owned());
        }
    }
    let mut hits: Vec<LexicalHit> = hits
        .into_iter()
        .map(|(id, (bm25, matched))| LexicalHit {
            id,
            bm25,
            relevance: bm25 / maximum,
            matched,
        })
        .collect();
    hits.sort_by(|a, b| b.bm25.total_cmp(&a.bm25).then(a.id.cmp(&b.id)));
    hits
}

/// How rare a term is that `holders` of `documents` hold; above 0.
pub fn idf(documents: u64, holders: u64) -> f64 {
    let all = documents.max(holders).max(LEAST_DOCUMENTS) as f64;
    let holders = holders as f64;
    (1.0 + (all - holders + 0.5) / (holders + 0.5)).ln()
}

/// Counts a document in that is committed but not yet in the index. One that already has a posting is left as it is.
pub fn add_document(
    stats: &mut CorpusStats,
    postings: &mut Vec<TermPostings>,
    query: &[String],
    id: MemoryId,
    document: &Document,
) {
    let known = |entry: &TermPostings| entry.postings.iter().any(|p| p.memory == id);
    if postings.iter().any(known) {
        return;
    }
    stats.documents += 1;
    stats.total_len += u64::from(document.len);
    for (term, count) in &document.terms {
        if !query.contains(term) {
            continue;
        }
        let posting = Posting {
            memory: id,
            count: *count,
            len: document.len,
        };
        match postings.iter_mut().find(|entry| entry.term == *term) {
            Some(entry) => entry.postings.push(posting),
            None => postings.push(TermPostings {
                term: term.clone(),
                postings: vec![posting],
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn search(query: &str, texts: &[&str]) -> Vec<LexicalHit> {
        let query = query_terms(query);
        let (stats, postings) = index(&query, texts.iter().copied());
        score(&query, stats, &postings)
    }

    fn index<'a>(
        query: &[String],
        texts: impl Iterator<Item = &'a str>,
    ) -> (CorpusStats, Vec<TermPostings>) {
        let mut stats = CorpusStats::default();
        let mut postings = Vec::new();
        for (n, text) in texts.enumerate() {
            let id = MemoryId(Uuid::from_u128(n as u128));
            add_document(
                &mut stats,
                &mut postings,
                query,
                id,
                &analysis::document(text),
            );
        }
        (stats, postings)
    }

    fn found(hits: &[LexicalHit]) -> Vec<u128> {
        hits.iter().map(|h| h.id.0.as_u128()).collect()
    }

    #[test]
    fn the_score_is_the_formula_to_the_last_digit() {
        let id = MemoryId(Uuid::from_u128(1));
        let stats = CorpusStats {
            documents: 100,
            total_len: 1_000,
        };
        let postings = [TermPostings {
            term: "budget".to_owned(),
            postings: vec![Posting {
                memory: id,
                count: 2,
                len: 20,
            }],
        }];
        let hits = score(
            &["budget".to_owned(), "absent".to_owned()],
            stats,
            &postings,
        );
        let rare = (1.0_f64 + 99.5 / 1.5).ln();
        let unseen = (1.0_f64 + 100.5 / 0.5).ln();
        let expected = rare * 2.0 * 1.9 / (2.0 + 0.9 * (0.6 + 0.4 * 2.0));
        assert!((hits[0].bm25 - expected).abs() < 1e-12);
        assert!((hits[0].relevance - expected / (1.9 * (rare + unseen))).abs() < 1e-12);
        assert_eq!(hits[0].matched, ["budget"]);
    }

    #[test]
    fn a_question_in_chinese_finds_what_was_said_in_other_words() {
        let hits = search("项目预算", &["今天天气很好", "预算是30万", "我喜欢猫"]);
        assert_eq!(found(&hits), [1]);
        assert_eq!(hits[0].matched, ["预算"]);
    }

    #[test]
    fn the_rarer_term_weighs_more() {
        let hits = search(
            "red zebra",
            &["red car", "red house", "a zebra", "red door"],
        );
        assert_eq!(found(&hits)[0], 2);
    }

    #[test]
    fn a_query_that_meets_nothing_finds_nothing() {
        assert!(search("mongolia", &["I prefer tables"]).is_empty());
        assert!(search("", &["I prefer tables"]).is_empty());
        assert!(search("what is the", &["what is the"]).is_empty());
    }

    #[test]
    fn the_very_first_memory_is_already_relevant() {
        let hits = search("What is my project budget?", &["My budget is 300k"]);
        assert!(hits[0].relevance > 0.2, "{}", hits[0].relevance);
    }

    #[test]
    fn a_document_that_is_already_indexed_is_not_counted_twice() {
        let query = query_terms("budget");
        let (mut stats, mut postings) = index(&query, ["my budget"].into_iter());
        let before = (stats, postings.clone());
        let id = MemoryId(Uuid::from_u128(0));
        add_document(
            &mut stats,
            &mut postings,
            &query,
            id,
            &analysis::document("my budget"),
        );
        assert_eq!((stats, postings), before);
    }

    proptest! {
        #[test]
        fn relevance_is_between_0_and_1_and_order_of_arguments_does_not_matter(
            texts in prop::collection::vec("[a-d ]{0,12}", 1..8),
            query in "[a-d ]{1,8}",
        ) {
            let query = query_terms(&query);
            let (stats, mut postings) = index(&query, texts.iter().map(String::as_str));
            let hits = score(&query, stats, &postings);
            for hit in &hits {
                prop_assert!(hit.relevance > 0.0 && hit.relevance < 1.0);
                prop_assert!(!hit.matched.is_empty());
            }
            let mut reversed = query.clone();
            reversed.reverse();
            postings.reverse();
            for entry in &mut postings {
                entry.postings.reverse();
            }
            prop_assert_eq!(hits, score(&reversed, stats, &postings));
        }
    }
}
