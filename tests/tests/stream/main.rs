//! The stream of a turn: what a bare `EventSource`, a page behind a proxy or an SDK may rely on.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod cancel;
mod chat_stream;
mod expired;
mod framing;
mod readers;
mod resume;
mod shutdown;
mod silence;
mod two_servers;
