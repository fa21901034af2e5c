//! `tidemark export USER`: everything that is kept of a user, as JSON Lines on standard output.

use std::error::Error;
use std::io::Write;

use futures::StreamExt;
use tidemark_application::ports::clock::Clock;
use tidemark_application::users::export::Export;
use tidemark_domain::ids::{TenantName, UserName};
use tidemark_infrastructure::system::SystemClock;

use crate::config::Loaded;
use crate::http::users::export::lines;
use crate::wiring::OpenStore;

/// Writes the export.
pub(super) fn run(loaded: &Loaded, user: &str, tenant: &str) -> Result<(), Box<dyn Error>> {
    super::warn(loaded);
    let (user, tenant) = (super::user(user)?, super::tenant_name(tenant)?);
    super::runtime()?.block_on(async {
        let store = OpenStore::open(&loaded.settings.store, true).await?;
        let outcome = write(&store, &tenant, user).await;
        store.close().await;
        outcome
    })
}

async fn write(
    store: &OpenStore,
    tenant: &TenantName,
    user: UserName,
) -> Result<(), Box<dyn Error>> {
    let tenant = super::tenant(store.store().as_ref(), tenant).await?;
    let export = Export::of(store.store(), tenant, &user).await?;
    let export = export.ok_or_else(|| super::unknown(&user))?;
    let mut lines = std::pin::pin!(lines(export, user, SystemClock.now()));
    let mut out = std::io::stdout().lock();
    while let Some(text) = lines.next().await {
        out.write_all(&text.map_err(|error| error.to_string())?)?;
    }
    out.flush()?;
    Ok(())
}
