//! The JSON of `/rerank`, in both forms that servers know.

use serde::{Deserialize, Serialize};
use tidemark_application::ports::reranker::RerankError;

#[derive(Serialize)]
struct Request<'a> {
    query: &'a str,
    documents: &'a [&'a str],
    #[serde(flatten)]
    server: Server<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Server<'a> {
    /// One with many models.
    Named { model: &'a str, top_n: usize },
    /// One with a single model, whose name nobody needs. It may be text-embeddings-inference, which knows the documents as `texts` and is to cut what is
    /// too long rather than to refuse it; others do not look at either.
    Single {
        texts: &'a [&'a str],
        truncate: bool,
    },
}

pub(super) fn request(model: Option<&str>, query: &str, documents: &[&str]) -> String {
    let server = match model {
        Some(model) => Server::Named {
            model,
            top_n: documents.len(),
        },
        None => Server::Single {
            texts: documents,
            truncate: true,
        },
    };
    let request = Request {
        query,
        documents,
        server,
    };
    // Texts and numbers can always be written.
    serde_json::to_string(&request).unwrap_or_default()
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Named { results: Vec<Judged> },
    Bare(Vec<Judged>),
}

#[derive(Deserialize)]
struct Judged {
    index: usize,
    relevance_score: Option<f64>,
    score: Option<f64>,
}

/// The scores of an answer in the order of the `count` documents. One that leaves some out says nothing of them, so it is no answer.
pub(super) fn scores(answer: &[u8], count: usize) -> Result<Vec<f64>, RerankError> {
    let broken = |what: &str| RerankError::Protocol(what.to_owned());
    let answer =
        serde_json::from_slice(answer).map_err(|_| broken("the answer is no list of scores"))?;
    let (Answer::Named { results: judged } | Answer::Bare(judged)) = answer;
    if judged.len() != count {
        return Err(broken("it gives another number of scores than documents"));
    }
    let mut ordered: Vec<Option<f64>> = vec![None; count];
    for judged in judged {
        let slot = ordered
            .get_mut(judged.index)
            .filter(|slot| slot.is_none())
            .ok_or_else(|| broken("its indexes are not those of the documents"))?;
        let score = judged.relevance_score.or(judged.score);
        *slot = Some(score.ok_or_else(|| broken("a score is missing"))?);
    }
    Ok(ordered.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_server_with_many_models_is_asked_in_the_form_of_jina_and_cohere() {
        assert_eq!(
            request(Some("m"), "q", &["a", "b"]),
            r#"{"query":"q","documents":["a","b"],"model":"m","top_n":2}"#
        );
    }

    #[test]
    fn a_server_with_one_model_finds_the_texts_under_either_name() {
        assert_eq!(
            request(None, "q", &["a"]),
            r#"{"query":"q","documents":["a"],"texts":["a"],"truncate":true}"#
        );
    }

    #[test]
    fn scores_come_in_the_order_of_the_documents_whatever_the_form_and_order_of_the_answer() {
        for answer in [
            // Jina
            r#"{"model":"m","object":"list","usage":{"total_tokens":9},"results":[
                {"index":2,"relevance_score":0.9,"document":{"text":"c"}},{"index":0,"relevance_score":0.5},{"index":1,"relevance_score":-1}]}"#,
            // Cohere
            r#"{"id":"x","results":[{"index":2,"relevance_score":0.9},{"index":0,"relevance_score":0.5},{"index":1,"relevance_score":-1.0}],"meta":{}}"#,
            // text-embeddings-inference
            r#"[{"index":2,"score":0.9},{"index":0,"score":0.5,"text":"a"},{"index":1,"score":-1}]"#,
            r#"{"results":[{"index":2,"score":0.9,"relevance_score":null},{"index":0,"score":0.5},{"index":1,"score":-1}]}"#,
        ] {
            assert_eq!(
                scores(answer.as_bytes(), 3),
                Ok(vec![0.5, -1.0, 0.9]),
                "{answer}"
            );
        }
    }

    #[test]
    fn an_answer_that_is_not_one_score_a_document_breaks_the_protocol() {
        for answer in [
            "",
            "null",
            "{}",
            r#"{"error":"no"}"#,
            r#"{"results":[]}"#,
            "[]",
            r#"[{"index":0,"score":1}]"#,
            r#"[{"index":0,"score":1},{"index":0,"score":2}]"#,
            r#"[{"index":0,"score":1},{"index":2,"score":2}]"#,
            r#"[{"index":0,"score":1},{"index":-1,"score":2}]"#,
            r#"[{"index":0,"score":1},{"index":1,"score":2},{"index":2,"score":2}]"#,
            r#"[{"index":0,"score":1},{"index":1,"score":null}]"#,
            r#"[{"index":0,"score":1},{"index":1,"score":NaN}]"#,
            r#"[{"index":0,"score":1},{"index":1,"score":1e999}]"#,
            r#"[{"index":0,"score":1},{"index":1,"score":"2"}]"#,
            r#"[{"index":0,"score":1},{"index":1}]"#,
            r#"[{"score":1},{"score":2}]"#,
        ] {
            let told = scores(answer.as_bytes(), 2);
            assert!(matches!(told, Err(RerankError::Protocol(_))), "{answer}");
        }
    }
}
