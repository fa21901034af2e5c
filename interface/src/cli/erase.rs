//! `tidemark erase USER`: the end of everything that is kept of a user; the receipt on standard output.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tidemark_application::users::erase::Erase;
use tidemark_infrastructure::system::{SystemClock, UuidV7};

use crate::config::Loaded;
use crate::http::users::erase::ReceiptView;
use crate::wiring::{self, OpenStore};

/// How long Redis may take to answer: this process does not try again later.
const REDIS_WAIT: Duration = Duration::from_secs(20);

/// Erases, and writes the receipt.
pub(super) fn run(loaded: &Loaded, user: &str, tenant: &str) -> Result<(), Box<dyn Error>> {
    super::warn(loaded);
    let (user, tenant) = (super::user(user)?, super::tenant_name(tenant)?);
    super::runtime()?.block_on(async {
        let store = OpenStore::open(&loaded.settings.store, true).await?;
        let mut erase = Erase::new(
            store.store(),
            Arc::new(UuidV7::default()),
            Arc::new(SystemClock),
            None,
        );
        if loaded.settings.events.redis_url.is_some() {
            let events = wiring::events(&loaded.settings, &UuidV7::default(), REDIS_WAIT)?;
            erase = erase.with_events(events);
        }
        let erased = match super::tenant(store.store().as_ref(), &tenant).await {
            Ok(tenant) => erase.run(tenant, &user, || ()).await.map_err(Into::into),
            Err(error) => Err(error),
        };
        store.close().await;
        let erased = erased?.ok_or_else(|| super::unknown(&user))?;
        let receipt = serde_json::to_string_pretty(&ReceiptView::from(erased.receipt))?;
        writeln!(std::io::stdout(), "{receipt}")?;
        if !erased.logs_are_gone {
            let seconds = loaded.settings.stream.retention_seconds;
            writeln!(
                std::io::stderr(),
                "Redis did not answer: what it holds of this user's last turns expires within {seconds} s"
            )?;
        }
        Ok(())
    })
}
