//! TLS for outgoing connections: ring does the cryptography, the platform's root certificates decide whom to trust.

use std::sync::Arc;

/// Makes ring the provider of the process, for every client of it. Safe to call more than once; a provider that is already installed stays.
pub fn install() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A client with the platform's root certificates where it needs any. A machine without certificates, such as a bare container, can so
/// still reach a server in its own network by plain HTTP.
pub fn client_builder(encrypted: bool) -> reqwest::ClientBuilder {
    install();
    let builder = reqwest::Client::builder();
    if encrypted {
        return builder;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    match rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
    {
        Ok(config) => builder.tls_backend_preconfigured(
            config
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth(),
        ),
        Err(_) => builder,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn clients_are_built_with_and_without_encryption_and_as_often_as_needed() {
        for encrypted in [true, false, true] {
            client_builder(encrypted).build().unwrap();
        }
    }
}
