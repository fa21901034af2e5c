//! The reranker that the settings name.

use std::sync::Arc;
use std::time::Duration;

use tidemark_application::memory::reranking::Reranking;
use tidemark_infrastructure::model::key::ApiKey;
use tidemark_infrastructure::rerank::{HttpReranker, HttpRerankerOptions};

use super::WiringError;
use crate::config::sections;

/// Builds it; none where none is set. Whether it answers is seen when it is asked: nothing depends on it.
///
/// # Errors
/// When address or key cannot be used.
pub(super) fn reranking(section: &sections::Reranker) -> Result<Option<Reranking>, WiringError> {
    let Some(url) = &section.url else {
        return Ok(None);
    };
    let timeout = Duration::from_millis(section.timeout_ms);
    let key = section.api_key.as_ref();
    let reranker = HttpReranker::new(HttpRerankerOptions {
        url: url.0.clone(),
        model: section.model.clone(),
        api_key: key.and_then(|key| ApiKey::new(key.expose())),
        timeout,
    });
    let reranker = reranker.map_err(|error| WiringError::Reranker(error.into()))?;
    Ok(Some(Reranking::new(
        Arc::new(reranker),
        section.candidates,
        timeout,
    )))
}
