//! `tidemark config` and `tidemark openapi`.

use std::error::Error;
use std::io::{ErrorKind, Write};

use crate::config::{Loaded, describe};
use crate::openapi;

/// The settings that hold.
pub(super) fn effective(loaded: &Loaded) -> Result<(), Box<dyn Error>> {
    super::warn(loaded);
    print(&describe::effective(&loaded.settings))
}

/// The documented defaults.
pub(super) fn example() -> Result<(), Box<dyn Error>> {
    print(&describe::example())
}

/// The document.
pub(super) fn openapi() -> Result<(), Box<dyn Error>> {
    print(&openapi::text()?)
}

fn print(text: &str) -> Result<(), Box<dyn Error>> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // Whoever reads, `head` say, has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => Ok(outcome?),
    }
}
