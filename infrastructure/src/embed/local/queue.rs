//! Threads that embed: a few, never those that serve requests. A question goes before passages that wait.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use tidemark_application::ports::embedder::EmbedError;
use tidemark_domain::memory::embedding::Embedding;
use tokio::sync::oneshot;

/// How many pieces of work of a sort may wait; each is some milliseconds to tens of milliseconds.
const MOST_WAITING: usize = 1_024;

pub(super) type Outcome = Result<Vec<Embedding>, EmbedError>;

/// What embeds; called from the threads.
pub(super) type Work = dyn Fn(&[String]) -> Outcome + Send + Sync;

/// How soon something is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Somebody waits for a recall.
    Query,
    /// The rest of the time.
    Passage,
}

struct Task {
    texts: Vec<String>,
    reply: oneshot::Sender<Outcome>,
}

#[derive(Default)]
struct Waiting {
    queries: VecDeque<Task>,
    passages: VecDeque<Task>,
    closed: bool,
}

struct Shared {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

/// The threads' queue; they end when it is dropped.
pub(super) struct Queue(Arc<Shared>);

impl Queue {
    /// Starts that many threads, at least one.
    pub(super) fn start(threads: usize, work: &Arc<Work>) -> std::io::Result<Self> {
        let queue = Self(Arc::new(Shared {
            waiting: Mutex::default(),
            arrived: Condvar::new(),
        }));
        for number in 0..threads.max(1) {
            let (shared, work) = (Arc::clone(&queue.0), Arc::clone(work));
            thread::Builder::new()
                .name(format!("embed-{number}"))
                .spawn(move || shared.serve(work.as_ref()))?;
        }
        Ok(queue)
    }

    /// Waits for the texts' turn and their vectors. Dropping the future takes them out of the queue.
    pub(super) async fn embed(&self, texts: Vec<String>, urgency: Urgency) -> Outcome {
        let (reply, answer) = oneshot::channel();
        self.push(Task { texts, reply }, urgency)?;
        answer.await.unwrap_or_else(|_| {
            Err(EmbedError::Unavailable(
                "the embedding threads have ended".to_owned(),
            ))
        })
    }

    fn push(&self, task: Task, urgency: Urgency) -> Result<(), EmbedError> {
        let mut waiting = self.0.lock();
        let line = match urgency {
            Urgency::Query => &mut waiting.queries,
            Urgency::Passage => &mut waiting.passages,
        };
        if line.len() >= MOST_WAITING {
            // Whoever gave up makes room.
            line.retain(|task| !task.reply.is_closed());
        }
        if line.len() >= MOST_WAITING {
            return Err(EmbedError::Busy { retry_after: None });
        }
        line.push_back(task);
        drop(waiting);
        self.0.arrived.notify_one();
        Ok(())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.arrived.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, work: &Work) {
        while let Some(task) = self.next() {
            if task.reply.is_closed() {
                continue;
            }
            // A defect in one text's computation must not end the thread for all others.
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&task.texts)))
                .unwrap_or_else(|_| Err(EmbedError::Protocol("the computation failed".to_owned())));
            let _ = task.reply.send(outcome);
        }
    }

    fn next(&self) -> Option<Task> {
        let mut waiting = self.lock();
        loop {
            if waiting.closed {
                return None;
            }
            let Waiting {
                queries, passages, ..
            } = &mut *waiting;
            if let Some(task) = queries.pop_front().or_else(|| passages.pop_front()) {
                return Some(task);
            }
            waiting = self
                .arrived
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    fn one_number(text: &str) -> Vec<Embedding> {
        vec![Embedding::of(&[text.len() as f32]).unwrap()]
    }

    /// A queue of one thread that notes what it does and waits for leave before each piece.
    fn noting() -> (Queue, Arc<Mutex<Vec<String>>>, mpsc::Sender<()>) {
        let (leave, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let done = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&done);
        let work: Arc<Work> = Arc::new(move |texts: &[String]| {
            wait.lock().unwrap().recv().unwrap();
            assert_ne!(texts[0], "panic", "as asked");
            noted.lock().unwrap().extend_from_slice(texts);
            Ok(one_number(&texts[0]))
        });
        (Queue::start(1, &work).unwrap(), done, leave)
    }

    async fn settled() {
        tokio::time::sleep(Duration::from_millis(30)).await;
    }

    #[tokio::test]
    async fn a_question_is_embedded_before_passages_that_came_first() {
        let (queue, done, leave) = noting();
        let queue = Arc::new(queue);
        let ask = |text: &str, urgency| {
            let (queue, texts) = (Arc::clone(&queue), vec![text.to_owned()]);
            tokio::spawn(async move { queue.embed(texts, urgency).await })
        };
        let mut asked = vec![ask("first", Urgency::Passage)];
        settled().await; // it is with the thread now
        asked.push(ask("second", Urgency::Passage));
        settled().await;
        asked.push(ask("question", Urgency::Query));
        settled().await;
        for _ in 0..3 {
            leave.send(()).unwrap();
        }
        for answer in asked {
            answer.await.unwrap().unwrap();
        }
        assert_eq!(*done.lock().unwrap(), ["first", "question", "second"]);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_is_not_computed() {
        let (queue, done, leave) = noting();
        let texts = |text: &str| vec![text.to_owned()];
        let first = queue.embed(texts("first"), Urgency::Query);
        let given_up = async {
            let wait = Duration::from_millis(20);
            tokio::time::timeout(wait, queue.embed(texts("given up"), Urgency::Query)).await
        };
        let last = async {
            settled().await;
            for _ in 0..2 {
                leave.send(()).unwrap();
            }
            queue.embed(texts("last"), Urgency::Query).await
        };
        let (first, given_up, last) = tokio::join!(first, given_up, last);
        assert!(first.is_ok() && given_up.is_err() && last.is_ok());
        assert_eq!(*done.lock().unwrap(), ["first", "last"]);
    }

    #[tokio::test]
    async fn a_defect_in_one_text_leaves_the_thread_to_the_others() {
        let (queue, _, leave) = noting();
        leave.send(()).unwrap();
        leave.send(()).unwrap();
        let failed = queue.embed(vec!["panic".to_owned()], Urgency::Passage);
        assert!(matches!(failed.await, Err(EmbedError::Protocol(_))));
        let works = queue.embed(vec!["works".to_owned()], Urgency::Passage);
        assert!(works.await.is_ok());
    }

    #[tokio::test]
    async fn more_than_the_bound_is_refused_rather_than_kept() {
        let (queue, _, leave) = noting();
        let mut waiting = Vec::new();
        let mut refused = 0;
        for _ in 0..MOST_WAITING + 10 {
            let (reply, answer) = oneshot::channel();
            let texts = vec!["x".to_owned()];
            match queue.push(Task { texts, reply }, Urgency::Passage) {
                Ok(()) => waiting.push(answer),
                Err(error) => {
                    assert_eq!(error, EmbedError::Busy { retry_after: None });
                    refused += 1;
                }
            }
        }
        assert!((9..=10).contains(&refused), "{refused}");
        waiting.truncate(MOST_WAITING / 2); // half of them give up
        let (reply, _answer) = oneshot::channel();
        let texts = vec!["x".to_owned()];
        queue.push(Task { texts, reply }, Urgency::Passage).unwrap();
        drop(leave);
    }
}
