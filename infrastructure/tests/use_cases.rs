//! The use cases over a real store, where something in them breaks: a defect costs its own turn or job, and nothing else (A10, A18).
#![allow(clippy::unwrap_used, clippy::panic)]

mod use_cases {
    pub(crate) mod fading;
    pub(crate) mod recall;
    pub(crate) mod turns;
    pub(crate) mod workers;
    pub(crate) mod world;
}
