//! The server in this process, for commands that measure or judge it: on a free port of this machine, asked over HTTP like any other.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tempfile::TempDir;

use crate::config::setting::{AuthMode, LogFilter, Setting, StoreUrl};
use crate::config::{Loaded, Settings};
use crate::lifecycle::{self, Running};
use crate::wiring::{self, OpenStore};

/// How long what still runs at the end may take.
const DRAIN: Duration = Duration::from_secs(10);

/// A server of this process.
#[derive(Debug)]
pub(super) struct Embedded {
    running: Running,
    store: OpenStore,
    // Removed when everything else has ended.
    directory: Option<TempDir>,
}

impl Embedded {
    /// Starts one with these settings, on `store` if that is named, else on a file that is removed in the end.
    pub(super) async fn start(
        settings: &Settings,
        store: Option<StoreUrl>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut settings = settings.clone();
        settings.server.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        // On this machine alone, and for this command.
        settings.auth.mode = AuthMode::None;
        let mut directory = None;
        settings.store.migrate = true;
        settings.store.url = if let Some(url) = store {
            url
        } else {
            let made = tempfile::Builder::new().prefix("tidemark-").tempdir()?;
            let path = made.path().join("tidemark.db");
            directory = Some(made);
            StoreUrl(format!("sqlite://{}", path.display()))
        };
        let listener = lifecycle::bind(&settings)?;
        let store = OpenStore::open(&settings.store, true).await?;
        let running = wiring::embedders(&settings, store.store().as_ref())
            .await
            .and_then(|embedders| wiring::wire(&settings, store.store(), &embedders))
            .map_err(Box::<dyn Error>::from)
            .and_then(|wired| Ok(Running::start(&settings, listener, wired)?));
        match running {
            Ok(running) => Ok(Self {
                running,
                store,
                directory,
            }),
            Err(error) => {
                store.close().await;
                Err(error)
            }
        }
    }

    /// `http://127.0.0.1:PORT`.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.running.address())
    }

    /// Whether what is written there goes with it.
    pub(super) fn is_temporary(&self) -> bool {
        self.directory.is_some()
    }

    /// Ends it.
    pub(super) async fn end(self) {
        self.running.end(DRAIN, &self.store).await;
        drop(self.directory);
    }
}

/// The store that a command line names, if it names one.
pub(super) fn store(named: Option<&str>) -> Result<Option<StoreUrl>, String> {
    named
        .map(|url| {
            StoreUrl::parse(url).ok_or_else(|| format!("--store must be {}", StoreUrl::ALLOWED))
        })
        .transpose()
}

/// Settings for a command whose output is a table: of the log only what went wrong, unless the user wants another.
pub(super) fn quiet(loaded: &Loaded) -> Settings {
    let mut settings = loaded.settings.clone();
    if settings.server.log == Settings::default().server.log {
        settings.server.log = LogFilter("warn".to_owned());
    }
    settings
}
