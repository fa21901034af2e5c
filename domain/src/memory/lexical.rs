//! BM25 over the memories of one owner.
//!
//! `idf(t) = ln(1 + (N − n + 0.5)/(n + 0.5))`, `bm25 = Σ idf(t)·tf·(k1 + 1)/(tf + k1·(1 − b + b·len/avg))` (Robertson and Zaragoza 2009, with
//! the never-negative IDF that Lucene uses). `k1 = 0.9`, `b = 0.4` as Anserini has them, which suits short texts.

use std::collections::BTreeSet;

use super::analysis;

/// How soon the repetition of a term stops to count.
pub const K1: f64 = 0.9;
/// How much a long document is held to its length.
pub const B: f64 = 0.4;

/// The least number of documents that IDF counts with.
///
/// In a memory of one or two items every term that occurs at all would look common and every term that does not would look rare, and
/// the first fact a person tells would never reach a fair share of the maximum of its question. The number is ours: from
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

impl CorpusStats {
    /// The length of a document on average, at least 1.
    pub fn average_len(&self) -> f64 {
        (self.total_len as f64 / self.documents.max(1) as f64).max(1.0)
    }
}

/// The distinct terms of a query, sorted.
pub fn query_terms(text: &str) -> Vec<String> {
    let distinct: BTreeSet<String> = analysis::terms(text).into_iter().collect();
    distinct.into_iter().collect()
}

/// How rare a term is that `holders` of `documents` hold; above 0.
pub fn idf(documents: u64, holders: u64) -> f64 {
    let all = documents.max(holders).max(LEAST_DOCUMENTS) as f64;
    let holders = holders as f64;
    (1.0 + (all - holders + 0.5) / (holders + 0.5)).ln()
}

/// What a term that occurs `count` times adds to the score of a document of `len` terms.
pub fn weight(idf: f64, count: u32, len: u32, average_len: f64) -> f64 {
    let tf = f64::from(count);
    let norm = K1 * (1.0 - B + B * f64::from(len) / average_len);
    idf * tf * (K1 + 1.0) / (tf + norm)
}

/// What [`weight`] never reaches, however often the term occurs.
pub fn greatest_weight(idf: f64) -> f64 {
    idf * (K1 + 1.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_weight_is_the_formula_to_the_last_digit() {
        let rare = idf(100, 1);
        assert!((rare - (1.0_f64 + 99.5 / 1.5).ln()).abs() < 1e-12);
        assert!((idf(100, 0) - (1.0_f64 + 100.5 / 0.5).ln()).abs() < 1e-12);
        let expected = rare * 2.0 * 1.9 / (2.0 + 0.9 * (0.6 + 0.4 * 2.0));
        assert!((weight(rare, 2, 20, 10.0) - expected).abs() < 1e-12);
    }

    #[test]
    fn the_terms_of_a_query_are_distinct_and_sorted() {
        assert_eq!(query_terms("zebra budget? Budgets!"), ["budget", "zebra"]);
        assert!(query_terms("what is the").is_empty());
    }

    proptest! {
        #[test]
        fn a_weight_is_above_0_and_below_its_bound(
            documents in 0_u64..1_000,
            holders in 1_u64..1_000,
            count in 1_u32..50,
            len in 1_u32..500,
            average in 1.0..100.0_f64,
        ) {
            let idf = idf(documents, holders);
            let weight = weight(idf, count, len, average);
            prop_assert!(weight > 0.0 && weight < greatest_weight(idf));
        }
    }
}
