//! The embedder that the settings name.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidemark_application::memory::watched_embedder::{Embedders, WatchedEmbedder};
use tidemark_application::ports::embedder::Embedder;
use tidemark_application::ports::embeddings::EmbeddingRepository;
use tidemark_infrastructure::embed::local::{LocalEmbedder, LocalEmbedderOptions};
use tidemark_infrastructure::embed::openai::{OpenAiEmbedder, OpenAiEmbedderOptions};
use tidemark_infrastructure::model::key::ApiKey;

use super::WiringError;
use crate::config::setting::EmbedderKind;
use crate::config::{Settings, sections};

/// How long the start waits for an embedder to show that it works. Without an answer the start goes on: memory is found by words meanwhile.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// The embedder's vectors have another length than those that are stored under its name.
#[derive(Debug, thiserror::Error)]
#[error(
    "{model} gives vectors of {given} numbers, and those stored under this name have {known}: it is another model now. \
     Set {section}.name to a new name, and all memories are embedded anew under it; or set {section}.dimensions or the server's model back to what they were"
)]
struct OtherDimension {
    section: &'static str,
    model: String,
    known: usize,
    given: usize,
}

/// Builds the embedders and sees whether they work, which decides nothing: they may come later.
///
/// # Errors
/// When the settings, or the directory of a model, cannot be used; when vectors of another dimension are stored under its name; when the store
/// fails.
pub async fn embedders(
    settings: &Settings,
    store: &dyn EmbeddingRepository,
) -> Result<Embedders, WiringError> {
    let limit = Duration::from_millis(settings.recall.embed_timeout_ms);
    Ok(Embedders {
        present: embedder("embedder", &settings.embedder, limit, store).await?,
        previous: embedder(
            "previous_embedder",
            &settings.previous_embedder,
            limit,
            store,
        )
        .await?,
    })
}

async fn embedder(
    name: &'static str,
    section: &sections::Embedder,
    query_timeout: Duration,
    store: &dyn EmbeddingRepository,
) -> Result<Option<Arc<WatchedEmbedder>>, WiringError> {
    let section = section.clone();
    // A local model is some hundred megabytes to read.
    let built = tokio::task::spawn_blocking(move || build(&section, query_timeout)).await;
    let built = built.map_err(|error| WiringError::Embedder(error.into()))??;
    let Some(embedder) = built else {
        return Ok(None);
    };
    let embedder = Arc::new(WatchedEmbedder::new(embedder));
    let probe = embedder.probe(PROBE_LIMIT).await;
    let model = embedder.model();
    let known = store.embedding_dimension(model).await;
    let known = known.map_err(|error| WiringError::Embedder(error.into()))?;
    match (known, probe) {
        (Some(known), Ok(given)) if known != given => {
            let error = OtherDimension {
                section: name,
                model: model.to_owned(),
                known,
                given,
            };
            return Err(WiringError::Embedder(error.into()));
        }
        (_, Ok(dimension)) => {
            tracing::info!(model, dimension, section = name, "the embedder works");
        }
        (known, Err(error)) => {
            if let Some(known) = known {
                embedder.expect_dimension(known);
            }
            tracing::warn!(model, %error, section = name, "the embedder does not work now; memory is found by words and times alone");
        }
    }
    Ok(Some(embedder))
}

fn build(
    section: &sections::Embedder,
    query_timeout: Duration,
) -> Result<Option<Arc<dyn Embedder>>, WiringError> {
    let prefix = |prefix: &Option<String>| prefix.clone().unwrap_or_default();
    let (query_prefix, passage_prefix) = (
        prefix(&section.query_prefix),
        prefix(&section.passage_prefix),
    );
    match (
        section.kind,
        &section.base_url,
        &section.name,
        &section.path,
    ) {
        (EmbedderKind::OpenAi, Some(base_url), Some(name), _) => {
            let dimensions = Some(section.dimensions).filter(|dimensions| *dimensions > 0);
            let embedder = OpenAiEmbedder::new(OpenAiEmbedderOptions {
                model: identity("openai", name, dimensions, &passage_prefix),
                base_url: base_url.0.clone(),
                name: name.clone(),
                api_key: section
                    .api_key
                    .as_ref()
                    .and_then(|key| ApiKey::new(key.expose())),
                dimensions,
                query_prefix,
                passage_prefix,
                batch: section.batch,
                query_timeout,
                timeout: Duration::from_millis(section.timeout_ms),
            });
            let embedder = embedder.map_err(|error| WiringError::Embedder(error.into()))?;
            Ok(Some(Arc::new(embedder)))
        }
        (EmbedderKind::Local, _, name, Some(path)) => {
            let options = LocalEmbedderOptions {
                directory: path.clone(),
                query_prefix,
                passage_prefix: passage_prefix.clone(),
                batch: section.batch,
                threads: section.threads,
            };
            let embedder = LocalEmbedder::open(options, |fingerprint| {
                let own = || format!("{}@{fingerprint}", last_name(path));
                let name = name.clone().unwrap_or_else(own);
                identity("local", &name, None, &passage_prefix)
            });
            let embedder = embedder.map_err(|error| WiringError::Embedder(error.into()))?;
            Ok(Some(Arc::new(embedder)))
        }
        _ => Ok(None),
    }
}

/// What vectors are stored under. Whatever changes a memory's vector changes it.
fn identity(kind: &str, name: &str, dimensions: Option<usize>, passage_prefix: &str) -> String {
    let mut identity = format!("{kind}:{name}");
    if let Some(dimensions) = dimensions {
        identity = format!("{identity}/{dimensions}");
    }
    let prefix = passage_prefix.trim();
    if !prefix.is_empty() {
        identity = format!("{identity} ({prefix})");
    }
    identity.truncate(identity.floor_char_boundary(255));
    identity
}

fn last_name(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole.file_name().map_or_else(
        || "model".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_changes_a_vector_changes_what_it_is_stored_under() {
        assert_eq!(identity("openai", "m", None, ""), "openai:m");
        assert_eq!(identity("openai", "m", Some(256), ""), "openai:m/256");
        assert_eq!(
            identity("local", "m@1", None, "passage: "),
            "local:m@1 (passage:)"
        );
        assert!(identity("openai", &"é".repeat(500), None, "").len() <= 255);
    }
}
