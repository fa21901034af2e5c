//! `tidemark config` and `tidemark openapi`, and how any command writes its output.

use std::error::Error;
use std::io::{ErrorKind, Write};

use crate::config::{Loaded, describe};
use crate::openapi;

/// The settings that hold.
pub(super) fn effective(loaded: &Loaded) -> Result<(), Box<dyn Error>> {
    super::warn(loaded);
    text(&describe::effective(&loaded.settings))
}

/// The documented defaults.
pub(super) fn example() -> Result<(), Box<dyn Error>> {
    text(&describe::example())
}

/// The document.
pub(super) fn openapi() -> Result<(), Box<dyn Error>> {
    text(&openapi::text()?)
}

/// Writes to standard output.
pub(super) fn text(text: &str) -> Result<(), Box<dyn Error>> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // Whoever reads, `head` say, has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => Ok(outcome?),
    }
}
