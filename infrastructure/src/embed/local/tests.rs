//! A tiny model whose vectors can be computed by hand, and a real one against values computed independently (numpy, 64 bits, from the
//! formulas of the papers).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

const WORDS: [[f32; 4]; 5] = [
    [0.0, 0.0, 0.0, 0.0],
    [1.0, 2.0, 3.0, 4.0],
    [4.0, 3.0, 2.0, 1.0],
    [1.0, 0.0, 0.0, 0.0],
    [0.0, 5.0, 0.0, 1.0],
];
const POSITIONS: [[f32; 4]; 4] = [
    [0.0, 0.0, 0.0, 0.0],
    [0.0, 1.0, 0.0, 0.0],
    [0.0, 0.0, 2.0, 0.0],
    [1.0, 0.0, 0.0, 3.0],
];

/// A model without layers: a text's vector is made of its words', positions' and type's alone.
struct Tiny {
    directory: TempDir,
    config: Value,
}

impl Tiny {
    fn new() -> Self {
        let tiny = Self {
            directory: TempDir::new().unwrap(),
            config: json!({
                "model_type": "bert", "hidden_size": 4, "num_hidden_layers": 0, "num_attention_heads": 2,
                "intermediate_size": 8, "max_position_embeddings": 4, "vocab_size": 5
            }),
        };
        let vocabulary = json!({"pad": 0, "one": 1, "two": 2, "three": 3, "unknown": 4});
        let tokenizer = json!({
            "version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"},
            "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "unknown"}
        });
        tiny.write(TOKENIZER, tokenizer.to_string().as_bytes());
        tiny.weights("", Dtype::F32, |value| value.to_le_bytes().to_vec());
        tiny.configure(&[])
    }

    fn write(&self, file: &str, bytes: &[u8]) {
        let path = self.directory.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn configure(mut self, changes: &[(&str, Value)]) -> Self {
        for (name, value) in changes {
            self.config[*name] = value.clone();
        }
        self.write(CONFIG, self.config.to_string().as_bytes());
        self
    }

    fn weights(&self, prefix: &str, dtype: Dtype, bytes: impl Fn(f32) -> Vec<u8>) {
        let part = |values: &[f32]| values.iter().flat_map(|v| bytes(*v)).collect::<Vec<u8>>();
        let tensors = [
            (
                "word_embeddings.weight",
                vec![5, 4],
                part(WORDS.as_flattened()),
            ),
            (
                "position_embeddings.weight",
                vec![4, 4],
                part(POSITIONS.as_flattened()),
            ),
            (
                "token_type_embeddings.weight",
                vec![1, 4],
                part(&[0.5, 0.0, 0.0, 0.0]),
            ),
            ("LayerNorm.weight", vec![4], part(&[1.0; 4])),
            ("LayerNorm.bias", vec![4], part(&[0.0; 4])),
        ];
        let views: BTreeMap<String, TensorView<'_>> = tensors
            .iter()
            .map(|(name, shape, data)| {
                let view = TensorView::new(dtype, shape.clone(), data).unwrap();
                (format!("{prefix}embeddings.{name}"), view)
            })
            .collect();
        self.write(WEIGHTS, &safetensors::serialize(views, None).unwrap());
    }

    fn open(&self) -> Result<LocalEmbedder, String> {
        open(self.directory.path()).map_err(|error| error.to_string())
    }

    async fn vector(&self, text: &str) -> Vec<f32> {
        self.open()
            .unwrap()
            .embed_query(text)
            .await
            .unwrap()
            .values()
            .to_vec()
    }
}

fn open(directory: &Path) -> Result<LocalEmbedder, LocalEmbedderError> {
    let options = LocalEmbedderOptions {
        directory: directory.to_owned(),
        query_prefix: String::new(),
        passage_prefix: String::new(),
        batch: 64,
        threads: 2,
    };
    LocalEmbedder::open(options, |fingerprint| format!("local:test@{fingerprint}"))
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f32]) {
    assert!(found.len() >= expected.len());
    for (found_one, expected_one) in found.iter().zip(expected) {
        assert!(
            (found_one - expected_one).abs() < 2e-5,
            "{found:?} is not {expected:?}"
        );
    }
}

