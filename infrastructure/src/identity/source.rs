//! Reading the provider's keys over HTTP: bounded in time and size.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::ACCEPT;

use super::key_set::{KeySet, NoKeySet};
use crate::model::tls;

/// How long the provider may take to answer.
pub(super) const LIMIT: Duration = Duration::from_secs(5);

/// The longest answer, in bytes. A key with its certificates has some thousands.
const MOST_BYTES: usize = 512 * 1024;

/// The provider cannot be asked as it is set. Messages repeat nothing of what was given.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The address cannot be used.
    #[error("its address cannot be used: {0}")]
    Address(&'static str),
    /// The HTTP client cannot be built.
    #[error("its HTTP client cannot be built")]
    Client(#[source] reqwest::Error),
}

/// The keys were not read. Messages repeat nothing of the answer and do not name the address.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error("no connection")]
    NoConnection,
    #[error("no answer in time")]
    Late,
    #[error("the connection was lost")]
    Lost,
    #[error("status {0}")]
    Status(u16),
    #[error("the answer is too long")]
    TooLong,
    #[error(transparent)]
    NoKeySet(#[from] NoKeySet),
}

impl Unread {
    fn of(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            Self::Late
        } else if error.is_connect() {
            Self::NoConnection
        } else {
            Self::Lost
        }
    }
}

/// Where the keys are.
#[derive(Debug)]
pub(super) struct Source {
    http: reqwest::Client,
    url: Url,
}

impl Source {
    pub(super) fn new(address: &str) -> Result<Self, SourceError> {
        let url = usable(address).map_err(SourceError::Address)?;
        let http = tls::client_builder(url.scheme() == "https")
            .timeout(LIMIT)
            // Whom keys are taken of is who is set, and nobody else whom they name.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("tidemark/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| SourceError::Client(error.without_url()))?;
        Ok(Self { http, url })
    }

    pub(super) async fn read(&self) -> Result<KeySet, Unread> {
        let asked = self.http.get(self.url.clone());
        let asked = asked.header(ACCEPT, "application/json").send().await;
        let mut response = asked.map_err(|error| Unread::of(&error))?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(Unread::Status(status));
        }
        let mut text = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|e| Unread::of(&e))? {
            if text.len() + part.len() > MOST_BYTES {
                return Err(Unread::TooLong);
            }
            text.extend_from_slice(&part);
        }
        Ok(KeySet::read(&text)?)
    }
}

/// Whoever can change the answer on its way can sign tokens: it comes over TLS, or from this machine.
fn usable(address: &str) -> Result<Url, &'static str> {
    let url = Url::parse(address).map_err(|_| "it is no URL")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must hold no credentials");
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        _ => Err("it must begin with https://; http:// is for loopback addresses alone"),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_over_tls_or_from_this_machine() {
        for good in [
            "https://id.example.org/jwks.json",
            "http://127.0.0.1:8081/keys",
            "http://localhost/keys?tenant=a",
            "http://[::1]:1/",
        ] {
            assert!(usable(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "id.example.org",
            "ftp://id.example.org",
            "http://id.example.org/jwks.json",
            "http://localhost.example.org/",
            "http://10.0.0.1/",
            "https://me:s3cret@id.example.org",
            "file:///etc/keys.json",
        ] {
            let told = usable(bad).map_or_else(ToOwned::to_owned, |_| String::new());
            assert!(!told.is_empty() && !told.contains("s3cret"), "{bad}");
        }
    }
}
