//! A model's directory, in the layout of Hugging Face's transformers and of sentence-transformers.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelFilesError {
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} cannot be used: {why}", path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// `config.json`: the shape of the model.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) model_type: String,
    pub(super) hidden_size: usize,
    pub(super) num_hidden_layers: usize,
    pub(super) num_attention_heads: usize,
    pub(super) intermediate_size: usize,
    pub(super) max_position_embeddings: usize,
    pub(super) vocab_size: usize,
    #[serde(default = "gelu")]
    pub(super) hidden_act: String,
    #[serde(default = "layer_norm_eps")]
    pub(super) layer_norm_eps: f32,
    #[serde(default)]
    pub(super) pad_token_id: usize,
    #[serde(default = "absolute")]
    position_embedding_type: String,
}

fn gelu() -> String {
    "gelu".to_owned()
}

fn layer_norm_eps() -> f32 {
    1e-12
}

fn absolute() -> String {
    "absolute".to_owned()
}

/// `sentence_bert_config.json`.
#[derive(Deserialize)]
struct SentenceConfig {
    max_seq_length: Option<usize>,
}

/// `modules.json`: what the sentence model is made of.
#[derive(Deserialize)]
struct Module {
    path: String,
    r#type: String,
}

/// `1_Pooling/config.json`.
#[derive(Deserialize)]
struct PoolingConfig {
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
}

/// How the vectors of a text's tokens become the text's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooling {
    /// Their mean.
    Mean,
    /// The first one.
    First,
}

/// What the directory says.
#[derive(Debug)]
pub(super) struct ModelFiles {
    pub(super) config: Config,
    pub(super) pooling: Pooling,
    /// The most tokens of a text, with the special ones.
    pub(super) max_tokens: usize,
    /// The number of the first position: those of `RoBERTa` begin behind the padding's.
    pub(super) first_position: usize,
    pub(super) tokenizer: Vec<u8>,
    pub(super) weights: Vec<u8>,
}

/// Model types whose computation is BERT's.
const BERT_LIKE: [&str; 1] = ["bert"];
/// And those whose positions are numbered otherwise.
const ROBERTA_LIKE: [&str; 3] = ["roberta", "xlm-roberta", "camembert"];

pub(super) const CONFIG: &str = "config.json";
pub(super) const TOKENIZER: &str = "tokenizer.json";
pub(super) const WEIGHTS: &str = "model.safetensors";

impl ModelFiles {
    pub(super) fn read(directory: &Path) -> Result<Self, ModelFilesError> {
        let path = directory.join(CONFIG);
        let config: Config = json(&path)?;
        let unusable = |why: String| {
            Err(ModelFilesError::Unusable {
                path: path.clone(),
                why,
            })
        };
        let model_type = config.model_type.as_str();
        let first_position = if BERT_LIKE.contains(&model_type) {
            0
        } else if ROBERTA_LIKE.contains(&model_type) {
            config.pad_token_id + 1
        } else {
            return unusable(format!(
                "model_type is {model_type}; can be computed: {}",
                [&BERT_LIKE[..], &ROBERTA_LIKE[..]].concat().join(", ")
            ));
        };
        if config.position_embedding_type != "absolute" {
            return unusable("only absolute positions can be computed".to_owned());
        }
        let heads = config.num_attention_heads;
        if heads == 0 || !config.hidden_size.is_multiple_of(heads) || config.hidden_size == 0 {
            return unusable("hidden_size is no multiple of num_attention_heads".to_owned());
        }
        let positions = config
            .max_position_embeddings
            .saturating_sub(first_position);
        let sentence: Option<SentenceConfig> =
            optional_json(&directory.join("sentence_bert_config.json"))?;
        let max_tokens = sentence
            .and_then(|s| s.max_seq_length)
            .map_or(positions, |most| most.min(positions));
        if max_tokens < 3 {
            return unusable("it leaves no room for tokens".to_owned());
        }
        Ok(Self {
            config,
            pooling: pooling(directory)?,
            max_tokens,
            first_position,
            tokenizer: read(&directory.join(TOKENIZER))?,
            weights: read(&directory.join(WEIGHTS))?,
        })
    }
}

/// Refuses models that do more than is computed here, rather than compute something else.
fn pooling(directory: &Path) -> Result<Pooling, ModelFilesError> {
    let path = directory.join("modules.json");
    let modules: Vec<Module> = optional_json(&path)?.unwrap_or_default();
    let known = ["Transformer", "Pooling", "Normalize"];
    let kind = |module: &Module| module.r#type.rsplit('.').next().map(str::to_owned);
    for module in &modules {
        let kind = kind(module).unwrap_or_default();
        if !known.contains(&kind.as_str()) {
            return Err(ModelFilesError::Unusable {
                path,
                why: format!("the module {kind} cannot be computed"),
            });
        }
    }
    let folder = modules
        .iter()
        .find(|module| kind(module).as_deref() == Some("Pooling"))
        .map_or("1_Pooling", |module| module.path.as_str());
    let path = directory.join(folder).join(CONFIG);
    let config: Option<PoolingConfig> = optional_json(&path)?;
    match config.map(|c| (c.pooling_mode_mean_tokens, c.pooling_mode_cls_token)) {
        None | Some((true, false)) => Ok(Pooling::Mean),
        Some((false, true)) => Ok(Pooling::First),
        Some(_) => Err(ModelFilesError::Unusable {
            path,
            why: "only the mean of the tokens, or the first one, can be taken".to_owned(),
        }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ModelFilesError> {
    std::fs::read(path).map_err(|source| ModelFilesError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, ModelFilesError> {
    let bytes = read(path)?;
    serde_json::from_slice(&bytes).map_err(|error| ModelFilesError::Unusable {
        path: path.to_owned(),
        why: error.to_string(),
    })
}

fn optional_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ModelFilesError> {
    if path.exists() {
        json(path).map(Some)
    } else {
        Ok(None)
    }
}
