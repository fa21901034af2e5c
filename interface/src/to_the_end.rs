//! What has begun to change something goes to its end, whoever goes away.
//!
//! A connection that breaks drops the future of its request, wherever that stands. Each transaction is carried out all the same, but not what
//! comes after it: a turn that was accepted would wait until somebody looks for it, and a cancellation would not be told to whoever follows.

use crate::problem::{Code, Problem};
use tracing::Instrument;

/// Runs `work` in a task of its own.
///
/// # Errors
/// Its own, and that it has died.
pub async fn to_the_end<T, E>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<Result<T, E>, Problem>
where
    T: Send + 'static,
    E: Send + 'static,
{
    tokio::spawn(work.in_current_span()).await.map_err(|error| {
        tracing::error!(%error, "what a request asked for died");
        Problem::new(Code::Internal, "a defect of this server")
    })
}
