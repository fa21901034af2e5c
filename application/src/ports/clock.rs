//! The time.

use tidemark_domain::ids::Timestamp;

/// Tells the time to the use cases. Leases and schedules do not use it: they follow the database's clock.
pub trait Clock: Send + Sync + 'static {
    /// Now, in UTC, truncated to microseconds.
    fn now(&self) -> Timestamp;
}
