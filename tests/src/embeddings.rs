//! A scripted embedder: an OpenAI-compatible `/embeddings` in this process, whose vectors are near for texts that share words, or words of one
//! meaning.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Words of one meaning, which no stemming brings together: only embeddings find one by another.
const MEANINGS: [&[&str]; 6] = [
    &["doctor", "physician", "surgeon"],
    &["car", "automobile", "vehicle", "sedan"],
    &["bought", "purchased", "acquired"],
    &["dog", "puppy", "hound", "terrier"],
    &["happy", "glad", "delighted", "joyful"],
    &["house", "home", "residence", "dwelling"],
];

/// Words that say nothing.
const SILENT: [&str; 18] = [
    "a", "an", "and", "did", "do", "does", "for", "i", "in", "is", "it", "my", "of", "on", "the",
    "to", "was", "what",
];

/// How the server behaves now.
#[derive(Clone, Debug)]
struct Behaviour {
    dimension: usize,
    /// Answers every request with this.
    status: Option<u16>,
    /// Refuses requests with a text that holds this.
    unacceptable: Option<String>,
    delay: Duration,
    shuffled: bool,
}

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct EmbeddingsRequest {
    /// The model's name in it.
    pub model: String,
    /// The texts.
    pub input: Vec<String>,
    /// The `authorization` header, if any.
    pub authorization: Option<String>,
}

#[derive(Debug)]
struct Shared {
    behaviour: Mutex<Behaviour>,
    requests: Mutex<Vec<EmbeddingsRequest>>,
}

/// A running scripted embedder; it stops when dropped.
#[derive(Debug)]
pub struct Embeddings {
    base_url: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl Embeddings {
    /// Starts on a free port of the loopback address, with 64 dimensions.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            behaviour: Mutex::new(Behaviour {
                dimension: 64,
                status: None,
                unacceptable: None,
                delay: Duration::ZERO,
                shuffled: false,
            }),
            requests: Mutex::default(),
        });
        let router = Router::new()
            .route("/v1/embeddings", post(embed))
            .layer(DefaultBodyLimit::max(32 << 20))
            .with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the scripted embedder serves");
        });
        Self {
            base_url: format!("http://{address}/v1"),
            shared,
            serving,
        }
    }

    /// The base URL for `TIDEMARK_EMBEDDER__BASE_URL`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Vectors have that many numbers from now on.
    pub fn set_dimension(&self, dimension: usize) {
        self.change(|behaviour| behaviour.dimension = dimension);
    }

    /// Answers everything with this status from now on, or works again.
    pub fn set_status(&self, status: Option<u16>) {
        self.change(|behaviour| behaviour.status = status);
    }

    /// Refuses, with 400, requests with a text that holds this.
    pub fn refuse(&self, part: &str) {
        self.change(|behaviour| behaviour.unacceptable = Some(part.to_owned()));
    }

    /// Takes so long for an answer from now on.
    pub fn set_delay(&self, delay: Duration) {
        self.change(|behaviour| behaviour.delay = delay);
    }

    /// Gives vectors in another order than that of the texts from now on.
    pub fn shuffle(&self) {
        self.change(|behaviour| behaviour.shuffled = true);
    }

    fn change(&self, how: impl FnOnce(&mut Behaviour)) {
        how(&mut self.shared.behaviour.lock().unwrap());
    }

    /// Every request so far, oldest first.
    pub fn requests(&self) -> Vec<EmbeddingsRequest> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Every text so far that it was asked to embed.
    pub fn texts(&self) -> Vec<String> {
        self.requests().into_iter().flat_map(|r| r.input).collect()
    }
}

impl Drop for Embeddings {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn embed(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = match serde_json::from_slice(&body) {
        Ok(body) => body,
        Err(_) => return refusal(400),
    };
    let input: Vec<String> = match &body["input"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(texts) => texts
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => return refusal(400),
    };
    let authorization = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    shared.requests.lock().unwrap().push(EmbeddingsRequest {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        input: input.clone(),
        authorization,
    });
    let behaviour = shared.behaviour.lock().unwrap().clone();
    tokio::time::sleep(behaviour.delay).await;
    if let Some(status) = behaviour.status {
        return refusal(status);
    }
    if let Some(part) = &behaviour.unacceptable
        && input.iter().any(|text| text.contains(part))
    {
        return refusal(400);
    }
    let mut data: Vec<Value> = input
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let embedding = vector(text, behaviour.dimension);
            json!({"object": "embedding", "index": index, "embedding": embedding})
        })
        .collect();
    if behaviour.shuffled {
        data.reverse();
    }
    axum::Json(json!({"object": "list", "data": data, "model": body["model"]})).into_response()
}

fn refusal(status: u16) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    let body = json!({"error": {"message": "as scripted", "type": "scripted"}});
    (status, axum::Json(body)).into_response()
}

/// The sum of its words' vectors, each of which is made of the word's meaning alone.
pub fn vector(text: &str, dimension: usize) -> Vec<f32> {
    // So that no text is without direction.
    let mut vector = vec![0.01; dimension];
    for meaning in meanings(text) {
        let mut state = hash(&meaning);
        for number in &mut vector {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *number += if state >> 63 == 1 { 1.0 } else { -1.0 };
        }
    }
    vector
}

fn meanings(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let mut found: Vec<String> = lower
        .split(|c: char| !c.is_alphanumeric() || is_cjk(c))
        .filter(|word| !word.is_empty() && !SILENT.contains(word))
        .map(meaning)
        .collect();
    found.extend(lower.chars().filter(|c| is_cjk(*c)).map(String::from));
    found.sort_unstable();
    found.dedup();
    found
}

fn meaning(word: &str) -> String {
    let word = word.strip_suffix('s').unwrap_or(word);
    let known = MEANINGS.iter().find(|words| words.contains(&word));
    known.map_or(word, |words| words[0]).to_owned()
}

fn is_cjk(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cosine(a: &str, b: &str) -> f32 {
        let (a, b) = (vector(a, 64), vector(b, 64));
        let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
        dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt()
    }

    #[test]
    fn texts_of_one_meaning_are_near_and_others_are_not() {
        assert!(cosine("She purchased an automobile", "she bought a car") > 0.99);
        assert!(cosine("我喜欢喝茶", "喜欢茶") > 0.6);
        assert!(cosine("She bought a car", "the tide is high tonight") < 0.4);
        assert!(cosine("", "") > 0.99);
    }
}
