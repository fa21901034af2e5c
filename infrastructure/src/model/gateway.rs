//! What stands between the turns and a model: not too many requests at once, and none while it does not answer (F4).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use tidemark_application::ports::model::{
    ChatModel, ModelError, ModelEvent, ModelRequest, ModelStream,
};
use tidemark_domain::window::TokenCounter;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::breaker::{Breaker, Outcome};

/// The gateway's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayOptions {
    /// How many answers may come at once.
    pub max_concurrent: usize,
    /// How long a request may wait for its turn.
    pub queue_wait: Duration,
    /// After how many failures in a row nothing is asked for a while.
    pub failures_to_open: u32,
    /// How long that is; then a single request tries.
    pub open_for: Duration,
}

impl Default for GatewayOptions {
    /// 64 at once, 30 s of waiting, a pause of 15 s after 5 failures.
    fn default() -> Self {
        Self {
            max_concurrent: 64,
            queue_wait: Duration::from_secs(30),
            failures_to_open: 5,
            open_for: Duration::from_secs(15),
        }
    }
}

/// A model behind limits.
pub struct Gateway {
    model: Arc<dyn ChatModel>,
    permits: Arc<Semaphore>,
    queue_wait: Duration,
    breaker: Arc<Breaker>,
}

impl Gateway {
    /// Puts limits around a model.
    pub fn new(model: Arc<dyn ChatModel>, options: GatewayOptions) -> Self {
        Self {
            model,
            permits: Arc::new(Semaphore::new(
                options.max_concurrent.clamp(1, Semaphore::MAX_PERMITS),
            )),
            queue_wait: options.queue_wait,
            breaker: Arc::new(Breaker::new(
                "model",
                options.failures_to_open,
                options.open_for,
            )),
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("model", &self.model.name())
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}

fn outcome(error: &ModelError) -> Outcome {
    match error {
        ModelError::Unavailable(_) | ModelError::Silent(_) => Outcome::Failed,
        _ => Outcome::Reached,
    }
}

fn paused() -> ModelError {
    ModelError::Unavailable("it did not answer lately and is given a pause".to_owned())
}

#[async_trait]
impl ChatModel for Gateway {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn teaches(&self) -> bool {
        self.model.teaches()
    }

    fn counter(&self) -> &dyn TokenCounter {
        self.model.counter()
    }

    async fn answer(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        if self.breaker.refuses(Instant::now()) {
            return Err(paused()); // without queueing first
        }
        let queued = Arc::clone(&self.permits).acquire_owned();
        let Ok(Ok(permit)) = timeout(self.queue_wait, queued).await else {
            return Err(ModelError::RateLimited { retry_after: None });
        };
        let mut settlement = Breaker::admitted(&self.breaker).ok_or_else(paused)?;
        let mut answer = match self.model.answer(request).await {
            Ok(answer) => answer,
            Err(error) => {
                settlement.settle(outcome(&error));
                return Err(error);
            }
        };
        Ok(async_stream::stream! {
            let _permit = permit;
            while let Some(event) = answer.next().await {
                match &event {
                    Ok(ModelEvent::Finished { .. }) => settlement.settle(Outcome::Reached),
                    Ok(_) => {}
                    Err(error) => settlement.settle(outcome(error)),
                }
                yield event;
            }
        }
        .boxed())
    }
}

#[cfg(test)]
mod tests;
