//! The postings that ranking asks for. One statement, so that the statistics and the postings are of one moment.

use std::collections::HashMap;

use sqlx::SqlitePool;
use tidemark_application::ports::memories::LexicalRows;
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{MemoryId, Owner, Timestamp};
use tidemark_domain::memory::Scope;
use tidemark_domain::memory::lexical::{CorpusStats, Posting, TermPostings};

use super::errors::store_error;
use super::rows::{Row, json, micros, owned};
use super::statements::statements;

/// Recallable at ?3 in the scopes ?4.
macro_rules! recallable {
    () => {
        "m.state = 'current' AND (m.expires_at IS NULL OR m.expires_at > ?3) \
         AND (?4 = '[]' OR m.scope IN (SELECT value FROM json_each(?4)))"
    };
}

statements! {
    /// The index holds all that is asked of a memory here; without the hint the planner would fetch each row.
    LEXICAL = concat!(
        "SELECT NULL AS term, NULL AS memory_id, count(*) AS count, coalesce(sum(m.term_count), 0) AS len \
         FROM memories m INDEXED BY memories_recallable \
         WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND ", recallable!(), " \
         UNION ALL \
         SELECT p.term, p.memory_id, p.count, m.term_count FROM json_each(?5) asked \
         CROSS JOIN memory_terms p ON p.tenant_id = ?1 AND p.owner_id = ?2 AND p.term = asked.value \
         CROSS JOIN memories m INDEXED BY memories_recallable \
             ON m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id = p.memory_id \
         WHERE ", recallable!());
}

pub(super) async fn rows(
    readers: &SqlitePool,
    owner: Owner,
    terms: &[String],
    scopes: &[Scope],
    now: Timestamp,
) -> StoreResult<LexicalRows> {
    let found = owned(LEXICAL, owner)
        .bind(micros(now))
        .bind(json(&scopes)?)
        .bind(json(&terms)?)
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    let mut stats = CorpusStats::default();
    let mut by_term: HashMap<&str, Vec<Posting>> = HashMap::new();
    for row in &found {
        let row = Row::of("memory_terms", row);
        if let Some(term) = row.get::<Option<&str>>("term")? {
            by_term.entry(term).or_default().push(Posting {
                memory: MemoryId(row.get("memory_id")?),
                count: row.number("count")?,
                len: row.number("len")?,
            });
        } else {
            stats = CorpusStats {
                documents: row.number("count")?,
                total_len: row.number("len")?,
            };
        }
    }
    let postings = terms
        .iter()
        .filter_map(|term| {
            Some(TermPostings {
                term: term.clone(),
                postings: by_term.remove(term.as_str())?,
            })
        })
        .collect();
    Ok(LexicalRows { stats, postings })
}
