//! A user as a whole: what is kept of them, and its end.

pub mod erase;
pub mod export;