#[tokio::test]
async fn a_text_is_the_mean_of_its_tokens_or_the_first_as_the_model_says() {
    let tiny = Tiny::new();
    let mean = [0.229_635, -0.096_322, -0.748_237, 0.614_924];
    assert_close(&tiny.vector("one three").await, &mean);
    tiny.write(
        "1_Pooling/config.json",
        br#"{"pooling_mode_cls_token": true}"#,
    );
    let first = [-0.585_850, -0.325_472, 0.195_283, 0.716_039];
    assert_close(&tiny.vector("one three").await, &first);
}

#[tokio::test]
async fn positions_of_robertas_begin_behind_the_padding() {
    let roberta = [
        ("model_type", json!("xlm-roberta")),
        ("pad_token_id", json!(0)),
    ];
    let tiny = Tiny::new().configure(&roberta);
    let expected = [-0.452_267, -0.452_267, 0.753_778, 0.150_756];
    assert_close(&tiny.vector("one three").await, &expected);
}

#[tokio::test]
async fn weights_may_be_short_numbers_and_may_stand_under_the_name_of_the_model() {
    let mean = [0.229_635, -0.096_322, -0.748_237, 0.614_924];
    let tiny = Tiny::new();
    tiny.weights("bert.", Dtype::BF16, |value| {
        value.to_le_bytes()[2..].to_vec()
    });
    assert_close(&tiny.vector("one three").await, &mean);
}

