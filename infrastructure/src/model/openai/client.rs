//! Asking over HTTP: retries until the answer begins, time limits from then on.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Response, StatusCode};
use tidemark_application::ports::clock::Clock;
use tidemark_application::ports::model::{ModelError, ModelRequest, ModelStream};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::body::BodyReader;
use super::wire::{self, Dialect};
use super::{OpenAiOptions, SetupError};
use crate::model::endpoint::endpoint;
use crate::model::key::ApiKey;
use crate::model::retry::{LONGEST_WAIT, backoff, is_transient, retry_after};
use crate::model::{refusal, tls};
use crate::system::SystemClock;

/// How long the usage may stay behind the finish reason; some servers keep the connection open and never send it.
const USAGE_GRACE: Duration = Duration::from_secs(2);

/// A client of one server.
pub(super) struct Client {
    http: reqwest::Client,
    url: reqwest::Url,
    options: OpenAiOptions,
    dialect: Mutex<Dialect>,
}

/// An attempt that brought no answer.
struct Failure {
    error: ModelError,
    retry: Retry,
}

/// Whether to try again.
enum Retry {
    Never,
    /// After the usual wait.
    Usual,
    /// After the wait that the server asks for.
    After(Duration),
}

impl Client {
    pub(super) fn new(options: OpenAiOptions) -> Result<Self, SetupError> {
        let url =
            endpoint(&options.base_url, &["chat", "completions"]).map_err(SetupError::BaseUrl)?;
        let http = tls::client_builder(url.scheme() == "https")
            .connect_timeout(options.connect_timeout)
            .redirect(reqwest::redirect::Policy::none()) // a redirected POST would lose its body or show the key to another host
            .user_agent(concat!("tidemark/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| SetupError::Client(error.without_url()))?;
        Ok(Self {
            http,
            url,
            options,
            dialect: Mutex::default(),
        })
    }

    pub(super) fn options(&self) -> &OpenAiOptions {
        &self.options
    }

    /// Asks; the stream begins where the server's headers say that it answers.
    pub(super) async fn answer(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let whole = Instant::now() + self.options.total_timeout;
        let mut retries = 0;
        loop {
            let sent_at = Instant::now();
            let failure = match timeout_at(whole, self.attempt(request)).await {
                Ok(Ok(response)) => return Ok(self.stream(response, sent_at, whole)),
                Ok(Err(failure)) => failure,
                Err(_) => return Err(ModelError::Silent(self.options.total_timeout)),
            };
            let wait = match failure.retry {
                Retry::Never => return Err(failure.error),
                Retry::Usual => backoff(retries),
                Retry::After(asked) => asked,
            };
            let in_time = wait <= LONGEST_WAIT && Instant::now() + wait < whole;
            if retries >= self.options.max_retries || !in_time {
                return Err(failure.error);
            }
            retries += 1;
            tracing::warn!(model = %self.options.name, error = %failure.error, retry = retries, wait_ms = wait.as_millis() as u64, "asking the model again");
            sleep(wait).await;
        }
    }

    async fn attempt(&self, request: &ModelRequest) -> Result<Response, Failure> {
        loop {
            let dialect = *self.dialect.lock().unwrap_or_else(PoisonError::into_inner);
            let response = self.send(request, dialect).await?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            if is_transient(status) {
                let asked = retry_after(response.headers(), SystemClock.now());
                let error = if status == StatusCode::TOO_MANY_REQUESTS {
                    ModelError::RateLimited { retry_after: asked }
                } else {
                    ModelError::Unavailable(format!("status {}", status.as_u16()))
                };
                return Err(Failure {
                    error,
                    retry: asked.map_or(Retry::Usual, Retry::After),
                });
            }
            let text = refusal::text(response).await;
            if status == StatusCode::BAD_REQUEST
                && let Some(corrected) = dialect.corrected_by(&text)
            {
                tracing::info!(model = %self.options.name, ?corrected, "the model's server speaks another dialect");
                *self.dialect.lock().unwrap_or_else(PoisonError::into_inner) = corrected;
                continue;
            }
            let code = refusal::code(&text, self.options.api_key.as_ref());
            tracing::warn!(model = %self.options.name, status = status.as_u16(), code, "the model refused");
            return Err(Failure {
                error: ModelError::Refused {
                    status: status.as_u16(),
                },
                retry: Retry::Never,
            });
        }
    }

    async fn send(&self, request: &ModelRequest, dialect: Dialect) -> Result<Response, Failure> {
        let options = &self.options;
        let body = wire::request_body(&options.name, options.temperature, request, dialect);
        let mut post = self
            .http
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .body(body.to_string());
        if let Some(key) = &options.api_key {
            post = post.bearer_auth(key.expose());
        }
        match timeout(options.first_timeout, post.send()).await {
            Ok(Ok(response)) => Ok(response),
            // The error's own text names the address, which may be nobody's business.
            Ok(Err(error)) => Err(Failure {
                error: ModelError::Unavailable(
                    if error.is_connect() {
                        "no connection"
                    } else {
                        "the connection was lost"
                    }
                    .to_owned(),
                ),
                retry: Retry::Usual,
            }),
            Err(_) => Err(Failure {
                error: ModelError::Silent(options.first_timeout),
                retry: Retry::Never,
            }),
        }
    }

    /// The events of a body that begins. It owns the response, so that dropping it hangs up.
    fn stream(&self, mut response: Response, sent_at: Instant, whole: Instant) -> ModelStream {
        let options = self.options.clone();
        async_stream::stream! {
            let key = options.api_key.as_ref();
            let mut reader = BodyReader::new(options.max_answer_bytes);
            let mut limit = options.first_timeout;
            let mut deadline = sent_at + limit;
            while !reader.is_done() {
                match timeout_at(deadline.min(whole), response.chunk()).await {
                    Ok(Ok(Some(bytes))) => {
                        let (progress, result) = reader.feed(&bytes);
                        for event in progress.events {
                            yield Ok(event);
                        }
                        if let Err(error) = result {
                            yield Err(redacted(error, key));
                            return;
                        }
                        if progress.alive {
                            limit = options.idle_timeout;
                            if reader.is_finished() {
                                limit = limit.min(USAGE_GRACE);
                            }
                            deadline = Instant::now() + limit;
                        }
                    }
                    Ok(Ok(None)) => break,
                    Ok(Err(_)) | Err(_) if reader.is_finished() => break,
                    Ok(Err(_)) => {
                        yield Err(ModelError::Truncated);
                        return;
                    }
                    Err(_) => {
                        yield Err(ModelError::Silent(if whole < deadline { options.total_timeout } else { limit }));
                        return;
                    }
                }
            }
            let (events, result) = reader.end();
            for event in events {
                yield Ok(event);
            }
            if let Err(error) = result {
                yield Err(redacted(error, key));
            }
        }
        .boxed()
    }
}

fn redacted(error: ModelError, key: Option<&ApiKey>) -> ModelError {
    match error {
        ModelError::Reported(code) => ModelError::Reported(refusal::redacted(code, key)),
        other => other,
    }
}
