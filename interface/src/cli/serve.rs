//! `tidemark serve`, the command when none is named.

use std::error::Error;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::{Loaded, Settings};
use crate::lifecycle;
use crate::wiring::{self, OpenStore};

/// Runs the server until it is told to end.
pub(super) fn run(loaded: Loaded) -> Result<(), Box<dyn Error>> {
    let settings = loaded.settings;
    let runtime = super::runtime()?;
    let outcome = runtime.block_on(async {
        let telemetry = wiring::telemetry(&settings)?;
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        raise_file_limit();
        let outcome = serve(&settings).await;
        // Sends the last spans; it waits for a thread of its own, so no worker may be held up by it.
        tokio::task::spawn_blocking(move || drop(telemetry)).await?;
        outcome
    });
    // Everything that matters has ended; a look-up of a name, say, may hang.
    runtime.shutdown_background();
    outcome
}

async fn serve(settings: &Settings) -> Result<(), Box<dyn Error>> {
    // First of all: a server that may not listen should not touch a store.
    let listener = lifecycle::bind(settings)?;
    let store = OpenStore::open(&settings.store, settings.store.migrate).await?;
    if !settings.store.migrate
        && let Err(error) = store.store().ready().await
    {
        store.close().await;
        return Err(error.into());
    }
    let wired = match wiring::embedders(settings, store.store().as_ref()).await {
        Ok(embedders) => wiring::wire(settings, store.store(), &embedders),
        Err(error) => Err(error),
    };
    match wired {
        Ok(wired) => Ok(lifecycle::run(settings, listener, wired, &store).await?),
        Err(error) => {
            store.close().await;
            Err(error.into())
        }
    }
}

/// Each connection is an open file, and the usual soft limit is 1,024.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