#[tokio::test]
async fn a_text_is_cut_at_the_length_that_the_sentence_model_names() {
    let tiny = Tiny::new();
    assert_ne!(
        tiny.vector("one three two one").await,
        tiny.vector("one three two").await
    );
    tiny.write("sentence_bert_config.json", br#"{"max_seq_length": 3}"#);
    assert_eq!(
        tiny.vector("one three two one").await,
        tiny.vector("one three two").await
    );
}

#[test]
fn a_directory_that_cannot_be_used_is_told_by_its_file_and_what_is_wrong() {
    let of = |changes: &[(&str, Value)]| Tiny::new().configure(changes).open().unwrap_err();
    let unknown = of(&[("model_type", json!("t5"))]);
    assert!(
        unknown.contains("config.json")
            && unknown.contains("t5")
            && unknown.contains("xlm-roberta"),
        "{unknown}"
    );
    let shape = of(&[("vocab_size", json!(7))]);
    assert!(
        shape.contains("model.safetensors")
            && shape.contains("word_embeddings")
            && shape.contains("[7, 4]"),
        "{shape}"
    );
    let layers = of(&[("num_hidden_layers", json!(1))]);
    assert!(
        layers.contains("encoder.layer.0.attention.self.query.weight"),
        "{layers}"
    );
    let heads = of(&[("num_attention_heads", json!(3))]);
    assert!(heads.contains("num_attention_heads"), "{heads}");
    let relative = of(&[("position_embedding_type", json!("relative_key"))]);
    assert!(relative.contains("positions"), "{relative}");

    for (file, content, expected) in [
        (TOKENIZER, "{}", "tokenizer.json"),
        (WEIGHTS, "no tensors", "model.safetensors"),
        (
            "1_Pooling/config.json",
            r#"{"pooling_mode_max_tokens": true}"#,
            "mean",
        ),
        (
            "modules.json",
            r#"[{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]"#,
            "Dense",
        ),
    ] {
        let tiny = Tiny::new();
        tiny.write(file, content.as_bytes());
        let refused = tiny.open().unwrap_err();
        assert!(refused.contains(expected), "{file}: {refused}");
    }
    let nothing = TempDir::new().unwrap();
    let refused = open(nothing.path()).unwrap_err().to_string();
    assert!(refused.contains("config.json cannot be read"), "{refused}");
}

#[test]
fn the_same_model_has_the_same_name_wherever_it_lies_and_another_has_another() {
    let (one, same, other) = (Tiny::new(), Tiny::new(), Tiny::new());
    other.write(
        "1_Pooling/config.json",
        br#"{"pooling_mode_cls_token": true}"#,
    );
    let name = |tiny: &Tiny| tiny.open().unwrap().model().to_owned();
    assert_eq!(name(&one), name(&same));
    assert_ne!(name(&one), name(&other));
    assert!(name(&one).starts_with("local:test@"));
}

#[test]
fn texts_are_computed_in_small_pieces_in_their_order() {
    let texts: Vec<String> = (0..100)
        .map(|n| format!("{n}{}", "x".repeat(n * 7)))
        .collect();
    let pieces = pieces(texts.clone());
    assert_eq!(pieces.concat(), texts);
    assert!(pieces.len() > 20);
    assert!(
        pieces
            .iter()
            .all(|p| p.len() == 1 || p.iter().map(String::len).sum::<usize>() <= PIECE_BYTES)
    );
}

/// all-MiniLM-L6-v2, installed by the test script.
fn minilm() -> LocalEmbedder {
    let directory = std::env::var_os("TIDEMARK_TEST_SENTENCE_MODEL")
        .expect("TIDEMARK_TEST_SENTENCE_MODEL names the directory of all-MiniLM-L6-v2; scripts/test sets it");
    open(Path::new(&directory)).unwrap()
}

#[tokio::test]
async fn a_real_model_finds_the_known_similarities() {
    let embedder = minilm();
    assert_eq!(embedder.dimension(), Some(384));
    for (question, passage, similarity) in [
        (
            "A man is eating food.",
            "A man is eating a piece of bread.",
            0.755_337,
        ),
        (
            "How do I reset my password?",
            "Steps to recover a forgotten login credential",
            0.570_955,
        ),
        (
            "How do I reset my password?",
            "The cake needs two eggs and some flour",
            0.024_300,
        ),
        (
            "Where did Anna move last spring?",
            "In April Anna relocated to Lisbon for her new job.",
            0.706_435,
        ),
        (
            "Where did Anna move last spring?",
            "Anna's cat is called Miso.",
            0.448_218,
        ),
    ] {
        let question = embedder.embed_query(question).await.unwrap();
        let passages = embedder
            .embed_passages(&[passage.to_owned()])
            .await
            .unwrap();
        let found = question.cosine(&passages[0]).unwrap();
        assert!(
            (found - similarity).abs() < 1e-4,
            "{passage}: {found}, not {similarity}"
        );
    }
    let mixed = "The tide turns twice a day; 潮水 rises at the Café.";
    let vector = embedder.embed_query(mixed).await.unwrap();
    assert_close(
        vector.values(),
        &[
            -0.040_975, -0.010_785, 0.105_396, 0.039_067, 0.006_514, 0.002_256, 0.014_284,
            -0.062_782,
        ],
    );
}

#[tokio::test]
async fn a_real_model_gives_a_text_the_same_vector_alone_and_among_others() {
    let embedder = minilm();
    let texts: Vec<String> = [
        "the tide",
        "a much longer passage about the moon and the sea, and what they do to one another",
        "",
        "潮",
    ]
    .map(str::to_owned)
    .to_vec();
    let together = embedder.embed_passages(&texts).await.unwrap();
    for (text, among_others) in texts.iter().zip(&together) {
        let alone = embedder.embed_query(text).await.unwrap();
        assert!(alone.cosine(among_others).unwrap() > 0.999_999, "{text:?}");
    }
    // 256 tokens are read, two of which are not words.
    let read = embedder.embed_query(&"tide ".repeat(254)).await.unwrap();
    let more = embedder.embed_query(&"tide ".repeat(1_000)).await.unwrap();
    assert!(read.cosine(&more).unwrap() > 0.999_999);
}
