//! The binary `tidemark`; see the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidemark_interface::cli::run()
}
