//! One request in JSON, one answer: what embedders and rerankers need of HTTP. Bounded in time, size and number, with retries and a pause for a
//! server that does not answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Response, StatusCode, Url};
use tidemark_application::ports::clock::Clock;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::breaker::{Breaker, Outcome};
use super::endpoint::endpoint;
use super::key::ApiKey;
use super::retry::{LONGEST_WAIT, backoff, is_transient, retry_after};
use super::{refusal, tls};
use crate::system::SystemClock;

/// After how many failures in a row nothing is asked for a while, and how long that is.
const FAILURES_TO_PAUSE: u32 = 5;
const PAUSE: Duration = Duration::from_secs(10);

const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Where to ask.
#[derive(Clone, Debug)]
pub(crate) struct ExchangeOptions {
    /// What is asked, for the log.
    pub(crate) what: &'static str,
    /// The server's address up to the operation.
    pub(crate) base_url: String,
    /// The operation.
    pub(crate) path: &'static [&'static str],
    /// Sent as a bearer token.
    pub(crate) api_key: Option<ApiKey>,
    /// How many requests of a lane may be on their way; others wait.
    pub(crate) max_concurrent: usize,
    /// The longest answer, in bytes.
    pub(crate) max_answer_bytes: usize,
}

/// The server cannot be asked as it is set. Messages repeat nothing of what was given.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeSetupError {
    /// The address cannot be used.
    #[error("its address cannot be used: {0}")]
    Address(&'static str),
    /// The key holds characters that no header may hold.
    #[error("its API key holds characters that cannot be sent")]
    ApiKey,
    /// The HTTP client cannot be built.
    #[error("its HTTP client cannot be built")]
    Client(#[source] reqwest::Error),
}

/// No answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeError {
    Unavailable(String),
    Busy { retry_after: Option<Duration> },
    Refused { status: u16 },
    TooLong,
}

/// A client of one operation of one server.
pub(crate) struct Exchange {
    http: reqwest::Client,
    url: Url,
    options: ExchangeOptions,
}

/// What is asked for one purpose: with its own limits, so that slow work does not shut out quick questions.
pub(crate) struct Lane {
    exchange: Arc<Exchange>,
    breaker: Arc<Breaker>,
    permits: Semaphore,
    time: Duration,
    retries: u32,
}

/// An attempt that brought no answer, and how long to wait before the next, if there is to be one.
struct Failure {
    error: ExchangeError,
    wait: Option<Wait>,
}

enum Wait {
    Usual,
    Asked(Duration),
}

impl Exchange {
    pub(crate) fn new(options: ExchangeOptions) -> Result<Arc<Self>, ExchangeSetupError> {
        if options.api_key.as_ref().is_some_and(|k| !k.can_be_sent()) {
            return Err(ExchangeSetupError::ApiKey);
        }
        let url = endpoint(&options.base_url, options.path).map_err(ExchangeSetupError::Address)?;
        let http = tls::client_builder(url.scheme() == "https")
            .connect_timeout(CONNECT_LIMIT)
            .redirect(reqwest::redirect::Policy::none()) // a redirected POST would lose its body or show the key to another host
            .user_agent(concat!("tidemark/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| ExchangeSetupError::Client(error.without_url()))?;
        Ok(Arc::new(Self { http, url, options }))
    }

    /// A lane whose requests may take `time` in all, with up to `retries` retries inside it.
    pub(crate) fn lane(self: &Arc<Self>, time: Duration, retries: u32) -> Lane {
        let most = self.options.max_concurrent;
        Lane {
            exchange: Arc::clone(self),
            breaker: Arc::new(Breaker::new(self.options.what, FAILURES_TO_PAUSE, PAUSE)),
            permits: Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)),
            time,
            retries,
        }
    }

    async fn attempt(&self, body: &str) -> Result<Vec<u8>, Failure> {
        let options = &self.options;
        let mut post = self
            .http
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .body(body.to_owned());
        if let Some(key) = &options.api_key {
            post = post.bearer_auth(key.expose());
        }
        let response = post.send().await.map_err(|error| {
            // The error's own text names the address, which may be nobody's business.
            lost(if error.is_connect() {
                "no connection"
            } else {
                "the connection was lost"
            })
        })?;
        let status = response.status();
        if status.is_success() {
            return self.body(response).await;
        }
        if is_transient(status) {
            let asked = retry_after(response.headers(), SystemClock.now());
            let error = if status == StatusCode::TOO_MANY_REQUESTS {
                ExchangeError::Busy { retry_after: asked }
            } else {
                ExchangeError::Unavailable(format!("status {}", status.as_u16()))
            };
            return Err(Failure {
                error,
                wait: Some(asked.map_or(Wait::Usual, Wait::Asked)),
            });
        }
        let code = refusal::code(&refusal::text(response).await, options.api_key.as_ref());
        let status = status.as_u16();
        tracing::warn!(what = options.what, status, code, "a request was refused");
        Err(Failure {
            error: ExchangeError::Refused { status },
            wait: None,
        })
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if bytes.len() + chunk.len() > self.options.max_answer_bytes => {
                    return Err(Failure {
                        error: ExchangeError::TooLong,
                        wait: None,
                    });
                }
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => return Ok(bytes),
                Err(_) => return Err(lost("the connection was lost")),
            }
        }
    }
}

fn lost(how: &str) -> Failure {
    Failure {
        error: ExchangeError::Unavailable(how.to_owned()),
        wait: Some(Wait::Usual),
    }
}

impl Lane {
    /// Asks; dropping the future hangs up.
    pub(crate) async fn post(&self, body: &str) -> Result<Vec<u8>, ExchangeError> {
        let until = Instant::now() + self.time;
        let paused = || {
            ExchangeError::Unavailable("it did not answer lately and is given a pause".to_owned())
        };
        if self.breaker.refuses(Instant::now()) {
            return Err(paused()); // without queueing first
        }
        let Ok(Ok(_permit)) = timeout_at(until, self.permits.acquire()).await else {
            return Err(ExchangeError::Busy { retry_after: None });
        };
        let mut settlement = Breaker::admitted(&self.breaker).ok_or_else(paused)?;
        let outcome = self.asked(body, until).await;
        settlement.settle(match &outcome {
            Err(ExchangeError::Unavailable(_)) => Outcome::Failed,
            _ => Outcome::Reached,
        });
        outcome
    }

    async fn asked(&self, body: &str, until: Instant) -> Result<Vec<u8>, ExchangeError> {
        let mut retries = 0;
        loop {
            let failure = match timeout_at(until, self.exchange.attempt(body)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(_) => {
                    let text = format!("no answer within {:?}", self.time);
                    return Err(ExchangeError::Unavailable(text));
                }
            };
            let wait = match failure.wait {
                Some(wait) if retries < self.retries => match wait {
                    Wait::Usual => backoff(retries),
                    Wait::Asked(asked) => asked,
                },
                _ => return Err(failure.error),
            };
            if wait > LONGEST_WAIT || Instant::now() + wait >= until {
                return Err(failure.error);
            }
            retries += 1;
            let what = self.exchange.options.what;
            tracing::info!(what, error = ?failure.error, retry = retries, wait_ms = wait.as_millis() as u64, "asking again");
            sleep(wait).await;
        }
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("options", &self.exchange.options)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}
