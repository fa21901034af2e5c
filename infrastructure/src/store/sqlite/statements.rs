//! How this store writes its SQL: constants, listed, so that a test can prepare each against the migrated schema.

/// Names statements and lists them as `STATEMENTS`.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)+) => {
        $($(#[$doc])* const $name: &str = $sql;)+

        /// Every statement of this module.
        #[cfg(test)]
        pub(in crate::store::sqlite) const STATEMENTS: &[&str] = &[$($name),+];
    };
}

/// The database's clock in microseconds; it ticks in milliseconds. The same throughout a statement.
macro_rules! database_now {
    () => {
        "CAST(unixepoch('subsec') * 1000000 AS INTEGER)"
    };
}

pub(super) use database_now;
pub(super) use statements;
