//! `tidemark migrate`: for installations that set `store.migrate = false`.

use std::error::Error;

use crate::config::Loaded;
use crate::wiring::OpenStore;

/// Brings the store's schema to this version.
pub(super) fn run(loaded: &Loaded) -> Result<(), Box<dyn Error>> {
    super::warn(loaded);
    super::runtime()?.block_on(async {
        let store = OpenStore::open(&loaded.settings.store, true).await?;
        let outcome = store.store().ready().await;
        store.close().await;
        outcome?;
        super::tell("the store's schema is this version's");
        Ok(())
    })
}
