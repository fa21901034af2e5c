//! The event log in process memory keeps what the port promises.

use std::sync::Arc;

use tidemark_application::ports::events::EventLog;
use tidemark_infrastructure::events::memory::{MemoryEventLog, MemoryEventLogOptions};

#[expect(clippy::unused_async, reason = "the suite waits for a log")]
async fn open() -> (Arc<dyn EventLog>, ()) {
    let log = MemoryEventLog::start(MemoryEventLogOptions::default());
    (log, ())
}

tidemark_infrastructure::event_log_conformance!(open);
