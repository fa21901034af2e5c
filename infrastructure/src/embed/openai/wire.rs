//! The JSON of OpenAI's embeddings protocol.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use tidemark_application::ports::embedder::EmbedError;
use tidemark_domain::memory::embedding::Embedding;

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

pub(super) fn request(model: &str, input: &[String], dimensions: Option<usize>) -> String {
    let request = Request {
        model,
        input,
        encoding_format: "float",
        dimensions,
    };
    // Texts and numbers can always be written.
    serde_json::to_string(&request).unwrap_or_default()
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Numbers,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Numbers {
    Plain(Vec<f32>),
    /// Some servers send these whatever was asked for: 32-bit floating point, the lowest byte first.
    Base64(String),
}

impl Numbers {
    fn embedding(&self) -> Option<Embedding> {
        match self {
            Self::Plain(values) => Embedding::of(values),
            Self::Base64(text) => {
                let bytes = STANDARD.decode(text).ok()?;
                let (numbers, rest) = bytes.as_chunks::<4>();
                let values: Vec<f32> = numbers.iter().map(|b| f32::from_le_bytes(*b)).collect();
                rest.is_empty().then(|| Embedding::of(&values)).flatten()
            }
        }
    }
}

/// The vectors of an answer in the order of the `count` inputs: by their `index`, or as they come from a server that sends none.
pub(super) fn embeddings(answer: &[u8], count: usize) -> Result<Vec<Embedding>, EmbedError> {
    let broken = |what: &str| EmbedError::Protocol(what.to_owned());
    let answer: Answer =
        serde_json::from_slice(answer).map_err(|_| broken("the answer is no list of vectors"))?;
    if answer.data.len() != count {
        return Err(broken("it gives another number of vectors than texts"));
    }
    let mut ordered: Vec<Option<Embedding>> = vec![None; count];
    for (place, item) in answer.data.iter().enumerate() {
        let slot = ordered
            .get_mut(item.index.unwrap_or(place))
            .filter(|slot| slot.is_none())
            .ok_or_else(|| broken("its indexes are not those of the texts"))?;
        let embedding = item.embedding.embedding();
        *slot = Some(embedding.ok_or_else(|| broken("a vector is empty, zero or not finite"))?);
    }
    Ok(ordered.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn first_values(answer: &str, count: usize) -> Result<Vec<f32>, EmbedError> {
        let embeddings = embeddings(answer.as_bytes(), count)?;
        Ok(embeddings.iter().map(|e| e.values()[0]).collect())
    }

    #[test]
    fn vectors_come_in_the_order_of_the_texts_whatever_the_order_of_the_answer() {
        let shuffled = r#"{"object":"list","data":[
            {"object":"embedding","index":2,"embedding":[0.0,1.0]},
            {"object":"embedding","index":0,"embedding":[1.0,0.0]},
            {"object":"embedding","index":1,"embedding":[-3,0]}],"model":"m","usage":{"prompt_tokens":3,"total_tokens":3}}"#;
        assert_eq!(first_values(shuffled, 3), Ok(vec![1.0, -1.0, 0.0]));
        let unnumbered = r#"{"data":[{"embedding":[1,0]},{"embedding":[-1,0]}]}"#;
        assert_eq!(first_values(unnumbered, 2), Ok(vec![1.0, -1.0]));
    }

    #[test]
    fn base64_is_read_like_numbers() {
        // numpy.array([0.5, -0.5], dtype="<f4").tobytes() in base64.
        let answer = r#"{"data":[{"index":0,"embedding":"AAAAPwAAAL8="}]}"#;
        let embedding = embeddings(answer.as_bytes(), 1).unwrap().remove(0);
        assert_eq!(Embedding::of(&[1.0, -1.0]), Some(embedding));
    }

    #[test]
    fn an_answer_that_is_not_one_vector_a_text_breaks_the_protocol() {
        for answer in [
            "",
            "[]",
            r#"{"error":{"message":"no"}}"#,
            r#"{"data":[]}"#,
            r#"{"data":[{"index":0,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[null]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[0,0]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1e39]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":"AAAA"}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":"*"}]}"#,
        ] {
            assert!(
                matches!(
                    embeddings(answer.as_bytes(), 2),
                    Err(EmbedError::Protocol(_))
                ),
                "{answer}"
            );
        }
    }

    #[test]
    fn the_request_is_the_published_form() {
        let body = request("m", &["a".to_owned(), "b".to_owned()], None);
        assert_eq!(
            body,
            r#"{"model":"m","input":["a","b"],"encoding_format":"float"}"#
        );
        assert!(request("m", &[], Some(256)).contains(r#""dimensions":256"#));
    }
}
