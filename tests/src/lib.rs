//! What the black-box suites stand on: the product is known here by its wire contract alone.
//!
//! [`server`] starts the real binary on a store of its own, [`model`] is the language model it talks to, [`client`] and
//! [`sse`] are its clients, [`transcript`] judges what a model API would accept, [`embeddings`] the embedder, [`rerank`] the reranker, [`identity_provider`] signs tokens, and [`otlp`] collects its
//! traces.
//! [`postgres`], [`redis`], [`proxy`] and [`clock`] are what a test may break under it.
//! A suite is one file (or folder) in `tests/tests`; a test that concerns the store is listed in [`each_store!`], so that it
//! runs on every store.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "test support: whatever is unexpected here fails the test with its message"
)]

pub mod answer;
pub mod client;
pub mod clock;
pub mod compatibility;
pub mod database;
pub mod directives;
pub mod embeddings;
pub mod events;
pub mod identity_provider;
pub mod keys;
pub mod model;
pub mod model_reply;
pub mod nginx;
pub mod otlp;
pub mod paths;
pub mod ports;
pub mod postgres;
pub mod proxy;
pub mod random;
pub mod redis;
pub mod rerank;
pub mod server;
pub mod sse;
pub mod transcript;
pub mod wait;

/// Runs each named `async fn(Store)` of the surrounding module once on `SQLite` and once on `PostgreSQL`.
#[macro_export]
macro_rules! each_store {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name($crate::database::Store::Sqlite).await;
                }
            )+
        }
        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name($crate::database::Store::Postgres).await;
                }
            )+
        }
    };
}
