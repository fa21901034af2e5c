//! TLS with a certificate from files, which may be renewed while the server runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

/// The protocols that are offered, the better one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// How often it is looked whether the files were renewed.
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
    config: RwLock<Arc<ServerConfig>>,
    /// When the files were written that it is of.
    of: Mutex<Stamp>,
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
            config: RwLock::new(Arc::new(read(certificate, key)?)),
            of: Mutex::new(of),
        })
    }

    /// Greets whoever has connected.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(self.current()).accept(stream).await
    }

    fn current(&self) -> Arc<ServerConfig> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&config)
    }

    /// Looks for renewed files again and again, until `shutdown`.
    pub async fn watch(self: Arc<Self>, shutdown: CancellationToken) {
        while timeout(LOOK, shutdown.cancelled()).await.is_err() {
            let tls = Arc::clone(&self);
            // Files may lie on a disk that answers late, and nobody who connects is to wait for it.
            if let Err(error) = tokio::task::spawn_blocking(move || tls.look()).await {
                tracing::error!(%error, "looking for a renewed certificate died");
            }
        }
    }

    /// Takes what is in the files by now. Files that cannot be used, perhaps since they are just being written, leave things as they are.
    fn look(&self) {
        let of = stamp(&self.certificate, &self.key);
        let mut known = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if of == *known {
            return;
        }
        *known = of;
        match read(&self.certificate, &self.key) {
            Ok(config) => {
                *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
                tracing::info!("the certificate was renewed");
            }
            Err(error) => {
                tracing::warn!(%error, "the renewed certificate cannot be used; the one before stays");
            }
        }
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
