//! The claims of order that the three stages make, each held by a test that fails when two lines are swapped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fakes;
mod following;
mod inference;
mod publishing;
mod response;
