//! What only this store promises; what every store promises is in the conformance suite.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod attacks;
mod connections;
mod isolation;
mod plans;
mod schema;
mod steps;
