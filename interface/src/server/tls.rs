//! TLS with a certificate from files, which may be renewed while the server runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The protocols that are offered, the better one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// How often, at most, it is looked whether the files were renewed. It is looked only when somebody connects.
const LOOK: Duration = Duration::from_secs(1);

/// The certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read as what it should be.
    #[error("{path} does not hold {what} in PEM form")]
    File {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// The key is not that of the certificate, or of a kind that is not supported.
    #[error("the certificate of tls.cert cannot be used with the key of tls.key")]
    Pair(#[source] rustls::Error),
}

/// What connections are secured with.
#[derive(Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    config: Arc<ServerConfig>,
    of: Stamp,
    looked: Instant,
}

/// When both files were written.
type Stamp = [Option<SystemTime>; 2];

impl Tls {
    /// With the certificates (the server's own first) and the key in these files.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn of(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let of = stamp(certificate, key);
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            held: Mutex::new(Held {
                config: Arc::new(read(certificate, key)?),
                of,
                looked: Instant::now(),
            }),
        })
    }

    /// Greets whoever has connected.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(self.current()).accept(stream).await
    }

    /// With what is in the files by now. Files that cannot be used, perhaps since they are just being written, leave things as they are.
    fn current(&self) -> Arc<ServerConfig> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.looked.elapsed() >= LOOK {
            held.looked = Instant::now();
            let of = stamp(&self.certificate, &self.key);
            if of != held.of {
                held.of = of;
                match read(&self.certificate, &self.key) {
                    Ok(config) => {
                        held.config = Arc::new(config);
                        tracing::info!("the certificate was renewed");
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the renewed certificate cannot be used; the one before stays");
                    }
                }
            }
        }
        Arc::clone(&held.config)
    }
}

fn stamp(certificate: &Path, key: &Path) -> Stamp {
    [certificate, key].map(|path| std::fs::metadata(path).and_then(|m| m.modified()).ok())
}

fn read(certificate: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let unreadable = |path: &Path, what| {
        let path = path.to_owned();
        move |source| TlsError::File { path, what, source }
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(unreadable(certificate, "certificates"))?;
    if chain.is_empty() {
        let none = rustls::pki_types::pem::Error::NoItemsFound;
        return Err(unreadable(certificate, "certificates")(none));
    }
    let key =
        PrivateKeyDer::from_pem_file(key).map_err(unreadable(key, "an unencrypted private key"))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsError::Pair)?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_holds_something_else_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
        let of = || Tls::of(&certificate, &key).unwrap_err().to_string();
        assert!(of().contains("c.pem"), "{}", of());
        std::fs::write(&certificate, "no certificate").unwrap();
        assert!(of().contains("c.pem"), "{}", of());
        let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(&certificate, pem).unwrap();
        assert!(of().contains("k.pem"), "{}", of());
        std::fs::write(&key, "no key").unwrap();
        assert!(of().contains("k.pem"), "{}", of());
    }
}
