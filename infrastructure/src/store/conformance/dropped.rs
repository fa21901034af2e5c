//! Requests that are dropped: whoever goes away in the middle of an operation leaves the store as usable as it was.
//!
//! A transaction whose beginning is cancelled stays open on its pooled connection, and the next operation would become part of it. So a store
//! with a single connection is asked for each operation of the ports, the request is dropped at each await, and then something is written.
//!
//! To add an operation: a line in the file of its kind; a test here fails while one of the ports' is missing.

mod chat;
mod keys;
mod memory;
mod work;

use std::fmt::Debug;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::future::BoxFuture;
use tidemark_application::ports::store::Store;
use tokio::time::{sleep, timeout};

use super::world::World;

/// How long anything may take that a connection is needed for: as long as the stores wait for one.
const PROMPT: Duration = Duration::from_secs(5);

/// What is dropped.
struct Call(BoxFuture<'static, ()>);

/// An operation of the ports.
struct Operation {
    name: &'static str,
    /// Stores what the operation needs, and asks for it without doing anything yet.
    prepare: fn(Arc<World>) -> BoxFuture<'static, Call>,
}

/// What an operation says in the end.
trait Outcome {
    /// Panics unless all went well.
    fn check(self);
}

impl<T, E: Debug> Outcome for Result<T, E> {
    fn check(self) {
        self.map(|_| ()).unwrap();
    }
}

impl<E: Debug> Outcome for Vec<Result<(), E>> {
    fn check(self) {
        for outcome in self {
            outcome.unwrap();
        }
    }
}

/// An operation, what is done before, and its arguments.
macro_rules! operation {
    ($w:ident.$name:ident($($argument:expr),*) after { $($before:tt)* }) => {
        $crate::store::conformance::dropped::Operation {
            name: stringify!($name),
            prepare: |$w| {
                Box::pin(async move {
                    $($before)*
                    $crate::store::conformance::dropped::Call(Box::pin(async move {
                        $crate::store::conformance::dropped::Outcome::check($w.store.$name($($argument),*).await);
                    }))
                })
            },
        }
    };
}
use operation;

fn operations() -> Vec<Operation> {
    let mut all = chat::operations();
    all.extend(memory::operations());
    all.extend(work::operations());
    all.extend(keys::operations());
    all
}

/// When a request is polled again.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// When it is woken, as a runtime does: it is dropped at each of its awaits.
    Woken,
    /// Whenever others had their turn: it is dropped at many moments between, wherever what it waits for stands.
    Hurried,
}

impl Pace {
    /// Polls so often, then drops. Whether it ended before.
    async fn poll(self, Call(mut call): Call, polls: usize) -> bool {
        for _ in 1..polls {
            if self.once(call.as_mut()).await {
                return true;
            }
        }
        poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await
    }

    async fn once(self, mut call: Pin<&mut (dyn Future<Output = ()> + Send)>) -> bool {
        let mut polled = false;
        let ended = poll_fn(|context| {
            if polled && matches!(self, Self::Woken) {
                return Poll::Ready(false);
            }
            match call.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending if matches!(self, Self::Hurried) => Poll::Ready(false),
                Poll::Pending => {
                    polled = true;
                    Poll::Pending
                }
            }
        });
        let ended = ended.await;
        if matches!(self, Self::Hurried) {
            tokio::task::yield_now().await;
        }
        ended
    }

    /// How often it is polled the next time: each await once, and moments ever further apart.
    fn next(self, polls: usize) -> usize {
        match self {
            Self::Woken => polls + 1,
            Self::Hurried => polls + polls.div_ceil(2),
        }
    }
}

/// `store` has one connection. `is_idle` tells whether none of its connections is in a transaction.
pub async fn a_dropped_request_leaves_the_only_connection_free(
    store: Arc<dyn Store>,
    is_idle: impl AsyncFn() -> bool,
) {
    let w = Arc::new(World::new(store).await);
    let mut drops = 0;
    for Operation { name, prepare } in operations() {
        for pace in [Pace::Woken, Pace::Hurried] {
            let mut polls = 1;
            loop {
                let at = format!("{name}, dropped after {polls} polls ({pace:?})");
                let call = prepare(Arc::clone(&w)).await;
                let ended = timeout(PROMPT, pace.poll(call, polls)).await;
                let ended = ended.unwrap_or_else(|_| panic!("{at}: it hangs"));
                let idle = async {
                    while !is_idle().await {
                        sleep(Duration::from_millis(1)).await;
                    }
                };
                let idle = timeout(PROMPT, idle).await;
                idle.unwrap_or_else(|_| panic!("{at}: a connection is in a transaction"));
                let written = timeout(PROMPT, async {
                    let session = w.session().await;
                    w.store.session(w.owner, session).await.unwrap()
                });
                let written = written.await;
                let seen = written.unwrap_or_else(|_| panic!("{at}: nothing can be written"));
                assert!(seen.is_some(), "{at}: what is written is not seen");
                if ended {
                    break;
                }
                drops += 1;
                polls = pace.next(polls);
            }
        }
    }
    assert!(drops > 2 * operations().len(), "{drops}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_the_ports_is_dropped() {
        let ports = [
            include_str!("../../../../application/src/ports/changes.rs"),
            include_str!("../../../../application/src/ports/context.rs"),
            include_str!("../../../../application/src/ports/embeddings.rs"),
            include_str!("../../../../application/src/ports/fading.rs"),
            include_str!("../../../../application/src/ports/jobs.rs"),
            include_str!("../../../../application/src/ports/keys.rs"),
            include_str!("../../../../application/src/ports/learning.rs"),
            include_str!("../../../../application/src/ports/memories.rs"),
            include_str!("../../../../application/src/ports/owners.rs"),
            include_str!("../../../../application/src/ports/sessions.rs"),
            include_str!("../../../../application/src/ports/turns.rs"),
            include_str!("../../../../application/src/ports/users.rs"),
        ];
        let names: Vec<&str> = (ports.iter().flat_map(|port| port.lines()))
            .filter_map(|line| line.trim().strip_prefix("async fn ")?.split('(').next())
            .collect();
        assert!(names.len() > 50, "{names:?}");
        let dropped: Vec<&str> = operations().iter().map(|o| o.name).collect();
        for name in names {
            assert!(dropped.contains(&name), "{name}");
        }
    }
}
