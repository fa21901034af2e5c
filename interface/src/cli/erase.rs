//! `tidemark erase USER`: the end of everything that is kept of a user; the receipt on standard output.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use tidemark_application::users::erase::Erase;
use tidemark_domain::ids::{TenantId, UserName};
use tidemark_infrastructure::system::{SystemClock, UuidV7};

use crate::config::Loaded;
use crate::http::users::erase::ReceiptView;
use crate::wiring::OpenStore;

/// Erases, and writes the receipt.
pub(super) fn run(loaded: &Loaded, user: &str) -> Result<(), Box<dyn Error>> {
    super::warn(loaded);
    let user: UserName = super::user(user)?;
    super::runtime()?.block_on(async {
        let store = OpenStore::open(&loaded.settings.store, true).await?;
        let erase = Erase::new(
            store.store(),
            Arc::new(UuidV7::default()),
            Arc::new(SystemClock),
            None,
        );
        let erased = erase.run(TenantId::DEFAULT, &user, || ()).await;
        store.close().await;
        let receipt = erased?.ok_or_else(|| super::unknown(&user))?;
        let receipt = serde_json::to_string_pretty(&ReceiptView::from(receipt))?;
        writeln!(std::io::stdout(), "{receipt}")?;
        Ok(())
    })
}
